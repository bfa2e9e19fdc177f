"""Finding: candidates for a question by words and by time, with everything that ranking reads."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from heapq import nlargest
from itertools import takewhile
from operator import itemgetter
from typing import NamedTuple, Protocol

from mnemosyned.instants import in_zone
from mnemosyned.memory.periods import Level, period_of
from mnemosyned.memory.values import DEFAULT_SESSION, Tier
from mnemosyned.search.query import Corpus, Match, Query, SearchCandidates
from mnemosyned.search.ranking import are_crowded
from mnemosyned.search.weights import WEIGHTS as RANKING_WEIGHTS
from mnemosyned.search.words import (
    WEIGHTS,
    CandidateLimits,
    Forms,
    Frequencies,
    LookedUpRows,
    WordRows,
    top_candidates,
)
from mnemosyned.text.dates import mentions
from mnemosyned.text.dates.questions import TimeSpan

FIRST_SCORE = 0.01
"""Score of the best memory that was found by its time alone: far below that of a matching word."""
SCORE_STEP = 0.05
COMPARED_CHARS = 120
"""Characters by which texts are compared; up to here, the longer text is preferred."""
WALKED_MAX = 10_000
"""Rows read from each tier for a time span, the earliest first."""
EPISODES_MAX = 500
"""Episodes read, the latest that had begun when the time was over."""
ORDERED_MAX = 60
"""Rows read for a question about the newest or oldest memories."""
NEIGHBORS_OF_MAX = 24
"""Number of best matches whose neighbors are looked up."""
NEIGHBORS_SHARE_MIN = 0.5
"""Minimum score, as a share of the best, of a match whose neighbors are looked up."""
REACH = 8
"""Distance in rows up to which memories are neighbors, as those of several sessions may alternate."""
LISTED_MAX = 8_000
"""Maximum number of rows, the newest, that are read for a character pair or a word in summaries."""
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class OriginalTotals:
    """Totals of all original memories, in working memory and in the archive."""

    count: int
    characters: int
    slept: bool
    """Whether any memory has been consolidated yet."""
    states: bool
    """Whether any memory may have expired or been superseded."""
    version: str = ""
    """Version of the indexed words; it changes whenever any process changes them."""


class TermRows(NamedTuple):
    """For each term of a question, the newest `LISTED_MAX` rows that have it and pass the filters."""

    memory_grams: Sequence[Collection[int]] = ()
    """Memories with each character pair or part of a name."""
    episode_words: Sequence[Collection[int]] = ()
    """Summaries with any form of each word."""
    episode_grams: Sequence[Collection[int]] = ()
    """Summaries with each character pair or part of a name."""


class TimedMemory(NamedTuple):
    """A memory from the time span that a question names."""

    importance: float
    created_at: datetime
    position: int
    source: str | None
    beginning: str
    """The first `COMPARED_CHARS` characters of the text."""


class SearchIndex(Protocol):
    """The lookups in one snapshot of a database that a question needs."""

    def totals(self) -> OriginalTotals:
        """Return the totals of all memories; a search calls this before the other methods."""
        ...

    def word_rows(self, query: Query | None = None) -> WordRows:
        """Return the word index: of all memories, or only of memories that pass a query's filters."""
        ...

    def rows_with_terms(
        self, query: Query, words: Sequence[Forms], *, summaries: bool
    ) -> TermRows:
        """Return the rows of a question's terms, apart from the memories with its words.

        `words` are the forms of each word. Without `summaries`, no summaries are looked up.
        """
        ...

    def memories_of_time(
        self, query: Query, span: TimeSpan, *, limit: int
    ) -> Sequence[TimedMemory]:
        """Return up to `limit` memories of each source from a time: the most important, then the longest."""
        ...

    def newest_or_oldest(self, query: Query) -> Collection[int]:
        """Return row numbers of newest or oldest memories, as asked, that pass the filters; a few at most."""
        ...

    def newest_or_oldest_with_words(
        self, words: Sequence[Forms], query: Query
    ) -> Collection[int]:
        """Return the row numbers of the newest or oldest memories, as asked, with all words in any form."""
        ...

    def newest_with_any_words(
        self,
        alternatives: Sequence[Sequence[Forms]],
        about: Forms,
        query: Query,
        *,
        limit: int,
    ) -> Collection[int]:
        """Return row numbers of up to `limit` newest memories with all words of any alternative.

        Each word is given as its forms. The memories also have one of the forms in `about`, unless
        `about` is empty.
        """
        ...

    def read_beginnings(
        self, positions: Collection[int]
    ) -> Iterable[tuple[int, datetime, str]]:
        """Yield the row number, time and first `MENTION_CHARS_MAX` characters of each memory."""
        ...

    def summary_of_period(self, level: Level, begins: datetime) -> int | None:
        """Return the row number of the summary of a period, or None if it is missing or stale."""
        ...

    def read_matches(
        self, scores: Mapping[int, float], grams: Mapping[int, float]
    ) -> list[Match]:
        """Return the memories at the rows in `scores`; `grams` has the parts of scores from character pairs."""
        ...

    def neighbor_positions(
        self, query: Query, matches: Sequence[Match], *, slept: bool
    ) -> list[list[int]]:
        """Return, per match, its row number and those near it in its session and source, in order.

        The latter are within `REACH` rows and pass the filters; only direct neighbors are sure to
        be included. `slept` says whether any memory was consolidated.
        """
        ...

    def rollup_parents(self, episodes: Collection[int]) -> dict[int, int]:
        """Return {row number: parent's row number} for summaries and all roll-ups above them."""
        ...


def find_candidates(
    index: SearchIndex, query: Query, frequencies: Frequencies
) -> SearchCandidates:
    """Return the candidates by words, time and neighborhood, with all that ranking needs."""
    totals = index.totals()
    known, rows = frequencies.look_up(
        index.word_rows(), query.terms, totals.count, version=totals.version
    )
    corpus = replace(
        known,
        count=totals.count,
        average_chars=totals.characters / max(1, totals.count),
    )
    looked_up = LookedUpRows(rows)
    if not totals.states:  # there is nothing to leave out
        query = replace(query, valid_at=None, superseded=True)
    if query.only_words:
        limits = CandidateLimits(query.limit, query.limit, query.limit)
        scores, _ = top_candidates(
            index.word_rows(query),
            query.terms,
            corpus,
            limits=limits,
            looked_up=looked_up,
        )
        if query.terms.grams:
            read = index.rows_with_terms(query, (), summaries=False)
            by_grams = _score_by_grams(read.memory_grams, corpus, query.limit)
            scores |= {seq: scores.get(seq, 0.0) + by_grams[seq] for seq in by_grams}
            best = nlargest(query.limit, scores, key=scores.__getitem__)
            scores = {seq: scores[seq] for seq in best}
        return SearchCandidates(index.read_matches(scores, {}))
    mentioning = _find_mentions(index, query) if query.spans else frozenset()
    limits = CandidateLimits.for_question(query)
    has_summaries = totals.slept and query.tier not in (Tier.WORKING, Tier.ARCHIVE)
    term_rows = TermRows()
    if not query.only_then:
        forms = [corpus.forms(query.terms, word) for word in query.terms.words]
        term_rows = index.rows_with_terms(query, forms, summaries=has_summaries)
    grams = term_rows.memory_grams
    find = partial(_find_matches, index, query, corpus, looked_up, grams=grams)
    matches, more = find(limits=limits)
    if more and are_crowded([match.content for match in matches], query.limit):
        matches, _ = find(limits=limits.widen())
    if query.spans or query.order:
        matches += _find_by_time(index, query, matches, mentioning)
    memories = {match.position: match for match in matches}
    beside: dict[int, list[tuple[int, int]]] = {}
    if not query.only_then:
        beside = _find_neighbors(index, query, matches, memories, slept=totals.slept)
    found = SearchCandidates(
        list(memories.values()), beside=beside, corpus=corpus, mentioning=mentioning
    )
    if not has_summaries:
        return found
    if query.only_then:
        period = None if query.asked else only_period_asked(query)
        summary = index.summary_of_period(*period) if period else None
        return replace(found, summary=summary)
    worths = list(map(corpus.idf, query.terms.words))
    episodes = _best_sums(term_rows.episode_words, worths, limits.total)
    scored = _score_by_grams(term_rows.episode_grams, corpus, limits.total)
    for seq, score in scored.items():
        episodes[seq] = episodes.get(seq, 0.0) + score
    matched = {
        match.episode for match in memories.values() if match.episode is not None
    }
    above = index.rollup_parents(matched.union(episodes))
    return replace(found, episodes=episodes, above=above)


def _find_matches(
    index: SearchIndex,
    query: Query,
    corpus: Corpus,
    looked_up: LookedUpRows,
    *,
    grams: Sequence[Collection[int]],
    limits: CandidateLimits,
) -> tuple[list[Match], bool]:
    """Return the memories that match by words, best first, and whether more matches may exist.

    `grams` are the rows with each character pair or part of a name.
    """
    scores: dict[int, float] = {}
    more = False
    if not query.only_then:
        scores, more = top_candidates(
            index.word_rows(query),
            query.terms,
            corpus,
            limits=limits,
            looked_up=looked_up,
        )
    for span in query.spans:
        within = overlapping_span(
            query, span if query.only_then else span.with_margin()
        )
        then = replace(query, since=within.since, until=within.until)
        matches, _ = top_candidates(
            index.word_rows(then),
            query.terms,
            corpus,
            limits=limits.for_time_span(),
            looked_up=looked_up,
        )
        scores = {**matches, **scores}
    by_grams = _score_by_grams(grams, corpus, limits.total)
    for seq, score in by_grams.items():
        scores[seq] = scores.get(seq, 0.0) + score
    # A question with a name or a number is answered only by a memory that contains it.
    is_specific = any(
        char.isupper() or char.isdigit() for word in query.terms.words for char in word
    )
    if query.only_then or (not scores and not is_specific):
        for span in query.spans:
            listed = _scores_by_time(index, query, span, limit=limits.total)
            scores = {**listed, **scores}
            by_grams |= listed
    ranked = sorted(scores, key=scores.__getitem__, reverse=True)
    return index.read_matches({seq: scores[seq] for seq in ranked}, by_grams), more


def overlapping_span(query: Query, span: TimeSpan) -> TimeSpan:
    """Return the part of a time span within the question's `since` and `until`."""
    return replace(
        span,
        since=max(query.since, span.since) if query.since else span.since,
        until=min(query.until, span.until) if query.until else span.until,
    )


def _find_by_time(
    index: SearchIndex,
    query: Query,
    matches: Sequence[Match],
    mentioning: Collection[int],
) -> list[Match]:
    """Return further memories, not among `matches`, selected by the question's time or order alone.

    Memories at `mentioning`, whose texts mention a time in the question, are always selected. Others are
    selected only from a kind of source that the question asks for (`query.asked`): the memories of each
    time in the question or, without a time, the newest or oldest memories about the subject.
    """
    scores: dict[int, float] = dict.fromkeys(mentioning, FIRST_SCORE)
    if query.asked:
        of_source = replace(query, source_names=query.asked.names)
        for span in query.spans:
            scores |= _scores_by_time(
                index, of_source, span, limit=WEIGHTS.per_time_span
            )
        if query.order and not query.spans:
            first: Collection[int] = ()
            if not query.subject:
                first = index.newest_or_oldest(of_source)
            elif query.subject.words:
                words = [query.subject.forms(word) for word in query.subject.words]
                past = replace(of_source, until=asked_time(query))
                first = index.newest_or_oldest_with_words(words, past)
            scores |= dict.fromkeys(first, FIRST_SCORE)
    known = {match.position for match in matches}
    missing = {seq: score for seq, score in scores.items() if seq not in known}
    if not missing:
        return []
    ranked = sorted(missing, key=missing.__getitem__, reverse=True)
    return index.read_matches({seq: missing[seq] for seq in ranked}, missing)


def _find_neighbors(
    index: SearchIndex,
    query: Query,
    matches: Sequence[Match],
    memories: dict[int, Match],
    *,
    slept: bool,
) -> dict[int, list[tuple[int, int]]]:
    """Add the best matches' neighbors to `memories`; return {match: [(neighbor, distance)]} by row number.

    `slept` says whether any memory was consolidated.
    """
    least = NEIGHBORS_SHARE_MIN * matches[0].score if matches else 0.0
    # Memories without a session of their own belong to no conversation.
    best = [
        match
        for match in takewhile(
            lambda match: match.score >= least, matches[:NEIGHBORS_OF_MAX]
        )
        if match.session != DEFAULT_SESSION
    ]
    around = index.neighbor_positions(query, best, slept=slept)
    beside: dict[int, list[tuple[int, int]]] = {}
    for match, positions in zip(best, around, strict=True):
        at = positions.index(match.position)
        beside[match.position] = [
            (positions[neighbor], distance)
            for distance in range(1, len(RANKING_WEIGHTS.neighbors) + 1)
            for neighbor in (at - distance, at + distance)
            if 0 <= neighbor < len(positions)
        ]
    near = {position for pairs in beside.values() for position, _ in pairs}
    missing = dict.fromkeys(sorted(near - memories.keys()), 0.0)
    for match in index.read_matches(missing, {}):
        memories[match.position] = match
    return beside


def _score_by_grams(
    rows: Sequence[Collection[int]], corpus: Corpus, limit: int
) -> dict[int, float]:
    """Return {row number: score} of the best `limit` of the rows of character pairs and parts of names."""
    worths = [WEIGHTS.gram * corpus.rarity(len(each)) for each in rows]
    return _best_sums(rows, worths, limit)


def _best_sums(
    rows: Sequence[Collection[int]], worths: Sequence[float], limit: int
) -> dict[int, float]:
    """Return {row number: sum of its words' weights} of the `limit` highest sums; of equal ones the newest."""
    sums: dict[int, float] = {}
    for each, worth in zip(rows, worths, strict=True):
        for seq in each:
            sums[seq] = sums.get(seq, 0.0) + worth
    best = nlargest(limit, ((score, seq) for seq, score in sums.items()))
    return {seq: score for score, seq in best}


# ------------------------------------------------------------------ by time


def asked_time(query: Query) -> datetime:
    """Return the time at which a question is asked, or the latest possible time if unknown."""
    return query.now or datetime.max.replace(tzinfo=UTC)


def only_period_asked(query: Query) -> tuple[Level, datetime] | None:
    """Return the level and beginning of a past period if a question asks for it alone; else None."""
    is_over = len(query.spans) == 1 and query.spans[0].until <= asked_time(query)
    if not is_over or query.is_set or query.tier not in (None, Tier.EPISODIC):
        return None
    span = query.spans[0]
    return period_of(span.since, span.until, asked_time(query).tzinfo)


def _find_mentions(index: SearchIndex, query: Query) -> frozenset[int]:
    """Return the row numbers of memories that mention a question's future time and a word of its subject."""
    now = asked_time(query)
    ahead = mentions.select_times_ahead(query.spans, now)
    subject = query.subject
    # No memory without a word of the subject is placed by what it mentions.
    about = (
        [form for word in subject.words for form in subject.forms(word)]
        if subject
        else []
    )
    candidates: set[int] = set()
    for span in ahead:
        for search in mentions.mention_searches(span, now):
            said = overlapping_span(query, search.said)
            within = replace(query, since=said.since, until=said.until)
            candidates.update(
                index.newest_with_any_words(
                    search.alternatives, about, within, limit=mentions.MENTIONING_MAX
                )
            )
    if not candidates:
        return frozenset()
    reader = mentions.MentionReader(ahead)
    return frozenset(
        position
        for position, created_at, text in index.read_beginnings(candidates)
        if reader.mentions_any_time(text, in_zone(created_at, now.tzinfo))
    )


def _scores_by_time(
    index: SearchIndex, query: Query, span: TimeSpan, *, limit: int
) -> dict[int, float]:
    """Return {row number: score} of a time's memories: the most important first, then the earliest.

    Equally important memories are taken from each source in turn, the longest first, repetitions last;
    the first `query.limit` are then sorted by time. Scores fall with the rank from `FIRST_SCORE`.
    """
    memories = index.memories_of_time(query, overlapping_span(query, span), limit=limit)
    seen: set[tuple[str | None, str]] = set()
    turns: Counter[tuple[float, str | None]] = Counter()
    placed: list[tuple[tuple[float, bool, int], TimedMemory]] = []
    longest_first = sorted(
        memories,
        key=lambda memory: (
            -memory.importance,
            -len(memory.beginning),
            memory.created_at,
            memory.position,
        ),
    )
    for memory in longest_first:
        importance, _, _, source, text = memory
        says = (source, _DIGITS.sub("0", text.casefold()))
        repeats = says in seen
        placed.append(((-importance, repeats, turns[importance, source]), memory))
        turns[importance, source] += not repeats
        seen.add(says)
    in_turn = [memory for _, memory in sorted(placed, key=itemgetter(0))]
    in_time = sorted(
        in_turn[: query.limit],
        key=lambda memory: (-memory.importance, memory.created_at, memory.position),
    )
    return {
        memory.position: FIRST_SCORE / (1 + SCORE_STEP * rank)
        for rank, memory in enumerate(in_time + in_turn[query.limit : limit])
    }
