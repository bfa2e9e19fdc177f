"""Files that setup must not write, and what it keeps of those it does: links and modes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.setups import TEXTS, Home, assert_set_up

from mnemosyned.agents.setup.documents import Document
from mnemosyned.agents.setup.parts import EntryPart
from mnemosyned.agents.setup.targets import TARGETS
from mnemosyned.agents.setup.tools import set_up

pytestmark = pytest.mark.thorough

TOOLS = [*TARGETS]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


# ------------------------------------------------------------------ conflict


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


DEEP = "{begin}" + "[" * 5_000 + "]" * 5_000 + "{end}\n"
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
def test_a_form_that_cannot_be_edited_safely_is_told(
    home: Home, content: bytes, said: str
) -> None:
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


# ------------------------------------------------------------ links and modes


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


def test_a_mode_stays(home: Home) -> None:
    home.write("gemini", "foreign")
    file = home.files("gemini")[0]
    file.chmod(0o640)

    home.apply("gemini")
    assert file.stat().st_mode & 0o777 == 0o640
    home.undo("gemini")

    assert file.stat().st_mode & 0o777 == 0o640


def test_a_kept_copy_is_readable_for_its_owner_alone(home: Home) -> None:
    home.write("gemini", "foreign")

    home.apply("gemini")

    kept = [path for path in home.state.rglob("*") if path.is_file()]
    assert any(path.read_text() == TEXTS[".json"]["foreign"] for path in kept)
    assert all(
        path.stat().st_mode & 0o077 == 0 for path in (home.state, home.state / "before")
    )
