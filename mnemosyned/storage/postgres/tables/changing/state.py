"""State of single memories: validity, supersession and pruning."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Literal

from mnemosyned.domain.storing.supersession import Position, latest_in_chain
from mnemosyned.storage.postgres.database.session import Session
from mnemosyned.storage.postgres.tables.changing.rewrites import invalidate
from mnemosyned.storage.postgres.tables.rows import OF_ID


def set_state(
    session: Session,
    seq: int,
    what: Literal["valid_until", "superseded_at", "superseded_by", "pruned_at"],
    value: datetime | int,
) -> None:
    """Set one field of a memory's state."""
    session.execute(
        f"INSERT INTO memory_state (owner, memory_seq, {what}) "
        "VALUES (%(owner)s, %(seq)s, %(value)s) "
        f"ON CONFLICT (owner, memory_seq) DO UPDATE SET {what} = excluded.{what}",
        seq=seq,
        value=value,
    )


def supersede(session: Session, *, old: str, new: str) -> None:
    """Have one memory take another's place, and that of all that took it before.

    Raises `NotFound` and `InvalidRequest`. The episode that speaks of the old one is emptied, to
    be rewritten without it.
    """
    latest = latest_in_chain(
        old,
        new,
        position_of=partial(position_of, session),
        successor_of=partial(_successor_of, session),
    )
    if latest is None:
        return
    (seq, episode), new_seq = latest
    moment = session.scalar(
        "SELECT created_at FROM memory WHERE owner = %(owner)s AND seq = %(seq)s",
        seq=new_seq,
    )
    set_state(session, seq, "superseded_at", moment)
    set_state(session, seq, "superseded_by", new_seq)
    # With pruned originals, the summary is all that is left of their words: it stays.
    if episode is not None and not has_pruned(session, episode):
        invalidate(session, [episode])


def position_of(session: Session, id: str) -> Position | None:
    """A memory's position and its episode's."""
    row = session.execute(
        "SELECT m.seq, p.episode_seq FROM memory AS m "
        "LEFT JOIN placed AS p ON p.owner = m.owner AND p.seq = m.seq "
        f"WHERE m.owner = %(owner)s AND {OF_ID}",
        id=id,
    ).fetchone()
    return (row[0], row[1]) if row else None


def _successor_of(session: Session, seq: int) -> Position | None:
    """The memory that took the place of another."""
    row = session.execute(
        "SELECT s.superseded_by, p.episode_seq FROM memory_state AS s "
        "LEFT JOIN placed AS p ON p.owner = s.owner AND p.seq = s.superseded_by "
        "WHERE s.owner = %(owner)s AND s.memory_seq = %(seq)s "
        "AND s.superseded_by IS NOT NULL",
        seq=seq,
    ).fetchone()
    return (row[0], row[1]) if row else None


def has_pruned(session: Session, episode: int) -> bool:
    """Whether the words of some of an episode's originals are gone."""
    found = session.scalar(
        "SELECT 1 FROM placed AS p JOIN memory AS m ON m.owner = p.owner AND m.seq = p.seq "
        "WHERE p.owner = %(owner)s AND p.episode_seq = %(episode)s AND m.content = '' LIMIT 1",
        episode=episode,
    )
    return found is not None
