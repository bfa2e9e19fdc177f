"""Words of rows that were stored before these words had entries."""

from __future__ import annotations

import time
from collections import Counter

import psycopg

from mnemosyned.domain.text.terms import glued_words
from mnemosyned.logs import logger
from mnemosyned.storage.postgres.database.session import Row, Session
from mnemosyned.storage.postgres.fulltext.terms import word_hashes
from mnemosyned.storage.postgres.tables.owners.owner import note_rewording
from mnemosyned.storage.postgres.tables.rows import episode_words

log = logger()
REINDEXED_ROWS = 200
"""Rows that one transaction reads."""
PROGRESS_S = 10.0
"""Seconds after which the log says how far that is."""
_DUE = (
    "SELECT name, place[1], place[2] FROM reindexing ORDER BY name LIMIT 1 FOR UPDATE"
)
_SECOND_TEXT = {"memory": "role", "episode": "index_terms"}
"""The text of a row that is indexed beside its content."""


def index_glued_words(connection: psycopg.Connection[Row]) -> None:
    """Hash words that touch a script without spaces, in rows that lack them since a migration.

    Only the owner of the tables may. Each transaction takes the next rows: a killed process goes on
    there, and processes that start together take turns.
    """
    began = said = time.monotonic()
    changed: Counter[str] = Counter()
    while True:
        with connection.transaction():
            due = connection.execute(_DUE).fetchone()
            if due is None:
                break
            table, *place = due
            changed[table] += _index_next(connection, table, place)
        if time.monotonic() - said >= PROGRESS_S:
            said = time.monotonic()
            _log_progress(changed, said - began)
    if changed:
        _log_progress(changed, time.monotonic() - began)


def _index_next(
    connection: psycopg.Connection[Row], table: str, place: list[int]
) -> int:
    """Hash the words of the rows after `place` again; return how many were written."""
    second = _SECOND_TEXT[table]
    rows = connection.execute(
        f"SELECT owner, seq, content, {second} FROM {table} WHERE grams IS NOT NULL "
        "AND (owner, seq) > (%s, %s) ORDER BY owner, seq LIMIT %s".encode(),
        (*place, REINDEXED_ROWS),
    ).fetchall()
    if not rows:
        connection.execute("DELETE FROM reindexing WHERE name = %s", (table,))
        return 0
    changed: Counter[int] = Counter()
    for owner, seq, content, other in rows:
        if not glued_words(f"{content}\n{other}"):
            continue
        words = episode_words(owner, content, other)
        if table == "memory":
            words = {"words": word_hashes(owner, content, other, *glued_words(content))}
        columns = ", ".join(f"{name} = %({name})s" for name in words)
        # What was changed since it was read has its words already.
        connection.execute(
            f"UPDATE {table} SET {columns} WHERE owner = %(owner)s AND seq = %(seq)s "
            f"AND content = %(content)s AND {second} = %(other)s".encode(),
            {"owner": owner, "seq": seq, "content": content, "other": other, **words},
        )
        changed[owner] += 1
    for owner in changed:
        note_rewording(Session(connection, owner))
    connection.execute(
        "UPDATE reindexing SET place = %s WHERE name = %s", ([*rows[-1][:2]], table)
    )
    return changed.total()


def _log_progress(changed: Counter[str], duration_s: float) -> None:
    log.info(
        "index_entries_rewritten",
        duration_s=round(duration_s, 1),
        entries=dict(changed),
    )
