"""Edits of memories on a server: rows with their index terms, and exact values; pins."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from mnemosyned.memory.edit import EditTarget, details_with
from mnemosyned.memory.fields import EDITED_FIELDS, column_list
from mnemosyned.memory.values import Tier
from mnemosyned.storage.common.edits import CommonChanges, CommonEditing
from mnemosyned.storage.common.session import writes
from mnemosyned.storage.postgres.fulltext import gram_hashes, word_hashes
from mnemosyned.storage.postgres.insert import return_originals
from mnemosyned.storage.postgres.memories import leave_secrets, replace_details
from mnemosyned.storage.postgres.pool import PostgresPart
from mnemosyned.storage.postgres.session import OF_ID, PostgresSession
from mnemosyned.storage.postgres.vectors import requeue_embedding
from mnemosyned.text.terms import glued_words

_EDITED = column_list(EDITED_FIELDS, "m.")
_WRITE_WORDS = (
    "UPDATE memory SET content = %(content)s, words = %(words)s, "
    "grams = %(grams)s WHERE owner = %(owner)s AND seq = %(seq)s"
)


class PostgresEditing(CommonEditing):
    """The edits of one transaction."""

    _session: PostgresSession

    _edited = (
        f"SELECT m.seq, p.episode_seq, {_EDITED} FROM memory AS m "
        "LEFT JOIN placed AS p ON p.owner = m.owner AND p.seq = m.seq "
        f"WHERE m.owner = %(owner)s AND {OF_ID}"
    )

    def _memory_table(self, target: EditTarget) -> str:
        del target  # one table has the memories of both tiers
        return "memory"

    def _write_fields(self, target: EditTarget) -> None:
        """Write the fields of an edited memory, except text and tags."""
        super()._write_fields(target)
        before, after = target.edit.before, target.edit.after
        if before.created_at != after.created_at:
            self._session.execute(
                "UPDATE fresh SET created_at = %(moment)s "
                "WHERE owner = %(owner)s AND seq = %(seq)s",
                moment=after.created_at,
                seq=target.seq,
            )

    def _write_words(self, target: EditTarget) -> None:
        """Write the text and the index entries of an edited memory, and delete its vector."""
        session = self._session
        before, after = target.edit.before, target.edit.after
        session.execute(
            _WRITE_WORDS,
            seq=target.seq,
            content=after.content,
            words=word_hashes(
                session.owner, after.content, after.role, *glued_words(after.content)
            ),
            grams=gram_hashes(session.owner, after.content),
        )
        session.execute(
            "DELETE FROM embedding WHERE owner = %(owner)s AND memory_seq = %(seq)s",
            seq=target.seq,
        )
        requeue_embedding(session, [target.seq])
        session.note_rewording()
        tier = Tier.WORKING if target.episode is None else Tier.ARCHIVE
        session.add_to_totals(tier, characters=len(after.content) - len(before.content))

    def _restate_details(self, target: EditTarget, episode: int) -> None:
        """Extract an edited original's exact values again; keep its secrets secret in other originals."""
        leave_secrets(self._session, target.seq, episode)
        restated = partial(details_with, target.edit.after)
        replace_details(self._session, target.seq, episode, restated)
        leave_secrets(self._session, target.seq, episode)

    def move_back(self, seq: int, episode: int) -> None:
        leave_secrets(self._session, seq, episode)
        return_originals(self._session, "seq", seq)


# Rows beside those of an id are looked up by their key: `OFFSET 0` is not taken apart by a planner
# that believes an owner to be small.
_WORKING = (
    "SELECT m.seq FROM memory AS m WHERE m.owner = %(owner)s AND m.id = ANY(%(ids)s::text[]) "
    "AND EXISTS (SELECT 1 FROM fresh AS f "
    "WHERE f.owner = %(owner)s AND f.seq = m.seq OFFSET 0)"
)


class PostgresChanges(PostgresPart, CommonChanges):
    """A `ChangeStore` of one owner in PostgreSQL."""

    _editing = PostgresEditing

    @writes
    def pin(self, session: PostgresSession, ids: Sequence[str], *, pinned: bool) -> int:
        """Pin or unpin working memories; return how many of the ids are working memories."""
        seqs = [seq for (seq,) in session.execute(_WORKING, ids=list(ids))]
        if not pinned:
            session.execute(
                "UPDATE working_state SET held_until = NULL "
                "WHERE owner = %(owner)s AND memory_seq = ANY(%(seqs)s::bigint[])",
                seqs=seqs,
            )
        return session.execute(
            "UPDATE memory SET pinned = %(pinned)s "
            "WHERE owner = %(owner)s AND seq = ANY(%(seqs)s::bigint[])",
            seqs=seqs,
            pinned=pinned,
        ).rowcount
