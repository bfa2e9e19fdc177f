"""Spans of time that the matched groups of a time expression mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from mnemosyned.instants import in_zone, shift, shift_months
from mnemosyned.text.languages.tables import (
    ENGLISH_COUNTS,
    ENGLISH_MONTHS,
    WEEKDAY_NAMES,
)
from mnemosyned.text.rule_files import read_tables

_DAY = timedelta(days=1)
_WEEK = 7 * _DAY
WEEKDAYS_IN_TEXT = [name.lower() for name in WEEKDAY_NAMES]
COUNTS_IN_TEXT = ENGLISH_COUNTS | {"couple of": 2, "few": 3}
_TABLES = read_tables(__file__, "expressions.toml")
SEASONS: dict[str, int] = _TABLES["seasons"]
"""The first month of each season, in the northern hemisphere."""
HOURS: dict[str, tuple[int, int]] = _TABLES["hours"]
"""First and last hour of each part of a day; a night ends on the next day."""
THIRDS: dict[str, tuple[int, int]] = _TABLES["thirds"]
"""First and last day of each part of a month, which overlap."""
MONTH_DAY_STEPS = 3
"""Months looked through for one that has a 31st."""
ORDINALS: list[str] = _TABLES["nth"].split()
ORDINALS += [f"twenty-{nth}" for nth in ORDINALS[:9]] + ["thirtieth", "thirty-first"]
_DAYS_AHEAD = {
    "the day before yesterday": -2,
    "yesterday": -1,
    "last": -1,
    "tomorrow": 1,
    "the day after tomorrow": 2,
}
_TOLERANCE_DAYS = {"week": 3, "month": 15, "year": 100}
"""Days before and after that "three weeks ago" may mean, by the unit."""


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """A period of time: from `since` until just before `until`."""

    since: datetime
    until: datetime

    def with_margin(self) -> TimeSpan:
        """Return the span, longer by up to a week at its end and a day at its start.

        The margin depends on the span's length: people report events late.
        """
        margin = max(_DAY, min(self.until - self.since, 7 * _DAY))
        return TimeSpan(shift(self.since, -margin / 7), shift(self.until, margin))


def matched_spans(
    groups: Mapping[str, str], now: datetime, *, ahead: bool = False
) -> tuple[TimeSpan, ...]:
    """Return the spans in UTC that a match of a time expression means, mostly one.

    `groups` maps the names of its groups to lower-case text. The tuple is empty for a date that
    does not exist. With `ahead`, a weekday or a date without a year is the coming one. "next
    Friday" may mean two days.
    """
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    try:
        span = (
            _calendar_span(groups, today, ahead=ahead)
            or _counted_span(groups, now, today)
            or _named_span(groups, today, ahead=ahead)
        )
    except (ValueError, OverflowError):  # 31 April, or a year outside the calendar
        return ()
    if span is None:
        return ()
    spans = [span]
    sunday = shift(today, (6 - today.weekday()) * _DAY)
    is_next_weekday = "weekday" in groups and groups.get("step") == "next"
    if is_next_weekday and span.since <= sunday:  # half of all people mean a week later
        spans.append(TimeSpan(shift(span.since, _WEEK), shift(span.until, _WEEK)))
    in_utc = [
        TimeSpan(in_zone(meant.since, UTC), in_zone(meant.until, UTC))
        for meant in spans
    ]
    return tuple(meant for meant in in_utc if meant.since < meant.until)


def _calendar_span(
    groups: Mapping[str, str], today: datetime, *, ahead: bool
) -> TimeSpan | None:
    """Return the span of a date, month, season or year; None for another kind of expression."""
    if "season" in groups:
        return _season_span(groups, today)
    month = ENGLISH_MONTHS.get(groups.get("name", "")) or int(groups.get("month", 0))
    if month:
        return _month_span(groups, today, month, ahead=ahead)
    if day := _read_day_of_month(groups):
        return _month_day_span(today, day, ahead=ahead)
    return _year_span(today, int(groups["year"])) if "year" in groups else None


def _month_span(
    groups: Mapping[str, str], today: datetime, month: int, *, ahead: bool
) -> TimeSpan:
    """Return the span of a month, or of the day or the third of the month that is named."""
    day = _read_day_of_month(groups)
    year = int(groups.get("year", today.year))
    begin = today.replace(year=year, month=month, day=day or 1)
    end = shift(begin, _DAY) if day else shift_months(begin, 1)
    if "third" in groups:
        first, last = THIRDS[groups["third"]]
        end = min(end, shift(begin, last * _DAY))
        begin = shift(begin, (first - 1) * _DAY)
    if "year" in groups:
        return TimeSpan(begin, end)
    years = (end <= today) if ahead else -(begin > today)
    return TimeSpan(shift_months(begin, 12 * years), shift_months(end, 12 * years))


def _read_day_of_month(groups: Mapping[str, str]) -> int:
    """Return the number of the day of a month in a match's named groups, or 0 for none."""
    if "nth" in groups:
        return ORDINALS.index(groups["nth"]) + 1
    return int(groups.get("day", 0))


def _month_day_span(today: datetime, day: int, *, ahead: bool) -> TimeSpan | None:
    """Return the nearest day with a number in its month, as "the 26th"; None if no month has it."""
    first = today.replace(day=1)
    for step in range(MONTH_DAY_STEPS):
        month = shift_months(first, step if ahead else -step)
        begin = shift(month, (day - 1) * _DAY)
        fits = begin >= today if ahead else begin <= today
        if fits and begin.month == month.month:
            return TimeSpan(begin, shift(begin, _DAY))
    return None


def _season_span(groups: Mapping[str, str], today: datetime) -> TimeSpan:
    """Return the three months of a season, the latest that has begun unless a year is named."""
    begin = today.replace(month=SEASONS[groups["season"]], day=1)
    if "year" in groups:
        begin = begin.replace(year=int(groups["year"]))
    elif begin > today or (
        groups.get("step") == "last" and shift_months(begin, 3) > today
    ):
        begin = begin.replace(year=begin.year - 1)
    return TimeSpan(begin, shift_months(begin, 3))


def _counted_span(
    groups: Mapping[str, str], now: datetime, today: datetime
) -> TimeSpan | None:
    """Return the span of "three weeks ago" or "the last three weeks"; None without a count."""
    if "count" not in groups:
        return None
    number = groups["count"]
    count = int(number) if number.isdigit() else COUNTS_IN_TEXT[number]
    if "back" in groups:
        return TimeSpan(_shift_by_units(now, groups["back"], -count), now)
    if groups["ago"] == "day":
        day = today - count * _DAY
        return TimeSpan(day, shift(day, _DAY))
    middle = _shift_by_units(today, groups["ago"], -count)
    tolerance = _TOLERANCE_DAYS[groups["ago"]] * _DAY
    return TimeSpan(shift(middle, -tolerance), shift(middle, tolerance + _DAY))


def _named_span(
    groups: Mapping[str, str], today: datetime, *, ahead: bool
) -> TimeSpan | None:
    """Return the span of "yesterday", "Friday evening" or "last week"; None for other text."""
    if "unit" in groups:
        return _unit_span(groups["unit"], groups["step"], today)
    if "weekday" in groups:
        day = _nearest_weekday(groups, today, ahead=ahead)
    elif "tonight" in groups:
        day = today
    elif "word" in groups:
        day = today + _DAYS_AHEAD.get(groups["word"], 0) * _DAY
    else:
        return None
    part = groups.get("part") or ("night" if "tonight" in groups else "")
    first, last = HOURS.get(part, (0, 24))
    return TimeSpan(day + timedelta(hours=first), shift(day, timedelta(hours=last)))


def _nearest_weekday(
    groups: Mapping[str, str], today: datetime, *, ahead: bool
) -> datetime:
    """Return midnight of the day for "last Friday", "next Friday" or "Friday"."""
    days = (WEEKDAYS_IN_TEXT.index(groups["weekday"]) - today.weekday()) % 7
    step = groups.get("step")
    if step == "next":
        return shift(today, (days or 7) * _DAY)
    upcoming = step == "this" or (ahead and step != "last")
    if not upcoming and (days or step == "last"):
        days -= 7
    return shift(today, days * _DAY)


def _unit_span(unit: str, step: str, today: datetime) -> TimeSpan:
    """Return the span of a weekend, week, month or year: "this", "next" or "last", by `step`."""
    steps = {"this": 0, "next": 1}.get(step, -1)
    monday = today - today.weekday() * _DAY
    if unit == "weekend":
        saturday = monday + (5 + 7 * steps) * _DAY
        return TimeSpan(saturday, shift(saturday, 2 * _DAY))
    if unit == "week":
        first = monday + 7 * steps * _DAY
        return TimeSpan(first, shift(first, 7 * _DAY))
    if unit == "month":
        first = today.replace(day=1)
        return TimeSpan(shift_months(first, steps), shift_months(first, steps + 1))
    return _year_span(today, today.year + steps)


def _year_span(today: datetime, year: int) -> TimeSpan:
    """Return the span of a calendar year, in the time zone of `today`."""
    first = today.replace(year=year, month=1, day=1)
    return TimeSpan(first, shift_months(first, 12))


def _shift_by_units(moment: datetime, unit: str, count: int) -> datetime:
    """Return the moment `count` days, weeks, months or years, by `unit`, later; below 0 is earlier."""
    if unit in ("day", "week"):
        return shift(moment, timedelta(days=count * (7 if unit == "week" else 1)))
    return shift_months(moment, count * (12 if unit == "year" else 1))
