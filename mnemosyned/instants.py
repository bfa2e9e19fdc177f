"""Arithmetic of instants and days that saturates at both ends of the calendar.

A text may speak of any day of the years 1 to 9999, in any zone, and a shifted instant may lie
outside: Go writes 0001-01-01T00:00:00Z for a time that was never set.
"""

from __future__ import annotations

from calendar import monthrange
from datetime import MAXYEAR, MINYEAR, UTC, date, datetime, timedelta, tzinfo


def shift(moment: datetime, by: timedelta) -> datetime:
    """Return the moment plus `by`, or the calendar's first or last instant if that is outside."""
    try:
        return moment + by
    except OverflowError:
        return _calendar_end(moment.tzinfo, last=by > timedelta())


def in_zone(moment: datetime, zone: tzinfo | None) -> datetime:
    """Return a moment in a zone (None: the process's own), or an end of the calendar if it is outside."""
    try:
        return moment.astimezone(zone)
    except (OverflowError, ValueError):
        return _calendar_end(zone or UTC, last=moment.year > MINYEAR)


def calendar_time(moment: datetime) -> datetime:
    """Return the wall-clock time of a moment in the process's zone, marked as if it were in UTC."""
    return in_zone(moment, None).replace(tzinfo=UTC)


def from_calendar_time(shown: datetime) -> datetime:
    """Return the moment in UTC at which the process's zone has the wall-clock time `shown`."""
    return in_zone(shown.replace(tzinfo=None), UTC)


def shift_months(moment: datetime, count: int) -> datetime:
    """Return the moment `count` months later, on the same day, or a shorter month's or the calendar's last."""
    year, month = divmod(moment.year * 12 + moment.month - 1 + count, 12)
    if not MINYEAR <= year <= MAXYEAR:
        return _calendar_end(moment.tzinfo, last=year > MAXYEAR)
    return moment.replace(
        year=year, month=month + 1, day=min(moment.day, monthrange(year, month + 1)[1])
    )


def day_at(today: date, days: int) -> date | None:
    """Return the day `days` after `today`, or None if it is outside the calendar."""
    try:
        return today + timedelta(days)
    except OverflowError:
        return None


def _calendar_end(zone: tzinfo | None, *, last: bool) -> datetime:
    """Return the calendar's last instant in a zone if `last`, else its first."""
    if last:
        return datetime.max.replace(tzinfo=zone)
    return datetime.min.replace(tzinfo=zone)
