"""`mnem import`: bad records are named by place, twice is once, and an interrupted one goes on."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from pathlib import Path

import pytest
from e2e.daemons import Daemon, kept

from mnemosyned.importers.importer import ImportSource
from mnemosyned.importers.plan import plan_import

pytestmark = pytest.mark.e2e

GOOD = [f'{{"content": "line {number}", "session": "import"}}' for number in range(4)]
BAD = [
    *GOOD[:2],
    '{"content": "cut sh',
    "",
    '{"content": "x", "colour": "red"}',
    '{"content": " "}',
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "memories.jsonl"


def importing(
    daemon: Daemon, file: Path | str, *options: str, stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    return daemon.mnem("import", *options, str(file), stdin=stdin)


def test_bad_records_are_skipped_and_named_by_file_and_line(
    daemon: Daemon, file: Path
) -> None:
    file.write_text("\n".join([*BAD, *GOOD[2:]]))

    done = importing(daemon, file)

    assert done.returncode == 1
    problems = done.stderr.decode()
    assert f"{file}:3: the line is not JSON" in problems
    assert "(malformed_json)" in problems
    assert f"{file}:5: colour" in problems
    assert f"{file}:6: there is nothing to remember" in problems
    assert f"{file}:4" not in problems
    assert len(kept(daemon.database)) == 4


@pytest.mark.thorough
def test_a_file_with_bad_records_can_be_refused_whole(
    daemon: Daemon, file: Path
) -> None:
    file.write_text("\n".join([*BAD, *GOOD[2:]]))

    done = importing(daemon, file, "--bad", "refuse", "--json")

    report = json.loads(done.stdout)
    assert done.returncode == 2
    assert (report["stored"], report["known"], report["bad"]) == (0, 0, 3)
    assert kept(daemon.database) == []


@pytest.mark.thorough
def test_the_first_twenty_bad_records_are_shown_and_the_others_counted(
    daemon: Daemon, file: Path
) -> None:
    file.write_text("\n".join([GOOD[0], *["{broken"] * 30]))

    done = importing(daemon, file)

    lines = done.stderr.decode().splitlines()
    assert len(lines) == 21
    assert "10 more bad records" in lines[-1]


def test_importing_twice_adds_nothing(daemon: Daemon, file: Path) -> None:
    file.write_text("\n".join([*GOOD, GOOD[0]]))
    importing(daemon, file)
    daemon.post("sleep", force=True)
    before = kept(daemon.database)

    done = importing(daemon, file)

    assert done.returncode == 0
    assert b"0 remembered, 5 already known, 0 learned" in done.stdout
    assert kept(daemon.database) == before
    assert len(before) == 5, "a line said twice was said twice"


@pytest.mark.parametrize(
    "text", ["\n".join(GOOD), "[\n" + ",\n".join(GOOD) + "\n]\n"], ids=["lines", "list"]
)
def test_standard_input_is_imported(daemon: Daemon, text: str) -> None:
    done = importing(daemon, "-", stdin=text.encode())

    assert done.returncode == 0, done.stderr
    assert len(kept(daemon.database)) == 4


def test_a_pipe_is_imported_from_its_beginning(daemon: Daemon, tmp_path: Path) -> None:
    """More than the beginning by which its format is recognized."""
    lines = [json.dumps({"content": f"number {n}"}) for n in range(4_000)]
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    text = "\n".join(lines)
    writer = threading.Thread(target=pipe.write_text, args=[text], daemon=True)
    writer.start()

    done = importing(daemon, pipe)

    assert done.returncode == 0, done.stderr
    assert b"4,000 remembered" in done.stdout


def test_an_empty_file_is_said_to_be_empty(daemon: Daemon, file: Path) -> None:
    file.touch()

    done = importing(daemon, file)

    assert done.returncode == 2
    assert f"{file} is empty".encode() in done.stderr


@pytest.mark.thorough
def test_a_large_file_is_kept_whole_and_in_order(daemon: Daemon, file: Path) -> None:
    lines = [
        json.dumps({"content": f"number {n}", "id": f"n{n:05}"}) for n in range(1501)
    ]
    file.write_text("\n".join(lines))

    done = importing(daemon, file)

    assert done.returncode == 0
    assert b"1,501 remembered" in done.stdout
    assert kept(daemon.database) == [f"n{n:05}" for n in range(1501)]


def test_a_record_that_the_daemon_refuses_is_named_by_its_place(
    daemon: Daemon, file: Path
) -> None:
    lines = [json.dumps({"content": f"number {n}"}) for n in range(1, 1200)]
    lines[1100 - 1] = json.dumps({"content": "x", "created_at": "2999-01-01T00:00:00Z"})
    file.write_text("\n".join(lines))

    done = importing(daemon, file)

    assert done.returncode == 1
    assert f"{file}:1100: ".encode() in done.stderr
    assert b"(invalid_time)" in done.stderr
    assert len(kept(daemon.database)) == 1198


def test_a_dry_run_counts_and_stores_nothing(daemon: Daemon, file: Path) -> None:
    said = {"role": "user", "session": "talk", "source": "codex"}
    lines = [
        {"content": "Always answer in French.", **said},
        {"content": "Lunch at noon.", "created_at": "2026-03-09T12:00:00Z", **said},
        {"content": "Fine.", "created_at": "2026-03-10T12:00:00Z", "session": "other"},
    ]
    file.write_text("\n".join(map(json.dumps, lines)))

    done = importing(daemon, file, "--dry-run", "--json")

    preview = json.loads(done.stdout)
    assert done.returncode == 0
    assert preview["memories"] == 3
    assert preview["sessions"] == {"talk": 2, "other": 1}
    assert preview["roles"] == {"user": 2, "": 1}
    assert preview["sources"] == {"codex": 2, "": 1}
    assert preview["formats"] == {"jsonl": 3}
    assert preview["earliest"] == "2026-03-09T12:00:00Z"
    assert preview["latest"] == "2026-03-10T12:00:00Z"
    assert preview["undated"] == 1
    assert preview["learnings"] == ["Always answer in French."]
    assert kept(daemon.database) == []


@pytest.mark.thorough
def test_files_of_a_folder_are_imported_in_order_of_time(
    daemon: Daemon, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for name, day in (("a", 3), ("b", 1), ("c", 2)):
        record = {"content": name, "created_at": f"2026-03-0{day}T12:00:00Z"}
        (folder / f"{name}.jsonl").write_text(json.dumps(record))
    (folder / "picture.png").write_bytes(b"\x89PNG")
    (folder / "loop").symlink_to(folder)

    plan = plan_import([ImportSource.of_path(folder)], None)
    done = importing(daemon, folder)

    assert [part.source.path.name[0] for part in plan.parts] == ["b", "c", "a"]
    assert b"3 remembered" in done.stdout
    assert b"1 file without a format" in done.stderr


@pytest.mark.thorough
def test_a_file_without_a_known_format_is_refused(daemon: Daemon, file: Path) -> None:
    file.write_bytes(b"\x89PNG\r\n")

    done = importing(daemon, file)

    assert done.returncode == 2
    assert b"none of the formats" in done.stderr


def test_a_database_of_memories_is_not_imported_but_restored(daemon: Daemon) -> None:
    done = importing(daemon, daemon.database)

    assert done.returncode == 2
    assert b"put back by `mnem restore-db`" in done.stderr


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
@pytest.mark.thorough
def test_lines_in_another_encoding_are_read(
    daemon: Daemon, file: Path, encoding: str
) -> None:
    file.write_text('{"content": "größer 東京", "id": "g"}\n', encoding=encoding)

    done = importing(daemon, file)

    assert done.returncode == 0, done.stderr
    assert daemon.post("get", id="g").body["memory"]["content"] == "größer 東京"


@pytest.mark.thorough
def test_a_giant_line_is_passed_over(daemon: Daemon, file: Path) -> None:
    with file.open("wb") as opened:
        opened.write(GOOD[0].encode() + b'\n{"content": "')
        for _ in range(50):
            opened.write(b"x" * 1_000_000)
        opened.write(b'"}\n' + GOOD[1].encode())

    done = importing(daemon, file)

    assert done.returncode == 1
    assert f"{file}:2: the line is longer than".encode() in done.stderr
    assert len(kept(daemon.database)) == 2


@pytest.mark.thorough
def test_a_single_record_whose_id_is_taken_does_not_end_the_import(
    daemon: Daemon, file: Path
) -> None:
    importing(daemon, "-", stdin=b'{"content": "first", "id": "one"}')
    file.write_text('{"content": "other", "id": "one"}')

    done = importing(daemon, file)

    assert done.returncode == 2
    assert (
        f"{file}:1: the id 'one' already belongs to something else"
        in done.stderr.decode()
    )
