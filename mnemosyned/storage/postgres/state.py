"""State of single memories: validity, supersession, tags, earlier versions; summaries marked stale."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
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
from mnemosyned.memory.values import TAGS_MAX, Revision, Tier, content_hash
from mnemosyned.storage.postgres.rows import (
    OF_ID,
    add_to_totals,
    note_rewording,
    take_numbers,
    utc,
)
from mnemosyned.storage.postgres.session import Session


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


def keep_revision(
    session: Session, seq: int, edit: MemoryEdit, *, moment: datetime, drop: bool
) -> None:
    """Keep what a memory was; with `drop` only that it was, and of what was kept before no words."""
    text, fields = edit.earlier_state(drop=drop)
    if drop:
        session.execute(
            "UPDATE revision SET content = NULL, fields = '{}' "
            "WHERE owner = %(owner)s AND memory_seq = %(seq)s",
            seq=seq,
        )
    (number,) = take_numbers(session, "record", 1)
    session.execute(
        "INSERT INTO revision (owner, seq, memory_seq, changed_at, content, content_hash, fields) "
        "VALUES (%(owner)s, %(number)s, %(seq)s, %(moment)s, %(text)s, %(hash)s, %(fields)s)",
        number=number,
        seq=seq,
        moment=utc(moment),
        text=text,
        hash=content_hash(edit.before.content),
        fields=msgspec.json.encode(fields).decode(),
    )
    session.execute(
        "DELETE FROM revision WHERE owner = %(owner)s AND memory_seq = %(seq)s AND seq <= ("
        "SELECT seq FROM revision WHERE owner = %(owner)s AND memory_seq = %(seq)s "
        "ORDER BY seq DESC LIMIT 1 OFFSET %(most)s)",
        seq=seq,
        most=REVISIONS_MAX,
    )


def revisions_of(session: Session, seq: int) -> list[Revision]:
    """The revisions of a memory, the latest first."""
    rows = session.execute(
        "SELECT changed_at, content, fields FROM revision "
        "WHERE owner = %(owner)s AND memory_seq = %(seq)s ORDER BY seq DESC",
        seq=seq,
    )
    return [
        Revision(changed_at=moment, text=text, fields=msgspec.json.decode(fields))
        for moment, text, fields in rows
    ]


def was_said(session: Session, id: str, content: str) -> bool:
    """Whether a memory had these words before it was edited."""
    found = session.scalar(
        "SELECT 1 FROM memory AS m JOIN revision AS r "
        "ON r.owner = m.owner AND r.memory_seq = m.seq "
        f"WHERE m.owner = %(owner)s AND {OF_ID} AND r.content_hash = %(hash)s LIMIT 1",
        id=id,
        hash=content_hash(content),
    )
    return found is not None


def add_tags(session: Session, seq: int, names: Iterable[str]) -> int:
    """Give a memory tags; returns how many it did not have. Raises `InvalidRequest` for too many."""
    added = session.execute(
        "INSERT INTO tag (owner, memory_seq, name) "
        "SELECT o.owner, %(seq)s, r.name FROM owner AS o "
        "CROSS JOIN unnest(%(names)s::text[]) AS r (name) WHERE o.owner = %(owner)s "
        "ON CONFLICT DO NOTHING",
        seq=seq,
        names=list(names),
    ).rowcount
    count = session.scalar(
        "SELECT count(*) FROM tag WHERE owner = %(owner)s AND memory_seq = %(seq)s",
        seq=seq,
    )
    if count > TAGS_MAX:
        id = session.scalar(
            "SELECT id FROM memory WHERE owner = %(owner)s AND seq = %(seq)s", seq=seq
        )
        raise InvalidRequest(
            f"{id} would have {count}, and a memory has at most {TAGS_MAX} tags; remove some "
            "with `untag`",
            field="tags",
        )
    return added


def remove_tags(session: Session, seq: int, names: Iterable[str]) -> int:
    """Take tags from a memory; returns how many it had."""
    return session.execute(
        "DELETE FROM tag WHERE owner = %(owner)s AND memory_seq = %(seq)s "
        "AND name = ANY(%(names)s)",
        seq=seq,
        names=list(names),
    ).rowcount


def replace_tags(session: Session, seq: int, names: Iterable[str]) -> None:
    """Give a memory these tags and no others."""
    session.execute(
        "DELETE FROM tag WHERE owner = %(owner)s AND memory_seq = %(seq)s", seq=seq
    )
    add_tags(session, seq, names)
