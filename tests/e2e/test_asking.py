"""Questions, help and completion as people type them, and what a terminal, a pipe and a full disk get."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from e2e.commands import COMMANDS
from e2e.daemons import WAIT_S, Daemon, mnem
from e2e.terminals import on_terminal, shell

pytestmark = pytest.mark.e2e


FIRST, SECOND = "01KAYTE2S0AAAAAAAAAAAAAAAA", "01KAYTE2S0BBBBBBBBBBBBBBBB"


@pytest.fixture(scope="module")
def asked(shared: Daemon) -> Daemon:
    """A daemon with two memories whose ids begin alike, and one with an id of the user's own."""
    shared.post("remember", id=FIRST, content="We deploy on Tuesdays.")
    shared.post("remember", id=SECOND, content="We never deploy on Fridays.")
    shared.post("remember", id="tea", content="Tea at four.")
    shared.post("remember", id="7", content="Lucky.")
    return shared


def test_several_ids_that_begin_alike_are_all_named(asked: Daemon) -> None:
    done = asked.mnem("get", FIRST[:8])

    assert done.returncode == 2
    assert FIRST in done.stderr.decode()
    assert "We never deploy on Fridays." in done.stderr.decode()


@pytest.mark.thorough
def test_a_number_is_an_entry_of_the_last_list_or_an_id(asked: Daemon) -> None:
    done = shell(
        asked,
        """
        ids=$(mnem recall deploy tea --format ids)
        mnem recall deploy tea --format table > /dev/null
        mnem get 2 --format ids; mnem get '#2' --format ids; mnem get 7 --format ids
        echo "$ids" | sed -n 2p
        mnem get 9; mnem get %1 --socket "$MNEMOSYNE_SOCKET" --json > /dev/null && echo found
        """,
    )

    second, marked, own, expected, found = done.stdout.split()
    assert second == marked == expected
    assert (own, found) == ("7", "found")
    assert "the last list has the numbers 1 to 3" in done.stderr


@pytest.mark.thorough
def test_another_terminal_has_no_such_list(asked: Daemon) -> None:
    shell(asked, "mnem recall tea --format table")

    done = shell(asked, "mnem get @1")

    assert "this terminal has shown no list yet" in done.stderr


@pytest.mark.thorough
def test_a_shell_completes_commands_ids_and_sessions(asked: Daemon) -> None:
    done = shell(
        asked,
        """
        export _MNEM_COMPLETE=bash_complete
        COMP_WORDS="mnem stat" COMP_CWORD=1 mnem
        COMP_WORDS="mnem get te" COMP_CWORD=2 mnem
        COMP_WORDS="mnem recall --session def" COMP_CWORD=3 mnem
        COMP_WORDS="mnem log --format t" COMP_CWORD=3 mnem
        """,
    )

    assert done.stdout.split() == [
        *("plain,status", "plain,tea", "plain,default"),
        *("plain,table", "plain,tsv"),
    ]


def test_a_full_disk_gets_one_line(asked: Daemon) -> None:
    done = shell(asked, "mnem recall tea > /dev/full")

    said = "mnem: the answer could not be written: the disk is full: free space, then try again\n"
    assert (done.returncode, done.stderr) == (1, said)


@pytest.mark.thorough
def test_ascii_alone_is_no_failure(asked: Daemon) -> None:
    done = shell(
        asked,
        "mnem recall tea | cut -f 7; mnem get tea | tail -n 1",
        PYTHONIOENCODING="ascii",
        LC_ALL="C",
    )

    assert done.stdout == "Tea at four.\nTea at four.\n"
    assert done.stderr == ""


def test_a_long_answer_goes_through_the_pager(asked: Daemon) -> None:
    with on_terminal(asked, "recall", "tea", MNEM_PAGER="sed s/^/paged:/") as (
        process,
        seen,
    ):
        assert process.wait(WAIT_S) == 0
        assert b"paged:" not in seen()

    with on_terminal(asked, "status", MNEM_PAGER="sed s/^/paged:/", lines=5) as (
        process,
        seen,
    ):
        assert process.wait(WAIT_S) == 0
        assert seen().count(b"paged:") > 5


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_styles_are_left_away_where_asked(asked: Daemon, name: str, value: str) -> None:
    settings: Any = {name: value}

    with on_terminal(asked, "recall", "tea", **settings) as (process, seen):
        assert process.wait(WAIT_S) == 0
        assert b"\x1b" not in seen()


# `mnem`: its help, and completion in a shell.


def test_the_help_names_every_command_and_exit_code(tmp_path: Path) -> None:
    shown = mnem("help", "all", home=tmp_path).stdout.decode()
    shown = mnem("admin", home=tmp_path).stdout.decode() + shown

    codes = " ".join(shown.partition("Exit codes:")[2].split())
    assert all(f"\n  {command} " in shown for command in COMMANDS)
    assert re.findall(r"\d", codes) == list("01234567")


def test_the_first_help_names_the_commands_of_every_day(tmp_path: Path) -> None:
    shown = mnem("--help", home=tmp_path).stdout.decode()

    assert mnem("help", home=tmp_path).stdout.decode() == shown
    assert len(shown.splitlines()) < 50
    assert all(f"\n  {name} " in shown for name in ("setup", "recall", "forget", "web"))
    assert "\n  unpin " not in shown
    assert "mnem help all" in shown


@pytest.mark.parametrize("words", ["recall", "owner add"])
def test_help_of_a_command_is_that_of_its_option(tmp_path: Path, words: str) -> None:
    command = words.split()

    shown = mnem("help", *command, home=tmp_path).stdout

    assert shown == mnem(*command, "--help", home=tmp_path).stdout


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
        ("mnem re", {"recall", "remember", "remove-learning", "restart", "restore", "restore-db"}),
        ("mnem recall --li", {"--limit"}),
        ("mnem recall --tier ", {"archive", "episodic", "working"}),
        ("mnem completion z", {"zsh"}),
        ("mnem doctor --re", {"--repair"}),
    ],
)  # fmt: skip
def test_completion_completes(tmp_path: Path, typed: str, expected: set[str]) -> None:
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split(" ")) - 1)}

    for form in ("table", "xml"):  # a format that is none is not spoken of here
        settings: Any = {
            "_MNEM_COMPLETE": "bash_complete",
            "MNEM_FORMAT": form,
            **words,
        }
        done = mnem(home=tmp_path, **settings)

        offered = {line.partition(",")[2] for line in done.stdout.decode().splitlines()}
        assert (offered, done.stderr) == (expected, b"")
