"""One sleep cycle's request, and what all of its steps share while it runs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from mnemosyned.domain.memory import MemoryRecord
from mnemosyned.domain.ports.clock import Clock
from mnemosyned.domain.ports.models import Summarizer
from mnemosyned.domain.ports.store import MemoryStore
from mnemosyned.domain.sleep.consolidation import Pending, Selection
from mnemosyned.domain.sleep.cycles import CycleReport, Trigger
from mnemosyned.domain.text.token_estimate import CHARS_PER_TOKEN
from mnemosyned.sleep.lease import SummarizerLease
from mnemosyned.sleep.policy import Budget, SleepPolicy
from mnemosyned.sleep.stopping import CycleStop
from mnemosyned.sleep.throttle import ForegroundGate

CANDIDATES_MAX = 200_000
"""Memories that one cycle looks at; the rest waits for the next."""


def _always() -> bool:
    return True


class CycleObserver(Protocol):
    """Hears of each cycle."""

    def cycle_begun(self, cycle: str, trigger: Trigger) -> None:
        """Take note that a cycle began."""
        ...

    def cycle_ended(self, report: CycleReport) -> None:
        """Take note of how a cycle ended."""
        ...

    def cycle_failed(self, cycle: str, trigger: Trigger) -> None:
        """Take note that a cycle ended with an error."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleRequest:
    """Request for one cycle: the memories to consolidate, and the time it may take.

    Without `selection` it takes the memories of `session`, or of all, that are old enough.
    """

    trigger: Trigger
    session: str | None = None
    force: bool = False
    """Take memories of any age, and those that an undo holds back."""
    selection: Selection | None = None
    """Take exactly these."""
    rules_only: bool = False
    """Ask no model, because a caller waits."""
    deadline_s: float | None = None
    """End the cycle between two groups after this time."""
    keep_going: Callable[[], bool] = _always
    """Asked before each group; the cycle ends when it returns False."""

    @property
    def final(self) -> bool:
        """Whether the process ends after it: no budget, interrupt or running cycle stops it."""
        return self.trigger is Trigger.SHUTDOWN

    @property
    def urgent(self) -> bool:
        """Whether it yields to no request and leaves roll-ups to a later cycle."""
        return self.final or self.trigger is Trigger.CAP

    @property
    def lease_wait_s(self) -> float:
        """Seconds to wait for a cycle that is running."""
        return (self.deadline_s or 0.0) if self.final else 0.0

    def while_true(self, condition: Callable[[], bool]) -> CycleRequest:
        """Return the same request, to be ended as soon as a condition no longer holds."""
        keep_going = self.keep_going
        return replace(self, keep_going=lambda: keep_going() and condition())

    def budget(self, policy: SleepPolicy) -> Budget:
        """Return the limits that apply to it."""
        return Budget() if self.final else policy.budget

    def selected(self, *, cutoff: datetime, now: datetime) -> Selection:
        """Return which memories it takes, those created before `cutoff` unless it says else."""
        if self.force:
            selection = self.selection or Selection(session=self.session)
            return replace(selection, now=None)
        selection = self.selection or Selection(before=cutoff, session=self.session)
        return replace(selection, now=now)


class Meter:
    """Measures a cycle against its budget."""

    def __init__(
        self, budget: Budget, *, deadline_s: float | None, model: bool
    ) -> None:
        time_s = budget.time.total_seconds() if budget.time else math.inf
        deadline_s = math.inf if deadline_s is None else deadline_s
        self.started = time.monotonic()
        self._ends = self.started + min(time_s, deadline_s)
        self.chars_max = math.inf
        """Characters that a model may read."""
        if model and budget.tokens is not None:
            self.chars_max = budget.tokens * CHARS_PER_TOKEN
        self._chars = 0

    def count_read(self, memories: Sequence[MemoryRecord]) -> None:
        """Count what the summarizer is given to read."""
        self._chars += sum(len(memory.content) for memory in memories)

    @property
    def left(self) -> bool:
        """Whether another group may begin."""
        return time.monotonic() < self._ends and self._chars < self.chars_max


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleContext:
    """One cycle under way, handed to each of its steps."""

    id: str
    request: CycleRequest
    selection: Selection
    store: MemoryStore
    summarizer: Summarizer
    """The lent summarizer, or its rules."""
    has_model: bool
    """Whether the summarizer may ask a model."""
    lease: SummarizerLease
    clock: Clock
    policy: SleepPolicy
    gate: ForegroundGate
    meter: Meter
    stop: CycleStop

    @property
    def trigger(self) -> Trigger:
        """Cause of the cycle."""
        return self.request.trigger

    @property
    def candidates_max(self) -> int:
        """Memories that it takes at most."""
        oldest = self.selection.oldest
        return CANDIDATES_MAX if oldest is None else min(oldest, CANDIDATES_MAX)

    @property
    def rolls_up(self) -> bool:
        """Whether periods that are over are rolled up after the memories."""
        return self.selection.everywhere and self.yields

    @property
    def yields(self) -> bool:
        """Whether it lets requests go first."""
        return not self.request.urgent and not self.request.rules_only

    @property
    def contended(self) -> bool:
        """Whether requests are in flight that it lets go first."""
        return self.yields and self.gate.active

    def may_continue(self) -> bool:
        """Return whether another group may begin."""
        ended = self.lease.interrupted or self.stop.asked
        if ended and not self.request.final:
            return False
        return self.meter.left and self.request.keep_going()

    def yield_to_requests(self) -> None:
        """Wait a moment while requests are in flight."""
        if self.yields:
            self.gate.yield_to_requests()

    def rest_after(self, worked_s: float) -> None:
        """Leave disk and writer to requests after work that they may have waited for."""
        if self.yields:
            self.gate.rest_after(worked_s)

    def pending(
        self, *, limit: int, selection: Selection | None = None
    ) -> list[Pending]:
        """Return the memories that wait to be consolidated, oldest first."""
        return self.store.sleep.pending(selection or self.selection, limit=limit)
