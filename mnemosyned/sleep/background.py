"""Cycles that nobody asked for: they keep to what the model may do now, or say what they await."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo

from mnemosyned.domain.consolidation import Activity, CycleReport, Selection, Trigger
from mnemosyned.domain.instants import in_zone, shift
from mnemosyned.domain.ports.clock import Clock
from mnemosyned.domain.ports.store import MemoryStore
from mnemosyned.logs import logger
from mnemosyned.sleep.context import CycleRequest
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.sleep.triggers import Machine, ModelWork

ROWS_MAX = 50_000
"""What the triggers look at; with more than this in working memory they are due anyway."""

log = logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundPolicy:
    """When a model may write in the background, and which memories are too fresh for triggers."""

    model: ModelWork = field(default_factory=ModelWork)
    fresh: timedelta = timedelta(minutes=10)


class Background:
    """Runs cycles for the schedule and the triggers."""

    def __init__(
        self,
        *,
        store: MemoryStore,
        cycle: SleepCycle,
        clock: Clock,
        zone: tzinfo,
        machine: Callable[[], Machine],
        policy: BackgroundPolicy,
    ) -> None:
        self.policy = policy
        self.waits_for = ""
        """Why the last cycle was put off; empty where it was not."""
        self._store = store
        self._cycle = cycle
        self._clock = clock
        self._zone = zone
        self._machine = machine

    def now(self) -> datetime:
        """The time by which memories age."""
        return self._clock.now()

    def activity(self) -> Activity:
        """What is going on, for the triggers to judge."""
        now = self.now()
        fresh = shift(now, -self.policy.fresh)
        found = self._store.sleep.activity(fresh=fresh, now=now, limit=ROWS_MAX)
        return replace(found, quiet=timedelta(seconds=self._cycle.gate.quiet_s))

    def sleep(
        self, trigger: Trigger, selection: Selection | None = None
    ) -> CycleReport | None:
        """Run a cycle, unless the model has to wait and no memory is past its time to live.

        What is past it is consolidated by rule: waiting longer would cost what it is for.
        """
        activity = self.activity()
        reason = self.refusal(activity)
        self._note(reason, trigger)
        if reason:
            limit = self.now() - self._cycle.policy.ttl
            if activity.oldest is None or activity.oldest >= limit:
                return None
            selection = Selection(before=limit)
        return self._cycle.run(
            CycleRequest(trigger=trigger, selection=selection, rules_only=bool(reason))
        )

    def refusal(self, activity: Activity | None = None) -> str:
        """Why a model may not write now; empty where it may, or where none is in force."""
        if not self._cycle.lease.has_model:
            return ""
        local = in_zone(datetime.now(UTC), self._zone)
        return self.policy.model.refuses(
            self._machine(), activity or self.activity(), local
        )

    def _note(self, reason: str, trigger: Trigger) -> None:
        if reason and reason != self.waits_for:
            log.info("cycle_put_off", trigger=trigger.value, reason=reason)
        self.waits_for = reason
