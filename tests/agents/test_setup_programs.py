"""The tools' own programs, asked for the servers and plugins that setup wrote.

`make test-agents` installs them from npm. Each test has a home of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from e2e.daemons import environment, running

from mnemosyned.setup.machine import Machine
from mnemosyned.setup.targets.codex_trust import listed_hooks
from mnemosyned.setup.targets.opencode import plugin_text

pytestmark = pytest.mark.agents

PROGRAMS = Path(__file__).parents[2] / "build" / "npm" / "node_modules" / ".bin"
BIN = Path(sys.executable).parent
TIME_LIMIT_S = 120


class User:
    """Someone with these tools, and a home of their own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environment = environment(
            home, PATH=f"{PROGRAMS}:{BIN}:{os.environ['PATH']}", COLUMNS="100"
        )
        self.go(home)

    def go(self, directory: Path) -> None:
        """Work in this directory from now on."""
        self.directory = directory
        self.environment["PWD"] = str(directory)

    def run(self, *command: str) -> str:
        """What a command prints; it must succeed."""
        done = self.tried(*command)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def tried(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TIME_LIMIT_S,
            text=True,
            check=False,
        )

    def write(self, name: str, text: str) -> Path:
        file = self.home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(tmp_path)


def test_claude_code_lists_the_server_and_takes_it_out(user: User) -> None:
    other = {"mcpServers": {"other": {"type": "stdio", "command": "x", "args": []}}}
    user.write(".claude.json", json.dumps(other))
    settings = user.write(".claude/settings.json", "{\n  // mine\n}\n")

    shown = user.run("mnem", "setup", "claude-code", "--yes")

    assert "confirmed by `claude mcp get mnem`" in shown
    listed = user.run("claude", "mcp", "list")
    assert f"mnem: {BIN / 'mnem'} mcp" in listed
    assert "other: x" in listed
    assert "no change" in user.run("mnem", "setup", "claude-code", "--yes")
    user.run("mnem", "setup", "--undo", "--yes")
    assert "mnem" not in user.run("claude", "mcp", "list")
    assert settings.read_text() == "{\n  // mine\n}\n"
    kept = json.loads((user.home / ".claude.json").read_text())
    assert kept["mcpServers"] == other["mcpServers"]


def test_codex_lists_the_server_with_its_variables(user: User) -> None:
    text = '# mine\nmodel = "x"\n\n[mcp_servers.other]\ncommand = "x"\n'
    config = user.write(".codex/config.toml", text)

    shown = user.run("mnem", "setup", "codex", "--yes")

    assert "confirmed by `codex mcp get mnem`" in shown
    listed = user.run("codex", "mcp", "list")
    assert str(BIN / "mnem") in listed
    assert "XDG_RUNTIME_DIR" in listed
    assert "other" in listed
    user.run("mnem", "setup", "--undo", "--yes")
    assert config.read_text() == text
    assert "mnem" not in user.run("codex", "mcp", "list")


def test_codex_says_in_a_check_which_hooks_it_trusts(user: User) -> None:
    config = user.write(".codex/config.toml", "")
    user.run("mnem", "setup", "codex", "--yes")

    untrusted = _problems(user)
    machine = Machine(home=user.home, directory=user.home, environment=user.environment)
    hooks = listed_hooks(PROGRAMS / "codex", machine) or []
    for hook in hooks:
        key, digest = hook["key"], hook["currentHash"]
        table = f'\n[hooks.state."{key}"]\ntrusted_hash = "{digest}"\n'
        config.write_text(config.read_text() + table)

    assert len(hooks) == 5
    assert "preCompact" in untrusted[0]
    assert "stop" in untrusted[0]
    assert _problems(user) == []


def _problems(user: User) -> list[str]:
    shown = user.tried("mnem", "setup", "--check", "codex", "--json").stdout
    problems: list[str] = json.loads(shown)["tools"][0]["problems"]
    return problems


def test_copilot_lists_the_server(user: User) -> None:
    text = '{"mcpServers": {"other": {"type": "local", "command": "x", "args": []}}}'
    config = user.write(".copilot/mcp-config.json", text)

    shown = user.run("mnem", "setup", "copilot", "--yes")

    assert "confirmed by `copilot mcp get mnem`" in shown
    listed = user.run("copilot", "mcp", "list")
    assert "mnem (local)" in listed
    assert "other (local)" in listed
    user.run("mnem", "setup", "--undo", "--yes")
    assert config.read_text() == text


def test_gemini_lists_the_server(user: User) -> None:
    text = '{\n  // mine\n  "ui": {"theme": "Dracula"}\n}\n'
    settings = user.write(".gemini/settings.json", text)

    user.run("mnem", "setup", "gemini", "--yes")

    assert f"mnem: {BIN / 'mnem'} mcp" in user.run("gemini", "mcp", "list")
    user.run("mnem", "setup", "--undo", "--yes")
    assert settings.read_text() == text


def test_opencode_lists_the_server_in_a_file_with_comments(user: User) -> None:
    text = '{\n  // mine\n  "autoupdate": false,\n}\n'
    config = user.write(".config/opencode/opencode.jsonc", text)

    user.run("mnem", "setup", "opencode", "--yes")

    assert str(BIN / "mnem") in user.run("opencode", "mcp", "list")
    user.run("mnem", "setup", "--undo", "--yes")
    assert "// mine" in config.read_text()
    assert "mnem" not in config.read_text()
    assert not (user.home / ".config/opencode/plugins").exists()


# -------------------------------------------------------------------- plugins


@pytest.fixture
def packages(user: User) -> Path:
    user.run("mnem", "setup", "--package", "plugins")
    return user.home / "plugins"


@pytest.mark.usefixtures("packages")
def test_claude_code_takes_the_plugin_and_setup_then_refuses(user: User) -> None:
    for folder in ("plugins", "plugins/claude-code"):
        assert "Validation passed\n" in user.run("claude", "plugin", "validate", folder)
    user.run("claude", "plugin", "marketplace", "add", "./plugins")
    user.run("claude", "plugin", "install", "mnem@mnemosyned")

    assert "plugin:mnem:mnem: mnem mcp" in user.run("claude", "mcp", "list")
    refused = user.tried("mnem", "setup", "claude-code", "--yes")
    assert refused.returncode == 5
    assert "our plugin is installed (mnem@mnemosyned)" in refused.stdout
    user.run("claude", "plugin", "uninstall", "mnem@mnemosyned")
    user.run("mnem", "setup", "claude-code", "--yes")


@pytest.mark.usefixtures("packages")
def test_codex_takes_the_plugin_and_setup_then_refuses(user: User) -> None:
    (user.home / ".codex").mkdir()
    user.run("codex", "plugin", "marketplace", "add", "./plugins")
    user.run("codex", "plugin", "add", "mnem@mnemosyned")

    assert "mnem" in user.run("codex", "mcp", "list")
    refused = user.tried("mnem", "setup", "codex", "--yes")
    assert refused.returncode == 5
    assert "our plugin is installed (mnem@mnemosyned)" in refused.stdout
    user.run("codex", "plugin", "remove", "mnem@mnemosyned")
    user.run("mnem", "setup", "codex", "--yes")


@pytest.mark.usefixtures("packages")
def test_gemini_finds_the_extension_valid(user: User) -> None:
    shown = user.run("gemini", "extensions", "validate", "./plugins/agents")

    assert "successfully validated" in shown


# ------------------------------------------------------------------- OpenCode

ANSWER = "I would look into the calendar."
HOOK = f"""#!{sys.executable}
import json, sys
call = json.load(sys.stdin)
with open("calls.jsonl", "a") as file:
    file.write(json.dumps(call) + "\\n")
name = call["hook_event_name"]
context = {{"hookEventName": name, "additionalContext": "told by " + name}}
print(json.dumps({{"hookSpecificOutput": context}}))
"""


class Model(BaseHTTPRequestHandler):
    """A language model that always answers the same."""

    asked: ClassVar[list[str]] = []

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        self.asked.append(self.rfile.read(int(self.headers["content-length"])).decode())
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for delta, end in (
            ({"role": "assistant", "content": ANSWER}, None),
            ({}, "stop"),
        ):
            choice = {"index": 0, "delta": delta, "finish_reason": end}
            about = {"id": "1", "object": "chat.completion.chunk", "created": 1}
            chunk = {**about, "model": "m", "choices": [choice]}
            self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")


@contextmanager
def model() -> Iterator[str]:
    Model.asked.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


def write_model(user: User, url: str) -> None:
    """Have OpenCode ask the model at this address."""
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": url, "apiKey": "x"},
        "models": {"m": {"name": "m"}},
    }
    config = {"provider": {"fake": provider}, "model": "fake/m"}
    user.write(".config/opencode/opencode.json", json.dumps(config))


def test_opencode_runs_the_plugin_in_a_conversation(user: User) -> None:
    hook = user.write("mnem-hook", HOOK)
    hook.chmod(0o755)
    user.write(".config/opencode/plugins/mnem.js", plugin_text(str(hook)))
    with model() as url:
        write_model(user, url)
        shown = user.run("opencode", "run", "When do we deploy?")

    lines = (user.home / "calls.jsonl").read_text().splitlines()
    calls = [json.loads(line) for line in lines]
    by_name = {call["hook_event_name"]: call for call in calls}
    assert ANSWER in shown
    assert len(calls) == 3
    assert "When do we deploy?" in by_name["UserPromptSubmit"]["prompt"]
    assert by_name["SessionStart"]["cwd"] == str(user.home)
    said = [(each["role"], each["content"]) for each in by_name["Stop"]["messages"]]
    assert said[1] == ("assistant", ANSWER)
    assert "When do we deploy?" in said[0][1]
    assert all(each["id"] and each["timestamp"] for each in by_name["Stop"]["messages"])
    for name in ("SessionStart", "UserPromptSubmit"):
        assert any(f"told by {name}" in request for request in Model.asked)


CONVERSATIONS_MAX = 3
"""A busy machine may take longer than the plugin lets a prompt wait."""


def test_opencode_is_told_what_was_said_in_another_tool(user: User) -> None:
    runtime = user.home / "mnemosyned"
    runtime.mkdir(mode=0o700)
    user.environment["XDG_RUNTIME_DIR"] = str(user.home)
    shop = user.write("shop/.git/HEAD", "ref: refs/heads/main\n").parents[1]
    user.go(shop)
    message = {"id": "m1", "role": "user", "content": "We decided: deploy on Tuesdays."}
    said = {
        "client": "codex",
        "hook_event_name": "Stop",
        "session_id": "c1",
        "cwd": str(shop),
        "messages": [message],
    }
    call = user.write("call.json", json.dumps(said))
    address = str(runtime / "mnemosyned.sock")
    with running(user.home, "--socket", address), model() as url:
        user.run("sh", "-c", f"mnem-hook < {call}")
        write_model(user, url)
        user.run("mnem", "setup", "opencode", "--yes")
        for _ in range(CONVERSATIONS_MAX):
            user.run("opencode", "run", "When do we deploy?")
            if any("on Tuesdays" in request for request in Model.asked):
                break

        assert any("on Tuesdays" in request for request in Model.asked)
        assert ANSWER in user.run("mnem", "recall", "calendar", "--json")
