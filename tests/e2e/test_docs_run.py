"""The commands and programs that the pages show, run against a real daemon."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from e2e.daemons import environment, running, short_room
from e2e.programs import BIN
from support.pages import PAGES, Block, blocks, ids, matches, steps

pytestmark = pytest.mark.e2e

RUNNABLE = ("console", "python")
TIME_LIMIT_S = 60


def pages_that_run() -> list[Path]:
    return [
        page
        for page in PAGES
        if any(block.language in RUNNABLE for block in blocks(page))
    ]


class Reader:
    """Someone who types what a page shows, in a home of their own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.known_ids: dict[str, str] = {}
        """The ids on the page, and those that were printed in their place."""
        path = f"{BIN}:{os.environ['PATH']}"
        self.environment = environment(
            home, XDG_RUNTIME_DIR=str(home), PATH=path, COLUMNS="100"
        )

    def read(self, block: Block) -> None:
        if block.language == "console":
            for step in steps(block):
                self._check(step.command, ["bash", "-c", step.command], step.output)
        elif block.language == "python":
            program = [sys.executable, "-W", "error", "-c", block.text]
            self._check(block.text, program, block.output or "")

    def _check(self, shown: str, command: Sequence[str], expected: str) -> None:
        for on_page, here in self.known_ids.items():
            command = [word.replace(on_page, here) for word in command]
        done = subprocess.run(
            command,
            cwd=self.home,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TIME_LIMIT_S,
            text=True,
            check=False,
        )
        self.known_ids |= dict(zip(ids(expected), ids(done.stdout), strict=False))
        assert matches(expected, done.stdout), (
            f"$ {shown}\n--- the page shows\n{expected}\n--- it printed\n{done.stdout}"
        )


@pytest.mark.parametrize("page", pages_that_run(), ids=lambda page: page.name)
def test_a_page_shows_what_its_commands_print(page: Path) -> None:
    with short_room() as home:
        runtime = home / "mnemosyned"
        runtime.mkdir(mode=0o700)
        with running(home, "--socket", str(runtime / "mnemosyned.sock")):
            reader = Reader(home)
            for block in blocks(page):
                reader.read(block)


def test_the_readme_and_the_first_page_run() -> None:
    assert {"README.md", "getting-started.md"} <= {
        page.name for page in pages_that_run()
    }
