"""Port of the clock, and the judgment of its readings by the time that has passed.

Work that cannot be undone asks here before it trusts the date.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

TOLERANCE = timedelta(hours=1)
"""Smaller steps are corrections that cost nobody's words more than an hour."""
OFF_MAX = timedelta(days=7)
"""A machine may have been off so long without being asked about it."""
SLACK_FOR = timedelta(days=1)
"""A clock that may still catch up, after a start or a step back, does so within this time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """The wall clock as it was last believed, and how much of the machine's time had passed."""

    moment: datetime
    boot: str
    """Which start of the machine it was in."""
    uptime_s: float
    """Seconds since that start, time asleep included."""
    slack: timedelta = timedelta()
    """How much further ahead than the time that passed the clock may be found."""
    slack_from_s: float = 0.0
    """When that was granted, in seconds since the start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgment:
    """Judgment of the machine's clock: how far it can be trusted."""

    sighting: Sighting
    """The next one is judged by this."""
    ahead: timedelta = timedelta()
    """How far the clock is ahead of what can be; nothing where it is believed."""

    @property
    def now(self) -> datetime:
        """The machine's time, or the expected time if the clock jumped ahead."""
        return self.sighting.moment


def judge_clock(
    last: Sighting | None, *, now: datetime, boot: str, uptime_s: float
) -> Judgment:
    """Return a judgment of the clock reading `now`, by its last trusted reading plus the uptime since.

    Within one boot the time that passed is known exactly. After a reboot, an unknown time off is added, of
    which up to `OFF_MAX` is believed. A clock that is set back is believed at once, and may return to its
    former time within `SLACK_FOR`. A clock that is further ahead is never believed, however long it stays so:
    only its owner can tell whether the machine was off that long.
    """
    if last is None:
        return Judgment(sighting=Sighting(moment=now, boot=boot, uptime_s=uptime_s))
    if last.boot != boot or last.uptime_s > uptime_s:
        # The machine started after it: as if it had been made at the start.
        slack = max(last.slack, OFF_MAX)
        last = replace(
            last, boot=boot, uptime_s=0.0, slack=slack, slack_from_s=uptime_s
        )
    expected = last.moment + timedelta(seconds=uptime_s - last.uptime_s)
    ahead = now - expected
    seen = replace(last, uptime_s=uptime_s)
    if ahead > last.slack + TOLERANCE:
        return Judgment(sighting=replace(seen, moment=expected), ahead=ahead)
    if ahead < -TOLERANCE:
        back = replace(
            seen, moment=now, slack=last.slack - ahead, slack_from_s=uptime_s
        )
        return Judgment(sighting=back)
    over = timedelta(seconds=uptime_s - last.slack_from_s) > SLACK_FOR
    slack = timedelta() if over else last.slack - max(ahead, timedelta())
    return Judgment(sighting=replace(seen, moment=now, slack=max(slack, timedelta())))


class Clock(Protocol):
    """The present time; tests hand in one they can move."""

    def now(self) -> datetime:
        """Return the present instant, aware, in UTC."""
