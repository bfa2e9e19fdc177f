"""`mnem setup` as it is typed: what it prints, asks and returns."""

import json
import os
import re
import shutil
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from support.answers import SILENT

from mnemosyned.agents.setup.files import SetupJournal
from mnemosyned.agents.setup.parts import Machine, Programs, SetupSite
from mnemosyned.agents.setup.targets import TARGETS
from mnemosyned.agents.setup.tools import ToolCheck, check_tool
from mnemosyned.cli.commands.setup import checks_text, setup
from mnemosyned.cli.maintenance.checks import check_tools
from mnemosyned.cli.maintenance.doctor import present_installation
from mnemosyned.errors import InvalidRequest
from mnemosyned.memory.values import AgentActivity
from mnemosyned.paths import state_dir

VARIABLES = (
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "COPILOT_HOME",
    "CLINE_MCP_SETTINGS_PATH",
    "OPENCODE_CONFIG_DIR",
    "STATE_DIRECTORY",
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, in which no tool is installed."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("MNEMOSYNE_SOCKET", str(tmp_path / "absent.sock"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(setup, words, standalone_mode=False)
    if done.exception:
        raise done.exception
    return int(done.return_value or 0), done.output


def files(home: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(home)): path.read_bytes()
        for path in home.rglob("*")
        if path.is_file()
    }


def test_a_tool_is_set_up_and_undone(home: Path) -> None:
    (home / ".cursor").mkdir()

    code, shown = run("cursor", "--yes")
    assert code == 0
    assert '+    "mnem": {' in shown
    assert "next: switch the server mnem on" in shown
    assert "\ndaemon: no daemon answers on" in shown
    _, shown = run("cursor", "--yes")
    assert shown.splitlines() == [
        "Cursor",
        "  ~/.cursor/mcp.json: MCP server: there",
        "  ~/.cursor/hooks.json: 5 hooks: there",
        "  no change",
    ]

    code, shown = run("--undo", "--yes")
    assert code == 0
    assert shown.endswith("2 files as before\n")
    assert files(home) == {}


def test_a_dry_run_shows_all_and_writes_nothing(home: Path) -> None:
    code, shown = run("opencode", "--dry-run")

    assert code == 0
    assert "it was not found on this machine" in shown
    assert "+export const mnem = async ({ client, directory }) => {" in shown
    assert list(home.iterdir()) == []

    run("codex", "--yes")
    written = files(home)
    code, shown = run("--undo", "codex", "--dry-run")

    assert code == 0
    assert "-[mcp_servers.mnem]" in shown
    assert files(home) == written


def test_an_undo_without_a_journal_shows_what_it_recognizes(home: Path) -> None:
    with pytest.raises(InvalidRequest, match="--yes"):
        run("cursor")
    assert files(home) == {}, "nothing is written unasked without a terminal"
    run("cursor", "codex", "--yes")
    shutil.rmtree(state_dir() / "setup")
    written = files(home)

    _, tried = run("--undo", "--dry-run")
    with pytest.raises(InvalidRequest, match="--yes"):
        run("--undo")
    untouched = files(home)
    code, shown = run("--undo", "--yes")

    assert untouched == written
    assert "-[mcp_servers.mnem]" in tried
    assert "our entries are found in: Codex, Cursor" in " ".join(tried.split())
    assert (code, shown.splitlines()[-1]) == (0, "4 files as before")
    assert files(home) == {}
    assert "there is no record of a setup here" in run("--undo")[1]


def test_a_missing_and_a_wrong_name_are_told_with_the_right_ones(home: Path) -> None:
    with pytest.raises(click.UsageError, match="there are claude-code, codex"):
        run("emacs")
    with pytest.raises(InvalidRequest, match="none of the tools"):
        run()
    (home / ".cursor").mkdir()
    (home / ".config" / "zed").mkdir(parents=True)

    with pytest.raises(InvalidRequest, match="mnem setup cursor zed"):
        run()
    assert files(home) == {}


def test_a_tool_that_cannot_be_set_up_leaves_the_others_to_be(home: Path) -> None:
    (home / ".cursor").mkdir()
    (home / ".cursor" / "mcp.json").write_text("{")

    code, shown = run("cursor", "zed", "--yes")

    assert code == 5
    assert "Cursor\n  no change\n" in shown
    assert "~/.cursor/mcp.json: it cannot be read: line 1, column 2" in shown
    assert not (home / ".cursor" / "hooks.json").exists()
    assert (home / ".config" / "zed" / "settings.json").exists()


def test_a_project_has_own_files(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = home / "shop" / "src"
    work.mkdir(parents=True)
    (home / "shop" / ".git").mkdir()
    with pytest.raises(InvalidRequest, match="not a project"):
        run("cursor", "--scope", "project", "--yes")
    monkeypatch.chdir(work)

    run("cursor", "--scope", "project", "--yes")
    run("cursor", "--yes")
    assert (home / "shop" / ".cursor" / "mcp.json").exists()
    run("--undo", "--scope", "project", "--yes")

    assert not (home / "shop" / ".cursor").exists()
    assert (home / ".cursor" / "mcp.json").exists()


def test_json_has_the_plan_and_the_outcome(home: Path) -> None:
    code, shown = run("codex", "--yes", "--json")

    (tool,) = json.loads(shown)["tools"]
    assert code == 0
    assert tool["tool"] == "codex"
    assert tool["written"] is True
    assert [Path(file["file"]).name for file in tool["files"]] == [
        "config.toml",
        "hooks.json",
    ]
    assert "/hooks" in tool["next"][0]
    assert json.loads(run("--undo", "--yes", "--json")[1])["problems"] == []
    assert files(home) == {}


def test_a_check_says_what_is_missing_and_switched_off(home: Path) -> None:
    (home / ".claude").mkdir()
    run("claude-code", "codex", "--yes")
    settings = home / ".claude" / "settings.json"
    data = json.loads(settings.read_text())
    del data["hooks"]["Stop"]
    settings.write_text(json.dumps(data | {"disableAllHooks": True}))

    code, shown = run("--check")

    flat = " ".join(shown.split())
    assert code == 1
    assert "Claude Code: set up, but see below" in shown
    assert "~/.claude/settings.json: hook Stop: missing" in flat
    assert "disableAllHooks: no hook runs" in flat
    assert "to write it again: mnem setup claude-code" in flat
    assert "mnem setup codex" not in flat
    assert "SessionEnd; open /hooks in Codex once" in flat
    assert "no daemon" in flat
    assert "Cursor" not in shown


def check_codex() -> dict[str, Any]:
    """What a check of Codex finds, which must be a problem."""
    code, shown = run("--check", "codex", "--json")
    (check,) = json.loads(shown)["tools"]
    assert (code, check["set_up"]) == (1, True)
    found: dict[str, Any] = check
    return found


def test_a_check_as_json_names_every_problem(home: Path) -> None:
    run("codex", "--yes")
    config = home / ".codex" / "config.toml"
    config.write_text(config.read_text() + "[features]\nhooks = false\n")

    problems = check_codex()["problems"]

    assert any("features.hooks is false" in problem for problem in problems)


def test_a_check_believes_the_trust_that_codex_keeps(home: Path) -> None:
    hooks = home / ".codex" / "hooks.json"
    hooks.parent.mkdir()
    other = {"hooks": [{"type": "command", "command": "say done"}]}
    hooks.write_text(json.dumps({"hooks": {"Stop": [other]}}))
    run("codex", "--yes")
    trusted = [
        f'[hooks.state."{hooks}:{event}:0:0"]\ntrusted_hash = "sha256:1"\n'
        for event in ("session_start", "user_prompt_submit", "stop", "pre_compact")
    ]
    off = f'[hooks.state."{hooks}:session_end:0:0"]\ntrusted_hash = "1"\nenabled = false\n'
    config = home / ".codex" / "config.toml"
    config.write_text("\n".join([config.read_text(), *trusted, off]))

    problem = (
        "not trusted yet, and skipped: Stop, SessionEnd; open /hooks in Codex once"
    )
    assert check_codex()["problems"] == [problem]
    # The doctor names no setup, which would write the same hooks again.
    found = {each.text: each.command for each in check_tools(present_installation())}
    assert found[f"Codex: {problem}"] == ""


@pytest.mark.usefixtures("home")
def test_the_diff_shows_each_command_to_its_end() -> None:
    _, shown = run("claude-code", "--dry-run")

    commands = re.findall(r'"command":\s+"(\S*?)"', shown)
    assert [Path(command).name for command in commands].count("mnem-hook") == 5
    assert "…" not in shown


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("columns", [60, 80])
@pytest.mark.parametrize("words", [["--yes", *TARGETS], ["--check"]])
def test_the_output_fits_the_terminal(
    monkeypatch: pytest.MonkeyPatch, words: list[str], columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    if words == ["--check"]:
        run("--yes", *TARGETS)

    _, shown = run(*words)

    longest_word = max(len(word) for word in shown.split())
    long = [
        line
        for line in shown.splitlines()
        if len(line) > max(columns, longest_word + 8)
    ]
    assert long == []
    assert len(shown) > 200


def test_packages_are_written_once_with_the_parts_of_a_setup(home: Path) -> None:
    code, _ = run("--package", "plugins")
    with pytest.raises(InvalidRequest, match="not empty"):
        run("--package", "plugins")

    folder = home / "plugins"
    hooks = json.loads((folder / "claude-code" / "hooks" / "hooks.json").read_text())
    codex = json.loads(
        (folder / "agents" / ".codex-plugin" / "plugin.json").read_text()
    )
    gemini = json.loads((folder / "agents" / "hooks" / "hooks.json").read_text())
    assert code == 0
    assert hooks["hooks"]["Stop"][0]["hooks"][0]["command"] == "mnem-hook"
    assert "BeforeAgent" in gemini["hooks"]
    for name in (codex["mcpServers"], codex["hooks"], codex["skills"]):
        assert (folder / "agents" / name).exists()
    for file in folder.rglob("*.json"):
        json.loads(file.read_text())
        assert str(home) not in file.read_text()
    commands = re.findall(
        r"`([a-z]+) (?:plugin|extensions)", (folder / "README.md").read_text()
    )
    assert {"claude", "codex", "gemini"} <= set(commands)


def checked(*reports: AgentActivity, tool: str = "claude-code") -> ToolCheck:
    machine = Machine.present()
    site = SetupSite(
        machine=machine,
        programs=Programs.of(machine, Path(sys.prefix) / "bin" / "mnem"),
    )
    journal = SetupJournal(state_dir() / "setup")
    return check_tool(TARGETS[tool], site, journal, reports)


@pytest.mark.usefixtures("home")
def test_a_check_adds_up_what_the_hooks_of_a_tool_did() -> None:
    run("claude-code", "--yes")
    early, late = (datetime(2026, 11, 20, hour, tzinfo=UTC) for hour in (9, 10))

    check = checked(
        replace(SILENT, calls=3, stored=2, stored_at=early, mean_ms=10),
        replace(
            SILENT, calls=1, characters=700, informed_at=late, mean_ms=50, slowest_ms=90
        ),
        replace(SILENT, failures=1, failed_at=early, failure="StorageFailed", calls=0),
        replace(SILENT, event="background", calls=50, slowest_ms=900),
        replace(SILENT, client="codex", calls=99),
    )

    shown = " ".join(checks_text([check], daemon="reachable").split())
    assert check.problems == []
    assert "4 calls, 20 ms on average, the slowest 90 ms; 2 memories stored" in shown
    assert "700 characters given to the agent" in shown
    assert "1 failure, the last 2026-11-20" in shown
    assert "StorageFailed" in shown


@pytest.mark.usefixtures("home")
def test_a_check_says_what_the_hooks_of_another_tool_did_for_this_one() -> None:
    run("claude-code", "vscode", "--yes")

    (silent, calling) = (
        checks_text([checked(*reports, tool="vscode")], daemon="reachable")
        for reports in ([], [replace(SILENT, client="vscode", calls=7)])
    )

    assert silent.endswith("its hooks have not run yet")
    assert "7 calls" in calling


@pytest.mark.parametrize(
    ("hour", "minute", "said"),
    [
        (None, 0, "nothing stored of it"),
        (9, 0, "last memory of 2026-11-20 09:00"),
        (11, 55, ""),
    ],
)
def test_a_transcript_newer_than_the_last_memory_is_told(
    home: Path, hour: int | None, minute: int, said: str
) -> None:
    run("claude-code", "--yes")
    transcript = home / ".claude" / "projects" / "-w-shop" / "s1.jsonl"
    transcript.parent.mkdir(parents=True)
    transcript.write_text("{}\n")
    written = datetime(2026, 11, 20, 12, tzinfo=UTC)
    os.utime(transcript, (written.timestamp(),) * 2)
    stored_at = None if hour is None else written.replace(hour=hour, minute=minute)

    problems = checked(replace(SILENT, stored_at=stored_at)).problems

    assert len(problems) == bool(said)
    assert said in "".join(problems)
    assert not problems or "transcript of 2026-11-20 12:00 UTC" in problems[0]


def installed(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for name in ("mnem", "mnem-hook"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    return folder / "mnem"


def test_the_link_on_the_path_is_written_and_no_other_program_of_the_name(
    home: Path,
) -> None:
    program = installed(home / "venv-1.0" / "bin")
    links = home / "bin"
    links.mkdir()
    for name in ("mnem", "mnem-hook"):
        (links / name).symlink_to(program.parent / name)

    by_link = Programs.of(Machine.present(), links / "mnem")
    by_file = Programs.of(Machine.present(), program)
    other = Programs.of(Machine.present(), installed(home / "own" / "bin"))

    assert by_link == by_file == Programs(mnem=links / "mnem", hook=links / "mnem-hook")
    assert other.mnem == home / "own" / "bin" / "mnem"
    assert other.missing == []


def test_a_temporary_installation_is_refused(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = installed(home / ".cache" / "uv" / "archive-v0" / "x" / "bin")
    monkeypatch.setattr(sys, "argv", [str(program), "setup"])

    with pytest.raises(InvalidRequest, match="temporary installation"):
        run("cursor", "--yes")

    assert not (home / ".cursor").exists()
