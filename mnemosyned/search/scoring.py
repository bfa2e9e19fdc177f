"""Scores of candidates: their words, their neighbors and sittings, priors, and vector similarity."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import (
    Iterable,
    Mapping,
    Sequence,
    Set as AbstractSet,
)
from heapq import heappush, heappushpop
from itertools import pairwise
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
    says_when,
    stems_and_kinds,
)
from mnemosyned.search.weights import RankingWeights
from mnemosyned.text.terms import gram_text, has_unspaced_script, stems_with_content

if TYPE_CHECKING:
    from datetime import datetime

    from mnemosyned.text.dates.spans import TimeSpan

_QUESTION_MARKS = ("?", "？")


def neighbor_scores(
    matches: Mapping[int, Match],
    terms: Mapping[int, Sequence[float]],
    beside: Mapping[int, Sequence[tuple[int, int]]],
    weights: RankingWeights,
) -> dict[int, list[float]]:
    """Return {row number: [score lent by a neighbor, for each term]}, the highest among neighbors.

    `terms` are the scores by row number and term; `beside` are (row number, distance) of the
    neighbors of some matches, adjoining rows stand for them in others. Neighbors of another session
    or source, or too far in time, do not count.
    """
    adjoining = [
        (step * distance, distance)
        for distance in range(1, len(weights.neighbors) + 1)
        for step in (-1, 1)
    ]
    lent: dict[int, list[float]] = {}
    for position, match in matches.items():
        if match.score <= 0 or match.session == DEFAULT_SESSION:
            continue
        pairs = beside.get(position)
        if pairs is None:
            pairs = [(position + offset, distance) for offset, distance in adjoining]
        for neighbor, distance in pairs:
            other = matches.get(neighbor)
            if (
                other
                and match.session == other.session
                and match.source == other.source
                and abs(match.created_at - other.created_at) <= weights.neighbors_within
            ):
                share = weights.neighbors[distance - 1]
                if neighbor > position and any(
                    mark in match.content for mark in _QUESTION_MARKS
                ):
                    share *= weights.reply
                shared = [score * share for score in terms[position]]
                lent[neighbor] = list(map(max, lent.get(neighbor, shared), shared))
    return lent


def sitting_scores(
    matches: Iterable[Match],
    terms: Mapping[int, Sequence[float]],
    sums: Mapping[int, float],
    *,
    weights: RankingWeights,
) -> dict[int, float]:
    """Return {row number: sum over the terms of the best score in the sitting} for all matches.

    A sitting is the part of a session between long pauses. `terms` are the scores by row number and
    term, `sums` their sums, which a match alone in its sitting keeps. A sitting with much text
    counts less.
    """
    sessions: dict[tuple[str, str | None], list[Match]] = defaultdict(list)
    for match in matches:
        sessions[match.session, match.source].append(match)
    sittings: list[list[Match]] = []
    for session in sessions.values():
        session.sort(key=attrgetter("created_at"))
        sittings.append([session[0]])
        for earlier, match in pairwise(session):
            if match.created_at - earlier.created_at > weights.sitting_pause:
                sittings.append([])
            sittings[-1].append(match)
    scores = dict(sums)
    for sitting in sittings:
        if len(sitting) == 1:
            continue
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
    """A candidate with the scores of its own text."""

    match: Match
    terms: tuple[float, ...]
    """Score of each term; the last number is the score of everything else."""
    phrase: float
    speaker: float
    """Sum of the idf of terms in the speaker's name."""


def candidate_scores(
    query: Query, candidates: SearchCandidates, weights: RankingWeights
) -> tuple[dict[int, ScoreBreakdown], float]:
    """Return {row number: parts of the score} of the matches and their neighbors.

    Candidates found by other means, such as summaries, are left out. The second value is the best
    share of the question's keywords, 0 to 1, among the candidates; 1 without similarities.
    """
    reader = TermReader(query.terms, candidates.corpus, weights.bm25)
    matches = {match.position: match for match in candidates.memories}
    roles = {match.role for match in candidates.memories}
    in_names = {
        role: reader.name_scores(role) if role else reader.no_scores for role in roles
    }
    names = {
        term
        for scores in in_names.values()
        for term, score in enumerate(scores)
        if score
    }
    speakers = {role: sum(scores) for role, scores in in_names.items()}
    read = {
        position: _read_candidate(reader, match, names, speakers[match.role], weights)
        for position, match in matches.items()
    }
    terms = {position: candidate.terms for position, candidate in read.items()}
    words = {position: sum(own) for position, own in terms.items()}
    lent = neighbor_scores(matches, terms, candidates.beside, weights)
    sittings: Mapping[int, float] = {}
    if not query.only_then:
        sittings = sitting_scores(matches.values(), terms, words, weights=weights)
    asked = stems_and_kinds(" ".join(query.terms.words))
    sources = {match.source for match in matches.values()} - {None}
    question = _QuestionTraits(
        query,
        names,
        ASSISTANT_ROLES if query.expected.assistant else USER_ROLES,
        {source for source in sources if not asked.isdisjoint(stems_and_kinds(source))},
        [(span, span.with_margin()) for span in query.spans],
        weights.leading_share * max(words.values(), default=0.0),
    )
    scores: dict[int, ScoreBreakdown] = {}
    for position, candidate in read.items():
        borrowed = lent.get(position)
        if candidate.match.score <= 0 and borrowed is None:
            continue
        own = words[position]
        best = sum(map(max, candidate.terms, borrowed)) if borrowed else own
        sitting = sittings.get(position, 0.0)
        scores[position] = _score_candidate(
            question,
            candidate,
            weights,
            words=own,
            neighbors=best - own,
            sitting=sitting,
        )
    scores = _penalize_little_content(query, scores, matches, weights)
    if not candidates.nearness.cosines:
        return scores, 1.0
    covered = 0.0
    for position, candidate in read.items():
        in_name = in_names[candidate.match.role]
        share = _coverage(reader, candidate, in_name, lent.get(position))
        covered = max(covered, share)
        if covered == 1.0:
            break
    lengths = {position: len(match.content) for position, match in matches.items()}
    possible = reader.possible
    return add_similarity(
        scores,
        candidates.nearness,
        lengths,
        possible=possible,
        covered=covered,
        weights=weights,
    ), covered


def _coverage(
    reader: TermReader,
    candidate: _ReadCandidate,
    in_name: Sequence[float],
    borrowed: Sequence[float] | None,
) -> float:
    """Return the share of the question's keywords in a candidate, its speaker's name or neighbors.

    `in_name` and `borrowed` are the scores of each term in the name and in the neighbors.
    """
    count = len(in_name)
    terms = {term for term in range(count) if candidate.terms[term] or in_name[term]}
    if candidate.match.grams:  # parts of identifiers
        terms |= reader.terms_in(gram_text(candidate.match.content))
    nearby = [term for term in range(count) if borrowed and borrowed[term]]
    return reader.coverage(terms, candidate.match.content, nearby)


def _read_candidate(
    reader: TermReader,
    match: Match,
    names: AbstractSet[int],
    speaker: float,
    weights: RankingWeights,
) -> _ReadCandidate:
    """Return a candidate with the score of each term in its text.

    Terms in `names`, numbers of terms that are in speakers' names, count less in the words of
    another speaker; `speaker` is the sum of the idf of terms in this speaker's name.
    """
    if match.score <= 0:
        return _ReadCandidate(match, (*reader.no_scores, 0.0), 0.0, speaker)
    scores, phrase = reader.read(match.content)
    # The index also finds pairs of characters, and words beyond the part of a text that is read.
    rest = match.grams
    if len(match.content) >= READ_CHARS_MAX:
        rest += reader.unread_score(scores, match.score - match.grams)
    elif not any(scores) and not speaker:
        rest = match.score
    if names and match.role.lower() not in UNNAMED_ROLES:
        scores = tuple(
            score * weights.named_by_others if term in names else score
            for term, score in enumerate(scores)
        )
    return _ReadCandidate(match, (*scores, rest), phrase, speaker)


class _QuestionTraits(NamedTuple):
    """What the scores of all candidates of one question depend on."""

    query: Query
    names: AbstractSet[int]
    """Terms that are in the name of a speaker."""
    expected_roles: AbstractSet[str]
    sources: AbstractSet[str | None]
    """Sources whose names have a word of the question."""
    spans: Sequence[tuple[TimeSpan, TimeSpan]]
    """Times in the question, each also with a margin."""
    leading: float
    """Least score of words with which a candidate is read for a time in it."""


def _score_candidate(
    question: _QuestionTraits,
    candidate: _ReadCandidate,
    weights: RankingWeights,
    *,
    words: float,
    neighbors: float,
    sitting: float,
) -> ScoreBreakdown:
    """Return the parts of a candidate's score.

    `words`, `neighbors` and `sitting` are the scores of its text, neighbors and sitting. Priors
    are proportional to the words' score, so that they never lift an unrelated memory.
    """
    match = candidate.match
    role = match.role.lower()
    phrase = weights.phrase * candidate.phrase
    session = weights.session * sitting
    score = words + phrase + neighbors + session
    asks = 0.0
    if any(mark in match.content for mark in _QUESTION_MARKS):
        asks = -weights.asks * score * question_share(match.content)
        score += asks
    may_lead = words + neighbors >= question.leading
    names_time = question.query.expected.time and may_lead and says_when(match.content)
    when = weights.says_when * score * names_time
    score += when
    user = weights.user * score * (role in question.expected_roles)
    score += user
    is_named = role in UNNAMED_ROLES and any(
        candidate.terms[term] for term in question.names
    )
    speaker = weights.speaker * score * bool(candidate.speaker or is_named)
    speaker += weights.speaker_idf * candidate.speaker
    score += speaker
    source = weights.source * (match.source in question.sources) * score
    score += source
    time = _weigh_time(question, match.created_at, weights) * score
    score += time
    recency = 0.0
    if question.query.now is not None:
        age_days = max(0, (question.query.now - match.created_at).days)
        recency = 1 / (1 + age_days / weights.recency_half_days)
    return ScoreBreakdown(
        words=words,
        phrase=phrase,
        neighbors=neighbors,
        session=session,
        asks=asks,
        when=when,
        user=user,
        speaker=speaker,
        source=source,
        time=time,
        recency=weights.recency * recency * score,
        importance=weights.importance * (match.importance - 0.5) * score,
    )


def _weigh_time(
    question: _QuestionTraits, created_at: datetime, weights: RankingWeights
) -> float:
    """Return the weight of a candidate's time: within a time in the question, near one, or 0."""
    weight = 0.0
    for span, nearby in question.spans:
        if span.since <= created_at < span.until:
            return weights.time
        if nearby.since <= created_at < nearby.until:
            weight = weights.time_nearby
    return weight


def question_share(text: str) -> float:
    """Return the share (0 to 1) of a text's characters in questions; 0 if it ends with none."""
    if not text.rstrip().endswith(_QUESTION_MARKS):
        return 0.0
    sentences = _SENTENCES.findall(text)
    asking = sum(
        len(sentence)
        for sentence in sentences
        if any(mark in sentence for mark in _QUESTION_MARKS)
    )
    return asking / max(1, sum(map(len, sentences)))


def _penalize_little_content(
    query: Query,
    scores: Mapping[int, ScoreBreakdown],
    matches: Mapping[int, Match],
    weights: RankingWeights,
) -> dict[int, ScoreBreakdown]:
    """Return all scores by row number, lowered for texts with few words beyond the question's.

    Only texts that may still be among the results are read, the best first.
    """
    asked = stems_with_content(" ".join(query.terms.words))
    lowered = dict(scores)
    best: list[float] = []
    ranked = [(sum(parts), position) for position, parts in scores.items()]
    for score, position in sorted(ranked, reverse=True):
        is_full = len(best) == query.limit
        if is_full and score <= best[0]:
            break
        text = matches[position].content
        is_spaced = text.isascii() or not has_unspaced_script(text)
        little = 0.0
        if len(text) <= weights.little_chars and is_spaced:
            stems = stems_with_content(text)
            common = len(text.split()) - len(stems)
            missing = max(0.0, 1 - len(stems - asked) / weights.substance)
            chatter = min(1.0, max(0, common - weights.terse) / weights.substance)
            little = -weights.little * (missing * chatter) * score
        if little:
            lowered[position] = scores[position]._replace(little=little)
        (heappushpop if is_full else heappush)(best, score + little)
    return lowered


def embedding_text(role: str, content: str) -> str:
    """Return the text to embed for a memory: "name: content", or the content of an unnamed role.

    By vectors alone, ten results contain 0.45 of LoCoMo's evidence with the speaker, 0.28 without; a
    role such as "user" only makes all texts alike.
    """
    return content if role.lower() in UNNAMED_ROLES else f"{role}: {content}"


def add_similarity(
    scores: Mapping[int, ScoreBreakdown],
    nearness: Nearness,
    lengths: Mapping[int, int],
    *,
    possible: float,
    covered: float,
    weights: RankingWeights,
) -> dict[int, ScoreBreakdown]:
    """Return the scores with the vector similarity, and with candidates that are only similar.

    Keys are row numbers; `nearness` has the cosines, `lengths` the characters of each text.
    `possible` is the score of a text with every word of the question, the worth of a cosine of 1.
    The less the candidates cover the question's keywords, the more similarity counts: `covered` is
    the best share, 0 to 1. A candidate without a vector gets the average similarity, lest it sink
    for that.
    """
    cosines = {
        position: max(0.0, cosine)
        * min(
            1.0,
            (lengths.get(position, 0) / weights.meaning_chars)
            ** weights.meaning_of_short,
        )
        for position, cosine in nearness.cosines.items()
        if position in scores or cosine >= nearness.vector_only_min
    }
    if not any(cosines.values()):
        return dict(scores)
    best = max(map(sum, scores.values()), default=0.0)
    uncovered = (1 - covered) ** weights.meaning_power
    worth = max(possible, best, 1.0) * (
        weights.meaning + weights.meaning_uncovered * uncovered
    )
    known = [cosines[position] for position in scores if position in cosines]
    average = sum(known) / max(1, len(known))
    return {
        position: scores.get(position, NO_SCORE)._replace(
            meaning=worth * cosines.get(position, average)
        )
        for position in (*scores, *(cosines.keys() - scores.keys()))
    }
