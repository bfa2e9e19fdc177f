"""Capture: what people and agents said is stored once, within its limits."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.agents import (
    MORNING,
    SAID,
    TALK,
    Agent,
    Shop,
    captured,
    claude_line,
    codex_event,
    codex_meta,
    texts,
    write_lines,
)
from support.fakes import FakeClock
from support.settings import change

from mnemosyned.config.settings import SettingsInForce
from mnemosyned.errors import MemoryBusy, ShuttingDown


def test_stop_stores_what_was_said_with_its_origin(shop: Shop) -> None:
    shop.write(*TALK)

    assert shop.claude().stop() == {}

    asked, answered = captured(shop.store, "claude-code:s1")
    assert [asked.content, answered.content] == SAID
    assert (asked.role, answered.role) == ("user", "assistant")
    assert asked.source == "claude-code"
    assert asked.created_at == MORNING
    assert asked.metadata == {"project": "/w/shop", "cwd": "/w/shop", "message": "u1"}


def test_capture_goes_on_where_it_stopped(shop: Shop) -> None:
    shop.write(TALK[0])
    shop.claude().stop()
    position = shop.store.agents.session("claude-code:s1")
    assert position
    assert position.position == shop.transcript.stat().st_size

    shop.write(TALK[1])
    shop.claude().stop()
    shop.claude().stop()

    assert shop.texts() == SAID


def test_a_line_that_is_being_written_is_read_when_it_is_whole(shop: Shop) -> None:
    last = json.dumps(codex_event("agent_message", "Rounded half to even."))
    first = codex_event("user_message", "Fix the tax")
    write_lines(shop.rollout, [codex_meta(), first, last[:30]])
    agent = shop.codex(file=shop.rollout)
    agent.stop()
    assert shop.texts("codex:0199") == ["Fix the tax"]

    write_lines(shop.rollout, [last[30:] + "\n"])
    agent.stop()
    assert shop.texts("codex:0199") == ["Fix the tax", "Rounded half to even."]


def test_a_text_that_a_tool_cut_inside_a_character_is_stored(shop: Shop) -> None:
    lines = [
        json.dumps(claude_line("user", text, uuid=f"u{number}")).encode()
        for number, text in enumerate(["half \ud83d", "bytes XX", "whole 😀"])
    ]
    shop.transcript.parent.mkdir(parents=True, exist_ok=True)
    shop.transcript.write_bytes(
        b"".join(line.replace(b"XX", b"\xff") + b"\n" for line in lines)
    )

    shop.claude().stop()

    assert shop.texts() == ["half ?", "bytes \ufffd", "whole 😀"]


def test_lines_that_come_after_the_hook_are_read_in_the_background(shop: Shop) -> None:
    shop.write(TALK[0])
    shop.claude().stop()
    shop.write(TALK[1])

    shop.hooks.capture.drain()

    assert shop.texts() == SAID
    activity = shop.store.agents.activity()
    assert [each.stored for each in activity if each.event == "background"] == [1]


def test_a_file_that_comes_after_the_hook_is_read_in_the_background(shop: Shop) -> None:
    shop.claude().stop()
    shop.write(*TALK)

    shop.hooks.capture.drain()

    assert shop.texts() == SAID


@pytest.mark.parametrize("event", ["PreCompact", "SessionEnd", "StopFailure"])
def test_every_end_of_a_turn_stores(shop: Shop, event: str) -> None:
    shop.write(*TALK)
    shop.claude().call(hook_event_name=event)

    assert shop.texts() == SAID


def test_the_next_start_catches_up_with_sessions_that_ended_unseen(shop: Shop) -> None:
    shop.write(TALK[0])
    shop.claude().stop()
    shop.hooks.capture.drain()
    shop.write(TALK[1])  # and no SessionEnd

    shop.claude("s2").start()
    shop.hooks.capture.drain()

    assert shop.texts() == SAID


def test_a_long_file_is_read_in_shares(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mnemosyned.importers.capture.CALL_BYTES", 4_000)
    shop.say(*(f"Fact {number} of the shop" for number in range(300)))
    first = len(shop.texts())

    shop.hooks.capture.drain()

    assert 0 < first < 30
    assert len(shop.texts()) == 300


def test_a_giant_line_is_skipped(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mnemosyned.importers.reading.LINE_BYTES_MAX", 1 << 20)
    giant = claude_line("user", "x" * (2 << 20), uuid="giant")
    shop.write(TALK[0], giant, TALK[1])
    shop.claude().stop()
    shop.hooks.capture.drain()

    assert shop.texts() == SAID


SPOILED: dict[str, Callable[[Path], object]] = {
    "none": lambda _: None,
    "link": lambda path: path.symlink_to("/etc/passwd"),
    "pipe": os.mkfifo,
    "directory": Path.mkdir,
}


@pytest.mark.parametrize("spoiled", SPOILED)
def test_only_a_regular_file_is_read(shop: Shop, spoiled: str) -> None:
    shop.write(*TALK).unlink()
    SPOILED[spoiled](shop.transcript)
    shop.claude().stop()

    assert (shop.activity().stored, shop.activity().failures) == (0, 1)


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
def test_a_path_that_is_no_transcripts_is_refused(shop: Shop, path: str) -> None:
    Agent(shop.hooks, {"session_id": "s1", "transcript_path": path}).stop()

    assert shop.activity().failure == "the path is not that of a transcript"
    known = shop.store.agents.recent(9)
    # An export with a NUL in it could not be imported.
    assert not [session for session in known if "\0" in session.transcript]


def test_a_file_that_was_replaced_is_read_from_its_beginning(shop: Shop) -> None:
    shop.write(*TALK)
    shop.claude().stop()
    shop.transcript.unlink()
    shop.say("A new beginning", minutes=9)

    assert shop.texts() == [*SAID, "A new beginning"]


def test_a_busy_memory_is_asked_again_for_what_was_said(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals = [MemoryBusy("try again")]
    capture = shop.hooks.capture
    store = capture.store_messages

    def refuse_once(*given: Any, **options: Any) -> int:  # noqa: ANN401
        if refusals:
            raise refusals.pop()
        return store(*given, **options)

    monkeypatch.setattr(capture, "store_messages", refuse_once)
    shop.write(*TALK)
    shop.claude().ask("And now?")  # which leaves the transcript to the thread
    capture.drain()

    assert texts(shop.store, "claude-code:s1") == SAID


def test_a_time_in_the_future_becomes_the_present(shop: Shop, clock: FakeClock) -> None:
    clock.moment = MORNING
    shop.say("Hello world", minutes=999)

    assert captured(shop.store, "claude-code:s1")[0].created_at == MORNING


def test_a_secret_is_refused_as_the_setting_says(
    shop: Shop, settings: SettingsInForce
) -> None:
    change(settings, {"secrets": "refuse"})
    shop.write(*TALK)
    shop.say("The password is hunter2-Xy9!")

    assert shop.texts() == SAID


def test_capture_is_switched_off_and_on(shop: Shop, settings: SettingsInForce) -> None:
    change(settings, {"hooks.capture": False})
    shop.write(TALK[0])
    shop.claude().stop()
    change(settings, {"hooks.capture": True})
    shop.write(TALK[1])
    shop.claude().stop()

    assert shop.texts() == SAID[1:]


def test_a_daemon_that_stops_refuses_so_that_the_call_waits(shop: Shop) -> None:
    shop.write(*TALK)
    shop.service.stop_writes()

    with pytest.raises(ShuttingDown):
        shop.claude().stop()
    session = shop.store.agents.session("claude-code:s1")
    assert session
    assert session.position == 0


def test_what_grew_meanwhile_is_read_at_the_start(shop: Shop, clock: FakeClock) -> None:
    shop.write(TALK[0])
    shop.claude().stop()
    shop.write(TALK[1])
    clock.advance(hours=1)

    with shop.hooks:
        shop.hooks.capture.drain()

    assert shop.texts() == SAID


@pytest.mark.parametrize(
    ("event", "fields"),
    [("SessionStart", {"source": "resume"}), ("UserPromptSubmit", {"prompt": "Go on"})],
)
def test_blocking_a_start_or_a_prompt_never_waits_for_a_transcript(
    shop: Shop, event: str, fields: dict[str, str]
) -> None:
    shop.write(*TALK)
    shop.claude().call(hook_event_name=event, **fields)
    assert shop.texts() == []

    shop.hooks.capture.drain()
    assert shop.texts() == SAID
