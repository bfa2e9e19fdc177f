"""The full-text indexes: rows with the words of a question, and what the second index is worth."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from heapq import nlargest
from typing import Any

from mnemosyned.domain.search.finding import SCORED_MAX
from mnemosyned.domain.search.words.index import Forms, Having, WordRows
from mnemosyned.storage.sqlite.fulltext.indexing import GLUED, glued_terms
from mnemosyned.storage.sqlite.search.expressions import all_of, quoted
from mnemosyned.storage.sqlite.search.filters import SqlFilter

STRETCHES_MAX, GAP_MIN = 16, 1_000
"""To begin a stretch costs as much as a common word's rows in one of a thousand."""


def scored(
    connection: sqlite3.Connection,
    table: str,
    match: str,
    narrow: SqlFilter,
    *,
    limit: int,
) -> list[tuple[int, float]]:
    """The best rows of an index for an expression, with their bm25, higher is better."""
    return connection.execute(
        f"SELECT f.rowid, -bm25({table}) AS score FROM {table} AS f {narrow.joins} "
        f"WHERE {table} MATCH ? {narrow.where} ORDER BY score DESC LIMIT ?",
        (match, *narrow.values, limit),
    ).fetchall()


def has_glued(connection: sqlite3.Connection, table: str) -> bool:
    """Tell whether a second index has words that touch a script without spaces."""
    row = connection.execute(
        f"SELECT 1 FROM {table} WHERE {table} MATCH ? LIMIT 1", (quoted(GLUED),)
    ).fetchone()
    return row is not None


_AROUND = (
    "SELECT f.rowid FROM json_each(?) AS stretch CROSS JOIN {table} AS f "
    "WHERE f.{table} MATCH ? AND f.rowid BETWEEN stretch.value ->> 0 AND stretch.value ->> 1 "
    "AND +f.rowid IN (SELECT value FROM json_each(?)) ORDER BY f.rowid DESC LIMIT ?"
)


def stretches(rows: Sequence[int]) -> list[tuple[int, int]]:
    """First and last row of the few stretches in which all these rows lie; they are ascending."""
    gaps = [at for at in range(1, len(rows)) if rows[at] - rows[at - 1] >= GAP_MIN]
    widest = nlargest(STRETCHES_MAX - 1, gaps, key=lambda at: rows[at] - rows[at - 1])
    begins = [0, *sorted(widest)]
    ends = [*begins[1:], len(rows)]
    return [
        (rows[begin], rows[end - 1]) for begin, end in zip(begins, ends, strict=True)
    ]


class FtsWords(WordRows):
    """The rows of words in FTS5's indexes, within the filters of a question."""

    def __init__(
        self, connection: sqlite3.Connection, narrow: SqlFilter, *, glued: bool
    ) -> None:
        """`glued`: the second index may have words that touch a script without spaces."""
        self._connection = connection
        self._narrow = narrow
        self._glued = glued
        self._select = (
            f"SELECT f.rowid FROM {{table}} AS f {narrow.joins} "
            f"WHERE {{table}} MATCH ? {narrow.where} ORDER BY f.rowid DESC LIMIT ?"
        )
        self._joined: tuple[str, ...] = ()
        self._values: tuple[Any, ...] = tuple(narrow.values)
        if narrow.only:
            self._select = _AROUND
            self._joined = (json.dumps(stretches(narrow.only)),)
            self._values = (json.dumps(narrow.only),)

    @property
    def is_filtered(self) -> bool:
        return bool(self._narrow.joins or self._narrow.where)

    @property
    def few(self) -> Sequence[int] | None:
        return self._narrow.only

    @cached_property
    def last(self) -> int:
        row = self._connection.execute(
            "SELECT ifnull(max(rowid), 0) FROM memory_fts_docsize"
        ).fetchone()
        return int(row[0])

    def newest(self, having: Having, *, limit: int) -> Sequence[int]:
        rows = self._newest("memory_fts", all_of(having), limit)
        if not self._glued:
            return rows
        glued = [[tuple(map(glued_terms, forms)) for forms in word] for word in having]
        others = self._newest("memory_gram_fts", all_of(glued), limit)
        return sorted({*rows, *others}, reverse=True)[:limit] if others else rows

    def _newest(self, table: str, match: str, limit: int) -> list[int]:
        rows = self._connection.execute(
            self._select.format(table=table),
            (*self._joined, match, *self._values, limit),
        )
        return [seq for (seq,) in rows.fetchall()]

    def passing(self, rows: Sequence[int]) -> Collection[int]:
        found = self._connection.execute(
            "SELECT f.rowid FROM (SELECT value AS rowid FROM json_each(?)) AS f "
            f"{self._narrow.joins} WHERE 1 {self._narrow.where}",
            (json.dumps(rows), *self._narrow.values),
        )
        return [seq for (seq,) in found.fetchall()]

    def expect(self, asked: Iterable[tuple[Forms, int]]) -> None:
        """Nothing: the file is near."""


def newest(
    connection: sqlite3.Connection,
    table: str,
    match: str,
    narrow: SqlFilter,
    *,
    limit: int,
) -> list[tuple[int, float]]:
    """The best of the newest rows of an index for an expression."""
    return connection.execute(
        "SELECT seq, score FROM ("
        f"SELECT f.rowid AS seq, -bm25({table}) AS score "
        f"FROM {table} AS f {narrow.joins} WHERE {table} MATCH ? {narrow.where} "
        "ORDER BY f.rowid DESC LIMIT ?) ORDER BY score DESC LIMIT ?",
        (match, *narrow.values, SCORED_MAX, limit),
    ).fetchall()
