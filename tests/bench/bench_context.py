"""How long contexts and compactions of a 10,000-message history take, beside plain JSON.

    python tests/bench/bench_context.py

Times are of the processor, which on a machine that does nothing else are those of the clock. The
unit is one `json.dumps` of the same messages, which any client that sends them pays anyway: it
carries over to other machines, as milliseconds do not.

Before that, `context` is asked about 300 random conversations, and its answers are counted anew.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.corpus import fresh
from bench.report import Report
from support import random_conversations

from mnemosyned import (
    AutoPolicy,
    ContextManager,
    InvalidRequest,
    Memory,
    MemoryConsolidator,
    Remember,
    RoundsPolicy,
    TokenBudget,
)
from mnemosyned.conversation.messages import FullCounter, Message
from mnemosyned.service.context import default_counter
from mnemosyned.text.token_counts import TokenEstimator

MESSAGES = 10_000
ROUNDS = 9
BAR_MS = 20.0
CONVERSATIONS = 300
WIDE = TokenBudget(total=2_000_000)
"""A window in which everything fits, so that every message is looked at and counted."""


def plain() -> list[Message]:
    """A conversation of words alone."""
    entries = islice(fresh(MESSAGES), MESSAGES)
    return [
        {"role": "assistant" if at % 2 else "user", "content": entry.content}
        for at, entry in enumerate(entries)
    ]


def working() -> list[Message]:
    """An agent at work: every other message calls a tool or is its result."""
    made: list[Message] = []
    for at, message in enumerate(plain()[: MESSAGES // 2]):
        if at % 2:
            call: dict[str, Any] = {"id": f"call-{at}", "type": "function"}
            call["function"] = {
                "name": "sh",
                "arguments": json.dumps({"command": "ls"}),
            }
            made.append({"role": "assistant", "content": None, "tool_calls": [call]})
            content = message["content"]
            made.append(
                {"role": "tool", "tool_call_id": f"call-{at}", "content": content}
            )
        else:
            made += [message, {"role": "assistant", "content": "I look into it."}]
    return made


@dataclass
class Outcomes:
    """What became of the contexts asked for."""

    answered: int = 0
    refused: int = 0
    over_budget: int = 0
    """Tokens, by our count of the system prompt and all messages."""


def outcomes() -> Outcomes:
    """Ask for contexts of random conversations, in windows of 2,000 to 16,000 tokens."""
    dice = random.Random(7)
    counter = default_counter()
    seen = Outcomes()
    with Memory(":memory:") as memory:
        memory.remember_many(
            [Remember(random_conversations.prose(dice, longest=60)) for _ in range(500)]
        )
        for _ in range(CONVERSATIONS):
            talk = random_conversations.random_conversation(dice)
            total = dice.choice((2_000, 4_000, 8_000, 16_000))
            try:
                window = memory.context(
                    random_conversations.prose(dice, longest=40),
                    messages=talk,
                    system="You help with code. " * dice.choice((1, 1, 80)),
                    memory_place=dice.choice(("system", "message")),
                    total=total,
                    system_reserve=total // 8,
                    tools_reserve=0,
                )
            except InvalidRequest:
                seen.refused += 1
                continue
            tokens = counter.text(window.system) + counter.total(window.messages)
            seen.answered += 1
            seen.over_budget += max(0, tokens - total, window.total - total)
    return seen


def median_ms(work: Callable[[], object]) -> float:
    work()
    times = []
    for _ in range(ROUNDS):
        started = time.process_time()
        work()
        times.append(1_000 * (time.process_time() - started))
    return statistics.median(times)


def main() -> int:
    report = Report("bench-context")
    asked = outcomes()
    report.figure("conversations_answered", asked.answered)
    report.figure("conversations_refused", asked.refused)
    report.bar("tokens over budget", asked.over_budget, "<=", 0)
    full = FullCounter(TokenEstimator())
    rows: list[list[object]] = []
    for kind, history in {"words": plain(), "tools": working()}.items():
        unit = median_ms(lambda history=history: json.dumps(history))  # type: ignore[misc]
        report.figure(f"{kind}_json_ms", unit)
        for name, work in {
            "build_messages": lambda h: ContextManager().build_messages("s", "new", h),
            "build_messages, all of it": lambda h: ContextManager(WIDE).build_messages(
                "s", "n", h
            ),
            "build_messages, estimator": lambda h: ContextManager(
                counter=full
            ).build_messages("s", "new", h),
            "compact facts": lambda h: MemoryConsolidator().compact(h),
            "compact rounds": lambda h: RoundsPolicy(counter=full).compact(h),
            "compact auto": lambda h: AutoPolicy(counter=full).compact(h),
        }.items():
            took = median_ms(lambda work=work, history=history: work(history))  # type: ignore[misc]
            key = f"{kind}_{name.replace(',', '').replace(' ', '_')}"
            report.figure(f"{key}_ms", took)
            report.figure(f"{key}_per_json", took / unit)
            rows.append([kind, name, took, took / unit])
            if name == "build_messages":
                report.bar(f"{kind}: {name}, ms", took, "<=", BAR_MS)
    report.table(
        f"{MESSAGES:,} messages", ["history", "work", "ms", "× one json.dumps"], rows
    )
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
