"""A conversation compacted from the shell, and what a daemon that starts again still has of it."""

from __future__ import annotations

import json

import pytest
from e2e.conftest import Start
from e2e.daemons import Daemon, Json, kept

pytestmark = pytest.mark.e2e

TALK = [
    {
        "role": "user" if n % 2 else "assistant",
        "content": f"Step {n}: decided: plan {n}. " * 30,
    }
    for n in range(40)
]


def compact(daemon: Daemon, *words: str, talk: Json = TALK) -> Json:
    done = daemon.mnem(
        "compact", "-", "--json", *words, stdin=json.dumps(talk).encode()
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_killed_daemon_still_expands_what_it_compacted(start: Start) -> None:
    daemon = start()
    answer = compact(daemon, "--max-tokens", "2000", "--policy", "facts")

    daemon.kill()
    again = start()

    words = again.post("expand", id=answer["expand"][0]).body["originals"]
    assert [one["content"] for one in words] == [one["content"] for one in TALK[:-4]]
    assert len(kept(again.database)) == len(TALK) - 4


def test_people_read_what_was_done_and_how_to_undo_it(daemon: Daemon) -> None:
    talk = json.dumps({"model": "any", "messages": TALK}).encode()

    done = daemon.mnem("compact", "-", "--max-tokens", "2000", stdin=talk)
    idle = daemon.mnem("compact", "-", stdin=b"[]")
    window = daemon.mnem("context", "Which plan?", "--messages", "-", stdin=talk)

    shown = done.stdout.decode()
    assert "messages remembered" in shown
    assert "their words: mnem expand c-" in shown
    assert "nothing to do" in idle.stdout.decode()
    assert "by estimate+20%" in window.stdout.decode()


@pytest.mark.parametrize(
    ("given", "field"),
    [(b"{", "messages"), (b'{"other": 1}', "messages"), (b'["words"]', "messages[0]")],
)
def test_compact_refuses_what_is_not_a_conversation(
    daemon: Daemon, given: bytes, field: str
) -> None:
    done = daemon.mnem("compact", "-", "--json", stdin=given)

    assert done.returncode == 2
    assert json.loads(done.stderr)["error"]["field"] == field
