"""Numbers and dates that a text mentions, in figures and in words, with their possible readings."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime

from mnemosyned.instants import day_at
from mnemosyned.text.languages.tables import COUNTS, MONTHS, WEEKDAYS

NUMBER_WORDS = {
    word: value for word, value in COUNTS.items() if len(word) > 2 or not word.isascii()
} | {
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70,
    "eighty": 80, "ninety": 90, "hundred": 100, "thousand": 1000, "dozen": 12, "half": 0.5,
    "first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7,
    "eighth": 8, "ninth": 9, "tenth": 10, "eleventh": 11, "twelfth": 12, "twice": 2,
    "double": 2, "triple": 3, "both": 2, "pair": 2, "一": 1, "二": 2, "三": 3, "四": 4, "五": 5,
}  # fmt: skip
FIGURE_CHARS_MAX = 20
"""Length above which a number is a code without other readings."""

_DIGITS = re.compile(r"\d+(?:[.,:'’·]\d+)*")
_SCALE = re.compile(
    r"\s?(k|thousand|tausend|mil|m|mio|million|millones|millionen|bn|billion|万|億|亿)\b|([万億亿千])",
    re.IGNORECASE,
)
_SCALES = {
    "k": 1e3, "thousand": 1e3, "tausend": 1e3, "mil": 1e3, "千": 1e3, "万": 1e4, "億": 1e8,
    "亿": 1e8, "bn": 1e9, "billion": 1e9,
}  # fmt: skip
_THOUSANDS = re.compile(r"\d{1,3}(?:[.,'’]\d{3})+")
_GROUPED = re.compile(r"\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:,\d{3})+\.\d+")
_HALF_DAY = re.compile(r"\s*([ap])\.?m\b", re.IGNORECASE)
_ORDINAL = re.compile(r"(?:st|nd|rd|th)\b|[日일]")
_WORDS = re.compile(r"[^\W\d_]+")


def numbers(text: str) -> list[tuple[str, frozenset[str]]]:
    """Return each number in figures with its readings: 1,000 is 1000 or 1.0."""
    plain = unicodedata.normalize("NFKC", text)
    return [
        (
            match[0],
            frozenset(_readings(match[0], plain[match.end() : match.end() + 12])),
        )
        for match in _DIGITS.finditer(plain)
    ]


def _readings(written: str, after: str) -> Iterator[str]:
    if len(written) > FIGURE_CHARS_MAX:
        yield written
        return
    if ":" in written:
        yield from clock_readings(written, _HALF_DAY.match(after))
        return
    if _ORDINAL.match(after):
        yield f"day {int(written)}" if written.isdigit() else written
    half = _HALF_DAY.match(after)
    if half and written.isdigit():
        yield from clock_readings(f"{written}:00", half)
    values = [_normalize_number(written)]
    if _THOUSANDS.fullmatch(written):
        values.append(_normalize_number(re.sub(r"\D", "", written)))
    scale = _SCALE.match(after)
    for value in values:
        yield value
        if scale and value.count(".") <= 1:
            unit = (scale[1] or scale[2]).lower()
            yield _format_number(float(value) * _SCALES.get(unit, 1e6))


def _normalize_number(written: str) -> str:
    """Return a number with a decimal point and without separators of thousands."""
    plain = re.sub(r"[,’'·]", ".", written)
    whole, _, rest = plain.rpartition(".")
    if _GROUPED.fullmatch(written):
        return _format_number(float(f"{whole.replace('.', '')}.{rest}"))
    if "." in whole:
        return plain
    return _format_number(float(plain))


def _format_number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(round(value, 6))


def clock_readings(written: str, half: re.Match[str] | None = None) -> Iterator[str]:
    """Yield a time of day in 24 hours, in both halves of the day if none is named."""
    head, _, rest = written.partition(":")
    hour = int(head)
    if half and hour <= 12:
        hour = hour % 12 + (12 if half[1].lower() == "p" else 0)
    yield f"{hour}:{rest}"
    if half is None and 0 < hour <= 12:
        yield f"{(hour + 12) % 24}:{rest}"


def number_words(text: str) -> Iterator[tuple[str, str]]:
    """Yield each number written as a word, with its value."""
    for match in _WORDS.finditer(text):
        value = NUMBER_WORDS.get(match[0].lower())
        if value is not None:
            yield match[0], _format_number(value)


SPAN_DAYS_MAX = 62
LEAP_YEAR = 2024

_AMBIGUOUS = frozenset(
    ("may", "march", "mar", "mars", "mai", "sat", "sun", "wed", "mon", "sep")
)
"""Names of months and weekdays that are other words in lower case."""

_NAMES = "|".join(sorted(map(re.escape, MONTHS), key=len, reverse=True))
_D = r"(?P<d>\d{1,2})(?:st|nd|rd|th|er|\.|º|ª)?"
_Y = r"(?P<y>\d{4})(?:\s?года)?"
_M = rf"(?P<m>{_NAMES})\b\.?"
_SHAPES = tuple(
    re.compile(shape, re.IGNORECASE)
    for shape in (
        rf"(?<![\w]){_D}\s*(?:of|de|di)?\s*{_M}(?:\s*,?\s*(?:de|of|del)?\s*{_Y}(?!\d))?",
        rf"\b{_M}\s*(?:the\s+)?{_D}(?!\d|[:.,]\d|\s?[ap]\.?m\b)(?:\s*,?\s*{_Y}(?!\d))?",
        rf"\b{_M}\s*,?\s*(?:of|de|del|di)?\s*{_Y}(?!\d)",
        r"(?<![\d.])(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})(?!\d|[-/.]\d)",
        r"(?<![\d.])(?P<y>\d{4})-(?P<m>\d{2})(?![\d-])",
        r"(?P<y>\d{4})年(?:(?P<m>\d{1,2})月(?:(?P<d>\d{1,2})日)?)?",
        r"(?P<m>\d{1,2})月(?P<d>\d{1,2})日",
        r"(?P<y>\d{4})년(?:\s?(?P<m>\d{1,2})월(?:\s?(?P<d>\d{1,2})일)?)?",
        r"(?P<m>\d{1,2})월\s?(?P<d>\d{1,2})일",
    )
)
_SLASHED = re.compile(r"(?<![\d./-])(\d{1,2})([-/.])(\d{1,2})\2(\d{4}|\d{2})(?![\d/-])")
_DAY_SHORT = re.compile(r"(?<![\d.])(\d{1,2})\.(\d{1,2})\.(?!\d)")
_ALONE = re.compile(rf"(?<!\w)({_NAMES})(?!\w)", re.IGNORECASE)
_WEEKDAY = re.compile(rf"(?<!\w)({'|'.join(WEEKDAYS)})s?(?!\w)", re.IGNORECASE)

_COUNT = (
    rf"(?P<n>\d{{1,3}}|{'|'.join(sorted(COUNTS, key=len, reverse=True))})(?:\s+of)?"
)
_UNIT_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
_UNITS = (
    ("day", "days? tage?n? días? jours? дней день дня 日".split()),
    ("week", "weeks? wochen? semanas? semaines? недел[юиь] 週間".split()),
    ("month", "months? monate?n? mes(?:es)? mois месяц(?:а|ев)? か月 ヶ月".split()),
    ("year", "years? jahre?n? años? ans? год(?:а|ов)? лет 年".split()),
)
_U, _U2 = (
    "|".join(f"(?P<{name}{mark}>{'|'.join(words)})" for name, words in _UNITS)
    for mark in ("", "2")
)
_COUNT2 = _COUNT.replace("<n>", "<n2>")
_AGO = re.compile(
    rf"\b{_COUNT}\s+(?:{_U})\s+(?:ago|back|earlier|назад)\b"
    rf"|\b(?:vor|hace|il y a)\s+{_COUNT2}\s+"
    rf"(?:{_U2})\b",
    re.IGNORECASE,
)
_AHEAD = re.compile(
    rf"\b(?:in|en|dans|через|within)\s+{_COUNT}\s+(?:{_U})(?!\w)"
    rf"|\b{_COUNT2}\s+"
    rf"(?:{_U2})\s+from\s+now\b",
    re.IGNORECASE,
)
_NEARBY = {
    (first, last): re.compile(shape, re.IGNORECASE)
    for first, last, shape in (
        (-1, -1, (
            r"\b(?:yesterday|last night|gestern|ayer|anoche|hier|ieri|ontem|вчера)\b|昨日|昨天|어제"
        )),
        (-2, -2, (
            r"\b(?:day before yesterday|vorgestern|anteayer|avant-hier|позавчера)\b"
            r"|一昨日|前天|그저께"
        )),
        (1, 1, (
            r"\b(?:tomorrow|morgen|mañana|demain|domani|amanhã|завтра)\b|明日|明天|내일"
        )),
        (2, 2, (
            r"\b(?:day after tomorrow|übermorgen|pasado mañana|après-demain|послезавтра)\b"
            r"|明後日|后天|모레"
        )),
        (-14, -1, (
            r"\b(?:last|past|the other) (?:week(?:end)?|day|few days)\b"
            r"|\b(?:letzte|vorige) Woche\b|\bsemana pasada\b|\bsemaine dernière\b"
            r"|прошлой неделе|先週|上周|지난주"
        )),
        (-7, 7, (
            r"\b(?:this|the) week(?:end)?\b|\bdiese(?:s)? Woche(?:nende)?\b|\besta semana\b"
            r"|\bcette semaine\b|этой неделе|今週|这周|이번 주"
        )),
        (1, 14, (
            r"\bnext (?:week(?:end)?|few days)\b|\b(?:nächste|kommende) Woche\b"
            r"|\bpróxima semana\b|\bsemaine prochaine\b|следующей неделе|来週|下周|다음 주"
        )),
    )
}  # fmt: skip
"""Patterns of relative days, with their first and last day from the day of the text."""
_LAST_MONTH = re.compile(
    r"\b(?:last|past|previous) month\b|(?:letzten|vorigen) Monat|mes pasado|mois dernier"
    r"|прошлом месяце|先月|上个月",
    re.IGNORECASE,
)
_NEXT_MONTH = re.compile(
    r"\b(?:next|upcoming|coming) month\b|nächsten Monat|próximo mes|mes que viene|mois prochain"
    r"|следующем месяце|来月|下个月",
    re.IGNORECASE,
)
_LAST_YEAR = re.compile(
    r"\b(?:last|past|previous) (?:year|summer|winter|fall|autumn|spring)\b|letztes Jahr|año pasado"
    r"|l'an dernier|année dernière|прошлом году|去年",
    re.IGNORECASE,
)
_NEXT_YEAR = re.compile(
    r"\bnext (?:year|summer|winter|fall|autumn|spring)\b|nächstes Jahr|próximo año"
    r"|année prochaine|следующем году|来年|明年",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class DateMention:
    """Date, perhaps without year or day, with its position in a text."""

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
        """Add the dates of a text, relative ones by its time."""
        today = said.date()
        self._add_days(today, 0, 0)
        self.near_years.update((today.year - 1, today.year, today.year + 1))
        for mention in find_mentions(text):
            if mention.weekday is not None:
                self.weekdays.add(mention.weekday)
                self._add_days(today, -13, 13, only=mention.weekday)
            for reading in mention.readings:
                self._add_date(*reading)
        self._add_relative(text, today)

    def has_date(self, mention: DateMention) -> bool:
        """Tell whether the sources mention a date at least as exactly."""
        if mention.weekday is not None:
            return mention.weekday in self.weekdays
        return any(self._has(*reading) for reading in mention.readings)

    def _has(self, year: int | None, month: int | None, day: int | None) -> bool:
        if year is None:
            return (month, day) in self.yearless
        near = year in self.near_years
        if month is None:
            return year in self.years
        if day is None:
            return (year, month) in self.months or (near and (month, None) in self.bare)
        return _valid_date(year, month, day) in self.days or (
            near and (month, day) in self.bare
        )

    def _add_date(self, year: int | None, month: int | None, day: int | None) -> None:
        if year is None:
            self.bare.update(((month, day), (month, None)))
            self.yearless.update(((month, day), (month, None)))
        elif month is None:
            self.years.add(year)
        elif day is None:
            self._add_month(year, month)
        elif found := _valid_date(year, month, day):
            self._add_days(found, 0, 0)

    def _add_days(
        self, today: date, first: int, last: int, *, only: int | None = None
    ) -> None:
        """Add the days from `first` to `last`, counted from today."""
        for step in range(first, min(last, first + SPAN_DAYS_MAX) + 1):
            day = day_at(today, step)
            if day and (only is None or day.weekday() == only):
                self.days.add(day)
                self.weekdays.add(day.weekday())
                self.yearless.add((day.month, day.day))
                self._add_month(day.year, day.month)

    def _add_month(self, year: int, month: int) -> None:
        self.months.add((year, month))
        self.years.add(year)
        self.yearless.add((month, None))

    def _add_relative(self, text: str, today: date) -> None:
        for (first, last), shape in _NEARBY.items():
            if shape.search(text):
                self._add_days(today, first, last)
        for shape, sign in ((_AGO, -1), (_AHEAD, 1)):
            for match in shape.finditer(text):
                self._add_distance(today, match, sign)
        for shape, sign in ((_LAST_MONTH, -1), (_NEXT_MONTH, 1)):
            if shape.search(text):
                self._add_month(*_months_on(today, sign))
        for shape, sign in ((_LAST_YEAR, -1), (_NEXT_YEAR, 1)):
            if shape.search(text):
                self.years.add(today.year + sign)

    def _add_distance(self, today: date, match: re.Match[str], sign: int) -> None:
        """Add "three weeks ago" with a slack of six days; months and years as a whole."""
        groups = match.groupdict()
        written = (groups["n"] or groups["n2"]).lower()
        amount = sign * (int(written) if written.isdigit() else COUNTS[written])
        unit = next(name for name in _UNIT_DAYS if groups[name] or groups[f"{name}2"])
        if unit == "year":
            self.years.add(today.year + amount)
            self.months.add((today.year + amount, today.month))
        elif unit == "month":
            self._add_month(*_months_on(today, amount))
        else:
            slack = 0 if unit == "day" else 6
            middle = amount * _UNIT_DAYS[unit]
            self._add_days(today, middle - slack, middle + slack)


def _valid_date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _months_on(today: date, amount: int) -> tuple[int, int]:
    months = today.year * 12 + today.month - 1 + amount
    return months // 12, months % 12 + 1


def find_mentions(text: str) -> list[DateMention]:
    """Return the dates in a text in order, each in its fullest form."""
    found: list[DateMention] = []
    taken = bytearray(len(text))
    for mention in _candidate_mentions(text):
        if not any(taken[mention.start : mention.end]):
            taken[mention.start : mention.end] = b"\1" * (mention.end - mention.start)
            found.append(mention)
    return sorted(found, key=lambda mention: mention.start)


def _candidate_mentions(text: str) -> Iterator[DateMention]:
    yield from _slashed_dates(text)
    for shape in _SHAPES:
        for match in shape.finditer(text):
            yield from _from_match(match)
    for match in _DAY_SHORT.finditer(text):
        day, month = int(match[1]), int(match[2])
        if _valid_date(LEAP_YEAR, month, day):
            yield DateMention(match[0], *match.span(), ((None, month, day),))
    yield from _months_and_weekdays(text)


def _slashed_dates(text: str) -> Iterator[DateMention]:
    """Yield dates such as `5/8/2023`, in both readings."""
    for match in _SLASHED.finditer(text):
        first, second, year = int(match[1]), int(match[3]), int(match[4])
        year += 2000 if year < 100 else 0
        readings = [
            (year, month, day)
            for month, day in ((second, first), (first, second))
            if _valid_date(year, month, day)
        ]
        if readings:
            yield DateMention(match[0], *match.span(), tuple(readings))


def _months_and_weekdays(text: str) -> Iterator[DateMention]:
    """Yield months and weekdays without a date."""
    for match in _ALONE.finditer(text):
        name = match[1].lower()
        before = text[: match.start()].rstrip()
        begins_sentence = not before or before[-1] in '.!?…:\n"“•-*'
        if match[1][0].isupper() and not (name in _AMBIGUOUS and begins_sentence):
            yield DateMention(match[0], *match.span(), ((None, MONTHS[name], None),))
    for match in _WEEKDAY.finditer(text):
        name = match[1].lower()
        if name not in _AMBIGUOUS or match[1][0].isupper():
            yield DateMention(match[0], *match.span(), (), WEEKDAYS[name])


def _from_match(match: re.Match[str]) -> Iterator[DateMention]:
    groups = match.groupdict()
    year = int(groups["y"]) if groups.get("y") else None
    named = (groups.get("m") or "").lower()
    month = MONTHS.get(named) or (int(named) if named.isdigit() else None)
    day = int(groups["d"]) if groups.get("d") else None
    if (month is None or 1 <= month <= 12) and (day is None or 1 <= day <= 31):
        yield DateMention(match[0].strip(), *match.span(), ((year, month, day),))
