"""A backup is whole, private and made beside all other work; it never destroys another file."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from support.fakes import files_containing

from mnemosyned import Memory
from mnemosyned.domain.errors import InvalidRequest, StorageFailed
from mnemosyned.storage.sqlite import SqliteStore


def ids(file: Path) -> list[str]:
    with Memory(file) as memory:
        return sorted(hit.id for hit in memory.recall("tea", limit=100).hits)


@pytest.fixture
def memory(database: Path, blank: Path) -> Memory:
    database.write_bytes(blank.read_bytes())
    return Memory(database)


def test_a_backup_is_a_memory_of_its_own(memory: Memory, tmp_path: Path) -> None:
    with memory:
        memory.remember("tea at four", id="a")

        done = memory.backup(str(tmp_path / "copy.sqlite"))
        memory.remember("tea at five", id="b")

    copy = tmp_path / "copy.sqlite"
    assert (done.file, done.bytes) == (str(copy), copy.stat().st_size)
    assert copy.stat().st_mode & 0o777 == 0o600
    assert not copy.with_name("copy.sqlite.partial").exists()
    assert ids(copy) == ["a"]


def test_a_backup_takes_the_place_of_the_one_before(
    memory: Memory, tmp_path: Path
) -> None:
    with memory:
        memory.backup(str(tmp_path / "copy.sqlite"))
        memory.remember("tea at four", id="a")

        memory.backup(str(tmp_path / "copy.sqlite"))

    assert ids(tmp_path / "copy.sqlite") == ["a"]


def test_a_backup_holds_nothing_that_was_forgotten(
    memory: Memory, tmp_path: Path
) -> None:
    (tmp_path / "copies").mkdir()
    with memory:
        memory.remember("tea with Zqxjvkwyz", id="a")
        memory.forget("a")

        memory.backup(str(tmp_path / "copies" / "copy.sqlite"))

    assert files_containing(tmp_path / "copies", "Zqxjvkwyz") == []


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("copy.sqlite", "no absolute path"),
        ("{room}/memory.db", "a file of the memory itself"),
        ("{room}/memory.db-wal", "a file of the memory itself"),
        ("{room}/link.db", "a file of the memory itself"),
        ("{room}/nowhere/copy.db", "there is no folder"),
        ("{room}", "is no backup"),
        ("/", "is a folder"),
        ("{room}/letter.txt", "is no backup"),
        ("{room}/loop", "cannot be used"),
        ("{room}/used.db", "some program uses"),
    ],
)
def test_a_backup_goes_nowhere_where_it_destroys_something(
    memory: Memory, tmp_path: Path, name: str, says: str
) -> None:
    (tmp_path / "letter.txt").write_text("Dear Ada")
    (tmp_path / "link.db").symlink_to(tmp_path / "memory.db")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with (
        memory,
        Memory(tmp_path / "used.db"),
        pytest.raises(InvalidRequest, match=says) as error,
    ):
        memory.backup(name.format(room=tmp_path))

    assert error.value.field == "file"
    assert (tmp_path / "letter.txt").read_text() == "Dear Ada"


def test_a_backup_that_fails_leaves_the_one_before(
    store: SqliteStore, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.sqlite"
    store.maintenance.back_up(copy)
    before = copy.read_bytes()
    copy.with_name("copy.sqlite.partial").mkdir()

    with pytest.raises(StorageFailed, match="no backup was made"):
        store.maintenance.back_up(copy)

    assert copy.read_bytes() == before


def test_looking_for_copies_leaves_another_memory_of_the_program_locked(
    tmp_path: Path,
) -> None:
    """A second look at an open file drops SQLite's locks of it, and then its log is deleted."""
    look = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('PRAGMA user_version')"
    with Memory(tmp_path / "a.db") as a, Memory(tmp_path / "b.db") as b:
        b.remember("tea at four", id="x")
        receipt = a.forget(query="nobody said this", dry_run=True)
        assert str(tmp_path / "b.db") in receipt.backups

        script = f"{look}.fetchone(); c.execute('SELECT * FROM tier_totals').fetchall(); c.close()"
        subprocess.run(
            [sys.executable, "-c", script, str(tmp_path / "b.db")], check=True
        )

        assert (tmp_path / "b.db-wal").exists()
        b.remember("tea at five", id="y")


def test_a_folder_that_is_closed_to_us_spoils_no_receipt(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may look everywhere, so the refusal is played."""
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed" / "copy.db").touch()
    usual = Path.is_file

    def is_file(path: Path) -> bool:
        if path.parent.name == "closed":
            raise PermissionError(13, "Permission denied", os.fspath(path))
        return usual(path)

    monkeypatch.setattr(Path, "is_file", is_file)
    with memory:
        memory.remember("tea at four", id="a")

        assert memory.forget("a").backups == []


def test_a_backup_says_whose_file_it_is(memory: Memory, tmp_path: Path) -> None:
    with memory:
        memory.backup(str(tmp_path / "copy.sqlite"))

    with closing(sqlite3.connect(tmp_path / "copy.sqlite")) as copy:
        assert copy.execute("PRAGMA application_id").fetchone() == (0x4D6E656D,)
        assert copy.execute("PRAGMA journal_mode").fetchone() == ("delete",)
