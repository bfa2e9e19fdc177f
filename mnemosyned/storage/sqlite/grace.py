"""Memories forgotten with a grace period: stored apart from all reads, put back, or deleted for good."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from mnemosyned.memory.forgetting import Grace, Recoverable
from mnemosyned.memory.intake import keys_of_forgotten
from mnemosyned.memory.ports import GraceStore
from mnemosyned.memory.rows import LEARNING_COLUMNS
from mnemosyned.storage.sqlite.fulltext import index_memories
from mnemosyned.storage.sqlite.learnings import Keeper, learning_from
from mnemosyned.storage.sqlite.purge import request_purge
from mnemosyned.storage.sqlite.rows import (
    MEMORY_COLUMNS,
    instant_text,
    optional_instant,
)
from mnemosyned.storage.sqlite.state import add_tags, has_pruned, invalidate
from mnemosyned.storage.sqlite.writer import Transactional, reads, writes

_COLUMNS = f"seq, {MEMORY_COLUMNS}"
_STATE = "valid_until, superseded_at, superseded_by"
_REVISION = "changed_at, content, content_hash, fields"
LEARNING = "learning"


class Kept(msgspec.Struct, omit_defaults=True):
    """All of a memory; `row` has the columns of the working tier."""

    row: list[Any] = msgspec.field(default_factory=list)
    state: list[Any] = msgspec.field(default_factory=list)
    supersedes: list[int] = msgspec.field(default_factory=list)
    """The memories that it had replaced, by their `seq`."""
    tags: list[str] = msgspec.field(default_factory=list)
    revisions: list[list[Any]] = msgspec.field(default_factory=list)
    learnings: list[list[Any]] = msgspec.field(default_factory=list)


decode_kept = msgspec.json.Decoder(Kept).decode


def keep_memories(
    connection: sqlite3.Connection, ids: Iterable[str], grace: Grace
) -> None:
    """Keep all of memories that are about to be deleted; nothing of pruned ones."""
    for id in ids:
        _keep_memory(connection, id, grace)


def _keep_memory(connection: sqlite3.Connection, id: str, grace: Grace) -> None:
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM working_memory WHERE id = ? UNION ALL "
        f"SELECT {_COLUMNS} FROM archive WHERE id = ? AND content != ''",
        (id, id),
    ).fetchone()
    if row is None:
        return
    seq = row[0]

    def of(query: str) -> list[list[Any]]:
        return list(map(list, connection.execute(query, (seq,))))

    states = of(f"SELECT {_STATE} FROM memory_state WHERE memory_seq = ?")
    kept = Kept(
        row=list(row),
        state=states[0] if states else [],
        supersedes=[
            older
            for (older,) in of(
                "SELECT memory_seq FROM memory_state WHERE superseded_by = ?"
            )
        ],
        tags=[name for (name,) in of("SELECT name FROM tag WHERE memory_seq = ?")],
        revisions=of(
            f"SELECT {_REVISION} FROM revision WHERE memory_seq = ? ORDER BY seq"
        ),
        learnings=_learnings(connection, "memory_id", id),
    )
    _insert(connection, id, grace, kept)


def keep_learnings(
    connection: sqlite3.Connection, ids: Sequence[str], grace: Grace
) -> None:
    """Keep learnings that are about to be deleted by themselves."""
    for id in ids:
        learnings = _learnings(connection, "id", id)
        if learnings:
            _insert(connection, f"{LEARNING}:{id}", grace, Kept(learnings=learnings))


def _learnings(
    connection: sqlite3.Connection, column: str, value: str
) -> list[list[Any]]:
    rows = connection.execute(
        f"SELECT {LEARNING_COLUMNS} FROM learning WHERE {column} = ? ORDER BY seq",
        (value,),
    )
    return list(map(list, rows))


def _insert(connection: sqlite3.Connection, id: str, grace: Grace, kept: Kept) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO forgotten VALUES (?, ?, ?, ?)",
        (
            id,
            grace.call,
            instant_text(grace.final_at),
            msgspec.json.encode(kept).decode(),
        ),
    )


def put_back(
    connection: sqlite3.Connection, keys: Sequence[str]
) -> list[tuple[str, int]]:
    """Put memories and learnings back; returns the ids and positions of memories.

    What has the id of a memory that was remembered since stays forgotten.
    """
    keeper = Keeper(connection)
    returned: list[tuple[str, int]] = []
    texts: list[tuple[int, str, str]] = []
    for key in keys:
        row = connection.execute(
            "SELECT data FROM forgotten WHERE id = ?", (key,)
        ).fetchone()
        kept = decode_kept(row[0]) if row else Kept()
        if kept.row:
            if _is_taken(connection, key):
                continue
            seq, content, role = _put_back(connection, key, kept)
            returned.append((key, seq))
            texts.append((seq, content, role))
        for learning in kept.learnings:
            keeper.keep(learning_from(learning))
        connection.execute("DELETE FROM forgotten WHERE id = ?", (key,))
    # What superseded one of them may be gone: then it holds again.
    connection.executemany(
        "UPDATE memory_state SET superseded_at = NULL, superseded_by = NULL "
        "WHERE memory_seq = ? AND superseded_at IS NOT NULL "
        "AND NOT EXISTS (SELECT 1 FROM working_memory WHERE seq = superseded_by) "
        "AND NOT EXISTS (SELECT 1 FROM archive WHERE seq = superseded_by)",
        [(seq,) for _, seq in returned],
    )
    # After all rows, as when they were remembered.
    index_memories(connection, texts)
    return returned


def _is_taken(connection: sqlite3.Connection, id: str) -> bool:
    row = connection.execute(
        "SELECT 1 FROM working_memory WHERE id = ? UNION ALL "
        "SELECT 1 FROM archive WHERE id = ?",
        (id, id),
    ).fetchone()
    return row is not None


def _put_back(
    connection: sqlite3.Connection, id: str, kept: Kept
) -> tuple[int, str, str]:
    """Insert a memory as it was, into working memory; returns its position, text and role."""
    seq = _free_seq(connection, kept.row[0])
    connection.execute(
        f"INSERT INTO working_memory ({_COLUMNS}) "
        f"VALUES ({', '.join('?' * len(kept.row))})",
        (seq, *kept.row[1:]),
    )
    add_tags(connection, seq, kept.tags)
    connection.executemany(
        f"INSERT INTO revision (memory_seq, {_REVISION}) VALUES (?, ?, ?, ?, ?)",
        [(seq, *revision) for revision in kept.revisions],
    )
    if kept.state:
        connection.execute(
            f"INSERT INTO memory_state (memory_seq, {_STATE}) VALUES (?, ?, ?, ?)",
            (seq, *kept.state),
        )
    fields = dict(zip(_COLUMNS.split(", "), kept.row, strict=True))
    for older in kept.supersedes:
        connection.execute(
            "UPDATE memory_state SET superseded_by = ?, "
            "superseded_at = ifnull(superseded_at, ?) "
            "WHERE memory_seq = ? AND superseded_by IS NULL",
            (seq, fields["created_at"], older),
        )
        episode = connection.execute(
            "SELECT episode_seq FROM archive WHERE seq = ?", (older,)
        ).fetchone()
        if episode and not has_pruned(connection, *episode):
            invalidate(connection, episode)
    hashes = [fields["content_hash"], *(words for _, _, words, _ in kept.revisions)]
    connection.executemany(
        "DELETE FROM agent_forgotten WHERE id = ?",
        [
            (key,)
            for key in keys_of_forgotten(
                id, fields["session_id"], fields["source"], hashes
            )
        ],
    )
    return seq, fields["content"], fields["role"]


def _free_seq(connection: sqlite3.Connection, seq: int) -> int:
    """The position that a memory had, or a new one where an import took that."""
    taken = connection.execute(
        "SELECT 1 FROM working_memory WHERE seq = ? UNION ALL "
        "SELECT 1 FROM archive WHERE seq = ?",
        (seq, seq),
    ).fetchone()
    if taken is None:
        return seq
    (last,) = connection.execute(
        "SELECT seq FROM sqlite_sequence WHERE name = 'working_memory'"
    ).fetchone()
    return int(last) + 1


class SqliteGrace(Transactional, GraceStore):
    """The `GraceStore` on one SQLite file."""

    @reads
    def kept(
        self,
        connection: sqlite3.Connection,
        ids: Sequence[str] = (),
        *,
        before: datetime | None = None,
    ) -> list[str]:
        keys: dict[str, None] = {}
        for id in ids:
            keys.update(
                connection.execute(
                    "SELECT id, NULL FROM forgotten WHERE id = ? OR call = ?",
                    (id, id),
                )
            )
        if before:
            keys.update(
                connection.execute(
                    "SELECT id, NULL FROM forgotten WHERE final_at <= ?",
                    (instant_text(before),),
                )
            )
        return list(keys)

    @writes
    def put_back(
        self, connection: sqlite3.Connection, keys: Sequence[str]
    ) -> list[tuple[str, int]]:
        return put_back(connection, keys)

    @writes
    def finish(self, connection: sqlite3.Connection, keys: Sequence[str]) -> int:
        deleted = connection.executemany(
            "DELETE FROM forgotten WHERE id = ?", [(key,) for key in keys]
        ).rowcount
        if deleted:
            request_purge(connection)
        return deleted

    @reads
    def recoverable(self, connection: sqlite3.Connection) -> Recoverable:
        count, final_at = connection.execute(
            "SELECT ifnull(sum(id NOT GLOB ?), 0), min(final_at) FROM forgotten",
            (f"{LEARNING}:*",),
        ).fetchone()
        return Recoverable(count, optional_instant(final_at))

    @reads
    def is_recoverable(
        self, connection: sqlite3.Connection, id: str
    ) -> datetime | None:
        (final_at,) = connection.execute(
            "SELECT min(final_at) FROM forgotten WHERE id = ? OR call = ?", (id, id)
        ).fetchone()
        return optional_instant(final_at)
