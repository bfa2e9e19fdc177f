"""The processes that help in a long cycle: real processes, killed for real."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from dataclasses import replace
from zoneinfo import ZoneInfo

import pytest
from support.fakes import trio
from support.processes import child_pids

from mnemosyned.memory.engine_ports import Digest, Summary
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.models.parallel import (
    PARALLEL_GROUPS_MIN,
    WORKERS_MAX,
    ParallelSummarizer,
)
from mnemosyned.models.parallel_worker import DigestTask
from mnemosyned.summary.extract import ExtractiveSummarizer

UTC_ZONE = ZoneInfo("UTC")
RATIO = 1 / 3


def groups(count: int) -> list[tuple[int, Sequence[MemoryRecord]]]:
    return [(at, trio(f"the {at}th tunnel opened on time ")) for at in range(count)]


@pytest.fixture
def shared() -> Iterator[ParallelSummarizer]:
    summarizer = ParallelSummarizer(ratio=RATIO, zone=UTC_ZONE)
    yield summarizer
    summarizer.close()


def texts(outcomes: dict[int, Summary | Exception]) -> dict[int, str]:
    return {key: one.text for key, one in outcomes.items() if isinstance(one, Summary)}


def test_helping_processes_write_what_one_would(shared: ParallelSummarizer) -> None:
    alone = ExtractiveSummarizer(ratio=RATIO, zone=UTC_ZONE)
    many = groups(PARALLEL_GROUPS_MIN * 2)

    outcomes = dict(shared.summarize_each(many, expected=len(many)))

    assert texts(outcomes) == {
        key: alone.summarize(memories).text for key, memories in many
    }


def test_helping_processes_find_exact_values_and_hide_secrets_as_one_would(
    shared: ParallelSummarizer,
) -> None:
    alone = ExtractiveSummarizer(ratio=RATIO, zone=UTC_ZONE)
    many = [
        (at, trio(f"the password: Zq7xK9vB2mT{at} opens port 80{at} "))
        for at in range(80)
    ]

    outcomes = dict(shared.digest_each(many, expected=len(many)))

    assert outcomes == {key: alone.digest(memories) for key, memories in many}
    found = [one for one in outcomes.values() if isinstance(one, Digest)]
    assert all(any(detail.sensitive for detail in one.details) for one in found)
    assert not any("Zq7xK9vB2mT" in one.summary.text for one in found)


def test_a_number_too_large_for_a_frame_stops_no_cycle(
    shared: ParallelSummarizer,
) -> None:
    alone = ExtractiveSummarizer(ratio=RATIO, zone=UTC_ZONE)
    many = [
        (at, [replace(each, metadata={"size": -(10**25)}) for each in memories])
        if at % 7 == 0
        else (at, memories)
        for at, memories in groups(PARALLEL_GROUPS_MIN)
    ]

    outcomes = dict(shared.digest_each(many, expected=len(many)))

    assert outcomes == {key: alone.digest(memories) for key, memories in many}


def test_few_groups_start_no_process(shared: ParallelSummarizer) -> None:
    before = child_pids()
    few = groups(3)

    seen = [child_pids() - before for _ in shared.summarize_each(few, expected=3)]

    assert seen == [set()] * 3


def test_the_helping_processes_stay_for_the_next_stage_and_end_with_the_cycle(
    shared: ParallelSummarizer,
) -> None:
    before = child_pids()
    many = groups(PARALLEL_GROUPS_MIN)

    list(shared.summarize_each(many, expected=len(many)))
    first = child_pids() - before
    few = [child_pids() - before for _ in shared.summarize_each(groups(3), expected=3)]
    shared.release_workers()

    assert len(first) == WORKERS_MAX
    assert few == [first] * 3
    assert child_pids() == before


def test_what_a_stage_left_unread_is_not_taken_for_the_next_ones(
    shared: ParallelSummarizer,
) -> None:
    others = [
        (key, trio(f"the {key}th bridge fell ")) for key in range(PARALLEL_GROUPS_MIN)
    ]
    cut_short = shared.summarize_each(
        groups(PARALLEL_GROUPS_MIN), expected=PARALLEL_GROUPS_MIN
    )
    next(cut_short)

    outcomes = dict(shared.summarize_each(others, expected=PARALLEL_GROUPS_MIN))

    assert texts(outcomes) == {
        key: shared.summarize(memories).text for key, memories in others
    }


def test_in_company_the_work_is_left_to_the_helping_processes() -> None:
    alone: list[DigestTask] = []

    class Noting(ParallelSummarizer):
        def digest_here(self, task: DigestTask) -> Digest | Exception:
            alone.append(task)
            return super().digest_here(task)

    many = groups(PARALLEL_GROUPS_MIN * 2)
    in_company = Noting(ratio=RATIO, zone=UTC_ZONE, is_serving=lambda: True)
    by_itself = Noting(ratio=RATIO, zone=UTC_ZONE)

    list(by_itself.summarize_each(many, expected=len(many)))
    shared_out = len(alone)
    by_itself.release_workers()
    list(in_company.summarize_each(many, expected=len(many)))
    in_company.release_workers()

    assert len(alone) - shared_out < shared_out


def test_in_company_one_process_helps_and_more_once_it_has_gone() -> None:
    company = [True]
    before = child_pids()
    summarizer = ParallelSummarizer(
        ratio=RATIO, zone=UTC_ZONE, is_serving=lambda: company[0]
    )

    list(
        summarizer.summarize_each(
            groups(PARALLEL_GROUPS_MIN), expected=PARALLEL_GROUPS_MIN
        )
    )
    in_company = child_pids() - before
    company[0] = False
    list(
        summarizer.summarize_each(
            groups(PARALLEL_GROUPS_MIN), expected=PARALLEL_GROUPS_MIN
        )
    )
    alone = child_pids() - before
    summarizer.release_workers()

    assert len(in_company) == 1
    assert len(alone) == WORKERS_MAX


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_no_group_is_lost_when_the_helping_processes_are_killed_or_hang(
    shared: ParallelSummarizer, number: signal.Signals
) -> None:
    before = child_pids()

    def with_a_signal() -> Iterator[tuple[int, Sequence[MemoryRecord]]]:
        for key, memories in groups(PARALLEL_GROUPS_MIN * 2):
            if key == PARALLEL_GROUPS_MIN:
                for pid in child_pids() - before:
                    os.kill(pid, number)
            yield key, memories

    outcomes = dict(
        shared.summarize_each(with_a_signal(), expected=PARALLEL_GROUPS_MIN * 2)
    )

    assert texts(outcomes).keys() == set(range(PARALLEL_GROUPS_MIN * 2))


def test_a_group_that_fails_there_fails_alone(shared: ParallelSummarizer) -> None:
    many = groups(PARALLEL_GROUPS_MIN)
    blank = [(len(many), [*trio("x")][:0])]

    outcomes = dict(shared.summarize_each([*blank, *many], expected=len(many) + 1))

    assert isinstance(outcomes[len(many)], Exception)
    assert texts(outcomes).keys() == set(range(len(many)))
