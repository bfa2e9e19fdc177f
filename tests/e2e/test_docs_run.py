"""The commands and programs that the pages show, run against a real daemon."""

from __future__ import annotations

from pathlib import Path

import pytest
from e2e.daemons import running, short_room
from e2e.reader import Reader
from support.pages import PAGES, Block, blocks

pytestmark = pytest.mark.e2e

RUNNABLE = ("console", "python")
OPTIONAL = "mnemosyned.adapters"
"""The mark of programs that need a framework; `tests/adapters` runs them."""


def runs(block: Block) -> bool:
    return block.language in RUNNABLE and OPTIONAL not in block.text


def pages_that_run() -> list[Path]:
    return [page for page in PAGES if any(map(runs, blocks(page)))]


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page, marks=() if page.name == "README.md" else pytest.mark.thorough
        )
        for page in pages_that_run()
    ],
    ids=lambda page: page.name,
)
def test_a_page_shows_what_its_commands_print(page: Path) -> None:
    with short_room() as home:
        runtime = home / "mnemosyned"
        runtime.mkdir(mode=0o700)
        with running(home, "--socket", str(runtime / "mnemosyned.sock")):
            reader = Reader(home)
            for block in filter(runs, blocks(page)):
                reader.read(block)


def test_the_readme_and_the_first_page_run() -> None:
    assert {"README.md", "getting-started.md"} <= {
        page.name for page in pages_that_run()
    }
