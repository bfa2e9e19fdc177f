"""What each verb takes for a kilobyte of hostile text, by pattern and size.

    python tests/bench/bench_hostile.py [--only WORDS] [--sizes 10000,100000] [--large 12]

Every pattern goes through every verb at each of the sizes; the worst ones go through again at a
megabyte. Times are of the processor, the least of several, as other work on the machine adds to
them. The bar is milliseconds for each kilobyte that a verb was given or has to read.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.hostile import PATTERNS, Pattern
from bench.measure import say
from bench.report import Report

from mnemosyned import Memory
from mnemosyned.errors import InvalidRequest
from mnemosyned.verbs.conversation import LEARNING_CHARS_MAX
from mnemosyned.verbs.memories import Remember
from mnemosyned.verbs.request import QUERY_CHARS_MAX

T = TypeVar("T")

BAR_MS = 3.0
ENOUGH_MS = BAR_MS / 2
"""What takes less for a kilobyte is not measured again."""
FIXED_MS = 5.0
"""What any call may take beside, however short the text: a commit, a snapshot, an answer."""
TOTAL = 10_000_000
"""Tokens of a window that all of it fits; a context that does not fit is an error."""
TIMES = 3
"""What comes near the bar is measured again, up to so often: the machine may be busy."""
SIZES = (10_000, 100_000)
LARGE = 1_000_000
PARTS = 10
STORE_TEXTS, STORE_CHARS = 40, 10_000
"""Beside so many texts of the same kind a question of the kind is asked."""


class Timing(NamedTuple):
    """The cost of one verb for one text."""

    ms_per_kb: float
    verb: str
    pattern: Pattern
    size: int


class Room:
    """A memory on a file of its own, and the times of what it is asked."""

    def __init__(
        self, memory: Memory, pattern: Pattern, size: int, enough_ms: float
    ) -> None:
        self.memory = memory
        self._enough_ms = enough_ms
        self._pattern = pattern
        self._size = size
        self.timings: list[Timing] = []

    def time(
        self, verb: str, work: Callable[[], T], *, chars: float, times: int = 1
    ) -> T:
        """Time a call that was given, or has to read, this much; the least of so many times."""
        least = float("inf")
        for _ in range(times):
            started = time.process_time()
            answer = work()
            took = 1_000 * (time.process_time() - started)
            least = min(least, max(0.0, took - FIXED_MS) / (chars / 1_000))
            if least < self._enough_ms:
                break
        self.timings.append(Timing(least, verb, self._pattern, self._size))
        return answer


@contextmanager
def room(pattern: Pattern, size: int, enough_ms: float) -> Iterator[Room]:
    with (
        tempfile.TemporaryDirectory() as folder,
        Memory(Path(folder) / "memory.db") as memory,
    ):
        memory.remember(
            "a memory like any other"
        )  # so that nothing is loaded by what is timed
        memory.recall("memory")
        yield Room(memory, pattern, size, enough_ms)


def whole(pattern: Pattern, size: int, *, enough_ms: float = ENOUGH_MS) -> list[Timing]:
    """One text of this size through every verb, and the same text in parts."""
    text = pattern.text(size)
    parts = [text[at : at + size // PARTS] for at in range(0, len(text), size // PARTS)]
    with room(pattern, size, enough_ms) as it:
        if text.strip():
            _remembered(it, text, parts)
        _talked(it, text, parts)
        if text.strip():
            _slept(it, text)
        return it.timings


def _remembered(it: Room, text: str, parts: Sequence[str]) -> None:
    size, memory = len(text), it.memory
    question = text[:QUERY_CHARS_MAX]
    batch = [Remember(part, role="user", session="s") for part in parts if part.strip()]
    it.time(
        "remember", partial(memory.remember, text, id="whole", role="user"), chars=size
    )
    it.time("remember_many", partial(memory.remember_many, batch), chars=size)
    it.time("get", partial(memory.get, "whole"), chars=size, times=TIMES)
    it.time(
        "recall, short", partial(memory.recall, "memory"), chars=2 * size, times=TIMES
    )
    asked = 2 * size + len(question)
    it.time(
        "recall", partial(memory.recall, question, limit=20), chars=asked, times=TIMES
    )
    preview = partial(_preview, memory, question)
    it.time("forget, preview", preview, chars=asked, times=TIMES)
    lesson = partial(memory.learn, text[:LEARNING_CHARS_MAX].strip() or "a lesson")
    it.time("learn", lesson, chars=LEARNING_CHARS_MAX)


def _preview(memory: Memory, question: str) -> None:
    with suppress(InvalidRequest):  # there is no word in it to look for
        memory.forget(query=question, dry_run=True)


def _talked(it: Room, text: str, parts: Sequence[str]) -> None:
    size, memory = len(text), it.memory
    talk: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = [{"role": "user", "content": "do"}]
    for at, part in enumerate(parts):
        talk.append({"role": ("user", "assistant")[at % 2], "content": part})
        call = {
            "id": f"c{at}",
            "type": "function",
            "function": {"name": "f", "arguments": "{}"},
        }
        results += [
            {"role": "assistant", "content": part, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{at}", "content": part},
        ]
    context = partial(memory.context, text, messages=talk, total=TOTAL)
    it.time("context", context, chars=4 * size, times=TIMES)
    for policy in ("auto", "facts", "rounds"):
        compact = partial(
            memory.compact, results, policy=policy, session=policy, force=True
        )
        answer = it.time(
            f"compact, {policy}",
            partial(compact, max_tokens=2_000),
            chars=2 * size,
            times=TIMES,
        )
        for id in answer.expand[:1]:
            it.time(
                "expand, compacted",
                partial(memory.expand, id),
                chars=2 * size,
                times=TIMES,
            )


def _slept(it: Room, text: str) -> None:
    memory = it.memory
    question = text[:QUERY_CHARS_MAX]
    stored = sum(total.characters for total in memory.status().tiers.values())
    preview = partial(memory.sleep, force=True, dry_run=True)
    it.time("sleep, dry run", preview, chars=stored, times=TIMES)
    it.time("sleep", partial(memory.sleep, force=True), chars=stored)
    original = memory.get("whole").memory
    if original and original.episode:
        it.time(
            "expand",
            partial(memory.expand, original.episode),
            chars=len(text),
            times=TIMES,
        )
    it.time("log", partial(memory.log, limit=20), chars=len(text), times=TIMES)
    asked = stored + len(question)
    it.time(
        "recall, slept",
        partial(memory.recall, question, limit=20),
        chars=asked,
        times=TIMES,
    )
    it.time("forget", partial(memory.forget, "whole"), chars=stored)


def beside_many(pattern: Pattern, *, enough_ms: float = ENOUGH_MS) -> list[Timing]:
    """A question of the kind, and a message, over many texts of the kind."""
    text = pattern.text(STORE_CHARS)
    if not text.strip():
        return []
    question = text[:QUERY_CHARS_MAX]
    short = question[:40].strip() or question.strip()[:40]
    size = STORE_TEXTS * STORE_CHARS
    with room(pattern, size, enough_ms) as it:
        memory = it.memory
        batch = [
            Remember(f"{at} {text}", role="user", session="s", source="s")
            for at in range(STORE_TEXTS)
        ]
        it.time("remember_many", partial(memory.remember_many, batch), chars=size)
        for state in (", many", ", many, slept"):
            asks: dict[str, Callable[[], object]] = {
                "recall": partial(memory.recall, question),
                "recall, short": partial(memory.recall, short),
                "forget, preview": partial(_preview, memory, question),
                "context": partial(memory.context, text, total=TOTAL),
            }
            for verb, ask in asks.items():
                it.time(verb + state, ask, chars=size, times=TIMES)
            if state == ", many":
                it.time("sleep, many", partial(memory.sleep, force=True), chars=size)
        return it.timings


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--only", default="", help="patterns with these words in their names"
    )
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument(
        "--large", type=int, default=12, help="so many patterns at a megabyte"
    )
    options = parser.parse_args()
    report = Report("bench-hostile")
    chosen = [pattern for pattern in PATTERNS if options.only in str(pattern)]
    timings: list[Timing] = []
    whole(Pattern("warm", "up", lambda size: "Ada pays $5 on May 5. " * size), SIZES[0])
    for number, pattern in enumerate(chosen):
        if number % 25 == 0:
            say(f"{number} of {len(chosen)} patterns")
        for size in map(int, options.sizes.split(",")):
            timings += whole(pattern, size)
        timings += beside_many(pattern)
    worst: dict[Pattern, float] = {}
    for timing in timings:
        worst[timing.pattern] = max(timing.ms_per_kb, worst.get(timing.pattern, 0.0))
    for pattern in sorted(worst, key=worst.__getitem__, reverse=True)[: options.large]:
        say(f"{LARGE:,} bytes of {pattern}")
        timings += whole(pattern, LARGE)
    _show(report, timings)
    report.figure("patterns", len(chosen))
    report.figure("timings", len(timings))
    return report.finish()


def _show(report: Report, timings: list[Timing]) -> None:
    """The worst pattern of each verb and size, and the worst of all."""
    worst: dict[tuple[str, int], Timing] = {}
    for timing in timings:
        key = (timing.verb, timing.size)
        worst[key] = max(timing, worst.get(key, timing), key=lambda one: one.ms_per_kb)
    report.table(
        "milliseconds for each kilobyte, by verb and size",
        ["verb", "bytes", "ms/KB", "worst pattern"],
        [[verb, size, worst[verb, size].ms_per_kb, str(worst[verb, size].pattern)]
         for verb, size in sorted(worst)],
    )  # fmt: skip
    ranked = sorted(timings, key=lambda one: -one.ms_per_kb)
    report.table(
        "the worst of all",
        ["ms/KB", "verb", "bytes", "pattern"],
        [[one.ms_per_kb, one.verb, one.size, str(one.pattern)] for one in ranked[:40]],
    )
    for verb in sorted({timing.verb for timing in timings}):
        most = max(timing.ms_per_kb for timing in timings if timing.verb == verb)
        report.figure(f"{verb.replace(', ', '_').replace(' ', '_')}_ms_per_kb", most)
        report.bar(f"{verb}, ms/KB", most, "<=", BAR_MS)


if __name__ == "__main__":
    sys.exit(main())
