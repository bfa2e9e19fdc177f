"""Extractive summaries made in parallel by worker processes during long cycles."""

from __future__ import annotations

import os
import queue
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import TypeAlias, TypeVar

from mnemosyned.errors import SummarizerFailed
from mnemosyned.logs import logger
from mnemosyned.memory.engine_ports import Digest, Summary
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.models.parallel_worker import DIGEST_ANSWERS, DigestTask
from mnemosyned.models.workers import WorkerProcess
from mnemosyned.summary.extract import ExtractiveSummarizer
from mnemosyned.verbs.times import local_zone

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
        is_serving: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__(ratio=ratio, zone=local_zone())
        self._is_serving = is_serving
        """True while requests are in flight; else this process takes its share of the work."""
        self._workers: list[_DigestWorker] = []
        self._numbers = count()

    def summarize_each(
        self, groups: Iterable[tuple[K, Sequence[MemoryRecord]]], *, expected: int
    ) -> Iterator[tuple[K, Summary | Exception]]:
        """Yield the key of each group with its summary or error; worker processes share the groups."""
        for key, outcome in self._digest_groups(groups, expected=expected, exact=False):
            yield key, outcome.summary if isinstance(outcome, Digest) else outcome

    def digest_each(
        self, groups: Iterable[tuple[K, Sequence[MemoryRecord]]], *, expected: int
    ) -> Iterator[tuple[K, Digest | Exception]]:
        """Yield the key of each group with its digest or error; worker processes share the groups."""
        return self._digest_groups(groups, expected=expected, exact=True)

    def _digest_groups(
        self,
        groups: Iterable[tuple[K, Sequence[MemoryRecord]]],
        *,
        expected: int,
        exact: bool,
    ) -> Iterator[tuple[K, Digest | Exception]]:
        """Yield keys of about `expected` groups with digests or errors; exact values only with `exact`."""
        self._zone = local_zone()
        if expected < PARALLEL_GROUPS_MIN and not self._workers:
            for key, memories in groups:
                yield key, self.digest_here(DigestTask(list(memories), exact))
            return
        for gone in [worker for worker in self._workers if worker.gone]:
            self._end_worker(gone)
        if not self._workers:
            self._workers.append(_DigestWorker(str(self._ratio)))
        in_flight: _InFlight[K] = {}
        for key, memories in groups:
            number = next(self._numbers)
            task = DigestTask(list(memories), exact)
            worker = self._choose_worker()
            if len(worker.in_flight) < IN_FLIGHT and worker.send_group(number, task):
                in_flight[number] = key, task
            else:
                yield key, self.digest_here(task)
            for each in self._workers:
                yield from self._collect_from_worker(
                    each, in_flight, keep=IN_FLIGHT - 1
                )
        while in_flight:
            for each in self._workers:
                yield from self._collect_from_worker(each, in_flight, keep=0)
            if in_flight:  # the last, whose turn would come last; its answer is ignored
                key, task = in_flight.popitem()[1]
                yield key, self.digest_here(task)

    def digest_here(self, task: DigestTask) -> Digest | Exception:
        """Make the digest of a group in this process; return the digest or the error."""
        try:
            return task.digest_by(self)
        except Exception as error:  # noqa: BLE001 the caller logs it as that group's failure
            return error

    def close(self) -> None:
        """Kill all worker processes."""
        while self._workers:
            self._end_worker(self._workers[-1])

    release_workers = close

    def _end_worker(self, worker: _DigestWorker) -> None:
        """Kill a worker process, wait for its end, and remove it from the list."""
        self._workers.remove(worker)
        worker.end("closed")
        worker.join()

    def _choose_worker(self) -> _DigestWorker:
        """Return the first worker while requests are served; otherwise start all, and return the least busy."""
        workers = self._workers
        if self._is_serving():
            return min(workers, key=lambda worker: worker.gone)
        while len(workers) < WORKERS_MAX:
            workers.append(_DigestWorker(str(self._ratio)))
        return min(workers, key=lambda worker: (worker.gone, len(worker.in_flight)))

    def _collect_from_worker(
        self, worker: _DigestWorker, in_flight: _InFlight[K], *, keep: int
    ) -> Iterator[tuple[K, Digest | Exception]]:
        """Yield the keys and digests of groups that a worker finished; remove these from `in_flight`.

        Groups of a worker that has ended are digested in this process. While clients' requests are
        served, wait up to `WORKER_WAIT_S` until at most `keep` groups are left to the worker.
        """
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
                    yield key, self.digest_here(task)


class _DigestWorker(WorkerProcess[Digest | str]):
    """Worker process that digests groups in the order given, and ends if it is silent for too long."""

    def __init__(self, *arguments: str) -> None:
        self.in_flight: deque[int] = deque()
        """Numbers of the groups in flight, oldest first."""
        self.gone = False
        self._heard_at = time.monotonic()
        """When the process was last known to have answered, or to have had nothing to do."""
        super().__init__(
            "mnemosyned.models.parallel_worker", *arguments, replies=DIGEST_ANSWERS
        )

    def send_group(self, number: int, task: DigestTask) -> bool:
        """Send a group to the process, to be in flight as `number`; return False if it cannot be sent."""
        try:
            if not self.gone and not self.send(task):
                self._give_up()
        except OverflowError:  # a caller's own number, which JSON carries however large
            return False
        if self.gone:
            return False
        if not self.in_flight:
            self._heard_at = time.monotonic()
        self.in_flight.append(number)
        return True

    def take_answer(self, *, wait_s: float) -> Digest | str | None:
        """Return the oldest group's digest or an error's name; None after `wait_s` or from a lost worker."""
        if self.gone:
            return None
        try:
            answer = self.take_reply(wait_s)
        except queue.Empty:
            if time.monotonic() - self._heard_at > WORKER_TIMEOUT_S:
                self._give_up()
            return None
        if answer is None:
            self._give_up()
        self._heard_at = time.monotonic()
        return answer

    def _give_up(self) -> None:
        """Mark the worker as gone, kill its process and log the loss."""
        self.gone = True
        self.end("lost")
        log.warning("worker_lost", pid=self.pid)
