"""Finding: candidates for a question by words and by time, with everything that ranking reads."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple, Protocol

from mnemosyned.memory.values import Tier
from mnemosyned.search.candidates import (
    WEIGHTS,
    CandidateLimits,
    may_list_by_time,
    needs_more,
    within_span,
)
from mnemosyned.search.query import Corpus, Match, Query, SearchCandidates
from mnemosyned.search.scoring import matches_with_neighbors, nearest_neighbors
from mnemosyned.search.words import (
    Forms,
    Frequencies,
    LookedUpRows,
    WordRows,
    top_candidates,
)

if TYPE_CHECKING:
    from mnemosyned.text.dates.spans import TimeSpan


FIRST_SCORE = 0.01
"""Score of the first memory of a time: negligible compared with a matching word."""
SCORE_STEP = 0.05
COMPARED_CHARS = 120
"""Characters by which texts are compared; up to here, the longer text is preferred."""
WALKED_MAX = 10_000
"""Rows read of a tier, the earliest of the time."""
EPISODES_MAX = 500
"""Episodes read, the latest that had begun when the time was over."""
ORDERED_MAX = 60
"""Rows of an order in time, the first of it."""
_DIGITS = re.compile(r"\d+")


class TimedMemory(NamedTuple):
    """A memory of the time in question."""

    importance: float
    created_at: datetime
    position: int
    source: str | None
    beginning: str
    """The first `COMPARED_CHARS` characters of the text."""


def asked_time(query: Query) -> datetime:
    """Return when a question is asked; after all times if it does not say."""
    return query.now or datetime.max.replace(tzinfo=UTC)


def only_time_asked(query: Query) -> TimeSpan | None:
    """Return the time that a question asks for, if it is one, over, and narrowed by nothing."""
    is_narrowed = (
        query.sessions or query.sources or query.tags or query.since or query.until
    )
    is_over = len(query.spans) == 1 and query.spans[0].until <= asked_time(query)
    if not is_over or is_narrowed or query.tier not in (None, Tier.EPISODIC):
        return None
    return query.spans[0]


def scores_by_time(
    memories: Sequence[TimedMemory], *, shown: int, limit: int
) -> dict[int, float]:
    """Return scores by position: the most important memories first, then the earliest.

    Among equally important memories, those shown are taken from each source in turn.
    """
    turns = _by_source_in_turn(memories)
    ordered = sorted(turns[:shown], key=_time_key) + turns[shown:limit]
    return {
        memory.position: FIRST_SCORE / (1 + SCORE_STEP * rank)
        for rank, memory in enumerate(ordered)
    }


def _time_key(memory: TimedMemory) -> tuple[float, datetime, int]:
    return -memory.importance, memory.created_at, memory.position


def _by_source_in_turn(memories: Sequence[TimedMemory]) -> list[TimedMemory]:
    """Take equally important memories from each source in turn, repetitions last.

    A day has forty notices for each entry of its calendar, and most of them say the same. Within a
    source longer texts go first, as they say more.
    """
    seen: set[tuple[str | None, str]] = set()
    turns: Counter[tuple[float, str | None]] = Counter()
    placed: list[tuple[tuple[float, bool, int], TimedMemory]] = []
    for memory in sorted(memories, key=_longest_first):
        importance, _, _, source, text = memory
        says = (source, _DIGITS.sub("0", text.casefold()))
        repeats = says in seen
        placed.append(((-importance, repeats, turns[importance, source]), memory))
        turns[importance, source] += not repeats
        seen.add(says)
    return [memory for _, memory in sorted(placed, key=itemgetter(0))]


def _longest_first(memory: TimedMemory) -> tuple[float, int, datetime, int]:
    importance, created_at, position, _, text = memory
    return -importance, -len(text), created_at, position


SCORED_MAX = 8_000
"""So many rows bm25 may score in the second index, the newest."""


@dataclass(frozen=True, slots=True)
class OriginalTotals:
    """The memories of all tiers of originals together."""

    count: int
    characters: int
    slept: bool
    """Whether any has gone into an episode yet."""
    states: bool
    """Whether any can have expired or been superseded."""
    version: str = ""
    """Another one after each change by whoever shares the memory; empty where nobody does."""


class _TimeMatches(NamedTuple):
    """Memories that a question's time selects, whatever their words."""

    scores: Mapping[int, float] = {}
    mentioning: frozenset[int] = frozenset()
    summary: int | None = None


class SearchIndex(Protocol):
    """An engine's answers to the parts of one question, in one snapshot."""

    def totals(self) -> OriginalTotals:
        """Return how much there is."""
        ...

    def words(self, query: Query | None = None) -> WordRows:
        """Return the index of words, of all memories or within a question's filters."""
        ...

    def grams(
        self, terms: Sequence[str], query: Query, *, limit: int
    ) -> Iterable[tuple[int, float]]:
        """Return the best of the newest memories by the second index, with their bm25."""
        ...

    def episodes(
        self, forms: Forms, query: Query, *, limit: int
    ) -> Iterable[tuple[int, float]]:
        """Return the best summaries by the words they have, with their bm25."""
        ...

    def episode_grams(
        self, terms: Sequence[str], query: Query, *, limit: int
    ) -> Iterable[tuple[int, float]]:
        """Return the best of the newest summaries by the second index, with their bm25."""
        ...

    def listed(
        self, query: Query, span: TimeSpan, *, limit: int
    ) -> Mapping[int, float]:
        """Return the memories of a time, with scores."""
        ...

    def ordered(self, query: Query) -> Collection[int]:
        """Return the newest or the oldest memories of the sources that a question asks for."""
        ...

    def mentioning(self, query: Query) -> Collection[int]:
        """Return memories whose words speak of the times to come that a question names."""
        ...

    def summary_of_period(self, query: Query) -> int | None:
        """Return the summary of the one day, week or month that a question asks for."""
        ...

    def matches(
        self, scores: Mapping[int, float], grams: Mapping[int, float]
    ) -> list[Match]:
        """Return the memories at these positions, in the order of `scores`."""
        ...

    def around(
        self, query: Query, matches: Sequence[Match], *, slept: bool
    ) -> list[list[int]]:
        """Return the positions of its session and source around each match, in order.

        Those that came in within `REACH` of it and are within the filters.
        """
        ...

    def above(self, episodes: Collection[int]) -> dict[int, int]:
        """Map summaries, and those above them, to what each was rolled up into."""
        ...


def find_candidates(
    index: SearchIndex, query: Query, frequencies: Frequencies
) -> SearchCandidates:
    """Find candidates in the tiers asked for."""
    totals = index.totals()
    stock = _store_statistics(index, query, totals, frequencies)
    if not totals.states:
        query = replace(
            query, valid_at=None, superseded=True
        )  # there is nothing to leave out
    limits = CandidateLimits.of(query)
    timed = _find_by_time(index, query)
    matches, more = _find_matches(index, query, stock, limits)
    if more and needs_more(matches, query):
        matches, _ = _find_matches(index, query, stock, limits.widened())
    matches = _add_time_matches(index, matches, timed)
    known = {match.position: match for match in matches}
    beside: dict[int, list[tuple[int, int]]] = {}
    if not query.only_then:
        beside = _find_neighbors(index, query, matches, known, slept=totals.slept)
    memories = list(known.values())
    if (
        not totals.slept
        or query.only_then
        or query.tier in (Tier.WORKING, Tier.ARCHIVE)
    ):
        return SearchCandidates(
            memories,
            beside=beside,
            corpus=stock.corpus,
            mentioning=timed.mentioning,
            summary=timed.summary if totals.slept else None,
        )
    episodes = _episode_scores(index, query, stock.corpus, limits.total)
    return SearchCandidates(
        memories,
        episodes,
        beside=beside,
        corpus=stock.corpus,
        above=index.above(_matching_episodes(memories, episodes)),
        mentioning=timed.mentioning,
    )


class _StoreStatistics(NamedTuple):
    """Counts of the words of a question in the whole store."""

    corpus: Corpus
    looked_up: LookedUpRows


def _store_statistics(
    index: SearchIndex, query: Query, totals: OriginalTotals, frequencies: Frequencies
) -> _StoreStatistics:
    frequencies.follow(totals.version)
    known, rows = frequencies.of(index.words(), query.terms, totals.count)
    corpus = replace(
        known,
        count=totals.count,
        average_chars=totals.characters / max(1, totals.count),
    )
    return _StoreStatistics(corpus, LookedUpRows(rows))


def _find_by_time(index: SearchIndex, query: Query) -> _TimeMatches:
    """Return what lies in the time of a question, is of its order, or speaks of its time."""
    if not (query.spans or query.order):
        return _TimeMatches()
    mentions = index.mentioning(query) if query.spans else ()
    scores: dict[int, float] = dict.fromkeys(mentions, FIRST_SCORE)
    if query.asked:
        scores |= _find_by_source(index, replace(query, source_names=query.asked.names))
    is_summary = query.only_then and not query.asked
    summary = index.summary_of_period(query) if is_summary else None
    return _TimeMatches(scores, frozenset(mentions), summary)


def _find_by_source(index: SearchIndex, query: Query) -> dict[int, float]:
    """Return what lies in the times of a question, or is of its order, in the source asked for."""
    scores: dict[int, float] = {}
    for span in query.spans:
        scores |= index.listed(query, span, limit=WEIGHTS.per_time_span)
    if query.order and not query.spans:
        scores |= dict.fromkeys(index.ordered(query), FIRST_SCORE)
    return scores


def _add_time_matches(
    index: SearchIndex, matches: Sequence[Match], timed: _TimeMatches
) -> list[Match]:
    """Return the matches with those that only their time selects."""
    known = {match.position for match in matches}
    missing = {
        position: score
        for position, score in timed.scores.items()
        if position not in known
    }
    if not missing:
        return list(matches)
    return [*matches, *index.matches(_best_first(missing), missing)]


def _matching_episodes(memories: Iterable[Match], episodes: Iterable[int]) -> set[int]:
    """Every episode that can take a place, whatever matched in it."""
    return {match.episode for match in memories if match.episode is not None}.union(
        episodes
    )


def _find_matches(
    index: SearchIndex, query: Query, stock: _StoreStatistics, limits: CandidateLimits
) -> tuple[list[Match], bool]:
    """The memories that match, best first by the engine's score, and whether there may be more."""
    asked = partial(
        top_candidates,
        terms=query.terms,
        corpus=stock.corpus,
        looked_up=stock.looked_up,
    )
    words: dict[int, float] = {}
    more = False
    if not query.only_then:
        words, more = asked(index.words(query), limits=limits)
    for span in query.spans:
        then = index.words(within_span(query, span))
        told, _ = asked(then, limits=limits.for_time_span())
        words = {**told, **words}
    grams: dict[int, float] = {}
    if not query.only_then:
        found = index.grams(_second_terms(query), query, limit=limits.total)
        grams = {seq: WEIGHTS.gram * score for seq, score in found}
    for seq, score in grams.items():
        words[seq] = words.get(seq, 0.0) + score
    if query.only_then or (not words and may_list_by_time(query)):
        for span in query.spans:
            listed = index.listed(query, span, limit=limits.total)
            words = {**listed, **words}
            grams |= listed
    return index.matches(_best_first(words), grams), more


def _best_first(scores: Mapping[int, float]) -> dict[int, float]:
    return dict(sorted(scores.items(), key=lambda item: -item[1]))


def _second_terms(query: Query) -> tuple[str, ...]:
    """The terms for the second index: parts of names stand there too."""
    return (*query.terms.words, *query.terms.grams)


def _episode_scores(
    index: SearchIndex, query: Query, corpus: Corpus, limit: int
) -> dict[int, float]:
    forms = [
        form for word in query.terms.words for form in corpus.forms(query.terms, word)
    ]
    found = dict(index.episodes(forms, query, limit=limit)) if forms else {}
    for seq, score in index.episode_grams(_second_terms(query), query, limit=limit):
        found[seq] = found.get(seq, 0.0) + WEIGHTS.gram * score
    return found


def _find_neighbors(
    index: SearchIndex,
    query: Query,
    matches: Sequence[Match],
    known: dict[int, Match],
    *,
    slept: bool,
) -> dict[int, list[tuple[int, int]]]:
    """Who stands one and two places beside the best in their session; `known` gains them."""
    best = list(matches_with_neighbors(matches))
    around = index.around(query, best, slept=slept)
    beside: dict[int, list[tuple[int, int]]] = {}
    for match, positions in zip(best, around, strict=True):
        beside[match.position] = nearest_neighbors(positions, match.position)
    near = {position for pairs in beside.values() for position, _ in pairs}
    missing = dict.fromkeys(sorted(near - known.keys()), 0.0)
    known.update((match.position, match) for match in index.matches(missing, {}))
    return beside
