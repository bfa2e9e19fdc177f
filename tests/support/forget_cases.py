"""Every way to forget, in every state a memory can be in, and what is left of it in the file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise
from typing import Any

from support.fakes import NOON, memory
from support.leftovers import left_of
from support.services import Lab

from mnemosyned.memory.consolidation import Trigger
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.sleep.context import CycleRequest
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.verbs.retention import Forget

WORDS = {
    "words": "Zqxjv48213Kwyz",
    "utf-8": "Žluťoučkýkůňž",
    "cjk": "鑫淼焱垚犇骉",
    "code": "zqxjvSecretName",
    "snake": "zqxjv_wiring_table",
    "e-mail": "zqxjv.kwyz@example.org",
    "secret": "password: Zqxjv-4471-Kwyz",
    "emoji": "🚲zqxjvkwyz🚲",
}
EPISODES = 4
PER_EPISODE = 6
CHOSEN_AT = (3, 9)
"""Positions of the memories with the word: one in each of two episodes."""


@dataclass(frozen=True)
class Case:
    """One memory among many, and a way to name it."""

    word: str
    way: str
    state: str
    where: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.state} by {self.way}: {self.word}"


def memories_of(case: Case) -> list[MemoryRecord]:
    """Memories of four mornings; two of them hold the word, in whatever place the case names."""
    word = WORDS[case.word]
    memories = []
    for at in range(EPISODES * PER_EPISODE):
        told = at in CHOSEN_AT
        spoken = (
            f"note {at}: {word}. {word} again" if told else f"note {at} of the meadow"
        )
        filler = " ".join(f"word{at}x{n}" for n in range(12))
        memories.append(
            memory(
                f"m{at}",
                f"{spoken} {filler}",
                created_at=NOON - timedelta(days=5 - at // PER_EPISODE, minutes=-at),
                **{key: value for key, value in case.where.items() if told},
            )
        )
    return memories


def forget_requests(case: Case) -> list[Forget]:
    word = WORDS[case.word]
    if case.way == "id":
        return [Forget(f"m{at}") for at in CHOSEN_AT]
    if case.way == "period":
        return [Forget(since=moment(at), until=moment(at + 1)) for at in CHOSEN_AT]
    if case.way in ("session", "source"):
        return [Forget(**{case.way: case.where[case.way]})]
    return [Forget(**{case.way: case.where.get("role", word)})]


def moment(at: int) -> Any:  # noqa: ANN401
    return NOON - timedelta(days=5 - at // PER_EPISODE, minutes=-at)


def fresh(_: Lab) -> None:
    pass


def slept(lab: Lab) -> None:
    lab.cycle.run(CycleRequest(trigger=Trigger.EXPLICIT, force=True))


def rolled_up(lab: Lab) -> None:
    slept(lab)
    lab.clock.advance(days=30)
    slept(lab)


def pinned(lab: Lab) -> None:
    for at in CHOSEN_AT:
        lab.pin(f"m{at}")
    slept(lab)


def restored(lab: Lab) -> None:
    rolled_up(lab)
    for at in CHOSEN_AT:
        lab.restore(f"m{at}")


def undone(lab: Lab) -> None:
    slept(lab)
    lab.undo(lab.store.sleep.log(limit=1)[0].cycle)


def superseded(lab: Lab) -> None:
    rolled_up(lab)
    for at in CHOSEN_AT:
        lab.remember(f"the meadow is mown {at}", supersedes=f"m{at}")


def pruned(lab: Lab) -> None:
    rolled_up(lab)
    lab.prune(characters_max=0)


STATES: dict[str, Callable[[Lab], None]] = {
    state.__name__: state
    for state in (fresh, slept, rolled_up, pinned, restored, undone, superseded, pruned)
}
BY_WORD = [
    Case(word, ("id", "query", "person")[at % 3], state)
    for state in ("fresh", "rolled_up")
    for at, word in enumerate(WORDS)
]
BY_STATE = [
    Case("words", "id", "pinned"),
    Case("cjk", "query", "pinned"),
    Case("words", "person", "restored"),
    Case("cjk", "id", "restored"),
    Case("code", "query", "undone"),
    Case("secret", "id", "undone"),
    Case("words", "person", "superseded"),
    Case("utf-8", "id", "superseded"),
    Case("words", "id", "pruned"),
    Case("e-mail", "person", "pruned"),
]
BY_PLACE = [
    Case("words", "session", "slept", {"session": "Zqxjv48213Kwyz"}),
    Case(
        "words",
        "session",
        "rolled_up",
        {"session": "s Zqxjv48213Kwyz", "source": "chat"},
    ),
    Case("words", "source", "slept", {"source": "Zqxjv48213Kwyz"}),
    Case("words", "person", "slept", {"role": "Zqxjv48213Kwyz"}),
    Case("cjk", "person", "fresh", {"role": "鑫淼焱垚犇骉"}),
    Case("words", "query", "slept", {"metadata": {"also": ["Zqxjv48213Kwyz"]}}),
    Case("words", "period", "fresh"),
    Case("words", "period", "rolled_up"),
]


def find_remains(store: SqliteStore, word: str) -> list[str]:
    """Files and tables in which the word, or a part of it, can still be read."""
    parts = [part for part in word.removeprefix("password: ").split() if part]
    if word == WORDS["cjk"]:
        parts += ["".join(pair) for pair in pairwise(word)]
    found = left_of(store, word, *parts)
    if not isinstance(store, SqliteStore):
        return found
    with closing(
        sqlite3.connect(f"file:{store.database}?mode=ro", uri=True)
    ) as connection:
        dump = "\n".join(all_rows(connection)).casefold()
    return found + [f"a table: {part}" for part in parts if part.casefold() in dump]


def all_rows(connection: sqlite3.Connection) -> Iterator[str]:
    """Every row of every table that is one, those behind the indexes included."""
    tables = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
    ).fetchall()
    for (table,) in tables:
        yield from (repr(row) for row in connection.execute(f"SELECT * FROM {table}"))
