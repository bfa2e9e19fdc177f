"""Rule-made summaries by two processes: a second one beside this one, while there is much to do."""

from __future__ import annotations

import queue
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TypeVar
from zoneinfo import ZoneInfo

import msgspec

from mnemosyned.domain.errors import SummarizerFailed
from mnemosyned.domain.memory import Memory
from mnemosyned.domain.ports import Summary
from mnemosyned.logs import logger
from mnemosyned.summarizers.aaak import AaakSummarizer
from mnemosyned.summarizers.worker import Answer, read_frame, write_frame

SHARED_MIN = 60
"""Fewer groups are done before a second process has started, which takes a tenth of a second."""
IN_FLIGHT = 64
"""Groups handed to the second process and not yet back: enough to last through a commit."""
PIPE_BYTES = 1 << 20
"""Room for what is in flight, so that handing over does not wait; the usual 64 KiB hold ten."""
ANSWER_S = 60.0

K = TypeVar("K")
log = logger()


class SharingSummarizer(AaakSummarizer):
    """Rule-made summaries, with a second process taking part in a long cycle.

    It starts with the cycle and ends with it. Should it fail, this process goes on alone and does
    again what the other had in hand.
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
        with _second(self._command) as second:
            handed: deque[tuple[K, Sequence[Memory]]] = deque()
            for key, memories in groups:
                if len(handed) < IN_FLIGHT and second.take(memories):
                    handed.append((key, memories))
                else:
                    yield key, self.outcome(memories)
                while handed and (answer := second.answer(wait_s=0)):
                    yield handed.popleft()[0], self._read(answer)
            while handed and (answer := second.answer(wait_s=ANSWER_S)):
                yield handed.popleft()[0], self._read(answer)
            for key, memories in handed:
                yield key, self.outcome(memories)

    def _read(self, answer: Answer) -> Summary | Exception:
        if answer.error:
            return SummarizerFailed(f"{self.name} failed with {answer.error}")
        return Summary(text=answer.text, summarizer=self.name)


class _Second:
    """The second process: takes groups and answers them in order, until it is gone."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._answers: queue.SimpleQueue[Answer | None] = queue.SimpleQueue()
        self._gone = False
        self._reader = threading.Thread(target=self._collect, name="summaries", daemon=True)
        self._reader.start()

    def take(self, memories: Sequence[Memory]) -> bool:
        """Hand a group over; False where the process is gone."""
        if self._gone or self._process.stdin is None:
            return False
        try:
            write_frame(self._process.stdin, msgspec.msgpack.encode(memories))
        except OSError:
            self._lost()
        return not self._gone

    def answer(self, *, wait_s: float) -> Answer | None:
        """The answer to the oldest group in hand; None where there is none yet, or ever."""
        if self._gone:
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
        self._gone = True
        self._process.kill()
        log.warning("second_summarizer_lost", pid=self._process.pid)


@contextmanager
def _second(command: list[str]) -> Iterator[_Second]:
    # What it might print in a traceback could be a memory's text: it goes nowhere.
    process = subprocess.Popen(  # noqa: S603 our own module, no words of a user
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        pipesize=PIPE_BYTES,
    )
    second = _Second(process)
    try:
        yield second
    finally:
        second.close()
