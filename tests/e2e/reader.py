"""Someone who types what a page shows, next to a real daemon."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from e2e.daemons import environment
from e2e.programs import BIN, start
from support.pages import Block, ids, matches, steps

TIME_LIMIT_S = 60
MNEM = str(BIN / "mnem")
SHELL_MARKS = re.compile(r"[$`~*{}\\]")
SHELL_OPERATORS = frozenset("();<>|&")


class Reader:
    """Someone who types what a page shows, in a home of their own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.known_ids: dict[str, str] = {}
        """The ids on the page, and those that were printed in their place."""
        path = f"{BIN}:{os.environ['PATH']}"
        self.environment = environment(
            home,
            XDG_RUNTIME_DIR=str(home),
            PATH=path,
            COLUMNS="100",
            MNEM_FORMAT="table",
            MNEMOSYNE_HOOK_WAIT_S="5",  # machines of tests are slow
        )

    def read(self, block: Block) -> None:
        if block.language == "console":
            for step in steps(block):
                self._check(step.command, command_of(step.command), step.output)
        elif block.language == "python":
            program = [sys.executable, "-W", "error", "-c", block.text]
            self._check(block.text, program, block.output or "")

    def _check(self, shown: str, command: Sequence[str], expected: str) -> None:
        for on_page, here in self.known_ids.items():
            command = [word.replace(on_page, here) for word in command]
        printed = self._printed_by(command)
        self.known_ids |= dict(zip(ids(expected), ids(printed), strict=False))
        assert matches(expected, printed), (
            f"$ {shown}\n--- the page shows\n{expected}\n--- it printed\n{printed}"
        )

    def _printed_by(self, command: Sequence[str]) -> str:
        """Run a command to its end, and return what it printed to either stream."""
        with tempfile.TemporaryFile() as output:
            process = start(
                command,
                self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                anew=command[0] != MNEM,
                directory=self.home,
            )
            try:
                process.wait(TIME_LIMIT_S)
            finally:
                process.kill()
                process.wait(TIME_LIMIT_S)
            output.seek(0)
            return output.read().decode()


def command_of(line: str) -> list[str]:
    """Return the words of a line, or a shell that reads it where only a shell can."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = list(lexer)
    is_simple = words[0] == "mnem" and not SHELL_MARKS.search(line)
    if not is_simple or any(set(word) <= SHELL_OPERATORS for word in words if word):
        return ["bash", "-c", line]
    return [MNEM, *words[1:]]
