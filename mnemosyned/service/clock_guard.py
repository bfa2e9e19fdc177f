"""A clock for irreversible work: a jump is not believed until the owner confirms it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Self

from mnemosyned.errors import StorageFailed
from mnemosyned.logs import logger
from mnemosyned.memory.clock import Clock, Judgment, Sighting, judge_clock
from mnemosyned.sleep.triggers import machine_uptime_s, read_boot_id

if TYPE_CHECKING:
    from mnemosyned.storage.common.surroundings import ClockStore

KEPT_EVERY_S = 3_600.0
"""A sighting is kept in the store so often; a crash costs no more of what is known."""
KEPT_LAST_S = 60.0
"""At the end one so much newer is: a program that opens a memory for a moment writes none."""
REMEDY = "if the date is right: mnem archive prune --believe-clock"

log = logger()


@dataclass(eq=False, kw_only=True)
class ClockGuard:
    """Judge of the clock by its last sighting in the store; safe from any thread."""

    store: ClockStore
    clock: Clock
    uptime: Callable[[], float] = machine_uptime_s
    """Returns the seconds since `boot`."""
    boot: Callable[[], str] = read_boot_id

    def __post_init__(self) -> None:
        self._looking = threading.Lock()
        self._seen = self.store.last_sighting()
        self._kept = (
            self._seen if self._seen and self._seen.boot == self.boot() else None
        )
        self._doubted = False

    def __enter__(self) -> Self:
        self.look()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def now(self) -> datetime:
        """Return the present time: the clock's, or the time expected if the clock jumped ahead."""
        return self.look().now

    def look(self) -> Judgment:
        """Compare the clock with its last trusted reading, and store the new one."""
        with self._looking:
            judgment = self._judge_clock()
            self._log_change(judgment)
            self._store_sighting(judgment.sighting, every_s=KEPT_EVERY_S)
            return judgment

    def confirm(self) -> None:
        """Trust the present time of the clock from now on, also after a jump."""
        with self._looking:
            self._seen = None
            judgment = self._judge_clock()
            self._log_change(judgment, how="confirmed")
            self._store_sighting(judgment.sighting, every_s=0.0)

    def close(self) -> None:
        """Store the last trusted reading of the clock, for the next start."""
        with self._looking:
            self._store_sighting(self._judge_clock().sighting, every_s=KEPT_LAST_S)

    def doubt(self) -> str:
        """Return why the clock is not trusted, in a sentence; empty if it is trusted."""
        judgment = self.look()
        if not judgment.ahead:
            return ""
        said, believed = judgment.now + judgment.ahead, judgment.now
        return (
            f"the clock says {said:%Y-%m-%d}, {_days_ahead(judgment)} later than can have passed since "
            f"{believed:%Y-%m-%d}: was the machine off for so long, or is the clock wrong?"
        )

    def _judge_clock(self) -> Judgment:
        """Judge the clock by its last trusted reading, and keep the new one in memory."""
        now, up = self.clock.now(), self.uptime()
        judgment = judge_clock(self._seen, now=now, boot=self.boot(), uptime_s=up)
        self._seen = judgment.sighting
        return judgment

    def _log_change(self, judgment: Judgment, *, how: str = "it went back") -> None:
        """Log when the clock begins or ceases to be trusted; `how` says why it is trusted again."""
        doubted = bool(judgment.ahead)
        if doubted and not self._doubted:
            log.warning(
                "clock_not_believed",
                believed=judgment.now.isoformat(timespec="seconds"),
                ahead=_days_ahead(judgment),
                held_back="pruning by age",
                remedy=REMEDY,
            )
        elif self._doubted and not doubted:
            log.info("clock_believed", reason=how)
        self._doubted = doubted

    def _store_sighting(self, sighting: Sighting, *, every_s: float) -> None:
        """Store a reading of the clock if the stored one is `every_s` seconds old; log a failure."""
        kept = self._kept
        if kept and sighting.uptime_s - kept.uptime_s < every_s:
            return
        self._kept = sighting
        try:
            self.store.keep_sighting(sighting)
        except StorageFailed as error:  # what was kept before is older, and doubts more
            log.warning("clock_not_kept", reason=error.message)


def _days_ahead(judgment: Judgment) -> str:
    """Return how far the clock is ahead of the time expected: "3 days", or "30 hours"."""
    days = judgment.ahead.total_seconds() / 86_400
    return f"{days:,.0f} days" if days >= 2 else f"{days * 24:.0f} hours"
