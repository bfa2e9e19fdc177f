"""Placement of memories of the time, or the order, that a question names before the others."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from mnemosyned.search.bm25 import TermReader
from mnemosyned.search.query import (
    Match,
    Query,
    RankedResult,
    ScoreBreakdown,
    SearchCandidates,
)
from mnemosyned.text.languages.tables import TimeOrder


@dataclass(frozen=True, slots=True)
class PlacementWeights:
    """Weights of a place in a time or an order, as shares of the best score."""

    source: float = 1.0
    """To come from the source asked for, beside having every word of the subject."""
    mention: float = 0.5
    """To speak of a time to come that the question names."""
    mentioned_name: float = 0.5
    """A name in what somebody else says, beside what its bearer says."""
    first: float = 4.0
    """The first of an order in time, beside the best score of the rest."""
    next_share: float = 0.7
    """Share of that which each next one has; low enough that three lines do not outweigh one."""
    matching_share: float = 0.75
    """Share of the best match's words that a memory needs to be sorted by time with it."""
    long: timedelta = timedelta(days=14)
    """A longer time has much that shares a word with any question."""
    longest: timedelta = timedelta(days=100)
    """A time above this is preferred, and comes first for no word."""
    few_words: int = 4
    """A subject of more words asks for one event, and its source is but one of its words."""
    many_words_share: float = 0.75
    """Share of the best match's words that a memory needs then to come before it."""
    long_share: float = 0.5
    """Share of the best match's words that a memory of a long time needs to come before it."""


WEIGHTS = PlacementWeights()
_EPSILON = 1e-9


def place_by_time(
    query: Query,
    scores: Mapping[int, ScoreBreakdown],
    candidates: SearchCandidates,
    weights: PlacementWeights = WEIGHTS,
) -> dict[int, ScoreBreakdown]:
    """Return the scores, raised for memories of the time or the order that a question names."""
    if not scores or query.subject is None:
        return dict(scores)
    relevances = _time_relevances(query, candidates, scores.keys(), weights)
    best = max(map(sum, scores.values()))
    if query.order:
        ranked = _best_in_order(query, candidates, relevances, weights)
        sorted_scores = {
            position: ScoreBreakdown(
                time=best * (1 + weights.first * weights.next_share**rank)
            )
            for rank, position in enumerate(ranked)
        }
        return {**scores, **sorted_scores}
    raised = dict(scores)
    asked = _time_demands(query, weights)
    for position, relevance in relevances.items():
        if bonus := _time_bonus(relevance, asked, weights):
            parts = scores[position]
            raised[position] = parts._replace(time=parts.time + best * bonus)
    return raised


class _Relevance(NamedTuple):
    """Qualities that make a memory of the time an answer."""

    subject: float
    """Share of the subject's words that it has, beside the most that any candidate has."""
    is_asked: bool
    """Whether it is of the source asked for."""
    is_mention: bool
    """Whether it speaks of the time."""


class _TimeDemands(NamedTuple):
    """Demands of a question on a memory of its time."""

    longest: timedelta
    """Length of the longest time that it names."""
    words: int
    """How many words say what it is about."""
    least: float
    """Share of these words that a memory must have."""


def _time_demands(query: Query, weights: PlacementWeights) -> _TimeDemands:
    longest = max(span.until - span.since for span in query.spans)
    words = len(query.subject.words) if query.subject else 0
    least = weights.long_share if longest > weights.long else _EPSILON
    if words > weights.few_words:
        least = weights.many_words_share
    return _TimeDemands(longest, words, least)


def _time_bonus(
    relevance: _Relevance, asked: _TimeDemands, weights: PlacementWeights
) -> float:
    """Return what a memory of the time gains, as a share of the best score."""
    subject, words = relevance.subject, asked.words
    is_of_subject = not words or subject >= max(asked.least, weights.long_share)
    is_asked = relevance.is_asked and is_of_subject and words <= weights.few_words
    is_selected = is_asked or (relevance.is_mention and is_of_subject)
    is_too_long = asked.longest > weights.longest
    if not is_selected and (subject < asked.least or is_too_long):
        return 0.0
    from_source = weights.source + relevance.subject if is_asked else 0.0
    return 1.0 + from_source + weights.mention * relevance.is_mention


def lies_within(query: Query, match: Match, candidates: SearchCandidates) -> bool:
    """Tell whether a memory happened in a time that the question names, or speaks of it."""
    return match.position in candidates.mentioning or any(
        span.since <= match.created_at < span.until for span in query.spans
    )


def add_period_summary(
    results: Sequence[RankedResult], candidates: SearchCandidates, *, limit: int
) -> list[RankedResult]:
    """Return the results after the summary of just the period asked for, if there is one."""
    if candidates.summary is None:
        return list(results)
    score = results[0].score if results else 1.0
    parts = ScoreBreakdown(summary=score)
    summary = RankedResult(score, episode=candidates.summary, parts=parts)
    others = [result for result in results if result.episode != candidates.summary]
    return [summary, *others[: limit - 1]]


def misses_time(
    query: Query, results: Sequence[RankedResult], candidates: SearchCandidates
) -> bool:
    """Tell whether no result is of the time and the source that the question names."""
    if not query.spans or candidates.summary is not None:
        return False
    shown = {result.memory for result in results}
    shown.update(position for result in results for position, _ in result.lines)
    return not any(
        match.position in shown and _is_of_both(query, match, candidates)
        for match in candidates.memories
    )


def _is_of_both(query: Query, match: Match, candidates: SearchCandidates) -> bool:
    """Tell whether a memory is of the time and the source that the question names."""
    if query.asked and not query.asked.has(match.source):
        return False
    return lies_within(query, match, candidates)


def _time_relevances(
    query: Query,
    candidates: SearchCandidates,
    positions: Collection[int],
    weights: PlacementWeights,
) -> dict[int, _Relevance]:
    """Return the relevance of each candidate of the time."""
    matches = [match for match in candidates.memories if match.position in positions]
    subject = _QuestionSubject(query, candidates, matches, weights)
    shares = {match.position: subject.share(match) for match in matches}
    most = max(shares.values()) or 1.0
    return {
        match.position: _Relevance(
            shares[match.position] / most,
            bool(query.asked and query.asked.has(match.source)),
            match.position in candidates.mentioning,
        )
        for match in matches
        if not query.spans or lies_within(query, match, candidates)
    }


class _QuestionSubject:
    """The words of a question that say what it is about."""

    def __init__(
        self,
        query: Query,
        candidates: SearchCandidates,
        matches: Sequence[Match],
        weights: PlacementWeights,
    ) -> None:
        self._reader: TermReader | None = None
        if not query.subject:
            return
        self._reader = TermReader(query.subject, candidates.corpus)
        idf = self._reader.idf
        self._total = sum(idf)
        self._named = {
            role: self._reader.present(role) for role in {m.role for m in matches}
        }
        names = set().union(*self._named.values())
        self._said = [
            telling * (weights.mentioned_name if term in names else 1.0)
            for term, telling in enumerate(idf)
        ]

    def share(self, match: Match) -> float:
        """Return the share of the words that a memory or its speaker has, by their idf."""
        reader = self._reader
        if reader is None:
            return 0.0
        by_text = reader.present(match.content)
        by_role = self._named[match.role]
        had = sum(reader.idf[term] for term in by_role)
        had += sum(self._said[term] for term in by_text - by_role)
        return had / self._total


def _best_in_order(
    query: Query,
    candidates: SearchCandidates,
    relevances: Mapping[int, _Relevance],
    weights: PlacementWeights,
) -> list[int]:
    """Return the best matches by time, the first of the order first."""
    if not (query.asked or query.subject):
        return []
    past = [
        match
        for match in candidates.memories
        if match.position in relevances
        and _may_be_first(match, relevances[match.position], query)
    ]
    best = max((relevances[match.position].subject for match in past), default=0.0)
    least = weights.matching_share * best - _EPSILON
    alike = [match for match in past if relevances[match.position].subject >= least]
    alike.sort(
        key=lambda match: (match.created_at, match.position),
        reverse=query.order is not TimeOrder.EARLIEST,
    )
    return [match.position for match in alike]


def _may_be_first(match: Match, relevance: _Relevance, query: Query) -> bool:
    """Tell whether a memory is of the source asked for, and not of the future."""
    if query.asked and not relevance.is_asked:
        return False
    return query.now is None or match.created_at <= query.now
