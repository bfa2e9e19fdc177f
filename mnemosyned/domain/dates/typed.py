"""Reads a time as people type it: `yesterday`, `18 Nov 10:00`, `7d`, `3 weeks ago`, `in 2 days`."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta, timezone, tzinfo
from typing import Literal

from mnemosyned.domain.dates.accents import with_accents
from mnemosyned.domain.dates.durations import read_duration
from mnemosyned.domain.dates.spans import TimeSpan
from mnemosyned.domain.dates.typed_days import AmbiguousDate, TypedDay, read_day
from mnemosyned.domain.instants import in_zone, shift, shift_months

CHARS_MAX = 100
_DAY = timedelta(days=1)
_ZONE = r"(?: ?(?P<zone>z|utc|gmt|(?:utc|gmt)?[+-]\d\d?(?::?\d\d)?))?"
_CLOCK = (
    r"(?:(?:at|@|um|gegen|à|a las?|alle|às|om|kl\.?) ?)?"
    r"(?P<hour>\d{1,2})(?:[:h](?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9}))?)?"
    r"(?: ?(?:uhr|(?P<half>[ap])\.?m\.?))?|(?: ?(?:uhr|(?P<half_alone>[ap])\.?m\.?)))"
    + _ZONE
)
_WITH_CLOCK = (
    rf"(?P<day>.*?)(?:(?:,? |(?<=\d)t)|^){_CLOCK}",
    rf"{_CLOCK},? (?:on |am |le |el |il )?(?P<day>.+)",
)
_OF_THE_SHELL = (
    r"(?:[^\W\d]{2,4},? )?([^\W\d]{3,9}) {1,2}(\d{1,2}) (\d\d:\d\d:\d\d)(?: (utc|gmt))? (\d{4})"
    r"(?: ([+-]\d{4}))?"
)
"""The form of `date` and `git log`: `mon nov 23 10:00:00 2026 +0100`."""
_DIGIT = re.compile(r"\d")
_NOW = frozenset("now jetzt maintenant ahora adesso ora agora nu".split())
_HALF_DAY_HOURS = 12
_INSTANT = timedelta(microseconds=1)
_ENDS = (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))


@dataclass(frozen=True, slots=True)
class TypedTime:
    """A time that was typed: an instant, where both ends are equal, or a stretch such as a day."""

    since: datetime
    until: datetime
    recurs: bool = False
    """Whether it names no year, week or day, so that another of its kind may be meant."""


def read_time(text: str, now: datetime, *, ahead: bool = False) -> TypedTime | None:
    """Return the time that a text means at `now`, in UTC; None for a text that is no time.

    `now` is aware, and its zone decides where a day begins. With `ahead`, what can be of the past
    or to come is to come: `friday`, `18 Nov`, `7d`. Raises `AmbiguousDate`.
    """
    words = _normalized(text)
    if not words:
        return None
    meant = _read(words, now, ahead=ahead)
    if meant is None and words.isascii():
        accented = with_accents(words)
        meant = _read(accented, now, ahead=ahead) if accented != words else None
    return _in_utc(meant) if meant else None


def _read(words: str, now: datetime, *, ahead: bool) -> TypedTime | None:
    try:
        return _whole(words, now, ahead=ahead)
    except AmbiguousDate:
        raise
    except (ValueError, OverflowError):  # 31 April, 25:00, year 0
        return None


def _whole(words: str, now: datetime, *, ahead: bool) -> TypedTime | None:
    if words in _NOW:
        return TypedTime(now, now)
    if moment := read_duration(words, now, ahead=ahead):
        return TypedTime(moment, moment)
    now = now.replace(fold=0)
    if moment_of_day := _clock(words, now, ahead=ahead):
        return moment_of_day
    day = read_day(words, now, ahead=ahead)
    return TypedTime(day.span.since, day.span.until, day.recurs) if day else None


def period_around(
    text: str, unit: Literal["day", "week", "month"], now: datetime
) -> TimeSpan | None:
    """Return the day, week or month in which a typed time begins, without its end; or None.

    Its ends are in UTC; days begin in the zone of `now`. Raises `AmbiguousDate`.
    """
    meant = read_time(text, now)
    if meant is None:
        return None
    day = in_zone(meant.since, now.tzinfo).replace(
        hour=0, minute=0, second=0, microsecond=0, fold=0
    )
    if unit == "month":
        first = day.replace(day=1)
        return _span(first, shift_months(first, 1))
    if unit == "week":
        monday = shift(day, -day.weekday() * _DAY)
        return _span(monday, shift(monday, 7 * _DAY))
    return _span(day, shift(day, _DAY))


def _span(first: datetime, last: datetime) -> TimeSpan:
    return TimeSpan(in_zone(first, UTC), in_zone(last, UTC))


def _normalized(text: str) -> str:
    """Return a text in lower case with single spaces; empty for one that is too long."""
    if len(text) > CHARS_MAX:
        return ""
    words = " ".join(unicodedata.normalize("NFKC", text).lower().split())
    if ":" in words and (match := re.fullmatch(_OF_THE_SHELL, words)):
        month, day, clock, utc, year, offset = match.groups()
        return f"{day} {month} {year} {clock} {utc or offset or ''}".strip()
    return words


def _in_utc(meant: TypedTime) -> TypedTime | None:
    """Return a time in UTC; None for an instant at an end of the calendar."""
    since, until = in_zone(meant.since, UTC), in_zone(meant.until, UTC)
    if since in _ENDS or since > until:
        return None
    return replace(meant, since=since, until=until)


# ------------------------------------------------------------ times of a day


def _clock(words: str, now: datetime, *, ahead: bool) -> TypedTime | None:
    """Read a time of day, alone or with a day before or after it."""
    if not _DIGIT.search(words):
        return None  # the patterns are compiled for those that may match
    for form in _WITH_CLOCK:
        if match := re.fullmatch(form, words):
            here = in_zone(now, _zone(match["zone"])) if match["zone"] else now
            day = match["day"].strip(" ,")
            moment = _at_clock(match, day, here, ahead=ahead)
            if moment is not None:
                return moment
    return None


def _at_clock(
    match: re.Match[str], words: str, now: datetime, *, ahead: bool
) -> TypedTime | None:
    """Read a day and put the clock on it: another day of its kind where this one is wrong."""
    clock = _time_of(match)
    kind = words or "today"
    day = read_day(kind, now, ahead=ahead)
    meant = _on_day(day, clock, now)
    if day is None or meant is None:
        return None
    recurs = day.recurs or not words
    has_others = recurs if ahead else day.recurs
    if has_others and _is_on_the_wrong_side(meant, now, ahead=ahead):
        from_there = shift(now, _DAY if ahead else -_DAY)
        meant = _on_day(read_day(kind, from_there, ahead=ahead), clock, now)
    return replace(meant, recurs=recurs) if meant else None


def _is_on_the_wrong_side(meant: TypedTime, now: datetime, *, ahead: bool) -> bool:
    """Whether a time is over that is to come, or is still to come."""
    return meant.until <= now if ahead else meant.since > now


def _time_of(match: re.Match[str]) -> time:
    """Return a time of day as it was typed. Raises `ValueError` for 25:00."""
    hour, half = int(match["hour"]), match["half"] or match["half_alone"]
    if half:
        if not 1 <= hour <= _HALF_DAY_HOURS:
            raise ValueError(match[0])
        hour = hour % _HALF_DAY_HOURS + (_HALF_DAY_HOURS if half == "p" else 0)
    minute, second = int(match["minute"] or 0), int(match["second"] or 0)
    micros = int((match["fraction"] or "0").ljust(6, "0")[:6])
    return time(hour, minute, second, micros)


def _on_day(day: TypedDay | None, clock: time, now: datetime) -> TypedTime | None:
    """Return the instant at which the clock reads so on a day; None for a longer stretch.

    A reading that comes twice, as the clock goes back, is a stretch of both. One that the clock
    leaps over is as much later.
    """
    if day is None:
        return None
    zone = now.tzinfo
    first = in_zone(day.span.since, zone)
    last = in_zone(shift(day.span.until, -_INSTANT), zone)
    if first.date() != last.date():
        return None
    reading = datetime.combine(first.date(), clock, zone)
    once = in_zone(reading, UTC)
    again = in_zone(reading.replace(fold=1), UTC)
    return TypedTime(once, max(once, again))


def _zone(name: str) -> tzinfo:
    """Return the zone of `Z`, `utc`, `+01:00` or `+1`."""
    offset = name.removeprefix("utc").removeprefix("gmt")
    if offset in ("", "z"):
        return UTC
    hours, minutes = offset[1:].replace(":", ""), "0"
    if len(hours) > 2:
        hours, minutes = hours[:-2], hours[-2:]
    by = timedelta(hours=int(hours), minutes=int(minutes))
    return timezone(-by if offset[0] == "-" else by)
