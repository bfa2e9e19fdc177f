"""Writers share a commit, readers wait for their turn, and neither waits without end."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from support.fakes import memory, remember_batch

from mnemosyned.errors import IdTaken, StorageFailed
from mnemosyned.memory.consolidation import Selection
from mnemosyned.storage.sqlite.connections import Readers, open_writer
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.storage.sqlite.writer import COMMIT_SHARE_MAX, Writer

THREADS = 16
EACH = 20


@pytest.fixture
def writer(database: Path) -> Iterator[Writer]:
    connection = open_writer(database)
    connection.execute("CREATE TABLE noted (value INTEGER PRIMARY KEY)")
    opened = Writer(connection)
    yield opened
    opened.close()


def noted(database: Path) -> list[int]:
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("SELECT value FROM noted ORDER BY value").fetchall()
    return [value for (value,) in rows]


def note(connection: sqlite3.Connection, value: int) -> int:
    connection.execute("INSERT INTO noted VALUES (?)", (value,))
    return value


def together(writer: Writer, count: int) -> tuple[list[int], list[Exception]]:
    """Write so many numbers, all of which wait behind another writer of the first of them."""
    holding, go = threading.Event(), threading.Event()

    def hold(connection: sqlite3.Connection) -> None:
        note(connection, 0)
        holding.set()
        assert go.wait(10)

    def one(value: int) -> int | Exception:
        try:
            return writer.write(lambda connection: note(connection, value))
        except StorageFailed as error:
            return error

    with ThreadPoolExecutor(count + 1) as pool:
        first = pool.submit(writer.write, hold)
        assert holding.wait(10)
        outcomes = [pool.submit(one, value) for value in range(count)]
        while len(writer._waiting) < count:  # noqa: SLF001 nothing else tells who waits
            pass
        go.set()
        first.result()
    results = [outcome.result() for outcome in outcomes]
    done = [result for result in results if isinstance(result, int)]
    return done, [result for result in results if isinstance(result, Exception)]


def test_every_memory_of_many_threads_is_kept_once(store: SqliteStore) -> None:
    ids = [f"{thread}-{at}" for thread in range(THREADS) for at in range(EACH)]

    with ThreadPoolExecutor(THREADS) as pool:
        stored = list(
            pool.map(lambda name: remember_batch(store, memory(name))[0].stored, ids)
        )

    assert stored == [True] * len(ids)
    assert sorted(
        one.id for one in store.sleep.pending(Selection(), limit=1_000)
    ) == sorted(ids)
    assert store.memories.working_count() == len(ids)


def test_one_that_fails_takes_nobody_along(store: SqliteStore) -> None:
    remember_batch(store, memory("taken", "other words"))

    def remember(at: int) -> str:
        try:
            return remember_batch(store, memory("taken" if at % 5 == 0 else str(at)))[
                0
            ].id
        except IdTaken:
            return "refused"

    with ThreadPoolExecutor(THREADS) as pool:
        answers = list(pool.map(remember, range(100)))

    assert answers.count("refused") == 20
    assert store.memories.working_count() == 81
    assert [one.content for one in store.memories.working(["taken"])] == ["other words"]


def test_the_same_memory_from_many_threads_is_kept_once(store: SqliteStore) -> None:
    with ThreadPoolExecutor(THREADS) as pool:
        stored = list(
            pool.map(lambda _: remember_batch(store, memory("1"))[0].stored, range(64))
        )

    assert stored.count(True) == 1
    assert store.memories.working_count() == 1


def test_waiting_writers_share_commits_and_fail_alone(
    writer: Writer, database: Path
) -> None:
    commits: list[str] = []
    writer._connection.set_trace_callback(  # noqa: SLF001 the only place where commits are seen
        lambda statement: commits.append(statement) if statement == "COMMIT" else None
    )

    done, failed = together(writer, 40)

    assert done == list(range(1, 40))
    assert [str(error.__cause__) for error in failed] == [
        "UNIQUE constraint failed: noted.value"
    ]
    assert noted(database) == list(range(40))
    assert len(commits) == 2  # of the one that held the others up, and theirs


def test_a_commit_takes_a_bounded_number_along(writer: Writer, database: Path) -> None:
    works = COMMIT_SHARE_MAX + 10

    outcomes = writer.write_each(
        [
            lambda connection, value=value: note(connection, value)  # type: ignore[misc]
            for value in range(works)
        ]
    )

    assert outcomes == list(range(works))
    assert noted(database) == list(range(works))


def test_each_write_of_a_shared_commit_fails_alone(
    writer: Writer, database: Path
) -> None:
    one, same, other = writer.write_each(
        [
            lambda connection: note(connection, 1),
            lambda connection: note(connection, 2) and note(connection, 1),
            lambda connection: note(connection, 3),
        ]
    )

    assert (one, other) == (1, 3)
    assert isinstance(same, StorageFailed)
    assert noted(database) == [1, 3]


def test_a_commit_that_fails_is_reported_to_all_who_shared_it(
    writer: Writer, database: Path
) -> None:
    def end_the_transaction(connection: sqlite3.Connection) -> None:
        connection.execute("ROLLBACK")
        raise sqlite3.OperationalError("disk I/O error")

    outcomes = writer.write_each(
        [lambda connection: note(connection, 1), end_the_transaction]
    )

    assert [type(outcome) for outcome in outcomes] == [StorageFailed, StorageFailed]
    assert noted(database) == []
    writer.write(lambda connection: note(connection, 2))
    assert noted(database) == [2]


def test_each_commit_is_flushed_as_it_must_be_whatever_the_last_one_was(
    writer: Writer,
) -> None:
    def level(connection: sqlite3.Connection) -> int:
        found: int = connection.execute("PRAGMA synchronous").fetchone()[0]
        return found

    levels = [
        writer.write(level),
        *writer.write_each([level], durable=False),
        *writer.write_each([level], durable=False),
        writer.write(level),
        *writer.write_each([level], durable=True),
    ]

    assert levels == [2, 1, 1, 2, 2]


# The pool of read-only connections.


def test_a_read_does_not_wait_for_ever_for_its_turn(tmp_path: Path) -> None:
    writer = open_writer(tmp_path / "memory.db")
    readers = Readers(tmp_path / "memory.db", size=1, wait_s=0.05)

    with (
        readers.snapshot(),
        pytest.raises(StorageFailed, match="all 1 readers were busy"),
        readers.snapshot(),
    ):
        pass

    with readers.snapshot() as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    readers.close()
    writer.close()
