"""Every tool set up in a home of its own: written, not twice, taken out without a trace.

With the journal to the byte; without it, as far as entries of ours are known. Files that setup must
not change are left, and those that it changes keep their links and modes.
"""

import json
import shlex
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pytest

from mnemosyned.agents.setup import files
from mnemosyned.agents.setup.documents import Document, value_at
from mnemosyned.agents.setup.files import FileEdit, SetupJournal
from mnemosyned.agents.setup.parts import (
    EntryPart,
    HeadingPart,
    Machine,
    OwnFile,
    PartState,
    Programs,
    SetupSite,
)
from mnemosyned.agents.setup.targets import TARGETS
from mnemosyned.agents.setup.tools import (
    ToolPlan,
    edits_to_undo,
    plan_tool,
    recognize_edits,
    set_up,
    undo_all,
)
from mnemosyned.paths import replacing_file

pytestmark = pytest.mark.thorough

FOREIGN = {
    "mcpServers": {"other": {"command": "npx", "args": ["-y", "other"]}},
    "servers": {"other": {"type": "http", "url": "https://example.org/mcp"}},
    "mcp": {"other": {"type": "local", "command": ["other"]}},
    "context_servers": {"other": {"command": "other", "args": []}},
    "hooks": {
        "Stop": [{"hooks": [{"type": "command", "command": "say done"}]}],
        "stop": [{"command": "say done"}],
        "PreToolUse": [{"matcher": "Bash", "hooks": []}],
    },
}
"""What a user may have in a configuration file, under the keys of all tools."""
PLAIN = json.dumps(FOREIGN, indent=2)
JSON_TEXTS = {
    "empty": "",
    "empty object": "{}\n",
    "foreign": PLAIN + "\n",
    "no final newline": PLAIN,
    "tabs": json.dumps(FOREIGN, indent="\t") + "\n",
    "windows": PLAIN.replace("\n", "\r\n") + "\r\n",
    "one line": json.dumps(FOREIGN),
    "comments": "// mine\n" + PLAIN.replace('"Stop"', '/* last */ "Stop"') + "\n// end",
    "trailing commas": PLAIN.replace("\n}", ",\n}").replace("\n  }", ",\n  }"),
    "byte order mark": "\ufeff" + PLAIN,
}
TOML_TEXTS = {
    "empty": "",
    "foreign": '# mine\nmodel = "x"\n\n[mcp_servers.other]\ncommand = "npx"\n',
    "no final newline": 'model = "x" # mine',
    "windows": 'model = "x"\r\n\r\n[tui]\r\ntheme = "dark"\r\n',
    "comments": "# only\n# comments\n",
}
YAML_TEXTS = {
    "empty": "",
    "foreign": "# mine\nextensions:\n  other:\n    cmd: npx # it\n\nGOOSE_MODEL: x\n",
    "no final newline": "GOOSE_MODEL: x",
    "windows": "extensions:\r\n  other:\r\n    cmd: npx\r\n",
    "empty object": "extensions: {}\n",
}
TEXTS = {".json": JSON_TEXTS, ".toml": TOML_TEXTS, ".yaml": YAML_TEXTS}
VARIANTS = ["absent", *JSON_TEXTS]
Snapshot = dict[str, tuple[bytes, int]]


class Home:
    """A user with a home, in which tools are set up."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.path = folder / "home"
        self.path.mkdir(exist_ok=True)
        self.programs = Programs(
            mnem=folder / "bin" / "mnem", hook=folder / "bin" / "mnem-hook"
        )
        self.state = folder / "state" / "setup"
        self.environment = environment
        self.project: Path | None = None

    @property
    def site(self) -> SetupSite:
        machine = Machine(
            home=self.path,
            directory=self.path / "work",
            environment=self.environment,
            platform="linux",
        )
        return SetupSite(machine=machine, programs=self.programs, project=self.project)

    @property
    def journal(self) -> SetupJournal:
        return SetupJournal(self.state)

    def plan(self, tool: str) -> ToolPlan:
        return plan_tool(TARGETS[tool], self.site, self.journal)

    def use_programs_of(self, folder: str) -> None:
        """Have our programs in another folder from now on."""
        self.programs = Programs(
            mnem=Path(folder, "mnem"), hook=Path(folder, "mnem-hook")
        )

    def apply(self, tool: str) -> list[str]:
        """Set a tool up; what failed."""
        return set_up(self.plan(tool), self.journal)

    def undo(self, *tools: str) -> list[str]:
        """Take out what setup wrote, whether or not there is a journal; what failed."""
        journal = self.journal
        journal.edits += recognize_edits(TARGETS.values(), self.site, journal)
        edits = edits_to_undo(journal, tools, self.project)
        done = undo_all(edits, journal, self.site.machine)
        return [problem for _, problem in done if problem]

    def files(self, tool: str) -> list[Path]:
        """The configuration files of a tool that other things may be in too."""
        target = TARGETS[tool]
        assert target.has_project or self.project is None
        parts = target.parts(self.site)
        shared = (part for part in parts if not isinstance(part, OwnFile))
        return [*dict.fromkeys(part.file for part in shared)]

    def write(self, tool: str, variant: str) -> None:
        """Give the user configuration files of a variant."""
        for file in self.files(tool):
            text = TEXTS[file.suffix].get(variant)
            if text is not None:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(text.encode())

    def snapshot(self) -> Snapshot:
        """Every file and directory of the home, with content and mode."""
        return {
            str(path.relative_to(self.path)): (
                path.read_bytes() if path.is_file() else b"",
                path.lstat().st_mode,
            )
            for path in sorted(self.path.rglob("*"))
        }


def document(file: Path) -> Document:
    return Document(file, file.read_bytes().decode())


def edit(file: Path, *path: str | int, value: object) -> None:
    """Set a value in a configuration file, as its user would."""
    edited = document(file)
    edited.set_value(path, value)
    file.write_bytes(edited.text.encode())


def assert_set_up(home: Home, tool: str) -> None:
    """Each part is there, by a parser of its own reading the file again."""
    plan = home.plan(tool)
    states = {state for change in plan.changes for _, state in change.states}
    assert plan.problems == []
    assert plan.changed_files == []
    assert states == {PartState.CURRENT}


TOOLS = [*TARGETS]
PROJECT_TOOLS = [name for name, target in TARGETS.items() if target.has_project]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


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
def test_what_the_user_added_since_stays(home: Home, tool: str, variant: str) -> None:
    home.write(tool, variant)
    before = {
        file: document(file).data if file.exists() else {} for file in home.files(tool)
    }
    home.apply(tool)
    for file in home.files(tool):
        edit(file, "mine", "added", value={"since": "then"})

    assert home.undo(tool) == []

    for file, data in before.items():
        assert document(file).data == {**data, "mine": {"added": {"since": "then"}}}


@pytest.mark.parametrize("tool", TOOLS)
def test_every_command_is_absolute_and_quoted(home: Home, tool: str) -> None:
    home.use_programs_of("/home/ann lee/bin")

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


@pytest.mark.parametrize("tool", TOOLS)
def test_a_new_path_of_ours_renews_what_is_there(home: Home, tool: str) -> None:
    home.write(tool, "foreign")
    before = home.snapshot()
    home.apply(tool)
    home.use_programs_of("/new")

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
    edit(file, "mcp", "mnem", "enabled", value=False)
    edit(file, "mcp", "mnem", "note", value="mine")
    assert home.plan("opencode").changed_files == []
    home.use_programs_of("/new")

    home.apply("opencode")

    entry = document(file).data["mcp"]["mnem"]
    assert entry["enabled"] is False
    assert entry["note"] == "mine"
    assert entry["command"] == ["/new/mnem", "mcp"]


def test_a_hook_that_was_moved_into_a_group_is_found_and_taken_out(home: Home) -> None:
    home.apply("claude-code")
    file = home.path / ".claude" / "settings.json"
    ours = document(file).data["hooks"]["Stop"][0]["hooks"][0]
    theirs = {"type": "command", "command": "say done"}
    edit(file, "hooks", "Stop", 0, value={"hooks": [theirs, ours]})

    assert home.plan("claude-code").changed_files == []
    assert home.undo("claude-code") == []

    assert document(file).data == {"hooks": {"Stop": [{"hooks": [theirs]}]}}


PLUGIN = ".config/opencode/plugins/mnem.js"


@pytest.mark.parametrize(
    ("has_journal", "says"), [(True, "changed since"), (False, "delete it yourself")]
)
def test_an_own_file_that_was_changed_is_left_and_told(
    home: Home, *, has_journal: bool, says: str
) -> None:
    home.apply("opencode")
    plugin = home.path / PLUGIN
    plugin.write_text(plugin.read_text() + "// mine\n")
    if not has_journal:
        shutil.rmtree(home.state)

    (problem,) = home.undo("opencode")

    assert says in problem
    assert plugin.exists()


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


@pytest.mark.parametrize("text", ["null", "[]", "{", ""])
def test_another_tools_file_without_an_object_keeps_no_undo_from_its_work(
    home: Home, text: str
) -> None:
    home.write("cursor", "foreign")
    before = home.snapshot()
    home.apply("cursor")
    other = home.path / ".gemini" / "settings.json"
    other.parent.mkdir()
    other.write_text(text)

    assert home.undo() == []

    assert other.read_text() == text
    shutil.rmtree(other.parent)
    assert home.snapshot() == before


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


OURS, OTHER = "our plugin is installed", "another file of this name"
CLAUDES = ".claude/plugins/installed_plugins.json"
INSTALLED = [
    ("claude-code", CLAUDES, '{"plugins": {"mnem@x": []}}', OURS),
    ("codex", ".codex/config.toml", '[plugins."mnem@x"]\nenabled = true\n', OURS),
    ("cursor", ".cursor/plugins/local/mnem/plugin.json", "{}", OURS),
    ("gemini", ".gemini/extensions/mnem/gemini-extension.json", "{}", OURS),
    ("opencode", PLUGIN, "export default {}\n", OTHER),
]


@pytest.mark.parametrize(("tool", "name", "content", "says"), INSTALLED)
def test_nothing_is_written_next_to_a_plugin(
    home: Home, tool: str, name: str, content: str, says: str
) -> None:
    file = home.path / name
    file.parent.mkdir(parents=True)
    file.write_text(content)
    before = home.snapshot()

    (problem,) = home.apply(tool)

    assert says in problem
    assert home.snapshot() == before


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
    file = home.path / ".claude.json"
    file.write_text('{"numStartups": 3}')
    before = home.snapshot()
    with_claude(home, WORKING.format(python=sys.executable, file=str(file)))

    assert home.apply("claude-code") == []

    assert '    "numStartups": 3' in file.read_text()
    assert_set_up(home, "claude-code")
    edit(file, "numStartups", value=4)
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


def test_an_undo_after_a_crash_before_the_write_leaves_the_file(home: Home) -> None:
    home.write("gemini", "foreign")
    before = home.snapshot()
    home.apply("gemini")
    home.write("gemini", "foreign")

    assert home.undo("gemini") == []

    assert home.snapshot() == before


def write_foreign_entry(home: Home, tool: str) -> int:
    server = next(
        part
        for part in TARGETS[tool].parts(home.site)
        if isinstance(part, EntryPart) and part.label == "MCP server"
    )
    file = Document(server.file, "")
    file.set_value(server.path, {"command": "/opt/other", "args": ["serve"]})
    server.file.parent.mkdir(parents=True, exist_ok=True)
    server.file.write_text(file.text)
    return 1


def write_text(home: Home, tool: str, text: str) -> int:
    for file in home.files(tool):
        begin, end = ("a = ", "") if file.suffix == ".toml" else ('{"a": ', "}")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.format(begin=begin, end=end))
    return len(home.files(tool))


def write_read_only(home: Home, tool: str) -> int:
    home.write(tool, "foreign")
    home.files(tool)[-1].chmod(0o444)
    return 1


DEEP = "{begin}" + "[" * 700 + "]" * 700 + "{end}\n"
CONFLICTS: dict[str, tuple[Callable[[Home, str], int], str]] = {
    "foreign": (
        write_foreign_entry,
        "another entry of this name, which starts /opt/other",
    ),
    "garbled": (lambda home, tool: write_text(home, tool, "{{ no: [\n"), "line"),
    "deep": (lambda home, tool: write_text(home, tool, DEEP), "nest"),
    "read-only": (write_read_only, "it is read-only"),
}
"""What writes files that setup must not change, and how many; words of each problem."""


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("conflict", CONFLICTS)
def test_a_file_that_cannot_be_changed_is_told_and_nothing_is_touched(
    home: Home, tool: str, conflict: str
) -> None:
    write, said = CONFLICTS[conflict]
    count = write(home, tool)
    before = home.snapshot()

    problems = home.apply(tool)

    assert len(problems) == count
    assert all(said in problem for problem in problems), problems
    assert home.snapshot() == before


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"a": "\xff"}', "not UTF-8"),
        (b"[]", "does not contain an object"),
        (b'{"mcpServers": []}', "unusual form"),
        (b'{"mcpServers": {}, "mcpServers": {}}', "twice"),
    ],
)
def test_a_form_that_is_not_safe_is_told(home: Home, content: bytes, said: str) -> None:
    file = home.path / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_bytes(content)

    (problem,) = home.apply("cursor")

    assert said in problem
    assert file.read_bytes() == content


def test_a_directory_in_the_place_of_a_file_is_told(home: Home) -> None:
    (home.path / ".cursor" / "mcp.json").mkdir(parents=True)

    assert "not a regular file" in home.apply("cursor")[0]


def test_a_change_meanwhile_is_not_overwritten(home: Home) -> None:
    plan = home.plan("cursor")
    file = home.path / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text('{"new": 1}')

    (problem,) = set_up(plan, home.journal)

    assert "changed meanwhile" in problem
    assert file.read_text() == '{"new": 1}'


def test_a_change_while_a_file_is_replaced_is_told(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def replace_and_change(file: Path) -> Iterator[BinaryIO]:
        with replacing_file(file) as opened:
            yield opened
        if file.name == "mcp.json":
            file.write_text('{"new": 1}')

    monkeypatch.setattr(files, "replacing_file", replace_and_change)

    assert "changed by another program" in home.apply("cursor")[0]
    assert (home.path / ".cursor" / "mcp.json").read_text() == '{"new": 1}'


def test_two_setups_at_once_keep_the_edits_of_both(tmp_path: Path) -> None:
    one, other = (SetupJournal(tmp_path / "setup") for _ in range(2))

    def add(journal: SetupJournal, tool: str) -> None:
        edit = FileEdit(tool, "user", f"/{tool}", files.ABSENT, "", [], [], made=True)
        journal.add(edit, None)

    def add_other() -> None:
        with other.lock():
            add(other, "zed")

    waiting = threading.Thread(target=add_other)
    with one.lock():
        waiting.start()
        waiting.join(0.2)
        add(one, "cursor")
    waiting.join()

    edits = SetupJournal(tmp_path / "setup").edits
    assert [edit.tool for edit in edits] == ["cursor", "zed"]


@pytest.mark.parametrize("tool", TOOLS)
def test_a_link_stays_and_its_file_is_written(home: Home, tool: str) -> None:
    home.write(tool, "foreign")
    for number, file in enumerate(home.files(tool)):
        real = home.path / "dotfiles" / f"{number}{file.suffix}"
        real.parent.mkdir(exist_ok=True)
        file.rename(real)
        file.symlink_to(real)
    before = home.snapshot()

    assert home.apply(tool) == []

    assert all(file.is_symlink() for file in home.files(tool))
    assert_set_up(home, tool)
    assert home.undo(tool) == []
    assert home.snapshot() == before


def test_a_mode_stays_and_a_copy_is_readable_for_its_owner_alone(home: Home) -> None:
    home.write("gemini", "foreign")
    file = home.files("gemini")[0]
    file.chmod(0o640)

    home.apply("gemini")
    mode = file.stat().st_mode
    kept = [path for path in home.state.rglob("*") if path.is_file()]
    folders = [home.state.stat().st_mode, (home.state / "before").stat().st_mode]
    texts = [path.read_text() for path in kept]
    home.undo("gemini")

    assert mode & 0o777 == file.stat().st_mode & 0o777 == 0o640
    assert TEXTS[".json"]["foreign"] in texts
    assert [folder & 0o077 for folder in folders] == [0, 0]
