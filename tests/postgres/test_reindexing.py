"""A database of before words that touch a script without spaces were indexed by themselves."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import Any

import psycopg
import pytest
from support.fakes import consolidate, memory, promotion, remember_batch

from mnemosyned.memory.forgetting import ForgetFilter
from mnemosyned.paths import shipped
from mnemosyned.storage.postgres.fulltext import word_hashes
from mnemosyned.storage.postgres.store import open_store
from mnemosyned.text.terms import parse_terms

pytestmark = pytest.mark.postgres

MIGRATIONS = shipped("migrations") / "postgres"
SUMMARY = "Anaさんが来て、Redisを直した。Redisは速い"
PLAIN = [memory("plain", "nginx is not touched"), memory("han", "今天下雨 nginx")]
GLUED = [
    memory(f"glued-{number}", f"服务器{number}号用nginx运行") for number in range(5)
]
SLEPT = [memory("slept-1", "Anaさんが来ました"), memory("slept-2", "由Ana主持的会")]
_OPEN = """
import os, signal, sys
from pathlib import Path
from mnemosyned.storage.postgres import store as opening
from mnemosyned.storage.postgres import schema as reindexing
reindexing.REINDEXED_ROWS = 2
step, left = reindexing._reindex_next_rows, [int(sys.argv[2])]
def reindex(*args):
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    left[0] -= 1
    return step(*args)
reindexing._reindex_next_rows = reindex
with opening.open_store(sys.argv[1], migrations=Path(sys.argv[3])):
    pass
"""
"""Opens a database, two rows in a transaction, and is killed before the given step."""


def rows(dsn: str, table: str) -> list[tuple[Any, ...]]:
    columns = "words" if table == "memory" else "words, repeated, repeats"
    with psycopg.connect(dsn) as connection:
        found: list[tuple[Any, ...]] = connection.execute(
            f"SELECT seq, {columns}, xmin::text FROM {table} ORDER BY seq".encode()
        ).fetchall()
    return found


def due(dsn: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn) as connection:
        found: list[tuple[Any, ...]] = connection.execute(
            "SELECT name, place FROM reindexing"
        ).fetchall()
    return found


def selected(dsn: str, word: str) -> list[str]:
    with open_store(dsn, migrations=MIGRATIONS) as store:
        return sorted(store.deletion.select(ForgetFilter(terms=parse_terms(word))))


@pytest.fixture
def old(dsn: str) -> str:
    """A database whose rows are as a version before wrote them, and which was just migrated."""
    with open_store(dsn, migrations=MIGRATIONS) as store:
        remember_batch(store, *SLEPT, *PLAIN, *GLUED)
        consolidate(store, promotion("e", *SLEPT, content=SUMMARY))
    return dsn


@pytest.fixture
def written_now(old: str) -> dict[str, list[tuple[Any, ...]]]:
    """Rows as they are written now; `old` is made old afterwards."""
    now = {
        table: [row[:-1] for row in rows(old, table)] for table in ("memory", "episode")
    }
    with psycopg.connect(old) as connection:
        for table, second in (("memory", "role"), ("episode", "index_terms")):
            for owner, seq, *texts in connection.execute(
                f"SELECT owner, seq, content, {second} FROM {table}".encode()
            ).fetchall():
                connection.execute(
                    f"UPDATE {table} SET words = %s WHERE owner = %s AND seq = %s".encode(),
                    (word_hashes(owner, *texts), owner, seq),
                )
        connection.execute("UPDATE episode SET repeated = '{}', repeats = '{}'")
        connection.execute("DROP TABLE reindexing")
        connection.execute((MIGRATIONS / "0004_glued_words.sql").read_bytes())
    return now


def test_rows_are_as_if_they_were_written_now(
    old: str, written_now: dict[str, list[tuple[Any, ...]]]
) -> None:
    before = {row[0]: row[-1] for row in rows(old, "memory")}

    assert selected(old, "nginx") == [*(each.id for each in GLUED), "han", "plain"]
    assert selected(old, "Ana") == ["slept-1", "slept-2"]

    for table, expected in written_now.items():
        assert [row[:-1] for row in rows(old, table)] == expected
    left_alone = [seq for seq, *_, xmin in rows(old, "memory") if xmin == before[seq]]
    assert len(left_alone) == len(PLAIN)
    assert due(old) == []


def test_a_start_that_is_killed_amid_it_is_gone_on_with(
    old: str, written_now: dict[str, list[tuple[Any, ...]]]
) -> None:
    for step in (1, 2):
        killed = subprocess.run(
            [sys.executable, "-c", _OPEN, old, str(step), MIGRATIONS], check=False
        )
        assert killed.returncode == -signal.SIGKILL
    assert due(old)

    assert len(selected(old, "nginx")) == len(GLUED) + len(PLAIN)
    for table, expected in written_now.items():
        assert [row[:-1] for row in rows(old, table)] == expected
    assert due(old) == []
