"""The archive: originals restored or pruned, and consolidation undone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter

from mnemosyned.errors import BatchChanged, WordsPruned
from mnemosyned.instants import shift
from mnemosyned.memory.forgetting import (
    EpisodeWords,
    Prunable,
    Removal,
    Retention,
    Returned,
    choose_prunable,
    returned,
)
from mnemosyned.memory.ports import RetentionStore, UndoStore
from mnemosyned.memory.values import Tier
from mnemosyned.storage.postgres.insert import return_all, return_one
from mnemosyned.storage.postgres.memories import ABOVE, leave_secrets
from mnemosyned.storage.postgres.pool import Transactional, reads, writes
from mnemosyned.storage.postgres.rows import (
    OF_ID,
    OF_IDS,
    add_to_totals,
    note_rewording,
    totals,
    utc,
)
from mnemosyned.storage.postgres.session import Row, Session
from mnemosyned.storage.postgres.state import delete_episode, has_pruned, invalidate

EPISODES_READ = 100
"""Episodes whose originals are read in one statement."""
_HASH = "('x' || encode(substr(sha256(convert_to(m.content, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint"
"""`content_hash` of what is to be pruned."""
_PRUNE = (
    "UPDATE memory AS m SET content = '', metadata = '{}', words = '{}', grams = NULL, "
    "content_hash = r.hash FROM unnest(%(seqs)s::bigint[], %(hashes)s::bigint[]) AS r (seq, hash) "
    "WHERE m.owner = %(owner)s AND m.seq = r.seq"
)
_MADE_OF_ORIGINALS = (
    "SELECT covers_from, seq, covers_until FROM episode "
    "WHERE owner = %(owner)s AND level = 0 "
    "AND (covers_from, seq) > (%(begins)s, %(seq)s) "
    "ORDER BY covers_from, seq LIMIT %(most)s"
)
_WITH_WORDS = (
    "SELECT p.episode_seq, m.id, m.created_at, length(m.content) FROM placed AS p "
    "JOIN memory AS m ON m.owner = p.owner AND m.seq = p.seq "
    "WHERE p.owner = %(owner)s AND p.episode_seq = ANY(%(episodes)s) AND m.content != '' "
    "ORDER BY p.episode_seq, p.seq"
)


class PostgresRetention(Transactional, RetentionStore):
    """A `RetentionStore` of one owner in PostgreSQL."""

    @writes
    def restore(self, session: Session, id: str) -> Removal:
        row = session.execute(
            "SELECT p.seq, p.episode_seq FROM placed AS p "
            "JOIN memory AS m ON m.owner = p.owner AND m.seq = p.seq "
            f"WHERE m.owner = %(owner)s AND {OF_ID} AND m.content != ''",
            id=id,
        ).fetchone()
        if row is None:
            raise BatchChanged("the memory was changed concurrently; retry")
        seq, episode = row
        if has_pruned(session, episode):
            raise WordsPruned(
                "other originals of its episode were pruned, and the summary is all that is left of "
                "their words; restoring this one would delete it. `get` shows this one",
                field="id",
            )
        leave_secrets(session, seq, episode)
        return_one(session, seq)
        session.execute(
            "UPDATE memory SET pinned = true WHERE owner = %(owner)s AND seq = %(seq)s",
            seq=seq,
        )
        removed, emptied = invalidate(session, [episode])
        return Removal(archived=1, removed=removed, emptied=emptied)

    @reads
    def prunable(
        self, session: Session, retention: Retention, *, now: datetime, limit: int
    ) -> Prunable:
        return choose_prunable(
            _by_episode(session),
            before=None if retention.keep is None else shift(now, -retention.keep),
            excess=_excess_characters(session, retention.characters_max),
            limit=limit,
        )

    @writes
    def prune(self, session: Session, ids: Sequence[str], *, now: datetime) -> int:
        # What was forgotten or restored meanwhile is not among them.
        rows = session.execute(
            f"SELECT m.seq, length(m.content), {_HASH} FROM placed AS p "
            "JOIN memory AS m ON m.owner = p.owner AND m.seq = p.seq "
            f"WHERE m.owner = %(owner)s AND {OF_IDS} AND m.content != ''",
            ids=list(ids),
        ).fetchall()
        seqs = [seq for seq, _, _ in rows]
        # Not in the statement that changes the words: Citus calls no such function there.
        session.execute(_PRUNE, seqs=seqs, hashes=[hash for _, _, hash in rows])
        for table in ("embedding", "revision"):
            session.execute(
                f"DELETE FROM {table} "
                "WHERE owner = %(owner)s AND memory_seq = ANY(%(seqs)s::bigint[])",
                seqs=seqs,
            )
        session.execute(
            "INSERT INTO memory_state (owner, memory_seq, pruned_at) "
            "SELECT o.owner, r.seq, %(now)s FROM owner AS o "
            "CROSS JOIN unnest(%(seqs)s::bigint[]) AS r (seq) WHERE o.owner = %(owner)s "
            "ON CONFLICT (owner, memory_seq) DO UPDATE SET pruned_at = excluded.pruned_at",
            seqs=seqs,
            now=utc(now),
        )
        note_rewording(session)
        add_to_totals(
            session, Tier.ARCHIVE, characters=-sum(size for _, size, _ in rows)
        )
        return len(seqs)


def _by_episode(session: Session) -> Iterator[EpisodeWords]:
    """Episodes with originals that have words, the oldest first."""
    begins, seq = datetime.min.replace(tzinfo=UTC), 0
    while True:  # ends, as each step is past the last
        episodes = session.execute(
            _MADE_OF_ORIGINALS, begins=begins, seq=seq, most=EPISODES_READ
        ).fetchall()
        rows = session.execute(_WITH_WORDS, episodes=[row[1] for row in episodes])
        originals = {
            episode: [(id, moment, size) for _, id, moment, size in group]
            for episode, group in groupby(rows, key=itemgetter(0))
        }
        for since, episode, until in episodes:
            if episode in originals:
                yield EpisodeWords(since, until, originals[episode])
        if len(episodes) < EPISODES_READ:
            return
        begins, seq, _ = episodes[-1]


def _excess_characters(session: Session, characters_max: int | None) -> int:
    """The characters in the archive beyond its limit."""
    if characters_max is None:
        return 0
    _, kept = totals(session)[Tier.ARCHIVE]
    return kept - characters_max


class PostgresUndo(Transactional, UndoStore):
    """An `UndoStore` of one owner in PostgreSQL."""

    @reads
    def last_cycle(self, session: Session) -> str | None:
        cycle: str | None = session.scalar(
            "SELECT l.cycle_id FROM consolidation_log AS l WHERE l.owner = %(owner)s "
            "AND l.episode_id IS NOT NULL AND l.level = 0 AND l.undone_at IS NULL AND EXISTS ("
            "SELECT 1 FROM episode AS e "
            "JOIN placed AS p ON p.owner = e.owner AND p.episode_seq = e.seq "
            "JOIN memory AS m ON m.owner = p.owner AND m.seq = p.seq "
            "WHERE e.owner = %(owner)s AND e.id = l.episode_id AND m.content != '') "
            "ORDER BY l.id DESC LIMIT 1"
        )
        return cycle

    @reads
    def preview(self, session: Session, episodes: Sequence[str]) -> list[Returned]:
        return [_return_originals(id, _standing(session, id)) for id in episodes]

    @writes
    def apply(
        self,
        session: Session,
        episodes: Sequence[str],
        *,
        now: datetime,
        held_until: datetime,
    ) -> list[Returned]:
        until = utc(held_until)
        return [_undo(session, id, utc(now), until) for id in episodes]


def _standing(session: Session, id: str) -> Row | None:
    """An episode's position, parent and time, its originals, and those that were pruned."""
    return session.execute(
        "SELECT e.seq, e.parent_id, e.covers_from, e.covers_until, count(m.seq), "
        "count(m.seq) FILTER (WHERE m.content = '') FROM episode AS e "
        "LEFT JOIN placed AS p ON p.owner = e.owner AND p.episode_seq = e.seq "
        "LEFT JOIN memory AS m ON m.owner = p.owner AND m.seq = p.seq "
        "WHERE e.owner = %(owner)s AND e.id = %(id)s GROUP BY e.owner, e.seq",
        id=id,
    ).fetchone()


def _return_originals(id: str, standing: Row | None) -> Returned:
    if standing is None:
        return Returned(episode=id)
    begins, ends, originals, pruned = standing[2:]
    return returned(id, (begins, ends), originals=originals, pruned=pruned)


def _undo(session: Session, id: str, now: datetime, held_until: datetime) -> Returned:
    standing = _standing(session, id)
    result = _return_originals(id, standing)
    if result.pruned:
        return result
    gone = [id]
    if standing:
        seq, parent = standing[:2]
        session.execute(
            "INSERT INTO working_state (owner, memory_seq, held_until) "
            "SELECT o.owner, r.seq, %(until)s FROM owner AS o "
            "CROSS JOIN unnest(%(seqs)s::bigint[]) AS r (seq) WHERE o.owner = %(owner)s",
            seqs=return_all(session, seq),
            until=held_until,
        )
        above: dict[str, int] = dict(
            session.execute(
                f"{ABOVE} SELECT id, seq FROM above", summary=parent
            ).fetchall()
        )
        delete_episode(session, seq, id)
        removed, _ = invalidate(session, [above[parent]] if parent else [])
        gone += [upper for upper, place in above.items() if place in removed]
    session.execute(
        "UPDATE consolidation_log SET undone_at = %(now)s "
        "WHERE owner = %(owner)s AND episode_id = ANY(%(gone)s)",
        now=now,
        gone=gone,
    )
    return result
