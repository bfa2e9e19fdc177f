"""Memories, episodes and exact values by their rows: inserted unless known, moved, and read by id."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TypeVar, cast

from mnemosyned.memory.actions import Action
from mnemosyned.memory.ports import Draft, RememberReport
from mnemosyned.memory.values import MemoryRecord, Tier
from mnemosyned.storage.common.records import IntakeTransaction, RecordStore
from mnemosyned.storage.common.session import BELOW, writes
from mnemosyned.storage.common.state import insert_tags_and_validity
from mnemosyned.storage.sqlite.fulltext import index_memories
from mnemosyned.storage.sqlite.session import MEMORY_COLUMNS, SqliteSession, memory_row
from mnemosyned.storage.sqlite.writer import SqlitePart
from mnemosyned.text.details import Detail

T = TypeVar("T")


def insert_details(
    session: SqliteSession, details: Sequence[Detail], episode_seq: int | None
) -> None:
    """Insert the exact values of originals of the episode at row number `episode_seq`."""
    seqs: dict[str, int] = dict(
        session.execute(
            "SELECT id, seq FROM archive WHERE episode_seq = ?", (episode_seq,)
        )
    )
    kinds = detail_kinds(session, (detail.kind for detail in details))
    session.executemany(
        "INSERT INTO detail (memory_seq, kind, value, sensitive) VALUES (?, ?, ?, ?)",
        [
            (seqs[detail.memory], kinds[detail.kind], detail.value, detail.sensitive)
            for detail in details
        ],
    )


def detail_kinds(session: SqliteSession, names: Iterable[str]) -> dict[str, int]:
    """Return the numbers of kinds of exact values by name; new kinds get a number."""
    kinds: dict[str, int] = dict(
        session.execute("SELECT name, number FROM detail_kind")
    )
    for kind in set(names) - kinds.keys():
        kinds[kind] = session.execute(
            "INSERT INTO detail_kind (name) VALUES (?) RETURNING number", (kind,)
        ).fetchone()[0]
    return kinds


def sensitive_details(
    session: SqliteSession, episode_seq: int
) -> list[tuple[str, str]]:
    """Return kind and value of each secret in the originals of an episode, by its row number."""
    return session.execute(
        "SELECT k.name, d.value FROM archive AS a JOIN detail AS d ON d.memory_seq = a.seq "
        "JOIN detail_kind AS k ON k.number = d.kind WHERE a.episode_seq = ? AND d.sensitive",
        (episode_seq,),
    ).fetchall()


def leave_secrets(session: SqliteSession, seq: int, episode: int) -> None:
    """Before an original leaves its episode, mark its secrets as secret in the other originals."""
    for kind, value in session.execute(
        "SELECT kind, value FROM detail WHERE memory_seq = ? AND sensitive", (seq,)
    ).fetchall():
        session.execute(
            "INSERT INTO detail (memory_seq, kind, value, sensitive) SELECT seq, ?, ?, 1 "
            "FROM archive WHERE episode_seq = ? AND seq != ? AND instr(content, ?) "
            "ON CONFLICT DO UPDATE SET sensitive = 1",
            (kind, value, episode, seq, value),
        )


def return_one(session: SqliteSession, seq: int, episode: int) -> None:
    """Move an original from its episode to working memory; its secrets stay marked in the others."""
    session.execute(
        f"INSERT INTO working_memory (seq, {MEMORY_COLUMNS}) "
        f"SELECT seq, {MEMORY_COLUMNS} FROM archive WHERE seq = ?",
        (seq,),
    )
    leave_secrets(session, seq, episode)
    session.execute("DELETE FROM archive WHERE seq = ?", (seq,))


TOGETHER = 50
"""Memories that one statement takes: it binds all values of each, and older builds bind 999 in all."""
# Two statements, so that they stay prepared whatever the size of a batch.
_PLACES = f"({', '.join('?' for _ in MEMORY_COLUMNS.split(', '))})"
_INSERT = {
    count: f"INSERT INTO working_memory ({MEMORY_COLUMNS}) VALUES {', '.join([_PLACES] * count)}"
    for count in (1, TOGETHER)
}
INSERT_NUMBERED = (
    f"INSERT INTO working_memory (seq, {MEMORY_COLUMNS}) "
    f"VALUES (?, {_PLACES.removeprefix('(')}"
)


# What was superseded or may expire does not stand for words that are said again.
_SAME = (
    "+session_id = :session AND content_hash = :hash AND content = :content "
    "AND source IS :source AND seq NOT IN (SELECT memory_seq FROM memory_state)"
)
SAID_BEFORE = (
    f"SELECT id, created_at FROM working_memory WHERE {_SAME} "
    f"UNION ALL SELECT id, created_at FROM archive WHERE {_SAME} "
    "ORDER BY created_at LIMIT 1"
)


class SqliteIntake(IntakeTransaction):
    """New memories on their way into working memory and its index."""

    _session: SqliteSession
    _said = SAID_BEFORE

    def __init__(self, session: SqliteSession) -> None:
        super().__init__(session)
        self._inserted: list[tuple[int, MemoryRecord]] = []

    def _insert(self, memories: Sequence[MemoryRecord]) -> None:
        """Insert memories into working memory with tags and validity, without index entries."""
        before = len(self._inserted)
        whole = len(memories) - len(memories) % TOGETHER
        shares = [memories[at : at + TOGETHER] for at in range(0, whole, TOGETHER)]
        shares += [[memory] for memory in memories[whole:]]
        for share in shares:
            values = list(chain.from_iterable(map(memory_row, share)))
            insert = self._session.execute(_INSERT[len(share)], values)
            last = cast("int", insert.lastrowid)
            seqs = range(last - len(share) + 1, last + 1)
            self._inserted += zip(seqs, share, strict=True)
        insert_tags_and_validity(self._session, self._inserted[before:])

    def _finish(self) -> int:
        # Indexed after all rows: an insert with a trigger is a savepoint, at which FTS5 would write
        # out what it has gathered, row by row (twice the time of the batch).
        texts = [(seq, memory.content, memory.role) for seq, memory in self._inserted]
        index_memories(self._session, texts)
        return self._session.totals()[Tier.WORKING][0]


class SqliteRecords(SqlitePart, RecordStore):
    """A `RecordStore` on one SQLite file."""

    _originals_below = (
        f"{BELOW} SELECT a.seq FROM below "
        "CROSS JOIN archive AS a ON a.episode_seq = below.seq "
        "ORDER BY a.created_at, a.seq"
    )

    @writes
    def remember(
        self,
        session: SqliteSession,
        drafts: Sequence[Draft],
        *,
        action: Action | None = None,
    ) -> RememberReport:
        return SqliteIntake(session).remember(drafts, action)
