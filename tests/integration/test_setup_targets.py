"""Every tool set up in a home of its own: written, not twice, taken out without a trace.

With the journal to the byte; without it, as far as entries of ours are known.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
from pathlib import Path

import pytest
from support.setups import TEXTS, VARIANTS, Home, Snapshot, assert_set_up

from mnemosyned.agents.setup.documents import Document, value_at
from mnemosyned.agents.setup.parts import EntryPart, HeadingPart, OwnFile
from mnemosyned.agents.setup.targets import TARGETS

pytestmark = pytest.mark.thorough

TOOLS = [*TARGETS]
PROJECT_TOOLS = [name for name, target in TARGETS.items() if target.has_project]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def document(file: Path) -> Document:
    return Document(file, file.read_bytes().decode())


# ----------------------------------------------------- apply, again, undo


def said(snapshot: Snapshot) -> dict[str, str]:
    """What files say, but for what nobody knows without a journal.

    That is whether an empty file or container was there, and the version of a file of hooks.
    """
    texts: dict[str, str] = {}
    for name, (content, _) in snapshot.items():
        if not content:
            continue
        document = Document(Path(name), content.decode())
        if "hooks" in document.data and "version" in document.data:
            HeadingPart(Path(name), ("version",), 1).remove(document)
        text = document.text.strip().removesuffix("extensions: {}")
        if text not in ("", "{}"):
            texts[name] = text
    return texts


def assert_undone_without_journal(home: Home, before: Snapshot, *tools: str) -> None:
    """What was set up is undone without its journal, as far as files say."""
    shutil.rmtree(home.state)

    assert home.undo(*tools) == []

    assert said(home.snapshot()) == said(before)
    assert not home.state.exists()


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_is_set_up_once_and_undone_to_the_byte(
    home: Home, tool: str, variant: str
) -> None:
    home.write(tool, variant)
    before = home.snapshot()

    assert home.apply(tool) == []
    assert_set_up(home, tool)
    after = home.snapshot()
    assert after != before

    assert home.apply(tool) == []
    assert home.snapshot() == after

    assert home.undo(tool) == []
    assert home.snapshot() == before
    assert not home.state.exists()

    home.apply(tool)
    assert_undone_without_journal(home, before, tool)


@pytest.mark.parametrize("tool", PROJECT_TOOLS)
def test_a_project_is_set_up_once_and_undone_to_the_byte(home: Home, tool: str) -> None:
    home.project = home.path / "work"
    home.project.mkdir()
    home.write(tool, "foreign")
    before = home.snapshot()

    assert home.apply(tool) == []
    assert_set_up(home, tool)
    changed = {
        name for name in home.snapshot() if home.snapshot()[name] != before.get(name)
    }
    assert all(name.startswith("work/") for name in changed)
    assert home.undo(tool) == []

    assert home.snapshot() == before
    home.apply(tool)
    assert_undone_without_journal(home, before)


def test_a_tool_without_settings_of_a_project_says_so(home: Home) -> None:
    home.project = home.path

    assert home.apply("claude-desktop") == [
        "Claude Desktop has no settings of a project"
    ]


@pytest.mark.parametrize("variant", ["absent", "foreign", "comments", "windows"])
@pytest.mark.parametrize("tool", TOOLS)
def test_what_the_user_added_since_stays_and_ours_goes(
    home: Home, tool: str, variant: str
) -> None:
    home.write(tool, variant)
    before = {
        file: document(file).data if file.exists() else {} for file in home.files(tool)
    }
    home.apply(tool)
    for file in home.files(tool):
        edited = document(file)
        edited.set_value(("mine", "added"), {"since": "then"})
        file.write_bytes(edited.text.encode())

    assert home.undo(tool) == []

    for file, data in before.items():
        assert document(file).data == {**data, "mine": {"added": {"since": "then"}}}


@pytest.mark.parametrize("tool", TOOLS)
def test_each_change_keeps_the_other_lines(home: Home, tool: str) -> None:
    home.write(tool, "foreign")

    home.apply(tool)

    for file in home.files(tool):
        old = TEXTS[file.suffix]["foreign"].splitlines()
        new = {line.rstrip(",") for line in file.read_text().splitlines()}
        assert [line for line in old if line.rstrip(",") not in new] == []


@pytest.mark.parametrize("tool", TOOLS)
def test_every_command_is_absolute_and_without_arguments_for_hooks(
    tmp_path: Path, tool: str
) -> None:
    home = Home(tmp_path)
    home.programs = type(home.programs)(
        mnem=Path("/home/ann lee/bin/mnem"), hook=Path("/home/ann lee/bin/mnem-hook")
    )

    assert home.apply(tool) == []
    assert_set_up(home, tool)

    for part in TARGETS[tool].parts(home.site):
        if isinstance(part, OwnFile):
            continue
        written = json.dumps(value_at(document(part.file).data, part.path))
        if isinstance(part, EntryPart) and part.label == "MCP server":
            assert '"/home/ann lee/bin/mnem"' in written
        elif part.label.startswith("hook"):
            assert json.dumps(shlex.quote("/home/ann lee/bin/mnem-hook")) in written


# --------------------------------------------------------------- a new path


@pytest.mark.parametrize("tool", TOOLS)
def test_a_new_path_of_ours_renews_what_is_there(home: Home, tool: str) -> None:
    home.write(tool, "foreign")
    before = home.snapshot()
    home.apply(tool)
    home.programs = type(home.programs)(
        mnem=Path("/new/mnem"), hook=Path("/new/mnem-hook")
    )

    assert home.plan(tool).changed_files
    assert home.apply(tool) == []
    assert_set_up(home, tool)

    texts = [content for content, _ in home.snapshot().values()]
    assert not any(b"/bin/mnem" in text for text in texts)
    home.undo(tool)
    assert home.snapshot() == before


def test_what_the_user_set_in_our_entry_stays(home: Home) -> None:
    home.apply("opencode")
    file = home.files("opencode")[0]
    edited = document(file)
    edited.set_value(("mcp", "mnem", "enabled"), value=False)
    edited.set_value(("mcp", "mnem", "note"), "mine")
    file.write_text(edited.text)
    assert home.plan("opencode").changed_files == []
    home.programs = type(home.programs)(
        mnem=Path("/new/mnem"), hook=Path("/new/mnem-hook")
    )

    home.apply("opencode")

    entry = document(file).data["mcp"]["mnem"]
    assert entry["enabled"] is False
    assert entry["note"] == "mine"
    assert entry["command"] == ["/new/mnem", "mcp"]


def test_a_hook_that_the_user_moved_into_a_group_is_found_and_taken_out(
    home: Home,
) -> None:
    home.apply("claude-code")
    file = home.path / ".claude" / "settings.json"
    edited = document(file)
    ours = edited.data["hooks"]["Stop"][0]["hooks"][0]
    theirs = {"type": "command", "command": "say done"}
    edited.set_value(("hooks", "Stop", 0), {"hooks": [theirs, ours]})
    file.write_text(edited.text)

    assert home.plan("claude-code").changed_files == []
    assert home.undo("claude-code") == []

    assert document(file).data == {"hooks": {"Stop": [{"hooks": [theirs]}]}}


@pytest.mark.parametrize(
    ("has_journal", "says"),
    [(True, "changed since"), (False, "delete it yourself")],
)
def test_an_own_file_that_was_changed_is_left_and_told(
    home: Home, *, has_journal: bool, says: str
) -> None:
    home.apply("opencode")
    plugin = home.path / ".config" / "opencode" / "plugins" / "mnem.js"
    plugin.write_text(plugin.read_text() + "// mine\n")
    if not has_journal:
        shutil.rmtree(home.state)

    (problem,) = home.undo("opencode")

    assert says in problem
    assert plugin.exists()


def test_a_foreign_plugin_file_of_our_name_is_told(home: Home) -> None:
    plugin = home.path / ".config" / "opencode" / "plugins" / "mnem.js"
    plugin.parent.mkdir(parents=True)
    plugin.write_text("export default {}\n")

    (problem,) = home.apply("opencode")

    assert "another file of this name" in problem


# --------------------------------------------------- several tools, plugins


def test_all_tools_together_are_undone_to_the_byte(home: Home) -> None:
    for tool in TOOLS:
        home.write(tool, "foreign")
    before = home.snapshot()
    for tool in TOOLS:
        assert home.apply(tool) == []
    for tool in TOOLS:
        assert_set_up(home, tool)

    assert home.undo() == []

    assert home.snapshot() == before
    for tool in TOOLS:
        home.apply(tool)
    assert_undone_without_journal(home, before)


def test_without_a_journal_what_is_not_ours_stays(home: Home) -> None:
    file = home.path / ".cursor" / "hooks.json"
    file.parent.mkdir()
    old = {"command": "/old/bin/mnem-hook"}
    own = {"command": "say mnem-hook"}
    hooks = {"afterFileEdit": [own, old], "stop": [old], "sessionEnd": [own]}
    file.write_text(json.dumps({"version": 1, "hooks": hooks}))
    servers = file.with_name("mcp.json")
    servers.write_text('{"mcpServers": {"mnem": {"command": "npx", "args": ["mnem"]}}}')
    foreign = servers.read_bytes()

    assert home.undo("cursor") == []

    left = {"afterFileEdit": [own], "sessionEnd": [own]}
    assert json.loads(file.read_text()) == {"version": 1, "hooks": left}
    assert servers.read_bytes() == foreign


@pytest.mark.parametrize("has_journal", [True, False])
@pytest.mark.parametrize("first", ["vscode", "copilot"])
def test_hooks_that_two_tools_share_stay_until_both_are_undone(
    home: Home, first: str, *, has_journal: bool
) -> None:
    second = "copilot" if first == "vscode" else "vscode"
    file = home.path / ".copilot" / "hooks" / "mnem.json"
    home.apply(first)
    home.apply(second)
    if not has_journal:
        shutil.rmtree(home.state)

    home.undo(first)
    assert file.exists()
    assert_set_up(home, second)
    home.undo(second)

    assert not file.exists()
    assert not has_journal or home.snapshot() == {}


def test_tools_that_run_claude_codes_hooks_get_none_of_their_own(home: Home) -> None:
    home.apply("claude-code")

    home.apply("vscode")
    home.apply("devin")

    assert not (home.path / ".copilot").exists()
    assert not (home.path / ".config" / "devin" / "config.json").exists()


def test_cursor_and_claude_code_start_the_same_command_line(home: Home) -> None:
    home.apply("claude-code")
    home.apply("cursor")

    claudes = document(home.path / ".claude" / "settings.json").data["hooks"]
    cursors = document(home.path / ".cursor" / "hooks.json").data["hooks"]
    assert (
        claudes["UserPromptSubmit"][0]["hooks"][0]["command"]
        == cursors["beforeSubmitPrompt"][0]["command"]
    )


INSTALLED = {
    "claude-code": (
        ".claude/plugins/installed_plugins.json",
        '{"plugins": {"mnem@x": []}}',
    ),
    "codex": (".codex/config.toml", '[plugins."mnem@x"]\nenabled = true\n'),
    "cursor": (".cursor/plugins/local/mnem/plugin.json", "{}"),
    "gemini": (".gemini/extensions/mnem/gemini-extension.json", "{}"),
}


@pytest.mark.parametrize("tool", INSTALLED)
def test_nothing_is_written_next_to_our_plugin(home: Home, tool: str) -> None:
    name, content = INSTALLED[tool]
    file = home.path / name
    file.parent.mkdir(parents=True)
    file.write_text(content)
    before = home.snapshot()

    (problem,) = home.apply(tool)

    assert "our plugin is installed" in problem
    assert home.snapshot() == before


# ------------------------------------------------- the tool's own program

WORKING = """#!{python}
import json, sys
from pathlib import Path
file = Path({file!r})
data = json.loads(file.read_text()) if file.exists() else {{}}
servers = data.setdefault("mcpServers", {{}})
verb, *_, name = sys.argv[2:6] if sys.argv[2] == "add-json" else sys.argv[2:]
if verb == "add-json":
    servers[name] = json.loads(sys.argv[6])
else:
    del servers[name]
file.write_text(json.dumps(data, indent=4))
"""


def with_claude(home: Home, script: str) -> None:
    """Put a program `claude` on the PATH of this home."""
    folder = home.path.parent / "tools"
    folder.mkdir()
    program = folder / "claude"
    program.write_text(script)
    program.chmod(0o755)
    home.environment["PATH"] = str(folder)


def test_the_tools_own_program_writes_its_entry_and_takes_it_out(home: Home) -> None:
    import sys  # noqa: PLC0415

    file = home.path / ".claude.json"
    file.write_text('{"numStartups": 3}')
    before = home.snapshot()
    with_claude(home, WORKING.format(python=sys.executable, file=str(file)))

    assert home.apply("claude-code") == []

    assert '    "numStartups": 3' in file.read_text()
    assert_set_up(home, "claude-code")
    edited = document(file)
    edited.set_value(("numStartups",), 4)
    file.write_text(edited.text)
    assert home.undo("claude-code") == []
    assert document(file).data == {"numStartups": 4, "mcpServers": {}}
    file.write_text('{"numStartups": 3}')
    assert home.snapshot() == before


def test_a_program_that_fails_is_replaced_by_an_edit(home: Home) -> None:
    with_claude(home, "#!/bin/sh\nexit 1\n")

    assert home.apply("claude-code") == []

    assert_set_up(home, "claude-code")
    assert home.undo("claude-code") == []
    assert home.snapshot() == {}


# ------------------------------------------------------------------- crashes


def test_an_undo_after_a_crash_before_the_write_leaves_the_file(home: Home) -> None:
    home.write("gemini", "foreign")
    before = home.snapshot()
    home.apply("gemini")
    os.truncate(home.files("gemini")[0], 0)
    home.files("gemini")[0].write_bytes(TEXTS[".json"]["foreign"].encode())

    assert home.undo("gemini") == []

    assert home.snapshot() == before
