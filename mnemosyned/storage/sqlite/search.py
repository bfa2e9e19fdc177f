"""The two full-text paths and their filters: candidates for a question, with bm25 scores."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from mnemosyned.domain.memory import Detail, Episode, Memory, Tier
from mnemosyned.domain.pyramid import distinct
from mnemosyned.domain.recall import LINES_MAX, Found, Match, Place, Query, Shown, shortlist
from mnemosyned.storage.sqlite.levels import BELOW, ancestors, chunks
from mnemosyned.storage.sqlite.rows import (
    ARCHIVE_FIELDS,
    EPISODE_COLUMNS,
    MEMORY_FIELDS,
    detail_from,
    episode_from,
    instant_text,
    memory_from,
)

CANDIDATES_PER_HIT = 20
CANDIDATES_MIN = 200
"""More than are shown: what stands beside a match raises it (recall@10 .642 with 60, .662)."""
LINES_SPARE = 2 * LINES_MAX
"""For each place so many matches are looked at, as an episode shows several of its own."""
ROLE_WEIGHT = 1.0
"""A name counts the same whether it is spoken of or speaks."""
GRAM_WEIGHT = 0.6
"""What a character pair is worth beside a word."""


def match_any(terms: Iterable[str]) -> str:
    """An FTS5 expression for any of the terms; none of them is read as syntax."""
    return " OR ".join('"' + term.replace('"', '""') + '"' for term in terms)


def search(connection: sqlite3.Connection, query: Query) -> Found:
    """Candidates from the tiers asked for, within one snapshot."""
    limit = max(CANDIDATES_MIN, CANDIDATES_PER_HIT * query.limit)
    slept = _has_slept(connection)
    scores = _memory_scores(connection, query, limit)
    memories = _matches(connection, query, scores, slept=slept)
    if not slept or query.tier in (Tier.WORKING, Tier.ARCHIVE):
        return Found(memories)
    episodes = _episode_scores(connection, query, limit)
    return Found(memories, episodes, ancestors(connection, _met(memories, episodes)))


def _met(memories: Iterable[Match], episodes: Iterable[int]) -> set[int]:
    """Every episode that can take a place, whatever matched in it."""
    return {match.episode for match in memories if match.episode is not None}.union(episodes)


def show(connection: sqlite3.Connection, places: Sequence[Place]) -> Shown:
    """The memories and episodes of these places, whole."""
    positions = [place.memory for place in places if place.memory is not None]
    positions += [position for place in places for position, _ in place.lines]
    memories: dict[int, Memory] = {}
    for chunk in chunks(positions):
        marks = ", ".join("?" * len(chunk))
        for seq, *row in connection.execute(
            f"SELECT seq, {MEMORY_FIELDS} FROM working_memory WHERE seq IN ({marks})", chunk
        ):
            memories[seq] = memory_from(row, tier=Tier.WORKING)
        archived = [seq for seq in chunk if seq not in memories]
        marks = ", ".join("?" * len(archived))
        for seq, episode, *row in connection.execute(
            f"SELECT a.seq, e.id, {ARCHIVE_FIELDS} FROM archive AS a "
            f"JOIN episodic_memory AS e ON e.seq = a.episode_seq WHERE a.seq IN ({marks})",
            archived,
        ):
            memories[seq] = memory_from(row, tier=Tier.ARCHIVE, episode=episode)
    episodes: dict[int, Episode] = {}
    for place in places:
        if place.episode is not None and (found := episode_at(connection, "seq", place.episode)):
            episodes[place.episode] = found
    return Shown(memories, episodes)


def episode_at(
    connection: sqlite3.Connection,
    key: Literal["id", "seq"],
    value: str | int,
    *,
    details: bool = False,
) -> Episode | None:
    """One episode with its provenance, and on request the exact values of its originals."""
    row = connection.execute(
        f"SELECT seq, {EPISODE_COLUMNS} FROM episodic_memory WHERE {key} = ?", (value,)
    ).fetchone()
    if row is None:
        return None
    episode = episode_from(row[1:])
    made_of = connection.execute(
        "SELECT id FROM episodic_memory WHERE parent_id = ? ORDER BY covers_from, seq"
        if episode.level
        else "SELECT id FROM archive WHERE episode_seq = ? ORDER BY created_at, seq",
        (episode.id if episode.level else row[0],),
    )
    return replace(
        episode,
        summary_of=tuple(id for (id,) in made_of),
        details=_details(connection, episode) if details else (),
    )


def _details(connection: sqlite3.Connection, episode: Episode) -> tuple[Detail, ...]:
    """The exact values of the originals under a summary; above an episode each once."""
    rows = connection.execute(
        f"{BELOW} SELECT k.name, d.value, d.sensitive, a.id, EXISTS ("
        "SELECT 1 FROM memory_state AS s WHERE s.memory_seq = a.seq "
        "AND s.superseded_at IS NOT NULL) FROM below "
        "JOIN archive AS a ON a.episode_seq = below.seq "
        "JOIN detail AS d ON d.memory_seq = a.seq JOIN detail_kind AS k ON k.number = d.kind "
        "ORDER BY a.created_at, a.seq, k.number, d.value",
        (episode.id,),
    )
    details = tuple(detail_from(row) for row in rows)
    return distinct(details) if episode.level else details


class _Filter(NamedTuple):
    """What narrows a search: joins for its columns, conditions and their values."""

    joins: str
    where: str
    values: Sequence[Any]


def _memory_scores(connection: sqlite3.Connection, query: Query, limit: int) -> dict[int, float]:
    narrow = _memory_filter(query)
    words, every = query.terms.words, (*query.terms.words, *query.terms.grams)
    weights = f", 1.0, {ROLE_WEIGHT}"
    return _added(
        _scores(connection, "memory_fts", words, narrow, weights=weights, limit=limit),
        # Parts of names stand in the second index.
        _scores(connection, "memory_gram_fts", every, narrow, limit=limit),
    )


def _episode_scores(connection: sqlite3.Connection, query: Query, limit: int) -> dict[int, float]:
    narrow = _episode_filter(query)
    words, every = query.terms.words, (*query.terms.words, *query.terms.grams)
    return _added(
        _scores(connection, "episode_fts", words, narrow, limit=limit),
        _scores(connection, "episode_gram_fts", every, narrow, limit=limit),
    )


def _scores(
    connection: sqlite3.Connection,
    table: str,
    terms: Sequence[str],
    narrow: _Filter,
    *,
    weights: str = "",
    limit: int,
) -> dict[int, float]:
    if not terms:
        return {}
    rows = connection.execute(
        f"SELECT f.rowid, -bm25({table}{weights}) AS score FROM {table} AS f {narrow.joins} "
        f"WHERE {table} MATCH ? {narrow.where} ORDER BY score DESC LIMIT ?",
        (match_any(terms), *narrow.values, limit),
    )
    return dict(rows.fetchall())


def _added(words: dict[int, float], grams: Mapping[int, float]) -> dict[int, float]:
    for seq, score in grams.items():
        words[seq] = words.get(seq, 0.0) + GRAM_WEIGHT * score
    return words


def _memory_filter(query: Query) -> _Filter:
    clauses: list[str] = []
    values: list[Any] = []
    if query.tier is Tier.WORKING:
        clauses.append("w.seq IS NOT NULL")
    elif query.tier is not None:
        clauses.append("a.seq IS NOT NULL")
    for column, names in (("session_id", query.sessions), ("source", query.sources)):
        if names:
            marks = ", ".join("?" * len(names))
            clauses.append(f"ifnull(w.{column}, a.{column}) IN ({marks})")
            values.extend(names)
    if query.since:
        clauses.append("ifnull(w.created_at, a.created_at) >= ?")
        values.append(instant_text(query.since))
    if query.until:
        clauses.append("ifnull(w.created_at, a.created_at) < ?")
        values.append(instant_text(query.until))
    joins = "LEFT JOIN working_memory AS w ON w.seq = f.rowid "
    joins += "LEFT JOIN archive AS a ON a.seq = f.rowid"
    where = "".join(f" AND {clause}" for clause in clauses)
    in_force, moment = _in_force(query)
    return _Filter(joins if clauses else "", where + in_force, [*values, *moment])


def _in_force(query: Query) -> tuple[str, list[str]]:
    """Leaves out what has expired and, unless asked for, what was superseded."""
    past = [] if query.superseded else ["s.superseded_at IS NOT NULL"]
    moment = [instant_text(query.valid_at)] if query.valid_at else []
    past += ["s.valid_until <= ?"] if moment else []
    if not past:
        return "", []
    gone = f"s.memory_seq = f.rowid AND ({' OR '.join(past)})"
    return f" AND NOT EXISTS (SELECT 1 FROM memory_state AS s WHERE {gone})", moment


def _episode_filter(query: Query) -> _Filter:
    clauses: list[str] = []
    values: list[Any] = []
    for column, names in (("session_id", query.sessions), ("source", query.sources)):
        if names:
            clauses.append(f"e.{column} IN ({', '.join('?' * len(names))})")
            values.extend(names)
    if query.since:
        clauses.append("e.covers_until >= ?")
        values.append(instant_text(query.since))
    if query.until:
        clauses.append("e.covers_from < ?")
        values.append(instant_text(query.until))
    joins = "JOIN episodic_memory AS e ON e.seq = f.rowid" if clauses else ""
    return _Filter(joins, "".join(f" AND {clause}" for clause in clauses), values)


def _matches(
    connection: sqlite3.Connection, query: Query, scores: Mapping[int, float], *, slept: bool
) -> list[Match]:
    """The matches that can be shown; all of them where too few episodes hold the best."""
    kept = shortlist(scores, places=query.limit * (LINES_SPARE if slept else 1))
    matches = _read(connection, scores, kept)
    places = {match.episode or -match.position for match in matches}
    if len(places) < query.limit and len(kept) < len(scores):
        matches += _read(connection, scores, scores.keys() - kept)
    return matches


def _has_slept(connection: sqlite3.Connection) -> bool:
    """Whether anything was consolidated yet, so that several matches may share a place."""
    (archived,) = connection.execute(
        "SELECT count FROM tier_totals WHERE tier = 'archive'"
    ).fetchone()
    return bool(archived)


def _read(
    connection: sqlite3.Connection, scores: Mapping[int, float], positions: Iterable[int]
) -> list[Match]:
    matches: list[Match] = []
    for chunk in chunks(list(positions)):
        marks = ", ".join("?" * len(chunk))
        found = connection.execute(
            f"SELECT seq, session_id, importance FROM working_memory WHERE seq IN ({marks})", chunk
        ).fetchall()
        matches += [Match(seq, scores[seq], session, worth) for seq, session, worth in found]
        if len(found) < len(chunk):
            rows = connection.execute(
                "SELECT seq, session_id, importance, episode_seq FROM archive "
                f"WHERE seq IN ({marks})",
                chunk,
            )
            matches += [Match(row[0], scores[row[0]], row[1], row[2], row[3]) for row in rows]
    return matches
