"""Reads days, weeks, months and years as people type them: `2026-11`, `18.11.`, `last monday`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from mnemosyned.domain.dates.names import (
    ENGLISH_MONTHS,
    MONTH_NAMES,
    MONTHS,
    WEEKDAY_NAMES,
    WEEKDAYS,
)
from mnemosyned.domain.dates.questions import time_rules
from mnemosyned.domain.dates.spans import TimeSpan, matched_spans
from mnemosyned.domain.dates.translated import translate_times
from mnemosyned.domain.instants import in_zone, shift, shift_months
from mnemosyned.domain.text.stemming import WORD

LEAP_YEARS = 8
"""Years within which there is a 29 February."""
_CENTURY = 2000
_MONTHS_OF_A_YEAR = 12
_DAY = timedelta(days=1)
_FEBRUARY = 2
_WORD = re.compile(r"[^\W\d_]+")
_STOP = re.compile(r"\.(?= |\Z)")
_IN_MONTH = re.compile(r"\Ain (?=\S+ \d{4}\Z)")
"""What the translation puts before a month with its year, and no rule expects."""
_FILLERS = re.compile(
    r"(?:(?:on|the|at|since|from|until|till|by|am|den|dem|der|vom|bis|seit|ab|le|la|el|il|du"
    r"|au|al|dal|depuis|desde|hasta|om|op|på|em|zum|de|d[ií]a|no|с|до|з|od|do) )+"
)
"""Words before a time that say nothing of it."""
_ARTICLES = ("the ", "in ", "on the ", "le ", "la ", "el ", "il ", "l'")
"""Words that a rule may expect and people leave out: `day before yesterday`, `semaine dernière`."""


@dataclass(frozen=True, slots=True)
class TypedDay:
    """A day, week, month or year that somebody typed."""

    span: TimeSpan
    recurs: bool = False
    """Whether it names no year or week, so that another of its kind may be meant."""


class AmbiguousDate(ValueError):
    """A date in figures that two countries read as two days."""

    def __init__(self, *readings: str) -> None:
        super().__init__(" or ".join(readings))
        self.readings = readings


def read_day(words: str, now: datetime, *, ahead: bool) -> TypedDay | None:
    """Return the day or longer stretch that words in lower case mean; None for any others.

    Raises `AmbiguousDate`, and `ValueError` for a date that does not exist.
    """
    figures = _FIGURES if words[-1:].isdigit() or words.endswith(".") else ()
    for pattern, reader in figures:
        if match := re.fullmatch(pattern, words, re.ASCII):
            return reader(match, now, ahead)
    return _in_words(words, now, ahead=ahead)


# ------------------------------------------------------------ dates in figures


def _year(match: re.Match[str], now: datetime, _: bool) -> TypedDay:  # noqa: FBT001
    first = _midnight(now).replace(year=int(match["year"]), month=1, day=1)
    return TypedDay(TimeSpan(first, shift_months(first, _MONTHS_OF_A_YEAR)))


def _month(match: re.Match[str], now: datetime, _: bool) -> TypedDay:  # noqa: FBT001
    year, month = int(match["year"]), int(match["month"])
    first = _midnight(now).replace(year=year, month=month, day=1)
    return TypedDay(TimeSpan(first, shift_months(first, 1)))


def _week(match: re.Match[str], now: datetime, _: bool) -> TypedDay:  # noqa: FBT001
    monday = datetime.fromisocalendar(int(match["year"]), int(match["week"]), 1)
    first = monday.replace(tzinfo=now.tzinfo)
    return TypedDay(TimeSpan(first, shift(first, 7 * _DAY)))


def _date(match: re.Match[str], now: datetime, ahead: bool) -> TypedDay:  # noqa: FBT001
    """Read a date whose order of day and month is certain, with or without a year."""
    day, month = int(match["day"]), int(match["month"])
    if year := match["year"]:
        return _one_day(now, _full_year(year), month, day)
    if not 1 <= month <= _MONTHS_OF_A_YEAR:
        raise ValueError(match[0])
    named = _named(f"{day} {MONTH_NAMES[month - 1].lower()}", now, ahead=ahead)
    if named is None:
        raise ValueError(match[0])
    return named


def _slashed(match: re.Match[str], now: datetime, _: bool) -> TypedDay:  # noqa: FBT001
    """Read `18/11/2026` and `11/18/2026`, of which only one can be a date."""
    first, second, year = int(match[1]), int(match[2]), _full_year(match[3])
    if first == second or second > _MONTHS_OF_A_YEAR:
        return _one_day(now, year, first, second)
    if first > _MONTHS_OF_A_YEAR:
        return _one_day(now, year, second, first)
    raise AmbiguousDate(
        f"{year:04}-{first:02}-{second:02}", f"{year:04}-{second:02}-{first:02}"
    )


def _full_year(figures: str) -> int:
    return int(figures) + (_CENTURY if len(figures) == 2 else 0)


def _one_day(now: datetime, year: int, month: int, day: int) -> TypedDay:
    first = _midnight(now).replace(year=year, month=month, day=day)
    return TypedDay(TimeSpan(first, shift(first, _DAY)))


def _midnight(now: datetime) -> datetime:
    return now.replace(hour=0, minute=0, second=0, microsecond=0)


FigureReader = Callable[[re.Match[str], datetime, bool], TypedDay]
_D = r"(?P<day>\d{1,2})"
_M = r"(?P<month>\d{1,2})"
_FIGURES: tuple[tuple[str, FigureReader], ...] = (
    (rf"(?P<year>\d{{4}})([-/.]){_M}\2{_D}", _date),
    (rf"(?P<year>\d{{4}})[-/.]{_M}", _month),
    (r"(?P<year>(?:1[6-9]|2\d)\d\d)", _year),
    (r"(?P<year>\d{4})-?w(?P<week>\d{1,2})", _week),
    (r"(?P<year>\d{4})(?P<month>\d\d)(?P<day>\d\d)", _date),
    (rf"{_D}\. ?{_M}\.(?: ?(?P<year>\d{{4}}|\d\d))?", _date),
    (r"(\d{1,2})/(\d{1,2})/(\d{4}|\d\d)", _slashed),
    (r"(\d{1,2})-(\d{1,2})-(\d{4})", _slashed),
)
"""Forms of dates in figures, and what reads each."""


# ------------------------------------------------------------- dates in words


def _in_words(words: str, now: datetime, *, ahead: bool) -> TypedDay | None:
    """Read words of any language, with or without an article, a preposition or a weekday."""
    bare = _FILLERS.sub("", words)
    # Most are English, or names and numbers alone: the translation is compiled for the others.
    for form in (words, bare):
        if day := _named(_with_english_names(form), now, ahead=ahead):
            return day
    for form in (words, bare, *(f"{article}{bare}" for article in _ARTICLES)):
        if day := _named(_in_english(form), now, ahead=ahead):
            return day
    weekday, _, date = bare.partition(" ")
    number = WEEKDAYS.get(weekday.rstrip(",."))
    if number is None or not date:
        return None
    day = read_day(date, now, ahead=ahead)
    return day if day and _weekday_of(day, now) == number else None


def _weekday_of(day: TypedDay, now: datetime) -> int:
    return in_zone(day.span.since, now.tzinfo).weekday()


def _in_english(words: str) -> str:
    """Return a time in words as the rules for questions expect it."""
    return _IN_MONTH.sub("", _with_english_names(translate_times(words).lower()))


def _with_english_names(words: str) -> str:
    return _STOP.sub("", _WORD.sub(_english_name, words))


def _english_name(match: re.Match[str]) -> str:
    """Return the English name of a month or weekday; any other word as it is."""
    word = match[0]
    if word in ENGLISH_MONTHS:
        return word
    if word in MONTHS:
        return MONTH_NAMES[MONTHS[word] - 1].lower()
    return WEEKDAY_NAMES[WEEKDAYS[word]].lower() if word in WEEKDAYS else word


def _named(words: str, now: datetime, *, ahead: bool) -> TypedDay | None:
    """Read words in English, by the rules that read questions."""
    for rule in time_rules(set(WORD.findall(words))):
        match = rule.fullmatch(words)
        if match is None:
            continue
        groups = {name: text for name, text in match.groupdict().items() if text}
        if not groups.get("day", "1").strip("0"):
            return None  # the rules read a day 0 as none
        if _is_leap_day(groups):
            return _leap_day(words, now, ahead=ahead)
        if spans := matched_spans(groups, now, ahead=ahead):
            return TypedDay(spans[0], _recurs(groups))
    return None


def _recurs(groups: Mapping[str, str]) -> bool:
    dated = "name" in groups and "year" not in groups
    return dated or ("weekday" in groups and groups.get("step", "on") == "on")


def _is_leap_day(groups: Mapping[str, str]) -> bool:
    is_february = ENGLISH_MONTHS.get(groups.get("name", "")) == _FEBRUARY
    return is_february and groups.get("day") == "29" and "year" not in groups


def _leap_day(words: str, now: datetime, *, ahead: bool) -> TypedDay | None:
    """Read 29 February without a year: the nearest one that there is."""
    for years in range(LEAP_YEARS + 1):
        year = now.year + (years if ahead else -years)
        day = _named(f"{words} {year}", now, ahead=ahead)
        if day and (day.span.until > now if ahead else day.span.since <= now):
            return TypedDay(day.span, recurs=True)
    return None
