"""How the benches measure: filling, timing, percentiles, bytes on disk, and right answers."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import ParamSpec, TypeAlias, TypeVar

from bench.corpus import Entry, Question

from mnemosyned import Client, Memory
from mnemosyned.memory.values import Hit
from mnemosyned.verbs.memories import BATCH_MAX, Remember

P = ParamSpec("P")
T = TypeVar("T")
Memories: TypeAlias = Memory | Client
Recall: TypeAlias = Callable[[str], Sequence[str]]
"""Asks a system a question; what it shows, one text per result, best first."""

RESULTS = 10


def say(message: str) -> None:
    """Show progress to whoever waits."""
    print(f"[{time.strftime('%H:%M:%S')}] {message}", file=sys.stderr, flush=True)


# -------------------------------------------------------------------- filling


def as_request(entry: Entry) -> Remember:
    return Remember(
        content=entry.content,
        session=entry.session,
        source=entry.source,
        role=entry.role,
        created_at=entry.created_at,
    )


def fill(memories: Memories, entries: Iterable[Entry]) -> int:
    """Remember all of it in the largest batches there are; answers with the bytes of text."""
    rest = iter(entries)
    written = 0
    while batch := list(islice(rest, BATCH_MAX)):
        memories.remember_many([as_request(entry) for entry in batch])
        written += text_bytes(batch)
    return written


def text_bytes(entries: Iterable[Entry]) -> int:
    return sum(len(entry.content.encode()) for entry in entries)


def bytes_on_disk(database: Path) -> int:
    """All files of a database: itself, its log, and whatever else lies beside it by its name."""
    return sum(
        file.stat().st_size for file in database.parent.glob(f"{database.name}*")
    )


# --------------------------------------------------------------------- timing


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds of many calls."""

    p50_ms: float
    p95_ms: float
    p99_ms: float


def timed(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> tuple[float, T]:
    """Seconds a call took, and its result."""
    start = time.perf_counter()
    result = call(*args, **kwargs)
    return time.perf_counter() - start, result


def latency(seconds: Sequence[float]) -> Latency:
    cuts = statistics.quantiles(seconds, n=100, method="inclusive")
    return Latency(*(cuts[percent - 1] * 1000 for percent in (50, 95, 99)))


def rate(seconds: Sequence[float], *, chunk: int = 50) -> float:
    """Calls per second: the median over chunks, so that one stall of the disk does not decide."""
    chunks = [seconds[start : start + chunk] for start in range(0, len(seconds), chunk)]
    return statistics.median(len(part) / sum(part) for part in chunks)


def remember_each(memories: Memories, entries: Iterable[Entry]) -> list[float]:
    """Seconds of every call, remembering one by one."""
    requests = [as_request(entry) for entry in entries]
    return [timed(memories.call, request)[0] for request in requests]


def recall_each(recall: Recall, questions: Iterable[Question]) -> list[float]:
    """Seconds of every question."""
    return [timed(recall, question.text)[0] for question in questions]


# -------------------------------------------------------------- right answers


def shown(hit: Hit) -> str:
    """All that a hit puts before the reader."""
    return "\n".join([hit.content, *(line.content for line in hit.lines)])


def asking(memories: Memories) -> Recall:
    """The product as something that can be asked."""

    def recall(text: str) -> list[str]:
        return [shown(hit) for hit in memories.recall(text, limit=RESULTS).hits]

    return recall


def right(question: Question, texts: Sequence[str], *, first: int = 5) -> bool:
    """Whether the code of the answer stands within the first results."""
    return any(
        question.code is not None and question.code in text for text in texts[:first]
    )


def hit_share(recall: Recall, questions: Sequence[Question]) -> float:
    """How many of the questions are answered within the first five results."""
    return statistics.mean(
        right(question, recall(question.text)) for question in questions
    )
