"""Capture from the transcripts and the events of each tool, and imports of the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.agents import (
    MORNING,
    SAID,
    TALK,
    Agent,
    Json,
    Shop,
    captured,
    claude,
    claude_line,
    codex,
    codex_event,
    codex_meta,
    moment,
    write_lines,
)

from mnemosyned.importers.importer import START, ImportItem, ImportSource
from mnemosyned.importers.run import recognize_format
from mnemosyned.verbs.memories import Remember


def gemini_line(
    kind: str, text: str, *, id: str, minutes: float = 0, **more: object
) -> Json:
    content: object = [{"text": text}] if kind == "user" else text
    return {
        "id": id,
        "timestamp": moment(minutes),
        "type": kind,
        "content": content,
        **more,
    }


LINES = Path(__file__).parents[1] / "data" / "hooks" / "transcripts.jsonl"
"""The transcript of each tool, and those in which much is not said, with what is stored of it."""
CASES = [json.loads(line) for line in LINES.read_text().splitlines()]
CASCADE = """### Planner Response

*Viewed [a.md](file:///w/a.md) *

*User accepted the command `ls *.md
wc -l`*

### Planner Response

Moved *it*.
"""
FIX = codex_event("user_message", "Fix the tax rounding")


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_what_a_transcript_says_is_stored(shop: Shop, case: dict[str, Any]) -> None:
    path = write_lines(shop.home / case["place"], case["lines"])
    fields = {case.get("key", "transcript_path"): str(path), **case["fields"]}
    agent = Agent(shop.hooks, fields)
    agent.call()
    agent.call()

    said = captured(shop.store, case["session"])
    assert [memory.content for memory in said] == case["texts"]
    roles = case.get("roles", ["user", "assistant"])
    assert [memory.role for memory in said] == roles
    if "times" in case:
        assert [str(memory.created_at) for memory in said] == case["times"]


def test_a_fork_that_repeats_its_history_stores_it_once(shop: Shop) -> None:
    write_lines(shop.rollout, [codex_meta(), FIX])
    shop.codex(file=shop.rollout).stop()
    fork = shop.rollout.with_name("rollout-2026-03-16T10-00-00-0200.jsonl")
    more = codex_event("user_message", "And the discount")
    write_lines(fork, [codex_meta("0200", forked_from_id="0199"), FIX, more])
    shop.codex("0200", file=fork).stop()

    assert shop.texts("codex:0199", "codex:0200") == [
        "Fix the tax rounding",
        "And the discount",
    ]


def test_a_resumed_session_stores_lines_that_it_repeats_once(shop: Shop) -> None:
    shop.write(*TALK)
    shop.claude().stop()
    shop.write(*TALK, session="s2")
    shop.say("And now the tax", session="s2")

    both = ("claude-code:s1", "claude-code:s2")
    assert shop.texts(*both) == [*SAID, "And now the tax"]


def test_gemini_chats_in_one_json_file_are_read_as_they_grow(shop: Shop) -> None:
    path = shop.home / ".gemini" / "tmp" / "ab12" / "chats" / "session-1.json"
    path.parent.mkdir(parents=True)
    messages = [gemini_line("user", "Sort by date", id="a")]
    agent = Agent(shop.hooks, {"transcript_path": str(path), "session_id": "g1"})
    for message in (gemini_line("gemini", "Sorted.", id="b"), None):
        path.write_text(json.dumps({"sessionId": "g1", "messages": messages}))
        agent.call(hook_event_name="AfterAgent")
        messages += [message] if message else []

    assert shop.texts("gemini:g1") == ["Sort by date", "Sorted."]


def test_without_a_transcript_the_payload_is_stored(shop: Shop) -> None:
    agent = shop.codex()
    agent.ask("Fix the tax rounding")
    agent.stop(last_assistant_message="Rounded half to even.")

    assert shop.texts("codex:0199") == ["Fix the tax rounding", "Rounded half to even."]


def test_a_payload_does_not_double_what_the_transcript_brings_later(shop: Shop) -> None:
    agent = shop.codex(file=shop.rollout)  # not written yet
    agent.ask("Fix the tax rounding\n")
    write_lines(shop.rollout, [codex_meta(), FIX])
    agent.stop()
    shop.claude().ask(SAID[0])
    shop.write(*TALK)
    shop.claude().stop(last_assistant_message=SAID[1])

    assert shop.texts("codex:0199") == ["Fix the tax rounding"]
    assert sorted(shop.texts()) == sorted(SAID)


def test_opencodes_plugin_sends_the_messages(shop: Shop) -> None:
    fields = {"client": "opencode", "session_id": "o1", "cwd": "/w/shop"}
    agent = Agent(shop.hooks, fields)
    sent = [
        {"id": f"m{at}", "role": role, "content": content, "timestamp": moment(at)}
        for at, (role, content) in enumerate(
            [("user", "Move it"), ("assistant", "Moved it."), ("tool", "noise")]
        )
    ]
    agent.ask("Move it")
    agent.stop(messages=sent[:1])
    agent.stop(messages=sent)

    assert shop.texts("opencode:o1") == ["Move it", "Moved it."]
    assert captured(shop.store, "opencode:o1")[0].created_at == MORNING


def test_cascades_hooks_carry_the_words(shop: Shop) -> None:
    agent = Agent(shop.hooks, {"trajectory_id": "w1"}, directory="/w/shop")
    agent.call(
        agent_action_name="pre_user_prompt", tool_info={"user_prompt": "Move it"}
    )
    answer = agent.call(
        agent_action_name="post_cascade_response", tool_info={"response": CASCADE}
    )

    assert answer == {}
    assert shop.texts("windsurf:w1") == ["Move it", "Moved *it*."]


def test_a_call_from_the_spool_keeps_its_time(shop: Shop) -> None:
    shop.codex().late(
        hook_event_name="UserPromptSubmit",
        prompt="Fix the tax",
        time=MORNING.timestamp(),
    )

    assert captured(shop.store, "codex:0199")[0].created_at == MORNING


TALKS: dict[str, tuple[Callable[..., Agent], str, list[Json]]] = {
    "transcript": (
        claude,
        "claude-code:s1",
        [
            claude_line("user", "Why is the cart empty?", uuid="u1"),
            claude_line("assistant", "The cookie expires.", uuid="u2", minutes=1),
        ],
    ),
    "rollout": (
        codex,
        "codex:0199",
        [
            codex_meta(),
            FIX,
            codex_event("agent_message", "Rounded half to even.", minutes=1),
        ],
    ),
}


def memories_of(path: Path) -> list[Remember]:
    """The memories that an import of a transcript stores."""
    source = ImportSource.of_path(path)
    format = recognize_format(source)
    assert format
    items = format.read(source, START)
    return [each.memory for each in items if isinstance(each, ImportItem)]


@pytest.mark.parametrize("file", TALKS)
def test_an_import_after_capture_stores_nothing_twice(shop: Shop, file: str) -> None:
    agent, session, lines = TALKS[file]
    path: Path = getattr(shop, file)
    write_lines(path, lines[:-1])
    agent(shop.hooks, path).stop()
    write_lines(path, lines[-1:])

    answers = shop.remember_many(memories_of(path)).memories
    agent(shop.hooks, path).stop()

    assert [answer.stored for answer in answers] == [False, True]
    assert len(shop.texts(session)) == 2


def test_imported_conversations_of_copilot_have_their_own_sessions(
    tmp_path: Path,
) -> None:
    imported = []
    for session in ("p1", "p2"):
        path = tmp_path / f".copilot/session-state/{session}/events.jsonl"
        context = {"cwd": "/w/shop"}
        lines = [
            {
                "type": "session.start",
                "data": {"sessionId": session, "context": context},
            },
            {"type": "user.message", "timestamp": moment(), "data": {"content": "Hm"}},
        ]
        imported += memories_of(write_lines(path, lines))

    assert [each.session for each in imported] == ["copilot:p1", "copilot:p2"]
    assert {each.metadata["cwd"] for each in imported} == {"/w/shop"}


def test_imported_conversations_of_antigravity_have_the_sessions_of_hooks(
    tmp_path: Path,
) -> None:
    line = {"source": "USER_EXPLICIT", "type": "USER_INPUT", "created_at": moment()}
    place = ".gemini/antigravity/brain/x1/.system_generated/logs/transcript.jsonl"
    path = write_lines(tmp_path / place, [{**line, "content": "Hm"}])

    assert [each.session for each in memories_of(path)] == ["antigravity:x1"]


@pytest.mark.parametrize("file", TALKS)
def test_an_imported_conversation_has_its_project(shop: Shop, file: str) -> None:
    agent, session, lines = TALKS[file]
    path: Path = getattr(shop, file)
    write_lines(path, [{**line, "cwd": "/w/shop"} for line in lines])
    memories = memories_of(path)

    shop.remember_many(memories, import_id="01M8DZ553P4R11WFTR4W9D370X")

    project = str(memories[0].metadata["project"])
    assert shop.store.agents.sessions_of(project, 10) == [session]
    known = shop.store.agents.session(session)
    agent(shop.hooks, path).stop()
    assert known
    assert known.project == project
    assert len(shop.texts(session)) == 2
