"""Times as other programs write them."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, tzinfo

from mnemosyned.domain.instants import in_zone

_MILLISECONDS_FROM = 100_000_000_000
"""A larger number counts milliseconds; as seconds it would be the year 5138."""
_MICROSECONDS_FROM = 100_000_000_000_000
_NUMBER = re.compile(r"-?\d{1,20}(?:\.\d+)?")


def moment_from(value: object, *, zone: tzinfo | None = None) -> datetime | None:
    """Return a time with its zone; None for what is none.

    A time without a zone is local, or of `zone`; a number counts seconds or milliseconds.
    """
    try:
        return _moment(value, zone)
    except (ValueError, OverflowError, OSError):
        return None


def _moment(value: object, zone: tzinfo | None) -> datetime | None:
    if isinstance(value, datetime):
        return _zoned(value, zone)
    if isinstance(value, date):
        return _zoned(datetime.combine(value, time()), zone)
    if isinstance(value, str):
        return _from_text(value.strip(), zone)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _from_number(value)
    return None


def _from_text(text: str, zone: tzinfo | None) -> datetime | None:
    if _NUMBER.fullmatch(text) and len(text) > 8:
        return _from_number(float(text))
    return _zoned(datetime.fromisoformat(text), zone)


def _from_number(value: float) -> datetime | None:
    if value <= 0:
        return None
    if value >= _MICROSECONDS_FROM:
        value /= 1_000_000
    elif value >= _MILLISECONDS_FROM:
        value /= 1_000
    return datetime.fromtimestamp(value, tz=UTC)


def _zoned(moment: datetime, zone: tzinfo | None) -> datetime:
    if moment.tzinfo:
        return moment
    return moment.replace(tzinfo=zone) if zone else in_zone(moment, None)
