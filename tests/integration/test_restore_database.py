"""A backup becomes the database whole, or everything stays as it was."""

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from e2e.consistency import damage
from e2e.daemons import kept
from support.blank_database import MIGRATIONS
from support.cases import thorough

from mnemosyned import Memory
from mnemosyned.cli.maintenance.databases import restore_database, restore_text
from mnemosyned.cli.output.terminal import say_json
from mnemosyned.errors import DatabaseInUse, InvalidRequest, SchemaTooNew, StorageFailed
from mnemosyned.service.backups import NAME
from mnemosyned.storage.sqlite import copies
from mnemosyned.storage.sqlite.forgetting import SqliteDeletion
from mnemosyned.storage.sqlite.schema import blank_database


def remember(file: Path, *ids: str) -> None:
    with Memory(file) as memory:
        for id in ids:
            memory.remember(f"tea with {id}", id=id)


def ids(file: Path) -> list[str]:
    with Memory(file) as memory:
        return sorted(hit.id for hit in memory.recall("tea", limit=100).hits)


@pytest.fixture(scope="module")
def backed_up(blank: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    database = tmp_path_factory.mktemp("backed_up") / "memory.db"
    shutil.copy(blank, database)
    remember(database, "ada")
    with Memory(database) as memory:
        memory.backup(str(database.with_name("copy.db")))
    remember(database, "bob")
    return database.parent


@pytest.fixture
def backup(backed_up: Path, tmp_path: Path) -> Path:
    """A backup with one memory of a database that has two by now."""
    shutil.copytree(backed_up, tmp_path, dirs_exist_ok=True)
    return tmp_path / "copy.db"


def test_a_backup_becomes_the_database_and_the_present_one_is_set_aside(
    backup: Path, database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = restore_database(backup, database)

    assert ids(database) == ["ada"]
    assert done.copy.memories == 1
    assert done.set_aside
    assert ids(done.set_aside) == ["ada", "bob"]
    assert damage(database) == []
    assert database.stat().st_mode & 0o777 == 0o600
    say_json(done)
    printed = json.loads(capsys.readouterr().out)
    assert printed["backup"] == str(backup)
    assert printed["set_aside"] == str(done.set_aside)


def test_a_backup_of_any_earlier_version_becomes_the_database(
    database: Path, tmp_path: Path
) -> None:
    files = sorted(MIGRATIONS.glob("*.sql"))
    earlier = tmp_path / "migrations"
    earlier.mkdir()
    for version, file in enumerate(files, start=1):
        shutil.copy(file, earlier)
        backup = tmp_path / f"version_{version}.db"
        with (
            closing(blank_database(earlier)) as connection,
            closing(sqlite3.connect(backup)) as target,
        ):
            connection.backup(target)

        restore_database(backup, database)

        remember(database, "ada")
        assert ids(database) == ["ada"]


def test_a_log_is_set_aside_with_its_database(backup: Path, database: Path) -> None:
    """What a crash left in the log belongs to the old file; the new one must not see it."""
    files = (database, database.with_name("memory.db-wal"))
    with closing(sqlite3.connect(database)) as crashed:
        crashed.execute("PRAGMA journal_mode = WAL")
        crashed.execute("PRAGMA wal_autocheckpoint = 0")
        crashed.execute("UPDATE working_memory SET importance = 1")
        crashed.commit()
        left = [file.read_bytes() for file in files]
    for file, data in zip(files, left, strict=True):
        file.write_bytes(data)

    done = restore_database(backup, database)

    assert done.set_aside
    assert done.set_aside.with_name(f"{done.set_aside.name}-wal").stat().st_size > 0
    assert ids(database) == ["ada"]
    with closing(sqlite3.connect(done.set_aside)) as aside:
        rows = aside.execute("SELECT DISTINCT importance FROM working_memory")
        assert rows.fetchall() == [(1.0,)]


@pytest.mark.parametrize("present", [None, b"not a database any more"])
def test_a_missing_or_damaged_database_is_restored_and_set_aside_as_it_is(
    backup: Path, database: Path, present: bytes | None
) -> None:
    database.unlink()
    if present:
        database.write_bytes(present)

    done = restore_database(backup, database)

    assert ids(database) == ["ada"]
    aside = done.set_aside.read_bytes() if done.set_aside else None
    assert aside == present


def run_sql(statement: str, file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(statement)


def damage_pages(file: Path) -> None:
    pages = bytearray(file.read_bytes())
    pages[8_192:40_960] = b"\x55" * 32_768
    file.write_bytes(pages)


def replace_by_another_program(file: Path) -> None:
    file.unlink()
    run_sql("CREATE TABLE bookmarks (url TEXT)", file)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (Path.unlink, "there is no such file"),
        (lambda file: file.write_text("Dear Ada"), "it is not an SQLite database"),
        (lambda file: file.write_bytes(b""), "it is not an SQLite database"),
        (lambda file: os.truncate(file, file.stat().st_size // 2), "it is cut off"),
        (damage_pages, "is not restored"),
        (replace_by_another_program, "of another program"),
        (partial(run_sql, "PRAGMA user_version = 9999"), "schema version 9999"),
        (partial(run_sql, "DROP TABLE memory_fts"), "memory_fts is missing"),
    ],
)
def test_what_is_not_whole_is_refused_and_the_database_stays(
    backup: Path, database: Path, spoil: Callable[[Path], object], says: str
) -> None:
    spoil(backup)
    before = sorted(path.name for path in database.parent.iterdir())

    with pytest.raises((InvalidRequest, SchemaTooNew), match=says):
        restore_database(backup, database)

    assert sorted(path.name for path in database.parent.iterdir()) == before
    assert ids(database) == ["ada", "bob"]


def test_the_database_itself_and_one_in_use_are_refused(
    backup: Path, database: Path
) -> None:
    with Memory(database) as memory:
        with pytest.raises(DatabaseInUse, match=f"process {os.getpid()}"):
            restore_database(backup, database)

        assert len(memory.recall("tea", limit=9).hits) == 2
    backup.unlink()
    backup.symlink_to(database)
    with pytest.raises(InvalidRequest, match="the database itself"):
        restore_database(backup, database)


def test_a_full_disk_changes_nothing(
    backup: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(copies, "copy_beside", full)

    with pytest.raises(StorageFailed, match="No space left on device"):
        restore_database(backup, database)

    assert ids(database) == ["ada", "bob"]


class Killed(BaseException):
    """The process ends here."""


STEPS = 7
"""Steps of a restore that name or flush a file."""


def restore_until(
    step: int, backup: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Restore a backup, and be killed at a step."""
    steps = iter(range(step))

    def killed_at_step(call: Callable[..., Any]) -> Callable[..., Any]:
        def call_or_end(*arguments: Path) -> object:
            if next(steps, None) is None:
                raise Killed
            return call(*arguments)

        return call_or_end

    with monkeypatch.context() as killing:
        killing.setattr(Path, "rename", killed_at_step(Path.rename))
        killing.setattr(copies, "flush", killed_at_step(copies.flush))
        restore_database(backup, database)


@pytest.mark.parametrize(
    "step", [*range(0, STEPS, 2), STEPS, *thorough(*range(1, STEPS, 2))]
)
def test_a_restore_that_is_killed_is_finished_or_was_not_begun(
    backup: Path, database: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    with pytest.raises(Killed) if step < STEPS else nullcontext():
        restore_until(step, backup, database, monkeypatch)

    restored = ids(database)  # as the next start finds it
    assert restored == ["ada"] or (restored == ["ada", "bob"] and step < STEPS)
    assert damage(database) == []
    asides = list(database.parent.glob("memory.db.before-restore-*Z"))
    if restored == ["ada"]:
        assert [ids(aside) for aside in asides] == [["ada", "bob"]]
    assert list(database.parent.glob("memory.db.restore-*")) == []


# ------------------------------------------------------- what was forgotten since


def forget(file: Path, *ids: str) -> None:
    with Memory(file) as memory:
        for id in ids:
            memory.forget(id)


@pytest.fixture(scope="module")
def dated_once(blank: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    database = tmp_path_factory.mktemp("dated") / "memory.db"
    shutil.copy(blank, database)
    remember(database, "ada", "bob", "eve", "zoe")
    forget(database, "zoe")
    with Memory(database) as memory:
        memory.sleep(force=True)
        backup = Path(memory.backup().file)
    forget(database, "bob")
    return backup


@pytest.fixture
def dated(dated_once: Path, tmp_path: Path) -> Path:
    """A dated backup of three memories, one of which is forgotten after it, and one before."""
    folder = dated_once.parents[1]
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    return tmp_path / dated_once.relative_to(folder)


def restored(backup: Path, database: Path) -> tuple[int | None, list[str]]:
    """Restore a backup and forget again; return how many were forgotten, and what is kept."""
    done = restore_database(backup, database, forget_again=True)
    return done.forgotten, sorted(kept(database))


def test_what_was_forgotten_after_a_backup_is_back_or_forgotten_again(
    dated: Path, database: Path, tmp_path: Path
) -> None:
    done = restore_database(dated, database)

    assert (done.forgotten, done.forgotten_again) == (1, False)
    assert sorted(kept(database)) == ["ada", "bob", "eve"]
    (remark,) = [line for line in restore_text(done).splitlines() if "back, " in line]
    command = f"mnem restore-db --forget-again {dated}"
    assert remark.endswith(f"1 memory; to forget again: {command}")

    done = restore_database(dated, database, forget_again=True)

    assert (done.forgotten, done.forgotten_again, done.list_begins) == (1, True, None)
    assert done.copy.memories == 2
    assert sorted(kept(database)) == ["ada", "eve"]
    assert b"bob" not in database.read_bytes()
    assert damage(database) == []
    left = {file.name.split("-2")[0] for file in database.parent.glob("memory.db.*")}
    assert left <= {"memory.db.lock", "memory.db.before-restore"}
    # The list of what was forgotten goes with the folder of backups.
    moved = tmp_path / "another machine" / "backups"
    shutil.copytree(dated.parent, moved)
    elsewhere = moved.with_name("memory.db")
    assert restored(moved / dated.name, elsewhere) == (1, ["ada", "eve"])


def test_what_is_remembered_again_stays_in_the_next_backup_and_what_is_set_aside(
    dated: Path, database: Path, tmp_path: Path
) -> None:
    remember(database, "bob")
    with Memory(database) as memory:
        memory.backup(str(tmp_path / "next.db"))

    assert restored(tmp_path / "next.db", database) == (0, ["ada", "bob", "eve"])
    done = restore_database(dated, database, forget_again=True)
    assert (done.forgotten, sorted(kept(database))) == (1, ["ada", "eve"])
    assert done.set_aside
    assert restore_database(done.set_aside, database).forgotten == 0
    assert sorted(kept(database)) == ["ada", "bob", "eve"]


@pytest.mark.parametrize("is_there", [True, False])
def test_without_a_list_or_its_key_nothing_is_claimed(
    dated: Path, database: Path, *, is_there: bool
) -> None:
    file = dated.parent / NAME
    lines = file.read_bytes().split(b"\n", 1)[1]
    file.unlink()
    if is_there:
        file.write_bytes(b'{"at":"2026' + lines)

    done = restore_database(dated, database, forget_again=True)

    assert done.forgotten is None
    assert sorted(kept(database)) == ["ada", "bob", "eve"]
    assert "may be back" in restore_text(done)


def test_a_backup_that_the_list_does_not_know_is_placed_by_its_date(
    dated: Path, database: Path, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(dated)) as changed, changed:
        changed.execute("UPDATE archive SET importance = 0.9")
    os.utime(dated)
    older = dated.with_name("memory-20200101T000000Z.db")
    dated.rename(older)
    copied = tmp_path / "copied.db"
    shutil.copy(older, copied)

    now = restore_database(copied, database, forget_again=True)
    assert (now.forgotten, now.list_begins) == (0, None)
    done = restore_database(older, database, forget_again=True)

    assert done.forgotten == 1
    assert done.list_begins
    assert "the list of what was forgotten begins at" in restore_text(done)
    assert sorted(kept(database)) == ["ada", "eve"]


def test_a_memory_that_is_put_back_is_not_forgotten_again(
    database: Path, blank: Path
) -> None:
    shutil.copy(blank, database)
    remember(database, "ada", "bob")
    settings: dict[str, Any] = {"forget.grace_hours": 24}
    with Memory(database, **settings) as memory:
        backup = Path(memory.backup().file)
        memory.forget(["ada", "bob"])
        memory.restore("ada")

    assert restored(backup, database) == (1, ["ada"])


def test_a_learning_that_could_not_be_forgotten_is_taken_back(
    dated: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise StorageFailed("the disk is full")

    with Memory(database) as memory, monkeypatch.context() as patch:
        memory.learn("Always answer in French.")
        patch.setattr(SqliteDeletion, "forget_learnings", full)
        with pytest.raises(StorageFailed):
            memory.forget(query="French")
        assert memory.learnings(query="French")

    events = (dated.parent / NAME).read_text().splitlines()[-2:]
    assert [("forgotten" in event, "kept" in event) for event in events] == [
        (True, False),
        (False, True),
    ]


def test_a_memory_that_could_not_be_forgotten_is_not_on_the_list(
    dated: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise StorageFailed("the disk is full")

    with Memory(database) as memory, monkeypatch.context() as patch:
        patch.setattr(SqliteDeletion, "forget", full)
        with pytest.raises(StorageFailed):
            memory.forget("ada")

    assert restored(dated, database) == (1, ["ada", "eve"])


def test_the_list_is_private_holds_no_id_and_survives_a_line_that_was_cut_off(
    dated: Path, database: Path
) -> None:
    file = dated.parent / NAME
    os.truncate(file, file.stat().st_size - 5)  # a crash, amid the line of bob
    forget(database, "eve")

    text = file.read_bytes()
    assert file.stat().st_mode & 0o777 == 0o600
    # Hexadecimal digits may spell "ada".
    assert not any(id in text for id in (b"bob", b"eve", b"zoe"))
    assert restored(dated, database) == (1, ["ada", "bob"])


def test_a_list_that_cannot_be_written_holds_up_nothing(
    dated: Path, database: Path
) -> None:
    (dated.parent / NAME).unlink()
    (dated.parent / NAME).mkdir()

    forget(database, "eve")
    with Memory(database) as memory:
        assert memory.backup(str(database.with_name("copy.db"))).memories == 1
    assert sorted(kept(database)) == ["ada"]
