"""Conversations of agents at work, what `compact` makes of them, and what comes back."""

from __future__ import annotations

from typing import Any

from mnemosyned.conversation.archived import as_message
from mnemosyned.verbs.conversation import Compact, Shortened
from mnemosyned.verbs.facade import Caller
from mnemosyned.verbs.memories import Expand

Messages = list[dict[str, Any]]


def rounds(count: int, *, first: int = 0) -> Messages:
    """Rounds of an agent at work, each with a long tool result; ids begin anew in every one."""
    made: Messages = []
    for n in range(first, first + count):
        call = {
            "id": f"call-{n}",
            "type": "function",
            "function": {"name": "sh", "arguments": "{}"},
        }
        made += [
            {"role": "user", "content": f"Step {n}: decided: use plan {n}.", "id": "1"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {
                "role": "tool",
                "tool_call_id": f"call-{n}",
                "content": f"begin {n} " + "row " * 400,
            },
            {"role": "assistant", "content": f"I read file {n}.", "id": "2"},
        ]
    return made


def anthropic_rounds(count: int) -> Messages:
    """Rounds in Anthropic's form, with a picture and a NUL."""
    made: Messages = []
    for n in range(count):
        picture = {"type": "image", "source": {"data": "AAAA"}}
        told = [{"type": "text", "text": f"{n} " + "row " * 400}, picture]
        result = {"type": "tool_result", "tool_use_id": f"t{n}", "content": told}
        made += [
            {"role": "user", "content": [{"type": "text", "text": f"Look at {n}\0!"}]},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": f"t{n}", "name": "sh"}],
            },
            {"role": "user", "content": [result]},
            {"role": "assistant", "content": f"Seen {n}."},
        ]
    return made


def compact(service: Caller, messages: Messages, **fields: Any) -> Shortened:  # noqa: ANN401
    return service.call(Compact(messages, **{"max_tokens": 3_000, **fields}))


def expand_all(service: Caller, *ids: str) -> Messages:
    """The messages that these ids stand for, as they were."""
    found = [service.call(Expand(id, reveal=True)).originals for id in ids]
    return [as_message(memory) for originals in found for memory in originals]


def find_missing(service: Caller, given: Messages, answer: Shortened) -> Messages:
    """Messages that are neither in the answer nor expanded from it."""
    there = [*answer.messages, *expand_all(service, *answer.expand)]
    return [message for message in given if message not in there]
