"""Put memories from the time, or in the order, that a question names before other results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from mnemosyned.search.query import (
    Match,
    Query,
    RankedResult,
    ScoreBreakdown,
    SearchCandidates,
)
from mnemosyned.search.scoring import TermReader
from mnemosyned.text.languages.tables import TimeOrder


@dataclass(frozen=True, slots=True)
class PlacementWeights:
    """Additions to a score for a memory's time, or its place in time order, as shares of the best score."""

    source: float = 1.0
    """The source asked for, in addition to every word of the subject."""
    mention: float = 0.5
    """A text that mentions a future time which the question names."""
    mentioned_name: float = 0.5
    """A name in another person's words, relative to the words of the person with that name."""
    first: float = 4.0
    """The newest or oldest memory, as asked, relative to the best score of all others."""
    next_share: float = 0.7
    """Factor from each memory in time order to the next; so low that one line outweighs three."""
    matching_share: float = 0.75
    """Share of the best match's words that a memory needs to be sorted by time with it."""
    current_share: float = 0.4
    """Share of the subject that the best match needs for the newest of the best to come first.

    "Is the heating system still all right" is not answered by the newest memory with "all right".
    """
    long: timedelta = timedelta(days=14)
    """Length of a time span above which many of its memories share a word with any question."""
    longest: timedelta = timedelta(days=100)
    """Length of a time span above which memories from it are preferred, but do not come first."""
    few_words: int = 4
    """A subject of more words asks for one event, and its source is but one of its words."""
    many_words_share: float = 0.75
    """Share of the best match's words that a memory needs to come before it, if the subject is longer."""
    long_share: float = 0.5
    """Share of the best match's words that a memory from a long time span needs to come before it."""


WEIGHTS = PlacementWeights()
_EPSILON = 1e-9


class _Relevance(NamedTuple):
    """How well a memory from the time that a question names fits its subject."""

    subject: float
    """Share of the subject's words, relative to the best candidate."""
    is_asked: bool
    """Whether the memory is of the source asked for."""
    is_mention: bool
    """Whether the memory mentions the time."""


def place_by_time(
    query: Query, scores: Mapping[int, ScoreBreakdown], candidates: SearchCandidates
) -> dict[int, ScoreBreakdown]:
    """Return the scores by row number, changed by the time or order that the query asks for.

    With an order, the best in that order come first. Else memories of that time are raised if they are on
    the subject, or from the kind of source asked for.
    """
    if not scores or query.subject is None:
        return dict(scores)
    matches = [match for match in candidates.memories if match.position in scores]
    shares = _subject_shares(query, candidates, matches)
    most = max(shares.values()) or 1.0
    if query.order is TimeOrder.CURRENT:
        most = 1.0
    relevances = {
        match.position: _Relevance(
            shares[match.position] / most,
            bool(query.asked and query.asked.has(match.source)),
            match.position in candidates.mentioning,
        )
        for match in matches
        if not query.spans or _is_of_time(query, match, candidates)
    }
    best = max(map(sum, scores.values()))
    if query.order:
        ranked = _best_in_order(query, candidates, relevances)
        sorted_scores = {
            position: ScoreBreakdown(
                time=best * (1 + WEIGHTS.first * WEIGHTS.next_share**rank)
            )
            for rank, position in enumerate(ranked)
        }
        return {**scores, **sorted_scores}
    longest = max(span.until - span.since for span in query.spans)
    words = len(query.subject.words)
    least = WEIGHTS.long_share if longest > WEIGHTS.long else _EPSILON
    if words > WEIGHTS.few_words:
        least = WEIGHTS.many_words_share
    raised = dict(scores)
    for position, relevance in relevances.items():
        subject = relevance.subject
        is_of_subject = not words or subject >= max(least, WEIGHTS.long_share)
        is_asked = relevance.is_asked and is_of_subject and words <= WEIGHTS.few_words
        is_selected = is_asked or (relevance.is_mention and is_of_subject)
        if is_selected or (subject >= least and longest <= WEIGHTS.longest):
            from_source = WEIGHTS.source + subject if is_asked else 0.0
            bonus = 1.0 + from_source + WEIGHTS.mention * relevance.is_mention
            parts = scores[position]
            raised[position] = parts._replace(time=parts.time + best * bonus)
    return raised


def add_period_summary(
    results: Sequence[RankedResult], candidates: SearchCandidates, *, limit: int
) -> list[RankedResult]:
    """Return the results; if the period asked for has a summary, return it with `limit` - 1 others."""
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
    """Return True if a question names a time, but no result is from that time.

    A memory that mentions the time counts as from that time. False if the period's summary is shown.
    """
    if not query.spans or candidates.summary is not None:
        return False
    shown = {position for result in results for position in result.positions}
    return not any(
        match.position in shown and _is_of_time(query, match, candidates)
        for match in candidates.memories
    )


def _is_of_time(query: Query, match: Match, candidates: SearchCandidates) -> bool:
    """Return True if a memory is from a time that the question names, or mentions that time."""
    return match.position in candidates.mentioning or any(
        span.since <= match.created_at < span.until for span in query.spans
    )


def _subject_shares(
    query: Query, candidates: SearchCandidates, matches: Sequence[Match]
) -> dict[int, float]:
    """Return {row number: share of the subject's words in a memory's text or its speaker's name}.

    Words are weighed by their idf. A speaker's name counts less in another speaker's memory.
    """
    if not query.subject:
        return {match.position: 0.0 for match in matches}
    reader = TermReader(query.subject, candidates.corpus)
    total = sum(reader.idf)
    roles = {match.role for match in matches}
    in_names = {role: reader.terms_in(role) for role in roles}
    names = set().union(*in_names.values())
    in_text = [
        idf * (WEIGHTS.mentioned_name if term in names else 1.0)
        for term, idf in enumerate(reader.idf)
    ]
    shares: dict[int, float] = {}
    for match in matches:
        by_role = in_names[match.role]
        by_text = reader.terms_in(match.content) - by_role
        share = sum(reader.idf[term] for term in by_role)
        share += sum(in_text[term] for term in by_text)
        shares[match.position] = share / total
    return shares


def _best_in_order(
    query: Query, candidates: SearchCandidates, relevances: Mapping[int, _Relevance]
) -> list[int]:
    """Return row numbers of past memories on the subject or source asked for, newest or oldest first."""
    if not (query.asked or query.subject):
        return []
    past = [
        match
        for match in candidates.memories
        if match.position in relevances
        and (query.now is None or match.created_at <= query.now)
    ]
    # If no memory is from the source asked for, as where agents alone write, the word means any.
    past = [match for match in past if relevances[match.position].is_asked] or past
    best = max((relevances[match.position].subject for match in past), default=0.0)
    if query.order is TimeOrder.CURRENT and best < WEIGHTS.current_share:
        return []
    least = WEIGHTS.matching_share * best - _EPSILON
    alike = [match for match in past if relevances[match.position].subject >= least]
    alike.sort(
        key=lambda match: (match.created_at, match.position),
        reverse=query.order is not TimeOrder.EARLIEST,
    )
    return [match.position for match in alike]
