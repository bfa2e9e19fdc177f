"""`mnem edit` with an editor: what it opens, sends and keeps."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from e2e.daemons import Daemon, mnem, running, short_room

pytestmark = pytest.mark.e2e


@pytest.fixture
def editor(tmp_path: Path) -> Path:
    return tmp_path / "editor"


def write(editor: Path, script: str) -> None:
    editor.write_text(f"#!/bin/sh\n{script}\n")
    editor.chmod(0o700)


def edited(daemon: Daemon, editor: Path) -> subprocess.CompletedProcess[bytes]:
    words = ("--socket", str(daemon.socket), "edit", "m")
    return mnem(*words, home=daemon.home, EDITOR=str(editor))


def test_the_editor_changes_what_was_changed_in_it(editor: Path) -> None:
    with short_room() as home, running(home) as daemon:
        daemon.post("remember", id="m", content="the kettle is hot", session="home")
        write(
            editor,
            """sed -i 's/kettle/samovar/; s/^session: .*/session: away/' "$1" """,
        )

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


def test_words_that_changed_meanwhile_are_not_overwritten(editor: Path) -> None:
    with short_room() as home, running(home) as daemon:
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
    assert daemon.mnem("edit", "m", "--text", "the pot").returncode == 0


def test_new_words_on_standard_input_have_to_be_text(daemon: Daemon) -> None:
    daemon.post("remember", id="m", content="the kettle")

    refused = daemon.mnem("edit", "m", "--text", "-", stdin=b"\xff\xfe")
    edited = daemon.mnem("edit", "m", "--text", "-", stdin=b"the pot\n")

    assert refused.returncode == 2
    assert refused.stderr.startswith(b"mnem: standard input is not UTF-8 at byte 0\n")
    assert (edited.returncode, edited.stdout) == (0, b"m is edited\n")


def test_an_editor_opens_on_the_beginning_of_an_id(editor: Path) -> None:
    with short_room() as home, running(home) as daemon:
        daemon.post("remember", id="kettle-1", content="the kettle is hot")
        write(editor, """sed -i 's/kettle/samovar/' "$1" """)

        words = ("--socket", str(daemon.socket), "edit", "KETTL")
        done = mnem(*words, home=daemon.home, EDITOR=str(editor))

        assert (done.returncode, done.stdout) == (0, b"kettle-1 is edited\n")
