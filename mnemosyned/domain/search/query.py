"""Values of recall: the question, its candidates and ranked results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import log
from typing import TYPE_CHECKING, NamedTuple

from mnemosyned.domain.languages.language import TimeOrder
from mnemosyned.domain.memory import Episode, MemoryRecord, Tier
from mnemosyned.domain.search.questions.source_hints import AskedSource
from mnemosyned.domain.text.terms import Terms
from mnemosyned.domain.text.words.stopwords import STOP_WORDS

# Dates are on the same floor: only their type is named here.
if TYPE_CHECKING:
    from mnemosyned.domain.dates.spans import TimeSpan

VAGUE = 0.5
"""What a word counts that carries no content of its own: among notes and captions `get` and `much`
are as rare as a name, and tell nothing."""
BEGINNING = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ExpectedAnswer:
    """Expectations of a question, as far as its words tell."""

    time: bool = False
    """A time: the question begins with when."""
    assistant: bool = False
    """Words of the assistant: the question is addressed to it, or speaks of it."""


NOTHING_EXPECTED = ExpectedAnswer()


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A question and where to look for its answer."""

    terms: Terms
    limit: int
    sessions: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    """Only memories with one of these are searched; summaries have none."""
    tier: Tier | None = None
    since: datetime | None = None
    until: datetime | None = None
    spans: tuple[TimeSpan, ...] = ()
    """The times it speaks of: what happened then is preferred, not required."""
    order: TimeOrder | None = None
    """Whether it asks for the newest of its matches, the oldest, or what is true now."""
    subject: Terms | None = None
    """What it is about, beside a time and a source; for questions with either."""
    asked: AskedSource | None = None
    """The kinds of source whose records it asks for, if it names a time or an order too."""
    source_names: tuple[str, ...] = ()
    """Only sources whose names contain one of these are searched."""
    only_then: bool = False
    """Whether it asks for nothing but what happened at these times: then they are required."""
    explain: bool = False
    """Whether the answer tells what each score is made of."""
    now: datetime | None = None
    """When it is asked; without it nothing is preferred for being recent."""
    valid_at: datetime | None = None
    """Leave out what has expired by then."""
    superseded: bool = False
    """Find also what was superseded."""
    expected: ExpectedAnswer = NOTHING_EXPECTED
    """What the answer has, as far as the question tells."""


class Match(NamedTuple):
    """A candidate: a memory that matches, or with score 0 one that stands beside a match."""

    position: int
    """Where it stands in the order in which memories came in; the store knows it by this."""
    score: float
    """What the words and pairs of characters are worth that the index has of it."""
    session: str
    importance: float = 0.5
    episode: int | None = None
    """The episode it went into, as the store knows it."""
    source: str | None = None
    role: str = ""
    content: str = ""
    """The beginning of its text, `READ_CHARS_MAX` at least."""
    created_at: datetime = BEGINNING
    grams: float = 0.0
    """The part of the score that is for no word: character pairs, parts of names, or its time."""


class ScoreBreakdown(NamedTuple):
    """Parts of a score, which add up to it."""

    words: float = 0.0
    """Its own words, by BM25."""
    phrase: float = 0.0
    """Neighboring words of the question standing together."""
    neighbors: float = 0.0
    """What stands beside it in its session."""
    session: float = 0.0
    """What the rest of its sitting says."""
    asks: float = 0.0
    """Less for the share of it that asks."""
    little: float = 0.0
    """Less, as it says little beside the words of the question."""
    when: float = 0.0
    """It names a time, which the question asks for."""
    user: float = 0.0
    """The user says it, in a talk with an assistant."""
    speaker: float = 0.0
    """The person asked about says it."""
    source: float = 0.0
    """It comes from where the question says."""
    time: float = 0.0
    """It happened when the question says."""
    recency: float = 0.0
    importance: float = 0.0
    summary: float = 0.0
    """The words of its episode's summary."""
    further: float = 0.0
    """The second and third line of its episode."""
    meaning: float = 0.0
    """How near its vector is to the question's, beside the nearest."""


NO_SCORE = ScoreBreakdown()


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """Statistics of all memories together."""

    count: int = 0
    average_chars: float = 100.0
    frequencies: Mapping[str, int] = field(default_factory=dict)
    """For each word of the question, in how many memories it stands; an estimate will do."""
    compounds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For some words, forms joined or split that memories have: `wi fi` for `wifi`."""

    def forms(self, terms: Terms, word: str) -> tuple[str, ...]:
        """Return all forms of a word to search for."""
        return (*terms.forms(word), *self.compounds.get(word, ()))

    def idf(self, word: str) -> float:
        """How telling a word is: never nothing, as in a young memory every word is common."""
        frequency = self.frequencies.get(word, 0)
        telling = log(1 + max(0.0, self.count - frequency + 0.5) / (frequency + 0.5))
        return VAGUE * telling if word.lower() in STOP_WORDS else telling


@dataclass(frozen=True, slots=True)
class Nearness:
    """How near the vectors of memories are to that of the question."""

    cosines: Mapping[int, float] = field(default_factory=dict)
    """By position, -1 to 1, for those that have a vector."""
    vector_only_min: float = 1.0
    """What shares no word with the question must be this near to be an answer."""


@dataclass(frozen=True, slots=True)
class SearchCandidates:
    """The candidates for a question."""

    memories: Sequence[Match] = ()
    episodes: Mapping[int, float] = field(default_factory=dict)
    """The episodes whose own text matches, with the engine's scores."""
    beside: Mapping[int, Sequence[tuple[int, int]]] = field(default_factory=dict)
    """For the best matches, the positions beside them in their session and how far off, 1 or 2."""
    corpus: Corpus = field(default_factory=Corpus)
    above: Mapping[int, int] = field(default_factory=dict)
    """By episode, day or week: the day, week or month that it was rolled up into."""
    mentioning: AbstractSet[int] = frozenset()
    """Memories whose words speak of the time that the question asks for."""
    summary: int | None = None
    """The summary of just the period that the question asks for."""
    nearness: Nearness = field(default_factory=Nearness)
    """Of candidates by words, and of those by nearness alone, which are among the memories."""


class RankedResult(NamedTuple):
    """One place in the answer: a memory, or an episode with the originals that matched."""

    score: float
    memory: int | None = None
    episode: int | None = None
    lines: tuple[tuple[int, float], ...] = ()
    """The originals of the episode that matched, or the repeats of the memory, best first."""
    parts: ScoreBreakdown = NO_SCORE
    duplicates: int = 0
    """How many others say the same, or differ in figures alone, and have no place."""


@dataclass(frozen=True, slots=True)
class Documents:
    """The memories and episodes of ranked results, as far as they still exist."""

    memories: Mapping[int, MemoryRecord]
    episodes: Mapping[int, Episode]
