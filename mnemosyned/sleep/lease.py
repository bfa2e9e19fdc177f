"""Resources that cycles share with requests.

The one summarizer in force, lent in turn, and background work that yields while requests are in
flight.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from queue import Empty, SimpleQueue

from mnemosyned.errors import SleepInProgress, SummarizerFailed
from mnemosyned.memory.engine_ports import Summarizer, Summary
from mnemosyned.memory.values import MemoryRecord, SummarizerState, SummarizerStatus

A_CYCLE = "a sleep cycle"
A_RETELLING = "the summary of a conversation"


class SummarizerLease:
    """Lease of the one summarizer, to one borrower at a time; safe from any thread.

    A summarizer that is replaced while it is lent is closed when it is returned.
    """

    def __init__(self, summarizer: Summarizer) -> None:
        """Lend `summarizer` until it is replaced."""
        self._current = summarizer
        self._lent = summarizer
        self._lock = threading.Lock()
        self._interrupted = threading.Event()
        self._purpose = A_CYCLE

    @property
    def current(self) -> Summarizer:
        """The summarizer for the next borrower."""
        return self._current

    @property
    def rule_based(self) -> Summarizer:
        """The extractive summarizer, for callers who cannot wait: it needs no lease."""
        return self._current.rule_based()

    @property
    def has_model(self) -> bool:
        """Whether a language model is configured."""
        return self.status().state is not SummarizerState.RULES

    @property
    def is_lent(self) -> bool:
        """Whether a cycle or a caller has borrowed the summarizer."""
        return self._lock.locked()

    @property
    def is_in_cycle(self) -> bool:
        """Whether a cycle has borrowed the summarizer."""
        return self.is_lent and self._purpose == A_CYCLE

    @property
    def is_interrupted(self) -> bool:
        """Whether cycles must end after the group of memories that they work on."""
        return self._interrupted.is_set()

    def status(self) -> SummarizerStatus:
        """Return the name and state of the present summarizer, and its counts since the start."""
        return self._current.status()

    @contextmanager
    def exclusive(
        self, *, wait_s: float = 0.0, purpose: str = A_CYCLE
    ) -> Iterator[Summarizer]:
        """Borrow the summarizer while the block runs, after waiting up to `wait_s` for its return.

        `purpose` says what for, in the `SleepInProgress` error of others who ask in the meantime. Raises
        `SleepInProgress` if it is still lent after the wait.
        """
        if not self._lock.acquire(timeout=wait_s):
            raise SleepInProgress(
                f"{self._purpose} is running; ask again when it has finished"
            )
        self._purpose = purpose
        summarizer = self._lent = self._current
        try:
            yield summarizer
        finally:
            self._return_summarizer(summarizer)

    def summarize(
        self, memories: Sequence[MemoryRecord], *, time_limit_s: float
    ) -> Summary:
        """Summarize memories for a caller who waits up to `time_limit_s`.

        Raises `SleepInProgress` while the summarizer is lent, and `SummarizerFailed` when the time
        is up; a model that is still writing then ends by its own limits.
        """
        if not self._lock.acquire(blocking=False):
            raise SleepInProgress(
                f"{self._purpose} has the model; ask again when it has finished"
            )
        self._purpose = A_RETELLING
        summarizer = self._lent = self._current
        answers: SimpleQueue[Summary | Exception] = SimpleQueue()

        def work() -> None:
            """Summarize the memories, hand over summary or error, and return the summarizer."""
            try:
                answers.put(summarizer.summarize_or_error(memories))
            finally:
                self._return_summarizer(summarizer)

        threading.Thread(target=work, name="retelling", daemon=True).start()
        try:
            outcome = answers.get(timeout=time_limit_s)
        except Empty:
            raise SummarizerFailed(
                f"{summarizer.name} took longer than its limit of {time_limit_s:g} s"
            ) from None
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def replace(self, summarizer: Summarizer) -> None:
        """Lend another summarizer from now on; a running cycle keeps the former one."""
        former, self._current = self._current, summarizer
        if self._lock.acquire(blocking=False):
            self._lock.release()
            former.close()

    def interrupt(self) -> None:
        """End the running cycle after the group of memories it works on, without its model.

        That group is finished by the extractive summarizer at once. Later cycles are refused,
        except the final one of a program that ends; it asks no model either.
        """
        self._interrupted.set()
        self._current.interrupt()
        if self._lent is not self._current:
            self._lent.interrupt()

    def wait_idle(self, timeout_s: float) -> None:
        """Wait until nobody has borrowed the summarizer, up to `timeout_s`."""
        if self._lock.acquire(timeout=timeout_s):
            self._lock.release()

    def close(self) -> None:
        """End the processes of the present summarizer."""
        self._current.close()

    def _return_summarizer(self, summarizer: Summarizer) -> None:
        """Return the borrowed summarizer, and close a replaced one."""
        self._lock.release()
        if summarizer is not self._current:
            summarizer.close()


ACTIVE_S = 0.5
"""Seconds after the last answer during which another request is expected."""
YIELD_MAX_S = 0.05
"""The longest that a group waits for requests: a cycle makes progress whatever the traffic."""
POLL_S = 0.001
REST_TIMES = 9
"""While requests come in, a cycle leaves disk, writer and processor alone for this many times as
long as it used them. It then takes ten times as long; p95 of remember, up to three times what it is
without a cycle, comes down to one and a half times."""
REST_MAX_S = 0.05
"""The longest rest: a cycle makes progress however slow the machine is."""
QUIET_WAIT_MAX_S, QUIET_POLL_S = 0.5, 0.05
"""The longest wait of work that is not urgent, such as a batch of vectors of some 20 ms: it takes a
twenty-fifth of a processor under load."""
BUSY_ANSWERS = 20
"""Answers in one to two seconds from which on clients would notice a purge of the file."""


class ForegroundGate:
    """Counter of requests in flight, each a `with` block, to which cycles yield; thread-safe."""

    def __init__(self) -> None:
        """Begin with no request in flight."""
        self._lock = threading.Lock()
        self._in_flight = 0
        self._last = time.monotonic() - ACTIVE_S
        self._second = 0
        self._answers = 0
        """Answers in the second that is counted."""
        self._answers_before = 0
        """Answers in the second before it."""

    def __enter__(self) -> None:
        """Count a request as in flight while the block runs."""
        with self._lock:
            self._in_flight += 1

    def __exit__(self, *_: object) -> None:
        """Count the request as answered."""
        with self._lock:
            self._in_flight -= 1
            self._last = time.monotonic()
            self._begin_second(int(self._last))
            self._answers += 1

    def _begin_second(self, second: int) -> None:
        """Start a new count of answers if `second` differs from the counted second."""
        if second != self._second:
            self._answers_before = self._answers if second == self._second + 1 else 0
            self._answers = 0
            self._second = second

    @property
    def busy(self) -> bool:
        """Whether at least `BUSY_ANSWERS` requests were answered in this and the last second."""
        with self._lock:
            self._begin_second(int(time.monotonic()))
            return self._answers + self._answers_before >= BUSY_ANSWERS

    @property
    def active(self) -> bool:
        """Whether a request is in flight, or ended less than `ACTIVE_S` seconds ago."""
        return self._in_flight > 0 or time.monotonic() - self._last < ACTIVE_S

    @property
    def quiet_s(self) -> float:
        """Seconds since the last request; 0 while a request is in flight."""
        return 0.0 if self._in_flight else time.monotonic() - self._last

    def wait_until_quiet(self, is_busy: Callable[[], bool] | None = None) -> None:
        """Wait up to `QUIET_WAIT_MAX_S` seconds until no request is active and `is_busy` returns False."""
        ends = time.monotonic() + QUIET_WAIT_MAX_S
        while (self.active or (is_busy and is_busy())) and time.monotonic() < ends:
            time.sleep(QUIET_POLL_S)

    def yield_to_requests(self) -> None:
        """Wait until no request is in flight, up to `YIELD_MAX_S` seconds."""
        ends = time.monotonic() + YIELD_MAX_S
        while self._in_flight and time.monotonic() < ends:
            time.sleep(POLL_S)

    def rest_after(self, worked_s: float) -> None:
        """Sleep in proportion to seconds of work, `REST_MAX_S` at most, if requests are active."""
        if self.active:
            time.sleep(min(worked_s * REST_TIMES, REST_MAX_S))


class OwnerGate(ForegroundGate):
    """Counter of one owner's requests; also counts in the gate shared by all owners."""

    def __init__(self, shared: ForegroundGate) -> None:
        """Count requests in the `shared` gate, too."""
        super().__init__()
        self._shared = shared

    def __enter__(self) -> None:
        """Count a request as in flight, in both gates."""
        super().__enter__()
        self._shared.__enter__()

    def __exit__(self, *_: object) -> None:
        """Count the request as answered, in both gates."""
        self._shared.__exit__()
        super().__exit__()

    @property
    def busy(self) -> bool:
        """Whether many requests of all owners are being answered."""
        return self._shared.busy

    @property
    def active(self) -> bool:
        """Whether a request of any owner is in flight, or ended a moment ago."""
        return self._shared.active

    def yield_to_requests(self) -> None:
        """Wait until no request of any owner is in flight, up to `YIELD_MAX_S` seconds."""
        self._shared.yield_to_requests()
