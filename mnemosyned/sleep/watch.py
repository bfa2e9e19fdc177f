"""Looks at a fixed tick whether a trigger is due, and starts its cycle: calmly, never in storms."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from mnemosyned.domain.consolidation import Activity, CycleReport, Selection, Trigger
from mnemosyned.domain.errors import SleepInProgress
from mnemosyned.logs import logger
from mnemosyned.sleep.triggers import SleepTrigger

REST_S = 60.0
"""Between two cycles that triggers start, whatever they say."""
BACK_OFF_S = 300.0
BACK_OFF_MAX_S = 6 * 3_600.0
"""A trigger whose cycle gained nothing is left alone for a while, which doubles."""

log = logger()


@dataclass(slots=True)
class _Rest:
    """How long a trigger is left alone."""

    until: float = 0.0
    length: float = 0.0


class Watch:
    """Holds the triggers in force; `look` starts at most one cycle."""

    def __init__(
        self,
        *,
        activity: Callable[[], Activity],
        now: Callable[[], datetime],
        sleep: Callable[[Trigger, Selection], CycleReport | None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.triggers: Sequence[SleepTrigger] = ()
        self._activity = activity
        self._now = now
        self._sleep = sleep
        self._monotonic = monotonic
        self._rests: dict[Trigger, _Rest] = {}
        self._quiet_until = 0.0

    def look(self) -> Trigger | None:
        """Start the cycle of the first trigger that is due; answers with its name."""
        began = self._monotonic()
        if not self.triggers or began < self._quiet_until:
            return None
        activity, now = self._activity(), self._now()
        for trigger in self.triggers:
            rest = self._rests.setdefault(trigger.name, _Rest())
            if began < rest.until or not trigger.due(activity, now):
                continue
            try:
                report = self._sleep(trigger.name, trigger.takes(activity, now))
            except SleepInProgress:
                return None
            ended = self._monotonic()
            self._quiet_until = ended + REST_S
            self._settle(trigger.name, rest, report, ended)
            return trigger.name
        return None

    @staticmethod
    def _settle(name: Trigger, rest: _Rest, report: CycleReport | None, ended: float) -> None:
        """Leave a trigger alone whose cycle gained nothing, or was put off."""
        if report and report.evicted:
            rest.length = rest.until = 0.0
            return
        rest.length = min(max(BACK_OFF_S, rest.length * 2), BACK_OFF_MAX_S)
        rest.until = ended + rest.length
        log.info("trigger_rests", trigger=name.value, seconds=round(rest.length))
