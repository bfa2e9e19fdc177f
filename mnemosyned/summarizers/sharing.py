"""Rule-made summaries by helping processes, while there is much to do and others want answers."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Generic, TypeVar
from zoneinfo import ZoneInfo

import msgspec

from mnemosyned.domain.errors import SummarizerFailed
from mnemosyned.domain.memory import Memory
from mnemosyned.domain.ports import Summary
from mnemosyned.logs import logger
from mnemosyned.summarizers.aaak import AaakSummarizer
from mnemosyned.summarizers.worker import Answer, read_frame, write_frame

SHARED_MIN = 60
"""Fewer groups are done before a process has started, which takes a tenth of a second."""
HELPERS = min(2, os.cpu_count() or 1)
"""What this process summarises itself, others wait for: Python runs one thread at a time, so with
helpers p95 of recall during a cycle halves. More than two would take the machine from its owner."""
IN_FLIGHT = 16
"""Groups handed to a helper and not yet back: enough to last through a commit, and few enough to
wait for when the cycle is told to end."""
PIPE_BYTES = 1 << 20
"""Room for what is in flight, so that handing over does not wait; the usual 64 KiB hold ten."""
ANSWER_S = 60.0

K = TypeVar("K")
log = logger()


class SharingSummarizer(AaakSummarizer):
    """Rule-made summaries, with helping processes that write those of a long cycle.

    They start with the cycle and end with it, and step back behind other programs. Should they
    fail, this process goes on alone and does again what they had in hand.
    """

    def __init__(self, *, ratio: float, zone: ZoneInfo) -> None:
        super().__init__(ratio=ratio, zone=zone)
        module = "mnemosyned.summarizers.worker"
        self._command = [sys.executable, "-m", module, str(ratio), zone.key]

    def summarize_each(
        self, groups: Iterable[tuple[K, Sequence[Memory]]], *, expected: int
    ) -> Iterator[tuple[K, Summary | Exception]]:
        """Summaries as they are finished, each with its group's key."""
        if expected < SHARED_MIN:
            yield from super().summarize_each(groups, expected=expected)
            return
        with ExitStack() as stack:
            helpers: list[_Helper[K]] = [
                stack.enter_context(_helper(self._command)) for _ in range(HELPERS)
            ]
            for key, memories in groups:
                helper = min(helpers, key=lambda one: (one.gone, len(one.handed)))
                if not helper.take(key, memories):
                    yield key, self.outcome(memories)
                for one in helpers:
                    yield from self._finished(one, keep=IN_FLIGHT - 1)
            for one in helpers:
                yield from self._finished(one, keep=0)

    def _finished(
        self, helper: _Helper[K], *, keep: int
    ) -> Iterator[tuple[K, Summary | Exception]]:
        """What a helper has answered, waiting until it has at most so many in hand."""
        while helper.handed:
            answer = helper.answer(wait_s=ANSWER_S if len(helper.handed) > keep else 0)
            if answer:
                yield helper.handed.popleft()[0], self._read(answer)
            elif helper.gone:
                key, memories = helper.handed.popleft()
                yield key, self.outcome(memories)
            else:
                return

    def _read(self, answer: Answer) -> Summary | Exception:
        if answer.error:
            return SummarizerFailed(f"{self.name} failed with {answer.error}")
        return Summary(text=answer.text, summarizer=self.name)


class _Helper(Generic[K]):
    """A process that takes groups and answers them in order, until it is gone."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.handed: deque[tuple[K, Sequence[Memory]]] = deque()
        """What it has in hand, oldest first."""
        self.gone = False
        self._process = process
        self._answers: queue.SimpleQueue[Answer | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._collect, name="summaries", daemon=True)
        self._reader.start()

    def take(self, key: K, memories: Sequence[Memory]) -> bool:
        """Hand a group over; False where the process is gone."""
        if self.gone or self._process.stdin is None:
            return False
        try:
            write_frame(self._process.stdin, msgspec.msgpack.encode(memories))
        except OSError:
            self._lost()
        else:
            self.handed.append((key, memories))
        return not self.gone

    def answer(self, *, wait_s: float) -> Answer | None:
        """The answer to the oldest group in hand; None where there is none yet, or ever."""
        if self.gone:
            return None
        try:
            answer = self._answers.get(timeout=wait_s) if wait_s else self._answers.get_nowait()
        except queue.Empty:
            if wait_s:
                self._lost()
            return None
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
                with suppress(BrokenPipeError):  # what was not yet read went down with it
                    pipe.close()

    def _collect(self) -> None:
        while self._process.stdout and (frame := read_frame(self._process.stdout)) is not None:
            self._answers.put(msgspec.msgpack.decode(frame, type=Answer))
        self._answers.put(None)

    def _lost(self) -> None:
        self.gone = True
        self._process.kill()
        log.warning("helper_lost", pid=self._process.pid)


@contextmanager
def _helper(command: list[str]) -> Iterator[_Helper[K]]:
    # What it might print in a traceback could be a memory's text: it goes nowhere.
    process = subprocess.Popen(  # noqa: S603 our own module, no words of a user
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        pipesize=PIPE_BYTES,
    )
    helper: _Helper[K] = _Helper(process)
    try:
        yield helper
    finally:
        helper.close()
