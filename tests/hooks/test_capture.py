"""Capture: what people and agents said is stored once, and nothing else is."""

import json
import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from threading import Thread

import pytest
from support.agents import (
    MORNING,
    Agent,
    Json,
    antigravity_line,
    captured,
    claude,
    claude_line,
    codex,
    codex_event,
    codex_item,
    codex_meta,
    copilot_line,
    cursor_line,
    gemini_line,
    moment,
    texts,
    write_lines,
)
from support.fakes import FakeClock

from mnemosyned.domain.errors import ShuttingDown
from mnemosyned.hooks.capture import CaptureLimits
from mnemosyned.hooks.service import HookService
from mnemosyned.service.policies import HookPolicy, PolicyHolder
from mnemosyned.service.service import MemoryService
from mnemosyned.storage.sqlite import SqliteStore
from mnemosyned.verbs.retention import Forget

TALK = [
    claude_line("user", "Why is the cart empty?", uuid="u1"),
    claude_line(
        "assistant", "The session cookie expires too early.", uuid="u2", minutes=1
    ),
]
SAID = ["Why is the cart empty?", "The session cookie expires too early."]


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


# ------------------------------------------------------------------ formats


def test_claude_keeps_what_was_said_alone(
    hooks: HookService, store: SqliteStore, transcript: Path
) -> None:
    tool_use = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file": "x"}}
    thinking = {"type": "thinking", "thinking": "hmm", "signature": "x"}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "def total"}
    said = claude_line("assistant", "", uuid="n1")
    write_lines(
        transcript,
        [
            {"type": "summary", "summary": "Cart bug", "leafUuid": "x"},
            {"type": "system", "subtype": "compact_boundary", "content": "compacted"},
            {
                "type": "attachment",
                "attachment": {"type": "hook", "content": "injected"},
            },
            *TALK,
            claude_line("user", "Caveat: output follows", uuid="n2", isMeta=True),
            claude_line("user", "This goes on from…", uuid="n3", isCompactSummary=True),
            claude_line("assistant", "Subagent talk", uuid="n4", isSidechain=True),
            claude_line(
                "assistant", "API Error: 529", uuid="n5", isApiErrorMessage=True
            ),
            {**said, "message": {"role": "assistant", "content": [thinking, tool_use]}},
            {
                **claude_line("user", "", uuid="n6", toolUseResult={"file": {}}),
                "message": {"role": "user", "content": [result]},
            },
            claude_line("user", "<command-name>/clear</command-name>", uuid="n7"),
            claude_line(
                "user", "<local-command-stdout>ok</local-command-stdout>", uuid="n8"
            ),
            claude_line("user", "[Request interrupted by user]", uuid="n9"),
            "not json at all\n",
            "[1, 2]\n",
            {"type": "something-new", "message": 3},
        ],
    )
    claude(hooks, transcript).call(hook_event_name="Stop")

    assert texts(store, "claude-code:s1") == SAID


def test_an_agent_that_only_announces_a_tool_says_nothing(
    hooks: HookService, store: SqliteStore, transcript: Path
) -> None:
    tool = claude_line("assistant", "", uuid="t")
    tool["message"] = {"content": [{"type": "tool_use"}]}
    lines: list[Json | str] = []
    said = [
        "Let me look at the cart module.",
        "Now I'll run the tests:",
        "I'll use Postgres instead of MySQL, because it has partial indexes.",
        "The tests pass.",
    ]
    for number, text in enumerate(said):
        lines += [
            claude_line("assistant", text, uuid=f"a{number}", minutes=number),
            tool,
        ]
    write_lines(transcript, lines)
    claude(hooks, transcript).call(hook_event_name="Stop")

    assert texts(store, "claude-code:s1") == said[2:]


def test_codex_messages_that_are_written_twice_are_stored_once(
    hooks: HookService, store: SqliteStore, rollout: Path
) -> None:
    write_lines(
        rollout,
        [
            codex_meta(),
            codex_item("user", "<environment_context>cwd</environment_context>"),
            codex_item(
                "user",
                "# AGENTS.md instructions for /w/shop\n\n<INSTRUCTIONS>x</INSTRUCTIONS>",
            ),
            codex_item("developer", "You are Codex"),
            codex_item("user", "Fix the tax rounding"),
            codex_event("user_message", "Fix the tax rounding"),
            {
                "type": "response_item",
                "payload": {"type": "function_call", "name": "x"},
            },
            {
                "type": "response_item",
                "payload": {"type": "reasoning", "encrypted": "x"},
            },
            codex_item("assistant", "Rounded half to even.", minutes=1),
            codex_event("agent_message", "Rounded half to even.", minutes=1),
            {"type": "compacted", "payload": {"message": "Summary so far"}},
        ],
    )
    codex(hooks, rollout).call(
        hook_event_name="Stop", last_assistant_message="Rounded half to even."
    )

    assert texts(store, "codex:0199") == [
        "Fix the tax rounding",
        "Rounded half to even.",
    ]


def test_codex_items_count_where_there_are_no_events(
    hooks: HookService, store: SqliteStore, rollout: Path
) -> None:
    write_lines(
        rollout,
        [
            codex_meta(),
            codex_item("user", "<user_instructions>be nice</user_instructions>"),
            codex_item("user", "Fix the tax rounding"),
        ],
    )
    codex(hooks, rollout).call(hook_event_name="Stop")

    assert texts(store, "codex:0199") == ["Fix the tax rounding"]


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


def test_a_subagents_rollout_is_passed_over(
    hooks: HookService, store: SqliteStore, rollout: Path
) -> None:
    source = {"subagent": {"thread_spawn": {"parent_thread_id": "0199"}}}
    write_lines(
        rollout, [codex_meta(source=source), codex_event("user_message", "Sub")]
    )
    codex(hooks, rollout).call(hook_event_name="Stop")

    assert texts(store, "codex:0199") == []


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


@pytest.mark.parametrize(
    ("place", "lines", "fields", "session"),
    [
        (
            ".cursor/projects/w-shop/agent-transcripts/c1/c1.jsonl",
            [cursor_line("user", "Sort by date"), cursor_line("assistant", "Sorted.")],
            {
                "conversation_id": "c1",
                "cursor_version": "2.0",
                "hook_event_name": "stop",
            },
            "cursor:c1",
        ),
        (
            ".gemini/tmp/ab12/chats/session-1.jsonl",
            [
                {"sessionId": "g1", "kind": "main", "startTime": moment()},
                gemini_line("user", "Sort by date", id="a"),
                gemini_line("gemini", "Sor", id="b", toolCalls=[{"id": "t"}]),
                gemini_line("gemini", "Sorted.", id="b"),
                gemini_line("info", "Update available", id="c"),
                {"$rewindTo": "b"},
                {"$set": {"summary": "Sorting"}},
            ],
            {
                "session_id": "g1",
                "hook_event_name": "AfterAgent",
                "prompt_response": "Sorted.",
            },
            "gemini:g1",
        ),
        (
            ".gemini/antigravity/brain/x1/.system_generated/logs/transcript.jsonl",
            [
                antigravity_line("USER_EXPLICIT", "Sort by date"),
                antigravity_line("MODEL", "Sorted."),
                antigravity_line("SYSTEM", "noise"),
            ],
            {"conversationId": "x1"},
            "antigravity:x1",
        ),
        (
            ".copilot/session-state/p1/events.jsonl",
            [
                {"type": "session.start", "data": {"sessionId": "p1"}},
                copilot_line("user", "Sort by date"),
                {"type": "tool.execution_start", "data": {"toolName": "bash"}},
                copilot_line("assistant", "Sorted."),
            ],
            {"session_id": "p1", "hook_event_name": "Stop"},
            "copilot:p1",
        ),
        (
            ".qwen/projects/-w-shop/chats/q1.jsonl",
            [
                {
                    "uuid": "1",
                    "type": "user",
                    "message": {"parts": [{"text": "Sort by date"}]},
                },
                {
                    "uuid": "2",
                    "type": "assistant",
                    "message": {
                        "parts": [{"text": "hm", "thought": True}, {"text": "Sorted."}]
                    },
                },
            ],
            {"session_id": "q1", "hook_event_name": "Stop"},
            "qwen:q1",
        ),
    ],
    ids=["cursor", "gemini", "antigravity", "copilot", "qwen"],
)
def test_each_tools_transcript_is_read(
    hooks: HookService,
    store: SqliteStore,
    tmp_path: Path,
    *,
    place: str,
    lines: list[dict[str, object]],
    fields: dict[str, object],
    session: str,
) -> None:
    path = write_lines(tmp_path / place, lines)
    key = "transcriptPath" if "conversationId" in fields else "transcript_path"
    agent = Agent(hooks, {key: str(path), "cwd": "/w/shop", **fields})
    agent.call()
    agent.call()

    assert texts(store, session) == ["Sort by date", "Sorted."]
    assert [memory.role for memory in captured(store, session)] == ["user", "assistant"]


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


# ----------------------------------------------- complaints of users, by name


def test_feedback_loop_what_hooks_told_is_never_captured(
    hooks: HookService, store: SqliteStore, transcript: Path
) -> None:
    told = "<mnemosyne-memory>\n- [2026-03-01] Use Postgres\n</mnemosyne-memory>"
    write_lines(
        transcript,
        [
            claude_line("user", f"{told}\nFix the cart", uuid="u1"),
            claude_line("user", told, uuid="u2"),
            claude_line("user", "<mnemosyne-memory>\nunended Postgres", uuid="u3"),
        ],
    )
    claude(hooks, transcript).call(hook_event_name="Stop")

    assert texts(store, "claude-code:s1") == ["Fix the cart"]


def test_what_is_private_is_not_kept(
    hooks: HookService, store: SqliteStore, transcript: Path
) -> None:
    write_lines(
        transcript,
        [
            claude_line("user", "Deploy <private>pin 4711</private> today", uuid="u1"),
            claude_line("user", "<PRIVATE>all of it</PRIVATE>", uuid="u2"),
            claude_line("user", "Open <private> to the end", uuid="u3", minutes=1),
        ],
    )
    claude(hooks, transcript).call(hook_event_name="Stop")

    assert texts(store, "claude-code:s1") == ["Deploy  today", "Open"]


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


def test_junk_messages_without_a_word_are_not_stored(
    hooks: HookService, store: SqliteStore, transcript: Path
) -> None:
    write_lines(
        transcript,
        [
            claude_line("user", text, uuid=text)
            for text in ("...", "👍", " ", "/compact")
        ],
    )
    claude(hooks, transcript).call(hook_event_name="Stop")

    assert texts(store, "claude-code:s1") == []


def test_a_subagents_stop_stores_nothing(
    hooks: HookService, store: SqliteStore, transcript: Path
) -> None:
    write_lines(transcript, TALK)
    answer = claude(hooks, transcript).call(
        hook_event_name="SubagentStop", last_assistant_message="Done"
    )

    assert (answer, texts(store, "claude-code:s1")) == ({}, [])


# --------------------------------------------------------------- limits


def test_a_large_transcript_is_read_in_shares(
    hooks: HookService, store: SqliteStore, transcript: Path
) -> None:
    hooks.capture._limits = replace(CaptureLimits(), call_bytes=4_000)  # noqa: SLF001
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
    monkeypatch.setattr("mnemosyned.transcripts.reading.LINE_BYTES_MAX", 1 << 20)
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
    hooks: HookService, store: SqliteStore, transcript: Path, policies: PolicyHolder
) -> None:
    from mnemosyned.domain.secrets.masking import SecretRule  # noqa: PLC0415

    intake = replace(policies.current.intake, secrets=SecretRule.REFUSE)
    policies.current = replace(policies.current, intake=intake)
    secret = claude_line("user", "The password is hunter2-Xy9!", uuid="u0")
    write_lines(transcript, [secret, *TALK])
    claude(hooks, transcript).call(hook_event_name="Stop")

    assert texts(store, "claude-code:s1") == SAID


def test_capture_can_be_switched_off_and_on(
    hooks: HookService, store: SqliteStore, transcript: Path, policies: PolicyHolder
) -> None:
    usual = policies.current
    policies.current = replace(usual, hooks=HookPolicy(capture=False))
    agent = claude(hooks, transcript)
    write_lines(transcript, TALK[:1])
    agent.call(hook_event_name="Stop")
    policies.current = usual
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
