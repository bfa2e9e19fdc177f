"""The codes that `mnem` ends with, and how it names what is at fault."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
from e2e.daemons import WAIT_S, Daemon, mnem, short_room
from e2e.filled import filled
from e2e.terminals import popen

__all__ = ["filled"]

pytestmark = [pytest.mark.e2e, pytest.mark.thorough]


@pytest.mark.parametrize(
    "words", [["recall", "tea", "--tier", "cold"], ["recal", "tea"]]
)
def test_a_mistyped_command_is_told_in_json_where_that_is_asked_for(
    filled: Daemon, words: list[str]
) -> None:
    plain = filled.mnem(*words)
    as_json = filled.mnem(*words, "--json")

    assert (plain.returncode, as_json.returncode) == (2, 2)
    assert plain.stderr.startswith(b"mnem: ")
    assert json.loads(as_json.stderr)["error"]["code"] == "invalid_request"


def test_a_format_that_there_is_not_is_named_as_it_was_set(shared: Daemon) -> None:
    words = ("--socket", str(shared.socket), "list")
    done = mnem(*words, home=shared.home, MNEM_FORMAT="xml")

    assert done.returncode == 2
    assert done.stderr.startswith(b"mnem: MNEM_FORMAT=xml is not a format; ")


def test_done_is_zero_and_nothing_found_is_one(filled: Daemon) -> None:
    assert filled.mnem("recall", "tea").returncode == 0

    nothing = filled.mnem("recall", "zeppelin")

    assert (nothing.returncode, nothing.stdout) == (1, b"")
    assert nothing.stderr == b"nothing found\n"


@pytest.mark.parametrize(
    "words", [["recall"], ["recall", "--limit", "x", "tea"], ["dream"]]
)
def test_bad_input_is_two(filled: Daemon, words: list[str]) -> None:
    done = filled.mnem(*words)

    assert done.returncode == 2
    assert done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["status", "recall", "remember"])
def test_no_daemon_is_three_and_says_how_to_start_one(
    tmp_path: Path, command: str
) -> None:
    words = [command, *(["tea"] if command != "status" else [])]

    done = mnem("--socket", str(tmp_path / "none"), *words, home=tmp_path)

    assert done.returncode == 3
    assert b"Start it with `mnem start`" in done.stderr


def test_an_unknown_id_is_four(filled: Daemon) -> None:
    done = filled.mnem("get", "nobody")

    assert done.returncode == 4
    assert done.stderr.startswith(b"mnem: nothing has the id 'nobody'")


def test_a_conflict_is_five(filled: Daemon) -> None:
    assert filled.mnem("remember", "--id", "tea", "coffee").returncode == 5


def test_a_failure_of_the_daemon_is_six(tmp_path: Path) -> None:
    body = (
        b'{"error": {"code": "internal_error", "message": "unexpected", "field": null}}'
    )
    head = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: %d\r\n\r\n" % len(
        body
    )
    with short_room() as room, socket.socket(socket.AF_UNIX) as listener:
        listener.settimeout(WAIT_S)
        listener.bind(str(room / "s"))
        listener.listen()
        asking = popen(room / "s", "status", home=tmp_path)
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(head + body)
            _, said = asking.communicate(timeout=WAIT_S)

    assert (asking.returncode, said) == (6, b"mnem: unexpected\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--limit", "101"], "--limit must be at most 100"),
        (["--since=soon"], '--since: "soon" is not a valid time; try yesterday, 7d or'),
        (
            ["--until", "03/04/2026"],
            '--until: "03/04/2026" can be read as 2026-03-04 or',
        ),
    ],
)
def test_an_option_at_fault_is_named_as_it_was_typed(
    shared: Daemon, words: list[str], said: str
) -> None:
    done = shared.mnem("recall", "tea", *words)

    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode().startswith(f"mnem: {said}")


@pytest.mark.parametrize(
    ("id", "said"),
    [
        ("", "id must not be empty"),
        ("x" * 201, "id must have at most 200 characters"),
        ("x", "nothing has the id 'x'"),
    ],
)
def test_an_id_that_can_be_none_is_named_as_it_was_typed(
    shared: Daemon, id: str, said: str
) -> None:
    done = shared.mnem("get", id)

    assert done.stdout == b""
    assert done.stderr.decode().startswith(f"mnem: {said}")
