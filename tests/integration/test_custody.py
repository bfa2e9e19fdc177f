"""What a deleted file held comes back whole at every moment, whatever ends the process amid it."""

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from support.fakes import memory, remember_batch, working_ids
from support.stores import open_store

from mnemosyned import Memory
from mnemosyned.errors import (
    DatabaseInUse,
    DatabaseReplaced,
    StorageFailed,
)
from mnemosyned.storage.sqlite import ownership
from mnemosyned.storage.sqlite.store import SqliteStore

pytestmark = pytest.mark.sqlite


def reopened(database: Path) -> list[str]:
    with open_store(database) as store:
        return working_ids(store)


@pytest.fixture
def free(database: Path, blank: Path) -> Path:
    """A file of a memory that nobody has open."""
    return Path(shutil.copy(blank, database))


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("step", ["place", "flush", "copy_beside"])
def test_a_rescue_that_is_cut_short_is_finished_by_the_next_start(
    free: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """The state of the disk at that moment is what the next process finds."""
    found = tmp_path / "after"
    with open_store(free) as store:
        remember_batch(store, memory("1"), memory("2"))
        free.unlink()
        usual = getattr(ownership, step)

        def killed(*given: object) -> None:
            usual(*given)
            if not found.exists():
                shutil.copytree(tmp_path, found, ignore=shutil.ignore_patterns("after"))
            raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(ownership, step, killed)
            with pytest.raises(Killed):
                remember_batch(store, memory("3"))

    left = found / "memory.db"
    if step == "copy_beside":
        assert not left.exists(), "nobody knows whether the copy is whole"
        assert reopened(left) == []
    else:
        assert reopened(left) == ["1", "2"]
        assert not left.with_name("memory.db.rescued").exists()


def test_a_rescued_copy_takes_no_other_files_place(free: Path, blank: Path) -> None:
    rescued = Path(shutil.copy(blank, free.with_name("memory.db.rescued")))

    assert reopened(free) == []
    assert rescued.exists()


def test_a_program_is_told_of_a_replaced_file(free: Path, blank: Path) -> None:
    with Memory(free) as embedded:
        embedded.remember("tea at four", id="a")
        Path(shutil.copy(blank, free.with_name("other.db"))).rename(free)

        with pytest.raises(DatabaseReplaced, match="Restart"):
            embedded.remember("tea at five", id="b")

    (aside,) = free.parent.glob("memory.db.replaced-*")
    assert reopened(aside) == ["a"]
    assert reopened(free) == []


def test_an_embedded_memory_puts_a_deleted_file_back_at_its_end(database: Path) -> None:
    with Memory(database) as embedded:
        embedded.remember("tea at four", id="a")
        database.unlink()

    assert reopened(database) == ["a"]


def test_closing_says_so_where_a_deleted_file_cannot_be_saved(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ownership, "copy_beside", refuse)
    embedded = Memory(database)
    embedded.remember("tea at four", id="a")
    database.unlink()

    with pytest.raises(DatabaseReplaced, match="free space"):
        embedded.close()


def test_a_reader_that_connects_finds_a_file_put_back(store: SqliteStore) -> None:
    remember_batch(store, memory("1"))
    store.database.unlink()

    with store._readers.snapshot():  # noqa: SLF001 it keeps the connection that there is
        assert store.memories.get("1").id == "1"

    assert store.database.exists()


def test_every_write_looks_where_the_path_leads(store: SqliteStore) -> None:
    store.database.rename(store.database.with_name("moved.db"))

    for write in (
        lambda: remember_batch(store, memory("1")),
        lambda: store.deletion.forget(["1"]),
        store.maintenance.flush,
        store.deletion.purge_deleted,
        store.maintenance.ensure_durable,
        lambda: store.maintenance.back_up(store.database.with_name("copy.db")),
    ):
        with pytest.raises(DatabaseReplaced):
            write()


def test_a_file_is_one_file_under_every_name(store: SqliteStore) -> None:
    link = store.database.with_name("link.db")
    os.link(store.database, link)
    with pytest.raises(DatabaseInUse, match="another name"):
        reopened(link)

    remember_batch(store, memory("1"))
    with closing(sqlite3.connect(store.database)) as connection:
        connection.execute("SELECT * FROM tier_totals").fetchall()
    assert store.database.with_name("memory.db-wal").exists()
    link.unlink()


def test_a_free_file_with_two_names_is_refused(free: Path) -> None:
    os.link(free, free.with_name("link.db"))

    with pytest.raises(StorageFailed, match=r"hard links.*remove the other names"):
        reopened(free)


def test_a_lost_lock_file_lets_nobody_in(store: SqliteStore) -> None:
    store.database.with_name("memory.db.lock").unlink()

    with pytest.raises(DatabaseInUse, match="lock file was deleted"):
        reopened(store.database)


@pytest.mark.parametrize("mode", [0o644, 0o666, 0o640])
def test_files_that_others_can_read_are_closed(free: Path, mode: int) -> None:
    free.chmod(mode)

    with open_store(free) as store:
        remember_batch(store, memory("1"))
        files = free.parent.glob("memory.db*")
        assert {path.stat().st_mode & 0o777 for path in files} == {0o600}


@pytest.mark.parametrize(
    ("mode", "warned"), [(0o777, True), (0o770, True), (0o1777, False)]
)
def test_a_folder_in_which_others_can_replace_files_is_named(
    tmp_path: Path, mode: int, *, warned: bool
) -> None:
    tmp_path.chmod(mode)

    with Memory(tmp_path / "memory.db") as embedded:
        warnings = embedded.status().warnings

    assert [str(tmp_path) in warning for warning in warnings] == [True] * warned
