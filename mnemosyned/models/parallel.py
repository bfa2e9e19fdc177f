"""Extractive summaries made in parallel by worker processes during long cycles."""

from __future__ import annotations

import math
import os
import queue
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import TypeAlias, TypeVar
from zoneinfo import ZoneInfo

from mnemosyned.errors import SummarizerFailed
from mnemosyned.logs import logger
from mnemosyned.memory.engine_ports import Digest, Summary
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.models.parallel_worker import DIGEST_ANSWERS, DigestTask
from mnemosyned.models.workers import WorkerProcess
from mnemosyned.summary.extract import ExtractiveSummarizer

PARALLEL_GROUPS_MIN = 60
"""Number of groups from which workers start; starting one takes a tenth of a second."""
WORKERS_MAX = min(2, max(1, (os.cpu_count() or 1) - 1))
"""Maximum number of workers. Requests wait while this process summarizes, as Python runs one thread
at a time: with workers, p95 of recall during a cycle halves. Two processors get one worker, as
another costs more to start than it saves; more than two would take the machine from its user.
While requests are in flight one works, as a second would take the processor from them."""
IN_FLIGHT = 16
"""Groups in flight per worker: enough to last through a commit, and few enough to wait for when the
cycle ends."""
WORKER_WAIT_S = 0.3
"""Time to wait for a busy worker while requests are in flight. On a busy machine, which starves the
workers, the cycle then continues by itself."""
WORKER_TIMEOUT_S = 60.0

K = TypeVar("K")
_InFlight: TypeAlias = dict[int, tuple[K, DigestTask]]
"""Groups in flight by number, each with its caller's key."""

log = logger()


class ParallelSummarizer(ExtractiveSummarizer):
    """Extractive summarizer that starts worker processes for long cycles.

    Workers start when a cycle is long, end with it, and run at low priority. If they fail, this
    process continues alone and repeats their groups in flight.
    """

    def __init__(
        self,
        *,
        ratio: float,
        zone: ZoneInfo,
        is_serving: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__(ratio=ratio, zone=zone)
        self._arguments = str(ratio), zone.key
        self._is_serving = is_serving
        """True while requests are in flight; else this process takes its share of the work."""
        self._workers: list[_DigestWorker] = []
        self._numbers = count()

    def summarize_each(
        self, groups: Iterable[tuple[K, Sequence[MemoryRecord]]], *, expected: int
    ) -> Iterator[tuple[K, Summary | Exception]]:
        """Yield the summary or error of each group with its key, in the order of completion."""
        for key, outcome in self._digest_groups(groups, expected=expected, exact=False):
            yield key, outcome.summary if isinstance(outcome, Digest) else outcome

    def digest_each(
        self, groups: Iterable[tuple[K, Sequence[MemoryRecord]]], *, expected: int
    ) -> Iterator[tuple[K, Digest | Exception]]:
        """Yield the digest or error of each group with its key: a summary and exact values."""
        return self._digest_groups(groups, expected=expected, exact=True)

    def _digest_groups(
        self,
        groups: Iterable[tuple[K, Sequence[MemoryRecord]]],
        *,
        expected: int,
        exact: bool,
    ) -> Iterator[tuple[K, Digest | Exception]]:
        """Yield the digest or error of each group with its key; `exact` adds exact values.

        `expected` is the number of groups, which decides whether workers are started.
        """
        if expected < PARALLEL_GROUPS_MIN and not self._workers:
            for key, memories in groups:
                yield key, self.digest_here(memories, exact=exact)
            return
        self._replace_dead_workers()
        in_flight: _InFlight[K] = {}
        for key, memories in groups:
            number = next(self._numbers)
            task = DigestTask(list(memories), exact)
            worker = self._choose_worker()
            if len(worker.in_flight) < IN_FLIGHT and worker.send_group(number, task):
                in_flight[number] = key, task
            else:
                yield key, self.digest_here(memories, exact=exact)
            yield from self._collect_digests(in_flight, keep=IN_FLIGHT - 1)
        while in_flight:
            yield from self._collect_digests(in_flight, keep=0)
            if in_flight:  # the last, whose turn would come last; its answer is ignored
                key, task = in_flight.popitem()[1]
                yield key, self.digest_here(task.memories, exact=exact)

    def _collect_digests(
        self, in_flight: _InFlight[K], *, keep: int
    ) -> Iterator[tuple[K, Digest | Exception]]:
        """Yield the digests that the workers have finished.

        While requests of clients are in flight, wait until each worker has at most `keep` groups.
        """
        for worker in self._workers:
            yield from self._collect_from_worker(worker, in_flight, keep=keep)

    def digest_here(
        self, memories: Sequence[MemoryRecord], *, exact: bool
    ) -> Digest | Exception:
        """Return a group's digest made in this process, or the error; `exact` adds exact values."""
        try:
            if exact:
                return self.digest(memories)
            return Digest(summary=self.summarize(memories), details=())
        except Exception as error:  # noqa: BLE001 the caller logs it as that group's failure
            return error

    def release_workers(self) -> None:
        """End the worker processes."""
        while self._workers:
            self._end_worker(self._workers[-1])

    def close(self) -> None:
        self.release_workers()

    def _replace_dead_workers(self) -> list[_DigestWorker]:
        """Return the running workers without dead ones; start a worker if none is left."""
        for gone in [worker for worker in self._workers if worker.gone]:
            self._end_worker(gone)
        if not self._workers:
            self._workers.append(_DigestWorker(*self._arguments))
        return self._workers

    def _end_worker(self, worker: _DigestWorker) -> None:
        """End a worker and forget it."""
        self._workers.remove(worker)
        worker.end("closed")
        worker.join()

    def _choose_worker(self) -> _DigestWorker:
        """Return the first worker while requests are in flight, else the least busy one."""
        workers = self._workers
        if self._is_serving():
            return min(workers, key=lambda worker: worker.gone)
        while len(workers) < WORKERS_MAX:
            workers.append(_DigestWorker(*self._arguments))
        return min(workers, key=lambda worker: (worker.gone, len(worker.in_flight)))

    def _collect_from_worker(
        self, worker: _DigestWorker, in_flight: _InFlight[K], *, keep: int
    ) -> Iterator[tuple[K, Digest | Exception]]:
        """Yield the digests that a worker has finished; make them here if the worker is gone."""
        ends = time.monotonic() + WORKER_WAIT_S
        while worker.in_flight:
            wait = len(worker.in_flight) > keep and self._is_serving()
            answer = worker.take_answer(
                wait_s=max(0.0, ends - time.monotonic()) if wait else 0
            )
            if not answer and not worker.gone:
                return
            group = in_flight.pop(worker.in_flight.popleft(), None)
            if group:  # else it was taken back
                key, task = group
                if isinstance(answer, Digest):
                    yield key, answer
                elif answer:
                    yield key, SummarizerFailed(f"{self.name} failed with {answer}")
                else:
                    yield key, self.digest_here(task.memories, exact=task.exact)


class _DigestWorker(WorkerProcess[Digest | str]):
    """Worker process that digests groups in the order given, and ends if it is silent for too long."""

    def __init__(self, *arguments: str) -> None:
        self.in_flight: deque[int] = deque()
        """Numbers of the groups in flight, oldest first."""
        self.gone = False
        super().__init__(
            "mnemosyned.models.parallel_worker", *arguments, replies=DIGEST_ANSWERS
        )

    def send_group(self, number: int, task: DigestTask) -> bool:
        """Send a group with its number to the process; return False if that fails."""
        try:
            if not self.gone and not self.send(task):
                self._give_up()
        except OverflowError:  # a caller's own number, which JSON carries however large
            return False
        if self.gone:
            return False
        if not self.in_flight:
            self.limit(WORKER_TIMEOUT_S, "silent")
        self.in_flight.append(number)
        return True

    def take_answer(self, *, wait_s: float) -> Digest | str | None:
        """Return the answer about the oldest group in flight, or None if it is not there in time."""
        if self.gone:
            return None
        try:
            answer = self.take_reply(wait_s)
        except queue.Empty:
            return None
        if answer is None:
            self._give_up()
        elif len(self.in_flight) > 1:
            self.limit(WORKER_TIMEOUT_S, "silent")
        else:
            self.limit(math.inf, "")
        return answer

    def _give_up(self) -> None:
        """Mark the worker as gone, and kill its process."""
        self.gone = True
        self.end("lost")
        log.warning("worker_lost", pid=self.pid)
