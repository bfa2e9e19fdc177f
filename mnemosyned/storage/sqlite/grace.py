"""Memories forgotten with a grace period: stored apart from all reads, put back, or deleted for good."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from mnemosyned.memory.forgetting import Grace
from mnemosyned.memory.intake import keys_of_forgotten
from mnemosyned.memory.values import Learning
from mnemosyned.storage.common.episodes import invalidate
from mnemosyned.storage.common.grace import LEARNING, REPLACE_FORGOTTEN, CommonGrace
from mnemosyned.storage.common.learnings import LearningRows, learnings_where
from mnemosyned.storage.common.rows import learning_from
from mnemosyned.storage.common.session import writes
from mnemosyned.storage.common.state import add_tags
from mnemosyned.storage.sqlite.fulltext import index_memories
from mnemosyned.storage.sqlite.rows import MEMORY_COLUMNS, instant_text
from mnemosyned.storage.sqlite.session import SqliteSession
from mnemosyned.storage.sqlite.writer import SqlitePart

_COLUMNS = f"seq, {MEMORY_COLUMNS}"
_STATE = "valid_until, superseded_at, superseded_by"
_REVISION = "changed_at, content, content_hash, fields"


class SqliteForgotten(msgspec.Struct, omit_defaults=True):
    """All of a memory; `row` has the columns of the working tier."""

    row: list[Any] = msgspec.field(default_factory=list)
    state: list[Any] = msgspec.field(default_factory=list)
    supersedes: list[int] = msgspec.field(default_factory=list)
    """The memories that it had replaced, by their `seq`."""
    tags: list[str] = msgspec.field(default_factory=list)
    revisions: list[list[Any]] = msgspec.field(default_factory=list)
    learnings: list[list[Any]] = msgspec.field(default_factory=list)


decode_forgotten = msgspec.json.Decoder(SqliteForgotten).decode


def save_memories(session: SqliteSession, ids: Iterable[str], grace: Grace) -> None:
    """Save copies of memories for their grace period, before the deletion; pruned ones have no copy."""
    for id in ids:
        _save_memory(session, id, grace)


def _save_memory(session: SqliteSession, id: str, grace: Grace) -> None:
    """Save a copy of one memory with its state, tags, revisions and learnings, unless it is pruned."""
    row = session.execute(
        f"SELECT {_COLUMNS} FROM working_memory WHERE id = ? UNION ALL "
        f"SELECT {_COLUMNS} FROM archive WHERE id = ? AND content != ''",
        (id, id),
    ).fetchone()
    if row is None:
        return
    seq = row[0]

    def of(query: str) -> list[list[Any]]:
        return list(map(list, session.execute(query, (seq,))))

    states = of(f"SELECT {_STATE} FROM memory_state WHERE memory_seq = ?")
    kept = SqliteForgotten(
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
        learnings=list(map(learning_row, learnings_where(session, "memory_id", [id]))),
    )
    _save_forgotten(session, id, grace, kept)


def save_learnings(session: SqliteSession, ids: Sequence[str], grace: Grace) -> None:
    """Save copies of learnings for their grace period, before the deletion."""
    for learning in learnings_where(session, "id", ids):
        kept = SqliteForgotten(learnings=[learning_row(learning)])
        _save_forgotten(session, f"{LEARNING}:{learning.id}", grace, kept)


def learning_row(learning: Learning) -> list[Any]:
    """Return a learning as a list of values, in the order that `learning_from` reads."""
    return [
        learning.id,
        str(learning.kind),
        learning.text,
        learning.session,
        learning.source,
        learning.memory,
        instant_text(learning.created_at),
        learning.superseded_by,
    ]


def _save_forgotten(
    session: SqliteSession, key: str, grace: Grace, kept: SqliteForgotten
) -> None:
    """Insert or replace saved copies under their keys, with the call and the end of its grace."""
    session.execute(
        REPLACE_FORGOTTEN,
        id=key,
        call=grace.call,
        final_at=grace.final_at,
        data=msgspec.json.encode(kept).decode(),
    )


def _is_id_taken(session: SqliteSession, id: str) -> bool:
    """Return whether a memory has this id."""
    row = session.execute(
        "SELECT 1 FROM working_memory WHERE id = ? UNION ALL "
        "SELECT 1 FROM archive WHERE id = ?",
        (id, id),
    ).fetchone()
    return row is not None


def _insert_forgotten(
    session: SqliteSession, id: str, kept: SqliteForgotten
) -> tuple[int, str, str]:
    """Insert a saved memory into working memory; return its row number, text and role."""
    seq = _free_seq(session, kept.row[0])
    session.execute(
        f"INSERT INTO working_memory ({_COLUMNS}) "
        f"VALUES ({', '.join('?' * len(kept.row))})",
        (seq, *kept.row[1:]),
    )
    add_tags(session, seq, kept.tags)
    session.executemany(
        f"INSERT INTO revision (memory_seq, {_REVISION}) VALUES (?, ?, ?, ?, ?)",
        [(seq, *revision) for revision in kept.revisions],
    )
    if kept.state:
        session.execute(
            f"INSERT INTO memory_state (memory_seq, {_STATE}) VALUES (?, ?, ?, ?)",
            (seq, *kept.state),
        )
    fields = dict(zip(_COLUMNS.split(", "), kept.row, strict=True))
    for older in kept.supersedes:
        session.execute(
            "UPDATE memory_state SET superseded_by = ?, "
            "superseded_at = ifnull(superseded_at, ?) "
            "WHERE memory_seq = ? AND superseded_by IS NULL",
            (seq, fields["created_at"], older),
        )
        episode = session.execute(
            "SELECT episode_seq FROM archive WHERE seq = ?", (older,)
        ).fetchone()
        if episode and not session.has_pruned(*episode):
            invalidate(session, episode)
    hashes = [fields["content_hash"], *(words for _, _, words, _ in kept.revisions)]
    session.executemany(
        "DELETE FROM agent_forgotten WHERE id = ?",
        [
            (key,)
            for key in keys_of_forgotten(
                id, fields["session_id"], fields["source"], hashes
            )
        ],
    )
    return seq, fields["content"], fields["role"]


def _free_seq(session: SqliteSession, seq: int) -> int:
    """Return the former row number of a memory, or a new one if an import has taken that."""
    taken = session.execute(
        "SELECT 1 FROM working_memory WHERE seq = ? UNION ALL "
        "SELECT 1 FROM archive WHERE seq = ?",
        (seq, seq),
    ).fetchone()
    if taken is None:
        return seq
    (last,) = session.execute(
        "SELECT seq FROM sqlite_sequence WHERE name = 'working_memory'"
    ).fetchone()
    return int(last) + 1


class SqliteGrace(SqlitePart, CommonGrace):
    """The `GraceStore` on one SQLite file."""

    @writes
    def put_back(
        self, session: SqliteSession, keys: Sequence[str]
    ) -> list[tuple[str, int]]:
        """Put saved memories and learnings back; return the ids and row numbers of the memories.

        A memory whose id was remembered again since then stays forgotten.
        """
        keeper = LearningRows(session)
        returned: list[tuple[str, int]] = []
        texts: list[tuple[int, str, str]] = []
        for key in keys:
            row = session.execute(
                "SELECT data FROM forgotten WHERE id = ?", (key,)
            ).fetchone()
            kept = decode_forgotten(row[0]) if row else SqliteForgotten()
            if kept.row:
                if _is_id_taken(session, key):
                    continue
                seq, content, role = _insert_forgotten(session, key, kept)
                returned.append((key, seq))
                texts.append((seq, content, role))
            for learning in kept.learnings:
                keeper.keep(learning_from(learning))
            session.execute("DELETE FROM forgotten WHERE id = ?", (key,))
        # What superseded one of them may be gone: then it holds again.
        session.executemany(
            "UPDATE memory_state SET superseded_at = NULL, superseded_by = NULL "
            "WHERE memory_seq = ? AND superseded_at IS NOT NULL "
            "AND NOT EXISTS (SELECT 1 FROM working_memory WHERE seq = superseded_by) "
            "AND NOT EXISTS (SELECT 1 FROM archive WHERE seq = superseded_by)",
            [(seq,) for _, seq in returned],
        )
        # After all rows, as when they were remembered.
        index_memories(session, texts)
        return returned
