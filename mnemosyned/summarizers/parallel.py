"""Rule-made digests, shared with helping processes while there is much to do."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import count
from typing import TypeAlias, TypeVar
from zoneinfo import ZoneInfo

import msgspec

from mnemosyned.domain.errors import SummarizerFailed
from mnemosyned.domain.memory import MemoryRecord
from mnemosyned.domain.ports.models import Digest, Summary
from mnemosyned.logs import logger
from mnemosyned.models.frames import read_frame, write_frame
from mnemosyned.summarizers.extractive import ExtractiveSummarizer
from mnemosyned.summarizers.parallel_worker import ANSWERS, Answer, Task

PARALLEL_GROUPS_MIN = 60
"""Fewer groups are done before a process has started, which takes a tenth of a second."""
WORKERS_MAX = min(2, max(1, (os.cpu_count() or 1) - 1))
"""What this process summarizes itself, others wait for: Python runs one thread at a time, so with
helpers p95 of recall during a cycle halves. Two processors have one of them, as another costs more
to start than it saves there; more than two would take the machine from its owner. In company one
works: a second would have the processor that an answer needs."""
IN_FLIGHT = 16
"""Groups handed to a helper and not yet back: enough to last through a commit, and few enough to
wait for when the cycle is told to end."""
WORKER_WAIT_S = 0.3
"""While somebody wants answers, a group is left to helpers that have no room for so long; on a
busy machine, which starves them, the cycle gets on all the same."""
PIPE_BYTES = 1 << 20
"""Room for what is in flight, so that handing over does not wait; the usual 64 KiB hold ten."""
WORKER_TIMEOUT_S = 60.0

K = TypeVar("K")
_InFlight: TypeAlias = dict[int, tuple[K, Task]]
"""What helpers have in hand, by number, each with its caller's key."""

log = logger()


class ParallelSummarizer(ExtractiveSummarizer):
    """Rule-made summaries, with helping processes that write those of a long cycle.

    They start when a cycle has much to do, end with it, and step back behind other programs.
    Should they fail, this process goes on alone and does again what they had in hand.
    """

    def __init__(
        self,
        *,
        ratio: float,
        zone: ZoneInfo,
        present: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__(ratio=ratio, zone=zone)
        module = "mnemosyned.summarizers.parallel_worker"
        self._command = [sys.executable, "-P", "-m", module, str(ratio), zone.key]
        self._present = present
        """Whether somebody wants answers of this process; else it takes its share of the work."""
        self._helpers: list[_Worker] = []
        self._numbers = count()

    def summarize_each(
        self, groups: Iterable[tuple[K, Sequence[MemoryRecord]]], *, expected: int
    ) -> Iterator[tuple[K, Summary | Exception]]:
        """Summaries as they are finished, each with its group's key."""
        for key, outcome in self._each(groups, expected=expected, exact=False):
            yield key, outcome.summary if isinstance(outcome, Digest) else outcome

    def digest_each(
        self, groups: Iterable[tuple[K, Sequence[MemoryRecord]]], *, expected: int
    ) -> Iterator[tuple[K, Digest | Exception]]:
        """The same, with the exact values, which are half of the work."""
        return self._each(groups, expected=expected, exact=True)

    def _each(
        self,
        groups: Iterable[tuple[K, Sequence[MemoryRecord]]],
        *,
        expected: int,
        exact: bool,
    ) -> Iterator[tuple[K, Digest | Exception]]:
        if expected < PARALLEL_GROUPS_MIN and not self._helpers:
            for key, memories in groups:
                yield key, self.alone(memories, exact=exact)
            return
        helpers = self._started()
        handed: _InFlight[K] = {}
        for key, memories in groups:
            number = next(self._numbers)
            task = Task(list(memories), exact)
            helper = self._chosen()
            if len(helper.handed) < IN_FLIGHT and helper.take(number, task):
                handed[number] = key, task
            else:
                yield key, self.alone(memories, exact=exact)
            for one in helpers:
                yield from self._finished(one, handed, keep=IN_FLIGHT - 1)
        while handed:
            for one in helpers:
                yield from self._finished(one, handed, keep=0)
            if handed:  # the last of them, as its turn would come last; the answer is passed over
                key, task = handed.popitem()[1]
                yield key, self.alone(task.memories, exact=exact)

    def alone(
        self, memories: Sequence[MemoryRecord], *, exact: bool
    ) -> Digest | Exception:
        """The digest as this process makes it, or what went wrong; `exact` with exact values."""
        try:
            if exact:
                return self.digest(memories)
            return Digest(summary=self.summarize(memories), details=())
        except Exception as error:  # noqa: BLE001 the caller logs it as that group's failure
            return error

    def release_workers(self) -> None:
        """End the helping processes."""
        while self._helpers:
            self._helpers.pop().close()

    def close(self) -> None:
        self.release_workers()

    def _started(self) -> list[_Worker]:
        """The helpers, one at least, without those that are gone."""
        for gone in [one for one in self._helpers if one.gone]:
            self._helpers.remove(gone)
            gone.close()
        if not self._helpers:
            self._helpers.append(_Worker(self._command))
        return self._helpers

    def _chosen(self) -> _Worker:
        """In company always the first that is there, else the one with least in hand."""
        helpers = self._helpers
        if self._present():
            return min(helpers, key=lambda one: one.gone)
        while len(helpers) < WORKERS_MAX:
            helpers.append(_Worker(self._command))
        return min(helpers, key=lambda one: (one.gone, len(one.handed)))

    def _finished(
        self, helper: _Worker, handed: _InFlight[K], *, keep: int
    ) -> Iterator[tuple[K, Digest | Exception]]:
        """What a helper has answered; in company waits a while until it has so many in hand."""
        ends = time.monotonic() + WORKER_WAIT_S
        while helper.handed:
            wait = len(helper.handed) > keep and self._present()
            answer = helper.answer(
                wait_s=max(0.0, ends - time.monotonic()) if wait else 0
            )
            if not answer and not helper.gone:
                return
            group = handed.pop(helper.handed.popleft(), None)
            if group:  # else it was taken back
                key, task = group
                yield (
                    key,
                    self._read(answer)
                    if answer
                    else self.alone(task.memories, exact=task.exact),
                )

    def _read(self, answer: Answer) -> Digest | Exception:
        if answer.error:
            return SummarizerFailed(f"{self.name} failed with {answer.error}")
        summary = Summary(text=answer.text, summarizer=self.name)
        return Digest(summary=summary, details=answer.details)


class _Worker:
    """A process that takes groups and answers them in order, until it is gone."""

    def __init__(self, command: list[str]) -> None:
        self.handed: deque[int] = deque()
        """The numbers of what it has in hand, oldest first."""
        self.gone = False
        self._heard = time.monotonic()
        """When it last answered, or was given something to do."""
        # What it might print in a traceback could be a memory's text: it goes nowhere.
        self._process = subprocess.Popen(  # noqa: S603 our own module, no words of a user
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pipesize=PIPE_BYTES,
        )
        self._answers: queue.SimpleQueue[Answer | None] = queue.SimpleQueue()
        self._reader = threading.Thread(
            target=self._collect, name="summaries", daemon=True
        )
        self._reader.start()

    def take(self, number: int, task: Task) -> bool:
        """Hand a group over; False where the process is gone."""
        if self.gone or self._process.stdin is None:
            return False
        try:
            write_frame(self._process.stdin, msgspec.msgpack.encode(task))
        except OSError:
            self._lost()
        else:
            if not self.handed:
                self._heard = time.monotonic()
            self.handed.append(number)
        return not self.gone

    def answer(self, *, wait_s: float) -> Answer | None:
        """The answer to the oldest group in hand; None where there is none yet, or ever."""
        if self.gone:
            return None
        try:
            answer = (
                self._answers.get(timeout=wait_s)
                if wait_s
                else self._answers.get_nowait()
            )
        except queue.Empty:
            if time.monotonic() - self._heard > WORKER_TIMEOUT_S:
                self._lost()
            return None
        self._heard = time.monotonic()
        if answer is None:
            self._lost()
        return answer

    def close(self) -> None:
        """End the process: it holds nothing of its own, and a kill is quicker than a farewell."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                with suppress(
                    BrokenPipeError
                ):  # what was not yet read went down with it
                    pipe.close()

    def _collect(self) -> None:
        while (
            self._process.stdout
            and (frame := read_frame(self._process.stdout)) is not None
        ):
            self._answers.put(ANSWERS.decode(frame))
        self._answers.put(None)

    def _lost(self) -> None:
        self.gone = True
        self._process.kill()
        log.warning("helper_lost", pid=self._process.pid)
