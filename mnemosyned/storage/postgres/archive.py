"""The archive of an owner: originals pruned, and moved back to working memory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from mnemosyned.memory.values import Tier
from mnemosyned.storage.common.archive import CommonRetention, CommonUndo
from mnemosyned.storage.common.session import writes
from mnemosyned.storage.postgres.insert import return_originals
from mnemosyned.storage.postgres.memories import leave_secrets
from mnemosyned.storage.postgres.pool import PostgresPart
from mnemosyned.storage.postgres.rows import OF_IDS
from mnemosyned.storage.postgres.session import PostgresSession

_HASH = "('x' || encode(substr(sha256(convert_to(m.content, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint"
"""`content_hash` of what is to be pruned."""
_PRUNE = (
    "UPDATE memory AS m SET content = '', metadata = '{}', words = '{}', grams = NULL, "
    "content_hash = r.hash FROM unnest(%(seqs)s::bigint[], %(hashes)s::bigint[]) AS r (seq, hash) "
    "WHERE m.owner = %(owner)s AND m.seq = r.seq"
)


class PostgresRetention(PostgresPart, CommonRetention):
    """A `RetentionStore` of one owner in PostgreSQL."""

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


class PostgresUndo(PostgresPart, CommonUndo):
    """An `UndoStore` of one owner in PostgreSQL."""

    def _return_originals(self, session: PostgresSession, episode: int) -> list[int]:
        """Move all originals of an episode to working memory; return their row numbers."""
        return return_originals(session, "episode_seq", episode)
