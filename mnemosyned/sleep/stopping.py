"""Lets somebody stop a running cycle after the groups that it has begun, or start none for a while."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta

from mnemosyned.domain.errors import SleepInProgress
from mnemosyned.domain.instants import shift
from mnemosyned.domain.ports.clock import Clock
from mnemosyned.domain.sleep.cycles import CycleReport, CycleStatus, Trigger

HOLD = timedelta(minutes=15)
"""After a stop no cycle starts in the background for so long: its trigger would start it again."""


class CycleStop:
    """A request that one cycle end, and its report for those who asked; safe from any thread."""

    def __init__(self) -> None:
        self.report: CycleReport | None = None
        """None until the cycle is over, and where it failed."""
        self._asked = threading.Event()
        self._over = threading.Event()

    @property
    def asked(self) -> bool:
        """Whether the cycle is to end after its present groups."""
        return self._asked.is_set()

    @property
    def over(self) -> bool:
        """Whether the cycle has ended, by itself or because it was asked to."""
        return self._over.is_set()

    def ask(self) -> None:
        """Let the cycle begin no further group."""
        self._asked.set()

    def finish(self) -> None:
        """Wake those who wait: the cycle has ended."""
        self._over.set()

    def wait(self, timeout_s: float) -> bool:
        """Wait until the cycle has ended; return whether it has."""
        return self._over.wait(timeout_s)


class CycleStopper:
    """Stops the running cycle, and keeps the next one from starting at once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._current = CycleStop()
        self._current.finish()
        self._held_from: datetime | None = None
        self._hold = HOLD

    def begin(self) -> CycleStop:
        """Return the stop of a cycle that begins."""
        self._current = CycleStop()
        return self._current

    @property
    def asked(self) -> bool:
        """Whether the running cycle, or the last one, was asked to end."""
        return self._current.asked

    def stop(self, timeout_s: float) -> CycleReport:
        """Stop the running cycle and return its report, when its present groups are done.

        Raises `SleepInProgress` where they take longer than `timeout_s`; the cycle ends after them
        all the same.
        """
        current = self._current
        if current.over:
            return not_running()
        self._hold_for(HOLD)
        current.ask()
        if not current.wait(timeout_s):
            raise SleepInProgress(
                "the sleep cycle still works on its present batch; it ends after that"
            )
        return current.report or not_running("it failed; mnem log says why")

    def pause(self, hold: timedelta) -> CycleReport:
        """Start no cycle in the background for so long; for no time, end a pause."""
        self._held_from = None
        if hold:
            self._hold_for(hold)
        return _empty(CycleStatus.PAUSED, held_until=self.held_until())

    def _hold_for(self, hold: timedelta) -> None:
        """Hold cycles back for so long, or until a hold in force ends, if that is later."""
        now, until = self._clock.now(), self.held_until()
        self._hold = max(hold, until - now) if until else hold
        self._held_from = now

    def held_until(self) -> datetime | None:
        """Return until when no cycle starts in the background; None if one may now."""
        if self._held_from is None:
            return None
        until = shift(self._held_from, self._hold)
        return until if self._held_from <= self._clock.now() < until else None


def not_running(problem: str = "") -> CycleReport:
    """Return the report to somebody who stops a cycle where none runs."""
    return _empty(CycleStatus.NOT_RUNNING, problem=problem)


def _empty(
    status: CycleStatus, *, problem: str = "", held_until: datetime | None = None
) -> CycleReport:
    return CycleReport(
        cycle="",
        status=status,
        trigger=Trigger.EXPLICIT,
        dry_run=False,
        candidates=0,
        groups=(),
        duration_s=0.0,
        promoted=0,
        evicted=0,
        failed=0,
        chars_before=0,
        chars_after=0,
        problem=problem,
        held_until=held_until,
    )
