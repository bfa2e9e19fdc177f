"""Questions of recall, the values of a search, and what a question asks for in addition to its words."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mnemosyned.memory.values import Episode, MemoryFilter, MemoryRecord, Tier
from mnemosyned.text.languages.tables import LANGUAGES, TimeOrder
from mnemosyned.text.terms import (
    FOREIGN_STOP_WORDS,
    FUNCTION_WORDS,
    STOP_WORDS,
    STOP_WORDS_FOLDED,
    WORD,
    Terms,
    fold_case,
    foreign_stop_words,
    stem,
    with_words_apart,
)
from mnemosyned.text.word_cache import clear_on_forget

if TYPE_CHECKING:
    from mnemosyned.text.dates.questions import TimeSpan

VAGUE = 0.5
"""Weight of words without a meaning of their own, such as `get` and `much`: they may be as rare as a name."""
BEGINNING = datetime.min.replace(tzinfo=UTC)
MAIN_SHARE = 0.6
"""Minimum score, as a share of the best line's, of a line because of which an episode was found."""


@dataclass(frozen=True, slots=True)
class AskedSource:
    """The kinds of source whose records a question asks for."""

    kinds: frozenset[str | int] = frozenset()
    names: tuple[str, ...] = ()
    """Words for these kinds: the name of a source contains at least one."""

    def __bool__(self) -> bool:
        """Return True if a question asks for any kind of source."""
        return bool(self.kinds)

    def has(self, source: str | None) -> bool:
        """Return True if a source's name contains one of the kinds, such as "mail" or "note"."""
        if source is None:
            return False
        return not self.kinds.isdisjoint(stems_and_kinds(source))


@dataclass(frozen=True, slots=True)
class ExpectedAnswer:
    """The kind of answer that a question's words ask for."""

    time: bool = False
    """Whether the question begins with "when"."""
    phone: bool = False
    """Whether the question asks for a number, perhaps of a telephone."""
    assistant: bool = False
    """Whether the question is addressed to the assistant, or speaks of the assistant."""
    is_foreign: bool = False
    """Whether the question is in another language than English; keywords alone are in none."""

    def is_in(self, text: str) -> bool:
        """Return True if a text has a time or a telephone number, as the question asks for."""
        has_phone = self.phone and bool(_PHONE.search(text))
        return has_phone or (self.time and says_when(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Query(MemoryFilter):
    """A question with its filters."""

    terms: Terms
    limit: int
    tier: Tier | None = None
    spans: tuple[TimeSpan, ...] = ()
    """Times in the question: memories of these times are preferred, not required."""
    order: TimeOrder | None = None
    """Newest or oldest matches, or the current state, if the question asks for one."""
    subject: Terms | None = None
    """Subject words, without time and source; None for a question with neither."""
    asked: AskedSource | None = None
    """Kinds of source asked for, in a question that also names a time or an order."""
    source_names: tuple[str, ...] = ()
    """Only sources whose names contain one of these are searched."""
    only_then: bool = False
    """Whether the question asks for nothing but these times, which are then required."""
    only_words: bool = False
    """Whether nothing but the `limit` memories with most of the words is wanted."""
    topic: str | None = None
    """Subject of a broad question, whose answer is spread over time; None for another question."""
    explain: bool = False
    """Whether the hits come with the parts of their scores."""
    now: datetime | None = None
    """Time of the question; without a time recency does not count."""
    valid_at: datetime | None = None
    """Memories that have expired by this time are left out."""
    superseded: bool = False
    """Whether superseded memories are found, too."""
    expected: ExpectedAnswer = ExpectedAnswer()

    @property
    def selects_all(self) -> bool:
        """Whether the question selects all memories, superseded ones too, as most questions do."""
        is_narrowed = self.is_set or self.tier or self.source_names or self.valid_at
        return self.superseded and not is_narrowed


class Match(NamedTuple):
    """A candidate: a matching memory, or with score 0 a neighbor of a match."""

    position: int
    """Number in the order of arrival, by which the store finds the memory."""
    score: float
    """Sum of the idf of its words, and of `grams`."""
    session: str
    importance: float = 0.5
    episode: int | None = None
    """Position of its episode, if the memory was promoted."""
    source: str | None = None
    role: str = ""
    content: str = ""
    """Beginning of its text, at least `READ_CHARS_MAX` characters."""
    created_at: datetime = BEGINNING
    grams: float = 0.0
    """Part of the score for character pairs, parts of names, or its time."""


class ScoreBreakdown(NamedTuple):
    """Parts that add up to the score of a candidate."""

    words: float = 0.0
    """BM25 of its own words."""
    phrase: float = 0.0
    """Neighboring words of the question that stand together in the text, too."""
    neighbors: float = 0.0
    """Words of its neighbors in the session."""
    session: float = 0.0
    """Words in the rest of its sitting."""
    asks: float = 0.0
    """Loss for the share of the text that is questions."""
    little: float = 0.0
    """Loss for a text with few words besides those of the question."""
    when: float = 0.0
    """Time in the text, if the question asks when."""
    user: float = 0.0
    """Words of the user, in a talk with an assistant."""
    speaker: float = 0.0
    """Words of the person asked about."""
    source: float = 0.0
    """Source that the question names."""
    time: float = 0.0
    """Time that the question names."""
    recency: float = 0.0
    importance: float = 0.0
    summary: float = 0.0
    """Words of its episode's summary."""
    further: float = 0.0
    """Second and third line of its episode."""
    meaning: float = 0.0
    """Similarity of its vector to the question's, relative to the nearest vector. The last of the parts."""


NO_SCORE = ScoreBreakdown()


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """Word statistics of all memories, for the words of one question."""

    count: int = 0
    average_chars: float = 100.0
    frequencies: Mapping[str, int] = field(default_factory=dict)
    """Number of memories with each word of the question, or an estimate."""
    compounds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Joined or split forms of words that memories have: `wi fi` for `wifi`."""

    def forms(self, terms: Terms, word: str) -> tuple[str, ...]:
        """Return all forms of a word that a search looks for."""
        return (*terms.forms(word), *self.compounds.get(word, ()))

    def idf(self, word: str) -> float:
        """Return the idf of a word, which is above 0 even for a word in every memory."""
        idf = self.rarity(self.frequencies.get(word, 0))
        return VAGUE * idf if word.lower() in STOP_WORDS else idf

    def rarity(self, frequency: int) -> float:
        """Return the idf of a word, or of another feature, that `frequency` memories have."""
        return log(1 + max(0.0, self.count - frequency + 0.5) / (frequency + 0.5))


@dataclass(frozen=True, slots=True)
class Nearness:
    """Similarity of memories' vectors to the vector of the question."""

    cosines: Mapping[int, float] = field(default_factory=dict)
    """By position, -1 to 1, for memories with a vector."""
    vector_only_min: float = 1.0
    """Least cosine of a hit that shares no word with the question."""


@dataclass(frozen=True, slots=True)
class SearchCandidates:
    """The candidates for a question."""

    memories: Sequence[Match] = ()
    episodes: Mapping[int, float] = field(default_factory=dict)
    """Episodes whose own text matches, with the engine's scores."""
    beside: Mapping[int, Sequence[tuple[int, int]]] = field(default_factory=dict)
    """Neighbors of the best matches in their session: position and distance, 1 or 2."""
    corpus: Corpus = field(default_factory=Corpus)
    above: Mapping[int, int] = field(default_factory=dict)
    """Day, week or month of each episode, day or week that was rolled up."""
    mentioning: AbstractSet[int] = frozenset()
    """Memories whose words mention the time in the question."""
    summary: int | None = None
    """Summary of exactly the period in the question."""
    nearness: Nearness = field(default_factory=Nearness)


class RankedResult(NamedTuple):
    """One place in the answer: a memory, or an episode with the originals that matched."""

    score: float
    memory: int | None = None
    episode: int | None = None
    lines: tuple[tuple[int, float], ...] = ()
    """Matching originals of the episode, or repeats of the memory, best first."""
    parts: ScoreBreakdown = NO_SCORE
    duplicates: int = 0
    """Number of repeats, or texts that differ in figures alone, without a place."""

    @property
    def main_position(self) -> int:
        """Row number of the result's memory, or else of its episode."""
        return self.memory if self.memory is not None else self.episode or 0

    @property
    def positions(self) -> list[int]:
        """Row number of the result's memory, if there is one, then the row numbers of its lines."""
        own = [] if self.memory is None else [self.memory]
        return own + [position for position, _ in self.lines]


@dataclass(frozen=True, slots=True)
class Documents:
    """Memories and episodes of ranked results, if they still exist."""

    memories: Mapping[int, MemoryRecord]
    episodes: Mapping[int, Episode]


_WORDS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
"""Word lists, each with its use in the file."""
_NO_SOURCE = re.compile("|".join(_WORDS["no_source"]), re.IGNORECASE)
_WHEN = tuple(f"{word} " for word in _WORDS["when"])
_TO_ASSISTANT = frozenset(_WORDS["to_assistant"].split())
_PHONE_WORDS = frozenset(_WORDS["phone"].split())
_PHONE = re.compile(_WORDS["phone_number"])


def asked_source(text: str) -> AskedSource:
    """Return the kinds of source in a question, such as mail for "which mails did Ben send"."""
    strict = _kind_by_selecting_stem()
    stems = map(stem, _folded_words(_NO_SOURCE.sub(" ", text)))
    kinds = {strict[word] for word in stems if word in strict}
    names = [name for kind in sorted(kinds) for name in _WORDS["sources"][kind].split()]
    return AskedSource(frozenset(kinds), tuple(names))


def subject_words(text: str, asked: AskedSource) -> tuple[str, ...]:
    """Return a question's words about its subject, without words such as "mail" for a kind of source."""
    strict = _kind_by_selecting_stem()
    return tuple(
        dict.fromkeys(
            word
            for word in _folded_words(text)
            if strict.get(stem(word)) not in asked.kinds
            and stem(word) not in _handling_stems()
            and word not in STOP_WORDS_FOLDED
        )
    )


@clear_on_forget
@lru_cache(maxsize=512)
def stems_and_kinds(text: str) -> frozenset[str | int]:
    """Return the stems in a text, and the numbers of the kinds of source that its stems name."""
    stems = {stem(word) for word in _folded_words(text)}
    kinds = {kind for word in stems if (kind := _kind_by_stem().get(word)) is not None}
    return frozenset(stems | kinds)


def _folded_words(text: str) -> list[str]:
    """Return the words of a text in lower case; a run of a script without spaces is one word."""
    return WORD.findall(fold_case(with_words_apart(text)))


@lru_cache(maxsize=1)
def _handling_stems() -> frozenset[str]:
    """Return the stems of verbs such as "send", which are not the subject of a question about records."""
    return frozenset(stem(fold_case(word)) for word in _WORDS["handling"].split())


@lru_cache(maxsize=1)
def _kind_by_selecting_stem() -> dict[str, int]:
    """Return `_kind_by_stem` without the loose stems, which only prefer a kind of source."""
    loose = {stem(fold_case(word)) for word in _WORDS["loose"].split()}
    return {word: kind for word, kind in _kind_by_stem().items() if word not in loose}


@lru_cache(maxsize=1)
def _kind_by_stem() -> dict[str, int]:
    """Return {stem: number of the kind of source that the stem names}, in all languages."""
    return {
        stem(fold_case(word)): kind
        for kind, words in enumerate(_WORDS["sources"])
        for word in words.split()
    }


_DATE = re.compile(r"\b(?:19|20)\d\d\b|\d[./:]\d")
_SHORTEST_NAME = 4
"""Shorter names of months and weekdays are other words, too: may, sun, mon."""


def expected_answer(question: str) -> ExpectedAnswer:
    """Return the kind of answer that a question asks for, such as a time or a phone number."""
    words = question.lower().strip(" ¿¡\"'")
    split = frozenset(re.findall(r"\w+", words))
    asks_when = words.startswith(_WHEN)
    return ExpectedAnswer(
        time=asks_when,
        # "When did I phone the landlord?" asks for no number.
        phone=not asks_when and not _PHONE_WORDS.isdisjoint(split),
        assistant=not _TO_ASSISTANT.isdisjoint(split),
        is_foreign=bool(foreign_stop_words(split))
        or (
            FUNCTION_WORDS.isdisjoint(split)
            and not (question.isascii() and FOREIGN_STOP_WORDS.isdisjoint(split))
        ),
    )


def says_when(text: str) -> bool:
    """Return True if a text names a date, month or weekday, or a time relative to now."""
    words = WORD.findall(text.lower())
    return not _words_of_time().isdisjoint(words) or _DATE.search(text) is not None


@lru_cache(maxsize=1)
def _words_of_time() -> frozenset[str]:
    """Return the folded names of months and weekdays, and the words for relative times."""
    names = {
        name
        for language in LANGUAGES
        for table in (*language.months, *language.weekdays)
        for name in table.split()
        if len(name) >= _SHORTEST_NAME
    }
    return frozenset(names).union(WORD.findall(_WORDS["relative_times"]))
