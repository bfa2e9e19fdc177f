"""Invalidates summaries whose sources were deleted, up the hierarchy; they are rewritten later."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from mnemosyned.domain.memory import Tier
from mnemosyned.domain.storing.summaries import Standing, invalidate_upward
from mnemosyned.storage.postgres.database.session import Session
from mnemosyned.storage.postgres.tables.owners.owner import (
    add_to_totals,
    note_rewording,
    take_numbers,
)


def invalidate(
    session: Session, episodes: Iterable[int]
) -> tuple[frozenset[int], frozenset[int]]:
    """Empty and delete summaries; see `invalidate_upward`."""
    return invalidate_upward(
        episodes,
        standing_of=partial(_standing, session),
        blank=partial(_blank, session),
        delete=lambda seq, summary: delete_episode(session, seq, summary.id),
    )


def _standing(session: Session, seq: int) -> Standing | None:
    row = session.execute(
        "SELECT e.id, (SELECT p.seq FROM episode AS p "
        "WHERE p.owner = %(owner)s AND p.id = e.parent_id), "
        "(SELECT count(*) FROM placed AS p "
        "WHERE p.owner = %(owner)s AND p.episode_seq = e.seq), "
        "EXISTS (SELECT 1 FROM episode AS c "
        "WHERE c.owner = %(owner)s AND c.parent_id = e.id) "
        "FROM episode AS e WHERE e.owner = %(owner)s AND e.seq = %(seq)s",
        seq=seq,
    ).fetchone()
    return Standing._make(row) if row else None


def _blank(session: Session, seq: int, summary: Standing) -> None:
    _leave_log(session, summary.id)
    characters = _characters(session, seq)
    session.execute(
        "UPDATE episode SET content = '', index_terms = '', words = '{}', grams = NULL, "
        "repeated = '{}', repeats = '{}', "
        "item_count = CASE WHEN %(originals)s > 0 THEN %(originals)s ELSE item_count END "
        "WHERE owner = %(owner)s AND seq = %(seq)s",
        originals=summary.originals,
        seq=seq,
    )
    note_rewording(session)
    add_to_totals(session, Tier.EPISODIC, characters=-characters)
    mark_emptied(session, seq)


def mark_emptied(session: Session, seq: int) -> None:
    """Have a summary rewritten; a rewriting that began before this is repeated."""
    (mark,) = take_numbers(session, "record", 1)
    session.execute(
        "INSERT INTO emptied_episode (owner, mark, episode_seq) "
        "VALUES (%(owner)s, %(mark)s, %(seq)s) "
        "ON CONFLICT (owner, episode_seq) DO UPDATE SET mark = %(mark)s",
        mark=mark,
        seq=seq,
    )


def remark(session: Session, episodes: Iterable[int]) -> None:
    """Give those that are empty a new mark: a rewriting that began before this is repeated."""
    rows = session.execute(
        "SELECT episode_seq FROM emptied_episode "
        "WHERE owner = %(owner)s AND episode_seq = ANY(%(seqs)s)",
        seqs=list(episodes),
    ).fetchall()
    for (seq,) in rows:
        mark_emptied(session, seq)


def delete_episode(session: Session, seq: int, id: str) -> None:
    """Delete an episode that has no originals and no children, and its words in the log."""
    _leave_log(session, id)
    characters = _characters(session, seq)
    session.execute(
        "DELETE FROM episode WHERE owner = %(owner)s AND seq = %(seq)s", seq=seq
    )
    note_rewording(session)
    add_to_totals(session, Tier.EPISODIC, count=-1, characters=-characters)


def _characters(session: Session, seq: int) -> int:
    characters: int = session.scalar(
        "SELECT length(content) FROM episode WHERE owner = %(owner)s AND seq = %(seq)s",
        seq=seq,
    )
    return characters


def _leave_log(session: Session, id: str) -> None:
    """Take an episode's words out of the log."""
    session.execute(
        "UPDATE consolidation_log SET summary_preview = '', fallback_reason = NULL "
        "WHERE owner = %(owner)s AND episode_id = %(id)s",
        id=id,
    )
