"""Scores of candidates: the words of each, those around it, and priors that scale with them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set as AbstractSet
from heapq import heappush, heappushpop
from typing import TYPE_CHECKING, NamedTuple

from mnemosyned.domain.search.query import (
    Match,
    Query,
    ScoreBreakdown,
    SearchCandidates,
)
from mnemosyned.domain.search.questions.expected_answers import says_when
from mnemosyned.domain.search.questions.source_hints import asked_of, is_asked_of
from mnemosyned.domain.search.scores.neighbors import lent_scores
from mnemosyned.domain.search.scores.sittings import sitting_scores
from mnemosyned.domain.search.scores.weights import RankingWeights
from mnemosyned.domain.search.words.bm25 import READ_CHARS_MAX, Reader
from mnemosyned.domain.text.terms import has_unspaced_script
from mnemosyned.domain.text.words.vague_words import stems_with_content

if TYPE_CHECKING:
    from mnemosyned.domain.dates.spans import TimeSpan

UNNAMED_ROLES = frozenset(
    "user assistant system tool function model human agent ai bot me self owner note".split()
) | {""}
"""Roles that are nobody's name."""
USER_ROLES = frozenset({"user", "human"})
ASSISTANT_ROLES = frozenset("assistant model agent ai bot".split())
_QUESTION_MARKS = ("?", "？")
_SENTENCES = re.compile(r"[^.!?？…\n]+[.!?？…\n]*")


class _Reading(NamedTuple):
    """A candidate and what its own text says of each term; the last place is the rest's."""

    match: Match
    terms: tuple[float, ...]
    phrase: float
    speaker: float
    """How telling the name of the speaker is."""


class _Text(NamedTuple):
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
    reader = Reader(query.terms, candidates.corpus, weights.bm25)
    readings = {
        match.position: _reading(reader, match) for match in candidates.memories
    }
    names = _named_terms(reader, readings)
    terms = {
        position: _own_terms(reading, names, weights)
        for position, reading in readings.items()
    }
    sums = {position: sum(own) for position, own in terms.items()}
    matches = {position: reading.match for position, reading in readings.items()}
    lent = lent_scores(matches, terms, candidates.beside, weights)
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
        text = _Text(
            words,
            weights.phrase * reading.phrase,
            best - words,
            weights.session * sittings.get(position, 0.0),
        )
        scores[position] = _with_priors(
            query, reading, text, signals.read(reading, best), weights
        )
    return _less_for_little(query, scores, matches, weights)


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
        self._asked = asked_of(query.terms)
        self._spans = [(span, span.widened()) for span in query.spans]

    def read(self, reading: _Reading, words: float) -> _Signals:
        """Return the signals of a candidate whose words are worth so much."""
        match = reading.match
        may_lead = words >= self._leading
        return _Signals(
            names_time=self._asks_when and may_lead and says_when(match.content),
            is_about=_is_about(reading, self._names),
            is_from_source=is_asked_of(match.source, self._asked),
            time_share=_time_share(self._spans, match, self._weights),
        )


def _reading(reader: Reader, match: Match) -> _Reading:
    speaker = reader.spoken_by(match.role)
    if match.score <= 0:
        return _Reading(match, reader.unread, 0.0, speaker)
    scores, phrase = reader.read(match.content)
    # The index also finds pairs of characters, and words beyond the part of a text that is read.
    rest = match.grams
    if len(match.content) >= READ_CHARS_MAX:
        rest += reader.beyond(scores, match.score - match.grams)
    elif not any(scores) and not speaker:
        rest = match.score
    return _Reading(match, (*scores, rest), phrase, speaker)


def _named_terms(reader: Reader, readings: Mapping[int, _Reading]) -> set[int]:
    """Return the terms that are the name of a speaker among the candidates."""
    roles = {reading.match.role for reading in readings.values() if reading.speaker}
    return {
        number
        for role in roles
        for number, score in enumerate(reader.role(role))
        if score
    }


def _own_terms(
    reading: _Reading, names: set[int], weights: RankingWeights
) -> tuple[float, ...]:
    """Return the score for each term; names in another speaker's words count less."""
    if not names or reading.match.role.lower() in UNNAMED_ROLES:
        return reading.terms
    return tuple(
        score * weights.named_by_others if number in names else score
        for number, score in enumerate(reading.terms)
    )


def _is_about(reading: _Reading, names: set[int]) -> bool:
    """Tell whether the person asked about speaks, or is named in a record of no speaker."""
    if reading.speaker:
        return True
    unnamed = reading.match.role.lower() in UNNAMED_ROLES
    return unnamed and any(reading.terms[number] for number in names)


def _with_priors(
    query: Query,
    reading: _Reading,
    text: _Text,
    signals: _Signals,
    weights: RankingWeights,
) -> ScoreBreakdown:
    """Add the parts that scale with how well it matches, so that they lift nothing unrelated."""
    match = reading.match
    score = sum(text)
    asks = -weights.asks * score * asking_share(match.content)
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
        recency=weights.recency * _recency(query, match, weights) * score,
        importance=weights.importance * (match.importance - 0.5) * score,
    )


def _less_for_little(
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
        lack = _lack(matches[position].content, asked, weights)
        little = -weights.little * lack * score
        if little:
            lowered[position] = scores[position]._replace(little=little)
        (heappushpop if is_full else heappush)(best, score + little)
    return lowered


def _lack(text: str, asked: AbstractSet[str], weights: RankingWeights) -> float:
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


def asking_share(text: str) -> float:
    """Return the share of a text that is questions, if it ends in one."""
    if not text.rstrip().endswith(_QUESTION_MARKS):
        return 0.0
    sentences = _SENTENCES.findall(text)
    asking = sum(len(sentence) for sentence in sentences if _asks(sentence))
    return asking / max(1, sum(map(len, sentences)))


def _asks(text: str) -> bool:
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


def _recency(query: Query, match: Match, weights: RankingWeights) -> float:
    if query.now is None:
        return 0.0
    age_days = max(0, (query.now - match.created_at).days)
    return 1 / (1 + age_days / weights.recency_half_days)
