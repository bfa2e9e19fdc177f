"""What the tiers hold: single memories, an episode's originals, what waits for sleep, totals."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime

from mnemosyned.domain.consolidation import Pending
from mnemosyned.domain.memory import Memory, Tier, TierTotals
from mnemosyned.storage.sqlite.tables.rollups import BELOW
from mnemosyned.storage.sqlite.tables.rows import (
    ARCHIVE_FIELDS,
    MEMORY_FIELDS,
    Row,
    instant,
    instant_text,
    memory_from,
    pending_from,
)


def memory(connection: sqlite3.Connection, id: str) -> Memory | None:
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


def working(connection: sqlite3.Connection, ids: Sequence[str]) -> list[Memory]:
    """Those of these memories that are still in the working tier, oldest first."""
    rows = connection.execute(
        f"SELECT {MEMORY_FIELDS} FROM working_memory "
        f"WHERE id IN ({', '.join('?' * len(ids))}) ORDER BY created_at, seq",
        ids,
    ).fetchall()
    return [memory_from(row, tier=Tier.WORKING) for row in rows]


def originals(connection: sqlite3.Connection, episode: str) -> list[Memory]:
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
        f"SELECT count(*) FROM (SELECT 1 FROM working_memory {where} LIMIT ?)", (*values, limit)
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
        clauses.append("seq NOT IN (SELECT memory_seq FROM working_state WHERE held_until > ?)")
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
