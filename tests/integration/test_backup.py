"""A backup is whole, private and made beside all other work; it never destroys another file."""

import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import TypeVar, cast

import pytest
from support.fakes import FakeClock
from support.services import Lab, make_keeper

from mnemosyned import Memory
from mnemosyned.backup_schedule import backup_name
from mnemosyned.cli.commands.backup import back_up, open_whole_file
from mnemosyned.client.connection import Connection
from mnemosyned.errors import InvalidRequest, StorageFailed
from mnemosyned.service.backups import NAME, BackupKeeper, forgotten_since
from mnemosyned.storage.sqlite import copies
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.verbs.request import Request
from mnemosyned.verbs.retention import Backup


def ids(file: Path) -> list[str]:
    with Memory(file) as memory:
        return sorted(hit.id for hit in memory.recall("tea", limit=100).hits)


@pytest.fixture
def memory(database: Path, blank: Path) -> Iterator[Memory]:
    database.write_bytes(blank.read_bytes())
    with Memory(database) as memory:
        yield memory


def test_a_backup_is_a_memory_of_its_own(memory: Memory, tmp_path: Path) -> None:
    copy = tmp_path / "copy.sqlite"
    memory.backup(str(copy))
    memory.remember("tea at four", id="a")

    done = memory.backup(str(copy))  # it takes the place of the one before
    memory.remember("tea at five", id="b")

    assert (done.file, done.bytes) == (str(copy), copy.stat().st_size)
    assert (done.memories, done.episodes, done.problems) == (1, 0, [])
    assert copy.stat().st_mode & 0o777 == 0o600
    assert not copy.with_name("copy.sqlite.partial").exists()
    with closing(sqlite3.connect(copy)) as opened:
        assert opened.execute("PRAGMA application_id").fetchone() == (0x4D6E656D,)
        assert opened.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    assert ids(copy) == ["a"]


def test_backups_to_one_file_at_once_do_not_disturb_each_other(
    memory: Memory, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.sqlite"
    memory.remember("tea at four", id="a")

    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(memory.backup, [str(copy)] * 12))

    assert {each.memories for each in done} == {1}
    assert ids(copy) == ["a"]


def test_two_writers_of_one_file_do_not_disturb_each_other(tmp_path: Path) -> None:
    path = tmp_path / "export.jsonl"

    with open_whole_file(path) as first:
        first.write(b"whole")
        with (
            pytest.raises(InvalidRequest, match="another process writes"),
            open_whole_file(path),
        ):
            pass

    assert path.read_bytes() == b"whole"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("copy.sqlite", "not an absolute path"),
        ("{room}/memory.db", "a file of the memory itself"),
        ("{room}/memory.db-wal", "a file of the memory itself"),
        ("{room}/link.db", "a file of the memory itself"),
        ("{room}/nowhere/copy.db", "there is no folder"),
        ("{room}/letter.txt", "not a backup"),
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
    with Memory(tmp_path / "used.db"), pytest.raises(InvalidRequest, match=says) as no:
        memory.backup(name.format(room=tmp_path))

    assert no.value.field == "file"
    assert (tmp_path / "letter.txt").read_text() == "Dear Ada"


@pytest.mark.sqlite
def test_a_failed_backup_leaves_the_one_before(
    store: SqliteStore, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.sqlite"
    store.maintenance.back_up(copy)
    before = copy.read_bytes()
    copy.with_name("copy.sqlite.partial").mkdir()

    with pytest.raises(StorageFailed, match="no backup was made"):
        store.maintenance.back_up(copy)

    assert copy.read_bytes() == before


@pytest.mark.sqlite
def test_a_copy_is_flushed_before_it_has_its_name_and_the_name_after(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy, placed = tmp_path / "copy.sqlite", tmp_path / "placed.sqlite"
    flushed: list[tuple[Path, bool, bool]] = []
    flush = copies.flush

    def note(path: Path) -> None:
        flushed.append((path, copy.exists(), placed.exists()))
        flush(path)

    monkeypatch.setattr(copies, "flush", note)
    store.maintenance.back_up(copy)
    copies.place(copy, placed)

    partial = tmp_path / "copy.sqlite.partial"
    after = (tmp_path, True, False), (tmp_path, False, True)
    assert flushed == [(partial, False, False), *after]


def test_looking_for_copies_leaves_another_memory_locked(tmp_path: Path) -> None:
    """A second look at an open file drops SQLite's locks of it, and then its log is deleted."""
    look = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('PRAGMA user_version')"
    with Memory(tmp_path / "a.db") as a, Memory(tmp_path / "b.db") as b:
        b.remember("tea at four", id="x")
        receipt = a.forget(query="nobody said this", dry_run=True)
        assert str(tmp_path / "b.db") in receipt.backups

        script = f"{look}.fetchone(); c.execute('SELECT * FROM tier_totals').fetchall(); c.close()"
        command = [sys.executable, "-c", script, str(tmp_path / "b.db")]
        subprocess.run(command, check=True)

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
    memory.remember("tea at four", id="a")

    assert memory.forget("a").backups == []


@pytest.mark.parametrize("folder", ["backups", "copies"])
def test_a_backup_without_a_name_gets_its_date(
    memory: Memory, tmp_path: Path, folder: str
) -> None:
    target = None
    if folder == "copies":
        (tmp_path / folder).mkdir(0o700)
        target = str(tmp_path / folder)

    copy = Path(memory.backup(target).file)

    assert copy.parent == tmp_path / folder
    assert re.fullmatch(r"memory-\d{8}T\d{6}Z\.db", copy.name)
    assert copy.parent.stat().st_mode & 0o777 == 0o700
    status = memory.status().backup
    assert status.folder == str(tmp_path / "backups")
    assert status.count == (folder == "backups")


def test_a_copy_that_lacks_something_gets_no_name(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """VACUUM has no such fault that can be brought about, so the copy is damaged behind it."""
    copy_whole = copies.copy_beside

    def copy_in_part(source: sqlite3.Connection, target: Path) -> Path:
        partial = copy_whole(source, target)
        os.truncate(partial, partial.stat().st_size - 4_096)
        return partial

    monkeypatch.setattr(copies, "copy_beside", copy_in_part)

    with pytest.raises(StorageFailed, match="no backup was made"):
        store.maintenance.back_up(tmp_path / "copy.sqlite")

    assert list(tmp_path.glob("copy*")) == []


def test_a_database_with_a_fault_is_backed_up_and_the_fault_is_named(
    database: Path, blank: Path, tmp_path: Path
) -> None:
    database.write_bytes(blank.read_bytes())
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("INSERT INTO detail VALUES (7, 1, 'x', 0)")

    with Memory(database) as memory:
        done = memory.backup(str(tmp_path / "copy.sqlite"))

    assert done.problems == ["rows that belong to nothing: 1 (exact values)"]


@pytest.fixture
def copies_folder(tmp_path: Path) -> Path:
    return tmp_path / "copies"


@pytest.fixture
def keeper(lab: Lab, copies_folder: Path) -> BackupKeeper:
    values = {"dir": str(copies_folder), "schedule": "daily", "keep": "2 daily"}
    lab.change({f"backup.{name}": value for name, value in values.items()})
    return make_keeper(lab.store, lab.cycle, lab.settings)


def made(folder: Path) -> list[str]:
    return sorted({file.name for file in folder.glob("*")} - {NAME})


@pytest.mark.sqlite
def test_a_scheduled_backup_is_made_once_an_interval(
    keeper: BackupKeeper, clock: FakeClock, copies_folder: Path
) -> None:
    keeper.run_scheduled()
    clock.advance(hours=23)
    keeper.run_scheduled()
    assert len(made(copies_folder)) == 1

    clock.advance(hours=1)
    keeper.run_scheduled()

    assert len(made(copies_folder)) == 2
    assert keeper.status().last == clock.now()
    assert all(ids(copies_folder / name) == [] for name in made(copies_folder))


@pytest.mark.sqlite
def test_only_scheduled_backups_are_removed_when_they_are_too_many(
    keeper: BackupKeeper, clock: FakeClock, copies_folder: Path
) -> None:
    by_hand = Path(keeper.back_up(Backup()).file)
    (copies_folder / "letter.db").write_text("Dear Ada")
    for _ in range(4):
        clock.advance(days=1)
        keeper.run_scheduled()

    files = made(copies_folder)
    assert len([name for name in files if name.endswith(".auto.db")]) == 2
    assert {by_hand.name, "letter.db"} <= set(files)


@pytest.mark.sqlite
def test_the_list_of_what_was_forgotten_ends_with_the_last_backup_that_needs_it(
    lab: Lab, keeper: BackupKeeper, copies_folder: Path
) -> None:
    for day in range(4):
        lab.remember("tea", id=f"m{day}")
        keeper.run_scheduled()
        lab.clock.advance(days=1)
        lab.forget(f"m{day}")
    keeper.run_scheduled()

    oldest, last = (
        forgotten_since(copies_folder / name, copies_folder)
        for name in made(copies_folder)
    )
    assert oldest
    assert oldest.among(f"m{day}" for day in range(4)) == ["m3"]
    assert oldest.begins is None
    assert len((copies_folder / NAME).read_text().splitlines()) <= 7
    assert last
    assert last.hashes == frozenset()


@pytest.mark.sqlite
def test_no_backup_joins_a_cycle(
    lab: Lab, keeper: BackupKeeper, copies_folder: Path
) -> None:
    with lab.cycle.lease.exclusive():
        keeper.run_scheduled()
        assert made(copies_folder) == []

    keeper.run_scheduled()

    assert len(made(copies_folder)) == 1


@pytest.mark.sqlite
def test_an_old_backup_and_a_failed_one_are_warned_of(
    keeper: BackupKeeper, clock: FakeClock, copies_folder: Path
) -> None:
    keeper.run_scheduled()
    assert keeper.warnings() == []
    moved = copies_folder.rename(copies_folder.with_name("moved"))
    copies_folder.write_text("in the way")
    clock.advance(days=1)
    keeper.run_scheduled()
    assert "failed" in keeper.warnings()[0]
    copies_folder.unlink()
    moved.rename(copies_folder)

    clock.advance(days=2)

    assert "older than twice the interval" in keeper.warnings()[-1]


@pytest.mark.sqlite
def test_parts_that_a_crash_left_go_although_the_next_backup_fails(
    keeper: BackupKeeper, clock: FakeClock, copies_folder: Path
) -> None:
    copies_folder.mkdir()
    part = copies_folder / "memory-20260101T000000Z.auto.db.partial"
    for left in (part, part.with_name(f"{part.name}-journal")):
        left.touch()
        os.utime(left, (0, 0))
    in_the_way = f"{backup_name(clock.now(), scheduled=True)}.partial"
    (copies_folder / in_the_way).mkdir()

    keeper.run_scheduled()

    assert "failed" in keeper.warnings()[0]
    assert made(copies_folder) == [in_the_way]


@pytest.mark.sqlite
def test_a_backup_dated_by_a_wrong_clock_does_not_end_the_schedule(
    keeper: BackupKeeper, clock: FakeClock, copies_folder: Path
) -> None:
    clock.advance(days=900)
    keeper.run_scheduled()
    clock.advance(days=-900)

    keeper.run_scheduled()

    assert len(made(copies_folder)) == 2


@pytest.mark.sqlite
def test_a_cron_schedule_counts_from_a_backup(lab: Lab, keeper: BackupKeeper) -> None:
    lab.change({"backup.schedule": "30 3 * * *"})
    keeper.run_scheduled()

    due = keeper.next_backup()

    assert due
    assert (due.hour, due.minute) == (3, 30)
    assert timedelta() < due - lab.clock.now() <= timedelta(days=1)


# A daemon in a sandbox makes a backup in its own folder; the shell moves it where it was wanted.


R = TypeVar("R")


class Sandboxed:
    """A client of a daemon that may write to its own folders alone."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def call(self, request: Request[R]) -> R:
        if isinstance(request, Backup) and request.file is not None:
            raise StorageFailed(f"{request.file}: Read-only file system")
        return self._memory.call(request)


@pytest.fixture
def sandboxed(
    tmp_path: Path, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> Connection:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    memory.remember("tea at four", id="a")
    return cast("Connection", Sandboxed(memory))


def own_backups(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "state").rglob("memory-*.db*"))


def test_a_backup_leaves_the_sandbox(sandboxed: Connection, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"

    done = back_up(sandboxed, Backup(str(target)))

    assert (done.file, done.memories) == (str(target), 1)
    assert target.stat().st_size == done.bytes
    assert target.stat().st_mode & 0o777 == 0o600
    assert own_backups(tmp_path) == []
    assert ids(target) == ["a"]


def test_a_note_of_a_person_is_no_backup(sandboxed: Connection, tmp_path: Path) -> None:
    note = tmp_path / "copy.db"
    note.write_text("My own words")

    with pytest.raises(InvalidRequest, match="exists already and is not a backup"):
        back_up(sandboxed, Backup(str(note)))

    assert note.read_text() == "My own words"
    assert own_backups(tmp_path) == []
    assert sorted(path.name for path in tmp_path.glob("copy.db*")) == ["copy.db"]
