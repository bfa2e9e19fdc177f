"""A home of its own for tests of setup, with the configuration files of tools in it."""

from __future__ import annotations

import json
from pathlib import Path

from mnemosyned.agents.setup.documents import Document
from mnemosyned.agents.setup.files import SetupJournal
from mnemosyned.agents.setup.parts import (
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
    recognized_edits,
    set_up,
    undo_all,
)

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
        journal.edits += recognized_edits(TARGETS.values(), self.site, journal)
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
