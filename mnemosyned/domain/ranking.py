"""What each candidate is worth to a question, part by part: pure ranking, no I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import NamedTuple

from mnemosyned.domain.memory import DEFAULT_SESSION, Tier
from mnemosyned.domain.nearness import with_meaning
from mnemosyned.domain.reading import READ_CHARS_MAX, Reader
from mnemosyned.domain.recall import LINES_MAX, Found, Match, Parts, Place, Query

NEIGHBOUR_SHARES = (0.6, 0.4)
"""What a term is worth that stands one and two places beside: an answer often follows the line
that names its subject, and need not repeat a word of it."""
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
ROLE_WEIGHT = 0.5
PHRASE_SHARE = 0.25
ASKING_SHARE = 0.1
"""What a line loses that asks itself: it is seldom the answer."""
TIME_SHARE = 0.5
TIME_NEAR_SHARE = 0.25
RECENCY_SHARE = 0.05
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
FOLDED_PER_PLACE = 8
"""For each place of the answer, so many of the best are compared with what is shown."""
ALIKE_MAX = 3
"""So many memories that differ in figures alone are shown before the rest is folded."""
_FIGURES = re.compile(r"\d+")


class _Read(NamedTuple):
    """A candidate and what its own text says of each term; the last place is the rest's."""

    match: Match
    own: tuple[float, ...]
    phrase: float
    roles: float


def rank(query: Query, found: Found) -> list[Place]:
    """The best places, best first: one for each episode, whatever matched in it."""
    worth = with_meaning(_worths(query, found), found.nearness)
    by_position = {match.position: match for match in found.memories}
    grouped = query.tier in (None, Tier.EPISODIC)
    places: list[Place] = []
    lines: dict[int, list[tuple[int, Parts]]] = {}
    for position, parts in worth.items():
        episode = by_position[position].episode
        if episode is not None and grouped:
            lines.setdefault(episode, []).append((position, parts))
        else:
            places.append(Place(sum(parts), memory=position, parts=parts))
    matched = found.episodes if query.tier is Tier.EPISODIC else {**found.episodes, **lines}
    places.extend(
        _episode_place(episode, found.episodes.get(episode, 0.0), lines.get(episode, []))
        for episode in matched
    )
    places.sort(key=lambda place: (-place.score, -_moment(place, by_position), -_latest(place)))
    return _folded(places, by_position, limit=query.limit)


def _moment(place: Place, matches: Mapping[int, Match]) -> float:
    """When what is shown happened, as the later comes first among equals."""
    positions = _positions(place)
    return max((matches[position].created_at.timestamp() for position in positions), default=0.0)


def _latest(place: Place) -> int:
    return place.memory or place.episode or 0


def _positions(place: Place) -> list[int]:
    alone = [] if place.memory is None else [place.memory]
    return [*alone, *(position for position, _ in place.lines)]


# --------------------------------------------------------------------- worth


def _worths(query: Query, found: Found) -> dict[int, Parts]:
    """What each candidate is worth; one that neither matches nor stands beside a match is not."""
    reader = Reader(query.terms, found.corpus)
    reads = {match.position: _read(reader, match) for match in found.memories}
    names = _names(reader, reads)
    terms = {position: _own(read, names) for position, read in reads.items()}
    lent = _lent(found, reads, terms)
    sittings = _sittings(reads, terms)
    worth: dict[int, Parts] = {}
    for position, read in reads.items():
        own = terms[position]
        gained = lent.get(position)
        if read.match.score <= 0 and gained is None:
            continue
        best = tuple(map(max, own, gained)) if gained else own
        base = Parts(
            words=sum(own),
            neighbours=sum(best) - sum(own),
            session=SESSION_SHARE * sittings.get(position, 0.0),
            phrase=PHRASE_SHARE * read.phrase,
        )
        worth[position] = _with_priors(query, read, base, about=_about(read, names))
    return worth


def _read(reader: Reader, match: Match) -> _Read:
    if match.score <= 0:
        return _Read(match, (0.0,) * (len(reader.words) + 1), 0.0, sum(reader.role(match.role)))
    scores, phrase = reader.read(match.content)
    role = reader.role(match.role)
    # What the engine found and the reading did not: pairs of characters, or the end of a long text.
    rest = match.grams
    if not any(scores) and not any(role):
        rest = match.score
    elif len(match.content) >= READ_CHARS_MAX:
        rest = max(rest, match.score - sum(scores))
    return _Read(match, (*scores, rest), phrase, sum(role))


def _names(reader: Reader, reads: Mapping[int, _Read]) -> set[int]:
    """The terms that are somebody's name among those who speak here."""
    roles = {read.match.role for read in reads.values() if read.roles}
    return {at for role in roles for at, score in enumerate(reader.role(role)) if score}


def _own(read: _Read, names: set[int]) -> tuple[float, ...]:
    """What it says of each term, a name in the words of somebody else counting less."""
    if not names or read.match.role.lower() in NOBODY:
        return read.own
    return tuple(score * SPOKEN_TO if at in names else score for at, score in enumerate(read.own))


def _about(read: _Read, names: set[int]) -> bool:
    """Whether somebody who is asked about speaks here, or a record of nobody's names them."""
    if read.roles:
        return True
    return read.match.role.lower() in NOBODY and any(read.own[at] for at in names)


def _lent(
    found: Found, reads: Mapping[int, _Read], terms: Mapping[int, tuple[float, ...]]
) -> dict[int, list[float]]:
    """For each candidate the best its neighbours say of each term, at their share."""
    lent: dict[int, list[float]] = {}
    for position, read in reads.items():
        if read.match.score <= 0:
            continue
        own = terms[position]
        beside = found.beside.get(position)
        pairs = beside if beside is not None else _next_to(position)
        for other, distance in pairs:
            near = reads.get(other)
            if near is None or not one_talk(read.match, near.match):
                continue
            share = NEIGHBOUR_SHARES[distance - 1]
            gained = lent.setdefault(other, [0.0] * len(own))
            for at, score in enumerate(own):
                gained[at] = max(gained[at], score * share)
    return lent


def _next_to(position: int) -> Iterator[tuple[int, int]]:
    for distance in range(1, len(NEIGHBOUR_SHARES) + 1):
        yield position - distance, distance
        yield position + distance, distance


def one_talk(one: Match, other: Match) -> bool:
    """Whether two memories that stand side by side belong together."""
    return (
        one.session == other.session != DEFAULT_SESSION
        and one.source == other.source
        and abs(one.created_at - other.created_at) <= BESIDE_WITHIN
    )


def _sittings(
    reads: Mapping[int, _Read], terms: Mapping[int, tuple[float, ...]]
) -> dict[int, float]:
    """For each candidate, the sum of the best its sitting says of each term."""
    by_session: dict[tuple[str, str | None], list[Match]] = {}
    for read in reads.values():
        by_session.setdefault((read.match.session, read.match.source), []).append(read.match)
    sums: dict[int, float] = {}
    for matches in by_session.values():
        matches.sort(key=lambda match: match.created_at)
        start = 0
        for at in range(1, len(matches) + 1):
            if (
                at < len(matches)
                and matches[at].created_at - matches[at - 1].created_at <= SITTING_PAUSE
            ):
                continue
            sitting = [match.position for match in matches[start:at]]
            best = sum(map(max, zip(*(terms[position] for position in sitting), strict=True)))
            sums.update(dict.fromkeys(sitting, best))
            start = at
    return sums


def _with_priors(query: Query, read: _Read, base: Parts, *, about: bool) -> Parts:
    """The parts that scale with how well it matches, so that they lift nothing unrelated."""
    match = read.match
    score = sum(base)
    asks = -ASKING_SHARE * score if match.content.rstrip().endswith(("?", "？")) else 0.0
    score += asks
    speaker = SPEAKER_SHARE * score * about + ROLE_WEIGHT * read.roles
    score += speaker
    time = _time_share(query, match) * score
    score += time
    recency = RECENCY_SHARE * _recency(query, match) * score
    importance = IMPORTANCE_SHARE * (match.importance - 0.5) * score
    return base._replace(
        asks=asks, speaker=speaker, time=time, recency=recency, importance=importance
    )


def _time_share(query: Query, match: Match) -> float:
    best = 0.0
    for span in query.spans:
        around = span.around()
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


def _episode_place(episode: int, own: float, lines: list[tuple[int, Parts]]) -> Place:
    ranked = sorted(((sum(parts), position, parts) for position, parts in lines), reverse=True)
    best = ranked[:LINES_MAX]
    if not best:
        parts = Parts(summary=SUMMARY_ALONE * own)
        return Place(sum(parts), episode=episode, parts=parts)
    further = sum(score for score, _, _ in best[1:])
    parts = best[0][2]._replace(summary=SUMMARY_SHARE * own, further=FURTHER_LINES * further)
    shown = tuple((position, score) for score, position, _ in best)
    return Place(sum(parts), episode=episode, lines=shown, parts=parts)


def _folded(places: Sequence[Place], matches: Mapping[int, Match], *, limit: int) -> list[Place]:
    """The first places that say something new; what repeats one is counted on it.

    What differs in figures alone steps back for others, and is shown where there are none.
    """
    shown: list[Place] = []
    spare: list[tuple[Place, int]] = []
    repeats: dict[int, list[Place]] = {}
    first: dict[str, int] = {}
    alike: dict[str, list[int]] = {}
    for at, place in enumerate(places):
        if len(shown) == limit and at >= FOLDED_PER_PLACE * limit:
            break
        texts = list(_texts(place, matches))
        kinds = [_FIGURES.sub("0", text) for text in texts]
        if texts and all(text in first for text in texts):
            repeats.setdefault(first[texts[0]], []).append(place)
        elif texts and all(len(alike.get(kind, ())) >= ALIKE_MAX for kind in kinds):
            spare.append((place, alike[kinds[0]][0]))
        elif len(shown) < limit:
            for text, kind in zip(texts, kinds, strict=True):
                first.setdefault(text, len(shown))
                alike.setdefault(kind, []).append(len(shown))
            shown.append(place)
    room = limit - len(shown)
    for place, known in spare[room:]:
        repeats.setdefault(known, []).append(place)
    answer = [_repeated(place, repeats.get(at, ())) for at, place in enumerate(shown)]
    answer += [place for place, _ in spare[:room]]
    return sorted(answer, key=lambda place: -place.score)


def _repeated(place: Place, repeats: Sequence[Place]) -> Place:
    """The same place with the best of its repeats under it, as far as there is room."""
    if not repeats:
        return place
    lines = list(place.lines)
    for repeat in repeats:
        lines += [(repeat.memory, repeat.score)] if repeat.memory is not None else repeat.lines
    return replace(place, lines=tuple(lines[:LINES_MAX]), duplicates=len(repeats))


def _texts(place: Place, matches: Mapping[int, Match]) -> Iterator[str]:
    """Who said what: what two places that say the same have in common."""
    for position in _positions(place):
        match = matches[position]
        if match.content:
            yield f"{match.source}\n{match.role}\n{match.content.casefold().strip()}"
