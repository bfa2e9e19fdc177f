"""Port of the clock, and the decision whether its readings can be trusted.

Work that cannot be undone asks here before it trusts the date.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

TOLERANCE = timedelta(hours=1)
"""Smaller steps of the clock are corrections, which prune or purge nothing more than an hour early."""
OFF_MAX = timedelta(days=7)
"""Longest time that a machine may have been off without its owner being asked about it."""
SLACK_FOR = timedelta(days=1)
"""Time after a start or a step back within which the clock may still be set forward again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """The last trusted reading of the wall clock, with the machine's uptime at that time."""

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
    """Return whether the clock's reading `now` can be trusted, by its last trusted reading plus the uptime.

    Within one boot the time that passed is known exactly. After a reboot, an unknown time off is added, of
    which up to `OFF_MAX` is accepted. A clock that is set back is trusted at once, and may return to its former
    time within `SLACK_FOR`. A clock that is further ahead is never trusted, however long it stays so: only its
    owner can say whether the machine was off that long.
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
    """Source of the present time; tests use one that they can move."""

    def now(self) -> datetime:
        """Return the present instant, aware, in UTC."""
