"""Ranking: the score of each candidate, part by part."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Set as AbstractSet
from datetime import datetime, timedelta
from operator import attrgetter
from typing import NamedTuple

from mnemosyned.domain.memory import DEFAULT_SESSION, Tier
from mnemosyned.domain.search.bm25 import READ_CHARS_MAX, Reader
from mnemosyned.domain.search.dedup import folded, one_of_each_line
from mnemosyned.domain.search.query import (
    BEGINNING,
    LINES_MAX,
    Match,
    Query,
    RankedResult,
    ScoreBreakdown,
    SearchCandidates,
)
from mnemosyned.domain.search.semantic import with_meaning
from mnemosyned.domain.search.source_hints import asked_of, is_asked_of

NEIGHBOR_SHARES = (0.6, 0.4)
"""What a term is worth that stands one and two places beside: an answer often follows the line
that names its subject, and need not repeat a word of it."""
_NEXT_TO = [
    (step * distance, distance)
    for distance in range(1, len(NEIGHBOR_SHARES) + 1)
    for step in (-1, 1)
]
BESIDE_WITHIN = timedelta(minutes=30)
"""Lines further apart than this are not one talk, whatever their session is called."""
SESSION_SHARE = 0.3
"""What the best a sitting says of each term adds to each of its lines."""
SITTING_PAUSE = timedelta(hours=2)
SPEAKER_SHARE = 0.4
"""What it adds that the one asked about speaks, or is spoken of where nobody in particular does."""
SPOKEN_TO = 0.5
"""What a name is worth in somebody else's words: it is said to them more often than of them."""
NOBODY = frozenset(
    "user assistant system tool function model human agent ai bot me self owner note".split()
) | {""}
"""Roles that are nobody's name."""
ROLE_WEIGHT = 1.0
SOURCE_SHARE = 0.4
"""What it adds to come from the source asked of: a photo, where the question is which photo."""
PHRASE_SHARE = 0.25
ASKING_SHARE = 0.1
"""What a line loses that asks itself: it is seldom the answer."""
TIME_SHARE = 1.0
TIME_NEAR_SHARE = 0.25
RECENCY_SHARE = 0.1
RECENCY_HALF_DAYS = 30
"""After so long, the prior of being recent is worth half; whole days count, so that the same
question has the same answer a moment later."""
IMPORTANCE_SHARE = 0.1
"""Importance moves a score by at most this much of itself: a prior, never a match."""

FURTHER_LINES = 0.15
"""What the second and third matching original of an episode add to its best one."""
SUMMARY_SHARE = 0.25
"""What a match in the summary's own words adds to its best original."""
SUMMARY_ALONE = 0.5
"""What a match in the summary is worth where no original matches."""


class _Read(NamedTuple):
    """A candidate and what its own text says of each term; the last place is the rest's."""

    match: Match
    own: tuple[float, ...]
    phrase: float
    roles: float


def rank(query: Query, found: SearchCandidates) -> list[RankedResult]:
    """The best places, best first: one for each episode, whatever matched in it."""
    if not found.memories and not found.episodes:
        return []
    worth = with_meaning(_worths(query, found), found.nearness)
    by_position = {match.position: match for match in found.memories}
    grouped = query.tier in (None, Tier.EPISODIC)
    places: list[_Dated] = []
    lines: dict[int, list[tuple[int, ScoreBreakdown]]] = {}
    for position, parts in worth.items():
        match = by_position[position]
        if match.episode is not None and grouped:
            lines.setdefault(match.episode, []).append((position, parts))
        else:
            score = sum(parts)
            place = RankedResult(score, position, None, (), parts)
            places.append(_Dated(score, match.created_at, position, place))
    matched = (
        found.episodes if query.tier is Tier.EPISODIC else {**found.episodes, **lines}
    )
    owed = _owed(worth, query.limit) if matched else frozenset()
    for episode in matched:
        own = found.episodes.get(episode, 0.0)
        place = _episode_place(episode, own, lines.get(episode, []), owed)
        shown = (by_position[position].created_at for position, _ in place.lines)
        places.append(
            _Dated(place.score, max(shown, default=BEGINNING), -episode, place)
        )
    places.sort(reverse=True)
    told = one_of_each_line([dated.place for dated in places], found.above)
    return folded(told, by_position, limit=query.limit)


class _Dated(NamedTuple):
    """A place in its order: by score, and the later first among equals.

    An episode comes before the day that says the same, which has the higher number. No two have
    the same `latest`, so that the places themselves are never compared.
    """

    score: float
    moment: datetime
    """When the latest of what is shown happened."""
    latest: int
    place: RankedResult


def _owed(worth: Mapping[int, ScoreBreakdown], limit: int) -> AbstractSet[int]:
    """The memories that would have a place if every one stood by itself."""
    return set(heapq.nlargest(limit, worth, key=lambda at: (sum(worth[at]), at)))


# --------------------------------------------------------------------- worth


def _worths(query: Query, found: SearchCandidates) -> dict[int, ScoreBreakdown]:
    """Score candidates; those that neither match nor adjoin a match are left out."""
    reader = Reader(query.terms, found.corpus)
    reads = {match.position: _read(reader, match) for match in found.memories}
    names = _names(reader, reads)
    terms = {position: _own(read, names) for position, read in reads.items()}
    words = {position: sum(own) for position, own in terms.items()}
    lent = _lent(found, reads, terms)
    sittings = {} if query.only_then else _sittings(reads, terms, words)
    asked = asked_of(query.terms)
    worth: dict[int, ScoreBreakdown] = {}
    for position, read in reads.items():
        gained = lent.get(position)
        if read.match.score <= 0 and gained is None:
            continue
        own = words[position]
        neighbors = sum(map(max, terms[position], gained)) - own if gained else 0.0
        worth[position] = _with_priors(
            query,
            read,
            words=own,
            phrase=PHRASE_SHARE * read.phrase,
            neighbors=neighbors,
            session=SESSION_SHARE * sittings.get(position, 0.0),
            about=_about(read, names),
            asked=is_asked_of(read.match.source, asked),
        )
    return worth


def _read(reader: Reader, match: Match) -> _Read:
    roles = reader.spoken_by(match.role)
    if match.score <= 0:
        return _Read(match, reader.unread, 0.0, roles)
    scores, phrase = reader.read(match.content)
    # What the engine found and the reading did not: pairs of characters, or the end of a long text.
    rest = match.grams
    if len(match.content) >= READ_CHARS_MAX:
        rest += reader.beyond(scores, match.score - match.grams)
    elif not any(scores) and not roles:
        rest = match.score
    return _Read(match, (*scores, rest), phrase, roles)


def _names(reader: Reader, reads: Mapping[int, _Read]) -> set[int]:
    """The terms that are somebody's name among those who speak here."""
    roles = {read.match.role for read in reads.values() if read.roles}
    return {at for role in roles for at, score in enumerate(reader.role(role)) if score}


def _own(read: _Read, names: set[int]) -> tuple[float, ...]:
    """Return its score for each term; names in another speaker's words count less."""
    if not names or read.match.role.lower() in NOBODY:
        return read.own
    return tuple(
        score * SPOKEN_TO if at in names else score for at, score in enumerate(read.own)
    )


def _about(read: _Read, names: set[int]) -> bool:
    """Whether somebody who is asked about speaks here, or a record of nobody's names them."""
    if read.roles:
        return True
    return read.match.role.lower() in NOBODY and any(read.own[at] for at in names)


def _lent(
    found: SearchCandidates,
    reads: Mapping[int, _Read],
    terms: Mapping[int, tuple[float, ...]],
) -> dict[int, list[float]]:
    """For each candidate the best its neighbors say of each term, at their share."""
    lent: dict[int, list[float]] = {}
    for position, read in reads.items():
        if read.match.score <= 0:
            continue
        own = terms[position]
        beside = found.beside.get(position)
        pairs = beside if beside is not None else _adjoining(position, reads)
        for other, distance in pairs:
            near = reads.get(other)
            if near is None or not one_talk(read.match, near.match):
                continue
            share = NEIGHBOR_SHARES[distance - 1]
            shared = [score * share for score in own]
            known = lent.get(other)
            lent[other] = list(map(max, known, shared)) if known else shared
    return lent


def _adjoining(position: int, reads: Mapping[int, _Read]) -> list[tuple[int, int]]:
    """The candidates that came in just before or after, and how far off."""
    return [(position + at, far) for at, far in _NEXT_TO if position + at in reads]


def one_talk(one: Match, other: Match) -> bool:
    """Whether two memories that stand side by side belong together."""
    return (
        one.session == other.session != DEFAULT_SESSION
        and one.source == other.source
        and abs(one.created_at - other.created_at) <= BESIDE_WITHIN
    )


def _sittings(
    reads: Mapping[int, _Read],
    terms: Mapping[int, tuple[float, ...]],
    words: Mapping[int, float],
) -> dict[int, float]:
    """For each candidate, the sum of the best its sitting says of each term; by itself, of its own.

    `words` are the sums of `terms`.
    """
    by_session: dict[tuple[str, str | None], list[Match]] = {}
    for read in reads.values():
        by_session.setdefault((read.match.session, read.match.source), []).append(
            read.match
        )
    sums = dict(words)
    for matches in by_session.values():
        if len(matches) == 1:
            continue
        matches.sort(key=_CREATED_AT)
        start = 0
        for at in range(1, len(matches) + 1):
            if (
                at < len(matches)
                and matches[at].created_at - matches[at - 1].created_at <= SITTING_PAUSE
            ):
                continue
            sitting = [match.position for match in matches[start:at]]
            if len(sitting) > 1:
                best = map(max, *(terms[position] for position in sitting))
                sums.update(dict.fromkeys(sitting, sum(best)))
            start = at
    return sums


_CREATED_AT = attrgetter("created_at")


def _with_priors(
    query: Query,
    read: _Read,
    *,
    words: float,
    phrase: float,
    neighbors: float,
    session: float,
    about: bool,
    asked: bool,
) -> ScoreBreakdown:
    """The parts that scale with how well it matches, so that they lift nothing unrelated."""
    match = read.match
    score = words + phrase + neighbors + session
    asks = (
        -ASKING_SHARE * score if match.content.rstrip().endswith(("?", "？")) else 0.0
    )
    score += asks
    speaker = SPEAKER_SHARE * score * about + ROLE_WEIGHT * read.roles
    score += speaker
    source = SOURCE_SHARE * asked * score
    score += source
    time = _time_share(query, match) * score if query.spans else 0.0
    score += time
    recency = RECENCY_SHARE * _recency(query, match) * score
    importance = IMPORTANCE_SHARE * (match.importance - 0.5) * score
    return ScoreBreakdown(
        words,
        phrase,
        neighbors,
        session,
        asks,
        speaker,
        source,
        time,
        recency,
        importance,
    )


def _time_share(query: Query, match: Match) -> float:
    best = 0.0
    for span in query.spans:
        around = span.widened()
        if span.since <= match.created_at < span.until:
            return TIME_SHARE
        if around.since <= match.created_at < around.until:
            best = TIME_NEAR_SHARE
    return best


def _recency(query: Query, match: Match) -> float:
    if query.now is None:
        return 0.0
    age_days = max(0, (query.now - match.created_at).days)
    return 1 / (1 + age_days / RECENCY_HALF_DAYS)


# -------------------------------------------------------------------- places


def _episode_place(
    episode: int,
    own: float,
    lines: list[tuple[int, ScoreBreakdown]],
    owed: AbstractSet[int],
) -> RankedResult:
    """An episode with its best lines, and with all that are owed a place by themselves.

    What was shown before a sleep is so shown after it, however much of it one episode holds.
    """
    ranked = sorted(
        ((sum(parts), position, parts) for position, parts in lines), reverse=True
    )
    best = [line for at, line in enumerate(ranked) if at < LINES_MAX or line[1] in owed]
    if not best:
        parts = ScoreBreakdown(summary=SUMMARY_ALONE * own)
        return RankedResult(sum(parts), episode=episode, parts=parts)
    further = sum(score for score, _, _ in best[1:LINES_MAX])
    parts = best[0][2]._replace(
        summary=SUMMARY_SHARE * own, further=FURTHER_LINES * further
    )
    shown = tuple((position, score) for score, position, _ in best)
    return RankedResult(sum(parts), episode=episode, lines=shown, parts=parts)
