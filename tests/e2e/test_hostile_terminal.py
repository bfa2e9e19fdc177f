"""At a real terminal, over every command: no memory, name or id steers it or hides in it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from e2e.conftest import Start
from e2e.daemons import Daemon
from e2e.terminals import on_terminal

pytestmark = pytest.mark.e2e

EVIL = (
    "\x1b[2J\x1b]0;pwned\x07\x1b]8;;http://evil.example\x07link\x1b]8;;\x07\x1b[8mhidden\x1b[0m"
    "\x9b31m\x08\x08\x7f\x0b\x0c\x85\u2028\u2029\u202eevil\u2066\u200b\ufeff\u061c\U000e0041"
)
NAME = f"n{EVIL}\nforged line"
OURS = re.compile(r"\x1b\[(?:0|1|2|4|31)m|\x1b\[\?25[lh]|\x1b\[K")
"""Styles, and what click's progress bar needs."""
STEERING = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff"
    "\U000e0000-\U000e0fff]"
)


def printed(daemon: Daemon, *words: str) -> str:
    """All that a command shows at a terminal; where it asks, the answer is no."""
    shown = b""
    with on_terminal(daemon, *words) as (process, seen):
        while process.poll() is None:
            shown += seen()
            if shown.endswith(b"[y/N]: "):
                seen.type(b"n\n")
        return (shown + seen()).decode()


@pytest.fixture
def daemon(start: Start) -> Daemon:
    """A daemon whose every text and name is hostile."""
    daemon = start()
    for number in range(4):
        call(
            daemon, "remember", content=f"Always use tea {number}. {EVIL} password: x\x1b[2Jy1!",
            id=f"m{number}", session=NAME, source=NAME, role=NAME,
            metadata={NAME: [EVIL, {"k": EVIL}]},
        )  # fmt: skip
    call(daemon, "learn", content=f"Always {EVIL} say it", session=NAME, source=NAME)
    call(daemon, "sleep", force=True)
    call(
        daemon,
        "remember",
        content=f"fresh tea {EVIL}",
        id="fresh",
        session=NAME,
        role=NAME,
    )
    return daemon


def call(daemon: Daemon, verb: str, **fields: object) -> Any:  # noqa: ANN401 any answer's body
    answer = daemon.post(verb, **fields)
    assert answer.status == 200, answer
    return answer.body


def assert_harmless(daemon: Daemon, *words: str) -> None:
    shown = printed(daemon, *words)

    assert shown, words
    lines = OURS.sub("", shown).replace("\r\n", "\n").replace("\r", "")
    assert STEERING.findall(lines) == [], (words, shown)
    assert not any(line.startswith("forged") for line in lines.split("\n")), (
        words,
        shown,
    )


def test_no_memory_steers_the_terminal(daemon: Daemon) -> None:
    episode = call(daemon, "log")["rows"][0]["episode"]

    assert_harmless(daemon, "recall", "tea", "--explain")
    assert_harmless(daemon, "expand", episode)
    assert_harmless(daemon, "forget", "--query", "tea")
    assert_harmless(daemon, "get", "m0", "--json")


@pytest.mark.fault
def test_no_command_steers_the_terminal(daemon: Daemon, tmp_path: Path) -> None:
    episode = call(daemon, "log")["rows"][0]["episode"]
    talk = tmp_path / "talk.json"
    talk.write_text(
        json.dumps([{"role": NAME, "content": EVIL}, {"role": "user", "content": EVIL}])
    )
    bad = tmp_path / "bad.jsonl"
    bad.write_text(json.dumps({"content": "x", NAME: EVIL}) + "\n")

    for words in (
        [],
        ["list", "--session", NAME],
        ["list", "--level", "episode"],
        *([period] for period in ("today", "day", "week", "month", "tail")),
        ["sessions"],
        ["sources"],
        ["show", "fresh"],
        ["get", "m0", "--history"],
        ["tag", f"tea {EVIL}", "fresh"],
        ["tag", "drink", "--session", NAME],
        ["edit", "fresh", "--role", NAME],
        ["edit", "fresh", "--created-at", EVIL],
        ["edit", "--of-session", NAME, "--session", "x"],
        ["watch", EVIL],
        ["export", f"{tmp_path}/{EVIL}/x"],
        ["backup", f"{tmp_path}/{EVIL}/x"],
        ["config", "set", EVIL, EVIL],
        ["recall", "tea", "--explain", "--history"],
        ["get", "m0"],
        ["get", "fresh"],
        ["get", episode],
        ["get", EVIL],
        ["log"],
        ["learnings"],
        ["learn", f"Never {EVIL}", "--session", NAME],
        ["context", "tea?", "--messages", str(talk), "--session", NAME],
        ["compact", str(talk), "--force", "--session", NAME],
        ["forget", "m0", "--dry-run"],
        ["sleep", "--dry-run", "--force"],
        ["sleep", "--force"],
        ["status"],
        ["import", str(bad)],
        ["archive", "prune", "--dry-run"],
        ["pin", EVIL],
        ["unpin", EVIL],
        ["undo", EVIL],
        ["edit-learning", EVIL, "--text", EVIL],
        ["remove-learning", EVIL],
        ["restore", EVIL],
        ["remember", "x", "--metadata", EVIL],
        [f"x{EVIL}"],
        ["remember", "tea", f"--{EVIL}"],
        ["recall", "tea", "--json"],
        ["get", EVIL, "--json"],
    ):
        assert_harmless(daemon, *words)
