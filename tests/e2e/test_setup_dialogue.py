"""`mnem setup` at a terminal: what it asks, and what an answer does."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from pathlib import Path

import pytest
from e2e.daemons import WAIT_S, environment
from e2e.programs import BIN

pytestmark = pytest.mark.e2e


def typed(home: Path, keys: bytes, *words: str) -> tuple[int, str]:
    """Run the command at a terminal at which someone types these keys; what it shows."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [BIN / "mnem", "setup", *words],
        env=environment(home, COLUMNS="80", PATH=str(home / "bin")),
        cwd=home,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    os.close(theirs)
    os.write(ours, keys)
    shown, _ = process.communicate(timeout=WAIT_S)
    os.close(ours)
    return process.returncode, shown.decode()


def test_a_dialogue_asks_for_each_tool_and_shows_what_it_gets(tmp_path: Path) -> None:
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".config" / "zed").mkdir(parents=True)

    code, shown = typed(tmp_path, b"n\ny\n")

    assert code == 0
    assert re.search("^Cursor +MCP server; 5 hooks$", shown, re.MULTILINE)
    assert re.search("^Zed +MCP server$", shown, re.MULTILINE)
    assert "Write this for Cursor? [Y/n]" in shown
    assert "Write this for Zed? [Y/n]" in shown
    assert (tmp_path / ".config" / "zed" / "settings.json").exists()
    assert list((tmp_path / ".cursor").iterdir()) == []


def test_a_no_leaves_everything(tmp_path: Path) -> None:
    code, shown = typed(tmp_path, b"n\n", "cursor")

    assert code == 1
    assert "Write this for Cursor? [y/N]" in shown
    assert "nothing was changed" in shown
    assert list(tmp_path.iterdir()) == []
