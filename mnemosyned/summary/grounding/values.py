"""Numbers and dates that a text mentions, in figures and in words, with their possible readings."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime

from mnemosyned.instants import day_at, in_zone
from mnemosyned.text.dates.questions import mentioned_spans
from mnemosyned.text.languages.tables import COUNTS, MONTHS, WEEKDAYS, fold_letters
from mnemosyned.text.rule_files import read_rule_file

_MONTH_NAMES = "|".join(sorted(map(re.escape, MONTHS), key=len, reverse=True))
_WORDS, _NAMES, _PATTERNS, _FORMS = read_rule_file(__file__, month_names=_MONTH_NAMES)
NUMBER_WORDS: dict[str, float] = {
    word: value for word, value in COUNTS.items() if len(word) > 2 or not word.isascii()
} | {word: float(value) for word, value in _NAMES["number_words"].items()}
FIGURE_CHARS_MAX = 20
"""Length above which a number is a code without other readings."""


def read_numbers(text: str) -> list[tuple[str, frozenset[str]]]:
    """Return each number in figures, with its possible values as texts: "1,000" may be "1000" or "1"."""
    plain = unicodedata.normalize("NFKC", text)
    return [
        (
            match[0],
            frozenset(
                _list_number_readings(match[0], plain[match.end() : match.end() + 12])
            ),
        )
        for match in _PATTERNS["digits"].finditer(plain)
    ]


def _list_number_readings(written: str, after: str) -> Iterator[str]:
    """Yield the possible values of a number as texts; `after` is what follows, such as " million".

    A day of the month is given as "day 5", a time of day in 24 hours.
    """
    if len(written) > FIGURE_CHARS_MAX:
        yield written
        return
    if ":" in written:
        if written.partition(":")[0].isdigit():
            half = _PATTERNS["half_day"].match(after)
            yield from list_clock_readings(written, half)
        else:  # such as 127.0.0.1:8080
            yield from (written, *written.split(":"))
        return
    if _PATTERNS["ordinal"].match(after):
        yield f"day {int(written)}" if written.isdigit() else written
    half = _PATTERNS["half_day"].match(after)
    if half and written.isdigit():
        yield from list_clock_readings(f"{written}:00", half)
    values = [_normalize_number(written)]
    if _PATTERNS["thousands"].fullmatch(written):
        values.append(_normalize_number(re.sub(r"\D", "", written)))
    scale = _PATTERNS["scale"].match(after)
    for value in values:
        yield value
        if scale and value.count(".") <= 1:
            unit = (scale[1] or scale[2]).lower()
            yield _format_number(float(value) * float(_NAMES["scales"].get(unit, 1e6)))


def _normalize_number(written: str) -> str:
    """Return a number with a decimal point: "1,234.5" as "1234.5". A lone separator is a decimal point."""
    plain = re.sub(r"[,’'·]", ".", written)
    whole, _, rest = plain.rpartition(".")
    if _PATTERNS["grouped"].fullmatch(written):
        return _format_number(float(f"{whole.replace('.', '')}.{rest}"))
    if "." in whole:
        return plain
    return _format_number(float(plain))


def _format_number(value: float) -> str:
    """Return a number as text, without decimals if it is whole."""
    return str(int(value)) if value == int(value) else repr(round(value, 6))


def list_clock_readings(
    written: str, half: re.Match[str] | None = None
) -> Iterator[str]:
    """Yield a time as "14:30"; if it is neither am nor pm (`half` is None), also the time 12 hours later."""
    head, _, rest = written.partition(":")
    hour = int(head)
    if half and hour <= 12:
        hour = hour % 12 + (12 if half[1].lower() == "p" else 0)
    yield f"{hour}:{rest}"
    if half is None and 0 < hour <= 12:
        yield f"{(hour + 12) % 24}:{rest}"


def read_number_words(text: str) -> Iterator[tuple[str, str]]:
    """Yield each number written as a word, as written and in figures."""
    for match in _PATTERNS["words"].finditer(text):
        value = NUMBER_WORDS.get(match[0].lower())
        if value is not None:
            yield match[0], _format_number(value)


SPAN_DAYS_MAX = 62
"""Longest span of which each day counts as mentioned; of a longer one, only its years do."""
LEAP_YEAR = 2024


_WEEKDAY = re.compile(rf"(?<!\w)({'|'.join(WEEKDAYS)})s?(?!\w)", re.IGNORECASE)

_DAYS_NEARBY = {
    tuple(map(int, days.split())): re.compile(words, re.IGNORECASE)
    for words, days in _NAMES["days_nearby"].items()
}
"""Relative days that `mentioned_spans` does not read, by the first and last day from today."""
_SLACK_DAYS = 6
"""Days before and after a relative week or month that count as mentioned."""


@dataclass(frozen=True, slots=True)
class DateMention:
    """A date in a text, perhaps without year or day, with its position."""

    text: str
    start: int
    end: int
    readings: tuple[tuple[int | None, int | None, int | None], ...]
    """Year, month and day; several where 5/8/2023 may be two days."""
    weekday: int | None = None


@dataclass(slots=True)
class SourceDates:
    """Days, months and years in a group of sources."""

    days: set[date] = field(default_factory=set)
    months: set[tuple[int, int]] = field(default_factory=set)
    years: set[int] = field(default_factory=set)
    yearless: set[tuple[int | None, int | None]] = field(default_factory=set)
    """Month and day, or month alone, of every date."""
    bare: set[tuple[int | None, int | None]] = field(default_factory=set)
    """Members of `yearless` without a year in the sources."""
    weekdays: set[int] = field(default_factory=set)
    near_years: set[int] = field(default_factory=set)
    """Years of the sources, the years before and the years after."""

    def add(self, text: str, said: datetime) -> None:
        """Add the day on which a text was said, and the absolute and relative dates in the text."""
        today = said.date()
        self._add_days(today, 0, 0)
        self.near_years.update((today.year - 1, today.year, today.year + 1))
        for mention in find_mentions(text):
            if mention.weekday is not None:
                self.weekdays.add(mention.weekday)
                self._add_days(today, -13, 13, only=mention.weekday)
            for year, month, day in mention.readings:
                if year is None:
                    self.bare.update(((month, day), (month, None)))
                    self.yearless.update(((month, day), (month, None)))
                elif month is None:
                    self.years.add(year)
                elif day is None:
                    self._add_month(year, month)
                elif found := _make_valid_date(year, month, day):
                    self._add_days(found, 0, 0)
        for span in mentioned_spans(text, said):
            first = (in_zone(span.since, said.tzinfo).date() - today).days
            last = (in_zone(span.until, said.tzinfo).date() - today).days - 1
            slack = _SLACK_DAYS if last > first else 0
            if last - first > SPAN_DAYS_MAX:
                ends = (day_at(today, first), day_at(today, last))
                self.years.update(end.year for end in ends if end)
            else:
                self._add_days(today, first - slack, last + slack)
        for (first, last), words in _DAYS_NEARBY.items():
            if words.search(text):
                self._add_days(today, first, last)

    def has_date(self, mention: DateMention) -> bool:
        """Return True if the sources contain the date or weekday, or a day of the mentioned month or year."""
        if mention.weekday is not None:
            return mention.weekday in self.weekdays
        return any(self._has_reading(*reading) for reading in mention.readings)

    def _has_reading(
        self, year: int | None, month: int | None, day: int | None
    ) -> bool:
        """Return True if the sources mention a date whose year, month or day may be unknown (None).

        A date without a year in the sources may be of the year of a source, the one before or after.
        """
        if year is None:
            return (month, day) in self.yearless
        near = year in self.near_years
        if month is None:
            return year in self.years
        if day is None:
            return (year, month) in self.months or (near and (month, None) in self.bare)
        return _make_valid_date(year, month, day) in self.days or (
            near and (month, day) in self.bare
        )

    def _add_days(
        self, today: date, first: int, last: int, *, only: int | None = None
    ) -> None:
        """Add the days from `first` to `last` days after `today`, at most `SPAN_DAYS_MAX` after the first.

        With `only`, add just the days of that weekday, 0 (Monday) to 6.
        """
        for step in range(first, min(last, first + SPAN_DAYS_MAX) + 1):
            day = day_at(today, step)
            if day and (only is None or day.weekday() == only):
                self.days.add(day)
                self.weekdays.add(day.weekday())
                self.yearless.add((day.month, day.day))
                self._add_month(day.year, day.month)

    def _add_month(self, year: int, month: int) -> None:
        """Add a month, its year, and the month without a year."""
        self.months.add((year, month))
        self.years.add(year)
        self.yearless.add((month, None))


def _make_valid_date(year: int, month: int, day: int) -> date | None:
    """Return the date of year, month and day, or None if there is no such day."""
    try:
        return date(year, month, day)
    except ValueError:
        return None


def find_mentions(text: str) -> list[DateMention]:
    """Return the dates in a text in their order; of overlapping ones only the most complete."""
    found: list[DateMention] = []
    taken = bytearray(len(text))
    candidates = [
        *_find_slashed_dates(text),
        *(
            mention
            for form in _FORMS["shapes"]
            for match in form.finditer(text)
            for mention in _read_mention(match)
        ),
        *_find_months_and_weekdays(text),
    ]
    for mention in candidates:  # the most complete forms first
        if not any(taken[mention.start : mention.end]):
            taken[mention.start : mention.end] = b"\1" * (mention.end - mention.start)
            found.append(mention)
    return sorted(found, key=lambda mention: mention.start)


def _find_slashed_dates(text: str) -> Iterator[DateMention]:
    """Yield dates such as `5/8/2023`, read as 5 August and as 8 May where both are possible."""
    for match in _PATTERNS["slashed"].finditer(text):
        first, second, year = int(match[1]), int(match[3]), int(match[4])
        year += 2000 if year < 100 else 0
        readings = [
            (year, month, day)
            for month, day in ((second, first), (first, second))
            if _make_valid_date(year, month, day)
        ]
        if readings:
            yield DateMention(match[0], *match.span(), tuple(readings))


def _find_months_and_weekdays(text: str) -> Iterator[DateMention]:
    """Yield days such as `5.8.` without a year, names of months and names of weekdays."""
    for match in _PATTERNS["day_short"].finditer(text):
        day, month = int(match[1]), int(match[2])
        if _make_valid_date(LEAP_YEAR, month, day):
            yield DateMention(match[0], *match.span(), ((None, month, day),))
    for match in _PATTERNS["alone"].finditer(text):
        name = fold_letters(match[1])
        before = text[: match.start()].rstrip()
        begins_sentence = not before or before[-1] in '.!?…:\n"“•-*'
        if match[1][0].isupper() and not (
            name in _WORDS["ambiguous"] and begins_sentence
        ):
            yield DateMention(match[0], *match.span(), ((None, MONTHS[name], None),))
    for match in _WEEKDAY.finditer(text):
        name = fold_letters(match[1])
        if name not in _WORDS["ambiguous"] or match[1][0].isupper():
            yield DateMention(match[0], *match.span(), (), WEEKDAYS[name])


def _read_mention(match: re.Match[str]) -> Iterator[DateMention]:
    """Yield the date of a match with groups `y`, `m` and `d`, if month and day are in range."""
    groups = match.groupdict()
    year = int(groups["y"]) if groups.get("y") else None
    named = fold_letters(groups.get("m") or "")
    month = MONTHS.get(named) or (int(named) if named.isdigit() else None)
    day = int(groups["d"]) if groups.get("d") else None
    if (month is None or 1 <= month <= 12) and (day is None or 1 <= day <= 31):
        yield DateMention(match[0].strip(), *match.span(), ((year, month, day),))
