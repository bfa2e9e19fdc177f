"""`mnem doctor` on broken installations: each fault is found, named, and mended where that is safe."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

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
from mnemosyned.cli.maintenance.checks import Severity
from mnemosyned.cli.maintenance.databases import restore_database
from mnemosyned.cli.maintenance.doctor import examine, present_installation, repair
from mnemosyned.paths import shipped
from mnemosyned.storage.sqlite.fulltext import rebuild_index
from mnemosyned.storage.sqlite.repair import (
    find_faults,
    schema_faults,
    structure_faults,
)

IDS = ["fresh", "m0", "m1", "m2", "m3", "m4", "m5"]


QUICK = (
    "unknown setting",
    "damaged page",
    "unindexed memory",
    "orphaned details",
    "lost summary",
    "lost values",
    "dead socket",
    "open database",
    "interrupted restore",
)
"""The cases of `make test`; `make test-e2e` runs all."""


def each_case() -> list[ParameterSet]:
    marks = dict.fromkeys(QUICK, ())
    return [
        pytest.param(
            case, id=case.name, marks=marks.get(case.name, (pytest.mark.thorough,))
        )
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


def test_values_that_an_earlier_python_cut_or_lost_are_extracted_again(
    home: Home,
) -> None:
    with Memory(home.database) as memory:
        memory.remember(SAID, session="keys")
        memory.sleep(force=True)
        (episode,) = memory.recall("bob smith deploy key", session="keys", limit=1).hits
        whole = memory.get(episode.id).episode
    assert whole
    assert len(whole.details) > 4
    # As Python 3.11.2 left it: cut, lost, and a piece of the key in the summary.
    home.sql(
        "UPDATE detail SET value = 'smith@example.co.uk' "
        "WHERE value = 'bob.smith@example.co.uk'"
    )
    home.sql("DELETE FROM detail WHERE value IN ('PROJ-123', 'src/app/main.py')")
    home.sql("DELETE FROM detail WHERE value LIKE '-----BEGIN%'")
    piece = KEY.splitlines()[1]
    home.sql(
        f"UPDATE episodic_memory SET content = content || '{piece}' "
        f"WHERE id = '{episode.id}'"
    )
    with closing(sqlite3.connect(home.database)) as connection, connection:
        rebuild_index(connection, "episode_gram_fts")

    with home.lived_in():
        findings = examine(present_installation())
        repairs = list(repair(findings, present_installation()))
        again = examine(present_installation())

    assert "1 of the newest originals lack exact values" in str(findings)
    assert "of 1 originals again" in "; ".join(repairs)
    assert not any(finding.severity.is_bad and finding.remedy for finding in again)
    with Memory(home.database) as memory:
        memory.sleep(force=True)
        mended = memory.get(episode.id).episode
    assert mended
    assert mended.details == whole.details
    assert piece not in mended.content
    assert mended.content


def test_a_repair_of_the_database_makes_a_backup_first(
    home: Home, tmp_path: Path
) -> None:
    case = next(case for case in CASES if case.name == "orphaned details")

    done = outcome(case, home).repairs

    backup = Path(done[0].removeprefix("backed up the database to "))
    assert kept(backup) == IDS
    assert list(dangling(backup)) == ["exact values of nothing"]
    restore_database(backup, tmp_path / "again.db")


def test_looking_changes_nothing(home: Home) -> None:
    def files() -> dict[Path, tuple[int, bytes]]:
        return {
            path: (path.stat().st_mode, path.read_bytes())
            for path in home.path.rglob("*")
            if path.is_file()
        }

    before = files()

    with home.lived_in():
        examine(present_installation(deep=True))

    assert files() == before


def test_nothing_is_wrong_with_a_whole_installation_but_that_no_daemon_runs(
    home: Home,
) -> None:
    with home.lived_in():
        findings = examine(present_installation(deep=True))

    bad = [finding.text for finding in findings if finding.severity.is_bad]
    assert bad == ["no daemon runs"]
    assert {"settings", "database", "permissions", "disk", "programs"} <= {
        finding.check for finding in findings if finding.severity is Severity.OK
    }


def test_a_database_in_use_is_not_repaired(home: Home) -> None:
    home.sql("INSERT INTO detail VALUES (999, 1, '7.50 EUR', 0)")
    with home.lived_in(), Memory(home.database):
        findings = examine(present_installation())
        done = list(repair(findings, present_installation()))

    assert len(done) == 1
    assert "not done" in done[0]
    assert "mnem stop" in done[0]
    assert list(dangling(home.database)) == ["exact values of nothing"]


def test_no_database_at_all_is_nothing_wrong(home: Home) -> None:
    home.database.unlink()

    with home.lived_in():
        findings = examine(present_installation())

    texts = [finding.text for finding in findings]
    assert any(text.startswith("there is no database yet") for text in texts)
    assert [each.text for each in findings if each.severity.is_bad] == [
        "no daemon runs"
    ]


def test_a_weekly_backup_of_five_days_ago_is_not_old(home: Home) -> None:
    five_days_ago = backup_name(datetime.now(UTC) - timedelta(days=5), scheduled=True)
    (home.state / "backups").mkdir()
    shutil.copy(home.database, home.state / "backups" / five_days_ago)
    home.configure("backup:\n  schedule: weekly\n")

    with home.lived_in():
        findings = examine(present_installation())

    severities = [each.severity for each in findings if each.check == "backups"]
    assert severities == [Severity.OK]


def test_a_part_of_a_backup_is_found_and_a_download_is_left_alone(home: Home) -> None:
    (home.state / "backups").mkdir()
    part = home.state / "backups" / "memory-20260301T120000Z.db.partial"
    part.write_bytes(b"SQLite format 3\0")
    download = home.state / "film.mkv.partial"
    download.write_bytes(b"half a film")

    with home.lived_in():
        done = list(repair(examine(present_installation()), present_installation()))

    assert done == [f"removed {part}"]
    assert download.exists()


@pytest.mark.parametrize("fields", ["99 99 * * *", "0 0 30 2 *"])
def test_a_setting_that_only_its_part_refuses_is_a_problem(
    home: Home, fields: str
) -> None:
    home.configure(f'backup:\n  schedule: "{fields}"\n')

    with home.lived_in():
        findings = examine(present_installation())

    problems = [each.text for each in findings if each.severity is Severity.PROBLEM]
    assert len(problems) == 1
    assert problems[0].startswith("backup.schedule: ")


# The checks of a backup and of the doctor find nothing wrong with a database that was lived in.


def live(database: Path) -> None:
    """Remember, sleep, change, forget, restore, supersede, compact and undo."""
    with Memory(database) as memory:
        for number in range(40):
            memory.remember(
                f"Ada paid {number}.50 EUR for tea on 2026-03-0{number % 9 + 1}",
                id=f"m{number}",
                session=f"s{number % 4}",
                created_at=f"2026-03-0{number % 9 + 1}T10:00:00Z",
            )
        memory.sleep(force=True)
        memory.undo()
        memory.sleep(force=True)
        memory.restore("m8")
        memory.unpin("m8")
        memory.edit("m9", text="Ada paid nothing for coffee")
        memory.tag("m10", tags=["tea"])
        memory.tag("m11", tags=["tea"])
        for id in ("m9", "m10", "m12"):
            memory.forget(id)
        memory.forget(session="s1")
        memory.learn("Answer in English.")
        memory.remember("Ada paid 5 EUR", id="newer", supersedes="m14")
        memory.forget("newer")
        talk = [
            {"role": "user", "content": f"line {number} " * 50} for number in range(40)
        ]
        memory.compact(talk, max_tokens=500, session="talk")
        memory.sleep(force=True)
        memory.prune(characters_max=100)


def test_a_life_leaves_no_fault(database: Path, blank: Path) -> None:
    shutil.copy(blank, database)
    live(database)

    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        assert find_faults(connection) == []
        assert schema_faults(connection, shipped("migrations")) == []
        assert structure_faults(connection) == []
