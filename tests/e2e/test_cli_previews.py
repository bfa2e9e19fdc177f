"""`mnem forget`: what it shows before it does anything, and whom it asks."""

from __future__ import annotations

import json
import re

import pytest
from e2e.conftest import Start
from e2e.daemons import WAIT_S, Daemon
from e2e.filled import filled
from e2e.terminals import on_terminal

__all__ = ["filled"]

pytestmark = [pytest.mark.e2e, pytest.mark.thorough]


def test_forgetting_shows_what_would_go_and_needs_a_yes_where_nobody_can_answer(
    filled: Daemon,
) -> None:
    filled.post("remember", id="ask", content="the heron stands alone")

    refused = filled.mnem("forget", "--query", "heron")
    left = filled.post("get", id="ask").status
    done = filled.mnem("forget", "--query", "heron", "--yes")

    assert (refused.returncode, left) == (2, 200)
    assert b"would forget: 1 memory " in refused.stderr
    assert b"the heron stands alone" in refused.stderr
    assert b"--yes" in refused.stderr
    assert (done.returncode, done.stdout.startswith(b"forgotten: 1 memory ")) == (
        0,
        True,
    )
    assert b"heron" not in done.stdout + done.stderr


def test_a_preview_shows_every_memory_that_would_go(filled: Daemon) -> None:
    said = [f"ibex {number} on the ridge" for number in range(86)]
    filled.post("remember_many", memories=[{"content": words} for words in said])

    asked = filled.mnem("forget", "--query", "ibex").stderr.decode()
    shown = filled.mnem("forget", "--query", "ibex", "--dry-run").stdout.decode()
    as_json = json.loads(
        filled.mnem("forget", "--query", "ibex", "--dry-run", "--json").stdout
    )
    over_http = filled.post("forget", query="ibex", dry_run=True).body

    for text in (asked, shown):
        assert [words for words in said if words not in text] == []
        assert " more" not in text
    for answer in (as_json, over_http):
        assert [line["snippet"] for line in answer["lines"]] == said
        assert (answer["memories"], answer["further"]) == (86, 0)


@pytest.mark.parametrize(
    "words", [["forget", "--query", "zeppelin"], ["archive", "prune"]]
)
def test_forgetting_nothing_asks_no_question(filled: Daemon, words: list[str]) -> None:
    done = filled.mnem(*words)
    as_json = filled.mnem(*words, "--json")

    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"nothing to ")
    assert json.loads(as_json.stdout)["memories"] == 0


@pytest.mark.parametrize(
    ("answer", "code", "status"), [(b"n\n", 1, 200), (b"y\n", 0, 404)]
)
def test_on_a_terminal_forgetting_asks(
    filled: Daemon, answer: bytes, code: int, status: int
) -> None:
    filled.post("remember", id="ask", content="the heron stands alone")

    with on_terminal(filled, "forget", "ask") as (process, seen):
        seen.type(answer)
        process.wait(WAIT_S)
        said = seen()

    assert b"the heron stands alone" in said
    assert b"Forget this memory? This cannot be undone." in said
    assert (b"nothing was forgotten" in said) == (code == 1)
    assert process.returncode == code
    assert filled.post("get", id="ask").status == status


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize(
    ("answer", "code", "tier"), [(b"n\n", 1, "archive"), (b"y\n", 0, "working")]
)
def test_taking_a_cycle_back_says_of_what_and_asks(
    start: Start, answer: bytes, code: int, tier: str, *, named: bool
) -> None:
    daemon = start()
    for number in range(3):
        content = f"the heron number {number} stands alone"
        daemon.post("remember", id=f"heron-{number}", content=content)
    cycle = daemon.post("sleep", force=True).body["cycle"]
    words = ["undo", *([cycle] if named else [])]

    refused = daemon.mnem(*words)
    with on_terminal(daemon, *words) as (process, seen):
        seen.type(answer)
        process.wait(WAIT_S)
        said = seen()

    foreseen = b"would put back 3 memories of 1 group, 93 characters"
    assert refused.returncode == 2
    head = rb"cycle %b of 20\d\d-.*: %b" % (cycle.encode(), foreseen)
    assert re.match(head, refused.stderr)
    assert b"would put back 3 memories" in said
    assert b"refusing to take back a cycle without a terminal" in refused.stderr
    assert b"Take this cycle back? Its summaries are deleted." in said
    assert (b"nothing was taken back" in said) == (code == 1)
    assert process.returncode == code
    assert daemon.post("get", id="heron-0").body["memory"]["tier"] == tier
