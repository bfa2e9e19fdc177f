"""A SQLite file of before words that touch a script without spaces were indexed by themselves."""

import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from support.fakes import consolidate, memory, promotion, remember_batch

from mnemosyned.memory.forgetting import ForgetFilter
from mnemosyned.paths import shipped
from mnemosyned.storage.sqlite.fulltext import TEXTS
from mnemosyned.storage.sqlite.store import open_store
from mnemosyned.text.terms import gram_text, parse_terms

PLAIN = [
    memory("plain", "nginx is not touched", hours_ago=30),
    memory("camel", "getUserName of nginx", hours_ago=30),
    memory("han", "今天下雨 nginx", hours_ago=30),
]
GLUED = [
    memory(f"glued-{number}", f"服务器{number}号用nginx运行", hours_ago=30)
    for number in range(6)
]
SLEPT = [memory("slept-1", "Anaさんが来ました"), memory("slept-2", "由Ana主持的会")]
MIGRATIONS = shipped("migrations")
_OPEN = """
import os, signal, sys
from pathlib import Path
from mnemosyned.storage.sqlite.store import open_store
from mnemosyned.storage.sqlite import fulltext
fulltext.REINDEXED_ROWS = 2
step, left = fulltext._reindex, [int(sys.argv[2])]
def reindex(*args):
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    left[0] -= 1
    return step(*args)
fulltext._reindex = reindex
with open_store(Path(sys.argv[1]), migrations=Path(sys.argv[3])):
    pass
"""
"""Opens a file, two entries in a transaction, and is killed before the given step."""


def make_old(database: Path) -> None:
    """Leave the entries and the schema as the version before wrote them."""
    with closing(sqlite3.connect(database)) as connection, connection:
        for index, texts in TEXTS.items():
            connection.execute(f"INSERT INTO {index} ({index}) VALUES ('delete-all')")
            connection.executemany(
                f"INSERT INTO {index} (rowid, grams) VALUES (?, ?)",
                [
                    (seq, parts)
                    for seq, text in connection.execute(texts)
                    if (parts := gram_text(text))
                ],
            )
        connection.execute("DROP TABLE reindexing")
        connection.execute("PRAGMA user_version = 18")
        connection.execute(
            "DELETE FROM _sqlite_migrations WHERE name = '0019_glued_words'"
        )


@pytest.fixture
def old(database: Path) -> Path:
    with open_store(database, migrations=MIGRATIONS) as store:
        remember_batch(store, *SLEPT, *PLAIN, *GLUED)
        consolidate(
            store, promotion("e", *SLEPT, content="Anaさんが来て、Redisを直した")
        )
    make_old(database)
    return database


def selected(database: Path, word: str) -> list[str]:
    with open_store(database, migrations=MIGRATIONS) as store:
        return sorted(store.deletion.select(ForgetFilter(terms=parse_terms(word))))


def entries(database: Path, index: str) -> list[tuple[int, str]]:
    """Rows and terms of an index, as FTS5 itself lists them."""
    with closing(sqlite3.connect(database)) as connection:
        connection.execute(
            f"CREATE VIRTUAL TABLE temp.v USING fts5vocab(main, {index}, instance)"
        )
        return sorted(connection.execute("SELECT doc, term, offset FROM v"))


def due(database: Path) -> list[tuple[str, int]]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute("SELECT name, seq FROM reindexing").fetchall()


def test_what_an_earlier_version_indexed_is_found_once_the_file_is_opened(
    old: Path,
) -> None:
    assert selected(old, "nginx") == [
        "camel",
        *(each.id for each in GLUED),
        "han",
        "plain",
    ]
    assert selected(old, "Ana") == ["slept-1", "slept-2"]
    assert due(old) == []


def test_an_entry_is_the_same_whether_it_was_written_now_or_written_again(
    old: Path, tmp_path: Path
) -> None:
    selected(old, "nginx")

    fresh = tmp_path / "fresh.db"
    with open_store(fresh, migrations=MIGRATIONS) as store:
        remember_batch(store, *SLEPT, *PLAIN, *GLUED)
        consolidate(
            store, promotion("e", *SLEPT, content="Anaさんが来て、Redisを直した")
        )
    for index in TEXTS:
        assert entries(old, index) == entries(fresh, index)


def test_entries_without_such_words_are_left_alone(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    monkeypatch.setattr(
        "mnemosyned.storage.sqlite.fulltext.index_grams",
        lambda _, __, ___, content: written.append(content),
    )

    selected(old, "nginx")

    assert sorted(written) == sorted(
        [each.content for each in (*SLEPT, *GLUED)] + ["Anaさんが来て、Redisを直した\n"]
    )


def test_a_start_that_is_killed_amid_it_is_gone_on_with(old: Path) -> None:
    for step in (1, 2):
        killed = subprocess.run(
            [sys.executable, "-c", _OPEN, old, str(step), MIGRATIONS], check=False
        )
        assert killed.returncode == -signal.SIGKILL
    assert due(old) == [("memory_gram_fts", 2)]

    assert len(selected(old, "nginx")) == len(GLUED) + len(PLAIN)
    assert due(old) == []


def test_an_entry_that_is_written_twice_is_the_same(old: Path) -> None:
    selected(old, "nginx")
    once = [entries(old, index) for index in TEXTS]
    with closing(sqlite3.connect(old)) as connection, connection:
        connection.executemany("INSERT INTO reindexing VALUES (?, 0)", zip(TEXTS))

    assert len(selected(old, "nginx")) == len(GLUED) + len(PLAIN)

    assert [entries(old, index) for index in TEXTS] == once
    with closing(sqlite3.connect(old)) as connection:
        for index in TEXTS:
            connection.execute(
                f"INSERT INTO {index} ({index}) VALUES ('integrity-check')"
            )


def test_what_is_forgotten_after_it_leaves_no_entry(old: Path) -> None:
    with open_store(old, migrations=MIGRATIONS) as store:
        store.deletion.forget([each.id for each in (*SLEPT, *PLAIN, *GLUED)])

    for index in TEXTS:
        assert entries(old, index) == []
