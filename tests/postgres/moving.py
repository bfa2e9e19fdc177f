"""A memory that tests move, and the command that moves it."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support.whole_memory import fill_all

from mnemosyned.cli.maintenance.move import move_command

COUNTS = {
    "memory": "SELECT (SELECT count(*) FROM working_memory) + (SELECT count(*) FROM archive)",
    "episode": "SELECT count(*) FROM episodic_memory",
    "supersession": "SELECT count(*) FROM memory_state WHERE superseded_by IS NOT NULL",
    "learning": "SELECT count(*) FROM learning",
    "log": "SELECT count(*) FROM consolidation_log",
    "compaction": "SELECT count(*) FROM compaction",
    "agent_session": "SELECT count(*) FROM agent_session",
    "forgotten": "SELECT count(*) FROM agent_forgotten",
    "recoverable": "SELECT count(*) FROM forgotten",
    "watched_folder": "SELECT count(*) FROM watched_folder",
    "watched_file": "SELECT count(*) FROM watched_file",
    "hook_activity": "SELECT count(*) FROM agent_activity",
    "vector": "SELECT count(*) FROM embedding",
    "clock": "SELECT count(*) FROM clock_seen",
}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with something of everything."""
    database = tmp_path_factory.mktemp("filled") / "memory.db"
    fill_all(database)
    return database


@pytest.fixture
def source(filled: Path, tmp_path: Path) -> Path:
    """A copy of it that a test may change."""
    return Path(shutil.copy(filled, tmp_path / "source.db"))


@pytest.fixture(autouse=True)
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings but defaults, below the test's folder."""
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path))


def move(source: Path | str, target: Path | str) -> dict[str, Any]:
    """Move by the command; what it answers as JSON."""
    words = ["--from", str(source), "--to", str(target), "--json"]
    done = CliRunner().invoke(
        move_command, words, standalone_mode=False, catch_exceptions=False
    )
    assert done.return_value == 0, done.output
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def counted(database: Path) -> dict[str, int]:
    with closing(sqlite3.connect(database)) as connection:
        return {
            kind: connection.execute(query).fetchone()[0]
            for kind, query in COUNTS.items()
        }
