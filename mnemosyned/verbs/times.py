"""Times of a request as people give them: in words, as a date, or as so long ago."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeVar, cast

import msgspec

from mnemosyned.errors import InvalidTime
from mnemosyned.instants import in_zone
from mnemosyned.text.dates.questions import TimeSpan
from mnemosyned.text.dates.typed import AmbiguousDate, period_around, read_time
from mnemosyned.text.display import escape_line
from mnemosyned.verbs.request import time_fields

T = TypeVar("T")
G = TypeVar("G")
"""A request, or its fields."""

GivenTime = datetime | date | timedelta | str
"""What a caller may give for a time."""
ENDS = frozenset({"until", "valid_until"})
"""Fields with the end of a period: a day or month named there is included."""
AHEAD = frozenset({"valid_until"})
"""Fields whose times are in the future."""
ASKED_AT = "asked_at"
"""Field with the time relative to which the other times of a request are read."""
SHOWN_CHARS_MAX = 60
ZONE_FILE = "/etc/localtime"
"""The link that is replaced when the time zone of the machine is changed."""


def local_zone() -> tzinfo:
    """Return this machine's time zone; without a name or table of the zone, the present offset from UTC."""
    changed_ns = 0
    with suppress(FileNotFoundError):  # as in a container
        changed_ns = os.lstat(ZONE_FILE).st_ctime_ns
    try:
        return _read_zone(os.environ.get("TZ"), changed_ns)
    except (LookupError, ValueError, OSError):
        return cast("tzinfo", datetime.now(UTC).astimezone().tzinfo)


@lru_cache(maxsize=1)
def _read_zone(_variable: str | None, _changed_ns: int) -> tzinfo:
    """Return this machine's time zone, cached until `TZ` or the time of the zone's file is another."""
    from tzlocal import reload_localzone  # noqa: PLC0415 only for a time in words

    time.tzset()
    return reload_localzone()


def local_now() -> datetime:
    """Return the present time in the time zone of this machine."""
    return datetime.now(UTC).astimezone(local_zone())


def read_period(
    text: str, unit: Literal["day", "week", "month"], now: datetime
) -> TimeSpan:
    """Return the day, week or month (`unit`) in which a time in words, such as "last May", begins.

    Both ends are in UTC, and the later end is excluded. Raises `InvalidTime`, which names `when`.
    """
    return _require_time(period_around, text, unit, now, field="when")


def read_given(
    given: GivenTime, *, field: str, now: datetime, since: datetime | None = None
) -> datetime:
    """Return the instant that a caller gave as a time, duration or text, read at `now`.

    A time without a zone is in the zone of `now`. The name of the field says which end of a day is
    meant, and whether a duration is in the past or the future. A weekday or a date without a year
    that ends a span, and is over before `since`, is read as the next one. Raises `InvalidTime`.
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
        meant = _require_time(read_time, text, now, field=field, ahead=name in AHEAD)
    if name not in ENDS:
        return in_zone(meant.since, now.tzinfo)
    if name in AHEAD and meant.until <= (since or now):
        raise InvalidTime(
            f"{field} is over before the memory begins; try tomorrow, 7d or 2027-03-09",
            field=field,
        )
    if since and meant.recurs and meant.until <= since:
        later = in_zone(since, now.tzinfo)
        meant = _require_time(read_time, text, later, field=field, ahead=True)
    return in_zone(meant.until, now.tzinfo)


_Zoned = Annotated[datetime, msgspec.Meta(tz=True)]


def _require_time(
    read: Callable[..., T | None], text: str, *where: object, field: str, **how: object
) -> T:
    """Return the time that the parser `read` finds in a text. Raises `InvalidTime` if there is none.

    `where` and `how` are further arguments of `read`. The error has examples for `field`; it is
    also raised if a date may mean several days.
    """
    examples = (
        "tomorrow, 7d or 2027-03-09"
        if field.rpartition(".")[2] in AHEAD
        else "yesterday, 7d or 2026-03-09"
    )
    problem = f"is not a valid time; try {examples}"
    try:
        meant = read(text, *where, **how)
    except AmbiguousDate as error:
        meant = None
        readings = " or ".join(error.readings)
        problem = f"can be read as {readings}; write the one you mean"
    if meant is None:
        shown = escape_line(text)
        if len(shown) > SHOWN_CHARS_MAX:
            shown = f"{shown[:SHOWN_CHARS_MAX]}…"
        raise InvalidTime(f'{field}: "{shown}" {problem}', field=field)
    return meant


def read_request_times(
    kind: type[msgspec.Struct],
    given: G,
    *,
    now: datetime | None = None,
    place: str = "",
) -> G:
    """Return a request, or a mapping of its fields, with times in words turned into `datetime`.

    Anything else is returned unchanged. `kind` is the type of the request. Values that cannot be times stay,
    to be refused later. `place` is the prefix of fields in errors. Raises `InvalidTime`.
    """
    now = now or local_now()
    if isinstance(given, msgspec.Struct):
        values = msgspec.structs.asdict(given)
        read = _read_time_values(kind, values, now, place)
        return cast("G", msgspec.structs.replace(given, **read))
    if isinstance(given, Mapping):
        return cast("G", {**given, **_read_time_values(kind, given, now, place)})
    return given


def _read_time_values(
    kind: type[msgspec.Struct], values: Mapping[str, Any], now: datetime, place: str
) -> dict[str, object]:
    """Return {field: new value} for fields that hold times in words, or requests with such times.

    Times are in the request's own `zone`, if it has one, or in that of `now`. `place` is the prefix of
    the fields in errors. Raises `InvalidTime`.
    """
    changes: dict[str, Any] = {}
    asked_at = values.get(ASKED_AT)
    if ASKED_AT in time_fields(kind) and isinstance(asked_at, GivenTime):
        now = read_given(asked_at, field=place + ASKED_AT, now=now)
    if isinstance(zone := values.get("zone"), str):
        from zoneinfo import ZoneInfo  # noqa: PLC0415 as above

        # An unknown zone is refused by the service.
        with suppress(LookupError, ValueError, OSError):
            now = now.astimezone(ZoneInfo(zone))
    for name in sorted(time_fields(kind), key=ENDS.__contains__):  # `since` first
        value = values.get(name)
        if isinstance(value, GivenTime):
            since = changes.get("since") or changes.get("created_at")
            changes[name] = read_given(value, field=place + name, now=now, since=since)
    for name, member in getattr(kind, "nested", {}).items():
        requests = values.get(name)
        if isinstance(requests, list):
            changes[name] = [
                read_request_times(
                    member, each, now=now, place=f"{place}{name}[{index}]."
                )
                for index, each in enumerate(requests)
            ]
    return changes
