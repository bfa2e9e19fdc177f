"""Capture from the transcripts and the events of each tool."""

import json
from pathlib import Path
from typing import Any

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
    gemini_line,
    moment,
    texts,
    write_lines,
)

from mnemosyned.agents.hooks.service import HookService
from mnemosyned.storage.sqlite.store import SqliteStore

LINES = Path(__file__).parents[1] / "data" / "hooks" / "transcripts.jsonl"
"""The transcript of each tool, and those in which much is not said, with what is stored of it."""
CASES = [json.loads(line) for line in LINES.read_text().splitlines()]


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_of_a_transcript_what_was_said_is_stored(
    hooks: HookService, store: SqliteStore, tmp_path: Path, case: dict[str, Any]
) -> None:
    path = write_lines(tmp_path / case["place"], case["lines"])
    fields = {case.get("key", "transcript_path"): str(path), **case["fields"]}
    agent = Agent(hooks, fields)
    agent.call()
    agent.call()

    said = captured(store, case["session"])
    assert [memory.content for memory in said] == case["texts"]
    roles = case.get("roles", ["user", "assistant"])
    assert [memory.role for memory in said] == roles


def test_a_fork_that_repeats_its_history_stores_it_once(
    hooks: HookService, store: SqliteStore, rollout: Path
) -> None:
    talk = [codex_event("user_message", "Fix the tax rounding")]
    write_lines(rollout, [codex_meta(), *talk])
    codex(hooks, rollout).call(hook_event_name="Stop")
    fork = rollout.with_name("rollout-2026-03-16T10-00-00-0200.jsonl")
    write_lines(
        fork,
        [
            codex_meta("0200", forked_from_id="0199"),
            *talk,
            codex_event("user_message", "And the discount"),
        ],
    )
    codex(hooks, fork, session="0200").call(hook_event_name="Stop")

    assert texts(store, "codex:0199", "codex:0200") == [
        "Fix the tax rounding",
        "And the discount",
    ]


def test_a_resumed_session_that_repeats_lines_in_a_new_file_stores_them_once(
    hooks: HookService, store: SqliteStore, transcript: Path
) -> None:
    write_lines(transcript, TALK)
    claude(hooks, transcript).call(hook_event_name="Stop")
    resumed = write_lines(transcript.with_name("s2.jsonl"), TALK)
    write_lines(resumed, [claude_line("user", "And now the tax", uuid="u3", minutes=5)])
    claude(hooks, resumed, session="s2").call(hook_event_name="Stop")

    both = ("claude-code:s1", "claude-code:s2")
    assert texts(store, *both) == [*SAID, "And now the tax"]


def test_gemini_chats_in_one_json_file_are_read_as_they_grow(
    hooks: HookService, store: SqliteStore, tmp_path: Path
) -> None:
    path = tmp_path / ".gemini" / "tmp" / "ab12" / "chats" / "session-1.json"
    path.parent.mkdir(parents=True)
    messages = [gemini_line("user", "Sort by date", id="a")]
    agent = Agent(hooks, {"transcript_path": str(path), "session_id": "g1"})
    for message in (gemini_line("gemini", "Sorted.", id="b"), None):
        path.write_text(json.dumps({"sessionId": "g1", "messages": messages}))
        agent.call(hook_event_name="AfterAgent")
        messages += [message] if message else []

    assert texts(store, "gemini:g1") == ["Sort by date", "Sorted."]


# ----------------------------------------------- payloads without transcript


def test_without_a_transcript_the_payload_is_stored(
    hooks: HookService, store: SqliteStore
) -> None:
    agent = codex(hooks, None)
    agent.call(hook_event_name="UserPromptSubmit", prompt="Fix the tax rounding")
    agent.call(hook_event_name="Stop", last_assistant_message="Rounded half to even.")

    assert texts(store, "codex:0199") == [
        "Fix the tax rounding",
        "Rounded half to even.",
    ]


def test_a_payload_does_not_double_what_the_transcript_brings_later(
    hooks: HookService, store: SqliteStore, rollout: Path, transcript: Path
) -> None:
    agent = codex(hooks, rollout)  # not written yet
    agent.call(hook_event_name="UserPromptSubmit", prompt="Fix the tax rounding\n")
    write_lines(
        rollout, [codex_meta(), codex_event("user_message", "Fix the tax rounding")]
    )
    agent.call(hook_event_name="Stop")
    other = claude(hooks, transcript)
    other.call(hook_event_name="UserPromptSubmit", prompt=SAID[0])
    write_lines(transcript, TALK)
    other.call(hook_event_name="Stop", last_assistant_message=SAID[1])

    assert texts(store, "codex:0199") == ["Fix the tax rounding"]
    assert sorted(texts(store, "claude-code:s1")) == sorted(SAID)


def test_opencodes_plugin_sends_the_messages(
    hooks: HookService, store: SqliteStore
) -> None:
    agent = Agent(hooks, {"client": "opencode", "session_id": "o1", "cwd": "/w/shop"})
    sent = [
        {"id": "m1", "role": "user", "content": "Move it", "timestamp": moment()},
        {
            "id": "m2",
            "role": "assistant",
            "content": "Moved it.",
            "timestamp": moment(1),
        },
        {"id": "m3", "role": "tool", "content": "noise"},
    ]
    agent.call(hook_event_name="UserPromptSubmit", prompt="Move it")
    agent.call(hook_event_name="Stop", messages=sent[:1])
    agent.call(hook_event_name="Stop", messages=sent)

    assert texts(store, "opencode:o1") == ["Move it", "Moved it."]
    assert captured(store, "opencode:o1")[0].created_at == MORNING


def test_cascades_hooks_carry_the_words(hooks: HookService, store: SqliteStore) -> None:
    agent = Agent(hooks, {"trajectory_id": "w1"}, directory="/w/shop")
    agent.call(
        agent_action_name="pre_user_prompt", tool_info={"user_prompt": "Move it"}
    )
    answer = agent.call(
        agent_action_name="post_cascade_response", tool_info={"response": "Moved it."}
    )

    assert answer == {}
    assert texts(store, "windsurf:w1") == ["Move it", "Moved it."]


def test_a_call_from_the_spool_keeps_its_time(
    hooks: HookService, store: SqliteStore
) -> None:
    codex(hooks, None).late(
        hook_event_name="UserPromptSubmit",
        prompt="Fix the tax",
        time=MORNING.timestamp(),
    )

    assert captured(store, "codex:0199")[0].created_at == MORNING
