"""A week as a user lives it: two tools learn on Monday, and a third is told on Thursday.

The daemon, the hooks and the MCP pump are real processes. Monday is three days before now: the
transcripts say so, and sleep takes what is old.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from e2e.daemons import Daemon, eventually
from e2e.hook_programs import Json, Machine
from e2e.pumps import pumping
from support.agents import (
    claude_line,
    codex_event,
    codex_meta,
    context_of,
    cursor_line,
    write_lines,
)

pytestmark = [pytest.mark.e2e, pytest.mark.thorough]

MONDAY = datetime.now(UTC) - timedelta(days=3)
DATABASE = (
    "We decided to use Postgres 16 for the cart service because of partial indexes."
)
STAGING = "The staging server of the shop is called heron-7."
STYLE = "Never use emojis in commit messages."
DEPLOY = {"prompt": "Deploy the cart to the staging server of the shop"}


def on_monday(minutes: float) -> str:
    return (MONDAY + timedelta(minutes=minutes)).isoformat()


def call(machine: Machine, event: str, fields: Json) -> str:
    """Call the hook as a tool does; return what it tells the agent."""
    return context_of(machine.hook({**fields, "hook_event_name": event}).answer)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """The repository that all tools work in."""
    root = tmp_path / "work" / "shop"
    (root / ".git").mkdir(parents=True)
    origin = '[remote "origin"]\n\turl = git@github.com:ann/shop.git\n'
    (root / ".git" / "config").write_text(origin)
    return root


def monday_in_claude(machine: Machine, shop: Path) -> None:
    """Claude Code: a decision and an instruction."""
    transcript = machine.home / ".claude" / "projects" / "-w-shop" / "s1.jsonl"
    fields = {"session_id": "s1", "transcript_path": str(transcript), "cwd": str(shop)}
    assert call(machine, "SessionStart", {**fields, "source": "startup"}) == ""
    write_lines(
        transcript,
        [
            claude_line("user", DATABASE, uuid="u1", timestamp=on_monday(0)),
            claude_line("user", STYLE, uuid="u2", timestamp=on_monday(2)),
            claude_line(
                "assistant",
                "Understood. The cart service moves to Postgres with the next migration.",
                uuid="u3",
                timestamp=on_monday(3),
            ),
        ],
    )
    call(machine, "Stop", fields)
    call(machine, "SessionEnd", {**fields, "reason": "logout"})


def monday_in_codex(machine: Machine, shop: Path) -> None:
    """Codex: the name of a server, said in a worktree."""
    folder = machine.home / ".codex" / "sessions" / "2026" / "03" / "16"
    rollout = folder / "rollout-2026-03-16T09-00-00-0199.jsonl"
    said = codex_event("user_message", STAGING) | {"timestamp": on_monday(10)}
    answer = codex_event(
        "agent_message", "Noted, the deployment script points to it now."
    )
    write_lines(rollout, [codex_meta(), said, answer | {"timestamp": on_monday(11)}])
    fields = {
        "session_id": "0199",
        "transcript_path": str(rollout),
        "cwd": str(shop / "src"),
    }
    call(machine, "Stop", {**fields, "model": "m", "turn_id": "t"})


def on_thursday(machine: Machine, shop: Path, conversation: str) -> tuple[str, Json]:
    """Cursor starts a conversation; what it is told, and its fields for more."""
    place = (
        f".cursor/projects/w-shop/agent-transcripts/{conversation}/{conversation}.jsonl"
    )
    path = write_lines(machine.home / place, [cursor_line("user", "Good morning")])
    fields = {
        "conversation_id": conversation,
        "cursor_version": "2.1",
        "workspace_roots": [str(shop)],
        "transcript_path": str(path),
    }
    return call(machine, "sessionStart", fields), fields


def test_what_two_tools_learn_a_third_is_told(daemon: Daemon, shop: Path) -> None:
    machine = Machine(daemon.home, daemon.socket)
    monday_in_claude(machine, shop)
    monday_in_codex(machine, shop)
    slept = daemon.post("sleep").body
    assert slept["promoted"] >= 1
    assert daemon.post("status").body["tiers"]["working"]["count"] == 0

    told, fields = on_thursday(machine, shop, "c1")
    day = MONDAY.date().isoformat()
    assert f"[{day}, claude-code, user] {DATABASE}" in told
    assert "Never use emojis" in told
    prompted = call(machine, "beforeSubmitPrompt", fields | DEPLOY)
    assert STAGING in told + prompted
    assert len(told) <= 2_000
    assert len(prompted) <= 1_500

    with pumping(daemon.home, daemon.socket, directory=shop) as pump:
        pump.initialize("cursor")
        hits = pump.call("recall", query="staging server")["structuredContent"]["hits"]
        assert any("heron-7" in str(hit) for hit in hits)

    _forget_the_server(daemon, shop)
    told, fields = on_thursday(machine, shop, "c2")
    prompted = call(machine, "beforeSubmitPrompt", fields | DEPLOY)
    assert DATABASE in told
    assert "heron" not in told + prompted


def _forget_the_server(daemon: Daemon, shop: Path) -> None:
    """Take one fact back from every place, although its transcript is read once more."""
    receipt = daemon.post("forget", query="heron-7").body
    assert receipt["memories"] >= 1
    machine = Machine(daemon.home, daemon.socket)
    monday_in_codex(machine, shop)  # the same words again, at the end of the transcript
    with pumping(daemon.home, daemon.socket, directory=shop) as pump:
        pump.initialize("cursor")
        hits = pump.call("recall", query="heron-7")["structuredContent"]["hits"]
        assert not any("heron" in str(hit) for hit in hits)
    eventually(
        lambda: not daemon.post("status").body["purge_due"], "the words are purged"
    )
    files = list(daemon.database.parent.glob(f"{daemon.database.name}*"))
    assert files
    assert not any(b"heron" in file.read_bytes() for file in files)
