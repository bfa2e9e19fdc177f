"""What a question is and what a memory is worth to it: pure ranking, no I/O."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from mnemosyned.domain.memory import Episode, Memory, Tier
from mnemosyned.domain.terms import Terms

LINES_MAX = 3
SNIPPET_CHARS = 200

FURTHER_LINES = 0.15
"""What the second and third matching original of an episode add to its best one."""
SUMMARY_SHARE = 0.25
"""What a match in the summary's own words adds to its best original."""
SUMMARY_ALONE = 0.5
"""What a match in the summary is worth where no original matches."""
NEIGHBOUR_SHARES = (0.4, 0.15)
"""What a match gains from the matches one and two places beside it in its session: an answer
often stands next to the line that names its subject."""
IMPORTANCE_SHARE = 0.1
"""Importance moves a score by at most this much of itself: a prior, never a match."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A question and where to look for its answer."""

    terms: Terms
    limit: int
    sessions: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    tier: Tier | None = None
    since: datetime | None = None
    until: datetime | None = None
    valid_at: datetime | None = None
    """Leave out what has expired by then."""
    superseded: bool = False
    """Find also what was superseded."""


class Match(NamedTuple):
    """A memory whose own words match: what ranking needs of it, without the words."""

    position: int
    """Where it stands in the order in which memories came in; the store knows it by this."""
    score: float
    """The engine's, higher is better."""
    session: str
    importance: float = 0.5
    episode: int | None = None
    """The episode it went into, as the store knows it."""


@dataclass(frozen=True, slots=True)
class Found:
    """The candidates for a question."""

    memories: Sequence[Match] = ()
    episodes: Mapping[int, float] = field(default_factory=dict)
    """The episodes whose own text matches, with the engine's scores."""
    above: Mapping[int, int] = field(default_factory=dict)
    """By episode, day or week: the day, week or month that it was folded into."""


@dataclass(frozen=True, slots=True)
class Place:
    """One place in the answer: a memory, or an episode with the originals that matched."""

    score: float
    memory: int | None = None
    episode: int | None = None
    lines: tuple[tuple[int, float], ...] = ()
    """The originals that matched and their scores, best first."""


@dataclass(frozen=True, slots=True)
class Shown:
    """The memories and episodes that places speak of, as far as they still exist."""

    memories: Mapping[int, Memory]
    episodes: Mapping[int, Episode]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """An original that matched, shown under its episode."""

    id: str
    created_at: datetime
    role: str
    content: str
    score: float
    superseded_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One place in the answer: a memory, or an episode with the originals that matched."""

    id: str
    tier: Tier
    score: float
    """Higher is better; comparable within one answer only."""
    snippet: str
    content: str
    created_at: datetime
    session: str
    source: str | None
    role: str = ""
    summary_of: tuple[str, ...] = ()
    """Provenance: the ids of all originals of an episode, oldest first."""
    lines: tuple[Line, ...] = ()
    """The originals that matched, best first, at most three."""
    superseded_at: datetime | None = None
    """When a newer memory took its place; only where that was asked for."""
    history: tuple[Line, ...] = ()
    """What it, or a line of it, took the place of, the newest first; only where asked for."""


def shortlist(scores: Mapping[int, float], *, places: int) -> set[int]:
    """The positions that can still take one of so many places, and the neighbours that lift them.

    Exact, and known before anything of a memory is read: a place is worth at most its score with
    all its neighbours' shares and full importance, and at least its score with none.
    """
    if len(scores) <= places:
        return set(scores)
    swing = IMPORTANCE_SHARE / 2
    bar = heapq.nlargest(places, scores.values())[-1] * (1 - swing) / (1 + swing)
    near, far = NEIGHBOUR_SHARES
    score_at = scores.get
    kept = [
        position
        for position, score in scores.items()
        if score
        + near * (score_at(position - 1, 0.0) + score_at(position + 1, 0.0))
        + far * (score_at(position - 2, 0.0) + score_at(position + 2, 0.0))
        >= bar
    ]
    reach = len(NEIGHBOUR_SHARES)
    beside = {place for at in kept for place in range(at - reach, at + reach + 1)}
    return beside & scores.keys()


def rank(query: Query, found: Found) -> list[Place]:
    """The best places, best first: one for each episode, whatever matched in it."""
    alone: list[tuple[float, int]] = []
    lines: dict[int, list[tuple[int, float]]] = {}
    grouped = query.tier in (None, Tier.EPISODIC)
    for match, worth in _worths(found.memories):
        if match.episode is not None and grouped:
            lines.setdefault(match.episode, []).append((match.position, worth))
        else:
            alone.append((-worth, match.position))
    places = [
        Place(-worth, memory=position) for worth, position in heapq.nsmallest(query.limit, alone)
    ]
    matched = found.episodes if query.tier is Tier.EPISODIC else {**found.episodes, **lines}
    places.extend(
        _episode_place(episode, found.episodes.get(episode, 0.0), lines.get(episode, []))
        for episode in matched
    )
    places.sort(key=lambda place: (-place.score, place.memory or 0, place.episode or 0))
    return one_of_each_line(places, found.above)[: query.limit]


def one_of_each_line(places: Sequence[Place], above: Mapping[int, int]) -> list[Place]:
    """One place for what an episode, its day, week and month all tell: the best that answers.

    A summary above gives way to one below it with exact words, whatever their scores; else the
    better of the two stays. `places` stand best first.
    """
    if not above:
        return list(places)
    told = {up for place in places if place.lines for up in _line(place, above)}
    kept: list[Place] = []
    telling: set[int | None] = set()
    for place in places:
        line = _line(place, above)
        if place.lines or (place.episode not in told and telling.isdisjoint(line)):
            kept.append(place)
            told.update(line)
            telling.add(place.episode)
    return kept


def _line(place: Place, above: Mapping[int, int]) -> list[int]:
    """What the place's episode was folded into, at every level."""
    line: list[int] = []
    at = above.get(place.episode) if place.episode is not None else None
    while at is not None and at not in line:
        line.append(at)
        at = above.get(at)
    return line


def _worths(matches: Sequence[Match]) -> Iterator[tuple[Match, float]]:
    """Each match with its score, its neighbours' share of theirs, and its importance."""
    by_position = {match.position: match for match in matches}
    for match in matches:
        score = match.score
        for distance, share in enumerate(NEIGHBOUR_SHARES, 1):
            for position in (match.position - distance, match.position + distance):
                other = by_position.get(position)
                if other and other.session == match.session:
                    score += share * other.score
        yield match, score * (1 + IMPORTANCE_SHARE * (match.importance - 0.5))


def _episode_place(episode: int, own: float, lines: list[tuple[int, float]]) -> Place:
    best = tuple(sorted(lines, key=lambda line: -line[1])[:LINES_MAX])
    if not best:
        return Place(SUMMARY_ALONE * own, episode=episode)
    further = sum(score for _, score in best[1:])
    score = best[0][1] + FURTHER_LINES * further + SUMMARY_SHARE * own
    return Place(score, episode=episode, lines=best)


def hits(query: Query, places: Sequence[Place], shown: Shown) -> list[Hit]:
    """What is answered; a place whose memory was forgotten meanwhile is left out."""
    answer: list[Hit] = []
    for place in places:
        memory = shown.memories.get(place.memory or 0)
        episode = shown.episodes.get(place.episode or 0)
        if memory:
            answer.append(_memory_hit(memory, place.score, query.terms))
        elif episode:
            answer.append(_episode_hit(episode, place, shown.memories, query.terms))
    return answer


def _memory_hit(memory: Memory, score: float, terms: Terms) -> Hit:
    return Hit(
        id=memory.id,
        tier=memory.tier,
        score=score,
        snippet=snippet(memory.content, terms),
        content=memory.content,
        created_at=memory.created_at,
        session=memory.session,
        source=memory.source,
        role=memory.role,
        superseded_at=memory.superseded_at,
    )


def _episode_hit(
    episode: Episode, place: Place, memories: Mapping[int, Memory], terms: Terms
) -> Hit:
    lines = tuple(
        Line(
            id=memory.id,
            created_at=memory.created_at,
            role=memory.role,
            content=memory.content,
            score=score,
            superseded_at=memory.superseded_at,
        )
        for position, score in place.lines
        if (memory := memories.get(position))
    )
    return Hit(
        id=episode.id,
        tier=Tier.EPISODIC,
        score=place.score,
        snippet=snippet(lines[0].content if lines else episode.content, terms),
        content=episode.content,
        created_at=episode.covers_until,
        session=episode.session,
        source=episode.source,
        summary_of=episode.summary_of,
        lines=lines,
    )


@lru_cache(maxsize=64)
def _marker(terms: Terms) -> re.Pattern[str] | None:
    """A pattern that finds the terms in a text, endings aside."""
    stems = [r"\b" + re.escape(_stem(word)) for word in terms.words]
    stems.extend(re.escape(gram) for gram in terms.grams)
    return re.compile("|".join(stems), re.IGNORECASE) if stems else None


def _stem(word: str) -> str:
    """Enough of a word to find its other forms by their beginning; codes stay whole."""
    if not word.isalpha() or len(word) <= 4:
        return word
    return re.sub(r"(ing|edly|ed|ies|es|s|e|y)$", "", word)


def snippet(content: str, terms: Terms, *, width: int = SNIPPET_CHARS) -> str:
    """The stretch of a text with most distinct matches in it, cut at word boundaries."""
    if len(content) <= width:
        return content
    matches = []
    mark = _marker(terms)
    for match in mark.finditer(content) if mark else ():
        matches.append((match.start(), match.group().casefold()))
        if len(matches) >= 200:
            break
    begin = 0
    best = -1
    for start, _ in matches:
        seen = len({text for at, text in matches if start <= at < start + width * 3 // 4})
        if seen > best:
            begin, best = max(0, start - width // 5), seen
    begin = min(begin, len(content) - width)
    end = begin + width
    if begin > 0:
        space = content.find(" ", begin, begin + 20)
        begin = space + 1 if space >= 0 else begin
    if end < len(content):
        space = content.rfind(" ", end - 20, end)
        end = space if space >= 0 else end
    return ("…" if begin else "") + content[begin:end] + ("…" if end < len(content) else "")
