"""Times inside records: read in their usual spellings and shown in the user's zone."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo

from mnemosyned.domain.dates.relative import format_period
from mnemosyned.domain.instants import in_zone
from mnemosyned.domain.text.matching import first_match

Moment = datetime | date
"""A time with a zone, a time of the wall clock, or a day."""

STAMP = r"\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?"
"""The pattern of a time as phones write it into their rows."""

_DAY = r"(?P<year>\d{4})[-/.]?(?P<month>\d\d)[-/.]?(?P<day>\d\d)"
_CLOCK = r"(?P<hour>\d\d):?(?P<minute>\d\d)(?::?(?P<second>\d\d))?(?:[.,]\d+)?"
_OFFSET = r"(?P<offset>Z|UTC|GMT|[+-]\d\d:?\d\d)"
_ISO = re.compile(rf"{_DAY}(?:[T ]{_CLOCK}\s?{_OFFSET}?)?")
_MONTHS = dict(
    zip(
        "jan feb mar apr may jun jul aug sep oct nov dec".split(),
        range(1, 13),
        strict=True,
    )
)
_RFC = re.compile(
    r"(?:\w{3},? )?(?P<day>\d{1,2}) (?P<name>\w{3})\w* (?P<year>\d{4})"
    rf"(?:,? {_CLOCK}(?: {_OFFSET})?)?(?: \(\w+\))?"
)
_GIT = re.compile(
    rf"\w{{3}} (?P<name>\w{{3}}) +(?P<day>\d{{1,2}}) {_CLOCK} (?P<year>\d{{4}})(?: {_OFFSET})?"
)
_EUROPEAN = re.compile(
    rf"(?P<day>\d{{1,2}})\.(?P<month>\d{{1,2}})\.(?P<year>\d{{4}})(?:,? (?:um )?{_CLOCK})?"
)
_FORMS = (_ISO, _RFC, _GIT, _EUROPEAN)
_STAMP = re.compile(STAMP)
_EPOCH = re.compile(r"1\d{9}(?:\d{3})?(?:\.\d+)?")


def parse_moment(text: str) -> Moment | None:
    """Return the time that the whole text spells, or None."""
    match = first_match(_FORMS, text.strip())
    return _build(match) if match else None


def has_stamp_in_first_paragraph(text: str) -> bool:
    """Tell whether a text may be a row of a phone, which has its time before any gap."""
    stamp = _STAMP.search(text)
    return stamp is not None and "\n\n" not in text[: stamp.start()]


def parse_epoch(text: str) -> Moment | None:
    """Return the time of a count of seconds or milliseconds of our years, or None."""
    if not _EPOCH.fullmatch(text):
        return None
    count = float(text)
    return datetime.fromtimestamp(count / 1000 if count > 1e11 else count, UTC)


def show_moment(moment: Moment, zone: tzinfo) -> str:
    """Return a time as `Tue 10 March 2026, 08:20`."""
    if not isinstance(moment, datetime):
        return format_period(moment, moment)
    local = localized(moment, zone)
    return f"{format_period(local.date(), local.date())}, {local:%H:%M}"


def show_span(start: Moment, end: Moment | None, zone: tzinfo) -> str:
    """Return both ends of a span, the day once where it is the same."""
    if end is None or not _ordered(start, end):
        return show_moment(start, zone)
    if isinstance(start, datetime) and isinstance(end, datetime):
        first, last = localized(start, zone), localized(end, zone)
        if first == last:
            return show_moment(start, zone)
        if first.date() == last.date():
            return f"{show_moment(start, zone)}–{last:%H:%M}"
        return f"{show_moment(start, zone)} – {show_moment(end, zone)}"
    return format_period(_day(start), _day(end))


def show_clock(moment: Moment | None, zone: tzinfo) -> str:
    """Return the time of day as `08:20`, empty for a day."""
    if not isinstance(moment, datetime):
        return ""
    return f"{localized(moment, zone):%H:%M}"


def localized(moment: datetime, zone: tzinfo) -> datetime:
    """Return the reading of the zone's clock; a wall-clock time stays as it is."""
    return moment if moment.tzinfo is None else in_zone(moment, zone)


def previous_day(day: date) -> date:
    """Return the day before, for ends that a format excludes."""
    return day - timedelta(1) if day > date.min else day


def _ordered(start: Moment, end: Moment) -> bool:
    if isinstance(start, datetime) != isinstance(end, datetime):
        return False
    try:
        return end >= start
    except TypeError:  # one has a zone and one has none
        return False


def _day(moment: Moment) -> date:
    return moment.date() if isinstance(moment, datetime) else moment


def _build(match: re.Match[str]) -> Moment | None:
    parts = match.groupdict("")
    name = parts.get("name", "").lower()
    month = _MONTHS.get(name, 0) if name else int(parts["month"])
    try:
        day = date(int(parts["year"]), month, int(parts["day"]))
        if not parts["hour"]:
            return day
        return datetime(
            day.year,
            day.month,
            day.day,
            int(parts["hour"]),
            int(parts["minute"]),
            int(parts["second"] or 0),
            tzinfo=_offset(parts.get("offset", "")),
        )
    except ValueError:
        return None


def _offset(text: str) -> timezone | None:
    if not text:
        return None
    if text in {"Z", "UTC", "GMT"}:
        return UTC
    minutes = int(text[1:3]) * 60 + int(text[-2:])
    return timezone(timedelta(minutes=-minutes if text[0] == "-" else minutes))
