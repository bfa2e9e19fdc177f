"""One sleep cycle's request, and what all of its steps share while it runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from mnemosyned.domain.consolidation import Pending, Selection, Trigger
from mnemosyned.domain.memory import MemoryRecord
from mnemosyned.domain.ports.clock import Clock
from mnemosyned.domain.ports.models import Summarizer
from mnemosyned.domain.ports.store import MemoryStore
from mnemosyned.domain.text.token_estimate import CHARS_PER_TOKEN
from mnemosyned.sleep.lease import SummarizerLease
from mnemosyned.sleep.policy import Budget, SleepPolicy
from mnemosyned.sleep.throttle import ForegroundGate

CANDIDATES_MAX = 200_000
"""Memories that one cycle looks at; the rest waits for the next."""


def _always() -> bool:
    return True


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

    def budget(self, policy: SleepPolicy) -> Budget:
        """Return the limits that apply to it."""
        return Budget() if self.final else policy.budget

    def selected(self, *, cutoff: datetime, now: datetime) -> Selection:
        """Return which memories it takes, those created before `cutoff` unless it says else."""
        default = Selection(before=None if self.force else cutoff, session=self.session)
        selection = self.selection or default
        return replace(selection, now=None if self.force else now)


class Meter:
    """Measures a cycle against its budget."""

    def __init__(
        self, budget: Budget, *, deadline_s: float | None, model: bool
    ) -> None:
        limits = [deadline_s, budget.time.total_seconds() if budget.time else None]
        given = [limit for limit in limits if limit is not None]
        self.started = time.monotonic()
        self._ends = self.started + min(given) if given else None
        tokens = budget.tokens if model else None
        self.chars_max = None if tokens is None else tokens * CHARS_PER_TOKEN
        """Characters that a model may read; None without a limit."""
        self._chars = 0

    def count_read(self, memories: Sequence[MemoryRecord]) -> None:
        """Count what the summarizer is given to read."""
        self._chars += sum(len(memory.content) for memory in memories)

    @property
    def left(self) -> bool:
        """Whether another group may begin."""
        if self._ends is not None and time.monotonic() >= self._ends:
            return False
        return self.chars_max is None or self._chars < self.chars_max


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
        request = self.request
        return (
            self.selection.everywhere and not request.urgent and not request.rules_only
        )

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
        return (
            self.meter.left
            and (self.request.final or not self.lease.interrupted)
            and self.request.keep_going()
        )

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
        selection = selection or self.selection
        return self.store.sleep.pending(
            before=selection.before,
            session=selection.session,
            sources=selection.sources,
            now=selection.now,
            limit=limit,
        )
