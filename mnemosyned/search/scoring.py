"""Scores of candidates: their words, their neighbors and sittings, priors, and the similarity of vectors."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from datetime import timedelta
from heapq import heappush, heappushpop
from itertools import takewhile
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from mnemosyned.memory.values import DEFAULT_SESSION
from mnemosyned.search.bm25 import READ_CHARS_MAX, TermReader
from mnemosyned.search.query import (
    NO_SCORE,
    Match,
    Nearness,
    Query,
    ScoreBreakdown,
    SearchCandidates,
    is_from_source,
    says_when,
    stems_and_kinds,
)
from mnemosyned.search.weights import WEIGHTS, RankingWeights
from mnemosyned.text.terms import has_unspaced_script
from mnemosyned.text.words import stems_with_content

if TYPE_CHECKING:
    from mnemosyned.text.dates.spans import TimeSpan


MATCHES_MAX = 24
"""Neighbors are looked up for this many of the best matches."""
SCORE_SHARE_MIN = 0.5
"""Share of the best score that a match needs for that."""
_QUESTION_MARKS = ("?", "？")
REACH = 8
"""Distance in the order of arrival, as memories of several sessions may interleave."""


def matches_with_neighbors(matches: Sequence[Match]) -> Iterator[Match]:
    """Return the matches whose neighbors are to be looked up; `matches` are best first."""
    best = matches[:MATCHES_MAX]
    least = SCORE_SHARE_MIN * best[0].score if best else 0.0
    strong = takewhile(lambda match: match.score >= least, best)
    # Memories without a session of their own belong to no conversation.
    return (match for match in strong if match.session != DEFAULT_SESSION)


def nearest_neighbors(positions: Sequence[int], position: int) -> list[tuple[int, int]]:
    """Return indexes of the next to a position, and how far off they are, nearest first.

    `positions` are those of one session and source, ascending.
    """
    index = positions.index(position)
    return [
        (neighbor, distance)
        for distance in range(1, len(WEIGHTS.neighbors) + 1)
        for neighbor in (index - distance, index + distance)
        if 0 <= neighbor < len(positions)
    ]


def neighbor_scores(
    matches: Mapping[int, Match],
    terms: Mapping[int, Sequence[float]],
    beside: Mapping[int, Sequence[tuple[int, int]]],
    weights: RankingWeights,
) -> dict[int, list[float]]:
    """Return for each candidate the best its neighbors say of each term, at their share.

    `beside` are the neighbors that were looked up; for others, those of adjoining positions.
    """
    lent: dict[int, list[float]] = {}
    for position, match in matches.items():
        if match.score <= 0:
            continue
        pairs = beside.get(position)
        if pairs is None:
            pairs = _adjoining_positions(position, len(weights.neighbors))
        for neighbor, distance in pairs:
            other = matches.get(neighbor)
            if other and in_one_conversation(match, other, weights):
                share = weights.neighbors[distance - 1]
                if neighbor > position and _asks_question(match):
                    share *= weights.reply
                shared = [score * share for score in terms[position]]
                lent[neighbor] = list(map(max, lent.get(neighbor, shared), shared))
    return lent


def _adjoining_positions(position: int, reach: int) -> list[tuple[int, int]]:
    """Return the positions before and after one, and how far off they are, nearest first."""
    return [
        (position + step * distance, distance)
        for distance in range(1, reach + 1)
        for step in (-1, 1)
    ]


def _asks_question(match: Match) -> bool:
    return any(mark in match.content for mark in _QUESTION_MARKS)


def in_one_conversation(
    match: Match, other: Match, weights: RankingWeights = WEIGHTS
) -> bool:
    """Tell whether two memories next to each other belong together."""
    return (
        match.session == other.session != DEFAULT_SESSION
        and match.source == other.source
        and abs(match.created_at - other.created_at) <= weights.neighbors_within
    )


_CREATED_AT = attrgetter("created_at")


def sittings_of(matches: Iterable[Match], pause: timedelta) -> Iterator[list[Match]]:
    """Return the matches of each sitting of more than one, in order of time."""
    sessions: dict[tuple[str, str | None], list[Match]] = defaultdict(list)
    for match in matches:
        sessions[match.session, match.source].append(match)
    for session in sessions.values():
        if len(session) > 1:
            session.sort(key=_CREATED_AT)
            yield from _split_at_pauses(session, pause)


def _split_at_pauses(
    session: Sequence[Match], pause: timedelta
) -> Iterator[list[Match]]:
    """Part a session at its long pauses."""
    sitting = [session[0]]
    for match in session[1:]:
        if match.created_at - sitting[-1].created_at > pause:
            if len(sitting) > 1:
                yield sitting
            sitting = []
        sitting.append(match)
    if len(sitting) > 1:
        yield sitting


def sitting_scores(
    matches: Iterable[Match],
    terms: Mapping[int, Sequence[float]],
    sums: Mapping[int, float],
    *,
    weights: RankingWeights,
) -> dict[int, float]:
    """Return for each match the sum of the best that its sitting says of each term.

    `terms` are the scores of each match for each term, `sums` their sums: alone, a match has its
    own. A sitting with much text counts less.
    """
    scores = dict(sums)
    for sitting in sittings_of(matches, weights.sitting_pause):
        positions = [match.position for match in sitting]
        best = map(max, *(terms[position] for position in positions))
        size = sum(len(match.content) for match in sitting)
        share = weights.sitting_chars / max(size, weights.sitting_chars)
        scores.update(dict.fromkeys(positions, share * sum(best)))
    return scores


UNNAMED_ROLES = frozenset(
    "user assistant system tool function model human agent ai bot me self owner note".split()
) | {""}
"""Roles that are nobody's name."""
USER_ROLES = frozenset({"user", "human"})
ASSISTANT_ROLES = frozenset("assistant model agent ai bot".split())

_SENTENCES = re.compile(r"[^.!?？…\n]+[.!?？…\n]*")


class _ReadCandidate(NamedTuple):
    """A candidate and what its own text says of each term; the last place is the rest's."""

    match: Match
    terms: tuple[float, ...]
    phrase: float
    speaker: float
    """How telling the name of the speaker is."""


class _WordScore(NamedTuple):
    """Parts of a score that come from the words of a candidate and those around it."""

    words: float
    phrase: float
    neighbors: float
    session: float


class _Signals(NamedTuple):
    """Signals of a candidate beside its words."""

    names_time: bool
    """It names a time, where the question asks when."""
    is_about: bool
    is_from_source: bool
    time_share: float


def candidate_scores(
    query: Query, candidates: SearchCandidates, weights: RankingWeights
) -> dict[int, ScoreBreakdown]:
    """Score candidates; those that neither match nor adjoin a match are left out."""
    reader = TermReader(query.terms, candidates.corpus, weights.bm25)
    readings = {
        match.position: _read_candidate(reader, match) for match in candidates.memories
    }
    names = _named_terms(reader, readings)
    terms = {
        position: _own_terms(reading, names, weights)
        for position, reading in readings.items()
    }
    sums = {position: sum(own) for position, own in terms.items()}
    matches = {position: reading.match for position, reading in readings.items()}
    lent = neighbor_scores(matches, terms, candidates.beside, weights)
    sittings: Mapping[int, float] = {}
    if not query.only_then:
        sittings = sitting_scores(matches.values(), terms, sums, weights=weights)
    signals = _SignalReader(
        query, names, weights, best_words=max(sums.values(), default=0.0)
    )
    scores: dict[int, ScoreBreakdown] = {}
    for position, reading in readings.items():
        borrowed = lent.get(position)
        if reading.match.score <= 0 and borrowed is None:
            continue
        words = sums[position]
        best = sum(map(max, terms[position], borrowed)) if borrowed else words
        text = _WordScore(
            words,
            weights.phrase * reading.phrase,
            best - words,
            weights.session * sittings.get(position, 0.0),
        )
        scores[position] = _add_priors(
            query, reading, text, signals.read(reading, best), weights
        )
    return _penalize_little_content(query, scores, matches, weights)


class _SignalReader:
    """Reader of what the candidates of one question have beside their words."""

    def __init__(
        self,
        query: Query,
        names: set[int],
        weights: RankingWeights,
        *,
        best_words: float,
    ) -> None:
        self._names = names
        self._weights = weights
        self._asks_when = query.expected.time
        self._leading = weights.leading_share * best_words
        self._asked = stems_and_kinds(" ".join(query.terms.words))
        self._spans = [(span, span.widened()) for span in query.spans]

    def read(self, reading: _ReadCandidate, words: float) -> _Signals:
        """Return the signals of a candidate whose words are worth so much."""
        match = reading.match
        may_lead = words >= self._leading
        return _Signals(
            names_time=self._asks_when and may_lead and says_when(match.content),
            is_about=_is_about(reading, self._names),
            is_from_source=is_from_source(match.source, self._asked),
            time_share=_time_share(self._spans, match, self._weights),
        )


def _read_candidate(reader: TermReader, match: Match) -> _ReadCandidate:
    speaker = reader.spoken_by(match.role)
    if match.score <= 0:
        return _ReadCandidate(match, reader.unread, 0.0, speaker)
    scores, phrase = reader.read(match.content)
    # The index also finds pairs of characters, and words beyond the part of a text that is read.
    rest = match.grams
    if len(match.content) >= READ_CHARS_MAX:
        rest += reader.beyond(scores, match.score - match.grams)
    elif not any(scores) and not speaker:
        rest = match.score
    return _ReadCandidate(match, (*scores, rest), phrase, speaker)


def _named_terms(
    reader: TermReader, readings: Mapping[int, _ReadCandidate]
) -> set[int]:
    """Return the terms that are the name of a speaker among the candidates."""
    roles = {reading.match.role for reading in readings.values() if reading.speaker}
    return {
        number
        for role in roles
        for number, score in enumerate(reader.role(role))
        if score
    }


def _own_terms(
    reading: _ReadCandidate, names: set[int], weights: RankingWeights
) -> tuple[float, ...]:
    """Return the score for each term; names in another speaker's words count less."""
    if not names or reading.match.role.lower() in UNNAMED_ROLES:
        return reading.terms
    return tuple(
        score * weights.named_by_others if number in names else score
        for number, score in enumerate(reading.terms)
    )


def _is_about(reading: _ReadCandidate, names: set[int]) -> bool:
    """Tell whether the person asked about speaks, or is named in a record of no speaker."""
    if reading.speaker:
        return True
    unnamed = reading.match.role.lower() in UNNAMED_ROLES
    return unnamed and any(reading.terms[number] for number in names)


def _add_priors(
    query: Query,
    reading: _ReadCandidate,
    text: _WordScore,
    signals: _Signals,
    weights: RankingWeights,
) -> ScoreBreakdown:
    """Add the parts that scale with how well it matches, so that they lift nothing unrelated."""
    match = reading.match
    score = sum(text)
    asks = -weights.asks * score * question_share(match.content)
    score += asks
    when = weights.says_when * score * signals.names_time
    score += when
    user = weights.user * score * _is_from_expected_side(query, match)
    score += user
    speaker = weights.speaker * score * signals.is_about
    speaker += weights.speaker_idf * reading.speaker
    score += speaker
    source = weights.source * signals.is_from_source * score
    score += source
    time = signals.time_share * score
    score += time
    return ScoreBreakdown(
        *text,
        asks=asks,
        when=when,
        user=user,
        speaker=speaker,
        source=source,
        time=time,
        recency=weights.recency * _recency_share(query, match, weights) * score,
        importance=weights.importance * (match.importance - 0.5) * score,
    )


def _penalize_little_content(
    query: Query,
    scores: Mapping[int, ScoreBreakdown],
    matches: Mapping[int, Match],
    weights: RankingWeights,
) -> dict[int, ScoreBreakdown]:
    """Return the scores, lowered for texts that add little to the words of the question.

    Only what may still be among the results is read for that, the best first.
    """
    asked = stems_with_content(" ".join(query.terms.words))
    lowered = dict(scores)
    best: list[float] = []
    ranked = [(sum(parts), position) for position, parts in scores.items()]
    for score, position in sorted(ranked, reverse=True):
        is_full = len(best) == query.limit
        if is_full and score <= best[0]:
            break
        lack = _missing_words_share(matches[position].content, asked, weights)
        little = -weights.little * lack * score
        if little:
            lowered[position] = scores[position]._replace(little=little)
        (heappushpop if is_full else heappush)(best, score + little)
    return lowered


def _missing_words_share(
    text: str, asked: AbstractSet[str], weights: RankingWeights
) -> float:
    """Return the share that chatter lacks of the words that an answer adds."""
    if len(text) > weights.little_chars or _is_unspaced(text):
        return 0.0
    stems = stems_with_content(text)
    added = len(stems - asked)
    common = len(text.split()) - len(stems)
    lack = max(0.0, 1 - added / weights.substance)
    return lack * min(1.0, max(0, common - weights.terse) / weights.substance)


def _is_unspaced(text: str) -> bool:
    return not text.isascii() and has_unspaced_script(text)


def question_share(text: str) -> float:
    """Return the share of a text that is questions, if it ends in one."""
    if not text.rstrip().endswith(_QUESTION_MARKS):
        return 0.0
    sentences = _SENTENCES.findall(text)
    asking = sum(
        len(sentence) for sentence in sentences if _has_question_mark(sentence)
    )
    return asking / max(1, sum(map(len, sentences)))


def _has_question_mark(text: str) -> bool:
    return any(mark in text for mark in _QUESTION_MARKS)


def _is_from_expected_side(query: Query, match: Match) -> bool:
    """Tell whether the user says it, or the assistant where its words are asked for."""
    side = ASSISTANT_ROLES if query.expected.assistant else USER_ROLES
    return match.role.lower() in side


def _time_share(
    spans: Sequence[tuple[TimeSpan, TimeSpan]], match: Match, weights: RankingWeights
) -> float:
    """Return the share of a moment in a time that the question mentions, or near it."""
    share = 0.0
    for span, nearby in spans:
        if span.since <= match.created_at < span.until:
            return weights.time
        if nearby.since <= match.created_at < nearby.until:
            share = weights.time_nearby
    return share


def _recency_share(query: Query, match: Match, weights: RankingWeights) -> float:
    if query.now is None:
        return 0.0
    age_days = max(0, (query.now - match.created_at).days)
    return 1 / (1 + age_days / weights.recency_half_days)


def embedding_text(role: str, content: str) -> str:
    """Return the text that a vector is made of; the speaker is part of the meaning.

    By vectors alone, ten results hold 0.45 of LoCoMo's evidence with the speaker, 0.28 without.
    """
    return f"{role}: {content}" if role else content


def add_similarity(
    scores: Mapping[int, ScoreBreakdown], nearness: Nearness, weights: RankingWeights
) -> dict[int, ScoreBreakdown]:
    """Add to each score the share of its similarity, and candidates that are similar alone."""
    if not nearness.cosines:
        return dict(scores)
    cosines = {
        position: cosine
        for position, cosine in nearness.cosines.items()
        if position in scores or cosine >= nearness.vector_only_min
    }
    nearest = max(cosines.values(), default=0.0)
    if nearest <= 0:
        return dict(scores)
    best = max(map(sum, scores.values()), default=0.0) or 1.0
    most = weights.meaning * best
    unknown = _average_similarity(
        cosines[position] for position in scores if position in cosines
    )
    return {
        position: scores.get(position, NO_SCORE)._replace(
            meaning=most * (max(0.0, cosines.get(position, unknown)) / nearest)
        )
        for position in (*scores, *(cosines.keys() - scores.keys()))
    }


def _average_similarity(cosines: Iterable[float]) -> float:
    """Return the similarity of a candidate without a vector: it must not sink for that."""
    known = [max(0.0, cosine) for cosine in cosines]
    return sum(known) / max(1, len(known))
