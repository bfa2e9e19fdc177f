"""The table of the audit log: a daemon's login may append lines, but not read or change them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Self

import psycopg

from mnemosyned.storage.common.session import Row
from mnemosyned.storage.postgres import connections, roles
from mnemosyned.storage.postgres.session import PostgresSession

_APPEND = (
    "SELECT audit_append(%(writers)s::text[], %(seqs)s::bigint[], %(times)s::timestamptz[], "
    "%(lines)s::text[])"
)
_REPLACE = (
    "WITH put AS (INSERT INTO audit (writer, seq, at, line) SELECT DISTINCT ON (1, 2) * FROM "
    "unnest(%(writers)s::text[], %(seqs)s::bigint[], %(times)s::timestamptz[], %(lines)s::text[]) "
    "ON CONFLICT (writer, seq) DO UPDATE SET at = excluded.at, line = excluded.line "
    "RETURNING 1) SELECT 0"
)
_LACKING = (
    "SELECT audit_lacking(%(writers)s::text[], %(seqs)s::bigint[], %(times)s::timestamptz[], "
    "%(lines)s::text[], %(since)s::timestamptz)"
)
_LAST = (
    "SELECT DISTINCT ON (writer) writer, seq, left(right(line, 66), 64) FROM audit "
    "WHERE at < %(end)s ORDER BY writer, seq DESC"
)
_READ = "SELECT writer, seq, at, line FROM audit WHERE {} ORDER BY {}"
AuditRow = tuple[str, int, datetime, str]
"""Writer, number, time and text of a line."""


class AuditTable:
    """The table of the audit log, on a connection of its own; safe from any thread.

    Every method raises `StorageFailed`. `read`, `last_before` and `delete` need the login that owns
    the tables.
    """

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._asking = threading.Lock()
        self._connection: connections.Connection | None = None
        self.connections = 0
        """How many connections were made: another server may be behind each."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._connection:
            with suppress(psycopg.Error):
                self._connection.close()

    def append(self, lines: Sequence[AuditRow], *, replacing: bool = False) -> int:
        """Append the lines not yet stored, durably; return how many have another text in the table.

        `replacing` replaces such lines, and returns 0; it needs the login that owns the tables.
        """
        sql = _REPLACE if replacing else _APPEND
        return int(self._ask(sql, **_columns(lines))[0][0]) if lines else 0

    def heads(self, limit: int) -> dict[str, tuple[int, str]]:
        """Return {writer: (number, hash)} of the last line of each of up to `limit` newest writers."""
        rows = self._ask("SELECT * FROM audit_heads(%(limit)s::bigint)", limit=limit)
        return {writer: (seq, digest) for writer, seq, digest in rows}

    def names(self, owners: Sequence[int]) -> dict[int, str]:
        """Return the names of owners by their numbers."""
        sql = "SELECT * FROM owner_names(%(owners)s::bigint[])"
        return dict(self._ask(sql, owners=owners))

    def find_lacking(
        self, lines: Sequence[AuditRow], *, since: datetime | None = None
    ) -> list[AuditRow]:
        """Return the lines that the table lacks, or has with another text.

        Lines from before `since`, by default before the table's first line, count as pruned and are left out.
        """
        if not lines:
            return []
        places = self._ask(_LACKING, **_columns(lines), since=since)
        return [lines[place - 1] for (place,) in places]

    def read(self, *, since: datetime | None = None) -> Iterator[Row]:
        """Yield (writer, number, time, line) in this order; with `since`, later lines alone, newest first."""
        order = "at DESC, writer DESC, seq DESC" if since else "writer, seq"
        sql = _READ.format("at >= %(since)s" if since else "true", order)
        with (
            connections.explaining_failures("the audit log was not read"),
            connections.connect_once(self._dsn) as connection,
            connection.transaction(),
        ):
            session = PostgresSession(connection, 0)
            roles.require_table_owner(session)
            yield from session.stream(sql, since=since)

    def oldest(self) -> datetime | None:
        """Return the time of the first line; None without lines."""
        first: datetime | None
        ((first,),) = self._ask("SELECT min(at) FROM audit")
        return first

    def read_pruned(self, end: datetime) -> list[str]:
        """Return the lines with the verb `pruned` from before a time."""
        sql = 'SELECT line FROM audit WHERE at < %(end)s AND line LIKE \'%%"verb":"pruned"%%\''
        return [line for (line,) in self._ask(sql, end=end)]

    def last_before(self, end: datetime) -> dict[str, tuple[int, str]]:
        """Return {writer: (number, hash)} of every writer's last line before a time."""
        rows = self._ask(_LAST, end=end)
        return {writer: (seq, digest) for writer, seq, digest in rows}

    def delete(self, end: datetime) -> int:
        """Delete the lines before a time; return how many."""
        sql = "WITH gone AS (DELETE FROM audit WHERE at < %(end)s RETURNING 1) "
        ((count,),) = self._ask(f"{sql} SELECT count(*) FROM gone", end=end)
        return int(count)

    def _ask(self, sql: str, **values: object) -> list[Row]:
        """Run a statement and return its rows; try again if the server has ended the connection."""
        with (
            self._asking,
            connections.explaining_failures("the audit log was not written"),
        ):
            while True:  # ends, as a new connection is not replaced
                is_new = self._connection is None or self._connection.closed
                if is_new or self._connection is None:
                    self._connection = connections.connect_once(self._dsn)
                    self.connections += 1
                try:
                    session = PostgresSession(self._connection, 0)
                    return session.execute(sql, **values).fetchall()
                except psycopg.OperationalError:
                    if is_new or not self._connection.closed:
                        raise


def _columns(lines: Sequence[AuditRow]) -> dict[str, list[object]]:
    """Return the columns of one or more lines, as values of a statement."""
    names = ("writers", "seqs", "times", "lines")
    return dict(zip(names, map(list, zip(*lines, strict=True)), strict=True))
