"""Restored originals, and pruned ones that keep no text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter

from mnemosyned.domain.errors import BatchChanged, WordsPruned
from mnemosyned.domain.instants import shift
from mnemosyned.domain.keeping.pruning import EpisodeWords, choose_prunable
from mnemosyned.domain.keeping.retention import Prunable, Removal, Retention
from mnemosyned.domain.memory import Tier
from mnemosyned.domain.ports.archive.retention import RetentionStore
from mnemosyned.storage.postgres.database.session import Session
from mnemosyned.storage.postgres.database.transactions import (
    Transactional,
    reads,
    writes,
)
from mnemosyned.storage.postgres.tables.changing.rewrites import invalidate
from mnemosyned.storage.postgres.tables.changing.state import has_pruned
from mnemosyned.storage.postgres.tables.details import leave_secrets
from mnemosyned.storage.postgres.tables.owners.owner import (
    add_to_totals,
    note_rewording,
    totals,
)
from mnemosyned.storage.postgres.tables.placement import return_one
from mnemosyned.storage.postgres.tables.rows import OF_ID, OF_IDS, utc

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
