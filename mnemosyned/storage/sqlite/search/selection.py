"""Which memories and learnings a filter of `forget` selects."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

from mnemosyned.domain.keeping.retention import ForgetFilter, is_named_in, naming
from mnemosyned.domain.text.terms import Terms
from mnemosyned.domain.text.words.accent_variants import accent_variants
from mnemosyned.storage.sqlite.fulltext.indexing import glued_terms, index_memories
from mnemosyned.storage.sqlite.search.expressions import any_of
from mnemosyned.storage.sqlite.search.filters import among, tagged, within

CHUNK = 500
_TABLES = {
    "working_memory": "content",
    "archive": "iif(content != '', content, ifnull("
    "(SELECT group_concat(value, ' ') FROM detail WHERE memory_seq = seq), ''))",
}
"""Tables with the text of their memories; what a pruned one has left are its exact values."""
_EARLIER = (
    "ifnull((SELECT group_concat(ifnull(r.content, '') || ' ' || ifnull(r.fields ->> 'session', '') "
    "|| ' ' || ifnull(r.fields ->> 'source', '') || ' ' || ifnull(r.fields ->> 'role', ''), ' ') "
    "FROM revision AS r WHERE r.memory_seq = {table}.seq), '')"
)
"""What a memory was before it was edited."""
_INDEXES = ("memory_fts", "memory_gram_fts")


def chosen(connection: sqlite3.Connection, choice: ForgetFilter) -> list[str]:
    """The ids of all memories for which everything in the choice holds."""
    where, values = _conditions(
        choice, newest=choice.newest.memory if choice.newest else None
    )
    tags, tag_values = tagged(choice.tags)
    where, values = " AND ".join([where, *tags]), [*values, *tag_values]
    having = _having(connection, choice.terms) if choice.terms else None
    named = naming(choice.person) if choice.person else None
    ids: dict[str, None] = {}
    for table, text in _TABLES.items():
        columns = (
            f"id, role, session_id, ifnull(source, ''), metadata, {text}, "
            + _EARLIER.format(table=table)
            if named
            else "id"
        )
        for narrowed, further in _narrowed(where, values, having):
            rows = connection.execute(
                f"SELECT {columns} FROM {table} WHERE {narrowed} ORDER BY seq", further
            )
            for id, *texts in rows:
                if is_named_in(texts, named):
                    ids[id] = None
    return list(ids)


def _conditions(choice: ForgetFilter, *, newest: int | None) -> tuple[str, list[Any]]:
    named, names = among(choice.sessions, choice.sources)
    dated, moments = within(
        choice.since, choice.until, first="created_at", last="created_at"
    )
    bounded, bound = ([], []) if newest is None else (["seq <= ?"], [newest])
    return " AND ".join(["1", *named, *dated, *bounded]), [*names, *moments, *bound]


def _narrowed(
    where: str, values: Sequence[Any], having: set[int] | None
) -> Iterator[tuple[str, Sequence[Any]]]:
    if having is None:
        yield where, values
        return
    positions = sorted(having)
    for start in range(0, len(positions), CHUNK):
        chunk = positions[start : start + CHUNK]
        yield f"{where} AND seq IN ({', '.join('?' * len(chunk))})", [*values, *chunk]


def _having(connection: sqlite3.Connection, terms: Terms) -> set[int]:
    """The positions of the memories that have every one of these terms."""
    found: set[int] | None = None
    for term in (*terms.words, *terms.grams):
        here: set[int] = set()
        for table in _INDEXES[term in terms.grams :]:
            forms = [term, *accent_variants(term)]
            if table == "memory_gram_fts":
                forms += [*map(glued_terms, forms)]
            rows = connection.execute(
                f"SELECT rowid FROM {table} WHERE {table} MATCH ?", (any_of(forms),)
            )
            here.update(seq for (seq,) in rows)
        found = here if found is None else found & here
        if not found:
            break
    return found or set()


def chosen_learnings(connection: sqlite3.Connection, choice: ForgetFilter) -> list[str]:
    """The ids of all learnings for which everything in the choice holds; they have no tags."""
    if choice.tags:
        return []
    where, values = _conditions(
        choice, newest=choice.newest.learning if choice.newest else None
    )
    named = naming(choice.person) if choice.person else None
    rows = connection.execute(
        f"SELECT seq, id, text, ifnull(session_id, ''), ifnull(source, '') FROM learning "
        f"WHERE {where}",
        values,
    ).fetchall()
    having = _texts_having(connection, rows, choice.terms) if choice.terms else None
    return [
        id
        for seq, id, *texts in rows
        if (having is None or seq in having) and is_named_in(texts, named)
    ]


def _texts_having(
    connection: sqlite3.Connection, rows: Sequence[Sequence[Any]], terms: Terms
) -> set[int]:
    """Which of these have every term, in an index like that of the memories: they are in none."""
    with closing(sqlite3.connect(":memory:")) as beside:
        for (definition,) in connection.execute(
            f"SELECT sql FROM sqlite_master WHERE name IN ({', '.join('?' * len(_INDEXES))})",
            _INDEXES,
        ):
            beside.execute(definition)
        index_memories(beside, [(seq, text, "") for seq, _, text, *_ in rows])
        return _having(beside, terms)
