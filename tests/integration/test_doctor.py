"""`mnem doctor` on broken installations: each fault is found, named, and mended where that is safe."""

import errno
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from _pytest.mark import ParameterSet
from e2e.consistency import damage, dangling, half_done
from e2e.daemons import kept, short_room
from support.broken_installations import (
    CASES,
    Case,
    Home,
    fill,
    make_home,
    outcome,
)

from mnemosyned import Memory
from mnemosyned.backup_schedule import backup_name
from mnemosyned.cli.maintenance.checks import (
    Finding,
    Severity,
    check_daemon,
    check_space,
)
from mnemosyned.cli.maintenance.databases import restore_database
from mnemosyned.cli.maintenance.doctor import examine, present_installation, repair
from mnemosyned.memory.values import Tier
from mnemosyned.paths import shipped
from mnemosyned.storage.sqlite.fulltext import rebuild_index
from mnemosyned.storage.sqlite.ownership import DatabaseProcess
from mnemosyned.storage.sqlite.repair import (
    find_faults,
    schema_faults,
    structure_faults,
)
from mnemosyned.version import __version__

pytestmark = pytest.mark.sqlite

IDS = ["fresh", "m0", "m1", "m2", "m3", "m4", "m5"]


QUICK = {
    *("unknown setting", "damaged page", "unindexed memory", "lost summary"),
    *("dead socket", "interrupted restore"),
}
"""The cases of `make test`; `make test-e2e` runs all."""


def each_case() -> list[ParameterSet]:
    rare = pytest.mark.thorough
    return [
        pytest.param(case, id=case.name, marks=() if case.name in QUICK else rare)
        for case in CASES
    ]


@pytest.fixture(scope="module")
def filled(blank: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    database = tmp_path_factory.mktemp("filled") / "memory.db"
    shutil.copy(blank, database)
    fill(database)
    return database


@pytest.fixture
def home(filled: Path) -> Iterator[Home]:
    with short_room() as room:
        yield make_home(room / "home", filled)


def look(home: Home, *, deep: bool = False) -> list[Finding]:
    with home.lived_in():
        return [*examine(present_installation(deep=deep))]


def look_and_repair(home: Home) -> list[str]:
    with home.lived_in():
        findings = examine(present_installation())
        return list(repair(findings, present_installation()))


def bad(findings: list[Finding]) -> list[str]:
    return [finding.text for finding in findings if finding.severity.is_bad]


def test_the_size_of_a_database_includes_what_is_in_its_journal(home: Home) -> None:
    Path(f"{home.database}-wal").write_bytes(bytes(7_000_000))

    with home.lived_in():
        (finding,) = check_space(present_installation())

    whole = 7 + home.database.stat().st_size / 1e6
    assert f"a database of {whole:.1f} MB" in finding.text


def test_a_daemon_of_another_installation_is_named(home: Home) -> None:
    status: Any = SimpleNamespace(
        version="0.0.1",
        database="",
        restart_needed=["database"],
        problems=[],
        warnings=[],
    )
    with (
        home.lived_in(),
        subprocess.Popen(
            ["/bin/cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as other,
    ):
        assert other.stdin
        assert other.stdout
        other.stdin.write(b"\n")
        other.stdin.flush()
        other.stdout.readline()  # it runs now
        process = DatabaseProcess(pid=other.pid, socket="")
        installation = replace(present_installation(), process=process, status=status)
        finding = next(check_daemon(installation))
        other.stdin.close()

    assert finding.command == "mnem restart"
    assert "version 0.0.1 runs by /bin/cat" in finding.text
    assert f"{__version__} by {sys.executable}" in finding.text


@pytest.mark.parametrize("case", each_case())
def test_a_fault_is_found_and_mended_where_that_is_safe(case: Case, home: Home) -> None:
    seen = outcome(case, home)

    assert seen.finding, [finding.text for finding in seen.findings]
    assert seen.finding.severity.is_bad
    assert seen.finding.command.startswith(case.command)
    if case.repairs:
        assert any(case.repairs in line for line in seen.repairs), seen.repairs
        assert seen.left is None
        assert kept(home.database) == IDS
        assert (damage(home.database), dangling(home.database)) == ([], {})
        assert half_done(home.database) == {}
    else:
        assert seen.left is not None


KEY = f"-----BEGIN PRIVATE KEY-----\n{'MIIEvQIBADAN' * 20}\n-----END PRIVATE KEY-----"
SAID = f"""Mail bob.smith@example.co.uk about PROJ-123, see src/app/main.py.
The deploy key is {KEY}
and https://example.org/docs says how to use it."""


def test_values_that_an_earlier_python_cut_or_lost_are_extracted(home: Home) -> None:
    with Memory(home.database) as memory:
        memory.remember(SAID, session="keys")
        memory.sleep(force=True)
        (hit,) = memory.recall("bob smith deploy key", session="keys", limit=1).hits
        whole = memory.get(hit.id).episode
    assert whole
    assert len(whole.details) > 4
    # As Python 3.11.2 left it: cut, lost, and a piece of the key in the summary.
    piece = KEY.splitlines()[1]
    for statement in (
        "UPDATE detail SET value = substr(value, 5) WHERE value = 'bob.smith@example.co.uk'",
        "DELETE FROM detail WHERE value IN ('PROJ-123', 'src/app/main.py')",
        "DELETE FROM detail WHERE value LIKE '-----BEGIN%'",
        f"UPDATE episodic_memory SET content = content || '{piece}' WHERE id = '{hit.id}'",
    ):
        home.sql(statement)
    with closing(sqlite3.connect(home.database)) as connection, connection:
        rebuild_index(connection, "episode_gram_fts")

    findings = look(home)
    repairs = look_and_repair(home)
    again = look(home)

    assert "1 of the newest originals lack exact values" in str(findings)
    assert "of 1 originals again" in "; ".join(repairs)
    assert not any(finding.severity.is_bad and finding.remedy for finding in again)
    with Memory(home.database) as memory:
        memory.sleep(force=True)
        mended = memory.get(hit.id).episode
    assert mended
    assert mended.details == whole.details
    assert mended.content
    assert piece not in mended.content


def test_a_repair_of_a_database_makes_a_backup_first(
    home: Home, tmp_path: Path
) -> None:
    case = next(case for case in CASES if case.name == "orphaned details")

    done = outcome(case, home).repairs

    backup = Path(done[0].removeprefix("backed up the database to "))
    assert kept(backup) == IDS
    assert list(dangling(backup)) == ["exact values of nothing"]
    restore_database(backup, tmp_path / "again.db")


def test_a_whole_installation_is_sound_and_looking_changes_nothing(home: Home) -> None:
    def files() -> dict[Path, tuple[int, bytes]]:
        paths = [path for path in home.path.rglob("*") if path.is_file()]
        return {path: (path.stat().st_mode, path.read_bytes()) for path in paths}

    before = files()

    findings = look(home, deep=True)

    assert files() == before
    assert bad(findings) == ["no daemon runs"]
    sound = {each.check for each in findings if each.severity is Severity.OK}
    assert {"settings", "database", "permissions", "disk", "programs"} <= sound


def test_what_the_daemon_cannot_write_to_is_found(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = home.database.parent
    lock, log = folder / "memory.db.lock", folder / "mnemosyned.log"
    for each in (lock, log):
        each.touch(mode=0o600)
    closed = {home.database, folder, lock, log}
    access = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: path not in closed and access(path, mode)
    )

    found = [each.text for each in look(home) if each.check == "permissions"]

    assert found == [
        f"you cannot write to {path}" for path in (folder, home.database, lock, log)
    ]


def test_a_disk_that_became_read_only_is_found(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def refuse(path: Path, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EROFS, "Read-only file system", path)
        return opened(path, flags, mode)

    monkeypatch.setattr(os, "open", refuse)

    (found,) = (each for each in look(home) if each.check == "disk")

    folder = home.database.parent
    assert found.text == f"nothing can be written to {folder}: Read-only file system"
    assert found.command == f"findmnt --target {folder}"


def test_a_file_of_another_user_is_reported_once(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)
    monkeypatch.setattr(os, "access", lambda _path, mode: mode != os.W_OK)

    found = [each.text for each in look(home) if each.check == "permissions"]

    assert f"{home.database} belongs to another user" in found
    assert not [text for text in found if "cannot write" in text]


def test_a_socket_that_root_left_is_found(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = home.database.parent / "mnemosyned.sock"
    with closing(socket.socket(socket.AF_UNIX)) as left:
        left.bind(str(path))
    access = os.access
    monkeypatch.setattr(
        os, "access", lambda other, mode: other != path and access(other, mode)
    )

    assert f"{path} belongs to another user (id {os.geteuid()})" in bad(look(home))


def test_a_text_that_is_not_utf8_is_readable_after_a_repair(home: Home) -> None:
    home.sql("UPDATE working_memory SET content = 'The key' || CAST(x'ff' AS TEXT)")
    home.sql("UPDATE episodic_memory SET content = content || CAST(x'ff' AS TEXT)")

    done = look_and_repair(home)

    assert any("replaced bytes that are not UTF-8" in line for line in done), done
    with Memory(home.database) as memory:
        texts = {each.id: each.content for each in memory.list(tier=Tier.WORKING)}
        assert set(texts.values()) == {"The key\ufffd"}
        for id in texts:
            memory.edit(id, text=f"The key is {id}")
        assert memory.list(level="episode").episodes
    assert not [
        text for text in bad(look(home)) if "damaged" in text or "index" in text
    ]


def test_a_database_in_use_is_not_repaired(home: Home) -> None:
    home.sql("INSERT INTO detail VALUES (999, 1, '7.50 EUR', 0)")
    with Memory(home.database):
        (done,) = look_and_repair(home)

    assert "not done" in done
    assert "mnem stop" in done
    assert list(dangling(home.database)) == ["exact values of nothing"]


def test_what_is_left_of_a_former_database_is_found(home: Home) -> None:
    for name in ("replaced-20261130T222411Z", "replaced-20261130T222411Z-log"):
        Path(f"{home.database}.{name}").write_bytes(bytes(1_000_000))

    (text,) = [each.text for each in look(home) if "former database" in each.text]

    assert text == "2 files of a former database set aside, 2.0 MB"


def test_no_database_at_all_is_nothing_wrong(home: Home) -> None:
    home.database.unlink()

    findings = look(home)

    texts = [finding.text for finding in findings]
    assert any(text.startswith("there is no database yet") for text in texts)
    assert bad(findings) == ["no daemon runs"]


def test_a_machine_whose_memory_is_on_a_server_needs_no_daemon(home: Home) -> None:
    home.database.unlink()
    (home.state / "token").touch(mode=0o600)
    (home.state / "token").write_text("mnt_3_" + "t" * 43)
    login = {"url": "http://127.0.0.1:1", "token_file": str(home.state / "token")}
    saved = home.config.with_name("connection.json")

    for folders, needs in (
        ({"/": "server"}, False),
        ({"/": "server", "/a": "local"}, True),
    ):
        saved.write_text(json.dumps({**login, "folders": folders}))

        silent, *others = sorted(bad(look(home)))

        assert silent.startswith("no daemon answers on http://127.0.0.1:1")
        assert others == ["no daemon runs"] * needs


def test_a_weekly_backup_of_five_days_ago_is_not_old(home: Home) -> None:
    five_days_ago = backup_name(datetime.now(UTC) - timedelta(days=5), scheduled=True)
    (home.state / "backups").mkdir()
    shutil.copy(home.database, home.state / "backups" / five_days_ago)
    home.configure("backup:\n  schedule: weekly\n")

    found = [each.severity for each in look(home) if each.check == "backups"]
    assert found == [Severity.OK]


def test_a_part_of_a_backup_is_found_and_a_download_is_left_alone(home: Home) -> None:
    (home.state / "backups").mkdir()
    part = home.state / "backups" / "memory-20260301T120000Z.db.partial"
    part.write_bytes(b"SQLite format 3\0")
    journal = home.database.with_name(f"{home.database.name}.partial-journal")
    journal.write_bytes(
        bytes.fromhex("d9d505f920a163d7") + b"words that were forgotten"
    )
    download = home.state / "film.mkv.partial"
    download.write_bytes(b"half a film")

    assert look_and_repair(home) == [f"removed {part}", f"removed {journal}"]
    assert download.exists()


@pytest.mark.parametrize("fields", ["99 99 * * *", "0 0 30 2 *"])
def test_a_setting_its_part_refuses_is_a_problem(home: Home, fields: str) -> None:
    home.configure(f'backup:\n  schedule: "{fields}"\n')

    found = [each.text for each in look(home) if each.severity is Severity.PROBLEM]
    assert len(found) == 1
    assert found[0].startswith("backup.schedule: ")


def live(database: Path) -> None:
    """Remember, sleep, change, forget, restore, supersede, compact and undo."""
    with Memory(database) as memory:
        for number in range(40):
            day = f"2026-03-0{number % 9 + 1}"
            text = f"Ada paid {number}.50 EUR for tea on {day}"
            where: Any = {"id": f"m{number}", "session": f"s{number % 4}"}
            memory.remember(text, created_at=f"{day}T10:00:00Z", **where)
        memory.sleep(force=True)
        memory.undo()
        memory.sleep(force=True)
        memory.restore("m8")
        memory.unpin("m8")
        memory.edit("m9", text="Ada paid nothing for coffee")
        memory.tag(["m10", "m11"], tags=["tea"])
        memory.forget(["m9", "m10", "m12"])
        memory.forget(session="s1")
        memory.learn("Answer in English.")
        memory.remember("Ada paid 5 EUR", id="newer", supersedes="m14")
        memory.forget("newer")
        lines = (f"line {number} " * 50 for number in range(40))
        talk = [{"role": "user", "content": line} for line in lines]
        memory.compact(talk, max_tokens=500, session="talk")
        memory.sleep(force=True)
        memory.prune(characters_max=100)


@pytest.mark.thorough
def test_a_life_leaves_no_fault(database: Path, blank: Path) -> None:
    shutil.copy(blank, database)
    live(database)

    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        assert find_faults(connection) == []
        assert schema_faults(connection, shipped("migrations")) == []
        assert structure_faults(connection) == []
