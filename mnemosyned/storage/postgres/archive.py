"""The archive of an owner: originals pruned, and moved back to working memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter

from mnemosyned.memory.forgetting import EpisodeWords
from mnemosyned.memory.values import Tier
from mnemosyned.storage.common.archive import CommonRetention, CommonUndo
from mnemosyned.storage.common.session import Row, reads, writes
from mnemosyned.storage.postgres.insert import return_originals
from mnemosyned.storage.postgres.memories import leave_secrets
from mnemosyned.storage.postgres.pool import PostgresPart
from mnemosyned.storage.postgres.rows import OF_IDS
from mnemosyned.storage.postgres.session import PostgresSession

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


class PostgresRetention(PostgresPart, CommonRetention):
    """A `RetentionStore` of one owner in PostgreSQL."""

    def _has_words(self, session: PostgresSession, seq: int) -> bool:
        """Return whether an original still has its text, as it was not pruned."""
        found = session.scalar(
            "SELECT 1 FROM memory WHERE owner = %(owner)s AND seq = %(seq)s AND content != ''",
            seq=seq,
        )
        return found is not None

    def _return_pinned(self, session: PostgresSession, seq: int, episode: int) -> None:
        """Move an original to working memory, pinned; keep its secrets secret in other originals."""
        leave_secrets(session, seq, episode)
        return_originals(session, "seq", seq)
        session.execute(
            "UPDATE memory SET pinned = true WHERE owner = %(owner)s AND seq = %(seq)s",
            seq=seq,
        )

    @writes
    def prune(
        self, session: PostgresSession, ids: Sequence[str], *, now: datetime
    ) -> int:
        """Delete the text of these originals; return the number pruned. Details and provenance stay."""
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
            now=now,
        )
        session.note_rewording()
        session.add_to_totals(
            Tier.ARCHIVE, characters=-sum(size for _, size, _ in rows)
        )
        return len(seqs)

    def _episode_words(self, session: PostgresSession) -> Iterator[EpisodeWords]:
        """Yield the episodes with unpruned originals, the oldest first."""
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


class PostgresUndo(PostgresPart, CommonUndo):
    """An `UndoStore` of one owner in PostgreSQL."""

    @reads
    def last_cycle(self, session: PostgresSession) -> str | None:
        """Return the id of the newest cycle with an episode that can be undone, or None."""
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

    def _read_episode_row(self, session: PostgresSession, id: str) -> Row | None:
        """Return an episode's number, parent, times, and counts of originals and pruned originals."""
        return session.execute(
            "SELECT e.seq, e.parent_id, e.covers_from, e.covers_until, count(m.seq), "
            "count(m.seq) FILTER (WHERE m.content = '') FROM episode AS e "
            "LEFT JOIN placed AS p ON p.owner = e.owner AND p.episode_seq = e.seq "
            "LEFT JOIN memory AS m ON m.owner = p.owner AND m.seq = p.seq "
            "WHERE e.owner = %(owner)s AND e.id = %(id)s GROUP BY e.owner, e.seq",
            id=id,
        ).fetchone()

    def _return_originals(self, session: PostgresSession, episode: int) -> list[int]:
        """Move all originals of an episode to working memory; return their row numbers."""
        return return_originals(session, "episode_seq", episode)
