"""Purging: when it runs, how deep an index gets, and files whose index cannot be read."""

import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from e2e.consistency import damage, depths
from support.cases import thorough
from support.fakes import memory, remember_batch
from support.leftovers import NOT_PURGED, left_of

from mnemosyned import Memory as Library
from mnemosyned.errors import StorageFailed
from mnemosyned.fairness import BUSY_ANSWERS, ForegroundGate
from mnemosyned.service.forgetting import Purger
from mnemosyned.storage.sqlite.fulltext import DEPTH_MAX, DEPTH_UNSAFE
from mnemosyned.storage.sqlite.store import SqliteStore

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
        for place in ("meadow", "harbor"):
            for number in range(6):
                text = f"note {number} of the {place}, {CODE}{number}"
                library.remember(text, id=f"{place}{number}")
            if place == "meadow":
                library.sleep(force=True)


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


def rewrite_structure(database: Path, index: str, block: bytes) -> None:
    """Replace the structure record of an index, as only damage would."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute(f"UPDATE {index}_data SET block = ? WHERE id = 10", (block,))


def everything(library: Library, query: str) -> set[str]:
    """The ids of all originals that a question finds, under whatever episode."""
    hits = library.recall(query, limit=50).hits
    return {line.id for hit in hits for line in hit.lines} | {hit.id for hit in hits}


@pytest.mark.parametrize("index", INDEXES)
def test_an_index_that_cannot_be_read_is_named_and_rebuilt_when_the_file_is_opened(
    database: Path, index: str
) -> None:
    fill(database)
    with Library(database) as library:
        assert library.status().problems == []
        rewrite_structure(database, index, b"\x00\x00\x00\x00\x9f\x00\x01")
        (problem,) = library.status().problems
        assert index in problem
        if index == "memory_fts":
            with pytest.raises(StorageFailed):
                library.recall("harbor")
    assert damage(database)

    with Library(database) as library:
        for place in ("meadow", "harbor"):
            found = everything(library, place)
            assert {f"{place}{number}" for number in range(6)} <= found
        assert {"meadow3", "harbor3"} <= everything(library, f"{CODE}3")
        (warning,) = library.status().warnings
        library.remember("another of the harbor")

    assert index in warning
    assert damage(database) == []
    with Library(database) as library:
        assert library.status().warnings == library.status().problems == []


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
        assert {"meadow3", "harbor3"} <= everything(library, f"{CODE}3")

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
        assert library.forget(id="harbor1").complete

    assert damage(database) == []


@pytest.mark.sqlite
def test_what_is_deleted_while_a_purge_runs_stays_due(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember_batch(store, memory("1", "zqxjv one"), memory("2", "zqxjv two"))
    store.deletion.forget(["1"])

    def forgetting_meanwhile(index: str) -> None:
        # After the last, the words of the second are in no merge.
        if index == "episode_gram_fts":
            store.deletion.forget(["2"])

    monkeypatch.setattr(store.deletion, "_purge_index", forgetting_meanwhile)
    store.deletion.purge_deleted()

    assert store.deletion.purge_due()
    monkeypatch.undo()
    assert store.deletion.purge_deleted()
    assert not store.deletion.purge_due()
    assert left_of(store, "zqxjv") == []


# When a purge runs: in its turn beside others, at once alone, and at the latest at the close.


class Slow:
    """Makes each purge of a store take a while, without the while."""

    def __init__(self, store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_000.0
        self.runs = 0
        scrub = store.deletion.purge_deleted

        def run() -> bool:
            self.now += 0.3
            self.runs += 1
            return scrub()

        monkeypatch.setattr(store.deletion, "purge_deleted", run)
        monkeypatch.setattr(
            "mnemosyned.service.forgetting.time.monotonic", lambda: self.now
        )


@pytest.fixture
def slow(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> Slow:
    return Slow(store, monkeypatch)


def purging(
    store: SqliteStore, *, busy: Callable[[], bool], background: bool = False
) -> Purger:
    return Purger(
        due=store.deletion.purge_due,
        work=lambda: store.deletion.purge_deleted(),  # noqa: PLW0108 tests replace it
        busy=busy,
        background=background,
    )


def forgotten(store: SqliteStore, purger: Purger, id: str) -> bool:
    remember_batch(store, memory(id, f"zqxjv {id}"))
    store.deletion.forget([id])
    return purger.purge()


def test_while_others_are_served_a_purge_waits_for_its_turn_or_the_close(
    store: SqliteStore, slow: Slow
) -> None:
    served = [True, True, False]
    purger = purging(store, busy=served.pop, background=True)

    assert forgotten(store, purger, "1")
    assert forgotten(store, purger, "2")  # nobody else is served
    assert not forgotten(store, purger, "3")
    assert 5 < (purger.wait_s() or 0) < 7

    assert slow.runs == 2
    # The third waits, and a server does not say whose rows those are.
    assert left_of(store, "zqxjv 1", "zqxjv 2") in ([], [NOT_PURGED])
    purger.close()
    assert slow.runs == 3
    assert left_of(store, "zqxjv") == []


@pytest.mark.parametrize("background", [True, False])
def test_alone_or_without_a_background_each_forgetting_is_purged_at_once(
    store: SqliteStore, slow: Slow, *, background: bool
) -> None:
    purger = purging(store, busy=lambda: not background, background=background)

    assert all(forgotten(store, purger, str(number)) for number in range(3))
    assert slow.runs == 3


@pytest.mark.parametrize(
    "rest_free_s", [0.0, -10.0], ids=["without a rest", "after minutes of rest"]
)
def test_a_planned_purge_comes_by_itself_or_once_nobody_else_is_served(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, rest_free_s: float
) -> None:
    monkeypatch.setattr("mnemosyned.service.forgetting.REST_FREE_S", rest_free_s)
    if not rest_free_s:
        monkeypatch.setattr("mnemosyned.service.forgetting.WAIT_MAX_S", 0.0)
    served = threading.Event()
    served.set()
    purger = purging(store, busy=served.is_set, background=True)
    assert forgotten(store, purger, "1")
    assert not forgotten(store, purger, "2")

    if rest_free_s:
        served.clear()
    ends = time.monotonic() + 20
    while store.deletion.purge_due():
        assert time.monotonic() < ends
        time.sleep(0.01)

    purger.close()
    assert left_of(store, "zqxjv") == []


def test_what_a_killed_process_left_to_purge_is_purged_after_the_start(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mnemosyned.service.forgetting.START_S", 0.0)
    remember_batch(store, memory("1", "zqxjv"))
    store.deletion.forget(["1"])
    purger = purging(store, busy=lambda: True, background=True)

    purger.start()
    while store.deletion.purge_due():
        purger.wait_s()

    purger.close()
    assert left_of(store, "zqxjv") == []


def test_a_purge_that_fails_is_planned_again(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> bool:
        raise StorageFailed("the disk is full")

    purger = purging(store, busy=lambda: False, background=True)
    monkeypatch.setattr(store.deletion, "purge_deleted", refuse)

    with pytest.raises(StorageFailed):
        forgotten(store, purger, "1")

    assert 50 < (purger.wait_s() or 0) <= 60
    monkeypatch.undo()
    purger.close()
    assert left_of(store, "zqxjv") == []


def test_a_daemon_is_busy_only_while_many_are_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 1_000.0
    monkeypatch.setattr("mnemosyned.sleep.context.time.monotonic", lambda: now)
    gate = ForegroundGate()

    def answer(count: int) -> bool:
        for _ in range(count):
            with gate:
                pass
        return gate.busy

    assert not answer(BUSY_ANSWERS - 1)
    assert answer(1)
    now += 1
    assert gate.busy
    now += 1
    assert not gate.busy
    assert not answer(1)
    now += 60
    assert not answer(BUSY_ANSWERS - 1)
