"""Random conversations of people and agents with tools, long logs and pasted text."""

from __future__ import annotations

import json
import random
from typing import Any

WORDS = (
    "the build fails on main because the cache of the crane service holds an old index and "
    "nobody moved the harbor tests to the new runner so deploys wait for Priya who is away "
    "until Monday please check the invoice rounding again and write a note about it"
).split()
Message = dict[str, Any]


def random_conversation(dice: random.Random) -> list[Message]:
    """Return up to sixty messages: some of words alone, some with tools and long results."""
    messages: list[Message] = []
    for turn in range(dice.randrange(1, 20)):
        messages.append(
            {"role": "user", "content": prose(dice, longest=dice.choice((30, 400)))}
        )
        for call in range(dice.choice((0, 0, 1, 2))):
            messages += tool_round(dice, id=f"call-{turn}-{call}")
        messages.append({"role": "assistant", "content": prose(dice, longest=300)})
    return messages


def tool_round(dice: random.Random, *, id: str) -> list[Message]:
    """Return a call of a tool and its result, in the form of OpenAI's or Anthropic's API."""
    result = log(dice, lines=dice.choice((1, 20, 200, 1_500)))
    if dice.random() < 0.5:
        call = {
            "id": id,
            "type": "function",
            "function": {"name": "sh", "arguments": json.dumps({"command": "make"})},
        }
        return [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": id, "content": result},
        ]
    use = {"type": "tool_use", "id": id, "name": "sh", "input": {"command": "make"}}
    answer = {"type": "tool_result", "tool_use_id": id, "content": result}
    return [
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [answer]},
    ]


def prose(dice: random.Random, *, longest: int) -> str:
    """Return words without meaning, of some length."""
    return " ".join(dice.choices(WORDS, k=dice.randrange(1, longest))) + "."


def log(dice: random.Random, *, lines: int) -> str:
    """Return the log of a test run, with its totals in the last line."""
    said = [f"test_{n} {prose(dice, longest=9)} ok" for n in range(lines)]
    failed = dice.randrange(0, 5)
    return "\n".join([*said, f"{failed} failed, {lines} passed in 3.1 s"])
