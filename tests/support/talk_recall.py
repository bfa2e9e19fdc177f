"""Which questions of the technical talks are answered: by the product, and by plain BM25."""

from __future__ import annotations

import re
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from weakref import finalize

from support.datasets.technical_talks import KINDS, NOTHING_KNOWN, Talk

from mnemosyned.assembly.embedded import Memory
from mnemosyned.memory.values import Tier
from mnemosyned.verbs.memories import Remember

LIMIT = 10
EVERYTHING = "all kinds"
SCOPES = ("within", "all ten")
"""A question is asked within its talk, or of all talks at once."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of a talk; without evidence nothing is known of it."""

    kind: str
    text: str
    talk: str
    evidence: frozenset[str]


Search = Callable[[Asked, str], frozenset[str]]
"""Answers a question in a scope with the ids of the turns shown among ten results."""


def turn_id(talk: Talk, number: int) -> str:
    return f"{talk.name}/{number}"


def questions_of(talks: Sequence[Talk]) -> list[Asked]:
    return [
        Asked(
            question.kind,
            question.text,
            talk.name,
            frozenset(turn_id(talk, number) for number in question.evidence),
        )
        for talk in talks
        for question in talk.questions
    ]


def memories_of(talks: Sequence[Talk]) -> list[Remember]:
    """Return each turn as a memory: a talk is a source, a sitting a session."""
    return [
        Remember(
            id=turn_id(talk, number),
            content=turn.text,
            role=turn.role,
            source=talk.name,
            session=f"{talk.name}/{turn.sitting}",
            created_at=turn.said_at,
        )
        for talk in talks
        for number, turn in enumerate(talk.turns, 1)
    ]


def product_search(memory: Memory) -> Search:
    """Return the search of the product."""

    def search(asked: Asked, scope: str) -> frozenset[str]:
        source = asked.talk if scope == "within" else None
        recalled = memory.recall(asked.text, limit=LIMIT, source=source)
        shown = {line.id for hit in recalled.hits for line in hit.lines}
        own = {hit.id for hit in recalled.hits if hit.tier is not Tier.EPISODIC}
        return frozenset(shown | own)

    return search


def plain_search(talks: Sequence[Talk]) -> Search:
    """Return bare FTS5: any of the question's words, by bm25, over the same memories."""
    database = sqlite3.connect(":memory:", check_same_thread=False)
    database.execute(
        "CREATE VIRTUAL TABLE turn USING fts5(id UNINDEXED, content, talk UNINDEXED)"
    )
    # A table of each talk by itself, so that its bm25 counts the words of no other.
    tables = {talk.name: f"turn_{number}" for number, talk in enumerate(talks)}
    for table in tables.values():
        database.execute(
            f"CREATE VIRTUAL TABLE {table} USING fts5(id UNINDEXED, content)"
        )
    for memory in memories_of(talks):
        row = (memory.id, memory.content, memory.source)
        database.execute("INSERT INTO turn VALUES (?, ?, ?)", row)
        database.execute(
            f"INSERT INTO {tables[str(memory.source)]} VALUES (?, ?)", row[:2]
        )

    def search(asked: Asked, scope: str) -> frozenset[str]:
        table = tables[asked.talk] if scope == "within" else "turn"
        match = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", asked.text))
        rows = database.execute(
            f"SELECT id FROM {table} WHERE {table} MATCH ? ORDER BY rank LIMIT ?",
            (match, LIMIT),
        )
        return frozenset(id_ for (id_,) in rows)

    finalize(search, database.close)
    return search


def shares(
    search: Search, questions: Sequence[Asked], scope: str
) -> Mapping[str, float]:
    """Return by kind the share of questions with any evidence among ten results.

    Questions about something that is not known are answered by no result.
    """
    answered: dict[str, list[bool]] = defaultdict(list)
    for asked in questions:
        shown = search(asked, scope)
        if asked.kind == NOTHING_KNOWN:
            answered[NOTHING_KNOWN].append(not shown)
        else:
            has_evidence = bool(shown & asked.evidence)
            answered[asked.kind].append(has_evidence)
            answered[EVERYTHING].append(has_evidence)
    return {kind: mean(answered[kind]) for kind in (EVERYTHING, *KINDS)}
