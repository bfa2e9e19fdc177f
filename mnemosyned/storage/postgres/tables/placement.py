"""Moves between working memory and the archive; the words stay where they are."""

from __future__ import annotations

from collections.abc import Sequence

from mnemosyned.domain.memory import Tier
from mnemosyned.storage.postgres.database.session import Session
from mnemosyned.storage.postgres.tables.owners.owner import add_to_totals

_EVICT = (
    "WITH evicted AS (DELETE FROM fresh AS f USING memory AS m "
    "WHERE f.owner = %(owner)s AND m.owner = %(owner)s AND m.seq = f.seq "
    "AND m.id = ANY(%(ids)s) AND NOT m.pinned RETURNING m.seq, length(m.content) AS size), "
    "moved AS (INSERT INTO placed (owner, seq, episode_seq) "
    "SELECT %(owner)s, seq, %(episode)s FROM evicted ORDER BY seq) "
    "SELECT count(*), coalesce(sum(size), 0) FROM evicted"
)
_RETURN = (
    "WITH leaving AS (DELETE FROM placed "
    "WHERE owner = %(owner)s AND {which} RETURNING seq), "
    "moving AS (SELECT m.seq, m.created_at, length(m.content) AS size "
    "FROM leaving AS l JOIN memory AS m ON m.owner = %(owner)s AND m.seq = l.seq), "
    "moved AS (INSERT INTO fresh (owner, seq, created_at) "
    "SELECT %(owner)s, seq, created_at FROM moving ORDER BY seq) "
    "SELECT coalesce(sum(size), 0), "
    "coalesce(array_agg(seq ORDER BY seq), '{{}}') FROM moving"
)
_RETURN_ALL = _RETURN.format(which="episode_seq = %(seq)s")
_RETURN_ONE = _RETURN.format(which="seq = %(seq)s")


def evict(session: Session, ids: Sequence[str], episode_seq: int) -> int:
    """Move memories into the archive, under an episode; how many were there and not pinned."""
    row = session.execute(_EVICT, ids=list(ids), episode=episode_seq).fetchone()
    count, characters = row or (0, 0)
    add_to_totals(session, Tier.WORKING, count=-count, characters=-characters)
    add_to_totals(session, Tier.ARCHIVE, count=count, characters=characters)
    return int(count)


def return_all(session: Session, episode_seq: int) -> list[int]:
    """Move an episode's originals back to working memory; their details go."""
    return _returned(session, _RETURN_ALL, episode_seq)


def return_one(session: Session, seq: int) -> None:
    """Move one original back to working memory; its details go."""
    _returned(session, _RETURN_ONE, seq)


def _returned(session: Session, statement: str, seq: int) -> list[int]:
    row = session.execute(statement, seq=seq).fetchone()
    characters, seqs = row or (0, [])
    add_to_totals(session, Tier.ARCHIVE, count=-len(seqs), characters=-characters)
    add_to_totals(session, Tier.WORKING, count=len(seqs), characters=characters)
    return list(seqs)
