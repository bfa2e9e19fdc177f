"""Days, weeks and months put over episodes by hand, for tests of what happens to them below."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

from mnemosyned.domain.memory import Episode
from mnemosyned.domain.ports import MemoryStore
from mnemosyned.storage.sqlite import SqliteStore
from mnemosyned.storage.sqlite.indexing import index_grams
from mnemosyned.storage.sqlite.rows import EPISODE_COLUMNS, episode_row


def episode(store: MemoryStore, id: str) -> Episode:
    """The episode with this id."""
    found = store.get(id)
    assert isinstance(found, Episode)
    return found


def fold(store: SqliteStore, id: str, *children: str) -> Episode:
    """Put one summary over these, which says all their words."""
    below = [episode(store, child) for child in children]
    above = replace(
        below[0],
        id=id,
        session="" if len({child.session for child in below}) > 1 else below[0].session,
        level=below[0].level + 1,
        content="In all: " + " / ".join(child.content for child in below),
        item_count=sum(child.item_count for child in below),
        covers_until=below[-1].covers_until,
        parent=None,
    )
    with closing(sqlite3.connect(store.database)) as connection, connection:
        seq = connection.execute(
            f"INSERT INTO episodic_memory ({EPISODE_COLUMNS}) VALUES ({', '.join('?' * 11)}) "
            "RETURNING seq",
            episode_row(above),
        ).fetchone()[0]
        index_grams(connection, "episode_gram_fts", seq, above.content)
        connection.executemany(
            "UPDATE episodic_memory SET parent_id = ? WHERE id = ?",
            [(id, child) for child in children],
        )
    return above


def pyramid(store: SqliteStore, episodes: Sequence[str]) -> tuple[str, str, str]:
    """A day over the first half of these, one over the rest, a week over both, a month."""
    middle = max(1, len(episodes) // 2)
    days = [fold(store, "day-0", *episodes[:middle]).id]
    if episodes[middle:]:
        days.append(fold(store, "day-1", *episodes[middle:]).id)
    fold(store, "week", *days)
    fold(store, "month", "week")
    return "day-0", "week", "month"
