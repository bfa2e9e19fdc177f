"""Calls of hooks: which tool made one is found out, and what it says is the same for all."""

from typing import Any

import pytest

from mnemosyned.agents.hooks.events import (
    HookCall,
    HookEvent,
    make_answer,
    parse_call,
    takes_context,
)

CLAUDE = "/home/ann/.claude/projects/-w-shop/s1.jsonl"
CODEX = "/home/ann/.codex/sessions/2026/08/20/rollout-2026-08-20T09-00-00-0199.jsonl"
CURSOR = "/home/ann/.cursor/projects/w-shop/agent-transcripts/c1/c1.jsonl"
GEMINI = "/home/ann/.gemini/tmp/ab12/chats/session-1.jsonl"
BRAIN = "/home/ann/.gemini/antigravity/brain/x1/.system_generated/logs/transcript.jsonl"
COPILOT = "/home/ann/.copilot/session-state/p1/events.jsonl"
VSCODE = "/home/ann/.config/Code/User/workspaceStorage/ab/chatSessions/v1.jsonl"

CLAUDES_FIELDS = {"session_id": "s1", "transcript_path": CLAUDE, "cwd": "/w/shop"}
CODEX_FIELDS = {
    "session_id": "0199",
    "transcript_path": CODEX,
    "cwd": "/w/shop",
    "model": "m",
    "permission_mode": "default",
}
CURSOR_FIELDS = {
    "conversation_id": "c1",
    "generation_id": "g1",
    "model": "m",
    "cursor_version": "2.1",
    "workspace_roots": ["/w/shop"],
    "transcript_path": None,
}
GEMINI_FIELDS = {"session_id": "g1", "transcript_path": GEMINI, "cwd": "/w/shop"}
VSCODE_FIELDS = {"sessionId": "v1", "cwd": "/w/shop", "transcript_path": VSCODE}
COPILOT_FIELDS = {"session_id": "p1", "cwd": "/w/shop", "transcript_path": COPILOT}

BRAIN_FIELDS = {"conversationId": "x1", "transcriptPath": BRAIN}


def cascade(name: str) -> dict[str, Any]:
    return {"agent_action_name": name, "trajectory_id": "w1"}


def goose(name: str) -> dict[str, Any]:
    """Goose names the directory on tool events alone."""
    return {"event": name, "session_id": "o1", "matcher_context": "x"}


def told_as(name: str) -> dict[str, Any]:
    """The form of Claude Code, which most tools take."""
    specific = {"hookEventName": name, "additionalContext": "x"}
    return {"hookSpecificOutput": specific}


Case = tuple[str, dict[str, Any], str, HookEvent]

CASES: list[Case] = [
    *(
        (
            f"claude {name}",
            {**CLAUDES_FIELDS, "hook_event_name": name, **more},
            "claude-code:s1",
            event,
        )
        for name, event, more in (
            ("SessionStart", HookEvent.START, {"source": "startup", "model": "m"}),
            ("UserPromptSubmit", HookEvent.PROMPT, {"prompt": "x", "prompt_id": "p"}),
            (
                "UserPromptExpansion",
                HookEvent.OTHER,
                {"prompt": "x", "command_name": "c"},
            ),
            ("PreToolUse", HookEvent.OTHER, {"tool_name": "Bash", "tool_input": {}}),
            (
                "PostToolUse",
                HookEvent.OTHER,
                {"tool_name": "Bash", "tool_response": {}},
            ),
            (
                "PostToolUseFailure",
                HookEvent.OTHER,
                {"error": "x", "is_interrupt": False},
            ),
            ("PostToolBatch", HookEvent.OTHER, {"tool_calls": []}),
            ("SubagentStart", HookEvent.OTHER, {"agent_id": "a", "agent_type": "t"}),
            ("SubagentStop", HookEvent.OTHER, {"agent_transcript_path": CLAUDE}),
            (
                "Stop",
                HookEvent.STOP,
                {"stop_hook_active": False, "last_assistant_message": "x"},
            ),
            ("StopFailure", HookEvent.STOP, {"error": "rate limit"}),
            (
                "PreCompact",
                HookEvent.COMPACT,
                {"trigger": "auto", "custom_instructions": ""},
            ),
            (
                "PostCompact",
                HookEvent.OTHER,
                {"trigger": "auto", "compact_summary": "x"},
            ),
            ("SessionEnd", HookEvent.END, {"reason": "logout"}),
            ("Notification", HookEvent.OTHER, {"message": "x"}),
        )
    ),
    *(
        (
            f"codex {name}",
            {**CODEX_FIELDS, "hook_event_name": name, **more},
            "codex:0199",
            event,
        )
        for name, event, more in (
            ("SessionStart", HookEvent.START, {"source": "startup"}),
            ("UserPromptSubmit", HookEvent.PROMPT, {"prompt": "x", "turn_id": "t"}),
            ("PermissionRequest", HookEvent.OTHER, {"turn_id": "t"}),
            ("PreCompact", HookEvent.COMPACT, {"trigger": "manual"}),
            ("Stop", HookEvent.STOP, {"last_assistant_message": "x", "turn_id": "t"}),
            ("SessionEnd", HookEvent.END, {"reason": "other"}),
        )
    ),
    *(
        (
            f"cursor {name}",
            {**CURSOR_FIELDS, "hook_event_name": name, **more},
            "cursor:c1",
            event,
        )
        for name, event, more in (
            (
                "sessionStart",
                HookEvent.START,
                {"session_id": "c1", "composer_mode": "agent"},
            ),
            (
                "beforeSubmitPrompt",
                HookEvent.PROMPT,
                {"prompt": "x", "attachments": []},
            ),
            ("postToolUse", HookEvent.OTHER, {"tool_name": "x", "tool_output": "{}"}),
            ("afterAgentResponse", HookEvent.STOP, {"text": "x"}),
            ("stop", HookEvent.STOP, {"status": "completed", "loop_count": 0}),
            ("sessionEnd", HookEvent.END, {"reason": "x", "duration_ms": 1}),
            ("preCompact", HookEvent.COMPACT, {"trigger": "auto"}),
            ("subagentStop", HookEvent.OTHER, {"summary": "x"}),
        )
    ),
    *(
        (
            f"gemini {name}",
            {**GEMINI_FIELDS, "hook_event_name": name, **more},
            "gemini:g1",
            event,
        )
        for name, event, more in (
            ("SessionStart", HookEvent.START, {"source": "startup"}),
            ("BeforeAgent", HookEvent.PROMPT, {"prompt": "x"}),
            ("AfterAgent", HookEvent.STOP, {"prompt": "x", "prompt_response": "y"}),
            ("BeforeModel", HookEvent.OTHER, {}),
            ("PreCompress", HookEvent.COMPACT, {"trigger": "auto"}),
            ("SessionEnd", HookEvent.END, {"reason": "exit"}),
        )
    ),
    *(
        (
            f"vscode {name}",
            {**VSCODE_FIELDS, "hookEventName": name, **more},
            "vscode:v1",
            event,
        )
        for name, event, more in (
            ("SessionStart", HookEvent.START, {"source": "new"}),
            ("UserPromptSubmit", HookEvent.PROMPT, {"prompt": "x"}),
            ("PreCompact", HookEvent.COMPACT, {}),
            ("SubagentStop", HookEvent.OTHER, {}),
            ("Stop", HookEvent.STOP, {}),
        )
    ),
    *(
        (
            f"copilot {name}",
            {**COPILOT_FIELDS, "hook_event_name": name, **more},
            "copilot:p1",
            event,
        )
        for name, event, more in (
            ("SessionStart", HookEvent.START, {"source": "new", "initialPrompt": "x"}),
            ("UserPromptSubmit", HookEvent.PROMPT, {"prompt": "x"}),
            ("Stop", HookEvent.STOP, {"stopReason": "x"}),
            ("agentStop", HookEvent.STOP, {"stopReason": "x"}),
            ("PreCompact", HookEvent.COMPACT, {}),
            ("SessionEnd", HookEvent.END, {}),
        )
    ),
    (
        "antigravity PreInvocation",
        {**BRAIN_FIELDS, "invocationNum": 1, "workspacePaths": ["/w/shop"]},
        "antigravity:x1",
        HookEvent.START,
    ),
    ("antigravity Stop", BRAIN_FIELDS, "antigravity:x1", HookEvent.STOP),
    (
        "antigravity PreToolUse",
        {**BRAIN_FIELDS, "toolCall": {"name": "x", "args": {}}},
        "antigravity:x1",
        HookEvent.OTHER,
    ),
    (
        "cascade prompt",
        {**cascade("pre_user_prompt"), "tool_info": {"user_prompt": "x"}},
        "windsurf:w1",
        HookEvent.PROMPT,
    ),
    (
        "cascade answer",
        {**cascade("post_cascade_response"), "tool_info": {"response": "x"}},
        "windsurf:w1",
        HookEvent.STOP,
    ),
    (
        "goose prompt",
        {**goose("UserPromptSubmit"), "message": "x"},
        "goose:o1",
        HookEvent.PROMPT,
    ),
    (
        "goose stop",
        {**goose("Stop"), "last_assistant_message": "x"},
        "goose:o1",
        HookEvent.STOP,
    ),
    (
        "opencode",
        {"client": "opencode", "hook_event_name": "Stop", "session_id": "n1"},
        "opencode:n1",
        HookEvent.STOP,
    ),
]


@pytest.mark.parametrize(
    ("payload", "session", "event"),
    [case[1:] for case in CASES],
    ids=[case[0] for case in CASES],
)
def test_every_event_of_every_tool_is_known(
    payload: dict[str, Any], session: str, event: HookEvent
) -> None:
    call = parse_call(payload, {})

    assert (call.session, call.event) == (session, event)


def test_devin_is_known_by_its_environment() -> None:
    payload = {"session_id": "d1", "hook_event_name": "Stop"}
    environment = {"DEVIN_PROJECT_DIR": "/w/shop", "CLAUDE_PROJECT_DIR": "/w/shop"}
    call = parse_call(payload, environment)

    assert (call.session, call.directory) == ("devin:d1", "/w/shop")


@pytest.mark.parametrize(
    ("more", "client"),
    [
        ({}, "claude-code"),
        ({"cursor_version": "2.1", "conversation_id": "s1"}, "cursor"),
        (
            {"hookEventName": "Stop", "sessionId": "s1", "transcript_path": VSCODE},
            "vscode",
        ),
    ],
)
def test_tools_that_read_claudes_file_are_told_apart(
    more: dict[str, Any], client: str
) -> None:
    environment = {"CLAUDE_PROJECT_DIR": "/w/shop"}
    call = parse_call(
        {**CLAUDES_FIELDS, "hook_event_name": "Stop", **more}, environment
    )

    assert call.client == client


def test_an_argument_names_the_tool_and_the_event() -> None:
    call = parse_call({"session_id": "s"}, {}, arguments=("codex", "Stop"))

    assert (call.session, call.event) == ("codex:s", HookEvent.STOP)


def test_a_model_field_alone_misleads_nobody() -> None:
    call = parse_call(
        {**CLAUDES_FIELDS, "model": "m", "hook_event_name": "SessionStart"}, {}
    )

    assert call.client == "claude-code"


def test_the_directory_of_the_project_comes_before_the_present_one() -> None:
    call = parse_call(
        {**CLAUDES_FIELDS, "cwd": "/w/shop/sub"}, {"CLAUDE_PROJECT_DIR": "/w/shop"}
    )

    assert call.directory == "/w/shop"


def test_the_hooks_own_directory_counts_last() -> None:
    assert parse_call({"session_id": "s"}, {}, directory="/own").directory == "/own"
    assert parse_call({"cwd": "/w"}, {}, directory="/own").directory == "/w"
    roots = {"workspace_roots": ["file:///w/shop"]}
    assert parse_call(roots, {}, directory="/own").directory == "/w/shop"


def test_without_a_session_id_the_transcript_names_the_conversation() -> None:
    call = parse_call({"transcript_path": CLAUDE, "hook_event_name": "Stop"}, {})

    assert call.session == "claude-code:s1"


def test_a_name_with_a_nul_character_is_none() -> None:
    call = parse_call(
        {**CLAUDES_FIELDS, "cwd": "/w/\0", "turn_id": "\0"},
        {"CLAUDE_PROJECT_DIR": "\0", "MNEMOSYNE_PROJECT": "a\0b"},
        directory="/w/\0",
    )

    assert (call.directory, call.project) == ("", "")
    assert call.conversation == "s1"


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"session_id": 5, "hook_event_name": ["x"], "prompt": None, "cwd": 1},
        {"session_id": "s" * 10_000, "tool_info": "x", "messages": "x"},
        {"workspace_roots": [], "workspacePaths": [1], "transcript_path": {"a": 1}},
    ],
)
def test_nonsense_is_no_event(payload: dict[str, Any]) -> None:
    call = parse_call(payload, {})

    assert call.event is HookEvent.OTHER
    assert len(call.session) < 400


# ------------------------------------------------------------------ answers


def call_of(client: str, event: HookEvent, name: str) -> HookCall:
    return HookCall(client=client, event=event, name=name)


@pytest.mark.parametrize(
    ("client", "event", "name", "expected"),
    [
        ("claude-code", HookEvent.START, "SessionStart", told_as("SessionStart")),
        ("codex", HookEvent.PROMPT, "UserPromptSubmit", told_as("UserPromptSubmit")),
        ("gemini", HookEvent.PROMPT, "BeforeAgent", told_as("BeforeAgent")),
        ("cursor", HookEvent.START, "sessionStart", {"additional_context": "x"}),
        (
            "cursor",
            HookEvent.PROMPT,
            "beforeSubmitPrompt",
            {"continue": True, "additional_context": "x"},
        ),
        ("cursor", HookEvent.PROMPT, "UserPromptSubmit", told_as("UserPromptSubmit")),
        ("copilot", HookEvent.START, "SessionStart", {"additionalContext": "x"}),
        (
            "antigravity",
            HookEvent.START,
            "PreInvocation",
            {"injectSteps": [{"ephemeralMessage": "x"}]},
        ),
        ("opencode", HookEvent.PROMPT, "UserPromptSubmit", told_as("UserPromptSubmit")),
    ],
)
def test_context_is_told_in_the_tools_form(
    client: str, event: HookEvent, name: str, expected: dict[str, Any]
) -> None:
    call = call_of(client, event, name)

    assert takes_context(call)
    assert make_answer(call, "x") == expected


@pytest.mark.parametrize(
    ("client", "event"),
    [
        ("goose", HookEvent.START),
        ("windsurf", HookEvent.PROMPT),
        ("vscode", HookEvent.PROMPT),
        ("copilot", HookEvent.PROMPT),
        ("claude-code", HookEvent.STOP),
        ("claude-code", HookEvent.COMPACT),
    ],
)
def test_nothing_is_recalled_where_nobody_would_see_it(
    client: str, event: HookEvent
) -> None:
    assert not takes_context(call_of(client, event, "x"))


def test_blocking_nothing_to_say_never_stops_or_continues_an_agent() -> None:
    assert make_answer(call_of("claude-code", HookEvent.STOP, "Stop")) == {}
    assert make_answer(call_of("cursor", HookEvent.STOP, "stop")) == {}
    prompt = call_of("cursor", HookEvent.PROMPT, "beforeSubmitPrompt")
    assert make_answer(prompt) == {"continue": True}
