"""The database file is deleted, moved or replaced under the daemon; nothing is lost by that."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from e2e.conftest import Start
from e2e.consistency import damage
from e2e.daemons import Daemon, eventually, kept, running

pytestmark = [pytest.mark.e2e, pytest.mark.fault]

SOON = {"WATCHDOG_USEC": "200000"}
"""The daemon looks after its file every tenth of a second, and not every ten."""


def remember(daemon: Daemon, *ids: str) -> None:
    for id in ids:
        answer = daemon.post("remember", id=id, content=f"Tea for {id}.")
        assert answer.status == 200, answer


def wal(daemon: Daemon) -> Path:
    return daemon.database.with_name("memory.db-wal")


def test_a_deleted_database_is_put_back_before_the_next_memory(daemon: Daemon) -> None:
    remember(daemon, "a", "b")
    daemon.database.unlink()

    remember(daemon, "c")
    daemon.kill()

    assert kept(daemon.database) == ["a", "b", "c"]
    assert daemon.database.stat().st_mode & 0o777 == 0o600
    with running(daemon.home) as again:
        assert again.post("get", id="a").status == 200
        assert again.stop() == 0
    assert damage(daemon.database) == []


def test_a_deleted_database_is_put_back_though_nobody_writes(start: Start) -> None:
    daemon = start(**SOON)
    remember(daemon, "a")

    daemon.database.unlink()

    eventually(daemon.database.exists, "the database is back")
    daemon.kill()  # perhaps while it opens the file, which leaves a journal to roll back
    with running(daemon.home) as again:
        assert kept(again.database) == ["a"]
        assert again.stop() == 0
    assert damage(daemon.database) == []


def test_a_deleted_database_is_put_back_by_a_stop(daemon: Daemon) -> None:
    remember(daemon, "a")
    daemon.database.unlink()
    daemon.database.with_name("memory.db-wal").unlink()
    daemon.database.with_name("memory.db-shm").unlink()

    assert daemon.stop() == 0

    assert kept(daemon.database) == ["a"]
    assert damage(daemon.database) == []


def test_a_deleted_folder_is_put_back(start: Start, tmp_path: Path) -> None:
    daemon = start(database=tmp_path / "state" / "memory.db")
    remember(daemon, "a")
    shutil.rmtree(daemon.database.parent)

    remember(daemon, "b")

    assert kept(daemon.database) == ["a", "b"]


def test_readers_see_the_file_that_was_put_back(daemon: Daemon) -> None:
    remember(daemon, "a")
    for _ in range(6):  # every reader has a connection by now
        daemon.post("recall", query="tea")
    daemon.database.unlink()
    remember(daemon, "b")

    for _ in range(6):
        found = daemon.post("recall", query="tea").body["hits"]

        assert {hit["id"] for hit in found} == {"a", "b"}


def test_a_file_that_took_its_place_is_never_touched(start: Start) -> None:
    daemon = start(**SOON)
    remember(daemon, "old")
    backup = daemon.home / "backup.db"
    assert daemon.post("backup", file=str(backup)).status == 200
    remember(daemon, "new")
    restored = backup.read_bytes()

    backup.rename(daemon.database)
    refused = daemon.post("remember", id="lost", content="Tea.")

    assert refused.status == 503
    assert refused.error == ("database_replaced", None)
    assert "Restart the daemon" in refused.body["error"]["message"]
    assert daemon.post("remember", id="lost", content="Tea.").status == 503
    (aside,) = daemon.home.glob("memory.db.replaced-*")
    # It warns, or is refused if its reader had to open the file just then: both name the copy.
    status = daemon.post("status").body
    named = (
        status["error"]["message"] if "error" in status else "".join(status["warnings"])
    )
    assert str(aside) in named
    beats = daemon.notices.received.count("WATCHDOG=1")
    assert daemon.stop() == 0
    assert daemon.notices.received.count("WATCHDOG=1") <= beats + 1
    assert kept(aside) == ["new", "old"]
    assert aside.stat().st_mode & 0o777 == 0o600
    assert daemon.database.read_bytes() == restored
    with running(daemon.home) as again:
        assert kept(again.database) == ["old"]
        assert again.post("status").body["warnings"] == []
        again.stop()
    assert damage(daemon.database) == []


def test_a_moved_database_is_whole_where_it_is_now(daemon: Daemon) -> None:
    remember(daemon, "a")
    moved = daemon.database.rename(daemon.home / "elsewhere.db")

    refused = daemon.post("remember", content="Tea.")

    assert refused.error == ("database_replaced", None)
    daemon.kill()
    assert kept(moved) == ["a"]


def test_a_database_that_was_moved_and_comes_back_is_used_again(daemon: Daemon) -> None:
    remember(daemon, "a")
    moved = daemon.database.rename(daemon.home / "elsewhere.db")
    assert daemon.post("remember", content="Tea.").status == 503

    moved.rename(daemon.database)

    remember(daemon, "b")
    assert daemon.post("status").body["warnings"] == []
    assert daemon.stop() == 0
    assert kept(daemon.database) == ["a", "b"]


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
def test_what_a_deleted_log_held_is_in_the_file(daemon: Daemon, suffix: str) -> None:
    remember(daemon, "a")
    daemon.database.with_name(f"memory.db{suffix}").unlink()

    refused = daemon.post("remember", content="Tea.")

    assert refused.error == ("database_replaced", None)
    daemon.kill()
    assert kept(daemon.database) == ["a"]
    with running(daemon.home) as again:
        remember(again, "b")


def test_a_copy_of_a_young_file_holds_what_was_remembered(start: Start) -> None:
    daemon = start(**SOON)
    fresh = Path(shutil.copy(daemon.database, daemon.home / "fresh.db"))
    assert kept(fresh) == []  # it has its tables

    remember(daemon, "a", "b")

    copy = daemon.home / "copy.db"

    def copied() -> bool:
        shutil.copy(daemon.database, copy)
        return kept(copy) == ["a", "b"]

    eventually(copied, "the file alone has both memories")


def test_a_program_that_only_looks_does_not_take_the_log_away(daemon: Daemon) -> None:
    """An SQLite shell that ends deletes the log of a database that nobody has locked."""
    remember(daemon, "a")
    os.link(
        daemon.database, daemon.home / "notes.link"
    )  # the receipt's search opens what it is
    daemon.post("forget", query="nobody said this", dry_run=True)
    (daemon.home / "notes.link").unlink()
    script = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); "
        "c.execute('SELECT count(*) FROM working_memory').fetchone(); c.close()"
    )

    subprocess.run([sys.executable, "-c", script, str(daemon.database)], check=True)

    assert wal(daemon).exists()
    remember(daemon, "b")


@pytest.mark.parametrize("is_raw", [False, True], ids=["backup", "raw"])
def test_a_copy_over_the_file_is_noticed_and_left_as_it_is(
    start: Start, *, is_raw: bool
) -> None:
    daemon = start(**SOON)
    remember(daemon, "old")
    backup = daemon.home / "backup.db"
    if is_raw:
        shutil.copy(daemon.database, backup)
    else:
        assert daemon.post("backup", file=str(backup)).status == 200
    many = [{"id": f"m{number}", "content": "Tea. " * 500} for number in range(99)]
    assert daemon.post("remember_many", memories=many).status == 200
    written = backup.read_bytes()
    eventually(lambda: daemon.database.stat().st_size > len(written), "a checkpoint")
    time.sleep(0.5)  # until its end
    restored = kept(backup)

    daemon.database.write_bytes(written)  # as cp does, into the same file
    refused = daemon.post("remember", id="lost", content="Tea.")

    assert refused.error == ("database_replaced", None)
    assert "Restart the daemon" in refused.body["error"]["message"]
    assert daemon.post("remember", id="lost", content="Tea.").status == 503
    told = daemon.post("status").body["error"]["message"]
    assert "was written over while it was open" in told
    assert "mnem restore-db" in told
    assert "was written over" in daemon.mnem("doctor").stdout.decode()
    (aside,) = daemon.home.glob("memory.db.replaced-*")
    assert str(aside) in told
    assert daemon.stop() == 0
    assert daemon.database.read_bytes() == written
    with running(daemon.home) as again:
        assert kept(again.database) == restored
        assert again.post("status").body["warnings"] == []
        again.stop()
    assert damage(daemon.database) == []


def test_a_daemon_killed_while_a_copy_settles_leaves_it_as_it_is(start: Start) -> None:
    daemon = start(**SOON)
    remember(daemon, "old")
    backup = daemon.home / "backup.db"
    assert daemon.post("backup", file=str(backup)).status == 200
    many = [{"id": f"m{number}", "content": "Tea. " * 500} for number in range(99)]
    assert daemon.post("remember_many", memories=many).status == 200
    written = backup.read_bytes()
    eventually(lambda: daemon.database.stat().st_size > len(written), "a checkpoint")
    time.sleep(0.5)  # until its end
    many = [{"id": f"n{number}", "content": "Tea. " * 500} for number in range(99)]
    assert daemon.post("remember_many", memories=many).status == 200
    restored = kept(backup)
    before = daemon.database.stat().st_ino

    daemon.database.write_bytes(written)
    log = daemon.home / "memory.db-wal"
    eventually(lambda: not log.exists(), "the log is set aside")
    daemon.kill()

    assert daemon.database.stat().st_ino == before  # it was still waiting
    assert [*daemon.home.glob("memory.db.replaced-*-log")]
    assert daemon.database.read_bytes() == written
    with running(daemon.home) as again:
        assert kept(again.database) == restored
        again.stop()
    assert damage(daemon.database) == []


@pytest.mark.parametrize("first", ["copied", "killed"])
def test_the_log_of_a_killed_daemon_stays_out_of_a_copy_over_its_file(
    daemon: Daemon, first: str
) -> None:
    remember(daemon, "old")
    backup = daemon.home / "backup.db"
    assert daemon.post("backup", file=str(backup)).status == 200
    restored, written = kept(backup), backup.read_bytes()
    for part in "mn":
        many = [{"id": f"{part}{n}", "content": "Tea. " * 500} for n in range(150)]
        assert daemon.post("remember_many", memories=many).status == 200
        time.sleep(0.5)  # a checkpoint, perhaps
    if first == "killed":
        daemon.kill()
    daemon.database.write_bytes(written)
    if first == "copied":
        daemon.kill()
    log = daemon.database.with_name("memory.db-wal").read_bytes()

    with running(daemon.home) as again:
        assert kept(again.database) == restored
        assert again.stop() == 0

    assert damage(daemon.database) == []
    (aside,) = daemon.home.glob("memory.db.replaced-*-log")
    assert aside.read_bytes() == log
