"""Parses the time expressions of a question or a text, such as "last week" or "in May 2023", into spans.

The expressions of other languages are translated into English first. A question may also ask for
the newest or the oldest of its matches, or for what is true now.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache, partial

from mnemosyned.instants import in_zone, shift, shift_months
from mnemosyned.text.languages.tables import (
    COUNTS_OF_UNITS,
    ENGLISH,
    ENGLISH_COUNTS,
    ENGLISH_MONTHS,
    GRAMMARS,
    LANGUAGES,
    MONTH_NAMES,
    MONTHS,
    PHRASES,
    WEEKDAY_NAMES,
    WEEKDAYS,
    TimeOrder,
    fold_letters,
    join_alternatives,
    join_grammars,
    numbers_by_word,
)
from mnemosyned.text.rule_files import (
    compile_on_use,
    fill_parts,
    read_patterns,
    read_tables,
)
from mnemosyned.text.terms import (
    WORD,
    fold_case,
    is_vague,
    may_be_unspaced,
    with_words_apart,
)

_DAY = timedelta(days=1)
_WEEK = 7 * _DAY
WEEKDAYS_IN_TEXT = [name.lower() for name in WEEKDAY_NAMES]
COUNTS_IN_TEXT = ENGLISH_COUNTS | {"couple of": 2, "few": 3}
_TABLES = read_tables(__file__, "expressions.toml")
SEASONS: dict[str, int] = _TABLES["seasons"]
"""The first month of each season, in the northern hemisphere."""
PARTS: dict[str, str] = _TABLES["parts"]
"""Patterns of the parts of a day in other languages, by their English names."""
HOURS: dict[str, tuple[int, int]] = _TABLES["hours"]
"""First and last hour of each part of a day; a night ends on the next day."""
THIRDS: dict[str, tuple[int, int]] = _TABLES["thirds"]
"""First and last day of each part of a month, which overlap."""
MONTH_DAY_STEPS = 3
"""Number of months searched for one that has a given day, such as the 31st."""
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
"""Days of tolerance, before and after, of a time such as "three weeks ago", by its unit."""


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """A period of time: from `since` until just before `until`."""

    since: datetime
    until: datetime

    def with_margin(self) -> TimeSpan:
        """Return the span extended at its end by its own length, but at least a day and at most a week.

        The start moves back by a seventh of that extension. People report events late.
        """
        margin = max(_DAY, min(self.until - self.since, 7 * _DAY))
        return TimeSpan(shift(self.since, -margin / 7), shift(self.until, margin))


def matched_spans(
    groups: Mapping[str, str], now: datetime, *, ahead: bool = False
) -> tuple[TimeSpan, ...]:
    """Return the spans in UTC that a match of a time expression may mean: mostly one, or none.

    `groups` maps the names of the match's groups to lower-case text. "Next Friday" may mean two spans, and a
    date that does not exist means none. With `ahead`, a weekday or a date without a year is the coming one.
    """
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    try:
        span = (
            _range_span(groups, now, ahead=ahead)
            or _calendar_span(groups, today, ahead=ahead)
            or _counted_span(groups, now, today)
            or _named_span(groups, today, ahead=ahead)
        )
    except (ValueError, OverflowError):  # 31 April, or a year outside the calendar
        return ()
    if span is None:
        return ()
    if "week" in groups:
        span = _unit_span("week", "this", span.since)
    spans = [span]
    sunday = shift(today, (6 - today.weekday()) * _DAY)
    is_next = groups.get("step") == "next" and not {"unit", "final"} & groups.keys()
    if is_next and span.since <= sunday:  # half of all people mean a week later
        spans.append(TimeSpan(shift(span.since, _WEEK), shift(span.until, _WEEK)))
    in_utc = [
        TimeSpan(in_zone(meant.since, UTC), in_zone(meant.until, UTC))
        for meant in spans
    ]
    return tuple(meant for meant in in_utc if meant.since < meant.until)


def _range_span(
    groups: Mapping[str, str], now: datetime, *, ahead: bool
) -> TimeSpan | None:
    """Return the span from one named time to the end of a later one; None for other expressions."""
    if "final" not in groups:
        return None
    first, final = groups["first"], groups["final"]
    if first.isdigit() and len(first) < 4:  # "between 3 and 9 May"
        first = re.sub(r"\d+", first, final, count=1)
    elif (year := re.search(r",? \d{4}$", final)) and not re.search(r"\d{4}", first):
        first += year[0]
    ends = list[TimeSpan]()
    for name in (first, final):
        text = f"{name} of {groups['step']} week" if "step" in groups else name
        rules = list(matching_time_patterns({"in", "on", "the", *WORD.findall(text)}))
        for form in (text, f"in {text}", f"on the {text}"):
            matches = filter(None, (rule.fullmatch(form) for rule in rules))
            if match := next(matches, None):
                ends += matched_spans(named_groups(match), now, ahead=ahead)[:1]
    if len(ends) < 2:
        return None
    begin, end = (in_zone(at, now.tzinfo) for at in (ends[0].since, ends[-1].until))
    by_week = first in WEEKDAYS_IN_TEXT
    if end <= begin and ahead:
        end = shift(end, _WEEK) if by_week else shift_months(end, 12)
    elif end <= begin:
        begin = shift(begin, -_WEEK) if by_week else shift_months(begin, -12)
    return TimeSpan(begin, end)


def named_groups(match: re.Match[str]) -> dict[str, str]:
    """Return the lower-case text of each named group that took part in a match."""
    return {name: text.lower() for name, text in match.groupdict().items() if text}


def _calendar_span(
    groups: Mapping[str, str], today: datetime, *, ahead: bool
) -> TimeSpan | None:
    """Return the span of a date, month, season, Easter or year; None for other expressions.

    Without a year, return the latest such span or, with `ahead`, the next; a season is always the latest.
    """
    if not groups.keys().isdisjoint(("season", "quarter")):
        return _season_span(groups, today)
    if "feast" in groups:
        return _easter_span(groups, today, ahead=ahead)
    if "numbered" in groups:
        return _numbered_week_span(groups, today, ahead=ahead)
    month = ENGLISH_MONTHS.get(groups.get("name", "")) or int(groups.get("month", 0))
    if month:
        return _month_span(groups, today, month, ahead=ahead)
    if day := _read_day_of_month(groups):
        return _month_day_span(today, day, ahead=ahead)
    return _year_span(today, int(groups["year"])) if "year" in groups else None


def _month_span(
    groups: Mapping[str, str], today: datetime, month: int, *, ahead: bool
) -> TimeSpan:
    """Return a month, or its day or third: in a named year, else the latest or, with `ahead`, the next."""
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
    """Return the last or, with `ahead`, next day such as "the 26th"; None if no month has this day."""
    first = today.replace(day=1)
    for step in range(MONTH_DAY_STEPS):
        month = shift_months(first, step if ahead else -step)
        begin = shift(month, (day - 1) * _DAY)
        fits = begin >= today if ahead else begin <= today
        if fits and begin.month == month.month:
            return TimeSpan(begin, shift(begin, _DAY))
    return None


def _season_span(groups: Mapping[str, str], today: datetime) -> TimeSpan:
    """Return the three months of a season or quarter: of the named year, or else the latest that began."""
    quarter = int(groups.get("quarter", 0))
    month = 3 * quarter - 2 if quarter else SEASONS[groups["season"]]
    begin = today.replace(month=month, day=1)
    if "year" in groups:
        begin = begin.replace(year=int(groups["year"]))
    elif begin > today or (
        groups.get("step") == "last" and shift_months(begin, 3) > today
    ):
        begin = begin.replace(year=begin.year - 1)
    return TimeSpan(begin, shift_months(begin, 3))


def _easter_span(
    groups: Mapping[str, str], today: datetime, *, ahead: bool
) -> TimeSpan:
    """Return Good Friday to Easter Monday of a named year, else the latest or, with `ahead`, the next."""
    years = [today.year, today.year + (1 if ahead else -1)]
    for year in [int(groups["year"])] if "year" in groups else years:
        moon = (19 * (year % 19) + 24) % 30  # by Gauss, for 1900 to 2199
        moon -= moon == 29 or (moon == 28 and year % 19 > 10)
        moon_day = shift(today.replace(year=year, month=3, day=21), moon * _DAY)
        begin = shift(moon_day, ((6 - moon_day.weekday() or 7) - 2) * _DAY)
        end = shift(begin, 4 * _DAY)
        if end > today if ahead else begin <= today:
            break
    return TimeSpan(begin, end)


def _numbered_week_span(
    groups: Mapping[str, str], today: datetime, *, ahead: bool
) -> TimeSpan:
    """Return an ISO week: of the named year, else the latest that began or, with `ahead`, the next to end."""
    this_year = today.isocalendar().year
    years = [int(groups["year"])] if "year" in groups else []
    for year in years or (this_year, this_year + (1 if ahead else -1)):
        monday = datetime.fromisocalendar(year, int(groups["numbered"]), 1)
        begin = monday.replace(tzinfo=today.tzinfo)
        end = shift(begin, _WEEK)
        if end > today if ahead else begin <= today:
            break
    return TimeSpan(begin, end)


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
    if groups["ago"] in ("minute", "hour"):
        unit = timedelta(**{f"{groups['ago']}s": 1})
        return TimeSpan(shift(now, -(count + 1) * unit), shift(now, (1 - count) * unit))
    if groups["ago"] in ("day", "night"):
        day = today - count * _DAY
        hours = HOURS.get(groups["ago"], (0, 24))
        return TimeSpan(*(shift(day, timedelta(hours=hour)) for hour in hours))
    middle = _shift_by_units(today, groups["ago"], -count)
    tolerance = _TOLERANCE_DAYS[groups["ago"]] * _DAY
    return TimeSpan(shift(middle, -tolerance), shift(middle, tolerance + _DAY))


def _named_span(
    groups: Mapping[str, str], today: datetime, *, ahead: bool
) -> TimeSpan | None:
    """Return the span of "yesterday", "Friday evening" or "last week"; None for other text."""
    if "unit" in groups:
        # Of "the weekend", the present one if it has begun.
        step = groups.get("step", "this" if ahead or today.weekday() > 4 else "last")
        span = _unit_span(groups["unit"], step, today)
        if "weekday" not in groups:
            return span
        day = shift(span.since, WEEKDAYS_IN_TEXT.index(groups["weekday"]) * _DAY)
    elif "weekday" in groups:
        day = _nearest_weekday(groups, today, ahead=ahead)
    elif "tonight" in groups:
        day = today
    elif "word" in groups or "part" in groups:
        day = today + _DAYS_AHEAD.get(groups.get("word", ""), 0) * _DAY
    else:
        return None
    part = groups.get("part") or ("night" if "tonight" in groups else "")
    first, last = HOURS.get(part, (0, 24))
    return TimeSpan(day + timedelta(hours=first), shift(day, timedelta(hours=last)))


def _nearest_weekday(
    groups: Mapping[str, str], today: datetime, *, ahead: bool
) -> datetime:
    """Return midnight of "last Friday", "this Friday", "next Friday" or "Friday".

    "Friday" alone is today or later with `ahead`, else today or earlier.
    """
    days = (WEEKDAYS_IN_TEXT.index(groups["weekday"]) - today.weekday()) % 7
    step = groups.get("step")
    if step == "next":
        return shift(today, (days or 7) * _DAY)
    upcoming = step == "this" or (ahead and step != "last")
    if not upcoming and (days or step == "last"):
        days -= 7
    return shift(today, days * _DAY)


def _unit_span(unit: str, step: str, today: datetime) -> TimeSpan:
    """Return the span of this, the next or the last (by `step`) weekend, week, month or year."""
    steps = {"this": 0, "next": 1, "before": -2}.get(step, -1)
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
    """Return the span of a year, in the zone of `today`."""
    first = today.replace(year=year, month=1, day=1)
    return TimeSpan(first, shift_months(first, 12))


def _shift_by_units(moment: datetime, unit: str, count: int) -> datetime:
    """Return the moment `count` units later; a unit is an hour, day, week, month or year."""
    if unit == "hour":
        return shift(moment, timedelta(hours=count))
    if unit in ("day", "week"):
        return shift(moment, timedelta(days=count * (7 if unit == "week" else 1)))
    return shift_months(moment, count * (12 if unit == "year" else 1))


def _open_span(span: TimeSpan, bound: str, now: datetime, *, ahead: bool) -> TimeSpan:
    """Return the period of an expression such as "since May" or "until Friday".

    `bound` is the preposition, `span` the named time. "Since" a past time lasts until now, and since a future
    time for a week. "Until" a time begins a week before it or, with `ahead` and a future time, now.
    """
    at = span.since if bound in ("since", "before") else span.until
    if bound in ("since", "after"):
        return TimeSpan(at, now if at < now else shift(at, _WEEK))
    return TimeSpan(now if ahead and now < at else shift(at, -_WEEK), at)


SPANS_MAX = 4
MENTIONS_MAX = 12
"""Maximum number of times that are read from a text."""
_BOUNDED_GROUPS = {"weekday", "word", "tonight", "part", "unit"}
_POSSESSIVES, _INCLUSIVE = ("'s ", "’s "), {"after": "since", "before": "until"}
"""Ends of a time's name that make it an event's, and the bounds with which a part of that time counts:
"before yesterday's meeting" is yesterday, too."""
_VERBATIM_GROUPS = frozenset("month year season quarter weekday feast numbered".split())
"""Groups whose words a memory may contain; "yesterday" in a memory meant another day."""


def _join_longest_first(words: Iterable[str]) -> str:
    """Return a pattern that matches any of the words, trying the longest first."""
    return "|".join(sorted(words, key=len, reverse=True))


_WORDS = {
    "month": _join_longest_first(ENGLISH_MONTHS),
    "count": rf"\d{{1,3}}|{_join_longest_first(COUNTS_IN_TEXT)}",
    "ordinals": _join_longest_first(ORDINALS),
    "hours": "|".join(HOURS),
    "seasons": "|".join(SEASONS),
    "thirds": "|".join(THIRDS),
    "weekdays": "|".join(WEEKDAYS_IN_TEXT),
}
_PATTERNS = read_patterns(__file__, "expressions.toml", **_WORDS)
_BOUND = re.compile(_PATTERNS["bound"])
"""A word before a time that makes it the beginning or the end of another, such as "since"."""
_DUTY = re.compile(_PATTERNS["duty"])
"""Combinations of common words that together are the subject of a question."""
TIME_PATTERNS = [
    (
        frozenset(filter(None, re.split("[ |]", fill_parts(hints, _WORDS)))),
        compile_on_use(
            rf"\b(?:{fill_parts(pattern, _WORDS | _PATTERNS)})\b", re.IGNORECASE
        ),
    )
    for hints, pattern in read_tables(__file__, "expressions.toml")["expressions"]
]
"""Patterns of time expressions, each with words of which every match contains at least one. A pattern without
such words is tried on any text."""


_ENGLISH_DEEDS = frozenset(ENGLISH.deeds.split())
_HINTS = frozenset(
    "ago last past previous this next yesterday today tomorrow tonight noon weekend easter q1 q2 q3 q4"
    " week kw kalenderwoche semaine semana settimana vecka".split()
).union(WEEKDAYS_IN_TEXT, ENGLISH_MONTHS)
"""Words of which every time expression without a year contains at least one."""


def matching_time_patterns(words: Collection[str]) -> Iterator[re.Pattern[str]]:
    """Yield the patterns of time expressions that can match a text with the given words."""
    for hints, pattern in TIME_PATTERNS:
        if not hints or not hints.isdisjoint(words):
            yield pattern


@dataclass(frozen=True, slots=True)
class QuestionTimes:
    """The times that a question asks about."""

    spans: tuple[TimeSpan, ...] = ()
    remaining_text: str = ""
    """The question without expressions that no memory repeats, such as "last week"."""
    only_time: bool = False
    """Whether it asks for nothing but a time, as "what happened last Tuesday?" does."""
    order: TimeOrder | None = None
    """Whether it asks for the newest, the oldest or the current match."""
    subject_text: str = ""
    """The question without any time expression, and without the word of its order; empty if nothing but a
    question is left, as "what happened"."""


def parse_times(text: str, now: datetime) -> QuestionTimes:
    """Return the times and the order (newest, oldest) that a question asks for, and the rest of the text.

    `now` is when the question is asked; it is aware, and its time zone decides where a day begins.
    """
    english = translate_times(with_words_apart(text))
    if not _may_mention_time(english):
        order, subject = extract_time_order(text)
        return QuestionTimes((), text.strip(), order=order, subject_text=subject)
    is_ahead = asks_about_future(english)
    reader = _TimeReader(english, now, ahead=is_ahead, is_question=True)
    return reader.question_times()


def mentioned_spans(text: str, said_at: datetime) -> tuple[TimeSpan, ...]:
    """Return the spans that a text written at `said_at` mentions; a weekday or `5 May` is the next one."""
    english = translate_times(with_words_apart(text))
    if not _may_mention_time(english):
        return ()
    return _TimeReader(english, said_at, ahead=True, is_question=False).spans


class _TimeReader:
    """Collects the spans of a text, and blanks out each match so that later patterns skip it."""

    def __init__(
        self, text: str, now: datetime, *, ahead: bool, is_question: bool
    ) -> None:
        self._spans_max = spans_max = SPANS_MAX if is_question else MENTIONS_MAX
        self._spans: list[TimeSpan] = []
        self._date_terms: list[str] = []
        self._text = text
        self._is_dated = False
        self._unmatched = text
        self._remaining = text
        present = set(WORD.findall(text.casefold()))
        for rule in matching_time_patterns(present):
            # Each match is blanked out for later patterns.
            for match in rule.finditer(self._unmatched):
                groups = named_groups(match)
                spans = matched_spans(groups, now, ahead=ahead)
                if not spans or len(self._spans) >= spans_max:
                    continue
                bound = _BOUND.search(text[: match.start()]) if is_question else None
                if bound and bound.lastgroup and groups.keys() & _BOUNDED_GROUPS:
                    name = bound.lastgroup
                    if text.startswith(_POSSESSIVES, match.end()):
                        name = _INCLUSIVE.get(name, name)
                    span = _open_span(spans[0], name, now, ahead=ahead)
                    spans = (span,)
                self._spans.extend(spans)
                self._unmatched = _blank_out(self._unmatched, match, "|")
                self._is_dated |= not groups.keys().isdisjoint(
                    ("name", "year", "month", "final")
                )
                dated = "name" in groups and not groups.keys() & {"nth", "week"}
                if dated:
                    # Terms such as `8-May`, which match only day and month side by side.
                    month = MONTH_NAMES[ENGLISH_MONTHS[groups["name"]] - 1]
                    terms = f"{month}-{groups['year']}" if "year" in groups else month
                    if day := groups.get("day"):
                        terms = f"{day}-{month} {month}-{day}"
                    self._date_terms.append(terms)
                if dated or "unit" in groups or not groups.keys() & _VERBATIM_GROUPS:
                    self._remaining = _blank_out(self._remaining, match, " ")

    @property
    def spans(self) -> tuple[TimeSpan, ...]:
        """The spans collected, at most `spans_max`."""
        return tuple(self._spans[: self._spans_max])

    def question_times(self) -> QuestionTimes:
        """Return the spans, the order asked for and the remaining words of the question.

        A question about now, such as "is it still on Wednesday", has no spans unless it names a month or year.
        """
        order, subject = extract_time_order(self._unmatched)
        if order is TimeOrder.CURRENT and self._is_dated:
            order = None
        elif order is TimeOrder.CURRENT:  # "is it still on Wednesday" asks of today
            return QuestionTimes((), self._text, order=order, subject_text=subject)
        words = [
            fold_case(word)
            for word in WORD.findall(self._unmatched)
            if word.isascii() or not _ASIAN_ASKING.fullmatch(word)
        ]
        only_asks = any(map(frozenset(words).issubset, _question_words_by_language()))
        is_vague_question = only_asks or all(
            is_vague(word) or word in _ENGLISH_DEEDS for word in words
        )
        only_time = is_vague_question and not _DUTY.search(self._unmatched)
        return QuestionTimes(
            self.spans,
            " ".join([self._remaining.strip(), *self._date_terms]),
            only_time=bool(self._spans) and only_time,
            order=order,
            subject_text="" if self._spans and only_time and only_asks else subject,
        )


@cache
def _question_words_by_language() -> list[frozenset[str]]:
    """Return, for each language, the folded words that a question may have without naming a subject."""
    asking = (
        f"{language.stop_words} {language.question_stop_words} {language.deeds}"
        for language in LANGUAGES
    )
    return [frozenset(fold_case(words).split()) for words in asking]


def _blank_out(text: str, match: re.Match[str], blank: str) -> str:
    """Return the text with `blank` in place of each character of the match, at the same length."""
    return text[: match.start()] + blank * len(match[0]) + text[match.end() :]


def _may_mention_time(text: str) -> bool:
    """Return False if a text surely has no English time expression; a quick check."""
    words = WORD.findall(text.casefold())
    return not _HINTS.isdisjoint(words) or any(
        (len(word) == 4 and word.isdigit())
        or (word[-2:] in ("st", "nd", "rd", "th") and word[:-2].isdigit())
        for word in words
    )


# --------------------------------------------------------------- translation

_RANGE_ROWS = _PATTERNS["range_weekdays"].split("|")
_RANGE_WEEKDAYS = WEEKDAYS | numbers_by_word([_RANGE_ROWS], first=0)
_NAMES = {name: WEEKDAY_NAMES[day] for name, day in _RANGE_WEEKDAYS.items()}
_NAMES |= {name: MONTH_NAMES[month - 1] for name, month in MONTHS.items()}
WEEKDAY_CHARS_MIN = 5
"""Shorter weekdays are abbreviations, and words such as "sat" and "sun"."""
_WORD, _STOP = re.compile(r"[^\W\d_]+"), re.compile(r"(?:-feira|\.)(?= |\Z)")
_PHRASE_WORD = re.compile(r"[^\W\d_]{3,}")
_UNITS = ("minute", "hour", "day", "week", "month", "year")
_OF = r"(?:de |del |di |of )?"
_YEAR = rf"(?: {_OF}(?P<year>\d{{4}}))?"

Translation = str | Callable[[re.Match[str]], str]
_TranslationRules = tuple[frozenset[str], Sequence[tuple[re.Pattern[str], Translation]]]
"""Words, at least one of which every expression of some rules has, and the rules in their order of use."""


def translate_times(text: str) -> str:
    """Return a text with the time expressions of other languages translated into English."""
    if may_be_unspaced(text):
        for pattern, form in _compile_asian_rules():
            text = pattern.sub(partial(_translate_asian, form=f" {form} "), text)
        text = text.strip()
    words = set(WORD.findall(fold_letters(text)))
    for hints, rules in compile_translation_rules():
        if not hints.isdisjoint(words):
            for pattern, translation in rules:
                text = pattern.sub(translation, text)
    return text


@cache
def _compile_asian_rules() -> list[tuple[re.Pattern[str], str]]:
    """Return (pattern, English form) of the time expressions in Chinese, Japanese and Korean."""
    return [
        (re.compile(fill_parts(pattern, _TABLES["asian_parts"])), form)
        for pattern, form in _TABLES["asian"]
    ]


def _translate_asian(match: re.Match[str], *, form: str) -> str:
    """Return the English form of a time expression, such as "{w} of last week"."""
    names = match.groupdict()
    if weekday := names.get("w"):
        (day,) = (char for char in weekday if char in _ASIAN_DAYS)
        names["w"] = WEEKDAY_NAMES[_ASIAN_DAYS.index(day) % len(WEEKDAY_NAMES)]
    if count := names.get("n"):
        names["n"] = str(_ASIAN_COUNTS.find(count) + 1 or count)
    if (month := names.get("m")) and not 0 < int(month) <= len(MONTH_NAMES):
        return match[0]
    return form.format_map(names | {"m": MONTH_NAMES[int(month or 1) - 1]})


_ASIAN_DAYS, _ASIAN_COUNTS = (
    "月火水木金土日一二三四五六天월화수목금토일",
    "一二三四五六七八九十",
)
_ASIAN_ASKING = compile_on_use(_TABLES["asian_asking"])


@lru_cache(maxsize=1)
def compile_translation_rules() -> list[_TranslationRules]:
    """Return the rules that translate time expressions into English, in their order of use."""
    phrases, ago = set[str](), set(_PATTERNS["recent"].split("|"))
    for grammar in GRAMMARS:
        ago.update(grammar.ago_before.split()[:1], grammar.ago_after.split("|"))
        phrases.update(_PHRASE_WORD.findall(" ".join(grammar.phrases.values())))
    # Without what stands before some: "Montagabend", but no "Montagde manhã".
    parts = re.sub(r"\(\?:[^)]*\)\?", "", "|".join(PARTS.values()))
    part_words = set(_PHRASE_WORD.findall(parts))
    compounds = {f"{day}{part}" for day in WEEKDAYS for part in part_words}
    phrase_rules = [
        (
            join_alternatives(grammar.phrases.get(phrase, "") for grammar in GRAMMARS),
            phrase,
        )
        for phrase in PHRASES
    ]
    return [
        _compile_rules(phrases, phrase_rules),
        *map(_compile_period_rules, GRAMMARS[0].periods),
        _compile_rules(ago, _ago_translation_rules()),
        _compile_rules({*MONTHS, *_RANGE_WEEKDAYS}, _range_translation_rules()),
        _compile_rules(MONTHS, _date_translation_rules()),
        _compile_rules(_DAYS_IN_FIGURES, [_DATE_IN_FIGURES, _DAY_ALONE]),
        _compile_rules(compounds, [(rf"({'|'.join(WEEKDAYS)})({parts})", r"\1 \2")]),
        _compile_rules(compounds.union(WEEKDAYS), _weekday_translation_rules()),
        _compile_rules(
            compounds | part_words,
            ((rf"(?<=day |row )(?:{words})", part) for part, words in PARTS.items()),
        ),
    ]


def _compile_rules(
    hints: Iterable[str], rules: Iterable[tuple[str, Translation]]
) -> _TranslationRules:
    """Return the rules with patterns and `hints`; a text without any hint matches no rule."""
    return frozenset(map(fold_letters, hints)), [
        (compile_on_use(rf"(?<!\w)(?:{pattern})(?!\w)", re.IGNORECASE), translation)
        for pattern, translation in rules
    ]


def _ago_translation_rules() -> Iterator[tuple[str, Translation]]:
    """Yield the rules for durations ago, such as "vor drei Wochen"."""
    number = rf"{_PATTERNS['roughly']}(?P<count>\d{{1,3}}|{join_alternatives(map(re.escape, COUNTS_OF_UNITS))})"
    units = join_alternatives(
        f"(?P<{unit}>{join_alternatives(grammar.units[unit] for grammar in GRAMMARS)})"
        for unit in _UNITS
    )
    yield rf"(?:{join_grammars('ago_before')}) {number} (?:{units})", _translate_ago
    yield rf"(?:{units}) {number} (?:{join_grammars('ago_after')})", _translate_ago
    recent = rf"(?:{_PATTERNS['recent']})"
    for form in (rf"{recent} {number}", rf"{number} {recent}"):
        yield rf"{form} (?:{units})", partial(_translate_ago, form="last {}")
    yield rf"{number} (?:{units}) (?:{join_grammars('ago_after')})", _translate_ago


def _compile_period_rules(period: str) -> _TranslationRules:
    """Return the rules for a period such as "week": "letzte Woche", "la semaine prochaine"."""
    names = [(grammar, grammar.periods.get(period, "(?!)")) for grammar in GRAMMARS]
    rules = list[tuple[str, Translation]]()
    for step in ("last", "this", "next"):
        forms = (  # each in one language: Polish "to" and French "an" are no year
            f"(?:{getattr(grammar, f'{step}_before') or '(?!)'})(?:{name})"
            f"|(?:{name}) (?:{getattr(grammar, f'{step}_after', '') or '(?!)'})"
            for grammar, name in names
        )
        rules.append(("|".join(forms), f"{step} {period}"))
    return _compile_rules(_WORD.findall("|".join(name for _, name in names)), rules)


def _date_translation_rules() -> Iterator[tuple[str, Translation]]:
    """Yield the rules for dates and months, such as "am 5. Mai 2023"."""
    named = rf"(?P<month>{join_alternatives(map(re.escape, MONTHS))})"
    mark = _PATTERNS["ordinal_mark"]
    number = rf"(?<![\d.,:])(?P<day>\d{{1,2}})(?:\. ?|{mark}? )"
    on_day, in_month = join_grammars("on_day"), join_grammars("in_month")
    yield rf"(?:(?:{on_day}) )?{number}{_OF}{named}{_YEAR}", _translate_date
    yield rf"(?:{in_month}) {named}{_YEAR}", _translate_date
    undated = rf"(?<!\d )(?<!\d\. )(?<!in ){named} {_OF}(?P<year>\d{{4}})"
    yield undated, _translate_date


def _range_translation_rules() -> Iterator[tuple[str, Translation]]:
    """Yield the rules for ranges, such as "von Mo bis Mi" and "mars à mai", and weekdays of a week."""
    weekday = join_alternatives(map(re.escape, _RANGE_WEEKDAYS))
    month = join_alternatives(map(re.escape, MONTHS))
    point = (
        rf"(?:{weekday}|(?:\d{{1,2}}\.? (?:de )?)?(?:{month}))\.?(?: (?:de )?\d{{4}})?"
    )
    begin, end = _PATTERNS["range_begin"], _PATTERNS["range_end"]
    week = "(?P<week>(?:last|this|next) week)"
    on = join_grammars("on_weekday")
    day = rf"(?<!to )(?:{on}|on |n[ao] )?(?!{_PATTERNS['no_weekday']})(?P<weekday>{weekday})"
    of = r"(?:(?:of|de la|del?|della|di|d[ao]|w|на) )?"
    forms = [rf"{begin}(?P<first>{point}|\d{{1,2}}\.?) {end}(?P<final>{point})"]
    for form in (*forms, rf"{day},? {of}{week}", rf"{week},? {day}", rf"{day}-feira"):
        yield form, _translate_range


def _translate_range(match: re.Match[str]) -> str:
    """Return the English form of a matched range or weekday: `from May to June`, `on Monday of last week`."""
    name = {
        key: names_in_english(text or "") for key, text in match.groupdict().items()
    }
    if "first" in name:
        return f"from {name['first']} to {name['final']}"
    return f"on {name['weekday']}" + (f" of {name['week']}" if "week" in name else "")


def names_in_english(words: str) -> str:
    """Return the words with months and weekdays in English, and no full stops after words."""
    words = _WORD.sub(lambda word: _NAMES.get(fold_letters(word[0]), word[0]), words)
    return _STOP.sub("", words)


def _weekday_translation_rules() -> Iterator[tuple[str, Translation]]:
    """Yield the rules for weekdays, such as "letzten Montag"."""
    days = [name for name in WEEKDAYS if len(name) >= WEEKDAY_CHARS_MIN]
    weekday = rf"(?P<weekday>{join_alternatives(map(re.escape, days))})"
    on_weekday = join_grammars("on_weekday")
    for step in ("last", "next"):
        before, after = join_grammars(f"{step}_before"), join_grammars(f"{step}_after")
        translate = partial(_translate_weekday, step=step)
        yield rf"(?:{on_weekday})?(?:{before}){weekday}", translate
        yield rf"(?:{on_weekday}|le |il )?{weekday} (?:{after})", translate
    on = partial(_translate_weekday, step="on")
    yield rf"(?:{on_weekday}){weekday}", on
    foreign = join_alternatives(name for name in days if name not in WEEKDAYS_IN_TEXT)
    part = rf" (?:{'|'.join(PARTS.values())})\b"
    alone = rf"(?<!herr )(?<!frau )(?<!\ble )(?<!\bil )(?P<weekday>{foreign})(?=\W*$|{part})"
    yield alone, on  # "on a fait quoi samedi ?"


def _translate_date(match: re.Match[str]) -> str:
    """Return the English form of a matched date or month: `5 May 2023`, `in May`."""
    day = match.groupdict().get("day") or "in"
    month = MONTH_NAMES[MONTHS[fold_letters(match["month"])] - 1]
    return " ".join(filter(None, (day, month, match["year"])))


def _translate_ago(match: re.Match[str], *, form: str = "{} ago") -> str:
    """Return the English form of a matched duration in the past: `3 weeks ago` or `last 3 weeks`."""
    number = match["count"]
    count = number if number.isdigit() else str(COUNTS_OF_UNITS[fold_letters(number)])
    unit = next(unit for unit in _UNITS if match[unit])
    return form.format(f"{count} {unit}s")


def _translate_weekday(match: re.Match[str], *, step: str) -> str:
    """Return the English form of a matched weekday with `step` before it: `last Monday`."""
    return f"{step} {WEEKDAY_NAMES[WEEKDAYS[fold_letters(match['weekday'])]]}"


def _translate_date_in_figures(match: re.Match[str]) -> str:
    """Return the English form of a date in figures: `22 November 2026` for "am 22.11.26"."""
    year = match["year"] or ""
    full_year = f"20{year}" if len(year) == 2 else year
    return f"{int(match['day'])} {MONTH_NAMES[int(match['month']) - 1]} {full_year}".strip()


_DAYS_IN_FIGURES = {f"{day:{form}}" for day in range(1, 32) for form in ("", "02")}
_DAYS_IN_FIGURES.update("op den día dia giorno числа".split())
_DATE_IN_FIGURES = (
    (
        r"(?:am|vom|zum|de[nm]|bis|seit|ab) (?P<day>0?[1-9]|[12][0-9]|3[01])\. ?"
        r"(?P<month>0?[1-9]|1[0-2])(?:\. ?(?P<year>[0-9]{4}|[0-9]{2})(?![\w.:])|\.|(?= ?\?))"
    ),
    _translate_date_in_figures,
)
"""The rule of "am 22.11." and "am 22.11.26"; without a preposition it may be a version."""
_DAY_ALONE = (_PATTERNS["day_alone"], r"on the \g<day>th")
"""The rule of "am 5." without a month."""


# ----------------------------------------------------------- order and tense

_ORDERS = [language.order for language in LANGUAGES if language.order]
_NO_TIME = re.compile(_PATTERNS["no_time"])
"""Phrases in which words of an order name no time: "first floor", "how long does it last"."""
_GERMAN_WAS = re.compile(_PATTERNS["german_was"])
"""The German word for "what", which is a past tense in English."""
_FROM = re.compile(_PATTERNS["from"])


@cache
def _compile_order_pattern(*fields: str) -> re.Pattern[str]:
    """Return a pattern of the words in these fields of `OrderWords` of all languages, such as "newest"."""
    groups = (
        f"(?P<{field}>{join_alternatives(getattr(order, field) for order in _ORDERS)})"
        for field in fields
    )
    return re.compile(rf"(?i)(?<![\w-])(?:{'|'.join(groups)})(?![\w'’-])")


def extract_time_order(text: str) -> tuple[TimeOrder | None, str]:
    """Return the order that a question asks for, or None; and the question without the order's word.

    The order is the newest, oldest or current match. Time expressions must have been removed from
    `text`, since "last week" is a time and "last note" an order.
    """
    match = _compile_order_pattern(*(order.value for order in TimeOrder)).search(text)
    if match is None or match.lastgroup is None or _NO_TIME.search(text):
        return None, text
    order = TimeOrder(match.lastgroup)
    return order, f"{text[: match.start()]} {text[match.end() :]}"


def asks_about_future(text: str) -> bool:
    """Return True if a question has a word such as "is" or "will", and none such as "was" or "since".

    A weekday or date in such a question is the coming one.
    """
    text = _GERMAN_WAS.sub("", text)
    return (
        _compile_order_pattern("ahead").search(text) is not None
        and _compile_order_pattern("past").search(text) is None
        and _FROM.search(text) is None
    )
