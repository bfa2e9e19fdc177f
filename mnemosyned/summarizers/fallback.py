"""The model first, rules where it fails: one bad model costs one failure, not one per group."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain
from typing import Protocol, TypeVar

from mnemosyned.domain.errors import ModelUnavailable, SummarizerFailed, reason_of
from mnemosyned.domain.instants import in_zone
from mnemosyned.domain.memory import MemoryRecord
from mnemosyned.domain.ports.clock import Clock
from mnemosyned.domain.ports.models import (
    Summarizer,
    SummarizerState,
    SummarizerStatus,
    Summary,
    TextModel,
)
from mnemosyned.logs import logger

COOL_DOWN = timedelta(minutes=1)
COOL_DOWN_MAX = timedelta(hours=1)
REJECTED_IN_A_ROW_MAX = 5
"""After so many groups of which no answer was kept, the model is left alone too."""
INTERRUPT_S = 2.0
"""How long an interrupt insists; whatever hangs then is ended with the process."""
INSIST_EVERY_S = 0.05
STOPPING = "the daemon is stopping, and asks no model any more"
WAITED_FOR = "somebody waits for it, so no model was asked"

CYCLE_BUDGET_S = 1_800.0

K = TypeVar("K")
log = logger()


class CountingSummarizer(Protocol):
    """A summarizer that works with a model and counts what became of its answers."""

    accepted: int
    retried: int
    rejected: int

    def summarize(self, memories: Sequence[MemoryRecord]) -> Summary:
        """Summarize. Raises `SummarizerFailed`, and `ModelUnavailable` where that has no end."""
        ...


class CircuitBreaker:
    """Says when to leave a model alone: for a while that doubles, until a summary is kept."""

    def __init__(self, clock: Clock) -> None:
        self.why = ""
        """What happened last; empty while all is well."""
        self._clock = clock
        self._opened: datetime | None = None
        self._cool_down = COOL_DOWN
        self._rejected = 0

    @property
    def until(self) -> datetime | None:
        """When the model may be asked again; None when it may be now."""
        if self._opened is None:
            return None
        now, until = self._clock.now(), self._opened + self._cool_down
        # A clock that was set back must not keep a model out for a day.
        return until if self._opened <= now < until else None

    def kept(self) -> bool:
        """A summary was kept; answers whether that ends a failure."""
        ended = self._opened is not None
        self.why, self._opened, self._cool_down, self._rejected = "", None, COOL_DOWN, 0
        return ended

    def rejected(self, why: str) -> bool:
        """An answer was not kept; answers whether that was one too many."""
        self._rejected += 1
        if (
            self._rejected < REJECTED_IN_A_ROW_MAX
        ):  # and it answers, whatever was before
            self.why, self._opened, self._cool_down = "", None, COOL_DOWN
            return False
        self.failed(
            f"{self._rejected} groups in a row had to be refused, the last as: {why}"
        )
        return True

    def failed(self, why: str) -> None:
        """The model cannot be used now."""
        if self._opened is not None:
            self._cool_down = min(self._cool_down * 2, COOL_DOWN_MAX)
        self.why, self._opened = why, self._clock.now()


class FallbackSummarizer(Summarizer):
    """Asks the model, and lets the fallback write what the model does not.

    A failure of the model as such opens the breaker; an answer that is not kept does only when
    several follow one another. Nor does a slow model hold a cycle up: it gets `cycle_budget_s`.
    Every summary of the fallback says why it is one.
    """

    def __init__(
        self,
        *,
        primary: CountingSummarizer,
        model: TextModel,
        fallback: Summarizer,
        clock: Clock,
        cycle_budget_s: float = CYCLE_BUDGET_S,
    ) -> None:
        self.name = model.name
        self.reason = f"{model.name} is configured"
        self._primary = primary
        self.model = self._model = model
        self._fallback = fallback
        self._breaker = CircuitBreaker(clock)
        self._fallbacks = 0
        self._cycle_budget_s = cycle_budget_s
        self._used_up = ""
        """Says so, while a cycle goes on without the model that had its time."""
        self._spent_s = 0.0
        """What the model took of the cycle so far, over all its steps and levels."""
        self._stopping = False
        self._idle = threading.Event()
        self._idle.set()

    def summarize(self, memories: Sequence[MemoryRecord]) -> Summary:
        """The model's summary, or the fallback's with the reason."""
        if reason := self._left_alone(spent_s=0):
            return self._by_rule(memories, reason)
        accepted = self._primary.accepted
        try:
            summary = self._asked(memories)
        except Exception as error:  # noqa: BLE001 whatever the model does, the group is summarized
            # Whoever stops the daemon ended it: that says nothing of the model.
            reason = STOPPING if self._stopping else self._failed(error)
            return self._by_rule(memories, reason)
        # What was too short to be put to the model says nothing of it.
        if self._primary.accepted > accepted and self._breaker.kept():
            log.info("model_back", model=self.name)
        return summary

    def summarize_each(
        self, groups: Iterable[tuple[K, Sequence[MemoryRecord]]], *, expected: int
    ) -> Iterator[tuple[K, Summary | Exception]]:
        """Summaries of a cycle, part by part; `release_workers` ends it.

        Once the model is out of it, they go the fallback's own, faster way.
        """
        rest = iter(groups)
        for done, (key, memories) in enumerate(rest):
            if reason := self._left_alone(self._spent_s):
                others = chain([(key, memories)], rest)
                yield from self._each_by_rule(others, reason, expected=expected - done)
                return
            began = time.monotonic()
            outcome = self.outcome(memories)
            self._spent_s += time.monotonic() - began
            yield key, outcome

    def status(self) -> SummarizerStatus:
        until = self._breaker.until
        if self._stopping:
            state, reason = SummarizerState.FALLBACK, STOPPING
        elif until:
            state = SummarizerState.FALLBACK
            reason = (
                f"it failed ({self._breaker.why}); the rule-made fallback is in force "
                f"until {in_zone(until, None):%H:%M}"
            )
        elif self._used_up:
            state, reason = SummarizerState.FALLBACK, self._used_up
        elif self._breaker.why:
            state = SummarizerState.MODEL
            reason = f"it failed ({self._breaker.why}) and is tried again with the next group"
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
        return _RuleBased(self)

    def interrupt(self) -> None:
        self._stopping = True
        ends = time.monotonic() + INTERRUPT_S
        # More than once: it may be just about to ask, or to ask again.
        while not self._idle.is_set() and time.monotonic() < ends:
            self._model.close()
            self._idle.wait(INSIST_EVERY_S)

    def resume(self) -> None:
        self._stopping = False

    def release_workers(self) -> None:
        """The cycle is over: the next one has its whole time again."""
        self._spent_s, self._used_up = 0.0, ""
        self._fallback.release_workers()

    def close(self) -> None:
        self._model.close()
        self._fallback.close()

    def by_rule_each(
        self, groups: Iterable[tuple[K, Sequence[MemoryRecord]]], *, expected: int
    ) -> Iterator[tuple[K, Summary | Exception]]:
        """All groups by the fallback, as somebody waits."""
        reason = STOPPING if self._stopping else WAITED_FOR
        return self._each_by_rule(groups, reason, expected=expected)

    def _each_by_rule(
        self,
        groups: Iterable[tuple[K, Sequence[MemoryRecord]]],
        reason: str,
        *,
        expected: int,
    ) -> Iterator[tuple[K, Summary | Exception]]:
        for key, outcome in self._fallback.summarize_each(groups, expected=expected):
            if isinstance(outcome, Exception):
                yield key, outcome
            else:
                yield key, self._because(outcome, reason)

    def _left_alone(self, spent_s: float) -> str:
        """Why the model is not asked for the rest of the cycle; empty where it is."""
        if self._stopping:
            return STOPPING
        if self._breaker.until:
            return self._breaker.why
        if spent_s < self._cycle_budget_s:
            return ""
        if not self._used_up:
            log.info("model_budget_used", model=self.name, spent_s=round(spent_s, 1))
        self._used_up = (
            f"{self.name} had its {self._cycle_budget_s:g} s of this cycle "
            "(llm.cycle_budget_s); the rest goes by rule"
        )
        return self._used_up

    def _asked(self, memories: Sequence[MemoryRecord]) -> Summary:
        self._idle.clear()
        try:
            if (
                self._stopping
            ):  # said before `_idle` could tell that there is something to end
                raise ModelUnavailable(STOPPING)
            return self._primary.summarize(memories)
        finally:
            self._idle.set()

    def _failed(self, error: Exception) -> str:
        """Take note of a failure; answers with the reason for the fallback."""
        why = reason_of(error)
        if isinstance(error, SummarizerFailed) and not isinstance(
            error, ModelUnavailable
        ):
            if not self._breaker.rejected(why):
                return why
        else:
            self._breaker.failed(why)
        until = self._breaker.until
        log.warning(
            "model_left_alone",
            model=self.name,
            reason=self._breaker.why,
            until=until.isoformat(timespec="seconds") if until else None,
            exc_info=None if isinstance(error, SummarizerFailed) else error,
        )
        return self._breaker.why

    def _by_rule(self, memories: Sequence[MemoryRecord], reason: str) -> Summary:
        return self._because(self._fallback.summarize(memories), reason)

    def _because(self, summary: Summary, reason: str) -> Summary:
        self._fallbacks += 1
        return replace(summary, fallback_reason=reason)


class _RuleBased(Summarizer):
    """The fallback alone, for whoever waits."""

    def __init__(self, chain: FallbackSummarizer) -> None:
        self.name = chain.name
        self.reason = WAITED_FOR
        self._chain = chain

    def summarize(self, memories: Sequence[MemoryRecord]) -> Summary:
        ((_, outcome),) = self.summarize_each([(None, memories)], expected=1)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def summarize_each(
        self, groups: Iterable[tuple[K, Sequence[MemoryRecord]]], *, expected: int
    ) -> Iterator[tuple[K, Summary | Exception]]:
        yield from self._chain.by_rule_each(groups, expected=expected)
