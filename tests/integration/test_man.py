"""Manual pages and completion scripts are made from the commands."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from mnemosyned.cli.commands.man import SCRIPTS, manual_pages, write_manual
from mnemosyned.cli.registry import COMMANDS

PAGES = dict(manual_pages())
MAKEFILE = Path(__file__).parents[2] / "Makefile"


def test_every_command_has_a_page_with_its_example() -> None:
    assert {f"mnem-{name}" for name in COMMANDS} | {
        "mnem",
        "mnemosyned",
    } <= PAGES.keys()
    assert "mnem-archive-prune" in PAGES
    for name, command in COMMANDS.items():
        page = PAGES[f"mnem-{name}"].replace(r"\-", "-")
        summary = command.summary.removesuffix(".")
        assert f".SH NAME\nmnem-{name} - {summary}\n" in page
        assert f".SH EXAMPLE\n.EX\n{command.example}" in page


@pytest.mark.skipif(not shutil.which("groff"), reason="groff is not installed")
def test_the_pages_are_roff_without_a_mistake() -> None:
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww"],
        input="".join(PAGES.values()).encode(),
        capture_output=True,
        check=True,
    )
    text = re.sub("\x1b\\[[0-9;]*m|.\x08", "", done.stdout.decode())

    assert done.stderr == b""
    assert "-n, --limit NUMBER" in text


def test_what_is_installed_is_what_uninstall_removes(tmp_path: Path) -> None:
    write_manual(tmp_path)
    for script in SCRIPTS.values():
        assert "_MNEM_COMPLETE" in (tmp_path / script).read_text("utf-8")

    definition = re.search(
        r"^PAGES := ((?:.*\\\n)*.*)", MAKEFILE.read_text("utf-8"), re.MULTILINE
    )
    assert definition
    for pattern in definition[1].replace("\\\n", " ").split():
        for file in tmp_path.glob(pattern):
            file.unlink()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
