"""Cycles that no caller asked for: they run when the model may, or report what they wait for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo

from mnemosyned.domain.instants import in_zone, shift
from mnemosyned.domain.ports.store import MemoryStore
from mnemosyned.domain.sleep.consolidation import Activity, Selection
from mnemosyned.domain.sleep.cycles import CycleReport, Trigger
from mnemosyned.logs import logger
from mnemosyned.sleep.context import CycleRequest
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.sleep.host import machine_now
from mnemosyned.sleep.starts.triggers import Machine

ROWS_MAX = 50_000
"""Memories that the triggers look at; with more in working memory they are due anyway."""

log = logger()


class Background:
    """Runs cycles for the schedule and the triggers."""

    def __init__(
        self,
        *,
        store: MemoryStore,
        cycle: SleepCycle,
        zone: tzinfo,
        machine: Callable[[], Machine] = machine_now,
    ) -> None:
        """Judge quiet hours in `zone`, and the load and power supply by `machine`."""
        self.waits_for = ""
        """Why the last cycle was put off; empty if it was not."""
        self._store = store
        self._cycle = cycle
        self._zone = zone
        self._machine = machine

    def activity(self) -> Activity:
        """Return the state of working memory, for the triggers to judge."""
        now = self._cycle.now()
        fresh = shift(now, -self._cycle.policy.background.fresh)
        activity = self._store.sleep.activity(fresh=fresh, now=now, limit=ROWS_MAX)
        return replace(activity, quiet=timedelta(seconds=self._cycle.gate.quiet_s))

    def sleep(
        self, trigger: Trigger, selection: Selection | None = None
    ) -> CycleReport | None:
        """Run a cycle, unless the model has to wait and no memory is past its time to live.

        Memories past it are consolidated by rule: they must not wait any longer.
        """
        if until := self._cycle.stopper.held_until():
            self._note(
                f"it was stopped or paused, and waits until {_clock(until, self._zone)}",
                trigger,
            )
            return None
        activity = self.activity()
        reason = self.refusal(activity)
        self._note(reason, trigger)
        if reason:
            limit = self._cycle.now() - self._cycle.policy.ttl
            if activity.oldest is None or activity.oldest >= limit:
                return None
            selection = Selection(before=limit)
        return self._cycle.run(
            CycleRequest(trigger=trigger, selection=selection, rules_only=bool(reason))
        )

    def refusal(self, activity: Activity | None = None) -> str:
        """Return why a model may not write now; empty if it may, or if none is configured."""
        if not self._cycle.lease.has_model:
            return ""
        local = in_zone(datetime.now(UTC), self._zone)
        return self._cycle.policy.background.model.refuses(
            self._machine(), activity or self.activity(), local
        )

    def _note(self, reason: str, trigger: Trigger) -> None:
        if reason and reason != self.waits_for:
            log.info("cycle_put_off", trigger=trigger.value, reason=reason)
        self.waits_for = reason


def _clock(moment: datetime, zone: tzinfo) -> str:
    return f"{in_zone(moment, zone):%H:%M}"
