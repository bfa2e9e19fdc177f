"""Memories and episodes by their rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Literal

from mnemosyned.domain.memory import Detail, Episode, MemoryRecord
from mnemosyned.domain.sleep.rollup import distinct
from mnemosyned.domain.storing.rows import EPISODE_COLUMNS, detail_from, episode_from
from mnemosyned.storage.postgres.database.session import Row, Session, Statement
from mnemosyned.storage.postgres.tables.details import values_of
from mnemosyned.storage.postgres.tables.hierarchy import BELOW
from mnemosyned.storage.postgres.tables.rows import (
    MEMORY_FIELDS,
    MEMORY_TABLES,
    OF_ID,
    memory_from,
)

_MEMORIES = (
    f"SELECT m.seq, {MEMORY_FIELDS} FROM {MEMORY_TABLES} "
    "WHERE m.owner = %(owner)s AND m.seq = ANY(%(seqs)s)"
)
_EPISODES = (
    f"SELECT seq, {EPISODE_COLUMNS} FROM episode "
    "WHERE owner = %(owner)s AND seq = ANY(%(seqs)s)"
)
_ORIGINALS = (
    "SELECT p.episode_seq, m.id FROM placed AS p "
    "JOIN memory AS m ON m.owner = p.owner AND m.seq = p.seq "
    "WHERE p.owner = %(owner)s AND p.episode_seq = ANY(%(seqs)s) "
    "ORDER BY m.created_at, m.seq"
)
_ROLLED_UP = (
    "SELECT e.seq, c.id FROM episode AS e "
    "JOIN episode AS c ON c.owner = e.owner AND c.parent_id = e.id "
    "WHERE e.owner = %(owner)s AND e.seq = ANY(%(seqs)s) "
    "ORDER BY c.covers_from, c.seq"
)


def memory_with(session: Session, id: str) -> MemoryRecord | None:
    """The memory with an id, wherever it is."""
    row = session.execute(
        f"SELECT {MEMORY_FIELDS} FROM {MEMORY_TABLES} "
        f"WHERE m.owner = %(owner)s AND {OF_ID}",
        id=id,
    ).fetchone()
    return memory_from(row) if row else None


def memories_at(session: Session, seqs: Collection[int]) -> dict[int, MemoryRecord]:
    """The memories of these rows, wherever each is."""
    sql, values = memories_statement(seqs)
    return memories_from(session.execute(sql, **values))


def memories_statement(seqs: Collection[int]) -> Statement:
    """Statement for the memories of these rows, whose answer `memories_from` takes."""
    return _MEMORIES, {"seqs": list(seqs)}


def memories_from(rows: Iterable[Row]) -> dict[int, MemoryRecord]:
    """Memories by the numbers of their rows."""
    return {row[0]: memory_from(row[1:]) for row in rows}


def episode_at(
    session: Session,
    key: Literal["id", "seq"],
    value: str | int,
    *,
    details: bool = False,
) -> Episode | None:
    """One episode with its provenance, and on request the exact values of its originals."""
    row = session.execute(
        f"SELECT seq, {EPISODE_COLUMNS} FROM episode "
        f"WHERE owner = %(owner)s AND {key} = %(value)s",
        value=value,
    ).fetchone()
    if row is None:
        return None
    episode = episode_from(row[1:])
    return replace(
        episode,
        summary_of=_made_of(session, episode, row[0]),
        details=_details(session, episode) if details else (),
    )


def episodes_statements(seqs: Collection[int]) -> list[Statement]:
    """Statements for episodes and their provenance, whose answers `episodes_from` takes."""
    values = {"seqs": list(seqs)}
    return [(sql, values) for sql in (_EPISODES, _ORIGINALS, _ROLLED_UP)]


def episodes_from(answers: Sequence[Iterable[Row]]) -> dict[int, Episode]:
    """Episodes by the numbers of their rows; none where nothing was asked."""
    if not answers:
        return {}
    rows, *provenance = answers
    made_of: dict[int, list[str]] = defaultdict(list)
    for seq, id in chain.from_iterable(provenance):
        made_of[seq].append(id)
    return {
        row[0]: replace(episode_from(row[1:]), summary_of=tuple(made_of[row[0]]))
        for row in rows
    }


def _made_of(session: Session, episode: Episode, seq: int) -> tuple[str, ...]:
    """The ids of what a summary was made of, the oldest first."""
    if episode.level:
        rows = session.execute(
            "SELECT id FROM episode WHERE owner = %(owner)s AND parent_id = %(id)s "
            "ORDER BY covers_from, seq",
            id=episode.id,
        )
    else:
        rows = session.execute(
            "SELECT m.id FROM placed AS p "
            "JOIN memory AS m ON m.owner = p.owner AND m.seq = p.seq "
            "WHERE p.owner = %(owner)s AND p.episode_seq = %(seq)s "
            "ORDER BY m.created_at, m.seq",
            seq=seq,
        )
    return tuple(id for (id,) in rows)


def _details(session: Session, episode: Episode) -> tuple[Detail, ...]:
    """The exact values of the originals under a summary; above an episode each once."""
    rows = session.execute(
        f"{BELOW} SELECT p.details, p.secrets, m.id, s.superseded_at IS NOT NULL "
        "FROM below "
        "JOIN placed AS p ON p.owner = %(owner)s AND p.episode_seq = below.seq "
        "JOIN memory AS m ON m.owner = p.owner AND m.seq = p.seq "
        "LEFT JOIN memory_state AS s ON s.owner = p.owner AND s.memory_seq = p.seq "
        "WHERE coalesce(p.details, p.secrets) IS NOT NULL ORDER BY m.created_at, m.seq",
        summary=episode.id,
    )
    details = tuple(
        detail_from((*pair, is_secret, id, superseded))
        for plain, secret, id, superseded in rows
        for pair, is_secret in values_of(plain, secret).items()
    )
    return distinct(details) if episode.level else details
