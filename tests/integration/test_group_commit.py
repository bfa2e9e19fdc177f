"""Writers share a commit, readers wait for their turn, and neither waits without end."""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from support.fakes import memory, remember_batch, working_ids

from mnemosyned.errors import StorageFailed
from mnemosyned.storage.sqlite.connections import (
    COMMIT_SHARE_MAX,
    Readers,
    Writer,
    open_writer,
)
from mnemosyned.storage.sqlite.store import SqliteStore

THREADS = 16
EACH = 20


@pytest.fixture
def writer(database: Path) -> Iterator[Writer]:
    connection = open_writer(database)
    connection.execute("CREATE TABLE noted (value INTEGER PRIMARY KEY)")
    opened = Writer(connection)
    yield opened
    opened.close()


def noted(writer: Writer) -> list[int]:
    """What is on disk."""
    file = writer._connection.execute("PRAGMA database_list").fetchone()[2]  # noqa: SLF001
    with closing(sqlite3.connect(file)) as connection:
        rows = connection.execute("SELECT value FROM noted ORDER BY value").fetchall()
    return [value for (value,) in rows]


Work = Callable[[sqlite3.Connection], int]


def note(value: int) -> Work:
    """The write of a number."""

    def work(connection: sqlite3.Connection) -> int:
        connection.execute("INSERT INTO noted VALUES (?)", (value,))
        return value

    return work


def together(writer: Writer, count: int) -> list[int | Exception]:
    """Write so many numbers, all of which wait behind another writer of the first of them.

    Every second write need not be durable.
    """
    holding, go = threading.Event(), threading.Event()

    def hold(connection: sqlite3.Connection) -> None:
        note(0)(connection)
        holding.set()
        assert go.wait(60)

    def one(value: int) -> int | Exception:
        try:
            return writer.write(note(value), durable=value % 2 == 0)
        except StorageFailed as error:
            return error

    with ThreadPoolExecutor(count + 1) as pool:
        first = pool.submit(writer.write, hold)
        assert holding.wait(60)
        outcomes = [pool.submit(one, value) for value in range(count)]
        while len(writer._waiting) < count:  # noqa: SLF001 nothing else tells who waits
            pass
        go.set()
        first.result()
    return [outcome.result() for outcome in outcomes]


def test_every_memory_of_many_threads_is_kept_once(store: SqliteStore) -> None:
    ids = [f"{thread}-{at}" for thread in range(THREADS) for at in range(EACH)]

    def remember(id: str) -> bool:
        return remember_batch(store, memory(id))[0].stored

    with ThreadPoolExecutor(THREADS) as pool:
        stored = list(pool.map(remember, [*ids, *["same"] * 64]))

    assert stored[: len(ids)] == [True] * len(ids)
    assert stored.count(True) == len(ids) + 1
    assert sorted(working_ids(store)) == sorted([*ids, "same"])
    assert store.memories.working_count() == len(ids) + 1


def test_waiting_writers_share_commits_and_fail_alone(writer: Writer) -> None:
    statements: list[str] = []
    writer._connection.set_trace_callback(statements.append)  # noqa: SLF001 nothing else sees commits

    failed, *done = together(writer, 40)

    assert done == list(range(1, 40))
    assert isinstance(failed, StorageFailed)
    assert str(failed.__cause__) == "UNIQUE constraint failed: noted.value"
    assert noted(writer) == list(range(40))
    commits = statements.count("COMMIT")
    assert commits == 2, "of the one that held the others up, and theirs"
    assert "PRAGMA synchronous = NORMAL" not in statements


def test_a_commit_takes_a_bounded_number_along(writer: Writer) -> None:
    values = [*range(COMMIT_SHARE_MAX + 10)]

    assert writer.write_each([*map(note, values)]) == values
    assert noted(writer) == values


def test_each_write_of_a_shared_commit_fails_alone(writer: Writer) -> None:
    one, same, other = writer.write_each(
        [
            note(1),
            lambda connection: note(2)(connection) and note(1)(connection),
            note(3),
        ]
    )

    assert (one, other) == (1, 3)
    assert isinstance(same, StorageFailed)
    assert noted(writer) == [1, 3]


def test_a_commit_that_fails_is_reported_to_all(writer: Writer) -> None:
    def end_the_transaction(connection: sqlite3.Connection) -> int:
        connection.execute("ROLLBACK")
        raise sqlite3.OperationalError("disk I/O error")

    outcomes = writer.write_each([note(1), end_the_transaction])

    assert [type(outcome) for outcome in outcomes] == [StorageFailed, StorageFailed]
    assert noted(writer) == []
    writer.write(note(2))
    assert noted(writer) == [2]


def test_each_commit_is_flushed_as_it_must_be(writer: Writer) -> None:
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


def test_reads_that_share_a_snapshot_take_one_connection_and_renew_it_after_an_error(
    writer: Writer, database: Path
) -> None:
    readers = Readers(database, size=1, wait_s=0.05)

    def count() -> int:
        with readers.reading() as session:
            found: int = session.execute("SELECT count(*) FROM noted").fetchone()[0]
            return found

    def note() -> None:
        writer.write(
            lambda session: session.execute("INSERT INTO noted DEFAULT VALUES")
        )

    with readers.shared.sharing(), readers.shared.sharing():
        note()  # before the first read
        counts = [count()]
        note()
        counts.append(count())
        with pytest.raises(StorageFailed), readers.reading() as session:
            session.execute("SELECT nothing FROM noted")
        counts.append(count())

    assert [*counts, count()] == [1, 1, 2, 2]
    readers.close()
