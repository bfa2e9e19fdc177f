"""What a deleted file held comes back whole at every moment, whatever ends the process amid it."""

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.fakes import memory, remember_batch, working_ids

from mnemosyned import Memory
from mnemosyned.errors import (
    ConfigInvalid,
    DatabaseInUse,
    DatabaseReplaced,
    StorageFailed,
)
from mnemosyned.paths import shipped
from mnemosyned.storage.sqlite import ownership
from mnemosyned.storage.sqlite.store import SqliteStore, open_store

pytestmark = pytest.mark.sqlite


def reopened(database: Path) -> list[str]:
    with open_store(database, migrations=shipped("migrations")) as store:
        return working_ids(store)


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("step", ["place", "flush", "copy_beside"])
def test_a_rescue_that_is_cut_short_is_finished_by_the_next_start(
    database: Path,
    blank: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
) -> None:
    """The state of the disk at that moment is what the next process finds."""
    found = tmp_path / "after"
    shutil.copy(blank, database)
    with open_store(database, migrations=shipped("migrations")) as store:
        remember_batch(store, memory("1"), memory("2"))
        database.unlink()
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
    if (
        step == "copy_beside"
    ):  # a copy that nobody knows to be whole is not taken for the memory
        assert not left.exists()
        assert reopened(left) == []
    else:
        assert reopened(left) == ["1", "2"]
        assert not left.with_name("memory.db.rescued").exists()


def test_a_rescued_copy_takes_no_other_files_place(database: Path, blank: Path) -> None:
    shutil.copy(blank, database)
    rescued = Path(shutil.copy(blank, database.with_name("memory.db.rescued")))

    assert reopened(database) == []

    assert rescued.exists()


def test_a_program_with_an_embedded_memory_is_told_of_a_replaced_file(
    database: Path, blank: Path
) -> None:
    with Memory(database) as embedded:
        embedded.remember("tea at four", id="a")
        Path(shutil.copy(blank, database.with_name("other.db"))).rename(database)

        with pytest.raises(DatabaseReplaced, match="Restart"):
            embedded.remember("tea at five", id="b")

    (aside,) = database.parent.glob("memory.db.replaced-*")
    assert reopened(aside) == ["a"]
    assert reopened(database) == []


def test_an_embedded_memory_puts_a_deleted_file_back_when_it_closes(
    database: Path,
) -> None:
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


def test_a_reader_that_connects_finds_the_deleted_file_put_back(
    store: SqliteStore,
) -> None:
    remember_batch(store, memory("1"))
    store.database.unlink()

    with store._readers.snapshot():  # noqa: SLF001 it keeps the connection that there is
        known = store.memories.get("1")

    assert known.id == "1"
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


# ------------------------------------------------------------------ one owner


@pytest.fixture
def hard_link(store: SqliteStore) -> Iterator[Path]:
    link = store.database.with_name("link.db")
    os.link(store.database, link)
    yield link
    link.unlink()


def test_a_file_is_one_file_under_every_name(
    store: SqliteStore, hard_link: Path
) -> None:
    with (
        pytest.raises(DatabaseInUse, match="another name"),
        open_store(hard_link, migrations=shipped("migrations")),
    ):
        pass

    remember_batch(store, memory("1"))
    look = closing(sqlite3.connect(store.database))
    with look as connection:
        connection.execute("SELECT * FROM tier_totals").fetchall()
    assert store.database.with_name("memory.db-wal").exists()


def test_a_free_file_with_two_names_is_refused_with_what_to_do(
    database: Path, blank: Path
) -> None:
    shutil.copy(blank, database)
    os.link(database, database.with_name("link.db"))

    with (
        pytest.raises(StorageFailed, match=r"hard links.*remove the other names"),
        open_store(database, migrations=shipped("migrations")),
    ):
        pass


def test_a_lost_lock_file_lets_nobody_in(store: SqliteStore) -> None:
    store.database.with_name("memory.db.lock").unlink()

    with (
        pytest.raises(DatabaseInUse, match="lock file was deleted"),
        open_store(store.database, migrations=shipped("migrations")),
    ):
        pass


# --------------------------------------------------------------- permissions


@pytest.mark.parametrize("mode", [0o644, 0o666, 0o640])
def test_files_that_others_can_read_are_closed_to_them(
    database: Path, blank: Path, mode: int
) -> None:
    shutil.copy(blank, database)
    database.chmod(mode)

    with open_store(database, migrations=shipped("migrations")) as store:
        remember_batch(store, memory("1"))
        modes = {
            path.stat().st_mode & 0o777 for path in database.parent.glob("memory.db*")
        }

    assert modes == {0o600}


@pytest.mark.parametrize(
    ("mode", "warned"), [(0o777, True), (0o770, True), (0o1777, False)]
)
def test_a_folder_in_which_others_can_replace_files_is_named(
    tmp_path: Path, mode: int, *, warned: bool
) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(mode)

    with Memory(folder / "memory.db") as embedded:
        warnings = embedded.status().warnings

    assert [str(folder) in warning for warning in warnings] == [True] * warned


@pytest.mark.parametrize(
    "name", ["~nobody-of-this-name/memory.db", "loop.db", "a\0b.db"]
)
def test_a_path_that_leads_nowhere_is_a_wrong_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("loop.db").symlink_to("loop.db")

    with pytest.raises(ConfigInvalid) as error:
        Memory(name)

    assert error.value.field == "database"
