"""Time expressions of a question: which stretch of time "last week" or "in May 2023" means."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from mnemosyned.domain.dates.relative import MONTH_NAMES
from mnemosyned.domain.dates.translated import translate_times
from mnemosyned.domain.instants import in_zone, shift, shift_months
from mnemosyned.domain.text.foreign_stopwords import FOREIGN_STOP_WORDS
from mnemosyned.domain.text.stemming import WORD, fold_case, stem
from mnemosyned.domain.text.stopwords import COMMON_WORDS, STOP_WORDS

_DAY = timedelta(days=1)
_VAGUE = STOP_WORDS | COMMON_WORDS | frozenset(map(fold_case, FOREIGN_STOP_WORDS))
SPANS_MAX = 4
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_COUNTS = {
    word: value
    for value, word in enumerate(
        "one two three four five six seven eight nine ten".split(), 1
    )
} | {"a": 1, "an": 1, "couple": 2, "couple of": 2, "few": 3}
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
"""The month each begins with, in the north."""
_HOURS = {
    "morning": (5, 12),
    "afternoon": (12, 18),
    "evening": (17, 24),
    "night": (18, 30),
}
"""A night runs into the next day."""

_MONTH_NUMBER = {
    spelling: number
    for number, name in enumerate(MONTH_NAMES, 1)
    for spelling in (name.lower(), name[:3].lower())
} | {"sept": 9}
_MONTH = "|".join(sorted(_MONTH_NUMBER, key=len, reverse=True))
_COUNT = rf"\d{{1,3}}|{'|'.join(sorted(_COUNTS, key=len, reverse=True))}"
_ORDINAL = r"(?:st|nd|rd|th)?"
_VERBATIM_GROUPS = {"month", "year", "season", "weekday"}
"""What says one of these may stand in a memory word for word; "yesterday" was another day then."""
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
).union(_WEEKDAYS, _MONTH_NUMBER)
"""One of these words, or a year, is in every time expression."""


@lru_cache(maxsize=1)
def _rules() -> tuple[re.Pattern[str], ...]:
    """Compiled for the first question: a client that asks elsewhere must not wait for it."""
    return tuple(
        re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE) for pattern in _PATTERNS
    )


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """A stretch of time, up to and without its end."""

    since: datetime
    until: datetime

    def widened(self) -> TimeSpan:
        """With some time after it: what happened is told a little later."""
        reach = max(_DAY, min(self.until - self.since, 7 * _DAY))
        return TimeSpan(shift(self.since, -reach / 7), shift(self.until, reach))


@dataclass(frozen=True, slots=True)
class QuestionTimes:
    """What a question says about time."""

    spans: tuple[TimeSpan, ...] = ()
    remaining_text: str = ""
    """The question without what a memory would not repeat, such as "last week"."""
    only_time: bool = False
    """Whether it asks for nothing but a time, as "what happened last Tuesday?" does."""


def parse_times(text: str, now: datetime) -> QuestionTimes:
    """Read the time expressions of a question, relative to when and where it is asked.

    `now` is aware; its zone says where a day begins.
    """
    english = translate_times(text)
    if not _may_mention_time(english):
        return QuestionTimes((), text.strip())
    spans: list[TimeSpan] = []
    written: list[str] = []
    left = rest = english
    for rule in _rules():
        for match in rule.finditer(left):
            groups = {
                name: value.lower()
                for name, value in match.groupdict().items()
                if value
            }
            span = _matched_span(groups, now)
            if span is None or len(spans) == SPANS_MAX:
                continue
            spans.append(span)
            blank = "|" * len(match[0])
            left = left[: match.start()] + blank + left[match.end() :]
            if "name" in groups:
                written.append(_date_as_terms(groups))
            if "name" in groups or not groups.keys() & _VERBATIM_GROUPS:
                rest = rest[: match.start()] + " " * len(blank) + rest[match.end() :]
    alone = bool(spans) and all(map(_is_vague, WORD.findall(fold_case(left))))
    return QuestionTimes(tuple(spans), " ".join([rest.strip(), *written]), alone)


def _may_mention_time(text: str) -> bool:
    """Whether it is worth reading for times: most questions are not, and have no need of a rule."""
    words = WORD.findall(text.casefold())
    return not _HINTS.isdisjoint(words) or any(
        len(word) == 4 and word.isdigit() for word in words
    )


def _is_vague(word: str) -> bool:
    """Whether a word of a question, or its stem, singles nothing out."""
    return not _VAGUE.isdisjoint((word, stem(word)))


def _date_as_terms(said: dict[str, str]) -> str:
    """A date as words that only count side by side: `8` or `May` by itself says nothing."""
    month = MONTH_NAMES[_MONTH_NUMBER[said["name"]] - 1]
    if "day" in said:
        return f"{said['day']}-{month} {month}-{said['day']}"
    return f"{month}-{said['year']}" if "year" in said else month


def _matched_span(said: dict[str, str], now: datetime) -> TimeSpan | None:
    """What the groups of a rule mean, or None where there is no such day."""
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    try:
        span = (
            _calendar_span(said, today)
            or _counted_span(said, now, today)
            or _named_span(said, today)
        )
    except (
        ValueError,
        OverflowError,
    ):  # 31 April, or a year beyond the calendar's ends
        return None
    if span is None:
        return None
    since, until = in_zone(span.since, UTC), in_zone(span.until, UTC)
    return TimeSpan(since, until) if since < until else None


def _calendar_span(said: dict[str, str], today: datetime) -> TimeSpan | None:
    """A date, a month or a year; without a year, the latest that has begun."""
    if "season" in said:
        return _season_span(said, today)
    month = _MONTH_NUMBER.get(said.get("name", "")) or int(said.get("month", 0))
    if not month:
        return _year_span(today, int(said["year"])) if "year" in said else None
    day = int(said.get("day", 0))
    year = int(said["year"]) if "year" in said else today.year
    begin = today.replace(year=year, month=month, day=day or 1)
    if "year" not in said and begin > today:
        begin = begin.replace(year=year - 1)
    return TimeSpan(begin, shift(begin, _DAY) if day else shift_months(begin, 1))


def _season_span(said: dict[str, str], today: datetime) -> TimeSpan:
    begin = today.replace(month=_SEASONS[said["season"]], day=1)
    if "year" in said:
        begin = begin.replace(year=int(said["year"]))
    elif begin > today or (
        said.get("step") == "last" and shift_months(begin, 3) > today
    ):
        begin = begin.replace(year=begin.year - 1)
    return TimeSpan(begin, shift_months(begin, 3))


def _counted_span(
    said: dict[str, str], now: datetime, today: datetime
) -> TimeSpan | None:
    """So many units ago, or the last so many."""
    if "count" not in said:
        return None
    count = int(said["count"]) if said["count"].isdigit() else _COUNTS[said["count"]]
    if "back" in said:
        return TimeSpan(_shift_units(now, said["back"], -count), now)
    if said["ago"] == "day":
        day = today - count * _DAY
        return TimeSpan(day, shift(day, _DAY))
    middle = _shift_units(today, said["ago"], -count)
    slack = {"week": 3, "month": 15, "year": 100}[said["ago"]] * _DAY
    return TimeSpan(shift(middle, -slack), shift(middle, slack + _DAY))


def _named_span(said: dict[str, str], today: datetime) -> TimeSpan | None:
    """Yesterday, Friday evening, last week."""
    if "unit" in said:
        return _unit_span(said["unit"], said["step"], today)
    word = said.get("word") or ("today" if "tonight" in said else "")
    if word == "last":
        day = today - _DAY
    elif word:
        steps = {"the day before yesterday": -2, "yesterday": -1, "tomorrow": 1}
        day = today + steps.get(word, 0) * _DAY
    elif "weekday" in said:
        ahead = (_WEEKDAYS.index(said["weekday"]) - today.weekday()) % 7
        day = today + ahead * _DAY
        if said.get("step") not in ("this", "next") and (
            ahead or said.get("step") == "last"
        ):
            day -= 7 * _DAY
    else:
        return None
    first, last = _HOURS.get(
        said.get("part") or ("night" if "tonight" in said else ""), (0, 24)
    )
    return TimeSpan(day + timedelta(hours=first), shift(day, timedelta(hours=last)))


def _unit_span(unit: str, step: str, today: datetime) -> TimeSpan:
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
