"""Rows of memories as they were before they were edited."""

from __future__ import annotations

import sqlite3

import msgspec

from mnemosyned.domain.content_hash import content_hash
from mnemosyned.domain.memory import Revision
from mnemosyned.domain.revisions import REVISIONS_MAX, MemoryEdit
from mnemosyned.storage.sqlite.tables.rows import instant


def keep_revision(
    connection: sqlite3.Connection,
    seq: int,
    edit: MemoryEdit,
    *,
    moment: str,
    drop: bool,
) -> None:
    """Keep what a memory was; with `drop` only that it was, and of what was kept before no words."""
    text, fields = edit.earlier_state(drop=drop)
    if drop:
        connection.execute(
            "UPDATE revision SET content = NULL, fields = '{}' WHERE memory_seq = ?",
            (seq,),
        )
    connection.execute(
        "INSERT INTO revision (memory_seq, changed_at, content, content_hash, fields) "
        "VALUES (?, ?, ?, ?, ?)",
        (
            seq,
            moment,
            text,
            content_hash(edit.before.content),
            msgspec.json.encode(fields).decode(),
        ),
    )
    connection.execute(
        "DELETE FROM revision WHERE memory_seq = ? AND seq <= (SELECT seq FROM revision "
        "WHERE memory_seq = ? ORDER BY seq DESC LIMIT 1 OFFSET ?)",
        (seq, seq, REVISIONS_MAX),
    )


def revisions_of(connection: sqlite3.Connection, seq: int) -> list[Revision]:
    """The revisions of a memory, the latest first."""
    rows = connection.execute(
        "SELECT changed_at, content, fields FROM revision WHERE memory_seq = ? "
        "ORDER BY seq DESC",
        (seq,),
    )
    return [
        Revision(
            changed_at=instant(changed_at),
            text=text,
            fields=msgspec.json.decode(fields),
        )
        for changed_at, text, fields in rows
    ]


def was_said(connection: sqlite3.Connection, id: str, content: str) -> bool:
    """Whether a memory had these words before it was edited."""
    row = connection.execute(
        "SELECT 1 FROM revision WHERE content_hash = ? AND memory_seq IN ("
        "SELECT seq FROM working_memory WHERE id = ? UNION ALL "
        "SELECT seq FROM archive WHERE id = ?)",
        (content_hash(content), id, id),
    ).fetchone()
    return row is not None
