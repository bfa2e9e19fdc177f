"""One owner per file: known by its process, gone with it; files of other programs are left alone."""

import errno
import fcntl
import os
import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest
from support.stores import open_store

from mnemosyned.errors import DatabaseInUse, StorageFailed
from mnemosyned.storage.sqlite import connections
from mnemosyned.storage.sqlite.ownership import (
    DatabaseProcess,
    database_owner,
    lock_database,
    own_database,
)
from mnemosyned.storage.sqlite.schema import APPLICATION_ID


@pytest.mark.parametrize("socket", [None, "/run/m.sock"])
def test_a_file_has_one_owner_that_is_known_by_its_process_and_socket(
    database: Path, socket: str | None
) -> None:
    assert database_owner(database) is None
    with own_database(database, socket=Path(socket) if socket else None):
        assert database_owner(database) == DatabaseProcess(os.getpid(), socket)

        with (
            pytest.raises(
                DatabaseInUse, match=f"process {os.getpid()}.*{socket or ''}"
            ),
            own_database(database),
        ):
            pass


def test_a_process_that_only_locks_the_database_is_known(database: Path) -> None:
    with lock_database(database):
        assert database_owner(database) == DatabaseProcess(os.getpid(), None)

    assert database_owner(database) is None


def test_a_process_that_looks_for_the_owner_keeps_nobody_from_a_free_database(
    database: Path,
) -> None:
    lock = database.with_name("memory.db.lock")
    looking = os.open(lock, os.O_CREAT | os.O_RDONLY)
    fcntl.flock(looking, fcntl.LOCK_SH)
    threading.Timer(0.05, os.close, [looking]).start()

    with own_database(database):
        assert database_owner(database) == DatabaseProcess(os.getpid(), None)


def test_a_stale_owner_in_the_lock_file_is_ignored(database: Path) -> None:
    database.with_name("memory.db.lock").write_text(
        '{"pid": 1, "socket": "/gone.sock"}' * 9
    )

    assert database_owner(database) is None
    with own_database(database):
        assert database_owner(database) == DatabaseProcess(os.getpid(), None)


def test_other_files_of_the_folder_are_free(database: Path) -> None:
    other = database.with_name("other.db")
    with own_database(database), own_database(other):
        assert database_owner(database) == database_owner(other)


def test_another_name_of_the_same_file_is_the_same_file(
    database: Path, tmp_path: Path
) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(database)

    with (
        open_store(database),
        pytest.raises(DatabaseInUse),
        open_store(link),
    ):
        pass


def test_a_store_that_cannot_open_gives_the_file_free(
    database: Path, tmp_path: Path
) -> None:
    with (
        pytest.raises(StorageFailed, match=r"no migrations.*install mnemosyned again"),
        open_store(database, migrations=tmp_path),
    ):
        pass

    assert database_owner(database) is None


def test_a_lock_that_is_a_link_overwrites_nothing(
    database: Path, tmp_path: Path
) -> None:
    letter = tmp_path / "letter.txt"
    letter.write_text("Dear Ada")
    database.with_name("memory.db.lock").symlink_to(letter)

    with pytest.raises(StorageFailed, match="symbolic link"), own_database(database):
        pass

    assert letter.read_text() == "Dear Ada"


@pytest.mark.parametrize(
    "text",
    ["", "x", "[]", "7", '{"pid": 1}', '{"pid": "x", "socket": 5}', "[" * 4_000, "\0"],
)
def test_garbage_in_a_held_lock_names_no_owner(database: Path, text: str) -> None:
    lock = database.with_name("memory.db.lock")
    with own_database(database):
        lock.write_text(text)

        assert database_owner(database) == DatabaseProcess(0, None)
        with (
            pytest.raises(DatabaseInUse, match="process unknown"),
            own_database(database),
        ):
            pass


def test_a_loop_of_links_is_no_database(tmp_path: Path) -> None:
    loop = tmp_path / "loop.db"
    loop.symlink_to(loop)

    with pytest.raises(StorageFailed, match="loop"), own_database(loop):
        pass


# Another program's SQLite file is refused as it is; a file of ours is known by its header.


def run(database: Path, *statements: str) -> None:
    with closing(sqlite3.connect(database)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def application(database: Path) -> int:
    with closing(sqlite3.connect(database)) as connection:
        number: int = connection.execute("PRAGMA application_id").fetchone()[0]
        return number


@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE TABLE contact (name TEXT)"],
        ["CREATE TABLE contact (name TEXT)", "PRAGMA user_version = 3"],
        ["CREATE TABLE contact (name TEXT)", "PRAGMA user_version = 3000"],
        ["PRAGMA application_id = 77", "CREATE TABLE t (x)"],
        ["CREATE TABLE _sqlite_migrations (id)", "CREATE TABLE contact (name TEXT)"],
    ],
)
def test_the_file_of_another_program_is_refused_unchanged(
    database: Path, statements: list[str]
) -> None:
    run(database, *statements)
    before = database.read_bytes()

    with (
        pytest.raises(StorageFailed, match=r"memory\.db is .* of another program"),
        open_store(database),
    ):
        pass

    assert database.read_bytes() == before
    assert not database.with_name("memory.db-wal").exists()


def test_a_file_of_ours_and_of_an_earlier_version_is_known_by_its_header(
    database: Path, blank: Path
) -> None:
    shutil.copy(blank, database)
    assert application(database) == APPLICATION_ID
    run(database, "PRAGMA application_id = 0")

    with open_store(database):
        pass

    assert application(database) == APPLICATION_ID


def test_a_start_that_was_killed_at_its_first_table_starts_again(
    database: Path,
) -> None:
    run(
        database,
        "CREATE TABLE _sqlite_migrations (migration_set TEXT, name TEXT, applied_at TEXT)",
    )

    with open_store(database) as store:
        assert store.schema_version > 0


def test_a_place_without_locks_is_refused_with_a_hint(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with own_database(database):
        pass

    def refuse(_descriptor: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)

    hint = "the file system has no locks: name a place on a local disk"
    with pytest.raises(StorageFailed, match=hint):
        database_owner(database)
    with pytest.raises(StorageFailed, match=hint), open_store(database):
        pass


FOREIGN = {
    "smaller": 2,
    "larger": 500,
}
"""Pages of the table of a database that something wrote over ours."""


@pytest.mark.parametrize("written", ["nothing", *FOREIGN, "no database"])
@pytest.mark.parametrize("work", ["none", "checkpoint", "vacuum", "vacuum in the log"])
def test_the_log_of_a_killed_process_is_kept_for_its_own_file_alone(
    database: Path,
    tmp_path: Path,
    written: str,
    work: str,
) -> None:
    lock, log = (database.with_name(f"memory.db{end}") for end in (".lock", "-wal"))
    with (
        own_database(database) as file,
        closing(connections.open_writer(database)) as connection,
    ):
        connection.execute(fill(3))
        connection.execute(fill(50))
        connection.execute("PRAGMA wal_checkpoint").fetchall()
        file.save_companion_identities()
        connection.execute("DROP TABLE filled_50")
        if work == "vacuum":
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            file.secure_connection(connection)
            connection.execute("INSERT INTO filled_3 VALUES ('tea')")
        elif work == "vacuum in the log":
            connection.execute("VACUUM")
        left = {path: path.read_bytes() for path in (database, log)}
        if work == "checkpoint":  # which a power cut undoes
            connection.execute(fill(90))
            left[log] = log.read_bytes()
            connection.execute("PRAGMA wal_checkpoint").fetchall()
            assert database.read_bytes() != left[database]
            file.secure_connection(connection)
        left[lock] = lock.read_bytes()
    for path, content in left.items():
        path.write_bytes(content)
    if written in FOREIGN:
        other = tmp_path / "other.db"
        run(other, fill(FOREIGN[written]))
        database.write_bytes(other.read_bytes())
    elif written == "no database":
        database.write_bytes(b"notes")

    with lock_database(database):
        pass

    kept = written == "nothing"
    assert log.exists() == kept
    asides = [path.read_bytes() for path in tmp_path.glob("memory.db.replaced-*-log")]
    assert asides == ([] if kept else [left[log]])


def fill(pages: int) -> str:
    return f"CREATE TABLE filled_{pages} AS SELECT zeroblob({pages * 4096}) AS content"
