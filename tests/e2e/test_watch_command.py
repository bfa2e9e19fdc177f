"""`mnem watch`: what is added to followed files is remembered, once, whatever happens to the daemon."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from e2e.conftest import Start
from e2e.daemons import Daemon, eventually, rows
from support.agents import claude_line, write_lines

pytestmark = [pytest.mark.e2e, pytest.mark.thorough]

SETTLE = {"MNEMOSYNE_WATCH_SETTLE_S": "0.2"}
SESSION = "claude-code:s1"


def contents(daemon: Daemon) -> list[str]:
    """What is remembered and not superseded, in order."""
    statement = (
        "SELECT content FROM working_memory AS m WHERE NOT EXISTS (SELECT 1 FROM memory_state "
        "WHERE memory_seq = m.seq AND superseded_at IS NOT NULL) ORDER BY seq"
    )
    return [content for (content,) in rows(daemon.database, statement)]


def all_contents(daemon: Daemon) -> list[str]:
    statement = "SELECT content FROM working_memory ORDER BY seq"
    return [content for (content,) in rows(daemon.database, statement)]


def watched(daemon: Daemon) -> list[dict[str, object]]:
    listed = daemon.mnem("watch", "--list", "--json")
    folders: list[dict[str, object]] = json.loads(listed.stdout)["folders"]
    return folders


def talk(first: int, last: int) -> list[str]:
    """Lines of a transcript."""
    return [
        json.dumps(claude_line("user", f"message {n}", uuid=f"u{n}", minutes=n)) + "\n"
        for n in range(first, last)
    ]


def said(first: int, last: int) -> list[str]:
    return [f"message {n}" for n in range(first, last)]


def test_a_growing_transcript_survives_a_kill(start: Start, tmp_path: Path) -> None:
    folder = tmp_path / "talks"
    transcript = write_lines(folder / "s1.jsonl", talk(0, 3))
    daemon = start(**SETTLE)
    assert daemon.mnem("watch", str(folder)).returncode == 0
    eventually(lambda: all_contents(daemon) == said(0, 3), "what is there is read")

    whole, half = talk(3, 5)[0], talk(4, 5)[0]
    write_lines(transcript, [whole, half[:40]])
    eventually(lambda: all_contents(daemon) == said(0, 4), "a whole line is read")
    write_lines(transcript, [half[40:]])
    eventually(lambda: all_contents(daemon) == said(0, 5), "the line that was begun")

    daemon.kill()
    write_lines(transcript, talk(5, 400))
    again = start(database=daemon.database, **SETTLE)
    eventually(lambda: len(all_contents(again)) > 20, "it catches up")
    again.kill()
    last = start(database=daemon.database, **SETTLE)
    eventually(lambda: len(all_contents(last)) >= 400, "it catches up again")

    assert all_contents(last) == said(0, 400)
    assert {
        id for (id,) in rows(last.database, "SELECT session_id FROM working_memory")
    } == {SESSION}


def test_folders_are_listed_removed_and_refused(start: Start, tmp_path: Path) -> None:
    by_settings, by_command = tmp_path / "one", tmp_path / "two"
    by_settings.mkdir()
    by_command.mkdir()
    (by_settings / "a.md").write_text("Words")
    daemon = start(MNEMOSYNE_WATCH_PATHS=str(by_settings), **SETTLE)
    daemon.mnem("watch", str(by_command))
    eventually(lambda: contents(daemon) == ["a\n\nWords"], "the folder in the settings")

    assert {folder["path"]: folder["added_by"] for folder in watched(daemon)} == {
        str(by_settings): "settings",
        str(by_command): "command",
    }
    assert b"2 folders, 1 file, 1 memory" in daemon.mnem("status").stdout
    assert daemon.mnem("watch", "--remove", str(by_command)).returncode == 0
    refused = daemon.mnem("watch", "--remove", str(by_settings))
    assert b"the setting watch.paths" in refused.stderr
    assert b"no such folder" in daemon.mnem("watch", str(tmp_path / "no")).stderr
    (tmp_path / "a.pdf").write_text("%PDF-1.4")
    unreadable = daemon.mnem("watch", str(tmp_path / "a.pdf"))
    assert b"no transcript, note, JSON lines or shell history" in unreadable.stderr
    assert b"it holds everything" in daemon.mnem("watch", "/").stderr
    (by_command / "b.md").write_text("No more")
    (by_settings / "c.md").write_text("Still")
    eventually(lambda: "c\n\nStill" in contents(daemon), "the other goes on")
    assert len(contents(daemon)) == 2
