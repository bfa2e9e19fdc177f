"""Arithmetic of instants and days that saturates at both ends of the calendar.

A text may speak of any day of the years 1 to 9999, in any zone, and a shifted instant may lie
outside: Go writes 0001-01-01T00:00:00Z for a time that was never set.
"""

from __future__ import annotations

from calendar import monthrange
from datetime import MAXYEAR, MINYEAR, UTC, date, datetime, timedelta, tzinfo


def shift(moment: datetime, by: timedelta) -> datetime:
    """Return a shifted instant, at most the first or last instant of the calendar."""
    try:
        return moment + by
    except OverflowError:
        return _calendar_end(moment.tzinfo, last=by > timedelta())


def in_zone(moment: datetime, zone: tzinfo | None) -> datetime:
    """Convert an instant to a zone's clock; None means the zone of the process.

    It is the clock's first or last reading where the clock would leave the calendar.
    """
    try:
        return moment.astimezone(zone)
    except (OverflowError, ValueError):
        return _calendar_end(zone or UTC, last=moment.year > MINYEAR)


def shift_months(moment: datetime, count: int) -> datetime:
    """Add months to a day: the last day of a shorter month; saturates at the calendar's ends."""
    year, month = divmod(moment.year * 12 + moment.month - 1 + count, 12)
    if not MINYEAR <= year <= MAXYEAR:
        return _calendar_end(moment.tzinfo, last=year > MAXYEAR)
    return moment.replace(
        year=year, month=month + 1, day=min(moment.day, monthrange(year, month + 1)[1])
    )


def day_at(today: date, days: int) -> date | None:
    """Return the day `days` later, or None beyond the calendar."""
    try:
        return today + timedelta(days)
    except OverflowError:
        return None


def _calendar_end(zone: tzinfo | None, *, last: bool) -> datetime:
    if last:
        return datetime.max.replace(tzinfo=zone)
    return datetime.min.replace(tzinfo=zone)
