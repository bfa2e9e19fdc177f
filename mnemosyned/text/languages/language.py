"""The tables of one language: its stop words, calendar, numbers and time expressions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

PHRASES = (
    "the day before yesterday",
    "yesterday evening",
    "yesterday morning",
    "this morning",
    "tonight",
    "last night",
    "yesterday",
    "today",
    "last weekend",
    "last week",
    "last month",
    "last year",
    "this week",
    "this month",
    "this year",
    "last summer",
    "last winter",
    "the day after tomorrow",
    "tomorrow morning",
    "tomorrow evening",
    "tomorrow",
    "next weekend",
    "next week",
    "next month",
    "next year",
)
"""Fixed time expressions in English, in the order in which a reader tries them."""
UNITS = ("second", "minute", "hour", "day", "week", "month", "year")
"""Units of time, by which a grammar names them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeGrammar:
    """Patterns of the time expressions of a language, for translation into English."""

    phrases: Mapping[str, str]
    """Patterns of fixed expressions, by their English phrase in `PHRASES`."""
    units: Mapping[str, str]
    """Patterns of the units of time, by their English names in `UNITS`."""
    ago_before: str = ""
    """Words before a number of units in the past: "vor" in "vor drei Tagen"."""
    ago_after: str = ""
    """Words after a number of units in the past: "fa" in "tre giorni fa"."""
    ahead_before: str = ""
    """Words before a number of units to come: "dans" in "dans deux jours"."""
    on_day: str
    """Words before the day of a date: "am" in "am 5. Mai"."""
    in_month: str
    """Words before a month: "im" in "im Mai"."""
    last_before: str = ""
    """Words before the weekday of last week, with a space: "letzten "."""
    weekday_article: str = ""
    """An article before a weekday, with a space, where `last_after` follows it."""
    last_after: str = ""
    """Words after the weekday of last week: "dernier"."""
    on_weekday: str = ""
    """Words before a weekday of no week in particular, with a space: "am "."""
    next_before: str = ""
    """Words before the weekday of next week, with a space: "nächsten "."""
    next_after: str = ""
    """Words after the weekday of next week: "prochain"."""


class TimeOrder(Enum):
    """Which of several matches a question asks for."""

    LATEST = "latest"
    EARLIEST = "earliest"
    CURRENT = "current"
    """What is true now, whatever was true before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderWords:
    """Patterns of the words by which a question says which of several times it means."""

    latest: str
    """Before the newest of a kind: "last", "newest"."""
    earliest: str
    """Before the oldest of a kind: "first"."""
    current: str
    """For what is true now, whatever was true before: "now", "still"."""
    ahead: str
    """For what is or will be: a weekday is then the coming one."""
    soon: str
    """Words, not patterns, of which a text has one that names a day to come without its date."""
    past: str
    """For what was: a weekday is then the last one, whatever else is said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """The words of a language. Readers of text and dates take all they know from here."""

    code: str
    stop_words: str
    """Frequent words that identify the language."""
    question_stop_words: str = ""
    """Words that a search ignores. Leave it empty for a language with declined nouns: without a
    stemmer, stop words may be all that a question and its answer have in common."""
    deeds: str = ""
    """Words that ask what somebody did or what happened, and say nothing of it: "did"."""
    continuations: str = ""
    """Words that ask an agent to go on and say nothing of the matter: "continue", "go ahead"."""
    months: tuple[str, ...] = ()
    """Lower-case names and abbreviations of each month, January first."""
    months_capitalized: bool = False
    """Whether a month begins with a capital within a sentence."""
    weekdays: tuple[str, ...] = ()
    """Lower-case names and abbreviations of each weekday, Monday first."""
    counts: tuple[str, ...] = ()
    """Words for each number, from one."""
    times: TimeGrammar | None = field(default=None)
    order: OrderWords | None = field(default=None)
    backward_heads: str = ""
    """First words of a sentence that needs the one before it: pronouns and demonstratives. Leave out
    words that are also names or articles."""
    connectives: str = ""
    """First words that join a sentence to the one before it, which it can do without: "but"."""
    openers: str = ""
    """First words that it can do without where a comma follows: "well"."""
    courtesies: str = ""
    """First words of a short sentence that is a greeting, thanks or applause."""
