"""Summarizer that asks a model first and falls back to the extractive one, with a circuit breaker."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain
from typing import Protocol, TypeVar

from mnemosyned import errors
from mnemosyned.instants import in_zone
from mnemosyned.logs import logger
from mnemosyned.memory.clock import Clock
from mnemosyned.memory.engine_ports import Summarizer, Summary, TextModel
from mnemosyned.memory.values import MemoryRecord, SummarizerState, SummarizerStatus

COOL_DOWN = timedelta(minutes=1)
COOL_DOWN_MAX = timedelta(hours=1)
REJECTED_IN_A_ROW_MAX = 5
"""Groups in a row without an accepted answer that open the circuit breaker."""
INTERRUPT_S = 2.0
"""Time limit of an interrupt; a call that hangs longer ends with the process."""
STOPPING = "the daemon is stopping, and asks no model any more"
WAITED_FOR = "a caller waits for it, so no model was asked"


K = TypeVar("K")
log = logger()


class CountingSummarizer(Protocol):
    """Summarizer with a model that counts accepted, retried and rejected answers."""

    accepted: int
    retried: int
    rejected: int

    def summarize(self, memories: Sequence[MemoryRecord]) -> Summary:
        """Return the model's summary. Raises `SummarizerFailed` or its subclass `ModelUnavailable`."""


class CircuitBreaker:
    """Circuit breaker that stops calls of a model after failures, each time for twice as long.

    An accepted summary ends the stop.
    """

    def __init__(self, clock: Clock) -> None:
        self.reason = ""
        """Reason of the last failure; empty while the model works."""
        self._clock = clock
        self._opened: datetime | None = None
        self._cool_down = COOL_DOWN
        self._rejected = 0

    @property
    def retry_at(self) -> datetime | None:
        """Time until which the model is not to be asked; None if it may be asked now."""
        if self._opened is None:
            return None
        now, until = self._clock.now(), self._opened + self._cool_down
        # A clock that was set back must not keep a model out for a day.
        return until if self._opened <= now < until else None

    def record_success(self) -> bool:
        """Close the breaker after an accepted summary; return True if it was open."""
        ended = self._opened is not None
        self.reason, self._opened = "", None
        self._cool_down, self._rejected = COOL_DOWN, 0
        return ended

    def record_rejection(self, reason: str) -> bool:
        """Count a rejected answer and close the breaker; after too many in a row, open it and return True."""
        self._rejected += 1
        if self._rejected < REJECTED_IN_A_ROW_MAX:
            self.reason, self._opened, self._cool_down = "", None, COOL_DOWN
            return False
        self.record_failure(
            f"{self._rejected} groups in a row had to be refused, the last as: {reason}"
        )
        return True

    def record_failure(self, reason: str) -> None:
        """Open the breaker after a failed call, for twice as long if it was open already."""
        if self._opened is not None:
            self._cool_down = min(self._cool_down * 2, COOL_DOWN_MAX)
        self.reason, self._opened = reason, self._clock.now()


class FallbackSummarizer(Summarizer):
    """Summarizer that asks the model, or the fallback while the model fails.

    A failure of the model opens the circuit breaker; so do several rejected answers in a row. A
    slow model gets `cycle_budget_s` of each cycle. Every summary of the fallback gives its reason.
    """

    def __init__(
        self,
        *,
        primary: CountingSummarizer,
        model: TextModel,
        fallback: Summarizer,
        clock: Clock,
        cycle_budget_s: float = 1_800.0,
    ) -> None:
        self.name = model.name
        self.reason = f"{model.name} is configured"
        self._primary = primary
        self.model: TextModel = model
        self._fallback = fallback
        self._breaker = CircuitBreaker(clock)
        self._fallbacks = 0
        self._cycle_budget_s = cycle_budget_s
        self._used_up = ""
        """Reason while a cycle continues without the model because its time is used up."""
        self._spent_s = 0.0
        """Time of the model in the present cycle."""
        self._stopping = False
        self._idle = threading.Event()
        self._idle.set()

    def summarize(self, memories: Sequence[MemoryRecord]) -> Summary:
        """Return the model's summary, or the fallback's with the reason why the model was not used."""
        if reason := self._find_reason_to_skip(spent_s=0):
            return self._add_reason(self._fallback.summarize(memories), reason)
        accepted = self._primary.accepted
        try:
            summary = self._ask_model(memories)
        except Exception as error:  # noqa: BLE001 whatever the model does, the group is summarized
            # A stop of the daemon is no failure of the model.
            reason = STOPPING if self._stopping else self._record_failure(error)
            return self._add_reason(self._fallback.summarize(memories), reason)
        # A group too short for the model is no success of it.
        if self._primary.accepted > accepted and self._breaker.record_success():
            log.info("model_back", model=self.name)
        return summary

    def summarize_each(
        self, groups: Iterable[tuple[K, Sequence[MemoryRecord]]], *, expected: int
    ) -> Iterator[tuple[K, Summary | Exception]]:
        """Yield the key of each of about `expected` groups with its summary or error.

        Once the model fails or its time is used up, the remaining groups go to the fallback. The
        caller ends the cycle by `release_workers`.
        """
        rest = iter(groups)
        for done, (key, memories) in enumerate(rest):
            if reason := self._find_reason_to_skip(self._spent_s):
                others = chain([(key, memories)], rest)
                left = expected - done
                yield from self.summarize_by_fallback(
                    others, reason=reason, expected=left
                )
                return
            began = time.monotonic()
            outcome = self.summarize_or_error(memories)
            self._spent_s += time.monotonic() - began
            yield key, outcome

    def status(self) -> SummarizerStatus:
        """Return whether the model or its fallback summarizes now, and the reason, with the counts of both."""
        until = self._breaker.retry_at
        if self._stopping:
            state, reason = SummarizerState.FALLBACK, STOPPING
        elif until:
            state = SummarizerState.FALLBACK
            reason = (
                f"it failed ({self._breaker.reason}); summaries are extractive "
                f"until {in_zone(until, None):%H:%M}"
            )
        elif self._used_up:
            state, reason = SummarizerState.FALLBACK, self._used_up
        elif self._breaker.reason:
            state = SummarizerState.MODEL
            reason = f"it failed ({self._breaker.reason}) and is tried again with the next group"
        else:
            state, reason = SummarizerState.MODEL, "in force, as configured"
        return SummarizerStatus(
            name=self.name,
            reason=reason,
            state=state,
            accepted=self._primary.accepted,
            retried=self._primary.retried,
            rejected=self._primary.rejected,
            fallbacks=self._fallbacks,
        )

    def rule_based(self) -> Summarizer:
        """Return a summarizer that uses the fallback alone, and gives as the reason that a caller waits."""
        return _FallbackOnly(self)

    def interrupt(self) -> None:
        """Use only the fallback until `resume`; end the model's running call within `INTERRUPT_S` seconds."""
        self._stopping = True
        ends = time.monotonic() + INTERRUPT_S
        # More than once: it may be just about to ask, or to ask again.
        while not self._idle.is_set() and time.monotonic() < ends:
            self.model.close()
            self._idle.wait(0.05)

    def resume(self) -> None:
        """Let the model summarize again after `interrupt`."""
        self._stopping = False

    def release_workers(self) -> None:
        """End a cycle: stop the fallback's processes, and reset the model's used time."""
        self._spent_s, self._used_up = 0.0, ""
        self._fallback.release_workers()

    def close(self) -> None:
        """Stop the processes of the model and of the fallback."""
        self.model.close()
        self._fallback.close()

    def summarize_by_fallback(
        self,
        groups: Iterable[tuple[K, Sequence[MemoryRecord]]],
        *,
        reason: str = "",
        expected: int,
    ) -> Iterator[tuple[K, Summary | Exception]]:
        """Yield the key of each of about `expected` groups with the fallback's summary or error.

        Each summary has the `reason` why no model was asked; by default, that a caller waits.
        """
        reason = reason or (STOPPING if self._stopping else WAITED_FOR)
        for key, outcome in self._fallback.summarize_each(groups, expected=expected):
            if isinstance(outcome, Exception):
                yield key, outcome
            else:
                yield key, self._add_reason(outcome, reason)

    def _find_reason_to_skip(self, spent_s: float) -> str:
        """Return why the model must not be asked after `spent_s` seconds of a cycle; empty if it may be."""
        if self._stopping:
            return STOPPING
        if self._breaker.retry_at:
            return self._breaker.reason
        if spent_s < self._cycle_budget_s:
            return ""
        if not self._used_up:
            log.info("model_budget_used", model=self.name, spent_s=round(spent_s, 1))
        self._used_up = (
            f"{self.name} had its {self._cycle_budget_s:g} s of this cycle "
            "(llm.cycle_budget_s); the other summaries are extractive"
        )
        return self._used_up

    def _ask_model(self, memories: Sequence[MemoryRecord]) -> Summary:
        """Return the model's summary of memories; `interrupt` can make the call fail."""
        self._idle.clear()
        try:
            if self._stopping:  # `interrupt` may have seen nothing to end
                raise errors.ModelUnavailable(STOPPING)
            return self._primary.summarize(memories)
        finally:
            self._idle.set()

    def _record_failure(self, error: Exception) -> str:
        """Report the model's error to the circuit breaker; return the reason to use the fallback.

        The breaker ignores `LimitReached`, as the owner's limit is no failure of the model.
        """
        why = errors.reason_of(error)
        if isinstance(error, errors.LimitReached):
            return why
        is_unavailable = isinstance(error, errors.ModelUnavailable)
        if isinstance(error, errors.SummarizerFailed) and not is_unavailable:
            if not self._breaker.record_rejection(why):
                return why
        else:
            self._breaker.record_failure(why)
        until = self._breaker.retry_at
        log.warning(
            "model_left_alone",
            model=self.name,
            reason=self._breaker.reason,
            until=until.isoformat(timespec="seconds") if until else None,
            exc_info=None if isinstance(error, errors.SummarizerFailed) else error,
        )
        return self._breaker.reason

    def _add_reason(self, summary: Summary, reason: str) -> Summary:
        """Count a summary by the fallback, and return a copy with the reason why no model made it."""
        self._fallbacks += 1
        return replace(summary, fallback_reason=reason)


class _FallbackOnly(Summarizer):
    """Summarizer with the fallback of a `FallbackSummarizer` alone, for a caller that waits."""

    def __init__(self, chain: FallbackSummarizer) -> None:
        self.name = chain.name
        self.reason = WAITED_FOR
        self._chain = chain

    def summarize(self, memories: Sequence[MemoryRecord]) -> Summary:
        """Return the fallback's summary, without asking the model. Raises `SummarizerFailed`."""
        ((_, outcome),) = self.summarize_each([(None, memories)], expected=1)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def summarize_each(
        self, groups: Iterable[tuple[K, Sequence[MemoryRecord]]], *, expected: int
    ) -> Iterator[tuple[K, Summary | Exception]]:
        """Yield the key of each group with the fallback's summary or error, without asking the model."""
        yield from self._chain.summarize_by_fallback(groups, expected=expected)
