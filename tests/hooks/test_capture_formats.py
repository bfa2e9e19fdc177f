"""Capture from the transcripts and the events of each tool."""

import json
from pathlib import Path

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

from mnemosyned.agents.hooks.service import HookService
from mnemosyned.storage.sqlite.store import SqliteStore

TALK = [
    claude_line("user", "Why is the cart empty?", uuid="u1"),
    claude_line(
        "assistant", "The session cookie expires too early.", uuid="u2", minutes=1
    ),
]
SAID = ["Why is the cart empty?", "The session cookie expires too early."]


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
