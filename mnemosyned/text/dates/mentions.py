"""Mentions of a future time in a text: a date, a weekday or a word such as "tomorrow"."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain, islice, takewhile
from typing import NamedTuple

from mnemosyned.instants import in_zone, shift, shift_months
from mnemosyned.text.dates.questions import ORDINALS, TimeSpan, mentioned_spans
from mnemosyned.text.languages.tables import LANGUAGES, MONTHS, WEEKDAYS

MENTION_CHARS_MAX = 1_500
"""Characters of a text that are read for times."""
SAID_DAYS_MAX = 180
"""Days before a time span in whose texts dates within the span are looked for."""
SOON_DAYS_MAX = 21
"""Days before a time span in whose texts its weekdays and words such as "tomorrow" are looked for."""
NAMED_DAYS_MAX = 14
"""Length in days of a time span up to which each of its days has its own search terms."""
WEEKDAYS_MAX = 2
"""Length in days of a time span up to which its weekdays are search terms."""
DAYS_MAX = 62
MENTIONED_MAX = timedelta(days=100)
"""Longest time span whose mentions are looked for; most texts mention one such as "this year"."""
MENTIONING_MAX = 100
"""Number of texts, the newest, that are read for each search for mentions."""
NEAR_CHARS = 32
"""Characters before and after a term of a time that are read with it."""
PLACES_MAX = 8
"""Number of search terms in a text whose surrounding words are read."""
_DAY = timedelta(days=1)
_FROM = re.compile(
    r"(?<!\w)(?:(?:(?:starting |effective )?from|starting(?: on| in)?|as of|ab(?: dem)?|dès(?: le| la)?"
    r"|vanaf|per|a partir (?:de[l]?|d[oa])|a contar de|(?:a partire )?da(?:l|lla)?|från(?: och med)?|od|с) "
    r"|à (?:partir|compter) (?:du |des? |d'))((?:[^,.;:!?()\n]|(?<=\d)\.){3,40})",
    re.IGNORECASE,
)
"""Words before the time from which a statement applies."""
_UP_TO = frozenset("to until till bis jusqu à a al au hasta até tot do по".split())
"""Words before the end of a period: "from January to March"."""
_NEAR_MONTHS = 6
_SOON = [
    word for table in LANGUAGES if table.order for word in table.order.soon.split()
]


@dataclass(frozen=True, slots=True)
class MentionTerms:
    """Search terms for texts that mention a time."""

    months: tuple[str, ...]
    days: tuple[str, ...]
    """Next to a month; empty for a time of many days."""
    dates: tuple[str, ...]
    """Dates in figures, each enough alone."""
    soon: tuple[str, ...]
    """Weekdays, "tomorrow" and the like: each enough alone in a text of the weeks before."""


def mention_terms(span: TimeSpan) -> MentionTerms:
    """Return the search terms for texts that may mention a time: months, days, dates, weekdays."""
    noon = shift(span.since, _DAY / 2)
    noons = (shift(noon, number * _DAY) for number in range(DAYS_MAX))
    days = list(takewhile(lambda day: day < span.until, noons))
    months = {day.month for day in days} or {span.since.month}
    named = days if len(days) <= NAMED_DAYS_MAX else []
    date = "%Y-%m-%d" if named else "%Y-%m"
    forms = [_spell_day_of_month(day) for day in named]
    weekdays = {day.weekday() for day in days} if len(days) <= WEEKDAYS_MAX else ()
    soon = [*_SOON, *_select_names(WEEKDAYS, weekdays)]
    for number, _, ordinal, _ in forms:
        soon += [ordinal, f"am {number}"]
    return MentionTerms(
        months=_select_names(MONTHS, months),
        days=tuple(dict.fromkeys(chain.from_iterable(forms))),
        dates=tuple(dict.fromkeys(f"{day:{date}}" for day in days)),
        soon=tuple(soon),
    )


class MentionSearch(NamedTuple):
    """Terms to search for, and the period in which the texts were written."""

    alternatives: tuple[tuple[tuple[str, ...], ...], ...]
    """A text matches an alternative if it has a term of each part."""
    said: TimeSpan


def announced_start(text: str, said_at: datetime) -> datetime:
    """Return when a statement begins to apply, as in "the rent is 68 from January"; `said_at` if at once.

    A month without a year must be at most half a year ahead; else it is in the past, as people also say "from"
    of what has begun.
    """
    local = in_zone(said_at, None)
    for match in _FROM.finditer(text):
        words = match[1].lower().split()[:4]
        if not _UP_TO.isdisjoint(words):
            continue
        if spans := mentioned_spans(" ".join(words), local):
            return max(spans[0].since, said_at)
        ahead = (MONTHS.get(words[0], local.month) - local.month) % 12
        if 0 < ahead <= _NEAR_MONTHS:
            first = shift_months(local, ahead).replace(day=1, hour=0, minute=0)
            return max(first.replace(second=0, microsecond=0), said_at)
    return said_at


def select_times_ahead(spans: Sequence[TimeSpan], now: datetime) -> list[TimeSpan]:
    """Return the spans that end after `now` and are at most `MENTIONED_MAX` long."""
    return [
        span
        for span in spans
        if span.until > now and span.until - span.since <= MENTIONED_MAX
    ]


def mention_searches(span: TimeSpan, now: datetime) -> list[MentionSearch]:
    """Return two searches for texts that mention a time: by dates, and by words such as "tomorrow".

    Each search also has the period in which matching texts were written. The period ends with `span`, and
    begins months (by dates) or weeks (by words) before `now` or the start of `span`, whichever is earlier.
    """
    terms = mention_terms(span)
    named = (terms.months, terms.days) if terms.days else (terms.months,)
    dated = (named, (terms.dates,)) if terms.dates else (named,)
    begins = min(span.since, now)
    return [
        MentionSearch(alternatives, TimeSpan(shift(begins, -days * _DAY), span.until))
        for alternatives, days in (
            (dated, SAID_DAYS_MAX),
            (((terms.soon,),), SOON_DAYS_MAX),
        )
    ]


def _select_names(
    numbers_by_name: Mapping[str, int], numbers: Collection[int]
) -> tuple[str, ...]:
    """Return the names whose numbers, as of months or weekdays, are among `numbers`."""
    return tuple(name for name, number in numbers_by_name.items() if number in numbers)


def _spell_day_of_month(day: datetime) -> tuple[str, str, str, str]:
    """Return four spellings of the day of a month: `5`, `05`, `5th` and `fifth`."""
    number = day.day
    ending = {1: "st", 2: "nd", 3: "rd"}.get(
        number % 10 if number // 10 != 1 else 0, "th"
    )
    return str(number), f"{number:02}", f"{number}{ending}", ORDINALS[number - 1]


class MentionReader:
    """Finds mentions of given times in texts.

    Only words near a search term of these times are read, a tenth of most texts.
    """

    def __init__(self, spans: Sequence[TimeSpan]) -> None:
        """Compile one pattern of the months, dates and other search terms of the spans."""
        self._spans = spans
        named = [mention_terms(span) for span in spans]
        terms = {term for known in named for term in (*known.months, *known.dates)}
        terms.update(term for known in named for term in known.soon)
        either = "|".join(map(re.escape, sorted(terms, key=len, reverse=True)))
        self._term = re.compile(rf"(?<!\w)(?:{either})(?!\w)", re.IGNORECASE)

    def mentions_any_time(self, text: str, said_at: datetime) -> bool:
        """Return True if the start of a text names a time that overlaps one of the spans.

        The named time must not be longer than that span.
        """
        text = text[:MENTION_CHARS_MAX]
        terms = islice(self._term.finditer(text), PLACES_MAX)
        said = "\n".join(
            _cut_words_around(text, term.start(), term.end()) for term in terms
        )
        return any(
            mention.since < span.until
            and span.since < mention.until
            and mention.until - mention.since <= span.until - span.since
            for mention in (mentioned_spans(said, said_at) if said else ())
            for span in self._spans
        )


def _cut_words_around(text: str, start: int, end: int) -> str:
    """Return `text[start:end]` with up to `NEAR_CHARS` on each side, cut at spaces."""
    begin = max(0, start - NEAR_CHARS)
    if begin:
        begin = text.find(" ", begin, start) + 1 or start
    stop = min(len(text), end + NEAR_CHARS)
    if stop < len(text):
        stop = max(text.rfind(" ", end, stop), end)
    return text[begin:stop]
