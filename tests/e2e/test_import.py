"""`mnem import`: bad records are named by place, twice is once, and a killed one goes on."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import threading
from contextlib import closing
from pathlib import Path

import pytest
from e2e.conftest import Start
from e2e.daemons import WAIT_S, Daemon, eventually, kept
from e2e.terminals import on_terminal, popen
from support.agents import claude_line, write_lines
from support.cases import each_case
from support.import_samples import write_sample

from mnemosyned.importers.importer import ImportSource
from mnemosyned.importers.run import BATCH_ITEMS, plan_import

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


def test_bad_records_are_named_by_file_and_line(daemon: Daemon, file: Path) -> None:
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
def test_a_file_with_bad_records_can_be_refused(daemon: Daemon, file: Path) -> None:
    file.write_text("\n".join([*BAD, *GOOD[2:]]))

    done = importing(daemon, file, "--bad", "refuse", "--json")

    report = json.loads(done.stdout)
    assert done.returncode == 2
    assert (report["stored"], report["known"], report["bad"]) == (0, 0, 3)
    assert kept(daemon.database) == []


@pytest.mark.thorough
def test_twenty_bad_records_are_shown(daemon: Daemon, file: Path) -> None:
    file.write_text("\n".join([GOOD[0], *["{broken"] * 30]))

    lines = importing(daemon, file).stderr.decode().splitlines()

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


@pytest.mark.thorough
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


@each_case(
    ("content", "said"),
    [
        (b"", "{file} is empty"),
        (b"\x89PNG\r\n", "none of the formats"),
        (b"no Markdown\n", "plain text is read with --format notes"),
        (b"PK\x03\x04 cut off", "ZIP archive without an export that can be imported"),
        (None, "put back by `mnem restore-db`"),
    ],
)
def test_a_file_without_records_is_refused(
    daemon: Daemon, file: Path, content: bytes | None, said: str
) -> None:
    file.write_bytes(daemon.database.read_bytes() if content is None else content)

    done = importing(daemon, file)

    assert done.returncode == 2
    assert said.format(file=file) in done.stderr.decode()


def test_a_refused_record_is_named_by_its_place(daemon: Daemon, file: Path) -> None:
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
def test_sessions_in_an_excluded_folder_are_left_out(
    daemon: Daemon, tmp_path: Path
) -> None:
    excluded = tmp_path / "client"
    folder = tmp_path / ".claude" / "projects"
    for place in (excluded / "src", tmp_path / "shop"):
        line = claude_line("user", f"We work in {place.name}.", uuid=place.name)
        write_lines(folder / place.name / "s1.jsonl", [line | {"cwd": str(place)}])

    settings = daemon.home / ".config" / "mnemosyned" / "mnemosyned.yaml"
    settings.parent.mkdir(parents=True)
    settings.write_text(f"hooks:\n  exclude: [{excluded}]\n")
    done = importing(daemon, folder)

    assert done.stdout.startswith(b"1 remembered")
    assert b"1 message left out: their folders are in hooks.exclude" in done.stderr
    with daemon.client() as client:
        (memory,) = client.list().memories
    assert memory.content == "We work in shop."


def test_files_are_imported_in_order_of_time(daemon: Daemon, tmp_path: Path) -> None:
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


# Stores of other programs, imported again after they changed.


@pytest.mark.thorough
def test_a_changed_record_is_an_edit(start: Start, tmp_path: Path) -> None:
    daemon = start(MNEMOSYNE_SECRETS="mask")
    path = write_sample("claude_mem", tmp_path / "rival")
    token = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
    with closing(sqlite3.connect(path)) as rival:
        rival.executescript(
            f"""
            DELETE FROM observations WHERE id > 2;
            UPDATE observations SET title = 'The key is {token}' WHERE id = 1;
            INSERT INTO observations (memory_session_id, project, type, title, created_at,
            created_at_epoch) VALUES ('m9', 'shop', 'change', 'Deploy on Tuesdays', '', 1),
            ('m9', 'shop', 'change', '{"x" * 2_000_000}', '', 1);
            """
        )
    first = importing(daemon, path)
    again = importing(daemon, path)
    with closing(sqlite3.connect(path)) as rival:
        rival.execute("UPDATE observations SET title = 'Deploy daily' WHERE id = 2")
        rival.commit()

    edited = importing(daemon, path)
    last = importing(daemon, path, "--json")

    assert b"8 remembered, 1 already known" in first.stdout, "a double is stored once"
    assert b"observations 7: content has 2,000,000 bytes" in first.stderr
    assert b"0 remembered, 9 already known" in again.stdout
    assert b"1 memory edited" in edited.stdout
    report = json.loads(last.stdout)
    assert (report["stored"], report["edited"], report["known"]) == (0, 0, 9)
    hits = daemon.post("recall", query="when do we deploy?", limit=1).body["hits"]
    assert hits[0]["content"] == "Deploy daily"
    got = daemon.post("get", id=hits[0]["id"], history=True).body
    assert [each["text"] for each in got["revisions"]] == ["Deploy on Tuesdays"]
    assert token not in daemon.database.read_bytes().decode("latin-1")


def test_a_forgotten_record_stays_so(daemon: Daemon, tmp_path: Path) -> None:
    path = write_sample("engram", tmp_path / "rival")
    importing(daemon, path)
    for hit in daemon.post("recall", query="cookies week").body["hits"]:
        if "week" in hit["content"]:
            daemon.post("forget", id=hit["id"])
    with closing(sqlite3.connect(path)) as rival:
        rival.execute("UPDATE observations SET content = 'They live for a day'")
        rival.commit()

    done = importing(daemon, path)

    assert b"0 remembered, 2 already known" in done.stdout
    assert b"1 memory left out: forgotten before" in done.stdout


def test_without_a_path_it_names_a_command_for_each_store(daemon: Daemon) -> None:
    nothing = daemon.mnem("import")
    write_sample("engram", daemon.home / ".engram")

    found = daemon.mnem("import")

    assert nothing.returncode == 1
    assert b"nothing of another program" in nothing.stderr
    command, _, summary = found.stdout.decode().strip().partition("  # ")
    assert command == "mnem import ~/.engram/engram.db"
    assert summary == "the database or export of Engram"


# `mnem import` killed and interrupted: what is stored is stored once, and it goes on.


LINES = 4_000


@pytest.fixture
def long_file(tmp_path: Path) -> Path:
    """More lines than are imported before the test interrupts."""
    file = tmp_path / "talk.jsonl"
    lines = [
        {"content": f"Line {number}: the boiler hums", "session": f"s{number % 9}"}
        for number in range(LINES)
    ]
    file.write_text("\n".join(map(json.dumps, lines)))
    return file


@pytest.mark.thorough
def test_a_killed_import_goes_on(daemon: Daemon, long_file: Path) -> None:
    for goal in (1, 1_000):
        process = popen(daemon.socket, "import", str(long_file), home=daemon.home)
        eventually(
            lambda goal=goal: len(kept(daemon.database)) >= goal,  # type: ignore[misc]
            f"{goal} lines are stored",
        )
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=WAIT_S)
    before = len(kept(daemon.database))
    assert before < LINES, "it was killed before the end"

    done = daemon.mnem("import", str(long_file), "--json")

    report = json.loads(done.stdout)
    assert report["continued"]
    assert report["known"] <= BATCH_ITEMS, "the batch whose position was not kept"
    assert LINES - before - BATCH_ITEMS <= report["stored"] <= LINES - before
    assert len(kept(daemon.database)) == len(set(kept(daemon.database))) == LINES


@pytest.mark.thorough
def test_the_key_says_how_to_go_on(daemon: Daemon, long_file: Path) -> None:
    with on_terminal(daemon, "import", str(long_file)) as (process, seen):
        eventually(lambda: kept(daemon.database), "some lines are stored")
        seen.type(b"\x03")
        code = process.wait(WAIT_S)
        shown = seen().decode()

    assert code == 130
    assert "memories of this import are stored; repeat the command to go on" in shown
    assert re.search(r"importing · \d+ % · [\d,]+ memories", shown)
    assert "Traceback" not in shown
    assert 0 < len(kept(daemon.database)) < LINES


@pytest.mark.thorough
def test_an_import_goes_on_after_a_daemons_kill(start: Start, long_file: Path) -> None:
    first = start()
    process = popen(first.socket, "import", str(long_file), home=first.home)
    eventually(
        lambda: len(kept(first.database)) > BATCH_ITEMS, "a batch is acknowledged"
    )
    first.kill()
    _, problem = process.communicate(timeout=WAIT_S)
    second = start(database=first.database)
    before = len(kept(second.database))

    done = second.mnem("import", str(long_file), "--json")

    assert process.returncode == 3
    told = re.search(r"([\d,]+) memories of this import are stored; ", problem.decode())
    assert told
    assert before - int(told[1].replace(",", "")) in (0, BATCH_ITEMS)
    assert b"repeat the command to go on from there. The next batch failed: " in problem
    assert json.loads(done.stdout)["continued"]
    assert len(kept(second.database)) == len(set(kept(second.database))) == LINES


@pytest.mark.thorough
def test_an_import_into_a_new_database_begins_again(
    start: Start, tmp_path: Path, long_file: Path
) -> None:
    first = start()
    process = popen(first.socket, "import", str(long_file), home=first.home)
    eventually(lambda: kept(first.database), "some lines are stored")
    process.kill()
    process.communicate(timeout=WAIT_S)
    first.stop()
    for part in tmp_path.glob("memory.db*"):
        part.unlink()
    second = start()

    done = second.mnem("import", str(long_file), "--json")

    assert json.loads(done.stdout)["stored"] == LINES


@pytest.mark.thorough
def test_an_import_needs_no_journal(daemon: Daemon, long_file: Path) -> None:
    state = daemon.home / ".local" / "state" / "mnemosyned"
    state.mkdir(parents=True, exist_ok=True)
    (state / "imports").write_text("no folder")

    done = daemon.mnem("import", str(long_file), "--json")

    assert json.loads(done.stdout)["stored"] == LINES
