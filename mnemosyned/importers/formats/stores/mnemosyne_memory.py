"""Stores of `mnemosyne-memory`: its database, and the JSON that it exports."""

from __future__ import annotations

from datetime import UTC

from mnemosyned.importers.formats.stores.store import (
    Export,
    Row,
    Store,
    Table,
    content_in,
    object_in,
)
from mnemosyned.importers.importer import stable_id
from mnemosyned.importers.reading.memories import sendable, text_in
from mnemosyned.importers.reading.moments import moment_from
from mnemosyned.verbs.memories import Remember

_COLUMNS = (
    "id", "content", "source", "timestamp", "session_id", "importance", "metadata_json",
    "created_at", "memory_type", "author_id",
)  # fmt: skip


def _memory(row: Row) -> Remember:
    content = content_in(row, "content")
    importance = row.get("importance")
    is_fraction = isinstance(importance, int | float) and 0 <= importance <= 1
    # It writes `timestamp` in local time, and SQLite wrote `created_at` in UTC.
    created_at = moment_from(row.get("timestamp")) or moment_from(
        row.get("created_at"), zone=UTC
    )
    return sendable(
        Remember(
            content,
            id=stable_id("mnemosyne-memory", str(row["id"]), content),
            session=text_in(row.get("session_id")) or "default",
            source=text_in(row.get("source")) or "mnemosyne-memory",
            role=text_in(row.get("author_id")),
            created_at=created_at,
            metadata={
                **object_in(row.get("metadata_json")),
                "type": text_in(row.get("memory_type")),
            },
            importance=float(importance or 0) if is_fraction else 0.5,
        )
    )


_OF_GONE_ORIGINALS = (
    "SELECT e.rowid, e.id, e.content, e.source, e.timestamp, e.session_id, e.importance, "
    "e.metadata_json, e.created_at FROM episodic_memory AS e WHERE e.rowid > ? AND NOT EXISTS ("
    "SELECT 1 FROM working_memory AS w "
    "WHERE w.id = substr(e.summary_of, 1, instr(e.summary_of || ',', ',') - 1)) ORDER BY e.rowid"
)
"""Its summaries, where the memories that they are made of were deleted."""


class MnemosyneMemory(Store):
    """A database or an export of `mnemosyne-memory`."""

    name = "mnemosyne-memory"
    tables = (
        Table(
            name="working_memory",
            columns=_COLUMNS,
            required=8,
            convert=_memory,
        ),
        Table(
            name="episodic_memory",
            columns=("id", "content", "session_id", "timestamp", "summary_of"),
            required=5,
            convert=_memory,
            select=_OF_GONE_ORIGINALS,
        ),
    )
    exports = (
        Export(
            keys=frozenset({"mnemosyne_export"}),
            lists={"working_memory": _memory, "legacy_memories": _memory},
        ),
    )
