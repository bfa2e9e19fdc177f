"""Memories of an export as rows: words, place, state, tags, earlier words and exact values."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import msgspec

from mnemosyned.domain.exchange import ExportedMemory
from mnemosyned.domain.storing.restoring import PlacedMemory
from mnemosyned.storage.sqlite.fulltext.indexing import index_memories
from mnemosyned.storage.sqlite.tables.changing.tags import add_tags
from mnemosyned.storage.sqlite.tables.rows import (
    MEMORY_COLUMNS,
    Row,
    instant_text,
    memory_row,
)

_PLACES = ", ".join("?" * (1 + len(MEMORY_COLUMNS.split(", "))))
_INSERT_WORKING = (
    f"INSERT INTO working_memory (seq, {MEMORY_COLUMNS}) VALUES ({_PLACES})"
)
_INSERT_ARCHIVED = (
    f"INSERT INTO archive (seq, {MEMORY_COLUMNS}, episode_seq) VALUES ({_PLACES}, ?)"
)


class MemoryRows:
    """The rows of memories that are restored in one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._kinds: dict[str, int] = {}

    def insert(self, memories: Sequence[PlacedMemory]) -> None:
        """Insert memories with all that is kept of them, and let those with words be found."""
        for memory, seq, home in memories:
            values = _memory_values(memory, seq)
            if home is None:
                self._connection.execute(_INSERT_WORKING, values)
            else:
                self._connection.execute(_INSERT_ARCHIVED, (*values, home))
                self._insert_details(memory, seq)
            self._insert_state(memory, seq)
            self._insert_changes(memory, seq)
        index_memories(
            self._connection,
            [
                (seq, memory.content, memory.role)
                for memory, seq, _ in memories
                if memory.content
            ],
        )

    def _insert_state(self, memory: ExportedMemory, seq: int) -> None:
        state = [
            moment and instant_text(moment)
            for moment in (memory.valid_until, memory.superseded_at, memory.pruned_at)
        ]
        if any(state):
            self._connection.execute(
                "INSERT INTO memory_state (memory_seq, valid_until, superseded_at, pruned_at) "
                "VALUES (?, ?, ?, ?)",
                (seq, *state),
            )
        held = [
            moment and instant_text(moment)
            for moment in (memory.held_until, memory.future_since)
        ]
        if any(held):
            self._connection.execute(
                "INSERT INTO working_state (memory_seq, held_until, future_since) "
                "VALUES (?, ?, ?)",
                (seq, *held),
            )

    def _insert_changes(self, memory: ExportedMemory, seq: int) -> None:
        """Insert the tags of a memory and what it was before it was edited."""
        if memory.tags:
            add_tags(self._connection, seq, memory.tags)
        for revision in memory.revisions:
            self._connection.execute(
                "INSERT INTO revision (memory_seq, changed_at, content, content_hash, fields) "
                "VALUES (?, ?, ?, ?, ?)",
                (
                    seq,
                    instant_text(revision.changed_at),
                    revision.content,
                    revision.content_hash,
                    msgspec.json.encode(revision.fields).decode(),
                ),
            )

    def _insert_details(self, memory: ExportedMemory, seq: int) -> None:
        """Insert the exact values of an original."""
        for kind, value, sensitive in memory.details:
            self._connection.execute(
                "INSERT OR IGNORE INTO detail (memory_seq, kind, value, sensitive) "
                "VALUES (?, ?, ?, ?)",
                (seq, self._kind(kind), value, sensitive),
            )

    def _kind(self, name: str) -> int:
        """Return the number of a kind of exact value."""
        if name not in self._kinds:
            self._connection.execute(
                "INSERT OR IGNORE INTO detail_kind (name) VALUES (?)", (name,)
            )
            self._kinds = dict(
                self._connection.execute("SELECT name, number FROM detail_kind")
            )
        return self._kinds[name]


def _memory_values(memory: ExportedMemory, seq: int) -> Row:
    """Return the values for seq and MEMORY_COLUMNS."""
    row = memory_row(memory)
    if memory.content_hash is not None:  # of words that were pruned
        row = (*row[:-1], memory.content_hash)
    return (seq, *row)
