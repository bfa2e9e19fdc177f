"""The small parts of an owner's store: the archive, compactions, agents, edits and sleep.

Most of their work is done by the common classes; here are the statements that read and write a
server's tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import partial
from itertools import chain

from mnemosyned.errors import DatabaseUnreachable, MemoryBusy
from mnemosyned.memory.edit import details_with
from mnemosyned.memory.fields import EDITED_FIELDS, column_list
from mnemosyned.memory.ports import Promotion
from mnemosyned.memory.values import Episode, Tier
from mnemosyned.storage.common.archive import RetentionStore, UndoStore
from mnemosyned.storage.common.compactions import CompactionStore
from mnemosyned.storage.common.edits import ChangeStore, EditTarget, EditTransaction
from mnemosyned.storage.common.injections import erase_injected_texts
from mnemosyned.storage.common.session import writes
from mnemosyned.storage.common.sleep import PromotionTransaction, SleepStore
from mnemosyned.storage.common.surroundings import AgentStore
from mnemosyned.storage.postgres.fulltext import gram_hashes, word_hashes
from mnemosyned.storage.postgres.memories import (
    EVICT,
    INSERT_PLACED,
    SAID,
    PostgresIntake,
    detail_columns,
    leave_secrets,
    replace_details,
    return_originals,
)
from mnemosyned.storage.postgres.pool import PostgresPart
from mnemosyned.storage.postgres.session import OF_ID, OF_IDS, PostgresSession, Values
from mnemosyned.storage.postgres.vectors import requeue_embedding
from mnemosyned.text.terms import glued_words

_HASH = "('x' || encode(substr(sha256(convert_to(m.content, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint"
"""`content_hash` of what is to be pruned."""
_PRUNE = (
    "UPDATE memory AS m SET content = '', metadata = '{}', words = '{}', grams = NULL, "
    "content_hash = r.hash FROM unnest(%(seqs)s::bigint[], %(hashes)s::bigint[]) AS r (seq, hash) "
    "WHERE m.owner = %(owner)s AND m.seq = r.seq"
)


class PostgresRetention(PostgresPart, RetentionStore):
    """A `RetentionStore` of one owner in PostgreSQL."""

    def _return_pinned(self, session: PostgresSession, seq: int, episode: int) -> None:
        leave_secrets(session, seq, episode)
        return_originals(session, "seq", seq)
        session.update("memory", {"pinned": True}, seq=seq)

    @writes
    def prune(
        self, session: PostgresSession, ids: Sequence[str], *, now: datetime
    ) -> int:
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
            session.delete(table, memory_seq=seqs)
        session.execute(
            "INSERT INTO memory_state (owner, memory_seq, pruned_at) "
            "SELECT o.owner, r.seq, %(now)s FROM owner AS o "
            "CROSS JOIN unnest(%(seqs)s::bigint[]) AS r (seq) WHERE o.owner = %(owner)s "
            "ON CONFLICT (owner, memory_seq) DO UPDATE SET pruned_at = excluded.pruned_at",
            seqs=seqs,
            now=now,
        )
        erase_injected_texts(session, ids)
        session.note_rewording()
        session.add_to_totals(
            Tier.ARCHIVE, characters=-sum(size for _, size, _ in rows)
        )
        return len(seqs)


class PostgresUndo(PostgresPart, UndoStore):
    """An `UndoStore` of one owner in PostgreSQL."""

    def _return_originals(self, session: PostgresSession, episode: int) -> list[int]:
        return return_originals(session, "episode_seq", episode)


# Ids that the product gave are no agent's own.
_SAME = (
    f"SELECT m.id FROM memory AS m WHERE m.owner = %(owner)s AND {SAID} "
    "AND m.session_id = %(session)s AND m.content = %(content)s "
    "AND m.source IS NOT DISTINCT FROM %(source)s::text AND m.role = %(role)s "
    "AND NOT starts_with(m.id, 'm-') AND (%(earliest)s::timestamptz IS NULL "
    "OR m.created_at BETWEEN %(earliest)s::timestamptz AND %(latest)s::timestamptz) "
    "ORDER BY EXISTS (SELECT 1 FROM placed AS p WHERE p.owner = %(owner)s AND p.seq = m.seq), "
    "m.seq LIMIT 1"
)


class PostgresCompactions(PostgresPart, CompactionStore):
    """A `CompactionStore` of one owner in PostgreSQL."""

    _intake = PostgresIntake
    _same = _SAME
    _parts_below = (
        'WITH RECURSIVE below (id) AS (SELECT %(id)s::text COLLATE "C" UNION '
        "SELECT c.part FROM below "
        "JOIN compacted AS c ON c.owner = %(owner)s AND c.compaction = below.id) "
        "SELECT c.compaction, c.part FROM below "
        "JOIN compacted AS c ON c.owner = %(owner)s AND c.compaction = below.id "
        "ORDER BY c.compaction, c.position"
    )


class PostgresAgents(PostgresPart, AgentStore):
    """An `AgentStore` of one owner in PostgreSQL."""

    _has_memories = (
        "EXISTS (SELECT 1 FROM memory AS m "
        "WHERE m.owner = %(owner)s AND m.session_id = s.session_id)"
    )
    _memory_tables = ("memory",)


_EDITED = column_list(EDITED_FIELDS, "m.")
_WRITE_WORDS = (
    "UPDATE memory SET content = %(content)s, words = %(words)s, "
    "grams = %(grams)s WHERE owner = %(owner)s AND seq = %(seq)s"
)


class PostgresEditing(EditTransaction):
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
        super()._write_fields(target)
        before, after = target.edit.before, target.edit.after
        if before.created_at != after.created_at:
            self._session.update(
                "fresh", {"created_at": after.created_at}, seq=target.seq
            )

    def _write_words(self, target: EditTarget) -> None:
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
        session.delete("embedding", memory_seq=target.seq)
        requeue_embedding(session, [target.seq])
        session.note_rewording()
        tier = Tier.WORKING if target.episode is None else Tier.ARCHIVE
        session.add_to_totals(tier, characters=len(after.content) - len(before.content))

    def _restate_details(self, target: EditTarget, episode: int) -> None:
        leave_secrets(self._session, target.seq, episode)
        restated = partial(details_with, target.edit.after)
        replace_details(self._session, target.seq, episode, restated)
        leave_secrets(self._session, target.seq, episode)

    def _move_back(self, seq: int, episode: int) -> None:
        leave_secrets(self._session, seq, episode)
        return_originals(self._session, "seq", seq)


class PostgresChanges(PostgresPart, ChangeStore):
    """A `ChangeStore` of one owner in PostgreSQL."""

    _editing = PostgresEditing
    # Rows beside those of an id are looked up by their key: `OFFSET 0` is not taken apart by a
    # planner that believes an owner to be small.
    _working = (
        "SELECT m.seq FROM memory AS m "
        "WHERE m.owner = %(owner)s AND m.id = ANY(%(ids)s::text[]) "
        "AND EXISTS (SELECT 1 FROM fresh AS f "
        "WHERE f.owner = %(owner)s AND f.seq = m.seq OFFSET 0)"
    )
    _working_table = "memory"


PROMOTION_TRIES = 10
"""Waits of a group for its owner's row, of two seconds each."""


class PostgresSleep(PostgresPart, SleepStore):
    """A `SleepStore` of one owner in PostgreSQL."""

    _activity = (
        "SELECT m.session_id, m.source, "
        "m.pinned OR coalesce(w.held_until > %(now)s, false) AS stays, "
        "count(*), sum(length(m.content)), sum(octet_length(m.content)), min(m.created_at), "
        "count(*) FILTER (WHERE m.created_at < %(fresh)s) FROM ("
        "SELECT owner, seq FROM fresh WHERE owner = %(owner)s "
        "ORDER BY created_at, seq LIMIT %(limit)s) AS f "
        "JOIN memory AS m ON m.owner = %(owner)s AND m.seq = f.seq "
        "LEFT JOIN working_state AS w ON w.owner = %(owner)s AND w.memory_seq = f.seq "
        "GROUP BY m.session_id, m.source, stays"
    )

    def claim(self) -> AbstractContextManager[Callable[[], bool]]:
        return self._pool.claims.sleep_claim(self._owner)

    def consolidate(
        self, groups: Sequence[Sequence[Promotion]], *, durable: bool = True
    ) -> list[Exception | None]:
        """Store the episodes of each group, and archive their originals.

        Return None or the error for each group, in order. After an error each group has a
        transaction of its own; if the server cannot be reached, the groups that are left get the
        same error without an attempt.
        """
        outcomes: list[Exception | None] = []
        if len(groups) > 1:
            # Together first: most have no error, and a transaction costs as much as a group.
            error = self._promote_batch(list(chain(*groups)), durable=durable)
            if error is None or isinstance(error, DatabaseUnreachable | MemoryBusy):
                return [error] * len(groups)
        for promotions in groups:
            error = self._promote_batch(promotions, durable=durable)
            outcomes.append(error)
            if isinstance(error, DatabaseUnreachable):
                # The others would wait as long for nothing.
                outcomes += [error] * (len(groups) - len(outcomes))
                break
        return outcomes

    def _promote_batch(
        self, promotions: Sequence[Promotion], *, durable: bool
    ) -> Exception | None:
        """Promote a group in one transaction, after `PROMOTION_TRIES` waits at most; return the error."""
        for tries_left in reversed(range(PROMOTION_TRIES)):
            try:
                with (
                    self._pool.writing(self._owner, durable=durable) as session,
                    session.pipeline(),
                ):
                    PostgresPromoting(session).promote(promotions)
            except MemoryBusy as error:
                if not tries_left:
                    return error
            except Exception as error:  # noqa: BLE001 it belongs to this group
                return error
            else:
                break
        return None


class PostgresPromoting(PromotionTransaction):
    """Promotions in rows; no index of words of an original is touched."""

    _session: PostgresSession

    def _evict(self, episodes: Mapping[int, Episode]) -> int:
        session = self._session
        homes = {id: seq for seq, each in episodes.items() for id in each.summary_of}
        evicted = sorted(session.execute(EVICT, ids=list(homes)).fetchall())
        values: dict[str, Values] = {}
        for episode in episodes.values():
            for detail in episode.details:
                known = values.setdefault(detail.memory, {})
                known[str(detail.kind), detail.value] = detail.sensitive
        if evicted:
            session.execute(
                INSERT_PLACED,
                seqs=[seq for seq, _, _ in evicted],
                homes=[homes[id] for _, id, _ in evicted],
                **detail_columns(values.get(id, {}) for _, id, _ in evicted)._asdict(),
            )
            session.grown += len(evicted)
        count, characters = len(evicted), sum(size for _, _, size in evicted)
        session.add_to_totals(Tier.WORKING, count=-count, characters=-characters)
        session.add_to_totals(Tier.ARCHIVE, count=count, characters=characters)
        return count
