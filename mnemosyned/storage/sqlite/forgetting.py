"""Forgetting: memories and learnings are selected by a filter, and deleted with all their traces."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

from mnemosyned.memory.fields import NAMING_FIELDS
from mnemosyned.memory.forgetting import (
    ForgetFilter,
    is_named_in,
    name_matcher,
)
from mnemosyned.storage.common.filters import tag_conditions
from mnemosyned.storage.common.forgetting import (
    CommonDeletion,
    FoundMemory,
    chosen_conditions,
)
from mnemosyned.storage.common.session import BELOW
from mnemosyned.storage.sqlite.connections import Readers
from mnemosyned.storage.sqlite.filters import bind_by_place
from mnemosyned.storage.sqlite.fulltext import (
    any_of,
    glued_terms,
    index_memories,
    unindex_memory,
)
from mnemosyned.storage.sqlite.insert import known_records
from mnemosyned.storage.sqlite.memories import leave_secrets
from mnemosyned.storage.sqlite.purge import Purge
from mnemosyned.storage.sqlite.session import SqliteSession
from mnemosyned.storage.sqlite.writer import SqlitePart, Writer
from mnemosyned.text.stems import accent_variants
from mnemosyned.text.terms import Terms

CHUNK = 500
_TABLES = {
    "working_memory": "content",
    "archive": "iif(content != '', content, ifnull("
    "(SELECT group_concat(value, ' ') FROM detail WHERE memory_seq = seq), ''))",
}
"""Tables with the text of their memories; what a pruned one has left are its exact values."""
_NAMED = ", ".join(f"ifnull({field.column}, '')" for field in NAMING_FIELDS)
_FORMER = " || ' ' || ".join(
    f"ifnull(r.fields ->> '{name}', '')"
    for name in ("role", *(field.name for field in NAMING_FIELDS if field.editable))
)
_EARLIER = (
    f"ifnull((SELECT group_concat(ifnull(r.content, '') || ' ' || {_FORMER}, ' ') "
    "FROM revision AS r WHERE r.memory_seq = {table}.seq), '')"
)
"""What a memory was before it was edited."""
_INDEXES = ("memory_fts", "memory_gram_fts")


def selected_memories(session: SqliteSession, choice: ForgetFilter) -> list[str]:
    """Return the ids of the memories that match all criteria of a filter."""
    where, values = bind_by_place(
        [
            *chosen_conditions(choice, choice.newest.memory if choice.newest else None),
            *tag_conditions(choice.tags, "seq"),
        ]
    )
    having = _positions_with_terms(session, choice.terms) if choice.terms else None
    named = name_matcher(choice.person) if choice.person else None
    ids: dict[str, None] = {}
    for table, text in _TABLES.items():
        columns = (
            f"id, role, {_NAMED}, {text}, {_EARLIER.format(table=table)}"
            if named
            else "id"
        )
        for narrowed, further in _narrow_to_positions(where, values, having):
            rows = session.execute(
                f"SELECT {columns} FROM {table} WHERE 1{narrowed} ORDER BY seq", further
            )
            for id, *texts in rows:
                if is_named_in(texts, named):
                    ids[id] = None
    return list(ids)


def _narrow_to_positions(
    where: str, values: Sequence[Any], having: set[int] | None
) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield a filter's condition and values for each chunk of positions; once if `having` is None."""
    if having is None:
        yield where, values
        return
    positions = sorted(having)
    for start in range(0, len(positions), CHUNK):
        chunk = positions[start : start + CHUNK]
        yield f"{where} AND seq IN ({', '.join('?' * len(chunk))})", [*values, *chunk]


def _positions_with_terms(session: SqliteSession, terms: Terms) -> set[int]:
    """Return the row numbers of memories whose index entries have all terms."""
    found: set[int] | None = None
    for term in (*terms.words, *terms.grams):
        here: set[int] = set()
        for table in _INDEXES[term in terms.grams :]:
            forms = [term, *accent_variants(term)]
            if table == "memory_gram_fts":
                forms += [*map(glued_terms, forms)]
            rows = session.execute(
                f"SELECT rowid FROM {table} WHERE {table} MATCH ?", (any_of(forms),)
            )
            here.update(seq for (seq,) in rows)
        found = here if found is None else found & here
        if not found:
            break
    return found or set()


def selected_learnings(session: SqliteSession, choice: ForgetFilter) -> list[str]:
    """Return the ids of the learnings that match all criteria of a filter."""
    where, values = bind_by_place(
        chosen_conditions(choice, choice.newest.learning if choice.newest else None)
    )
    named = name_matcher(choice.person) if choice.person else None
    rows = session.execute(
        f"SELECT seq, id, text, ifnull(session_id, ''), ifnull(source, '') FROM learning "
        f"WHERE 1{where}",
        values,
    ).fetchall()
    having = _texts_with_terms(session, rows, choice.terms) if choice.terms else None
    return [
        id
        for seq, id, *texts in rows
        if (having is None or seq in having) and is_named_in(texts, named)
    ]


def _texts_with_terms(
    session: SqliteSession, rows: Sequence[Sequence[Any]], terms: Terms
) -> set[int]:
    """Return the row numbers of the texts that have all terms.

    Learnings have no index of their own: a temporary one is made for the search.
    """
    with closing(sqlite3.connect(":memory:", factory=SqliteSession)) as beside:
        for (definition,) in session.execute(
            f"SELECT sql FROM sqlite_master WHERE name IN ({', '.join('?' * len(_INDEXES))})",
            _INDEXES,
        ):
            beside.execute(definition)
        index_memories(beside, [(seq, text, "") for seq, _, text, *_ in rows])
        return _positions_with_terms(beside, terms)


KEYED_BY_MEMORY = ("memory_state", "tag", "revision")
"""The tables that keep something of a memory under its `memory_seq`, wherever the memory is. What
is made of its words (such as a vector) joins in here; `detail` goes with the archive's row."""


class SqliteDeletion(SqlitePart, CommonDeletion):
    """A `DeletionStore` on one SQLite file."""

    _newest_memory = (
        "SELECT max((SELECT ifnull(max(seq), 0) FROM working_memory), "
        "(SELECT ifnull(max(seq), 0) FROM archive))"
    )
    _ids_below = (
        f"{BELOW} SELECT a.id FROM below CROSS JOIN archive AS a ON a.episode_seq = below.seq "
        "ORDER BY a.seq"
    )
    _count_pruned = (
        "SELECT count(*) FROM archive "
        "WHERE content = '' AND episode_seq = ANY(%(episodes)s::bigint[])"
    )
    # Not row by row, as sources have no index.
    _unless_named = (
        "EXCEPT SELECT {0} FROM working_memory EXCEPT SELECT {0} FROM episodic_memory"
    )
    _selected_memories = staticmethod(selected_memories)
    _selected_learnings = staticmethod(selected_learnings)
    _known_records = staticmethod(known_records)

    def __init__(self, writer: Writer, readers: Readers, purge: Purge) -> None:
        super().__init__(writer, readers)
        self._purge = purge

    def _find(self, session: SqliteSession, ids: Sequence[str]) -> list[FoundMemory]:
        """Return the existing memories among these ids, in the order of their row numbers."""
        size = "length(CAST(content AS BLOB))"
        rows = session.execute(
            f"SELECT seq, id, {size}, NULL, 0 FROM working_memory "
            "WHERE id = ANY(%(ids)s::text[]) UNION ALL "
            f"SELECT seq, id, {size}, episode_seq, "
            "(SELECT count(*) FROM detail WHERE memory_seq = seq) FROM archive "
            "WHERE id = ANY(%(ids)s::text[]) ORDER BY seq",
            ids=list(ids),
        )
        return list(map(FoundMemory._make, rows))

    def _delete(self, session: SqliteSession, found: Sequence[FoundMemory]) -> None:
        """Delete memories with all rows that refer to them; their secrets stay secret in others."""
        indexed: list[tuple[int, str, str]] = []
        for memory in found:
            table = "working_memory"
            if memory.episode is not None:
                table = "archive"
                leave_secrets(session, memory.seq, memory.episode)
            indexed += session.execute(
                f"DELETE FROM {table} WHERE seq = ? RETURNING seq, content, role",
                (memory.seq,),
            ).fetchall()
            for beside in KEYED_BY_MEMORY:
                session.execute(
                    f"DELETE FROM {beside} WHERE memory_seq = ?", (memory.seq,)
                )
        # After all rows, as when they were remembered.
        for seq, content, role in indexed:
            unindex_memory(session, seq, content, role)

    def purge_due(self) -> bool:
        return self._purge.due()

    def purge_deleted(self) -> bool:
        return self._purge.run()

    def beyond_purge(self) -> tuple[str, ...]:
        return ()
