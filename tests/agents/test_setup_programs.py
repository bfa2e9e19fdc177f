"""The tools' own programs, asked for the servers and plugins that setup wrote.

`make test-agents` installs them from npm. Each test has a home of its own.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from agents.users import BIN, PROGRAMS, User

from mnemosyned.agents.setup.parts import Machine
from mnemosyned.agents.setup.targets import list_codex_hooks

pytestmark = pytest.mark.agents


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
    hooks = list_codex_hooks(PROGRAMS / "codex", machine) or []
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


@pytest.fixture
def packages(user: User) -> Path:
    user.run("mnem", "setup", "--package", "plugins")
    return user.home / "plugins"


PLUGINS = {
    "claude-code": (
        ["plugin", "install", "mnem@mnemosyned"],
        ["plugin", "uninstall", "mnem@mnemosyned"],
        "plugin:mnem:mnem: mnem mcp",
    ),
    "codex": (
        ["plugin", "add", "mnem@mnemosyned"],
        ["plugin", "remove", "mnem@mnemosyned"],
        "mnem",
    ),
}


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize("tool", PLUGINS)
def test_a_tool_takes_the_plugin_and_setup_then_refuses(user: User, tool: str) -> None:
    install, uninstall, server = PLUGINS[tool]
    program = tool.partition("-")[0]
    (user.home / f".{program}").mkdir(exist_ok=True)
    user.run(program, "plugin", "marketplace", "add", "./plugins")
    user.run(program, *install)

    assert server in user.run(program, "mcp", "list")
    refused = user.tried("mnem", "setup", tool, "--yes")
    assert refused.returncode == 5
    assert "our plugin is installed (mnem@mnemosyned)" in refused.stdout
    user.run(program, *uninstall)
    user.run("mnem", "setup", tool, "--yes")


@pytest.mark.usefixtures("packages")
def test_claude_code_finds_the_plugin_valid(user: User) -> None:
    for folder in ("plugins", "plugins/claude-code"):
        assert "Validation passed\n" in user.run("claude", "plugin", "validate", folder)


@pytest.mark.usefixtures("packages")
def test_gemini_finds_the_extension_valid(user: User) -> None:
    shown = user.run("gemini", "extensions", "validate", "./plugins/agents")

    assert "successfully validated" in shown
