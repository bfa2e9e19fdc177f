"""`mnem`: its help, and completion in a shell."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import msgspec
import pytest
from e2e.commands import COMMANDS
from e2e.daemons import WAIT_S, mnem

from mnemosyned.verbs.facade import ALIASES, VERBS

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_shows_each_field(tmp_path: Path, command: str) -> None:
    done = mnem(command, "--help", home=tmp_path)

    shown = done.stdout.decode()
    verb = VERBS.get(ALIASES.get(command, command.replace("-", "_")))
    fields = [field.name for field in msgspec.structs.fields(verb)] if verb else []
    assert done.returncode == 0
    for name in fields:
        option = re.compile(rf"--{name.replace('_', '-')}[ ,]")
        assert option.search(shown) or name.upper() in shown, name
    if verb:
        assert str(verb.__doc__).splitlines()[0] in " ".join(shown.split())


def test_the_help_names_every_command_and_exit_code(tmp_path: Path) -> None:
    shown = mnem("--help", home=tmp_path).stdout.decode()

    codes = " ".join(shown.partition("Exit codes:")[2].split())
    assert all(f"\n  {command} " in shown for command in COMMANDS)
    assert re.findall(r"\d", codes) == list("01234567")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_completion_script(tmp_path: Path, shell: str) -> None:
    done = mnem("completion", shell, home=tmp_path)

    assert (done.returncode, done.stderr) == (0, b"")
    assert f"_MNEM_COMPLETE={shell}_complete" in done.stdout.decode()
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=done.stdout, timeout=WAIT_S, check=True)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("mnem rec", {"recall"}),
        (
            "mnem re",
            {
                "recall",
                "remember",
                "remove-learning",
                "restart",
                "restore",
                "restore-db",
            },
        ),
        ("mnem recall --li", {"--limit"}),
        ("mnem recall --tier ", {"archive", "episodic", "working"}),
        ("mnem completion z", {"zsh"}),
    ],
)
def test_completion_completes(tmp_path: Path, typed: str, expected: set[str]) -> None:
    place = str(len(typed.split(" ")) - 1)

    done = mnem(
        home=tmp_path, _MNEM_COMPLETE="bash_complete", COMP_WORDS=typed, COMP_CWORD=place
    )  # fmt: skip

    offered = {line.partition(",")[2] for line in done.stdout.decode().splitlines()}
    assert offered == expected


def test_completion_speaks_of_no_format_that_was_set(tmp_path: Path) -> None:
    done = mnem(
        home=tmp_path,
        _MNEM_COMPLETE="bash_complete",
        COMP_WORDS="mnem doctor --re",
        COMP_CWORD="2",
        MNEM_FORMAT="xml",
    )

    assert (done.stdout, done.stderr) == (b"plain,--repair\n", b"")
