"""Purging: how deep an index gets, and files whose index cannot be read."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest
from e2e.consistency import damage, depths
from support.fakes import memory, remember_batch
from support.leftovers import left_of
from support.thorough import thorough

from mnemosyned import Memory as Library
from mnemosyned.errors import StorageFailed
from mnemosyned.paths import shipped
from mnemosyned.service.service import MemoryService
from mnemosyned.storage.sqlite.fulltext import DEPTH_MAX, DEPTH_UNSAFE
from mnemosyned.storage.sqlite.store import SqliteStore, open_store
from mnemosyned.verbs.memories import Recall
from mnemosyned.verbs.retention import Forget
from mnemosyned.verbs.upkeep import Sleep

INDEXES = [
    "memory_fts",
    *thorough("episode_fts", "memory_gram_fts", "episode_gram_fts"),
]


DEPTH_READABLE = 2_000
"""Levels beyond which SQLite 3.40 cannot read an index that it wrote."""


grows_deep = pytest.mark.skipif(
    sqlite3.sqlite_version_info >= (3, 43),
    reason="this SQLite bounds the levels of an index",
)


CODE = "camelCaseName"
"""A word whose parts are in the second index."""


def fill(database: Path) -> None:
    """Twelve memories, six of them slept, with words in all four indexes."""
    with Library(database) as library:
        for number in range(6):
            library.remember(
                f"note {number} of the meadow, {CODE}{number}", id=f"a{number}"
            )
        library.sleep(force=True)
        for number in range(6):
            library.remember(
                f"note {number} of the harbor, {CODE}{number}", id=f"w{number}"
            )


def deepen(database: Path, index: str, levels: int) -> None:
    """Give an index this many levels, as purges of old did."""
    columns = {"memory_fts": "content", "episode_fts": "content"}.get(index, "grams")
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        for number in range(levels // 2):
            # Only a segment of several pages goes up a level and stays there.
            words = "x" if number else " ".join(f"x{word}" for word in range(5_000))
            connection.execute(
                f"INSERT INTO {index} (rowid, {columns}) VALUES (?, ?)",
                (10_000 + number, words),
            )
            connection.execute(f"INSERT INTO {index} ({index}) VALUES ('optimize')")


def many_words() -> str:
    """A text whose words fill several pages of an index, as those of a real store do."""
    return " ".join(f"word{number} partOf{number}" for number in range(3_000))


def rewrite_structure(database: Path, index: str, block: bytes) -> None:
    """Replace the structure record of an index, as only damage would."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute(f"UPDATE {index}_data SET block = ? WHERE id = 10", (block,))


def everything(library: Library, query: str) -> set[str]:
    """The ids of all originals that a question finds, under whatever episode."""
    hits = library.recall(query, limit=50).hits
    return {line.id for hit in hits for line in hit.lines} | {hit.id for hit in hits}


@pytest.mark.parametrize("index", INDEXES)
def test_an_index_that_cannot_be_read_is_rebuilt_when_the_file_is_opened(
    database: Path, index: str
) -> None:
    fill(database)
    rewrite_structure(database, index, b"\x00\x00\x00\x00\x9f\x00\x01")
    assert damage(database)

    with Library(database) as library:
        assert {f"w{number}" for number in range(6)} <= everything(library, "harbor")
        assert {f"a{number}" for number in range(6)} <= everything(library, "meadow")
        assert {"a3", "w3"} <= everything(library, f"{CODE}3")
        (warning,) = library.status().warnings
        library.remember("another of the harbor")

    assert index in warning
    assert damage(database) == []
    with Library(database) as library:
        assert library.status().warnings == []


@grows_deep
@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.thorough
def test_an_index_near_the_limit_is_rebuilt_when_the_file_is_opened(
    database: Path, index: str
) -> None:
    fill(database)
    deepen(database, index, DEPTH_UNSAFE + 2)
    assert depths(database)[index] >= DEPTH_UNSAFE

    with Library(database) as library:
        assert {"a3", "w3"} <= everything(library, f"{CODE}3")

    assert max(depths(database).values()) < DEPTH_MAX
    assert damage(database) == []


@grows_deep
@pytest.mark.thorough
def test_a_file_broken_by_a_thousand_purges_of_old_opens_whole(database: Path) -> None:
    fill(database)
    with pytest.raises(sqlite3.DatabaseError, match="malformed"):
        deepen(database, "memory_fts", DEPTH_READABLE + 100)

    with Library(database) as library:
        assert len(everything(library, "harbor")) == 6
        assert library.forget(id="w1").complete

    assert damage(database) == []


@pytest.mark.thorough
def test_forgetting_again_and_again_keeps_every_index_shallow(
    file_store: SqliteStore, service: MemoryService
) -> None:
    remember_batch(
        file_store,
        *(
            memory(f"m{number}", f"{CODE}{number} of the ledger")
            for number in range(60)
        ),
    )
    remember_batch(file_store, memory("long", many_words()))
    service.call(Sleep(force=True))

    deepest = 0
    for number in range(DEPTH_MAX - 4):
        assert service.call(Forget(f"m{number}")).complete
        deepest = max(deepest, *depths(file_store.database).values())

    assert 2 < deepest <= DEPTH_MAX + 3
    assert left_of(file_store, f"{CODE}59")
    assert not left_of(file_store, *(f"{CODE}{number} " for number in range(20)))


@pytest.mark.thorough
def test_a_purge_beside_writers_keeps_every_index_shallow(
    file_store: SqliteStore, service: MemoryService
) -> None:
    remember_batch(
        file_store,
        *(memory(f"m{number}", f"{CODE}{number} at sea") for number in range(40)),
    )
    remember_batch(file_store, memory("long", many_words()))
    ended = threading.Event()

    def write() -> None:
        number = 0
        while not ended.is_set() and number < 5_000:
            number += 1
            remember_batch(
                file_store, memory(f"n{number}", f"{CODE}N{number} at the quay")
            )

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(DEPTH_MAX // 2):
            service.call(Forget(f"m{number}"))
            assert max(depths(file_store.database).values()) <= DEPTH_MAX + 3
    finally:
        ended.set()
        writer.join()


def test_what_is_deleted_while_a_purge_runs_stays_due(
    file_store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember_batch(file_store, memory("1", "zqxjv one"), memory("2", "zqxjv two"))
    file_store.deletion.forget(["1"])

    def forgetting_meanwhile(index: str) -> None:
        if (
            index == "episode_gram_fts"
        ):  # the last: the words of the second are in no merge
            file_store.deletion.forget(["2"])

    monkeypatch.setattr(file_store._purge, "_purge_index", forgetting_meanwhile)  # noqa: SLF001
    file_store.deletion.purge_deleted()

    assert file_store.deletion.purge_due()
    monkeypatch.undo()
    assert file_store.deletion.purge_deleted()
    assert not file_store.deletion.purge_due()
    assert left_of(file_store, "zqxjv") == []


def test_status_tells_of_an_index_that_stops_answering(database: Path) -> None:
    fill(database)
    with Library(database) as library:
        assert library.status().problems == []
        rewrite_structure(database, "memory_fts", b"\x00\x00\x00\x00\x9f\x00\x01")

        (problem,) = library.status().problems

        assert "memory_fts" in problem
        with pytest.raises(StorageFailed):
            library.call(Recall("harbor"))

    with open_store(database, migrations=shipped("migrations")) as store:
        assert store.maintenance.problems() == []
