"""`mnem setup`: what it wrote, started as a tool would start it, and its questions at a terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e.daemons import WAIT_S, environment, running, short_room
from e2e.programs import BIN

pytestmark = [pytest.mark.e2e, pytest.mark.thorough]

SESSION = "s-1"


class User:
    def __init__(self, home: Path) -> None:
        self.home = home
        self.work = home / "shop"
        (self.work / ".git").mkdir(parents=True)
        self.environment = environment(
            home, XDG_RUNTIME_DIR=str(home), COLUMNS="100", PATH="/usr/bin:/bin",
            MNEMOSYNE_HOOK_WAIT_S="9",  # a call that came late would be counted twice
        )  # fmt: skip

    def run(self, command: str, given: str = "") -> str:
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=self.work,
            env=self.environment,
            input=given,
            capture_output=True,
            timeout=WAIT_S,
            text=True,
            check=True,
        )
        return done.stdout

    def mnem(self, *words: str) -> str:
        return self.run(" ".join([str(BIN / "mnem"), *words]))

    def settings(self, name: str) -> Any:  # noqa: ANN401 any JSON
        return json.loads((self.home / name).read_text())


@pytest.fixture
def user() -> Iterator[User]:
    with short_room() as home:
        runtime = home / "mnemosyned"
        runtime.mkdir(mode=0o700)
        with running(home, "--socket", str(runtime / "mnemosyned.sock")):
            yield User(home)


def test_the_hooks_that_were_written_store_and_a_check_sees_it(user: User) -> None:
    user.mnem("setup", "claude-code", "--yes")
    hooks = user.settings(".claude/settings.json")["hooks"]
    folder = user.home / ".claude" / "projects" / "-shop"
    folder.mkdir(parents=True)
    transcript = folder / f"{SESSION}.jsonl"
    line = {
        "type": "user",
        "uuid": "u1",
        "sessionId": SESSION,
        "timestamp": "2026-11-20T09:00:00.000Z",
        "cwd": str(user.work),
        "message": {"role": "user", "content": "We decided: deploys are on Tuesdays."},
    }
    transcript.write_text(json.dumps(line) + "\n")
    about = {"session_id": SESSION, "transcript_path": str(transcript)}

    for event in ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"):
        more = {"cwd": str(user.work), "hook_event_name": event, "prompt": "Deploy?"}
        command = hooks[event][0]["hooks"][0]["command"]
        answer = json.loads(user.run(command, json.dumps({**about, **more})))
        assert isinstance(answer, dict)

    assert "deploys are on Tuesdays" in user.mnem("recall", "deploys", "--json")
    shown = " ".join(user.mnem("setup", "--check", "claude-code").split())
    assert "Claude Code: set up last called" in shown
    assert "4 calls" in shown
    assert "1 memory stored" in shown


def test_the_server_that_was_written_answers(user: User) -> None:
    user.mnem("setup", "cursor", "--yes")
    entry = user.settings(".cursor/mcp.json")["mcpServers"]["mnem"]
    about = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": about},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
    ]
    lines = [json.dumps({"jsonrpc": "2.0", **message}) for message in messages]

    command = " ".join([entry["command"], *entry["args"]])
    answers = user.run(command, "".join(f"{line}\n" for line in lines))

    by_id = {answer["id"]: answer for answer in map(json.loads, answers.splitlines())}
    tools = {tool["name"] for tool in by_id[2]["result"]["tools"]}
    assert {"remember", "recall"} <= tools


# `mnem setup` at a terminal: what it asks, and what an answer does.


def typed(home: Path, keys: bytes, *words: str) -> tuple[int, str]:
    """Run the command at a terminal at which someone types these keys; what it shows."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [BIN / "mnem", "setup", *words],
        env=environment(home, COLUMNS="80", PATH=str(home / "bin")),
        cwd=home,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    os.close(theirs)
    os.write(ours, keys)
    shown, _ = process.communicate(timeout=WAIT_S)
    os.close(ours)
    return process.returncode, shown.decode()


def test_a_dialogue_asks_for_each_tool_and_shows_what_it_gets(tmp_path: Path) -> None:
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".config" / "zed").mkdir(parents=True)

    code, shown = typed(tmp_path, b"n\ny\n")

    assert code == 0
    assert re.search("^Cursor +MCP server; 5 hooks$", shown, re.MULTILINE)
    assert re.search("^Zed +MCP server$", shown, re.MULTILINE)
    assert "Write this for Cursor? [Y/n]" in shown
    assert "Write this for Zed? [Y/n]" in shown
    assert (tmp_path / ".config" / "zed" / "settings.json").exists()
    assert list((tmp_path / ".cursor").iterdir()) == []


def test_a_no_leaves_everything(tmp_path: Path) -> None:
    code, shown = typed(tmp_path, b"n\n", "cursor")

    assert code == 1
    assert "Write this for Cursor? [y/N]" in shown
    assert "nothing was changed" in shown
    assert list(tmp_path.iterdir()) == []


def test_a_yes_beforehand_needs_the_names_of_the_tools(tmp_path: Path) -> None:
    (tmp_path / ".cursor").mkdir()

    code, shown = typed(tmp_path, b"", "--yes")

    assert code == 2
    assert "name the tools: mnem setup --yes cursor" in shown
    assert list((tmp_path / ".cursor").iterdir()) == []
