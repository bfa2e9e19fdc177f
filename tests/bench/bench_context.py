"""How long contexts and compactions of a 10,000-message history take, beside plain JSON.

    python tests/bench/bench_context.py

Times are of the processor, which on a machine that does nothing else are those of the clock. The
unit is one `json.dumps` of the same messages, which any client that sends them pays anyway: it
carries over to other machines, as milliseconds do not.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.corpus import fresh
from bench.report import Report

from mnemosyned import (
    AutoPolicy,
    ContextManager,
    MemoryConsolidator,
    RoundsPolicy,
    TokenBudget,
)
from mnemosyned.domain.conversation.message_tokens import FullCounter
from mnemosyned.domain.conversation.messages import Message
from mnemosyned.domain.text.token_estimate import TokenEstimator

MESSAGES = 10_000
ROUNDS = 9
BAR_MS = 20.0
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
