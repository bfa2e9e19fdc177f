"""State of single memories: validity, supersession, tags, earlier versions; summaries marked stale."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from functools import partial
from typing import Literal

import msgspec

from mnemosyned.errors import InvalidRequest
from mnemosyned.memory.edit import (
    REVISIONS_MAX,
    MemoryEdit,
    Position,
    Standing,
    invalidate_upward,
    latest_in_chain,
)
from mnemosyned.memory.values import TAGS_MAX, Revision, content_hash
from mnemosyned.storage.sqlite.fulltext import unindex_episode_grams
from mnemosyned.storage.sqlite.rows import instant

KEYED_BY_EPISODE = ("emptied_episode",)
"""The tables that keep something of an episode under its `episode_seq`. What is made of its words
(such as a vector) joins in here, and goes when the episode does or is emptied."""


def invalidate(
    connection: sqlite3.Connection, episodes: Iterable[int]
) -> tuple[frozenset[int], frozenset[int]]:
    """Empty and delete summaries; see `invalidate_upward`."""
    return invalidate_upward(
        episodes,
        standing_of=partial(_standing, connection),
        blank=partial(_blank, connection),
        delete=lambda seq, summary: delete_episode(connection, seq, summary.id),
    )


def _standing(connection: sqlite3.Connection, seq: int) -> Standing | None:
    row = connection.execute(
        "SELECT e.id, (SELECT seq FROM episodic_memory WHERE id = e.parent_id), "
        "(SELECT count(*) FROM archive WHERE episode_seq = e.seq), "
        "EXISTS (SELECT 1 FROM episodic_memory WHERE parent_id = e.id) "
        "FROM episodic_memory AS e WHERE e.seq = ?",
        (seq,),
    ).fetchone()
    return Standing._make(row) if row else None


def _blank(connection: sqlite3.Connection, seq: int, summary: Standing) -> None:
    _leave(connection, seq, summary.id)
    connection.execute(
        "UPDATE episodic_memory SET content = '', index_terms = '', item_count = iif(?, ?, item_count) "
        "WHERE seq = ?",
        (summary.originals, summary.originals, seq),
    )
    connection.execute("INSERT INTO emptied_episode (episode_seq) VALUES (?)", (seq,))


def remark(connection: sqlite3.Connection, episodes: Iterable[int]) -> None:
    """Give those that are empty a new mark: a rewriting that began before this is repeated."""
    connection.executemany(
        "INSERT OR REPLACE INTO emptied_episode (episode_seq) "
        "SELECT episode_seq FROM emptied_episode WHERE episode_seq = ?",
        [(episode,) for episode in episodes],
    )


def delete_episode(connection: sqlite3.Connection, seq: int, id: str) -> None:
    """Delete an episode that has no originals and no children, and its words in the log."""
    _leave(connection, seq, id)
    connection.execute("DELETE FROM episodic_memory WHERE seq = ?", (seq,))


def _leave(connection: sqlite3.Connection, seq: int, id: str) -> None:
    """Take an episode's words out of everything that is kept beside it."""
    content, index_terms = connection.execute(
        "SELECT content, index_terms FROM episodic_memory WHERE seq = ?", (seq,)
    ).fetchone()
    unindex_episode_grams(connection, seq, content, index_terms)
    for table in KEYED_BY_EPISODE:
        connection.execute(f"DELETE FROM {table} WHERE episode_seq = ?", (seq,))
    connection.execute(
        "UPDATE consolidation_log SET summary_preview = '', fallback_reason = NULL "
        "WHERE episode_id = ?",
        (id,),
    )


def set_state(
    connection: sqlite3.Connection,
    seq: int | None,
    what: Literal["valid_until", "superseded_at", "superseded_by", "pruned_at"],
    value: str | int,
) -> None:
    """Set one field of a memory's state."""
    connection.execute(
        f"INSERT INTO memory_state (memory_seq, {what}) VALUES (?, ?) "
        f"ON CONFLICT (memory_seq) DO UPDATE SET {what} = excluded.{what}",
        (seq, value),
    )


def leave_secrets(connection: sqlite3.Connection, seq: int, episode: int) -> None:
    """Before an original leaves: what it shows to be secret stays so where others hold it too."""
    for kind, value in connection.execute(
        "SELECT kind, value FROM detail WHERE memory_seq = ? AND sensitive", (seq,)
    ).fetchall():
        connection.execute(
            "INSERT INTO detail (memory_seq, kind, value, sensitive) SELECT seq, ?, ?, 1 "
            "FROM archive WHERE episode_seq = ? AND seq != ? AND instr(content, ?) "
            "ON CONFLICT DO UPDATE SET sensitive = 1",
            (kind, value, episode, seq, value),
        )


def supersede(connection: sqlite3.Connection, *, old: str, new: str) -> None:
    """Have one memory take another's place, and that of all that took it before.

    Raises `NotFound` and `InvalidRequest`. The episode that speaks of the old one is emptied, to
    be rewritten without it.
    """
    latest = latest_in_chain(
        old,
        new,
        position_of=partial(position_of, connection),
        successor_of=partial(_successor_of, connection),
    )
    if latest is None:
        return
    (seq, episode), new_seq = latest
    (moment,) = connection.execute(
        "SELECT created_at FROM working_memory WHERE seq = ? "
        "UNION ALL SELECT created_at FROM archive WHERE seq = ?",
        (new_seq, new_seq),
    ).fetchone()
    set_state(connection, seq, "superseded_at", moment)
    set_state(connection, seq, "superseded_by", new_seq)
    # With pruned originals, the summary is all that is left of their words: it stays.
    if episode is not None and not has_pruned(connection, episode):
        invalidate(connection, [episode])


def position_of(connection: sqlite3.Connection, id: str) -> Position | None:
    """A memory's position and its episode's."""
    row: Position | None = connection.execute(
        "SELECT seq, NULL FROM working_memory WHERE id = ? "
        "UNION ALL SELECT seq, episode_seq FROM archive WHERE id = ?",
        (id, id),
    ).fetchone()
    return row


def _successor_of(connection: sqlite3.Connection, seq: int) -> Position | None:
    """The memory that took the place of another."""
    row: Position | None = connection.execute(
        "SELECT s.superseded_by, a.episode_seq FROM memory_state AS s "
        "LEFT JOIN archive AS a ON a.seq = s.superseded_by "
        "WHERE s.memory_seq = ? AND s.superseded_by IS NOT NULL",
        (seq,),
    ).fetchone()
    return row


def has_pruned(connection: sqlite3.Connection, episode: int) -> bool:
    """Whether the words of some of an episode's originals are gone."""
    row = connection.execute(
        "SELECT 1 FROM archive WHERE episode_seq = ? AND content = ''", (episode,)
    ).fetchone()
    return row is not None


def keep_revision(
    connection: sqlite3.Connection,
    seq: int,
    edit: MemoryEdit,
    *,
    moment: str,
    drop: bool,
) -> None:
    """Keep what a memory was; with `drop` only that it was, and of what was kept before no words."""
    text, fields = edit.earlier_state(drop=drop)
    if drop:
        connection.execute(
            "UPDATE revision SET content = NULL, fields = '{}' WHERE memory_seq = ?",
            (seq,),
        )
    connection.execute(
        "INSERT INTO revision (memory_seq, changed_at, content, content_hash, fields) "
        "VALUES (?, ?, ?, ?, ?)",
        (
            seq,
            moment,
            text,
            content_hash(edit.before.content),
            msgspec.json.encode(fields).decode(),
        ),
    )
    connection.execute(
        "DELETE FROM revision WHERE memory_seq = ? AND seq <= (SELECT seq FROM revision "
        "WHERE memory_seq = ? ORDER BY seq DESC LIMIT 1 OFFSET ?)",
        (seq, seq, REVISIONS_MAX),
    )


def revisions_of(connection: sqlite3.Connection, seq: int) -> list[Revision]:
    """The revisions of a memory, the latest first."""
    rows = connection.execute(
        "SELECT changed_at, content, fields FROM revision WHERE memory_seq = ? "
        "ORDER BY seq DESC",
        (seq,),
    )
    return [
        Revision(
            changed_at=instant(changed_at),
            text=text,
            fields=msgspec.json.decode(fields),
        )
        for changed_at, text, fields in rows
    ]


def was_said(connection: sqlite3.Connection, id: str, content: str) -> bool:
    """Whether a memory had these words before it was edited."""
    row = connection.execute(
        "SELECT 1 FROM revision WHERE content_hash = ? AND memory_seq IN ("
        "SELECT seq FROM working_memory WHERE id = ? UNION ALL "
        "SELECT seq FROM archive WHERE id = ?)",
        (content_hash(content), id, id),
    ).fetchone()
    return row is not None


def add_tags(connection: sqlite3.Connection, seq: int, names: Iterable[str]) -> int:
    """Give a memory tags; returns how many it did not have. Raises `InvalidRequest` for too many."""
    added = connection.executemany(
        "INSERT OR IGNORE INTO tag (memory_seq, name) VALUES (?, ?)",
        [(seq, name) for name in names],
    ).rowcount
    (count,) = connection.execute(
        "SELECT count(*) FROM tag WHERE memory_seq = ?", (seq,)
    ).fetchone()
    if count > TAGS_MAX:
        (id,) = connection.execute(
            "SELECT id FROM working_memory WHERE seq = ? "
            "UNION ALL SELECT id FROM archive WHERE seq = ?",
            (seq, seq),
        ).fetchone()
        raise InvalidRequest(
            f"{id} would have {count}, and a memory has at most {TAGS_MAX} tags; remove some "
            "with `untag`",
            field="tags",
        )
    return added


def remove_tags(connection: sqlite3.Connection, seq: int, names: Iterable[str]) -> int:
    """Take tags from a memory; returns how many it had."""
    return connection.executemany(
        "DELETE FROM tag WHERE memory_seq = ? AND name = ?",
        [(seq, name) for name in names],
    ).rowcount


def replace_tags(
    connection: sqlite3.Connection, seq: int, names: Iterable[str]
) -> None:
    """Give a memory these tags and no others."""
    connection.execute("DELETE FROM tag WHERE memory_seq = ?", (seq,))
    add_tags(connection, seq, names)
