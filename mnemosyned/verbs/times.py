"""Times of a request as people give them: in words, as a date, or as so long ago."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, cast, get_args, get_origin

import msgspec

from mnemosyned.errors import InvalidTime
from mnemosyned.instants import in_zone
from mnemosyned.text.dates.spans import TimeSpan
from mnemosyned.text.dates.typed import (
    AmbiguousDate,
    TypedTime,
    period_around,
    read_time,
)
from mnemosyned.text.display import escape_invisible
from mnemosyned.verbs.request import time_fields, union_members

S = TypeVar("S", bound=msgspec.Struct)

GivenTime = datetime | date | timedelta | str
"""What a caller may give for a time."""
ENDS = frozenset({"until", "valid_until"})
"""Fields that end a stretch of time: what is named there is included."""
AHEAD = frozenset({"valid_until"})
"""Fields whose times are to come."""
ASKED_AT = "asked_at"
"""The field with the time that the other times of a request are read at."""
SHOWN_CHARS_MAX = 60


def local_zone() -> tzinfo | None:
    """Return this machine's time zone with its daylight saving; None if it has no name."""
    # Loaded here: few requests have a time in words.
    from tzlocal import get_localzone  # noqa: PLC0415

    try:
        return get_localzone()
    except (LookupError, ValueError, OSError):  # a zone that has no name, or no table
        return None


def local_now() -> datetime:
    """Return the present time in the time zone of this machine."""
    return datetime.now(UTC).astimezone(local_zone())


def read_period(
    text: str,
    unit: Literal["day", "week", "month"],
    *,
    field: str = "when",
    now: datetime | None = None,
) -> TimeSpan:
    """Return the day, week or month in which the time that a text names begins, in UTC.

    The end of the span is not in it. Raises `InvalidTime`, which names `field`.
    """
    now = now or local_now()
    try:
        span = period_around(text, unit, now)
    except AmbiguousDate as error:
        raise _ambiguous_time(text, field, error) from error
    if span is None:
        raise _invalid_time(text, field)
    return span


def read_given(
    given: GivenTime, *, field: str, now: datetime, since: datetime | None = None
) -> datetime:
    """Return the instant that a caller gave as time, duration or text, read at `now`.

    A time without a zone is in the zone of `now`. The name of the field says which end of a day is
    meant, and whether a duration is in the past or the future. A date without a year, or a weekday,
    that is over before `since` is the next one after it. Raises `InvalidTime`.
    """
    name = field.rpartition(".")[2]
    try:
        if isinstance(given, datetime):
            # By way of UTC: a reading that the clock leaps over is as much later.
            local = given.replace(tzinfo=given.tzinfo or now.tzinfo)
            return given if given.tzinfo else local.astimezone(UTC)
        if isinstance(given, timedelta):
            present = now.astimezone(UTC)
            return present + given if name in AHEAD else present - given
    except OverflowError as error:
        raise InvalidTime(f"{field} lies outside the calendar", field=field) from error
    text = given.isoformat() if isinstance(given, date) else given
    try:
        return msgspec.convert(text, _Zoned)
    except msgspec.ValidationError:
        meant = _read_words(text, field, now, ahead=name in AHEAD)
    if name not in ENDS:
        return in_zone(meant.since, now.tzinfo)
    if since and meant.recurs and meant.until <= since:
        meant = _read_words(text, field, in_zone(since, now.tzinfo), ahead=True)
    return in_zone(meant.until, now.tzinfo)


_Zoned = Annotated[datetime, msgspec.Meta(tz=True)]


def _read_words(text: str, field: str, now: datetime, *, ahead: bool) -> TypedTime:
    """Return the time that a text names, in the future if `ahead`. Raises `InvalidTime`."""
    try:
        meant = read_time(text, now, ahead=ahead)
    except AmbiguousDate as error:
        raise _ambiguous_time(text, field, error) from error
    if meant is None:
        raise _invalid_time(text, field)
    return meant


def _invalid_time(text: str, field: str) -> InvalidTime:
    """Return the error for a text that names no time, with examples for the field."""
    is_ahead = field.rpartition(".")[2] in AHEAD
    examples = (
        "tomorrow, 7d or 2027-03-09" if is_ahead else "yesterday, 7d or 2026-03-09"
    )
    return InvalidTime(
        f'{field}: "{_shorten_for_message(text)}" is not a valid time; try {examples}',
        field=field,
    )


def _ambiguous_time(text: str, field: str, error: AmbiguousDate) -> InvalidTime:
    """Return the error for a text that names several times, with its readings."""
    readings = " or ".join(error.readings)
    return InvalidTime(
        f'{field}: "{_shorten_for_message(text)}" can be read as {readings}; write the one you mean',
        field=field,
    )


def _shorten_for_message(text: str) -> str:
    """Return the beginning of a text on one line, for a message."""
    text = escape_invisible(text, one_line=True)
    return text if len(text) <= SHOWN_CHARS_MAX else f"{text[:SHOWN_CHARS_MAX]}…"


# ------------------------------------------------------------------ requests


def read_fields(
    kind: type[msgspec.Struct], given: object, *, now: datetime | None = None
) -> object:
    """Return the fields of a request with times in words turned into `datetime`.

    A value that cannot be a time stays as it is, for the request's own check. Raises `InvalidTime`.
    """
    return _read_request_times(kind, given, now=now or local_now(), place="")


def read_request(request: S, *, now: datetime | None = None) -> S:
    """Return a request with times in words turned into `datetime`. Raises `InvalidTime`."""
    return cast(
        "S",
        _read_request_times(type(request), request, now=now or local_now(), place=""),
    )


@cache
def _lists_of_requests(
    kind: type[msgspec.Struct],
) -> tuple[tuple[str, type[msgspec.Struct]], ...]:
    """Return the names of fields that hold lists of requests, with the type of their members."""
    return tuple(
        (field.name, member)
        for field in msgspec.structs.fields(kind)
        for part in union_members(field.type)
        if get_origin(part) is list
        for member in union_members(get_args(part)[0])
        if isinstance(member, type) and issubclass(member, msgspec.Struct)
    )


def _read_request_times(
    kind: type[msgspec.Struct], given: object, *, now: datetime, place: str
) -> object:
    """Return a request, or its fields, with all times read; anything else unchanged.

    `place` is the prefix of its fields in errors. Raises `InvalidTime`.
    """
    if isinstance(given, msgspec.Struct):
        values: Mapping[str, Any] = msgspec.structs.asdict(given)
        return msgspec.structs.replace(
            given, **_read_time_values(kind, values, now, place)
        )
    if isinstance(given, Mapping):
        return {**given, **_read_time_values(kind, given, now, place)}
    return given


def _read_time_values(
    kind: type[msgspec.Struct], values: Mapping[str, Any], now: datetime, place: str
) -> dict[str, object]:
    """Return the new values, by field, of fields that hold times or requests.

    Raises `InvalidTime`.
    """
    changes: dict[str, Any] = {}
    asked_at = values.get(ASKED_AT)
    if ASKED_AT in time_fields(kind) and isinstance(asked_at, GivenTime):
        now = read_given(asked_at, field=place + ASKED_AT, now=now)
    for name in sorted(time_fields(kind), key=ENDS.__contains__):  # `since` first
        value = values.get(name)
        if isinstance(value, GivenTime):
            since = changes.get("since")
            changes[name] = read_given(value, field=place + name, now=now, since=since)
    for name, member in _lists_of_requests(kind):
        requests = values.get(name)
        if isinstance(requests, list):
            changes[name] = [
                _read_request_times(
                    member, each, now=now, place=f"{place}{name}[{index}]."
                )
                for index, each in enumerate(requests)
            ]
    return changes
