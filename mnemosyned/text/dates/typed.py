"""Reads a time as people type it: `yesterday`, `18 Nov 10:00`, `2026-11`, `7d`, `in 2 Tagen`.

Words may be typed without the accents of their language: `manana`, `uebermorgen`, `fevrier`.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta, timezone, tzinfo
from functools import lru_cache
from itertools import chain
from typing import Literal

from mnemosyned.instants import in_zone, shift, shift_months
from mnemosyned.text import rule_files, terms
from mnemosyned.text.dates import questions
from mnemosyned.text.languages import tables

CHARS_MAX = 100

_PATTERNS = rule_files.read_patterns(__file__, "typed.toml")
_WITH_CLOCK = (_PATTERNS["day_and_clock"], _PATTERNS["clock_and_day"])
_FIGURES: list[str] = rule_files.read_tables(__file__, "typed.toml")["figures"]
"""Forms of dates in figures."""

_NOW = frozenset("now jetzt maintenant ahora adesso ora agora nu".split())
_HALF_DAY_HOURS = 12
_INSTANT = timedelta(microseconds=1)
_CALENDAR_ENDS = (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))


@dataclass(frozen=True, slots=True)
class TypedTime:
    """A typed time: an instant, with both ends equal, or a span such as a day."""

    since: datetime
    until: datetime
    recurs: bool = False
    """Whether no year, week or day is named, so that another time of its kind may be meant."""


class AmbiguousDate(ValueError):
    """A date in figures that means different days in different countries."""

    def __init__(self, *readings: str) -> None:
        """Keep the dates, in ISO form, that the typed date may mean."""
        super().__init__(" or ".join(readings))
        self.readings = readings


def read_time(text: str, now: datetime, *, ahead: bool = False) -> TypedTime | None:
    """Return the span of a typed time, in UTC, or None if the text is no time.

    A time of day or a duration gives a span whose ends are equal. `now` is aware, and its zone decides
    where a day begins. With `ahead`, a time that could be past or future is future: `friday`, `18 Nov`,
    `7d`. Raises `AmbiguousDate`.
    """
    words = _normalize_text(text)
    if not words:
        return None
    meant = _read_normalized_time(words, now, ahead=ahead)
    if meant is None and words.isascii():
        # As in `marz`, for `märz`.
        pattern, accented = _build_accent_table()
        words = pattern.sub(lambda match: accented[match[0]], words)
        meant = _read_normalized_time(words, now, ahead=ahead)
    if meant is None:
        return None
    since, until = in_zone(meant.since, UTC), in_zone(meant.until, UTC)
    if since in _CALENDAR_ENDS or since > until:
        return None
    return replace(meant, since=since, until=until)


def _read_normalized_time(
    words: str, now: datetime, *, ahead: bool
) -> TypedTime | None:
    """Return the time of a text from `_normalize_text`; None if it is no time, as 31 April."""
    try:
        if words in _NOW:
            return TypedTime(now, now)
        if moment := read_duration(words, now, ahead=ahead):
            return TypedTime(moment, moment)
        now = now.replace(fold=0)
        return _read_clock(words, now, ahead=ahead) or read_day(words, now, ahead=ahead)
    except AmbiguousDate:
        raise
    except (ValueError, OverflowError):  # 31 April, 25:00, year 0
        return None


def period_around(
    text: str, unit: Literal["day", "week", "month"], now: datetime
) -> questions.TimeSpan | None:
    """Return the day, week or month (`unit`) in which a typed time begins; None if it is no time.

    The ends are in UTC; days begin in the zone of `now`. Raises `AmbiguousDate`.
    """
    meant = read_time(text, now)
    if meant is None:
        return None
    day = in_zone(meant.since, now.tzinfo).replace(
        hour=0, minute=0, second=0, microsecond=0, fold=0
    )
    first, end = day, shift(day, _DAY)
    if unit == "month":
        first = day.replace(day=1)
        end = shift_months(first, 1)
    elif unit == "week":
        first = shift(day, -day.weekday() * _DAY)
        end = shift(first, 7 * _DAY)
    return questions.TimeSpan(in_zone(first, UTC), in_zone(end, UTC))


def _normalize_text(text: str) -> str:
    """Return a text in lower case with single spaces, or an empty text if it is too long.

    The output of `date` and `git log` is brought into the order day, month, year, time.
    """
    if len(text) > CHARS_MAX:
        return ""
    words = " ".join(unicodedata.normalize("NFKC", text).lower().split())
    if ":" in words and (match := re.fullmatch(_PATTERNS["shell"], words)):
        month, day, clock, utc, year, offset = match.groups()
        return f"{day} {month} {year} {clock} {utc or offset or ''}".strip()
    return words


def _read_clock(words: str, now: datetime, *, ahead: bool) -> TypedTime | None:
    """Return the instant of a typed time of day, alone or with a day; None for other words."""
    if not _DIGIT.search(words):
        return None  # the patterns are compiled for those that may match
    for form in _WITH_CLOCK:
        if match := re.fullmatch(form, words):
            here = in_zone(now, _offset_zone(match["zone"])) if match["zone"] else now
            day = match["day"].strip(" ,")
            moment = _read_day_at_clock(match, day, here, ahead=ahead)
            if moment is not None:
                return moment
    return None


def _read_day_at_clock(
    match: re.Match[str], words: str, now: datetime, *, ahead: bool
) -> TypedTime | None:
    """Return the instant of a matched time of day on the day that `words` name, or today; else None.

    A day that recurs, such as "friday", is chosen so that the instant is the latest in the past or, with
    `ahead`, the next in the future. Without words but with `ahead`, a past time means tomorrow.
    """
    clock = _parse_clock_time(match)
    kind = words or "today"
    day = read_day(kind, now, ahead=ahead)
    meant = _instant_at_clock(day, clock, now)
    if day is None or meant is None:
        return None
    recurs = day.recurs or not words
    has_others = recurs if ahead else day.recurs
    is_on_wrong_side = meant.until <= now if ahead else meant.since > now
    if has_others and is_on_wrong_side:
        from_there = shift(now, _DAY if ahead else -_DAY)
        meant = _instant_at_clock(read_day(kind, from_there, ahead=ahead), clock, now)
    return replace(meant, recurs=recurs) if meant else None


def _parse_clock_time(match: re.Match[str]) -> time:
    """Return the time of day of a match, in 12 or 24 hours. Raises `ValueError` for 25:00."""
    hour, half = int(match["hour"]), match["half"] or match["half_alone"]
    if half:
        if not 1 <= hour <= _HALF_DAY_HOURS:
            raise ValueError(match[0])
        hour = hour % _HALF_DAY_HOURS + (_HALF_DAY_HOURS if half == "p" else 0)
    minute, second = int(match["minute"] or 0), int(match["second"] or 0)
    micros = int((match["fraction"] or "0").ljust(6, "0")[:6])
    return time(hour, minute, second, micros)


def _instant_at_clock(
    day: TypedTime | None, clock: time, now: datetime
) -> TypedTime | None:
    """Return the time of day `clock` on a day; None if `day` spans more than one day.

    If the clock goes back and shows the time twice, return the span between both. If the clock goes
    forward and skips the time, return a time later by the length of the gap.
    """
    if day is None:
        return None
    zone = now.tzinfo
    first = in_zone(day.since, zone)
    last = in_zone(shift(day.until, -_INSTANT), zone)
    if first.date() != last.date():
        return None
    reading = datetime.combine(first.date(), clock, zone)
    once = in_zone(reading, UTC)
    again = in_zone(reading.replace(fold=1), UTC)
    return TypedTime(once, max(once, again))


def _offset_zone(name: str) -> tzinfo:
    """Return the time zone of an offset: `Z`, `utc`, `+01:00` or `+1`."""
    offset = name.removeprefix("utc").removeprefix("gmt")
    if offset in ("", "z"):
        return UTC
    hours, minutes = offset[1:].replace(":", ""), "0"
    if len(hours) > 2:
        hours, minutes = hours[:-2], hours[-2:]
    by = timedelta(hours=int(hours), minutes=int(minutes))
    return timezone(-by if offset[0] == "-" else by)


# ---------------------------------------------------------------------- days

LEAP_YEARS = 8
"""Years within which there is a 29 February."""
_MONTHS_OF_A_YEAR = 12
_DAY = timedelta(days=1)
_FILLERS = re.compile(_PATTERNS["fillers"])
"""Words without meaning before a time."""
_ARTICLES = ("the ", "in ", "on the ", "le ", "la ", "el ", "il ", "l'")
"""Words of a rule that people may leave out: `day before yesterday`, `semaine dernière`."""


def read_day(words: str, now: datetime, *, ahead: bool) -> TypedTime | None:
    """Return the span of the day, week, month or year that lower-case words name; None for others.

    With `ahead`, a weekday or a date without a year is the coming one. Raises `AmbiguousDate`, and
    `ValueError` for a date that does not exist.
    """
    has_figures = words[-1:].isdigit() or words.endswith(".")
    for pattern in _FIGURES if has_figures else ():
        if match := re.fullmatch(pattern, words, re.ASCII):
            return _read_figures(match, now, ahead=ahead)
    return _read_words_for_day(words, now, ahead=ahead)


def _read_figures(match: re.Match[str], now: datetime, *, ahead: bool) -> TypedTime:
    """Return the span of a matched date in figures: a year, a month, an ISO week or a day.

    A day without a year is the latest such day, or with `ahead` the coming one. Of `18/11/2026`, a
    number above 12 is the day. Raises `AmbiguousDate` if both numbers may be the month, and
    `ValueError` for a date that does not exist.
    """
    part = {name: int(text) for name, text in match.groupdict().items() if text}
    month, day = part.get("month", 1), part.get("day", 1)
    if "first" in part:
        month, day = part["first"], part["second"]
        if month > _MONTHS_OF_A_YEAR:
            month, day = day, month
    if "year" not in part:
        if not 1 <= month <= _MONTHS_OF_A_YEAR:
            raise ValueError(match[0])
        words = f"{day} {tables.MONTH_NAMES[month - 1].lower()}"
        named = _read_english_time(words, now, ahead=ahead)
        if named is None:
            raise ValueError(match[0])
        return named
    year = part["year"] + (2000 if len(match["year"]) == 2 else 0)
    if "first" in part and month != day <= _MONTHS_OF_A_YEAR:
        raise AmbiguousDate(
            f"{year:04}-{month:02}-{day:02}", f"{year:04}-{day:02}-{month:02}"
        )
    if "week" in part:
        monday = datetime.fromisocalendar(year, part["week"], 1)
        first = monday.replace(tzinfo=now.tzinfo)
        return TypedTime(first, shift(first, 7 * _DAY))
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    first = midnight.replace(year=year, month=month, day=day)
    if "day" in part or "first" in part:
        return TypedTime(first, shift(first, _DAY))
    return TypedTime(first, shift_months(first, 1 if "month" in part else 12))


def _read_words_for_day(words: str, now: datetime, *, ahead: bool) -> TypedTime | None:
    """Return the span of a day, week, month or year named in words of any language, or None.

    The date may follow an article, a preposition or its correct weekday. With `ahead`, a date without
    a year is the coming one.
    """
    bare = _FILLERS.sub("", words)
    forms = (words, bare, *(f"{article}{bare}" for article in _ARTICLES))
    # Most are English, or names and numbers alone: the translation is compiled for the others.
    for form in chain(forms[:2], map(questions.translate_times, forms)):
        english = questions.names_in_english(form).lower()
        if day := _read_english_time(english, now, ahead=ahead):
            return day
    weekday, _, date = bare.partition(" ")
    number = tables.WEEKDAYS.get(weekday.rstrip(",."))
    if number is None or not date:
        return None
    day = read_day(date, now, ahead=ahead)
    if day and in_zone(day.since, now.tzinfo).weekday() == number:
        return day
    return None


def _read_english_time(words: str, now: datetime, *, ahead: bool) -> TypedTime | None:
    """Return the span of an English time expression; None if the whole text is not one."""
    for rule in questions.matching_time_patterns(set(terms.WORD.findall(words))):
        match = rule.fullmatch(words)
        if match is None:
            continue
        groups = questions.named_groups(match)
        if not groups.get("day", "1").strip("0"):
            return None  # the rules read a day 0 as none
        month = tables.ENGLISH_MONTHS.get(groups.get("name", ""))
        dated = (month or "feast" in groups) and "year" not in groups
        if dated and month == 2 and groups.get("day") == "29":
            return _nearest_leap_day(words, now, ahead=ahead)
        if spans := questions.matched_spans(groups, now, ahead=ahead):
            on_weekday = "weekday" in groups and groups.get("step", "on") == "on"
            return TypedTime(spans[0].since, spans[0].until, bool(dated or on_weekday))
    return None


def _nearest_leap_day(words: str, now: datetime, *, ahead: bool) -> TypedTime | None:
    """Return the last or, with `ahead`, next 29 February if `words` name it; None if beyond the calendar."""
    for years in range(LEAP_YEARS + 1):
        year = now.year + (years if ahead else -years)
        day = _read_english_time(f"{words} {year}", now, ahead=ahead)
        if day and (day.until > now if ahead else day.since <= now):
            return replace(day, recurs=True)
    return None


# ----------------------------------------------------------------- durations

_NUMBERS = {**tables.COUNTS_OF_UNITS, "few": 3, "half a": 0.5, "half an": 0.5}
_DIGIT = re.compile(r"\d")
_UNIT_MONTHS = {"month": 1, "year": 12}
_OF_THE_CALENDAR = ("day", "week")
"""Units that keep the time of day when the clocks change."""


def read_duration(text: str, now: datetime, *, ahead: bool) -> datetime | None:
    """Return the instant that a duration such as `7d` or `in 2 days` means, or None.

    The text is in lower case. The duration counts back from `now`, or with `ahead` forward, unless
    "ago", "in" or a sign decides.
    """
    if not (_DIGIT.search(text) or _NUMBERS.keys() & text.split()):
        return None  # the patterns are compiled for those that may match
    match = _compile_duration_pattern().fullmatch(text)
    if match is None or (match["on"] and match["ago"]):
        return None
    is_back = match["back"] or match["ago"]
    is_ahead = not is_back and (ahead or match["on"] or match["later"])
    for part in _compile_amount_pattern().finditer(match["parts"]):
        now = _add_amount(now, part, 1 if is_ahead else -1)
    return now


@lru_cache(maxsize=1)
def _compile_duration_pattern() -> re.Pattern[str]:
    """Return the pattern of a duration: amounts, with a sign or words such as "ago"."""
    back = tables.join_alternatives(["-", tables.join_grammars("ago_before")])
    on = tables.join_alternatives([r"\+", "in", tables.join_grammars("ahead_before")])
    ago = tables.join_alternatives(["ago", tables.join_grammars("ago_after")])
    one = _compile_amount_pattern().pattern
    # A bound on the parts: nobody writes more, and each costs a search.
    unnamed = re.sub(r"\?P<\w+>", "?:", one)
    return re.compile(
        rf"(?:(?P<back>{back}) ?|(?P<on>{on}) ?)?"
        rf"(?P<parts>{unnamed}(?:(?:,? and |, ?| )?{unnamed}){{0,5}})"
        rf"(?: (?:(?P<ago>{ago})|(?P<later>from now|later)))?"
    )


@lru_cache(maxsize=1)
def _compile_amount_pattern() -> re.Pattern[str]:
    """Return a pattern of a number and a unit of time, with a named group for each unit."""
    numbers = tables.join_alternatives(
        sorted(map(re.escape, _NUMBERS), key=len, reverse=True)
    )
    patterns = [rule_files.read_tables(__file__, "expressions.toml")["units"]]
    patterns += [grammar.units for grammar in tables.GRAMMARS]
    units = "|".join(
        f"(?P<{unit}>{tables.join_alternatives(names.get(unit, '') for names in patterns)})"
        for unit in tables.UNITS
    )
    number = (
        rf"(?P<figures>\d{{1,6}}(?:\.\d{{1,3}})?) ?|(?:a )?(?P<word>{numbers})(?: of)? "
    )
    return re.compile(rf"(?:{number})(?:{units})(?![^\W\d_])")


def _add_amount(moment: datetime, part: re.Match[str], sign: int) -> datetime:
    """Return the moment shifted by a matched amount times `sign`. Raises `ValueError` for half a month."""
    unit = next(unit for unit in tables.UNITS if part[unit])
    number = float(part["figures"] or _NUMBERS[part["word"]])
    if unit in _UNIT_MONTHS:
        if number % 1:
            raise ValueError(part[0])
        return shift_months(moment, sign * int(number) * _UNIT_MONTHS[unit])
    step = sign * number * timedelta(**{f"{unit}s": 1})
    if unit in _OF_THE_CALENDAR and not number % 1:
        return shift(moment, step)
    return in_zone(shift(in_zone(moment, UTC), step), moment.tzinfo)


# ------------------------------------------------------------------- accents

_LONG_WORD = re.compile(r"[^\W\d_]{3,}")
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"})


@lru_cache(maxsize=1)
def _build_accent_table() -> tuple[re.Pattern[str], dict[str, str]]:
    """Return a pattern of time words typed without accents, and {typed word: accented form}."""
    accented: dict[str, str] = {}
    for language in tables.LANGUAGES:
        words = [*language.months, *language.weekdays, *language.counts]
        if grammar := language.times:
            words += (*grammar.phrases.values(), *grammar.units.values())
            words += grammar.periods.values()
            words += (grammar.last_before, grammar.last_after)
            words += (grammar.next_before, grammar.next_after)
        for word in _LONG_WORD.findall(" ".join(words)):
            if not word.isascii():
                accented.setdefault(terms.fold_case(word), word)
                accented.setdefault(terms.fold_case(word.translate(_UMLAUTS)), word)
    longest_first = sorted(filter(str.isascii, accented), key=len, reverse=True)
    return re.compile(rf"\b(?:{'|'.join(longest_first)})"), accented
