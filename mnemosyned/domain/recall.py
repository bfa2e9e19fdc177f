"""What a question is and what a memory is worth to it: pure ranking, no I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

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


@dataclass(frozen=True, slots=True)
class Match:
    """A memory whose own words match."""

    memory: Memory
    score: float
    """The engine's, higher is better."""
    position: int
    """Where it stands in the order in which memories came in."""


@dataclass(frozen=True, slots=True)
class Found:
    """The candidates for a question."""

    memories: Sequence[Match] = ()
    episodes: Mapping[str, Episode] = field(default_factory=dict)
    """Every episode that matched or that holds a memory that matched, by id."""
    episode_scores: Mapping[str, float] = field(default_factory=dict)
    """Only those whose own text matched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """An original that matched, shown under its episode."""

    id: str
    created_at: datetime
    role: str
    content: str
    score: float


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


def rank(query: Query, found: Found) -> list[Hit]:
    """The best hits, best first: one place for each episode, whatever matched in it."""
    mark = _marker(query.terms)
    lines: dict[str, list[tuple[Memory, float]]] = {}
    hits: list[Hit] = []
    for memory, worth in _worths(found.memories):
        if memory.episode and memory.episode in found.episodes:
            lines.setdefault(memory.episode, []).append((memory, worth))
        else:
            hits.append(_memory_hit(memory, worth, mark))
    for id, episode in found.episodes.items():
        own = found.episode_scores.get(id)
        if own is not None or (id in lines and query.tier is not Tier.EPISODIC):
            hits.append(_episode_hit(episode, own or 0.0, lines.get(id, []), mark))
    hits.sort(key=lambda hit: (-hit.score, hit.created_at, hit.id))
    return hits[: query.limit]


def _worths(matches: Sequence[Match]) -> Iterator[tuple[Memory, float]]:
    """Each memory with its score, its neighbours' share of theirs, and its importance."""
    by_position = {match.position: match for match in matches}
    for match in matches:
        memory, score = match.memory, match.score
        for distance, share in enumerate(NEIGHBOUR_SHARES, 1):
            for position in (match.position - distance, match.position + distance):
                other = by_position.get(position)
                if other and _together(memory, other.memory):
                    score += share * other.score
        yield memory, score * (1 + IMPORTANCE_SHARE * (memory.importance - 0.5))


def _together(one: Memory, other: Memory) -> bool:
    return one.session == other.session and one.source == other.source


def _memory_hit(memory: Memory, score: float, mark: re.Pattern[str] | None) -> Hit:
    return Hit(
        id=memory.id,
        tier=memory.tier,
        score=score,
        snippet=snippet(memory.content, mark),
        content=memory.content,
        created_at=memory.created_at,
        session=memory.session,
        source=memory.source,
        role=memory.role,
    )


def _episode_hit(
    episode: Episode,
    own: float,
    originals: list[tuple[Memory, float]],
    mark: re.Pattern[str] | None,
) -> Hit:
    best = sorted(originals, key=lambda match: -match[1])[:LINES_MAX]
    if best:
        further = sum(score for _, score in best[1:])
        score = best[0][1] + FURTHER_LINES * further + SUMMARY_SHARE * own
    else:
        score = SUMMARY_ALONE * own
    return Hit(
        id=episode.id,
        tier=Tier.EPISODIC,
        score=score,
        snippet=snippet(best[0][0].content if best else episode.content, mark),
        content=episode.content,
        created_at=episode.covers_until,
        session=episode.session,
        source=episode.source,
        summary_of=episode.summary_of,
        lines=tuple(
            Line(
                id=memory.id,
                created_at=memory.created_at,
                role=memory.role,
                content=memory.content,
                score=score,
            )
            for memory, score in best
        ),
    )


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


def snippet(content: str, mark: re.Pattern[str] | None, *, width: int = SNIPPET_CHARS) -> str:
    """The stretch of a text with most distinct matches in it, cut at word boundaries."""
    if len(content) <= width:
        return content
    matches = []
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
