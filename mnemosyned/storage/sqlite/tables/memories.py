"""What the tiers hold: single memories, an episode's originals, what waits for sleep, totals."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Literal

from mnemosyned.domain.consolidation import Pending
from mnemosyned.domain.memory import Detail, Episode, MemoryRecord, Tier, TierTotals
from mnemosyned.domain.rollup import distinct
from mnemosyned.domain.search.query import Place, Shown
from mnemosyned.storage.sqlite.tables.rollups import BELOW
from mnemosyned.storage.sqlite.tables.rows import (
    ARCHIVE_FIELDS,
    EPISODE_COLUMNS,
    MEMORY_FIELDS,
    SEQ_AMONG,
    Row,
    detail_from,
    episode_from,
    instant,
    instant_text,
    memory_from,
    pending_from,
)


def memory(connection: sqlite3.Connection, id: str) -> MemoryRecord | None:
    """The memory of this id, wherever it is."""
    row = connection.execute(
        f"SELECT {MEMORY_FIELDS} FROM working_memory WHERE id = ?", (id,)
    ).fetchone()
    if row:
        return memory_from(row, tier=Tier.WORKING)
    row = connection.execute(
        f"SELECT e.id, {ARCHIVE_FIELDS} FROM archive AS a "
        "JOIN episodic_memory AS e ON e.seq = a.episode_seq WHERE a.id = ?",
        (id,),
    ).fetchone()
    return memory_from(row[1:], tier=Tier.ARCHIVE, episode=row[0]) if row else None


def working(connection: sqlite3.Connection, ids: Sequence[str]) -> list[MemoryRecord]:
    """Those of these memories that are still in the working tier, oldest first."""
    rows = connection.execute(
        f"SELECT {MEMORY_FIELDS} FROM working_memory "
        f"WHERE id IN ({', '.join('?' * len(ids))}) ORDER BY created_at, seq",
        ids,
    ).fetchall()
    return [memory_from(row, tier=Tier.WORKING) for row in rows]


def originals(connection: sqlite3.Connection, episode: str) -> list[MemoryRecord]:
    """All originals under a summary, at whatever depth, oldest first."""
    rows = connection.execute(
        f"{BELOW} SELECT below.id, {ARCHIVE_FIELDS} FROM below "
        "CROSS JOIN archive AS a ON a.episode_seq = below.seq ORDER BY a.created_at, a.seq",
        (episode,),
    ).fetchall()
    return [memory_from(row[1:], tier=Tier.ARCHIVE, episode=row[0]) for row in rows]


# ------------------------------------------------------------------- pending


def pending(
    connection: sqlite3.Connection,
    *,
    before: datetime | None,
    session: str | None,
    sources: Sequence[str | None],
    now: datetime | None,
    limit: int,
) -> list[Pending]:
    """Unpinned memories of the working tier, oldest first."""
    where, values = _pending_filter(connection, before, session, sources, now)
    rows = connection.execute(
        "SELECT id, session_id, source, created_at, length(content) FROM working_memory "
        f"{where} ORDER BY created_at, seq LIMIT ?",
        (*values, limit),
    )
    return [pending_from(row) for row in rows]


def count_due(
    connection: sqlite3.Connection,
    *,
    before: datetime | None,
    session: str | None,
    sources: Sequence[str | None],
    now: datetime | None,
    limit: int,
) -> int:
    """How many of them there are, up to the limit."""
    where, values = _pending_filter(connection, before, session, sources, now)
    count: int = connection.execute(
        f"SELECT count(*) FROM (SELECT 1 FROM working_memory {where} LIMIT ?)",
        (*values, limit),
    ).fetchone()[0]
    return count


def _pending_filter(
    connection: sqlite3.Connection,
    before: datetime | None,
    session: str | None,
    sources: Sequence[str | None],
    now: datetime | None,
) -> tuple[str, Row]:
    clauses: list[str] = ["NOT pinned"]
    values: list[str | None] = []
    if before:
        aged = "created_at < ?"
        values.append(instant_text(before))
        # Only then, as it costs the bound on the index.
        if now and _any_future(connection):
            aged = (
                f"({aged} OR (created_at > ? AND seq IN "
                "(SELECT memory_seq FROM working_state WHERE future_since < ?)))"
            )
            values += [instant_text(now), instant_text(before)]
        clauses.append(aged)
    if now:
        clauses.append(
            "seq NOT IN (SELECT memory_seq FROM working_state WHERE held_until > ?)"
        )
        values.append(instant_text(now))
    if session is not None:
        clauses.append("session_id = ?")
        values.append(session)
    if sources:
        clauses.append(f"({' OR '.join(['source IS ?'] * len(sources))})")
        values.extend(sources)
    return f"WHERE {' AND '.join(clauses)}", tuple(values)


def _any_future(connection: sqlite3.Connection) -> bool:
    return (
        connection.execute(
            "SELECT 1 FROM working_state WHERE future_since IS NOT NULL LIMIT 1"
        ).fetchone()
        is not None
    )


# -------------------------------------------------------------------- totals


def working_count(connection: sqlite3.Connection) -> int:
    """How many memories the working tier holds."""
    count: int = connection.execute(
        "SELECT count FROM tier_totals WHERE tier = 'working'"
    ).fetchone()[0]
    return count


def totals(connection: sqlite3.Connection) -> Mapping[Tier, TierTotals]:
    """How much each tier holds."""
    counted = connection.execute("SELECT tier, count, characters FROM tier_totals")
    found = {Tier(tier): (count, chars) for tier, count, chars in counted}
    return {
        tier: TierTotals(*found[tier], _oldest(connection, tier))
        for tier in (Tier.WORKING, Tier.EPISODIC, Tier.ARCHIVE)
    }


def _oldest(connection: sqlite3.Connection, tier: Tier) -> datetime | None:
    """Where the tier's time begins; the archive's is that of the episodes it went into."""
    statement = (
        "SELECT min(created_at) FROM working_memory"
        if tier is Tier.WORKING
        else "SELECT min(covers_from) FROM episodic_memory"
    )
    (text,) = connection.execute(statement).fetchone()
    return instant(text) if text else None


# ---------------------------------------------------------------- whole


def show(connection: sqlite3.Connection, places: Sequence[Place]) -> Shown:
    """The memories and episodes of these places, whole."""
    asked = [place.memory for place in places if place.memory is not None]
    asked += [position for place in places for position, _ in place.lines]
    positions = json.dumps(asked)
    memories: dict[int, MemoryRecord] = {}
    for seq, *row in connection.execute(
        f"SELECT seq, {MEMORY_FIELDS} FROM working_memory WHERE {SEQ_AMONG}",
        (positions,),
    ):
        memories[seq] = memory_from(row, tier=Tier.WORKING)
    if len(memories) < len(set(asked)):
        for seq, episode, *row in connection.execute(
            f"SELECT a.seq, e.id, {ARCHIVE_FIELDS} FROM archive AS a "
            f"JOIN episodic_memory AS e ON e.seq = a.episode_seq WHERE a.{SEQ_AMONG}",
            (positions,),
        ):
            memories[seq] = memory_from(row, tier=Tier.ARCHIVE, episode=episode)
    episodes: dict[int, Episode] = {}
    for place in places:
        if place.episode is not None and (
            found := episode_at(connection, "seq", place.episode)
        ):
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
        "CROSS JOIN archive AS a ON a.episode_seq = below.seq "
        "CROSS JOIN detail AS d ON d.memory_seq = a.seq JOIN detail_kind AS k ON k.number = d.kind "
        "ORDER BY a.created_at, a.seq, k.number, d.value",
        (episode.id,),
    )
    details = tuple(detail_from(row) for row in rows)
    return distinct(details) if episode.level else details
