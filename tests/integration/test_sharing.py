"""The processes that help in a long cycle: real processes, killed for real."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from zoneinfo import ZoneInfo

from fakes import trio

from mnemosyned.domain.memory import Memory
from mnemosyned.domain.ports import Summary
from mnemosyned.summarizers.aaak import AaakSummarizer
from mnemosyned.summarizers.sharing import HELPERS, SHARED_MIN, SharingSummarizer

UTC_ZONE = ZoneInfo("UTC")
RATIO = 1 / 3


def groups(count: int) -> list[tuple[int, Sequence[Memory]]]:
    return [(at, trio(f"the {at}th tunnel opened on time ")) for at in range(count)]


def children() -> set[int]:
    listed = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    return {int(pid) for file in listed for pid in file.read_text().split()}


def texts(outcomes: dict[int, Summary | Exception]) -> dict[int, str]:
    return {key: one.text for key, one in outcomes.items() if isinstance(one, Summary)}


def test_helping_processes_write_what_one_would() -> None:
    alone = AaakSummarizer(ratio=RATIO, zone=UTC_ZONE)
    shared = SharingSummarizer(ratio=RATIO, zone=UTC_ZONE)
    many = groups(SHARED_MIN * 2)

    outcomes = dict(shared.summarize_each(many, expected=len(many)))

    assert texts(outcomes) == {key: alone.summarize(memories).text for key, memories in many}


def test_few_groups_start_no_process() -> None:
    before = children()
    few = groups(3)

    seen = [
        children() - before
        for _ in SharingSummarizer(ratio=RATIO, zone=UTC_ZONE).summarize_each(few, expected=3)
    ]

    assert seen == [set()] * 3


def test_the_helping_processes_end_with_the_cycle() -> None:
    before = children()
    many = groups(SHARED_MIN)

    during = [
        len(children() - before)
        for _ in SharingSummarizer(ratio=RATIO, zone=UTC_ZONE).summarize_each(
            many, expected=len(many)
        )
    ]

    assert max(during) == HELPERS
    assert children() == before


def test_no_group_is_lost_when_the_helping_processes_are_killed() -> None:
    before = children()

    def with_a_kill() -> Iterator[tuple[int, Sequence[Memory]]]:
        for key, memories in groups(SHARED_MIN * 2):
            if key == SHARED_MIN:
                for pid in children() - before:
                    os.kill(pid, signal.SIGKILL)
            yield key, memories

    shared = SharingSummarizer(ratio=RATIO, zone=UTC_ZONE)
    outcomes = dict(shared.summarize_each(with_a_kill(), expected=SHARED_MIN * 2))

    assert texts(outcomes).keys() == set(range(SHARED_MIN * 2))


def test_a_group_that_fails_there_fails_alone() -> None:
    many = groups(SHARED_MIN)
    blank = [(len(many), [*trio("x")][:0])]

    outcomes = dict(
        SharingSummarizer(ratio=RATIO, zone=UTC_ZONE).summarize_each(
            [*blank, *many], expected=len(many) + 1
        )
    )

    assert isinstance(outcomes[len(many)], Exception)
    assert texts(outcomes).keys() == set(range(len(many)))
