"""`mnem export`, and the exact import of what it wrote."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e.daemons import Daemon, kept, mnem, rows, running
from support.compare_databases import EXPORTED, count_rows, differences
from support.mixed_memory import QUESTIONS, fill

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    database = tmp_path_factory.mktemp("filled") / "memory.db"
    fill(database)
    return database


@pytest.fixture
def full(filled: Path, tmp_path: Path) -> Iterator[Daemon]:
    home = tmp_path / "full"
    home.mkdir()
    database = shutil.copy(filled, home / "memory.db")
    with running(home, database=Path(database)) as daemon:
        yield daemon


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Daemon]:
    home = tmp_path / "empty"
    home.mkdir()
    with running(home) as daemon:
        yield daemon


def exported(daemon: Daemon, file: Path, *options: str) -> list[dict[str, Any]]:
    done = daemon.mnem("export", *options, str(file))
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in file.read_bytes().splitlines()]


def imported(
    daemon: Daemon, file: Path, *options: str
) -> subprocess.CompletedProcess[bytes]:
    return daemon.mnem("import", *options, str(file), "--json")


def answers(daemon: Daemon) -> list[object]:
    """The hits of the questions, without the snippets' places."""
    return [daemon.post("recall", query=question).body for question in QUESTIONS]


def test_an_export_is_restored(full: Daemon, empty: Daemon, tmp_path: Path) -> None:
    file = tmp_path / "memory.jsonl"
    before = answers(full)
    records = exported(full, file)
    kinds = Counter(record["record"] for record in records)

    preview = json.loads(imported(empty, file, "--dry-run").stdout)
    assert preview["memories"] == kinds["memory"]
    assert preview["learned"] == kinds["learning"]
    assert kept(empty.database) == []
    done = imported(empty, file)
    again = json.loads(imported(empty, file).stdout)

    assert done.returncode == 0, done.stderr
    assert (again["stored"], again["restored"], again["bad"]) == (0, {}, 0)
    assert again["known"] == kinds["memory"]
    after = answers(empty)
    full.stop()
    empty.stop()
    assert differences(full.database, empty.database) == []
    assert after == before
    assert set(kinds) >= {"episode", "memory", "supersession", "learning", "log"}
    assert kinds["compaction"] == 1
    assert count_rows(full.database)["working_memory"] > 0


def test_every_table_is_exported_or_left_out_on_purpose(filled: Path) -> None:
    assert set(count_rows(filled)) == EXPORTED


def test_an_export_says_that_a_variable_chooses_no_database(
    full: Daemon, tmp_path: Path
) -> None:
    def export_with(database: object) -> bytes:
        words = (
            "--socket",
            str(full.socket),
            "export",
            "--force",
            str(tmp_path / "all.jsonl"),
        )
        done = mnem(*words, home=full.home, MNEMOSYNE_DATABASE=str(database))
        assert done.returncode == 0, done.stderr
        return done.stderr

    assert f"running daemon: {full.database}".encode() in export_with(
        tmp_path / "other.db"
    )
    assert not export_with(full.database)


def test_an_export_is_private_and_has_a_footer(full: Daemon, tmp_path: Path) -> None:
    file = tmp_path / "memory.jsonl"

    header, *records, footer = exported(full, file)

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert header["format"] == "mnemosyned-export"
    counts = Counter(record["record"] for record in [header, *records])
    assert footer["counts"] == dict(counts)
    assert full.mnem("export", str(file)).returncode == 2, "it exists"
    assert full.mnem("export", str(file), "--force").returncode == 0


@pytest.mark.thorough
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_a_cut_export_leaves_no_summary_without_its_originals(
    full: Daemon, empty: Daemon, tmp_path: Path, share: float
) -> None:
    file = tmp_path / "memory.jsonl"
    exported(full, file)
    whole = file.read_bytes()
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(whole[: int(len(whole) * share)])

    done = imported(empty, cut)

    assert done.returncode == 1
    assert b"the export was cut off here" in done.stderr
    assert 0 < len(kept(empty.database)) < len(kept(full.database))
    lonely = rows(
        empty.database,
        "SELECT e.id FROM episodic_memory AS e WHERE level = 0 AND item_count != "
        "(SELECT count(*) FROM archive WHERE episode_seq = e.seq)",
    )
    assert lonely == []

    done = imported(empty, file)

    assert json.loads(done.stdout)["stored"] > 0
    assert kept(empty.database) == kept(full.database)


@pytest.mark.thorough
def test_what_differs_is_kept(full: Daemon, empty: Daemon, tmp_path: Path) -> None:
    file = tmp_path / "memory.jsonl"
    exported(full, file)
    empty.post("remember", id="pin", content="My own words")

    done = imported(empty, file)

    assert done.returncode == 1
    assert b"the memory pin: something else has its id here" in done.stderr
    assert empty.post("get", id="pin").body["memory"]["content"] == "My own words"
    assert kept(empty.database) == kept(full.database)


def test_days_are_written_as_markdown(full: Daemon, tmp_path: Path) -> None:
    folder = tmp_path / "days"

    done = full.mnem("export", "--format", "markdown", str(folder))

    assert done.returncode == 0, done.stderr
    files = sorted(folder.iterdir())
    assert len(files) > 14
    day = files[10].read_text("utf-8")
    assert day.startswith(f"---\ndate: {files[10].stem}\nmemories: 6\nsessions: [")
    assert f"# {files[10].stem}\n\n> " in day, "the summary of the day is on top"
    assert "· work-0 · user" in day
    assert "the boiler of cabin 0 was serviced" in day
    today = files[-1].read_text("utf-8")
    assert "[secret:github_token]" in today
    assert "ghp_" not in today
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


@pytest.mark.thorough
def test_a_note_of_a_person_is_not_replaced(full: Daemon, tmp_path: Path) -> None:
    folder = tmp_path / "days"
    full.mnem("export", "--format", "markdown", str(folder))
    own = sorted(folder.iterdir())[3]
    own.write_text("My own words")
    for other in set(folder.iterdir()) - {own}:
        other.unlink()

    done = full.mnem("export", str(folder))

    assert done.returncode == 2
    assert f"{own} exists; --force replaces such files".encode() in done.stderr
    assert [file.read_text("utf-8") for file in folder.iterdir()] == ["My own words"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "options", [(), ("--force",), ("--force", "--format", "jsonl")]
)
def test_what_is_no_file_is_not_replaced(
    full: Daemon, tmp_path: Path, options: tuple[str, ...]
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    done = full.mnem("export", *options, str(pipe))

    assert done.returncode == 2
    assert b"is not a regular file" in done.stderr
    assert pipe.is_fifo()


def test_an_error_has_a_format_of_its_own(full: Daemon, tmp_path: Path) -> None:
    words = ["export", "--format", "jsonl", str(tmp_path)]

    plain = full.mnem(*words)
    as_json = full.mnem("--format", "json", *words)

    assert plain.stderr.startswith(b"mnem: ")
    assert as_json.stderr.startswith(b'{"error":')


@pytest.mark.thorough
def test_days_become_notes(full: Daemon, empty: Daemon, tmp_path: Path) -> None:
    folder = tmp_path / "days"
    full.mnem("export", "--format", "markdown", str(folder))

    done = imported(empty, folder)

    assert json.loads(done.stdout)["bad"] == 0
    day = sorted(folder.iterdir())[10].stem
    times = rows(
        empty.database,
        "SELECT DISTINCT date(created_at, 'localtime') FROM working_memory "
        "WHERE content LIKE '%boiler of cabin 0%' AND metadata LIKE ?",
        f"%{day}%",
    )
    assert times == [(day,)]


@pytest.mark.thorough
def test_a_copy_of_the_database_is_an_export_too(full: Daemon, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"

    done = full.mnem("export", str(copy))

    assert done.returncode == 0, done.stderr
    assert kept(copy) == kept(full.database)


@pytest.mark.thorough
def test_an_export_can_be_piped(full: Daemon, empty: Daemon) -> None:
    done = full.mnem("export")

    assert done.returncode == 0
    assert empty.mnem("import", "-", stdin=done.stdout).returncode == 0
    assert kept(empty.database) == kept(full.database)
    chosen = full.mnem("export", "--session", "work-1", "--source", "codex").stdout
    records = [json.loads(line) for line in chosen.splitlines()]
    origins = {(each["session"], each["source"]) for each in records if "role" in each}
    assert origins == {("work-1", "codex")}


def test_a_broken_export_leaves_nothing(full: Daemon, tmp_path: Path) -> None:
    file = tmp_path / "memory.jsonl"
    full.kill()

    done = full.mnem("export", str(file))

    assert done.returncode == 3
    assert list(tmp_path.glob("memory.jsonl*")) == []
