"""How memories enter working memory: what is known is answered, the rest inserted with its terms."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from mnemosyned.domain.content_hash import content_hash
from mnemosyned.domain.memory import MemoryRecord, Tier
from mnemosyned.domain.storing.intake import Intake, Known
from mnemosyned.storage.postgres.database.session import Session
from mnemosyned.storage.postgres.tables.changing.revisions import was_said
from mnemosyned.storage.postgres.tables.changing.state import set_state, supersede
from mnemosyned.storage.postgres.tables.changing.tags import add_tags
from mnemosyned.storage.postgres.tables.learnings import Keeper
from mnemosyned.storage.postgres.tables.owners.owner import (
    add_to_totals,
    note_rewording,
    take_numbers,
    totals,
)
from mnemosyned.storage.postgres.tables.rows import memory_values, utc

_ARRAYS = {
    "seq": "bigint",
    "id": "text",
    "session_id": "text",
    "source": "text",
    "role": "text",
    "content": "text",
    "importance": "float8",
    "pinned": "bool",
    "metadata": "text",
    "created_at": "timestamptz",
    "content_hash": "bigint",
}
_ROWS = ", ".join(f"%({name})s::{kind}[]" for name, kind in _ARRAYS.items())
INSERT_MEMORIES = (
    f"INSERT INTO memory (owner, {', '.join(_ARRAYS)}, words, grams) "
    f"SELECT o.owner, {', '.join(f'r.{name}' for name in _ARRAYS)}, "
    "r.words::integer[], r.grams::integer[] "
    f"FROM owner AS o CROSS JOIN unnest({_ROWS}, %(words)s::text[], %(grams)s::text[]) "
    f"AS r ({', '.join(_ARRAYS)}, words, grams) WHERE o.owner = %(owner)s"
)
"""All rows in one statement; arrays within arrays go as text, as their lengths differ."""
INSERT_FRESH = (
    "INSERT INTO fresh (owner, seq, created_at) "
    "SELECT o.owner, r.seq, r.created_at FROM owner AS o "
    "CROSS JOIN unnest(%(seq)s::bigint[], %(created_at)s::timestamptz[]) AS r (seq, created_at) "
    "WHERE o.owner = %(owner)s"
)
# What was superseded or may expire does not stand for words that are said again.
SAID_BEFORE = (
    "SELECT m.id, m.created_at FROM memory AS m WHERE m.owner = %(owner)s "
    "AND m.session_id = %(session)s AND m.content_hash = %(hash)s "
    "AND m.content = %(content)s AND m.source IS NOT DISTINCT FROM %(source)s::text "
    "AND NOT EXISTS (SELECT 1 FROM memory_state AS s "
    "WHERE s.owner = %(owner)s AND s.memory_seq = m.seq) ORDER BY m.created_at LIMIT 1"
)


class PostgresIntake(Intake):
    """New memories on their way into working memory."""

    def __init__(self, session: Session) -> None:
        super().__init__(Keeper(session))
        self._session = session

    def known_records(self, ids: Sequence[str]) -> dict[str, Known]:
        return known_records(self._session, ids)

    def was_said(self, id: str, content: str) -> bool:
        return was_said(self._session, id, content)

    def said_before(self, memory: MemoryRecord) -> tuple[str, datetime] | None:
        row = self._session.execute(
            SAID_BEFORE,
            session=memory.session,
            hash=content_hash(memory.content),
            content=memory.content,
            source=memory.source,
        ).fetchone()
        return (row[0], row[1]) if row else None

    def supersede(self, *, old: str, new: str) -> None:
        supersede(self._session, old=old, new=new)

    def insert(self, memories: Sequence[MemoryRecord]) -> None:
        insert_working(self._session, memories)

    def finish(self) -> int:
        working, _ = totals(self._session)[Tier.WORKING]
        return working


def insert_working(
    session: Session,
    memories: Sequence[MemoryRecord],
    *,
    seqs: list[int] | None = None,
) -> list[int]:
    """Insert memories into working memory with their tags and validity; their numbers.

    These are new ones, or `seqs` that the memories had before.
    """
    if not memories:
        return []
    if seqs is None:
        seqs = list(take_numbers(session, "memory", len(memories)))
    else:
        note_rewording(session)
    rows = [
        memory_values(memory, session.owner, seq)
        for seq, memory in zip(seqs, memories, strict=True)
    ]
    arrays = columns(rows)
    session.execute(INSERT_MEMORIES, **arrays)
    session.execute(INSERT_FRESH, seq=seqs, created_at=arrays["created_at"])
    characters = sum(len(memory.content) for memory in memories)
    add_to_totals(session, Tier.WORKING, count=len(memories), characters=characters)
    for seq, memory in zip(seqs, memories, strict=True):
        if memory.valid_until:
            set_state(session, seq, "valid_until", utc(memory.valid_until))
        if memory.tags:
            add_tags(session, seq, memory.tags)
    return seqs


def columns(rows: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    """The values of `INSERT_MEMORIES`: one list for each column."""
    lists = {name: [row[name] for row in rows] for name in _ARRAYS}
    lists["words"] = [_array_text(row["words"]) for row in rows]
    lists["grams"] = [_array_text(row["grams"]) for row in rows]
    return lists


def _array_text(numbers: Sequence[int] | None) -> str | None:
    """An array as PostgreSQL reads it."""
    return None if numbers is None else f"{{{','.join(map(str, numbers))}}}"


def known_records(session: Session, ids: Sequence[str]) -> dict[str, Known]:
    """Return existing records with these ids."""
    if not ids:
        return {}
    rows = session.execute(
        "SELECT id, content, created_at, content_hash FROM memory "
        "WHERE owner = %(owner)s AND id = ANY(%(ids)s) UNION ALL "
        "SELECT id, NULL, created_at, NULL FROM episode "
        "WHERE owner = %(owner)s AND id = ANY(%(ids)s)",
        ids=list(ids),
    )
    return {id: (content, moment, said) for id, content, moment, said in rows}
