"""`mnem edit` with an editor, and changes by filters at a terminal."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from e2e.daemons import WAIT_S, Daemon, mnem
from e2e.terminals import on_terminal

pytestmark = pytest.mark.e2e


@pytest.fixture
def editor(tmp_path: Path) -> Path:
    return tmp_path / "editor"


def write(editor: Path, script: str) -> None:
    editor.write_text(f"#!/bin/sh\n{script}\n")
    editor.chmod(0o700)


def edited(
    daemon: Daemon, editor: Path, id: str = "m"
) -> subprocess.CompletedProcess[bytes]:
    words = ("--socket", str(daemon.socket), "edit", id)
    return mnem(*words, home=daemon.home, EDITOR=str(editor))


def test_an_editor_changes_a_memory(editor: Path, daemon: Daemon) -> None:
    daemon.post("remember", id="m", content="the kettle is hot", session="home")
    write(editor, """sed -i 's/kettle/samovar/; s/^session: .*/session: away/' "$1" """)

    done = edited(daemon, editor)

    assert (done.returncode, done.stdout) == (0, b"m is edited\n")
    memory = daemon.post("get", id="m").body["memory"]
    assert (memory["content"], memory["session"]) == ("the samovar is hot", "away")

    write(editor, "true")
    done = edited(daemon, editor)
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        b"",
        b"nothing was changed\n",
    )


def test_a_tag_may_stand_after_the_id(daemon: Daemon) -> None:
    daemon.post("remember", id="m", content="the kettle is hot")

    for words in (["tag", "m", "tea"], ["tag", "hot", "m"], ["untag", "m", "hot"]):
        assert daemon.mnem(*words).returncode == 0

    memory = daemon.post("get", id="m").body["memory"]
    assert memory["tags"] == ["tea"]


@pytest.mark.thorough
def test_newer_words_are_not_overwritten(editor: Path, daemon: Daemon) -> None:
    daemon.post("remember", id="m", content="the kettle is hot")
    write(
        editor,
        f"""sed -i 's/kettle/samovar/' "$1"
        curl -s --unix-socket {daemon.socket} http://localhost/v1/edit \\
            -d '{{"id": "m", "text": "the pot is hot"}}' > /dev/null""",
    )

    done = edited(daemon, editor)

    assert done.returncode == 5
    kept = re.search(rb"your text is kept in (\S+)", done.stderr)
    assert kept
    file = Path(kept[1].decode())
    assert "the samovar is hot" in file.read_text()
    file.unlink()
    assert daemon.post("get", id="m").body["memory"]["content"] == "the pot is hot"


def test_without_an_editor_the_options_are_named(daemon: Daemon) -> None:
    daemon.post("remember", id="m", content="the kettle")

    done = daemon.mnem("edit", "m")

    assert done.returncode == 2
    assert b"--text" in done.stderr
    assert b"say the new words: --text" in daemon.mnem("edit", "m", "nobody").stderr
    assert daemon.mnem("edit", "m", "--text", "the pot").returncode == 0


def test_new_words_on_standard_input_have_to_be_text(daemon: Daemon) -> None:
    daemon.post("remember", id="m", content="the kettle")

    refused = daemon.mnem("edit", "m", "--text", "-", stdin=b"\xff\xfe")
    edited = daemon.mnem("edit", "m", "--text", "-", stdin=b"the pot\n")

    assert refused.returncode == 2
    assert refused.stderr.startswith(b"mnem: standard input is not UTF-8 at byte 0\n")
    assert (edited.returncode, edited.stdout) == (0, b"m is edited\n")


def test_an_editor_takes_the_beginning_of_an_id(editor: Path, daemon: Daemon) -> None:
    daemon.post("remember", id="kettle-1", content="the kettle is hot")
    write(editor, """sed -i 's/kettle/samovar/' "$1" """)

    done = edited(daemon, editor, "KETTL")

    assert (done.returncode, done.stdout) == (0, b"kettle-1 is edited\n")


# Changes by filters at a terminal: all is shown, then asked for by number.

COUNT = 60


@pytest.fixture
def filled(daemon: Daemon) -> Daemon:
    memories = [
        {"id": f"m{number}", "content": f"ibex number {number}.", "session": "zoo"}
        for number in range(COUNT)
    ]
    daemon.post("remember_many", memories=memories)
    return daemon


def dialogue(daemon: Daemon, answer: bytes, *words: str) -> tuple[int, str]:
    """The exit code and everything that a terminal shows; the pager lets all of it through."""
    with on_terminal(daemon, *words) as (process, seen):
        seen.type(answer)
        code = process.wait(WAIT_S)
        return code, seen().decode()


@pytest.mark.thorough
def test_every_memory_of_a_preview_is_shown_before_the_question(filled: Daemon) -> None:
    code, shown = dialogue(filled, b"n\n", "forget", "--session", "zoo")

    assert code == 1
    assert all(f"ibex number {number}." in shown for number in range(COUNT))
    assert f"Forget these {COUNT} memories? This cannot be undone. [y/N]" in shown
    assert "nothing was forgotten" in shown
    assert filled.post("status").body["tiers"]["working"]["count"] == COUNT


def test_a_yes_changes_what_was_shown(filled: Daemon) -> None:
    code, shown = dialogue(filled, b"y\n", "tag", "animals", "--session", "zoo")

    assert code == 0
    assert f"Tag these {COUNT} memories? [y/N]" in shown
    tagged = filled.post("list", tag="animals", limit=1_000).body["memories"]
    assert len(tagged) == COUNT


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["forget", "--session", "zoo"], b"refusing to delete without a terminal"),
        (
            ["pin", "--session", "zoo"],
            b"refusing to change memories without a terminal",
        ),
    ],
)
def test_without_a_terminal_nothing_is_done(
    filled: Daemon, words: list[str], message: bytes
) -> None:
    done = filled.mnem(*words)

    assert done.returncode == 2
    assert message in done.stderr
    assert b"use --yes" in done.stderr
    assert not filled.post("get", id="m0").body["memory"]["pinned"]
    assert filled.mnem(*words, "--yes").returncode == 0


@pytest.mark.thorough
def test_a_preview_says_which_cannot_be_pinned(filled: Daemon) -> None:
    filled.post("sleep", force=True)
    filled.post("remember", id="last", content="a heron", session="zoo")

    code, shown = dialogue(filled, b"y\n", "pin", "--session", "zoo")

    assert code == 0
    question = f"Pin these {COUNT + 1} memories? {COUNT} of them are archived"
    assert question in " ".join(shown.split())
    assert "1 memory pinned" in shown
