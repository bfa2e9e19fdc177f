"""Calls of hooks: which tool made one is found out, and what it says is the same for all."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.agents import Shop
from support.cases import each_case
from support.vector_service import wait_until

from mnemosyned.adapters.common import make_record_memory
from mnemosyned.agents.hooks.client import TIMED_OUT, post_in_time
from mnemosyned.agents.hooks.events import (
    HookCall,
    HookEvent,
    make_answer,
    parse_call,
    takes_context,
)
from mnemosyned.agents.hooks.fallback import choose_file_name
from mnemosyned.agents.hooks.service import HookService
from mnemosyned.conversation.learnings.rules import load_passing_rules
from mnemosyned.importers.transcripts import TranscriptMessage, clean_messages
from mnemosyned.service.service import MemoryService
from mnemosyned.text.json_repair import repair_json

LINES = Path(__file__).parents[1] / "data" / "hooks" / "calls.jsonl"
"""Every event of every tool, and calls that are easily mistaken, each with what it says."""
CASES = [json.loads(line) for line in LINES.read_text().splitlines()]


@each_case("case", CASES)
def test_a_call_is_known_by_tool_event_and_session(case: dict[str, Any]) -> None:
    call = parse_call(
        case["payload"],
        case.get("environment", {}),
        directory=case.get("directory", ""),
        arguments=tuple(case.get("arguments", ())),
    )

    assert {name: getattr(call, name) for name in case["expect"]} == case["expect"]


@each_case(
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


def told_as(name: str) -> dict[str, Any]:
    """The form of Claude Code, which most tools take."""
    specific = {"hookEventName": name, "additionalContext": "x"}
    return {"hookSpecificOutput": specific}


def call_of(client: str, event: HookEvent, name: str) -> HookCall:
    return HookCall(client=client, event=event, name=name)


@each_case(
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
        ("copilot", HookEvent.PROMPT, "UserPromptSubmit", {"additionalContext": "x"}),
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


@each_case(
    ("client", "event"),
    [
        ("goose", HookEvent.START),
        ("windsurf", HookEvent.PROMPT),
        ("vscode", HookEvent.PROMPT),
        ("claude-code", HookEvent.STOP),
        ("claude-code", HookEvent.COMPACT),
    ],
)
def test_nothing_is_recalled_that_nobody_sees(client: str, event: HookEvent) -> None:
    assert not takes_context(call_of(client, event, "x"))


def test_blocking_nothing_to_say_never_stops_or_continues_an_agent() -> None:
    assert make_answer(call_of("claude-code", HookEvent.STOP, "Stop")) == {}
    assert make_answer(call_of("cursor", HookEvent.STOP, "stop")) == {}
    prompt = call_of("cursor", HookEvent.PROMPT, "beforeSubmitPrompt")
    assert make_answer(prompt) == {"continue": True}


def test_messages_without_ids_are_not_replaced_by_those_whose_ids_are_numbers() -> None:
    said = [
        TranscriptMessage(role="user", text="Move the release to Friday."),
        TranscriptMessage(
            role="user", text="Ask Ann about the invoices.", unique_id="0"
        ),
    ]

    assert [each.text for each in clean_messages(said)] == [each.text for each in said]


def test_json_that_is_nested_too_deeply_to_be_repaired_is_left_as_it_is() -> None:
    data = b'{"a": "\\ud83d", "b": ' + b"[" * 200_000

    assert repair_json(data) == data


def test_calls_whose_transcript_only_the_environment_names_wait_in_a_file_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "chat.jsonl"
    path.touch()
    monkeypatch.setenv("CURSOR_TRANSCRIPT_PATH", str(path))

    names = {choose_file_name({"prompt": text}) for text in ("first", "second")}

    assert len(names) == 2


def test_a_504_of_a_proxy_is_no_time_out() -> None:
    assert post_in_time(lambda: (504, b"{}"), 5.0)[0] != TIMED_OUT


def test_a_record_with_half_a_character_is_found_by_its_other_letters() -> None:
    made = make_record_memory("", {"title": "Größe 你好 \ud83d"})

    assert "Größe 你好" in made.content


def test_the_first_call_loads_what_later_prompts_need(
    hooks: HookService, shop: Shop
) -> None:
    load_passing_rules.cache_clear()

    with hooks:
        shop.codex().ask("What is new?")

        wait_until(lambda: load_passing_rules.cache_info().currsize > 0)


def test_a_start_loads_what_prompts_need_after_sessions_without_a_transcript(
    service: MemoryService, shop: Shop, tmp_path: Path
) -> None:
    shop.codex().ask("What is new?")
    load_passing_rules.cache_clear()

    with HookService(service, home=tmp_path):
        wait_until(lambda: load_passing_rules.cache_info().currsize > 0)
