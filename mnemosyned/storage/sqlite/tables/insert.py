"""How memories enter the working tier: what is known is answered, the rest inserted and indexed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import chain
from typing import TypeVar, cast

from mnemosyned.domain.content_hash import content_hash
from mnemosyned.domain.errors import IdTaken
from mnemosyned.domain.memory import Acknowledged, MemoryRecord
from mnemosyned.domain.ports.records import Draft, Remembered
from mnemosyned.storage.sqlite.fulltext.indexing import index_memories
from mnemosyned.storage.sqlite.tables import learnings
from mnemosyned.storage.sqlite.tables.changing.revisions import was_said
from mnemosyned.storage.sqlite.tables.changing.state import set_state, supersede
from mnemosyned.storage.sqlite.tables.changing.tags import add_tags
from mnemosyned.storage.sqlite.tables.memories import working_count
from mnemosyned.storage.sqlite.tables.rows import (
    MEMORY_COLUMNS,
    instant,
    instant_text,
    memory_row,
)

T = TypeVar("T")
Known = tuple[str | None, datetime, int | None]
"""Content, time and hash of what has an id already; of an episode only the time."""

TOGETHER = 50
"""How many memories one statement takes: it binds ten values each, and older builds 999 in all."""

# What was superseded or may expire does not stand for words that are said again.
_SAME = (
    "+session_id = ?1 AND content_hash = ?2 AND content = ?3 AND source IS ?4 "
    "AND seq NOT IN (SELECT memory_seq FROM memory_state)"
)
SAID_BEFORE = (
    f"SELECT id, created_at FROM working_memory WHERE {_SAME} "
    f"UNION ALL SELECT id, created_at FROM archive WHERE {_SAME} "
    "ORDER BY created_at LIMIT 1"
)


def _inserting(count: int) -> str:
    row = f"({', '.join('?' for _ in MEMORY_COLUMNS.split(', '))})"
    return f"INSERT INTO working_memory ({MEMORY_COLUMNS}) VALUES {', '.join([row] * count)}"


def _having_id(count: int) -> str:
    among = f"id IN ({', '.join(f'?{number}' for number in range(1, count + 1))})"
    return (
        f"SELECT id, content, created_at, content_hash FROM working_memory WHERE {among} "
        f"UNION ALL SELECT id, content, created_at, content_hash FROM archive WHERE {among} "
        f"UNION ALL SELECT id, NULL, created_at, NULL FROM episodic_memory WHERE {among}"
    )


# Two of each, so that they stay prepared whatever the size of a batch.
_INSERT = {count: _inserting(count) for count in (1, TOGETHER)}
_HAVING_ID = {count: _having_id(count) for count in (1, TOGETHER)}


def remember(connection: sqlite3.Connection, drafts: Sequence[Draft]) -> Remembered:
    """Insert and index the drafts that are not known yet. Raises `IdTaken` and `NotFound`."""
    given = [draft.memory.id for draft in drafts if not draft.has_new_id]
    known = known_records(connection, given)
    rows = _Rows(connection)
    keeper = learnings.Keeper(connection)
    acknowledged: list[Acknowledged] = []
    for index, draft in enumerate(drafts):
        memory, answer = draft.memory, None
        if memory.id in known:
            field = f"memories[{index}].id" if len(drafts) > 1 else "id"
            answer = _again(connection, memory, known[memory.id], field=field)
        elif draft.dedupe:
            rows.insert()  # what this batch says before counts too
            answer = _said_before(connection, memory)
        if answer is None:
            rows.waiting.append(memory)
            known[memory.id] = (memory.content, memory.created_at, None)
            for learning in draft.learnings:
                keeper.keep(learning)
            answer = Acknowledged(
                id=memory.id, created_at=memory.created_at, stored=True
            )
        if draft.supersedes:
            rows.insert()
            supersede(connection, old=draft.supersedes, new=answer.id)
        acknowledged.append(answer)
    rows.insert()
    rows.index()
    return Remembered(acknowledged, working_count(connection), keeper.learned)


class _Rows:
    """New memories on their way into the tier and its index."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._inserted: list[tuple[int, MemoryRecord]] = []
        self.waiting: list[MemoryRecord] = []

    def insert(self) -> None:
        """Insert those that wait; the rows of one statement get numbers in sequence."""
        before = len(self._inserted)
        for memories in _shares(self.waiting):
            values = list(chain.from_iterable(map(memory_row, memories)))
            insert = self._connection.execute(_INSERT[len(memories)], values)
            last = cast("int", insert.lastrowid)
            seqs = range(last - len(memories) + 1, last + 1)
            self._inserted += zip(seqs, memories, strict=True)
        for seq, memory in self._inserted[before:]:
            if memory.valid_until:
                set_state(
                    self._connection,
                    seq,
                    "valid_until",
                    instant_text(memory.valid_until),
                )
            if memory.tags:
                add_tags(self._connection, seq, memory.tags)
        self.waiting = []

    def index(self) -> None:
        """Let all of them be found.

        After all rows: an insert with a trigger is a savepoint, at which FTS5 would write out what
        it has gathered, row by row (twice the time of the batch).
        """
        texts = [(seq, memory.content, memory.role) for seq, memory in self._inserted]
        index_memories(self._connection, texts)


def known_records(
    connection: sqlite3.Connection, ids: Sequence[str]
) -> dict[str, Known]:
    """Return existing records with these ids."""
    known: dict[str, Known] = {}
    for chunk in _shares(ids):
        rows = connection.execute(_HAVING_ID[len(chunk)], chunk)
        for id, content, created_at, said in rows:
            known[id] = (content, instant(created_at), said)
    return known


def _again(
    connection: sqlite3.Connection, memory: MemoryRecord, known: Known, *, field: str
) -> Acknowledged:
    """The answer to an id that came before. Raises `IdTaken` where the words are others."""
    content, created_at, said = known
    pruned = content == "" and said == content_hash(memory.content)
    is_same = content == memory.content or pruned
    if not is_same and not was_said(connection, memory.id, memory.content):
        raise IdTaken(
            f"the id {memory.id!r} already belongs to something else; "
            "give this memory another id, or none",
            field=field,
        )
    return Acknowledged(id=memory.id, created_at=created_at, stored=False)


def _said_before(
    connection: sqlite3.Connection, memory: MemoryRecord
) -> Acknowledged | None:
    row = connection.execute(
        SAID_BEFORE,
        (memory.session, content_hash(memory.content), memory.content, memory.source),
    ).fetchone()
    if row is None:
        return None
    id, created_at = row
    return Acknowledged(id=id, created_at=instant(created_at), stored=False)


def _shares(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield items in chunks of the statement's size, the remainder one by one."""
    whole = len(items) - len(items) % TOGETHER
    for start in range(0, whole, TOGETHER):
        yield items[start : start + TOGETHER]
    for item in items[whole:]:
        yield (item,)
