"""Capture against what users of other memories complain about, by name."""

from pathlib import Path
from threading import Thread

from support.agents import (
    SAID,
    TALK,
    Agent,
    captured,
    claude,
    claude_line,
    cursor_line,
    texts,
    write_lines,
)

from mnemosyned.agents.hooks.service import HookService
from mnemosyned.service.service import MemoryService
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.verbs.retention import Forget


def test_double_storing_two_tools_that_run_the_same_hook_file(
    hooks: HookService, store: SqliteStore, tmp_path: Path
) -> None:
    place = ".cursor/projects/w-shop/agent-transcripts/c1/c1.jsonl"
    path = write_lines(tmp_path / place, [cursor_line("user", "Sort by date")])
    common = {"conversation_id": "c1", "session_id": "c1", "transcript_path": str(path)}
    own = Agent(hooks, {**common, "cursor_version": "2.0"})
    by_claudes_file = Agent(
        hooks, {**common, "cursor_version": "2.0"}, {"CLAUDE_PROJECT_DIR": "/w/shop"}
    )
    own.call(hook_event_name="stop")
    by_claudes_file.call(hook_event_name="Stop")

    assert texts(store, "cursor:c1") == ["Sort by date"]


def test_double_storing_by_calls_at_the_same_time(
    hooks: HookService, store: SqliteStore, transcript: Path
) -> None:
    lines = [
        claude_line("user", f"Fact {number}", uuid=f"u{number}", minutes=number / 10)
        for number in range(40)
    ]
    write_lines(transcript, lines)
    agent = claude(hooks, transcript)
    threads = [
        Thread(target=agent.call, kwargs={"hook_event_name": "Stop"}) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    hooks.capture.drain()

    assert texts(store, "claude-code:s1") == [f"Fact {number}" for number in range(40)]


def test_silent_capture_failure_is_counted_and_named(
    hooks: HookService, store: SqliteStore, transcript: Path
) -> None:
    claude(hooks, transcript).call(hook_event_name="Stop")  # no transcript, no words

    (stop,) = store.agents.activity()
    assert stop.failures == 1
    assert "no transcript there" in stop.failure


def test_the_end_of_a_session_in_which_nothing_was_said_is_no_failure(
    hooks: HookService, store: SqliteStore, transcript: Path
) -> None:
    claude(hooks, transcript).call(hook_event_name="SessionEnd")

    (end,) = store.agents.activity()
    assert (end.calls, end.failures) == (1, 0)


def test_a_call_without_a_conversation_is_counted_as_a_failure(
    hooks: HookService, store: SqliteStore
) -> None:
    assert Agent(hooks, {}).call(hook_event_name="Stop", prompt="x") == {}

    (stop,) = store.agents.activity()
    assert stop.failure == "the call names no conversation"


def test_what_was_forgotten_stays_forgotten_when_its_transcript_is_read_again(
    hooks: HookService, service: MemoryService, store: SqliteStore, transcript: Path
) -> None:
    write_lines(transcript, TALK)
    claude(hooks, transcript).call(hook_event_name="Stop")
    service.call(Forget(id=captured(store, "claude-code:s1")[0].id))

    copy = write_lines(transcript.with_name("s2.jsonl"), TALK)
    claude(hooks, copy, session="s2").call(hook_event_name="Stop")
    store.agents.advance("claude-code:s1", 0, "")
    claude(hooks, transcript).call(hook_event_name="Stop")

    assert texts(store, "claude-code:s1", "claude-code:s2") == SAID[1:]


def test_what_was_forgotten_stays_forgotten_when_its_messages_get_other_ids(
    hooks: HookService, service: MemoryService, store: SqliteStore, transcript: Path
) -> None:
    """As when a tool writes the transcript again after a fork or a resume."""
    write_lines(transcript, TALK)
    claude(hooks, transcript).call(hook_event_name="Stop")
    service.call(Forget(id=captured(store, "claude-code:s1")[0].id))

    transcript.unlink()
    write_lines(transcript, [{**line, "uuid": f"new-{line['uuid']}"} for line in TALK])
    claude(hooks, transcript).call(hook_event_name="Stop")

    assert texts(store, "claude-code:s1") == SAID[1:]


def test_a_subagents_stop_stores_nothing(
    hooks: HookService, store: SqliteStore, transcript: Path
) -> None:
    write_lines(transcript, TALK)
    answer = claude(hooks, transcript).call(
        hook_event_name="SubagentStop", last_assistant_message="Done"
    )

    assert (answer, texts(store, "claude-code:s1")) == ({}, [])
