"""The one summarizer in force, lent to cycles, compactions and repairs in turn."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from queue import Empty, SimpleQueue

from mnemosyned.domain.errors import SleepInProgress, SummarizerFailed
from mnemosyned.domain.memory import MemoryRecord
from mnemosyned.domain.ports.models import Summarizer, Summary
from mnemosyned.domain.statuses import SummarizerState, SummarizerStatus

A_CYCLE = "a sleep cycle"
A_RETELLING = "the summary of a conversation"


class SummarizerLease:
    """Lends the summarizer to one borrower at a time; safe from any thread.

    A summarizer that is replaced while it is lent is closed when it is returned.
    """

    def __init__(self, summarizer: Summarizer) -> None:
        self._current = summarizer
        self._lent = summarizer
        self._lock = threading.Lock()
        self._interrupted = threading.Event()
        self._purpose = A_CYCLE

    @property
    def current(self) -> Summarizer:
        """The summarizer in force."""
        return self._current

    @property
    def rule_based(self) -> Summarizer:
        """The summarizer for callers who cannot wait: it asks no model and needs no lease."""
        return self._current.rule_based()

    @property
    def has_model(self) -> bool:
        """Whether a model is configured."""
        return self.status().state is not SummarizerState.RULES

    @property
    def lent(self) -> bool:
        """Whether somebody has the summarizer."""
        return self._lock.locked()

    @property
    def in_cycle(self) -> bool:
        """Whether a cycle has the summarizer."""
        return self.lent and self._purpose == A_CYCLE

    @property
    def interrupted(self) -> bool:
        """Whether cycles are to end after their present group."""
        return self._interrupted.is_set()

    def status(self) -> SummarizerStatus:
        """Return who writes the next summary, and the counts since the start."""
        return self._current.status()

    @contextmanager
    def exclusive(
        self, *, wait_s: float = 0.0, purpose: str = A_CYCLE
    ) -> Iterator[Summarizer]:
        """Borrow the summarizer while the block runs, after waiting `wait_s` at most.

        `purpose` is what others are told meanwhile. Raises `SleepInProgress`.
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
            self._return(summarizer)

    def summarize(
        self, memories: Sequence[MemoryRecord], *, time_limit_s: float
    ) -> Summary:
        """Summarize for a caller who waits this long at most.

        Raises `SleepInProgress` while the summarizer is lent, and `SummarizerFailed` when the
        time is up; a model that is still writing then ends by its own limits.
        """
        if not self._lock.acquire(blocking=False):
            raise SleepInProgress(
                f"{self._purpose} has the model; ask again when it has finished"
            )
        self._purpose = A_RETELLING
        summarizer = self._lent = self._current
        answers: SimpleQueue[Summary | Exception] = SimpleQueue()

        def work() -> None:
            try:
                answers.put(summarizer.outcome(memories))
            finally:
                self._return(summarizer)

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
        """Put another summarizer in force; a running cycle ends with the one it has."""
        former, self._current = self._current, summarizer
        if self._lock.acquire(blocking=False):
            self._lock.release()
            former.close()

    def interrupt(self) -> None:
        """End the running cycle after its present group, and refuse all later ones but the last.

        That group does not wait for a model, and no later group asks one.
        """
        self._interrupted.set()
        self._current.interrupt()
        if self._lent is not self._current:
            self._lent.interrupt()

    def wait_idle(self, timeout_s: float) -> None:
        """Wait until the summarizer is returned, `timeout_s` at most."""
        if self._lock.acquire(timeout=timeout_s):
            self._lock.release()

    def close(self) -> None:
        """End the processes of the summarizer in force."""
        self._current.close()

    def _return(self, summarizer: Summarizer) -> None:
        self._lock.release()
        if summarizer is not self._current:
            summarizer.close()
