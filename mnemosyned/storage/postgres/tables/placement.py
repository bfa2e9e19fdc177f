"""Moves between working memory and the archive; the words stay where they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from mnemosyned.domain.memory import Detail, Tier
from mnemosyned.storage.postgres.database.session import Session
from mnemosyned.storage.postgres.tables.details import by_memory, written
from mnemosyned.storage.postgres.tables.insert import INSERT_FRESH
from mnemosyned.storage.postgres.tables.owners.owner import add_to_totals
from mnemosyned.storage.postgres.tables.rows import OF_IDS

_EVICT = (
    "DELETE FROM fresh AS f USING memory AS m "
    "WHERE f.owner = %(owner)s AND m.owner = %(owner)s AND m.seq = f.seq "
    f"AND {OF_IDS} AND NOT m.pinned RETURNING m.seq, m.id, length(m.content)"
)
INSERT_PLACED = (
    "INSERT INTO placed (owner, seq, episode_seq, details, secrets) SELECT o.owner, r.* "
    "FROM owner AS o CROSS JOIN unnest(%(seqs)s::bigint[], %(homes)s::bigint[], "
    "%(details)s::text[], %(secrets)s::text[]) AS r WHERE o.owner = %(owner)s"
)
_RETURN = (
    "DELETE FROM placed AS p USING memory AS m "
    "WHERE p.owner = %(owner)s AND m.owner = %(owner)s AND m.seq = p.seq AND p.{key} = %(value)s "
    "RETURNING m.seq, m.created_at, length(m.content)"
)


def evict(
    session: Session, ids: Sequence[str], episode_seq: int, details: Sequence[Detail]
) -> int:
    """Move memories into the archive, under an episode; how many were there and not pinned."""
    evicted = sorted(session.execute(_EVICT, ids=list(ids)).fetchall())
    values = by_memory(details)
    if evicted:
        session.execute(
            INSERT_PLACED,
            seqs=[seq for seq, _, _ in evicted],
            homes=[episode_seq] * len(evicted),
            **written(values.get(id, {}) for _, id, _ in evicted)._asdict(),
        )
        session.grown += len(evicted)
    count, characters = len(evicted), sum(size for _, _, size in evicted)
    add_to_totals(session, Tier.WORKING, count=-count, characters=-characters)
    add_to_totals(session, Tier.ARCHIVE, count=count, characters=characters)
    return count


def return_all(session: Session, episode_seq: int) -> list[int]:
    """Move an episode's originals back to working memory; their details go."""
    return _returned(session, "episode_seq", episode_seq)


def return_one(session: Session, seq: int) -> None:
    """Move one original back to working memory; its details go."""
    _returned(session, "seq", seq)


def _returned(
    session: Session, key: Literal["seq", "episode_seq"], value: int
) -> list[int]:
    rows = session.execute(_RETURN.format(key=key), value=value).fetchall()
    rows.sort()
    seqs = [seq for seq, _, _ in rows]
    if seqs:
        times = [created_at for _, created_at, _ in rows]
        session.execute(INSERT_FRESH, seq=seqs, created_at=times)
    characters = sum(size for _, _, size in rows)
    add_to_totals(session, Tier.ARCHIVE, count=-len(seqs), characters=-characters)
    add_to_totals(session, Tier.WORKING, count=len(seqs), characters=characters)
    return seqs
