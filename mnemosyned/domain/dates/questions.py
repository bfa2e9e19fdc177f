"""Parses the time expressions of a question or a text, such as "last week" or "in May 2023"."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from mnemosyned.domain.dates.names import ENGLISH_MONTHS, MONTH_NAMES
from mnemosyned.domain.dates.order import asks_ahead, time_order
from mnemosyned.domain.dates.spans import (
    COUNTS,
    HOURS,
    ORDINALS,
    SEASONS,
    THIRDS,
    WEEKDAYS,
    TimeSpan,
    matched_spans,
)
from mnemosyned.domain.dates.translated import translate_times
from mnemosyned.domain.languages import LANGUAGES
from mnemosyned.domain.languages.language import TimeOrder
from mnemosyned.domain.text.stemming import WORD, fold_case
from mnemosyned.domain.text.terms import with_words_apart
from mnemosyned.domain.text.words.vague_words import is_vague

SPANS_MAX = 4
YEAR_CHARS = 4
MENTIONS_MAX = 12
"""Times read of a text that mentions them."""
_MONTH = "|".join(sorted(ENGLISH_MONTHS, key=len, reverse=True))
_COUNT = rf"\d{{1,3}}|{'|'.join(sorted(COUNTS, key=len, reverse=True))}"
_NTH_ENDS = ("st", "nd", "rd", "th")
_NTH_END = f"(?:{'|'.join(_NTH_ENDS)})"
_ORDINAL = f"{_NTH_END}?"
_VERBATIM_GROUPS = {"month", "year", "season", "weekday"}
"""Groups whose words a memory may contain verbatim; "yesterday" was another day then."""
_PART = rf"(?: (?P<part>{'|'.join(HOURS)}))?"
_SEASON = f"(?P<season>{'|'.join(SEASONS)})"
_WEEKDAY = f"(?P<weekday>{'|'.join(WEEKDAYS)})"
_ABOUT = "(?:in|since|during|from|last|this)"
_THIRD = f"(?P<third>{'|'.join(THIRDS)})"
_NO_VERB = r"(?! (?:be|been|have|not|need|go|get|fail|also|well|or|i|we|you|he|she|it|they|this)\b)"
"""After a month that is a verb too: "this may be", "10 march on"."""
_NO_COUNT = r"(?! (?:people|persons?|miles?|km|times?|more|minutes?|hours?|days?|weeks?|percent|%))"
"""After a number that may be a count: "may 5 people come"."""
_NO_PLACE = (
    r"(?! (?:floor|row|page|street|avenue|attempt|place|time|grade|level|try)\b)"
)
"""After a number that may count something else: "on the 3rd floor"."""
_DUTY = re.compile(r"(?i)\bon[- ](?:call|duty)\b")
"""Words that are common alone, and together say what a question is about."""
_STEPS = frozenset("last past previous this next".split())
_MONTH_WORDS = frozenset(ENGLISH_MONTHS)
_SEASON_WORDS = frozenset(SEASONS)
_WEEKDAY_WORDS = frozenset(WEEKDAYS)
_ANY: frozenset[str] = frozenset()
TIME_PATTERNS = (
    (_ANY, r"(?P<year>\d{4})-(?P<month>\d\d)(?:-(?P<day>\d\d))?"),
    (_ANY, r"(?<![\d.])(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})"),
    (
        _MONTH_WORDS,
        (
            rf"(?<![\d.,])(?P<day>\d{{1,2}}){_ORDINAL} (?:of )?(?P<name>{_MONTH})\b{_NO_VERB}"
            r"\.?(?:,? (?P<year>\d{4}))?"
        ),
    ),
    (
        _MONTH_WORDS,
        rf"(?P<nth>{'|'.join(sorted(ORDINALS, key=len, reverse=True))}) of (?P<name>{_MONTH})",
    ),
    (
        _MONTH_WORDS,
        (
            rf"(?P<name>{_MONTH})\.? (?P<day>\d{{1,2}}){_ORDINAL}(?!\d){_NO_COUNT}"
            r"(?:,? (?P<year>\d{4}))?"
        ),
    ),
    (
        _MONTH_WORDS,
        rf"(?:{_THIRD}[ -])?(?P<name>{_MONTH})\.?(?: of)?,? (?P<year>\d{{4}})",
    ),
    (_MONTH_WORDS, rf"(?:{_THIRD}|{_ABOUT})[ -](?P<name>{_MONTH})\b{_NO_VERB}"),
    (frozenset({"ago"}), rf"(?P<count>{_COUNT}) (?P<ago>day|week|month|year)s? ago"),
    (
        _STEPS,
        rf"(?:last|past|previous) (?P<count>{_COUNT}) (?P<back>day|week|month|year)s",
    ),
    (
        _STEPS,
        r"(?P<step>last|past|previous|this|next) (?P<unit>week|month|year|weekend)",
    ),
    (_WEEKDAY_WORDS, rf"(?:{'|'.join(WEEKDAYS)}),? the (?P<day>\d{{1,2}}){_NTH_END}"),
    (_WEEKDAY_WORDS, rf"(?:(?P<step>last|this|next|on) )?{_WEEKDAY}{_PART}"),
    (
        frozenset("yesterday today tomorrow".split()),
        r"(?P<word>the day (?:before yesterday|after tomorrow)|yesterday|today|tomorrow)"
        + _PART,
    ),
    (_STEPS, r"(?P<word>last) (?P<part>night)"),
    (
        frozenset({"this", "tonight"}),
        r"(?P<word>this) (?P<part>morning|afternoon|evening)|(?P<tonight>tonight)",
    ),
    (_SEASON_WORDS, rf"{_SEASON} (?:of )?(?P<year>\d{{4}})"),
    (_SEASON_WORDS, rf"(?P<step>last|this) {_SEASON}"),
    (
        frozenset({"the"}),
        rf"(?:on|by|until|till|before) the (?P<day>\d{{1,2}}){_NTH_END}{_NO_PLACE}",
    ),
    (_ANY, r"(?:in|during|of|since|year) (?P<year>(?:19|20)\d\d)"),
)
"""Each rule with the words of which every expression that it finds has one; none for any text."""


_HINTS = frozenset(
    "ago last past previous this next yesterday today tomorrow tonight".split()
).union(WEEKDAYS, ENGLISH_MONTHS)
"""Every time expression contains one of these words, or a year."""


def time_rules(present: Collection[str]) -> Iterator[re.Pattern[str]]:
    """Yield the rules for a text with these words."""
    for words, pattern in TIME_PATTERNS:
        if not words or not words.isdisjoint(present):
            yield _compiled(pattern)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern on first use: the shell client, which starts often, needs few."""
    return re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class QuestionTimes:
    """The times that a question asks about."""

    spans: tuple[TimeSpan, ...] = ()
    remaining_text: str = ""
    """The question without expressions that no memory repeats, such as "last week"."""
    only_time: bool = False
    """Whether it asks for nothing but a time, as "what happened last Tuesday?" does."""
    order: TimeOrder | None = None
    """Whether it asks for the newest, the oldest, or what is true now."""
    subject_text: str = ""
    """The question without any time expression, and without the word of its order."""


def parse_times(text: str, now: datetime) -> QuestionTimes:
    """Parse the time expressions of a question asked at `now`.

    `now` is aware; its time zone decides where a day begins.
    """
    english = translate_times(with_words_apart(text))
    if not _may_mention_time(english):
        order, subject = time_order(text)
        return QuestionTimes((), text.strip(), order=order, subject_text=subject)
    reader = _TimeReader(english, now, ahead=asks_ahead(english))
    return reader.times()


def mentioned_spans(text: str, said_at: datetime) -> tuple[TimeSpan, ...]:
    """Return the times that a text mentions, which speaks of what is to come."""
    english = translate_times(with_words_apart(text))
    if not _may_mention_time(english):
        return ()
    return _TimeReader(english, said_at, ahead=True, spans_max=MENTIONS_MAX).spans


class _TimeReader:
    """Collects the spans of a text, blanking out what each rule has matched."""

    def __init__(
        self, text: str, now: datetime, *, ahead: bool, spans_max: int = SPANS_MAX
    ) -> None:
        self._now = now
        self._ahead = ahead
        self._spans_max = spans_max
        self._spans: list[TimeSpan] = []
        self._date_terms: list[str] = []
        self._text = text
        self._is_dated = False
        self._unmatched = text
        self._remaining = text
        present = set(WORD.findall(text.casefold()))
        for rule in time_rules(present):
            self._apply(rule)

    @property
    def spans(self) -> tuple[TimeSpan, ...]:
        """The spans collected, at most so many as there is room for."""
        return tuple(self._spans[: self._spans_max])

    def _apply(self, rule: re.Pattern[str]) -> None:
        """Add the spans that a rule finds in the text no rule has matched yet."""
        for match in rule.finditer(self._unmatched):
            groups = {
                name: value.lower()
                for name, value in match.groupdict().items()
                if value
            }
            spans = matched_spans(groups, self._now, ahead=self._ahead)
            if spans and len(self._spans) < self._spans_max:
                self._add(match, groups, spans)

    def _add(
        self,
        match: re.Match[str],
        groups: Mapping[str, str],
        spans: Sequence[TimeSpan],
    ) -> None:
        self._spans.extend(spans)
        self._unmatched = _blank_out(self._unmatched, match, "|")
        self._is_dated |= not groups.keys().isdisjoint(("name", "year", "month"))
        dated = "name" in groups and "nth" not in groups
        if dated:
            self._date_terms.append(_date_as_terms(groups))
        if dated or not groups.keys() & _VERBATIM_GROUPS:
            self._remaining = _blank_out(self._remaining, match, " ")

    def times(self) -> QuestionTimes:
        """Return the spans collected, and the text without them."""
        order, subject = time_order(self._unmatched)
        if order is TimeOrder.CURRENT and self._is_dated:
            order = None
        elif order is TimeOrder.CURRENT:  # "is it still on Wednesday" asks of today
            return QuestionTimes((), self._text, order=order, subject_text=subject)
        words = WORD.findall(fold_case(self._unmatched))
        return QuestionTimes(
            self.spans,
            " ".join([self._remaining.strip(), *self._date_terms]),
            only_time=bool(self._spans)
            and (
                all(map(is_vague, words))
                or any(map(frozenset(words).issubset, _asking_words()))
            )
            and not _DUTY.search(self._unmatched),
            order=order,
            subject_text=subject,
        )


@cache
def _asking_words() -> list[frozenset[str]]:
    """Return the folded words with which each language asks for nothing in particular."""
    asking = (
        f"{each.stop_words} {each.question_stop_words} {each.deeds}"
        for each in LANGUAGES
    )
    return [frozenset(fold_case(words).split()) for words in asking]


def _blank_out(text: str, match: re.Match[str], blank: str) -> str:
    return text[: match.start()] + blank * len(match[0]) + text[match.end() :]


def _may_mention_time(text: str) -> bool:
    """Tell whether a text may have a time expression; most questions have none."""
    words = WORD.findall(text.casefold())
    return not _HINTS.isdisjoint(words) or any(map(_is_dated, words))


def _is_dated(word: str) -> bool:
    """Tell whether a word may be a year, or the day of a month as in "the 26th"."""
    return (len(word) == YEAR_CHARS and word.isdigit()) or (
        word[-2:] in _NTH_ENDS and word[:-2].isdigit()
    )


def _date_as_terms(groups: Mapping[str, str]) -> str:
    """Return a date as terms that match only side by side: `8` or `May` alone says nothing."""
    month = MONTH_NAMES[ENGLISH_MONTHS[groups["name"]] - 1]
    if "day" in groups:
        return f"{groups['day']}-{month} {month}-{groups['day']}"
    return f"{month}-{groups['year']}" if "year" in groups else month
