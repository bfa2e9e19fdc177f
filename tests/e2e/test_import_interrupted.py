"""`mnem import` killed and interrupted: what is stored is stored once, and it goes on."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

import pytest
from e2e.conftest import Start
from e2e.daemons import WAIT_S, Daemon, eventually, kept
from e2e.terminals import on_terminal, popen

from mnemosyned.importers.run import BATCH_ITEMS

pytestmark = pytest.mark.e2e

LINES = 4_000


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """More lines than are imported before the test interrupts."""
    file = tmp_path / "talk.jsonl"
    lines = [
        {"content": f"Line {number}: the boiler hums", "session": f"s{number % 9}"}
        for number in range(LINES)
    ]
    file.write_text("\n".join(map(json.dumps, lines)))
    return file


def test_a_killed_import_goes_on_without_a_double(daemon: Daemon, file: Path) -> None:
    for goal in (1, 1_000):
        process = popen(daemon.socket, "import", str(file), home=daemon.home)
        eventually(
            lambda goal=goal: len(kept(daemon.database)) >= goal,  # type: ignore[misc]
            f"{goal} lines are stored",
        )
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=WAIT_S)
    before = len(kept(daemon.database))
    assert before < LINES, "it was killed before the end"

    done = daemon.mnem("import", str(file), "--json")

    report = json.loads(done.stdout)
    assert report["continued"]
    assert report["known"] <= BATCH_ITEMS, "the batch whose position was not kept"
    assert LINES - before - BATCH_ITEMS <= report["stored"] <= LINES - before
    assert len(kept(daemon.database)) == len(set(kept(daemon.database))) == LINES


@pytest.mark.thorough
def test_the_key_says_how_much_is_stored_and_how_to_go_on(
    daemon: Daemon, file: Path
) -> None:
    with on_terminal(daemon, "import", str(file)) as (process, seen):
        eventually(lambda: kept(daemon.database), "some lines are stored")
        seen.type(b"\x03")
        code = process.wait(WAIT_S)
        shown = seen().decode()

    assert code == 130
    assert "memories of this import are stored; repeat the command to go on" in shown
    assert re.search(r"importing · \d+ % · [\d,]+ memories", shown)
    assert "Traceback" not in shown
    assert 0 < len(kept(daemon.database)) < LINES


def test_an_import_whose_daemon_is_killed_says_how_much_is_stored_and_goes_on(
    start: Start, file: Path
) -> None:
    first = start()
    process = popen(first.socket, "import", str(file), home=first.home)
    eventually(
        lambda: len(kept(first.database)) > BATCH_ITEMS, "a batch is acknowledged"
    )
    first.kill()
    _, problem = process.communicate(timeout=WAIT_S)
    second = start(database=first.database)
    before = len(kept(second.database))

    done = second.mnem("import", str(file), "--json")

    assert process.returncode == 3
    told = re.search(r"([\d,]+) memories of this import are stored; ", problem.decode())
    assert told
    assert before - int(told[1].replace(",", "")) in (0, BATCH_ITEMS)
    assert b"repeat the command to go on from there. The next batch failed: " in problem
    assert json.loads(done.stdout)["continued"]
    assert len(kept(second.database)) == len(set(kept(second.database))) == LINES


@pytest.mark.thorough
def test_an_import_into_a_new_database_begins_again(
    start: Start, tmp_path: Path, file: Path
) -> None:
    first = start()
    process = popen(first.socket, "import", str(file), home=first.home)
    eventually(lambda: kept(first.database), "some lines are stored")
    process.kill()
    process.communicate(timeout=WAIT_S)
    first.stop()
    for part in tmp_path.glob("memory.db*"):
        part.unlink()
    second = start()

    done = second.mnem("import", str(file), "--json")

    assert json.loads(done.stdout)["stored"] == LINES


@pytest.mark.thorough
def test_without_a_place_for_its_position_an_import_works(
    daemon: Daemon, file: Path
) -> None:
    state = daemon.home / ".local" / "state" / "mnemosyned"
    state.mkdir(parents=True, exist_ok=True)
    (state / "imports").write_text("no folder")

    done = daemon.mnem("import", str(file), "--json")

    assert json.loads(done.stdout)["stored"] == LINES
