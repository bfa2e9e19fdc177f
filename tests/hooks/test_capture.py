"""Capture: what people and agents said is stored once, within its limits."""

import json
import os
from datetime import timedelta
from pathlib import Path

import pytest
from support.agents import (
    MORNING,
    SAID,
    TALK,
    Agent,
    captured,
    claude,
    claude_line,
    codex,
    codex_event,
    codex_meta,
    texts,
    write_lines,
)
from support.fakes import FakeClock
from support.settings import change

from mnemosyned.agents.hooks.service import HookService
from mnemosyned.config.settings import SettingsInForce
from mnemosyned.errors import ShuttingDown
from mnemosyned.service.service import MemoryService
from mnemosyned.storage.sqlite.store import SqliteStore


def test_stop_stores_what_was_said_with_its_origin(
    hooks: HookService, store: SqliteStore, transcript: Path
) -> None:
    write_lines(transcript, TALK)

    assert claude(hooks, transcript).call(hook_event_name="Stop") == {}

    asked, answered = captured(store, "claude-code:s1")
    assert [asked.content, answered.content] == SAID
    assert (asked.role, answered.role) == ("user", "assistant")
    assert asked.source == "claude-code"
    assert asked.created_at == MORNING
    assert asked.metadata == {"project": "/w/shop", "cwd": "/w/shop", "message": "u1"}


def test_capture_goes_on_where_it_stopped(
    hooks: HookService, store: SqliteStore, transcript: Path
) -> None:
    agent = claude(hooks, transcript)
    write_lines(transcript, TALK[:1])
    agent.call(hook_event_name="Stop")
    position = store.agents.session("claude-code:s1")
    assert position
    assert position.position == transcript.stat().st_size

    write_lines(transcript, TALK[1:])
    agent.call(hook_event_name="Stop")
    agent.call(hook_event_name="Stop")

    assert texts(store, "claude-code:s1") == SAID


def test_a_line_that_is_still_being_written_is_read_when_it_is_whole(
    hooks: HookService, store: SqliteStore, rollout: Path
) -> None:
    last = json.dumps(codex_event("agent_message", "Rounded half to even."))
    write_lines(
        rollout, [codex_meta(), codex_event("user_message", "Fix the tax"), last[:30]]
    )
    agent = codex(hooks, rollout)
    agent.call(hook_event_name="Stop")
    assert texts(store, "codex:0199") == ["Fix the tax"]

    write_lines(rollout, [last[30:] + "\n"])
    agent.call(hook_event_name="Stop")
    assert texts(store, "codex:0199") == ["Fix the tax", "Rounded half to even."]


def test_lines_that_come_after_the_hook_are_read_in_the_background(
    hooks: HookService, store: SqliteStore, transcript: Path
) -> None:
    write_lines(transcript, TALK[:1])
    claude(hooks, transcript).call(hook_event_name="Stop")
    write_lines(transcript, TALK[1:])

    hooks.capture.drain()

    assert texts(store, "claude-code:s1") == SAID
    background = [
        each for each in store.agents.activity() if each.event == "background"
    ]
    assert [each.stored for each in background] == [1]


@pytest.mark.parametrize("event", ["PreCompact", "SessionEnd", "Stop", "StopFailure"])
def test_every_end_of_a_turn_stores(
    hooks: HookService, store: SqliteStore, transcript: Path, event: str
) -> None:
    write_lines(transcript, TALK)
    claude(hooks, transcript).call(hook_event_name=event)

    assert texts(store, "claude-code:s1") == SAID


def test_the_next_start_catches_up_with_sessions_that_ended_unseen(
    hooks: HookService, store: SqliteStore, transcript: Path
) -> None:
    write_lines(transcript, TALK[:1])
    claude(hooks, transcript).call(hook_event_name="Stop")
    hooks.capture.drain()
    write_lines(transcript, TALK[1:])  # and no SessionEnd

    other = transcript.with_name("s2.jsonl")
    claude(hooks, other, session="s2").call(
        hook_event_name="SessionStart", source="startup"
    )
    hooks.capture.drain()

    assert texts(store, "claude-code:s1") == SAID


# --------------------------------------------------------------- limits


def test_a_large_transcript_is_read_in_shares(
    hooks: HookService,
    store: SqliteStore,
    transcript: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mnemosyned.importers.capture.CALL_BYTES", 4_000)
    lines = [
        claude_line(
            "user", f"Fact {number} of the shop", uuid=f"u{number}", minutes=number / 60
        )
        for number in range(300)
    ]
    write_lines(transcript, lines)
    claude(hooks, transcript).call(hook_event_name="Stop")
    first = len(texts(store, "claude-code:s1"))

    hooks.capture.drain()

    assert 0 < first < 30
    assert len(texts(store, "claude-code:s1")) == 300


def test_a_giant_line_is_passed_over(
    hooks: HookService,
    store: SqliteStore,
    transcript: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mnemosyned.importers.reading.LINE_BYTES_MAX", 1 << 20)
    giant = claude_line("user", "x" * (2 << 20), uuid="giant")
    write_lines(transcript, [TALK[0], giant, TALK[1]])
    claude(hooks, transcript).call(hook_event_name="Stop")
    hooks.capture.drain()

    assert texts(store, "claude-code:s1") == SAID


def _become_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.unlink(),
        lambda path: (path.unlink(), path.symlink_to("/etc/passwd")),
        _become_pipe,
        lambda path: (path.unlink(), path.mkdir()),
    ],
    ids=["none", "link", "pipe", "directory"],
)
def test_only_a_regular_file_is_read(
    hooks: HookService,
    store: SqliteStore,
    transcript: Path,
    spoil: object,
) -> None:
    write_lines(transcript, TALK)
    spoil(transcript)  # type: ignore[operator]
    claude(hooks, transcript).call(hook_event_name="Stop")

    (stop,) = store.agents.activity()
    assert (stop.stored, stop.failures) == (0, 1)


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "/etc/shadow.jsonl",
        "relative/.claude/projects/x.jsonl",
        "/home/ann/.claude/../.ssh/x.jsonl",
        "/home/ann/.claude/projects/\0.jsonl",
        "/home/ann/.claude/projects/x.key",
    ],
)
def test_a_path_that_is_no_transcripts_is_refused(
    hooks: HookService, store: SqliteStore, path: str
) -> None:
    agent = Agent(hooks, {"session_id": "s1", "transcript_path": path})
    agent.call(hook_event_name="Stop")

    (stop,) = store.agents.activity()
    assert stop.failure == "the path is not that of a transcript"
    known = store.agents.recent(9)
    # An export with a NUL in it could not be imported.
    assert not [session for session in known if "\0" in session.transcript]


def test_a_file_that_was_replaced_is_read_from_its_beginning(
    hooks: HookService, store: SqliteStore, transcript: Path
) -> None:
    write_lines(transcript, TALK)
    agent = claude(hooks, transcript)
    agent.call(hook_event_name="Stop")
    transcript.unlink()
    write_lines(
        transcript, [claude_line("user", "A new beginning", uuid="u9", minutes=9)]
    )
    agent.call(hook_event_name="Stop")

    assert texts(store, "claude-code:s1") == [*SAID, "A new beginning"]


def test_a_time_in_the_future_becomes_the_present(
    hooks: HookService, store: SqliteStore, transcript: Path, clock: FakeClock
) -> None:
    clock.moment = MORNING
    write_lines(
        transcript, [claude_line("user", "Hello world", uuid="u1", minutes=999)]
    )
    claude(hooks, transcript).call(hook_event_name="Stop")

    assert captured(store, "claude-code:s1")[0].created_at == MORNING


def test_secrets_are_refused_or_masked_as_the_setting_says(
    hooks: HookService, store: SqliteStore, transcript: Path, settings: SettingsInForce
) -> None:

    change(settings, {"secrets": "refuse"})
    secret = claude_line("user", "The password is hunter2-Xy9!", uuid="u0")
    write_lines(transcript, [secret, *TALK])
    claude(hooks, transcript).call(hook_event_name="Stop")

    assert texts(store, "claude-code:s1") == SAID


def test_capture_can_be_switched_off_and_on(
    hooks: HookService, store: SqliteStore, transcript: Path, settings: SettingsInForce
) -> None:
    change(settings, {"hooks.capture": False})
    agent = claude(hooks, transcript)
    write_lines(transcript, TALK[:1])
    agent.call(hook_event_name="Stop")
    change(settings, {"hooks.capture": True})
    write_lines(transcript, TALK[1:])
    agent.call(hook_event_name="Stop")

    assert texts(store, "claude-code:s1") == SAID[1:]


def test_a_daemon_that_stops_refuses_so_that_the_call_waits(
    hooks: HookService, service: MemoryService, store: SqliteStore, transcript: Path
) -> None:
    write_lines(transcript, TALK)
    service.stop_writes()

    with pytest.raises(ShuttingDown):
        claude(hooks, transcript).call(hook_event_name="Stop")
    assert store.agents.session("claude-code:s1").position == 0  # type: ignore[union-attr]


def test_what_grew_while_the_daemon_was_down_is_read_at_its_start(
    hooks: HookService, store: SqliteStore, transcript: Path, clock: FakeClock
) -> None:
    write_lines(transcript, TALK[:1])
    claude(hooks, transcript).call(hook_event_name="Stop")
    write_lines(transcript, TALK[1:])
    clock.advance(hours=1)

    with hooks:
        hooks.capture.drain()

    assert texts(store, "claude-code:s1") == SAID
    assert timedelta(0) < clock.now() - MORNING


@pytest.mark.parametrize(
    ("event", "fields"),
    [("SessionStart", {"source": "resume"}), ("UserPromptSubmit", {"prompt": "Go on"})],
)
def test_blocking_a_start_or_a_prompt_never_waits_for_a_transcript(
    hooks: HookService,
    store: SqliteStore,
    transcript: Path,
    event: str,
    fields: dict[str, str],
) -> None:
    write_lines(transcript, TALK)
    claude(hooks, transcript).call(hook_event_name=event, **fields)
    assert texts(store, "claude-code:s1") == []

    hooks.capture.drain()
    assert texts(store, "claude-code:s1") == SAID
