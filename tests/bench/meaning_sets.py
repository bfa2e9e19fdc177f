"""Records and questions of `sets/meaning`, and the long talks of `sets/broad`, from text files.

A file of records has lines "== day source", which begin a group, and "id: text". A file of questions has lines
"== kind" and "question -> ids"; without ids nothing answers the question. "#" begins a comment.
"""

from __future__ import annotations

import re
import sqlite3
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from weakref import finalize

from support.datasets.technical_talks import load_talks
from support.talk_recall import memories_of, questions_of

from mnemosyned import Memory
from mnemosyned.memory.values import EmbedderState, Hit, Tier
from mnemosyned.verbs.memories import BATCH_MAX, Remember
from mnemosyned.verbs.upkeep import Stats

SETS = Path(__file__).with_name("sets")
HALVES = ("tune", "held")
"""Rules may be tuned on the first half alone."""
BROAD_KINDS = ("order", "summary", "everything", "tried", "options")
ALL_KINDS = "all"
STAGES = ("before", "after")
"""Of a sleep."""
DAY_STARTS_AT = timedelta(hours=9)
EMBEDDED_WITHIN_S = 1_800.0
CYCLES_MAX = 50


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and the ids of the memories of which any one answers it; none if nothing does."""

    kind: str
    text: str
    evidence: frozenset[str]
    source: str | None = None
    """The source that is searched; None for all."""


Results = Sequence[frozenset[str]]
"""The ids of the memories that each result shows, best first."""
Search = Callable[[Asked], Results]


def load_records(name: str) -> list[Remember]:
    """Return the records of a file in order, a minute apart; a group is a session."""
    records: list[Remember] = []
    at, source = datetime.min.replace(tzinfo=UTC), ""
    for heading, line in read_lines(SETS / "meaning" / f"{name}.txt"):
        if heading:
            day, source = line.split()
            at = datetime.fromisoformat(day).replace(tzinfo=UTC) + DAY_STARTS_AT
            continue
        id_, content = line.split(": ", 1)
        records.append(
            Remember(
                id=id_,
                content=content,
                role="user",
                source=source,
                session=f"{source}/{at:%Y-%m-%d}",
                created_at=at,
            )
        )
        at += timedelta(minutes=1)
    return records


def load_questions(name: str, half: str) -> list[Asked]:
    """Return the questions of one half of a set, by kind as in their file."""
    questions: list[Asked] = []
    kind = name
    for heading, line in read_lines(SETS / "meaning" / f"{name}_{half}.txt"):
        if heading:
            kind = line
            continue
        text, _, ids = line.partition(" ->")
        questions.append(Asked(kind, text, frozenset(re.findall(r"[\w-]+", ids))))
    return questions


def read_lines(path: Path) -> Iterator[tuple[bool, str]]:
    """Yield whether a line is a heading, and its text."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            yield line.startswith("== "), line.removeprefix("== ").strip()


# ------------------------------------------------------------------ searching


def fill(memory: Memory, records: Iterable[Remember]) -> None:
    """Remember all of it in large batches, and wait until every memory has its vector, if it gets one."""
    rest = iter(records)
    while batch := list(islice(rest, BATCH_MAX)):
        memory.remember_many(batch)
    wait_for_vectors(memory.status)


def wait_for_vectors(read_status: Callable[[], Stats]) -> None:
    """Wait until every memory of working memory has its vector, if it gets one."""
    until = time.monotonic() + EMBEDDED_WITHIN_S
    while time.monotonic() < until:
        status = read_status()
        if status.embedder.state is EmbedderState.UNAVAILABLE:
            raise RuntimeError(status.embedder.reason)
        if status.embedder.state is EmbedderState.OFF:
            return
        if status.embedder.embedded >= status.tiers[Tier.WORKING].count:
            return
        time.sleep(0.2)
    raise RuntimeError(f"not every memory was embedded in {EMBEDDED_WITHIN_S:g} s")


def sleep_all(memory: Memory) -> None:
    """Sleep until working memory is empty, since a cycle may be bounded."""
    for _ in range(CYCLES_MAX):
        memory.sleep(force=True)
        if not memory.status().tiers[Tier.WORKING].count:
            return
    raise RuntimeError(f"working memory is not empty after {CYCLES_MAX} cycles")


def shown_ids(hit: Hit) -> frozenset[str]:
    """Return the ids of the memories that a hit puts before the reader."""
    if hit.tier is Tier.EPISODIC:
        return frozenset(line.id for line in hit.lines)
    return frozenset([hit.id, *(line.id for line in hit.lines)])


def product_search(memory: Memory, limit: int) -> Search:
    """Return a search that asks the product."""

    def search(asked: Asked) -> Results:
        recalled = memory.recall(asked.text, limit=limit, source=asked.source)
        return [shown_ids(hit) for hit in recalled.hits]

    return search


def plain_search(records: Iterable[Remember], limit: int) -> Search:
    """Return bare FTS5 with the Porter stemmer: any of the question's words, by bm25.

    Each source has a table of its own, so that its bm25 counts the words of no other.
    """
    database = sqlite3.connect(":memory:", check_same_thread=False)
    tables: dict[str | None, str] = {}
    for record in records:
        for source in (None, record.source):
            if source not in tables:
                tables[source] = f"memory_{len(tables)}"
                database.execute(
                    f"CREATE VIRTUAL TABLE {tables[source]} "
                    "USING fts5(id UNINDEXED, content, tokenize='porter unicode61')"
                )
            insert = f"INSERT INTO {tables[source]} VALUES (?, ?)"
            database.execute(insert, (record.id, record.content))

    def search(asked: Asked) -> Results:
        table = tables[asked.source]
        match = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", asked.text))
        select = f"SELECT id FROM {table} WHERE {table} MATCH ? ORDER BY rank LIMIT ?"
        return [frozenset(row) for row in database.execute(select, (match, limit))]

    finalize(search, database.close)
    return search


# -------------------------------------------------------------------- scoring


def shows_answer(asked: Asked, results: Results) -> bool:
    """Return whether a result shows a memory that answers the question."""
    return any(shown & asked.evidence for shown in results)


def shown_share(asked: Asked, results: Results) -> float:
    """Return the share of the memories with evidence that the results show."""
    shown = frozenset().union(*results)
    return len(asked.evidence & shown) / len(asked.evidence)


def means_by_kind(scores: Mapping[Asked, float]) -> Mapping[str, float]:
    """Return the mean score of the questions, of all and by kind."""
    by_kind: dict[str, list[float]] = defaultdict(list)
    for asked, score in scores.items():
        by_kind[ALL_KINDS].append(score)
        by_kind[asked.kind].append(score)
    return {kind: statistics.mean(values) for kind, values in by_kind.items()}


def load_broad_talks(half: str) -> tuple[list[Remember], list[Asked]]:
    """Return the messages of the talks of a half, and their questions, within the talk and over all."""
    talks = load_talks(SETS / "broad" / half, BROAD_KINDS)
    records = memories_of(talks)
    within = [
        Asked(question.kind, question.text, question.evidence, question.talk)
        for question in questions_of(talks)
    ]
    return records, asked_within_and_over_all(within)


def asked_within_and_over_all(questions: Sequence[Asked]) -> list[Asked]:
    """Return questions that are asked within their source, each once more over all sources."""
    return [*questions, *(replace(asked, source=None) for asked in questions)]
