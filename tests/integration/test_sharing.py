"""The processes that help in a long cycle, and what is known of one that has ended: killed for real."""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import msgspec
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
from mnemosyned.models.workers import WorkerProcess
from mnemosyned.summary.extract import ExtractiveSummarizer
from mnemosyned.verbs.times import local_zone

RATIO = 1 / 3


Groups = list[tuple[int, Sequence[MemoryRecord]]]


def groups(count: int = PARALLEL_GROUPS_MIN) -> Groups:
    return [(at, trio(f"the {at}th tunnel opened on time ")) for at in range(count)]


@pytest.fixture
def shared() -> Iterator[ParallelSummarizer]:
    summarizer = ParallelSummarizer(ratio=RATIO)
    yield summarizer
    summarizer.close()


@pytest.fixture
def alone() -> ExtractiveSummarizer:
    return ExtractiveSummarizer(ratio=RATIO, zone=local_zone())


@pytest.fixture
def helpers() -> Callable[[], set[int]]:
    """The processes that were started since."""
    before = child_pids()
    return lambda: child_pids() - before


def summaries(
    summarizer: ParallelSummarizer, many: Groups
) -> dict[int, Summary | Exception]:
    return dict(summarizer.summarize_each(many, expected=len(many)))


def texts(outcomes: dict[int, Summary | Exception]) -> dict[int, str]:
    return {key: one.text for key, one in outcomes.items() if isinstance(one, Summary)}


def test_helping_processes_write_what_one_would(
    shared: ParallelSummarizer, alone: ExtractiveSummarizer
) -> None:
    many = groups(PARALLEL_GROUPS_MIN * 2)

    assert texts(summaries(shared, many)) == {
        key: alone.summarize(memories).text for key, memories in many
    }


def test_helping_processes_find_exact_values_and_hide_secrets_as_one_would(
    shared: ParallelSummarizer, alone: ExtractiveSummarizer
) -> None:
    many: Groups = []
    for at in range(80):
        memories = trio(f"the password: Zq7xK9vB2mT{at} opens port 80{at} ")
        if at % 7 == 0:  # a number too large for a frame stops no cycle
            large = {"size": -(10**25)}
            memories = [replace(each, metadata=large) for each in memories]
        many.append((at, memories))

    outcomes = dict(shared.digest_each(many, expected=len(many)))

    assert outcomes == {key: alone.digest(memories) for key, memories in many}
    for one in outcomes.values():
        assert isinstance(one, Digest)
        assert any(detail.sensitive for detail in one.details)
        assert "Zq7xK9vB2mT" not in one.summary.text


def test_the_helping_processes_stay_for_the_next_stage_and_end_with_the_cycle(
    shared: ParallelSummarizer, helpers: Callable[[], set[int]]
) -> None:
    few = groups(3)
    before = [helpers() for _ in shared.summarize_each(few, expected=3)]

    summaries(shared, groups())
    first = helpers()
    after = [helpers() for _ in shared.summarize_each(few, expected=3)]
    shared.release_workers()

    assert before == [set()] * 3, "few groups start no process"
    assert len(first) == WORKERS_MAX
    assert after == [first] * 3
    assert helpers() == set()


def test_what_a_stage_left_unread_is_not_taken_for_the_next_ones(
    shared: ParallelSummarizer,
) -> None:
    others: Groups = [
        (key, trio(f"the {key}th bridge fell ")) for key in range(PARALLEL_GROUPS_MIN)
    ]
    next(shared.summarize_each(groups(), expected=PARALLEL_GROUPS_MIN))

    assert texts(summaries(shared, others)) == {
        key: shared.summarize(memories).text for key, memories in others
    }


@pytest.mark.thorough
def test_in_company_the_work_is_left_to_the_helping_processes() -> None:
    own: list[DigestTask] = []

    class Noting(ParallelSummarizer):
        def digest_here(self, task: DigestTask) -> Digest | Exception:
            own.append(task)
            return super().digest_here(task)

    many = groups(PARALLEL_GROUPS_MIN * 2)
    in_company = Noting(ratio=RATIO, is_serving=lambda: True)
    by_itself = Noting(ratio=RATIO)

    summaries(by_itself, many)
    shared_out = len(own)
    by_itself.release_workers()
    summaries(in_company, many)
    in_company.release_workers()

    assert len(own) - shared_out < shared_out


@pytest.mark.thorough
def test_in_company_one_process_helps_and_more_once_it_has_gone(
    helpers: Callable[[], set[int]],
) -> None:
    company = [True]
    summarizer = ParallelSummarizer(ratio=RATIO, is_serving=lambda: company[0])

    summaries(summarizer, groups())
    in_company = helpers()
    company[0] = False
    summaries(summarizer, groups())
    alone = helpers()
    summarizer.release_workers()

    assert (len(in_company), len(alone)) == (1, WORKERS_MAX)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_no_group_is_lost_when_the_helping_processes_are_killed_or_hang(
    shared: ParallelSummarizer, helpers: Callable[[], set[int]], number: signal.Signals
) -> None:
    def with_a_signal() -> Iterator[tuple[int, Sequence[MemoryRecord]]]:
        for key, memories in groups(PARALLEL_GROUPS_MIN * 2):
            if key == PARALLEL_GROUPS_MIN:
                for pid in helpers():
                    os.kill(pid, number)
            yield key, memories

    outcomes = dict(
        shared.summarize_each(with_a_signal(), expected=PARALLEL_GROUPS_MIN * 2)
    )

    assert texts(outcomes).keys() == set(range(PARALLEL_GROUPS_MIN * 2))


def test_a_group_that_fails_there_fails_alone(shared: ParallelSummarizer) -> None:
    many = groups()

    outcomes = summaries(shared, [(len(many), []), *many])

    assert isinstance(outcomes[len(many)], Exception)
    assert texts(outcomes).keys() == set(range(len(many)))


TIMES = 40
"""The process was once taken for a running one in a third of them."""


@pytest.mark.thorough
def test_a_process_that_is_gone_is_never_taken_for_a_running_one() -> None:
    for _ in range(TIMES):
        worker = WorkerProcess[None](
            "http.server", "0", replies=msgspec.msgpack.Decoder(type(None))
        )
        os.kill(worker.pid, signal.SIGKILL)
        while worker.pid in child_pids():
            pass

        assert not worker.limit(5, "idle")
        worker.join()
