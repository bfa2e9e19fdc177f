"""Memories forgotten with a grace period: stored apart from all reads, put back, or deleted for good."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from mnemosyned.memory.forgetting import Grace
from mnemosyned.memory.intake import content_hash, keys_of_forgotten
from mnemosyned.memory.values import Learning, MemoryRecord
from mnemosyned.storage.common.episodes import invalidate
from mnemosyned.storage.common.grace import LEARNING, REPLACE_FORGOTTEN, CommonGrace
from mnemosyned.storage.common.learnings import LearningRows, learnings_where
from mnemosyned.storage.common.session import writes
from mnemosyned.storage.common.state import INSERT_REVISION
from mnemosyned.storage.postgres.insert import insert_again, insert_new, newest_number
from mnemosyned.storage.postgres.pool import PostgresPart
from mnemosyned.storage.postgres.session import PostgresSession

_RESTORE_STATE = (
    "INSERT INTO memory_state (owner, memory_seq, superseded_at, superseded_by) "
    "VALUES (%(owner)s, %(seq)s, %(moment)s, (SELECT m.seq FROM memory AS m "
    "WHERE m.owner = %(owner)s AND m.seq = %(newer)s)) "
    "ON CONFLICT (owner, memory_seq) DO UPDATE SET "
    "superseded_at = excluded.superseded_at, superseded_by = excluded.superseded_by"
)


class ForgottenRevision(msgspec.Struct, array_like=True):
    """A row of `revision`."""

    changed_at: datetime
    content: str | None
    content_hash: int
    fields: str


class PostgresForgotten(msgspec.Struct, omit_defaults=True):
    """A copy of a forgotten memory with all that belongs to it."""

    seq: int = 0
    memory: dict[str, Any] = msgspec.field(default_factory=dict)
    """The fields of the record that it was."""
    superseded_by: int | None = None
    supersedes: list[int] = msgspec.field(default_factory=list)
    """The memories that it had replaced, by their `seq`."""
    revisions: list[ForgottenRevision] = msgspec.field(default_factory=list)
    learnings: list[Learning] = msgspec.field(default_factory=list)


decode_forgotten = msgspec.json.Decoder(PostgresForgotten).decode
FORGOTTEN_FIELDS = (
    "id", "session", "source", "role", "content", "importance", "pinned", "metadata",
    "created_at", "tags", "valid_until", "superseded_at",
)  # fmt: skip


def save_memories(session: PostgresSession, seqs: Sequence[int], grace: Grace) -> None:
    """Save copies of memories for their grace period, before the deletion; pruned ones have no copy."""
    memories = {
        seq: memory
        for seq, memory in session.memories_at(seqs).items()
        if memory.content
    }
    kept = {
        seq: PostgresForgotten(
            seq=seq, memory={name: getattr(memory, name) for name in FORGOTTEN_FIELDS}
        )
        for seq, memory in memories.items()
    }
    _add_links(session, kept)
    _add_revisions(session, kept)
    by_id = {memory.id: kept[seq] for seq, memory in memories.items()}
    for learning in learnings_where(session, "memory_id", list(by_id)):
        by_id[learning.memory or ""].learnings.append(learning)
    _save_forgotten(session, grace, by_id)


def _add_links(session: PostgresSession, kept: Mapping[int, PostgresForgotten]) -> None:
    """Add to the saved memories their successors and the memories that they superseded."""
    rows = session.execute(
        "SELECT memory_seq, superseded_by FROM memory_state WHERE owner = %(owner)s "
        "AND superseded_by IS NOT NULL AND (memory_seq = ANY(%(seqs)s::bigint[]) "
        "OR superseded_by = ANY(%(seqs)s::bigint[])) ORDER BY memory_seq",
        seqs=list(kept),
    )
    for older, newer in rows:
        if older in kept:
            kept[older].superseded_by = newer
        if newer in kept:
            kept[newer].supersedes.append(older)


def _add_revisions(
    session: PostgresSession, kept: Mapping[int, PostgresForgotten]
) -> None:
    """Add to the saved memories their revisions, the oldest first."""
    rows = session.execute(
        "SELECT memory_seq, changed_at, content, content_hash, fields FROM revision "
        "WHERE owner = %(owner)s AND memory_seq = ANY(%(seqs)s::bigint[]) "
        "ORDER BY memory_seq, seq",
        seqs=list(kept),
    )
    for seq, *revision in rows:
        kept[seq].revisions.append(ForgottenRevision(*revision))


def save_learnings(session: PostgresSession, ids: Sequence[str], grace: Grace) -> None:
    """Save copies of learnings for their grace period, before the deletion."""
    _save_forgotten(
        session,
        grace,
        {
            f"{LEARNING}:{learning.id}": PostgresForgotten(learnings=[learning])
            for learning in learnings_where(session, "id", ids)
        },
    )


def _save_forgotten(
    session: PostgresSession, grace: Grace, kept: Mapping[str, PostgresForgotten]
) -> None:
    """Insert or replace saved copies under their keys, with the call and the end of its grace."""
    session.execute_many(
        REPLACE_FORGOTTEN,
        [
            {
                "id": key,
                "call": grace.call,
                "final_at": grace.final_at,
                "data": msgspec.json.encode(each).decode(),
            }
            for key, each in kept.items()
        ],
    )


def _is_taken(session: PostgresSession, column: str, value: str | int) -> bool:
    """Return whether a memory has this value in a column, such as `id` or `seq`."""
    found = session.scalar(
        f"SELECT 1 FROM memory WHERE owner = %(owner)s AND {column} = %(value)s",
        value=value,
    )
    return found is not None


def _insert_forgotten(session: PostgresSession, kept: PostgresForgotten) -> int:
    """Insert a saved memory into working memory; return its row number.

    The number is the former one, or a new one if an import has taken that.
    """
    memory = msgspec.convert(kept.memory, MemoryRecord)
    if _is_taken(session, "seq", kept.seq):
        insert_new(session, [memory])
        seq = newest_number(session)
    else:
        seq = kept.seq
        insert_again(session, memory, seq)
    numbers = session.take_numbers("record", len(kept.revisions))
    session.execute_many(
        INSERT_REVISION,
        [
            {
                "number": number,
                "seq": seq,
                "changed_at": revision.changed_at,
                "content": revision.content,
                "hash": revision.content_hash,
                "fields": revision.fields,
            }
            for number, revision in zip(numbers, kept.revisions, strict=True)
        ],
    )
    if memory.superseded_at:
        session.execute(
            _RESTORE_STATE,
            seq=seq,
            moment=memory.superseded_at,
            newer=kept.superseded_by,
        )
    rows = session.execute(
        "UPDATE memory_state AS s SET superseded_by = %(seq)s, "
        "superseded_at = coalesce(s.superseded_at, %(moment)s) "
        "FROM unnest(%(older)s::bigint[]) AS o (seq) "
        "LEFT JOIN placed AS p ON p.owner = %(owner)s AND p.seq = o.seq "
        "WHERE s.owner = %(owner)s AND s.memory_seq = o.seq AND s.superseded_by IS NULL "
        "RETURNING p.episode_seq",
        seq=seq,
        older=kept.supersedes,
        moment=memory.created_at,
    )
    episodes = {episode for (episode,) in rows if episode is not None}
    invalidate(session, [each for each in episodes if not session.has_pruned(each)])
    before = (revision.content_hash for revision in kept.revisions)
    hashes = [content_hash(memory.content), *before]
    session.execute(
        "DELETE FROM agent_forgotten "
        "WHERE owner = %(owner)s AND id = ANY(%(keys)s::text[])",
        keys=list(keys_of_forgotten(memory.id, memory.session, memory.source, hashes)),
    )
    return seq


class PostgresGrace(PostgresPart, CommonGrace):
    """The `GraceStore` of one owner in PostgreSQL."""

    @writes
    def put_back(
        self, session: PostgresSession, keys: Sequence[str]
    ) -> list[tuple[str, int]]:
        """Put saved memories and learnings back; return the ids and row numbers of the memories.

        A memory whose id was remembered again since then stays forgotten.
        """
        keeper = LearningRows(session)
        returned: list[tuple[str, int]] = []
        for key in keys:
            data = session.scalar(
                "SELECT data FROM forgotten WHERE owner = %(owner)s AND id = %(key)s",
                key=key,
            )
            kept = decode_forgotten(data) if data else PostgresForgotten()
            if kept.memory:
                if _is_taken(session, "id", key):
                    continue
                returned.append((key, _insert_forgotten(session, kept)))
            for learning in kept.learnings:
                keeper.keep(learning)
            session.execute(
                "DELETE FROM forgotten WHERE owner = %(owner)s AND id = %(key)s",
                key=key,
            )
        # What superseded one of them may be gone: then it holds again.
        session.execute(
            "UPDATE memory_state AS s SET superseded_at = NULL, superseded_by = NULL "
            "WHERE s.owner = %(owner)s AND s.memory_seq = ANY(%(seqs)s::bigint[]) "
            "AND s.superseded_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM memory AS m "
            "WHERE m.owner = %(owner)s AND m.seq = s.superseded_by)",
            seqs=[seq for _, seq in returned],
        )
        return returned
