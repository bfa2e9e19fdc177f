"""Parses the time expressions of a question, such as "last week" or "in May 2023"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from mnemosyned.domain.dates.names import (
    ENGLISH_COUNTS,
    ENGLISH_MONTHS,
    MONTH_NAMES,
    WEEKDAY_NAMES,
)
from mnemosyned.domain.dates.translated import translate_times
from mnemosyned.domain.instants import in_zone, shift, shift_months
from mnemosyned.domain.text.foreign_stopwords import FOREIGN_STOP_WORDS
from mnemosyned.domain.text.stemming import WORD, fold_case, stem
from mnemosyned.domain.text.stopwords import COMMON_WORDS, STOP_WORDS

_DAY = timedelta(days=1)
_VAGUE = STOP_WORDS | COMMON_WORDS | frozenset(map(fold_case, FOREIGN_STOP_WORDS))
SPANS_MAX = 4
_WEEKDAYS = [name.lower() for name in WEEKDAY_NAMES]
_COUNTS = ENGLISH_COUNTS | {"couple of": 2, "few": 3}
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
"""The first month of each season, in the northern hemisphere."""
_HOURS = {
    "morning": (5, 12),
    "afternoon": (12, 18),
    "evening": (17, 24),
    "night": (18, 30),
}
"""First and last hour of each part of a day; a night ends on the next day."""

_MONTH = "|".join(sorted(ENGLISH_MONTHS, key=len, reverse=True))
_COUNT = rf"\d{{1,3}}|{'|'.join(sorted(_COUNTS, key=len, reverse=True))}"
_ORDINAL = r"(?:st|nd|rd|th)?"
_VERBATIM_GROUPS = {"month", "year", "season", "weekday"}
"""Groups whose words a memory may contain verbatim; "yesterday" was another day then."""
_PART = rf"(?: (?P<part>{'|'.join(_HOURS)}))?"
_SEASON = f"(?P<season>{'|'.join(_SEASONS)})"
_WEEKDAY = f"(?P<weekday>{'|'.join(_WEEKDAYS)})"
_ABOUT = "(?:in|since|during|from|last|this|early|late|mid|(?:beginning|start|middle|end) of)"
_PATTERNS = (
    r"(?P<year>\d{4})-(?P<month>\d\d)(?:-(?P<day>\d\d))?",
    rf"(?P<day>\d{{1,2}}){_ORDINAL} (?:of )?(?P<name>{_MONTH})\.?(?:,? (?P<year>\d{{4}}))?",
    rf"(?P<name>{_MONTH})\.? (?P<day>\d{{1,2}}){_ORDINAL}(?!\d)(?:,? (?P<year>\d{{4}}))?",
    rf"(?P<name>{_MONTH})\.?(?: of)?,? (?P<year>\d{{4}})",
    rf"{_ABOUT}[ -](?P<name>{_MONTH})",
    rf"(?P<count>{_COUNT}) (?P<ago>day|week|month|year)s? ago",
    rf"(?:last|past|previous) (?P<count>{_COUNT}) (?P<back>day|week|month|year)s",
    r"(?P<step>last|past|previous|this|next) (?P<unit>week|month|year|weekend)",
    rf"(?:(?P<step>last|this|next|on) )?{_WEEKDAY}{_PART}",
    rf"(?P<word>the day before yesterday|yesterday|today|tomorrow){_PART}",
    r"(?P<word>last) (?P<part>night)",
    r"(?P<word>this) (?P<part>morning|afternoon|evening)|(?P<tonight>tonight)",
    rf"{_SEASON} (?:of )?(?P<year>\d{{4}})",
    rf"(?P<step>last|this) {_SEASON}",
    r"(?:in|during|of|since|year) (?P<year>(?:19|20)\d\d)",
)


_HINTS = frozenset(
    "ago last past previous this next yesterday today tomorrow tonight".split()
).union(_WEEKDAYS, ENGLISH_MONTHS)
"""Every time expression contains one of these words, or a year."""
_DAYS_AHEAD = {
    "the day before yesterday": -2,
    "yesterday": -1,
    "last": -1,
    "tomorrow": 1,
}
_TOLERANCE_DAYS = {"week": 3, "month": 15, "year": 100}
"""Days before and after that "three weeks ago" may mean, by the unit."""


@lru_cache(maxsize=1)
def _rules() -> tuple[re.Pattern[str], ...]:
    """Compile the patterns on first use: a client that asks a remote service needs none."""
    return tuple(
        re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE) for pattern in _PATTERNS
    )


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """A period of time, without its end."""

    since: datetime
    until: datetime

    def widened(self) -> TimeSpan:
        """Return the span with some time added: people report events a little later."""
        margin = max(_DAY, min(self.until - self.since, 7 * _DAY))
        return TimeSpan(shift(self.since, -margin / 7), shift(self.until, margin))


@dataclass(frozen=True, slots=True)
class QuestionTimes:
    """The times that a question asks about."""

    spans: tuple[TimeSpan, ...] = ()
    remaining_text: str = ""
    """The question without expressions that no memory repeats, such as "last week"."""
    only_time: bool = False
    """Whether it asks for nothing but a time, as "what happened last Tuesday?" does."""


def parse_times(text: str, now: datetime) -> QuestionTimes:
    """Parse the time expressions of a question asked at `now`.

    `now` is aware; its time zone decides where a day begins.
    """
    english = translate_times(text)
    if not _may_mention_time(english):
        return QuestionTimes((), text.strip())
    reader = _QuestionReader(english, now)
    for rule in _rules():
        reader.apply(rule)
    return reader.times()


class _QuestionReader:
    """Collects the spans of a question, blanking out what each rule has matched."""

    def __init__(self, text: str, now: datetime) -> None:
        self._now = now
        self._spans: list[TimeSpan] = []
        self._date_terms: list[str] = []
        self._unmatched = text
        self._remaining = text

    def apply(self, rule: re.Pattern[str]) -> None:
        """Add the spans that a rule finds in the text no rule has matched yet."""
        for match in rule.finditer(self._unmatched):
            groups = {
                name: value.lower()
                for name, value in match.groupdict().items()
                if value
            }
            span = _matched_span(groups, self._now)
            if span is not None and len(self._spans) < SPANS_MAX:
                self._add(match, groups, span)

    def _add(
        self, match: re.Match[str], groups: Mapping[str, str], span: TimeSpan
    ) -> None:
        self._spans.append(span)
        self._unmatched = _blank_out(self._unmatched, match, "|")
        dated = "name" in groups
        if dated:
            self._date_terms.append(_date_as_terms(groups))
        if dated or not groups.keys() & _VERBATIM_GROUPS:
            self._remaining = _blank_out(self._remaining, match, " ")

    def times(self) -> QuestionTimes:
        """Return the spans collected so far, and the text without them."""
        words = WORD.findall(fold_case(self._unmatched))
        return QuestionTimes(
            tuple(self._spans),
            " ".join([self._remaining.strip(), *self._date_terms]),
            only_time=bool(self._spans) and all(map(_is_vague, words)),
        )


def _blank_out(text: str, match: re.Match[str], blank: str) -> str:
    return text[: match.start()] + blank * len(match[0]) + text[match.end() :]


def _may_mention_time(text: str) -> bool:
    """Tell whether a text may have a time expression; most questions have none."""
    words = WORD.findall(text.casefold())
    return not _HINTS.isdisjoint(words) or any(
        len(word) == 4 and word.isdigit() for word in words
    )


def _is_vague(word: str) -> bool:
    """Tell whether a word, or its stem, is too common to identify a memory."""
    return not _VAGUE.isdisjoint((word, stem(word)))


def _date_as_terms(groups: Mapping[str, str]) -> str:
    """Return a date as terms that match only side by side: `8` or `May` alone says nothing."""
    month = MONTH_NAMES[ENGLISH_MONTHS[groups["name"]] - 1]
    if "day" in groups:
        return f"{groups['day']}-{month} {month}-{groups['day']}"
    return f"{month}-{groups['year']}" if "year" in groups else month


def _matched_span(groups: Mapping[str, str], now: datetime) -> TimeSpan | None:
    """Return the span that the groups of a match mean, or None for a date that does not exist."""
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    try:
        span = (
            _calendar_span(groups, today)
            or _counted_span(groups, now, today)
            or _named_span(groups, today)
        )
    except (
        ValueError,
        OverflowError,
    ):  # 31 April, or a year outside the calendar
        return None
    if span is None:
        return None
    since, until = in_zone(span.since, UTC), in_zone(span.until, UTC)
    return TimeSpan(since, until) if since < until else None


def _calendar_span(groups: Mapping[str, str], today: datetime) -> TimeSpan | None:
    """Return the span of a date, month, season or year; without a year, the latest begun."""
    if "season" in groups:
        return _season_span(groups, today)
    month = ENGLISH_MONTHS.get(groups.get("name", "")) or int(groups.get("month", 0))
    if not month:
        return _year_span(today, int(groups["year"])) if "year" in groups else None
    day = int(groups.get("day", 0))
    year = int(groups["year"]) if "year" in groups else today.year
    begin = today.replace(year=year, month=month, day=day or 1)
    if "year" not in groups and begin > today:
        begin = begin.replace(year=year - 1)
    return TimeSpan(begin, shift(begin, _DAY) if day else shift_months(begin, 1))


def _season_span(groups: Mapping[str, str], today: datetime) -> TimeSpan:
    begin = today.replace(month=_SEASONS[groups["season"]], day=1)
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
    """Return the span of "three weeks ago" or "the last three weeks"."""
    if "count" not in groups:
        return None
    number = groups["count"]
    count = int(number) if number.isdigit() else _COUNTS[number]
    if "back" in groups:
        return TimeSpan(_shift_units(now, groups["back"], -count), now)
    if groups["ago"] == "day":
        day = today - count * _DAY
        return TimeSpan(day, shift(day, _DAY))
    middle = _shift_units(today, groups["ago"], -count)
    tolerance = _TOLERANCE_DAYS[groups["ago"]] * _DAY
    return TimeSpan(shift(middle, -tolerance), shift(middle, tolerance + _DAY))


def _named_span(groups: Mapping[str, str], today: datetime) -> TimeSpan | None:
    """Return the span of "yesterday", "Friday evening" or "last week"."""
    if "unit" in groups:
        return _unit_span(groups["unit"], groups["step"], today)
    day = _weekday(groups, today) if "weekday" in groups else _named_day(groups, today)
    if day is None:
        return None
    part = groups.get("part") or ("night" if "tonight" in groups else "")
    first, last = _HOURS.get(part, (0, 24))
    return TimeSpan(day + timedelta(hours=first), shift(day, timedelta(hours=last)))


def _named_day(groups: Mapping[str, str], today: datetime) -> datetime | None:
    """Return the day of "yesterday", "tonight" or "last night"."""
    if "tonight" in groups:
        return today
    if "word" not in groups:
        return None
    return today + _DAYS_AHEAD.get(groups["word"], 0) * _DAY


def _weekday(groups: Mapping[str, str], today: datetime) -> datetime:
    """Return the day of "last Friday", "next Friday" or "Friday": the latest unless next."""
    ahead = (_WEEKDAYS.index(groups["weekday"]) - today.weekday()) % 7
    day = today + ahead * _DAY
    step = groups.get("step")
    if step not in ("this", "next") and (ahead or step == "last"):
        day -= 7 * _DAY
    return day


def _unit_span(unit: str, step: str, today: datetime) -> TimeSpan:
    """Return the span of this, the last or the next weekend, week, month or year."""
    steps = {"this": 0, "next": 1}.get(step, -1)
    monday = today - today.weekday() * _DAY
    if unit == "weekend":
        saturday = monday + (5 + 7 * steps) * _DAY
        if step not in ("this", "next") and saturday + 9 * _DAY <= today:
            saturday += 7 * _DAY
        return TimeSpan(saturday, shift(saturday, 2 * _DAY))
    if unit == "week":
        first = monday + 7 * steps * _DAY
        return TimeSpan(first, shift(first, 7 * _DAY))
    if unit == "month":
        first = today.replace(day=1)
        return TimeSpan(shift_months(first, steps), shift_months(first, steps + 1))
    return _year_span(today, today.year + steps)


def _year_span(today: datetime, year: int) -> TimeSpan:
    first = today.replace(year=year, month=1, day=1)
    return TimeSpan(first, shift_months(first, 12))


def _shift_units(moment: datetime, unit: str, count: int) -> datetime:
    if unit in ("day", "week"):
        return shift(moment, timedelta(days=count * (7 if unit == "week" else 1)))
    return shift_months(moment, count * (12 if unit == "year" else 1))
