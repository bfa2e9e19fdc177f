"""Reads a time as people type it: `yesterday`, `18 Nov 10:00`, `2026-11`, `7d`, `in 2 Tagen`.

Words may be typed without the accents of their language: `manana`, `uebermorgen`, `fevrier`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Literal

from mnemosyned.instants import in_zone, shift, shift_months
from mnemosyned.text.dates.questions import time_rules, translate_times
from mnemosyned.text.dates.spans import TimeSpan, matched_spans
from mnemosyned.text.languages.tables import (
    COUNTS,
    ENGLISH_MONTHS,
    LANGUAGES,
    MONTH_NAMES,
    MONTHS,
    UNITS,
    WEEKDAY_NAMES,
    WEEKDAYS,
    Language,
)
from mnemosyned.text.stems import WORD

_LONG_WORD = re.compile(r"[^\W\d_]{3,}")
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"})


def with_accents(words: str) -> str:
    """Return words in lower case with the accents of the words for times that they begin with."""
    pattern, accented = _accent_table()
    return pattern.sub(lambda match: accented[match[0]], words)


@lru_cache(maxsize=1)
def _accent_table() -> tuple[re.Pattern[str], dict[str, str]]:
    """Return the words with accents by their spellings without, and the pattern that finds them."""
    accented: dict[str, str] = {}
    for language in LANGUAGES:
        for word in _LONG_WORD.findall(" ".join(_time_words(language))):
            if not word.isascii():
                accented.setdefault(_without_accents(word), word)
                accented.setdefault(_without_accents(word.translate(_UMLAUTS)), word)
    longest_first = sorted(filter(str.isascii, accented), key=len, reverse=True)
    return re.compile(rf"\b(?:{'|'.join(longest_first)})"), accented


def _time_words(language: Language) -> Iterator[str]:
    """Yield the texts of a language in which words for times stand."""
    yield from (*language.months, *language.weekdays, *language.counts)
    if grammar := language.times:
        yield from (*grammar.phrases.values(), *grammar.units.values())
        yield from (grammar.last_before, grammar.last_after)
        yield from (grammar.next_before, grammar.next_after)


def _without_accents(word: str) -> str:
    decomposed = unicodedata.normalize("NFD", word)
    return "".join(char for char in decomposed if not unicodedata.combining(char))


_NUMBERS = {**COUNTS, "few": 3, "half a": 0.5, "half an": 0.5}
_DIGIT = re.compile(r"\d")
_PAST, _FUTURE = -1, 1
_ENGLISH_UNITS = {
    "second": "s|secs?|seconds?",
    "minute": "m|mins?|minutes?",
    "hour": "h|hrs?|hours?",
    "day": "d|days?",
    "week": "w|wks?|weeks?",
    "month": "mo|mths?|months?",
    "year": "y|yrs?|years?",
}
_UNIT_LENGTHS = {
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(weeks=1),
}
_UNIT_MONTHS = {"month": 1, "year": 12}
_OF_THE_CALENDAR = ("day", "week")
"""Units that keep the clock's reading over a change of the clock."""
_DIGITS_MAX = 6


def read_duration(text: str, now: datetime, *, ahead: bool) -> datetime | None:
    """Return the instant that a duration in lower case counts to; None for any other text.

    It counts back from now, or with `ahead` forward, unless "ago", "in" or a sign say which.
    """
    if not (_DIGIT.search(text) or _NUMBERS.keys() & text.split()):
        return None  # the patterns are compiled for those that may match
    match = _duration_pattern().fullmatch(text)
    if match is None or (match["on"] and match["ago"]):
        return None
    way = _direction(match, ahead=ahead)
    moment = now
    for part in _amount_pattern().finditer(match["parts"]):
        moment = _add_amount(moment, part, way)
    return moment


def _direction(match: re.Match[str], *, ahead: bool) -> int:
    """Whether a duration counts forward or back, by its own words first."""
    if match["back"] or match["ago"]:
        return _PAST
    return _FUTURE if ahead or match["on"] or match["later"] else _PAST


@lru_cache(maxsize=1)
def _duration_pattern() -> re.Pattern[str]:
    grammars = [language.times for language in LANGUAGES if language.times]
    back = _alternatives(["-", *(grammar.ago_before for grammar in grammars)])
    on = _alternatives([r"\+", "in", *(grammar.ahead_before for grammar in grammars)])
    ago = _alternatives(["ago", *(grammar.ago_after for grammar in grammars)])
    one = _amount_pattern().pattern
    # A bound on the parts: nobody writes more, and each costs a search.
    unnamed = re.sub(r"\?P<\w+>", "?:", one)
    return re.compile(
        rf"(?:(?P<back>{back}) ?|(?P<on>{on}) ?)?"
        rf"(?P<parts>{unnamed}(?:(?:,? and |, ?| )?{unnamed}){{0,5}})"
        rf"(?: (?:(?P<ago>{ago})|(?P<later>from now|later)))?"
    )


@lru_cache(maxsize=1)
def _amount_pattern() -> re.Pattern[str]:
    """The pattern of a number and its unit."""
    numbers = _alternatives(sorted(map(re.escape, _NUMBERS), key=len, reverse=True))
    units = "|".join(f"(?P<{unit}>{_unit_pattern(unit)})" for unit in UNITS)
    number = rf"(?P<figures>\d{{1,{_DIGITS_MAX}}}(?:\.\d{{1,3}})?) ?|(?:a )?(?P<word>{numbers})(?: of)? "
    return re.compile(rf"(?:{number})(?:{units})(?![^\W\d_])")


def _unit_pattern(unit: str) -> str:
    others = (
        grammar.units.get(unit, "")
        for grammar in (language.times for language in LANGUAGES)
        if grammar
    )
    return _alternatives([_ENGLISH_UNITS[unit], *others])


def _alternatives(patterns: Iterable[str]) -> str:
    return "|".join(dict.fromkeys(filter(None, patterns)))


def _add_amount(moment: datetime, part: re.Match[str], way: int) -> datetime:
    """Move an instant by one number of units. Raises `ValueError` for half a month."""
    unit = next(unit for unit in UNITS if part[unit])
    number = float(part["figures"] or _NUMBERS[part["word"]])
    if unit in _UNIT_MONTHS:
        if number % 1:
            raise ValueError(part[0])
        return shift_months(moment, way * int(number) * _UNIT_MONTHS[unit])
    step = way * number * _UNIT_LENGTHS[unit]
    if unit in _OF_THE_CALENDAR and not number % 1:
        return shift(moment, step)
    return in_zone(shift(in_zone(moment, UTC), step), moment.tzinfo)


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


CHARS_MAX = 100

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
    meant = _read_or_none(words, now, ahead=ahead)
    if meant is None and words.isascii():
        accented = with_accents(words)
        meant = _read_or_none(accented, now, ahead=ahead) if accented != words else None
    return _in_utc(meant) if meant else None


def _read_or_none(words: str, now: datetime, *, ahead: bool) -> TypedTime | None:
    try:
        return _read_normalized(words, now, ahead=ahead)
    except AmbiguousDate:
        raise
    except (ValueError, OverflowError):  # 31 April, 25:00, year 0
        return None


def _read_normalized(words: str, now: datetime, *, ahead: bool) -> TypedTime | None:
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
