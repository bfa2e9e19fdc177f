"""Memories and learnings forgotten with a grace period: kept apart from all reads, put back, or deleted."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from mnemosyned.memory.exchange import (
    ExportedMemory,
    ExportedRevision,
    RecoverableRecord,
)
from mnemosyned.memory.fields import RECOVERABLE
from mnemosyned.memory.forgetting import Grace
from mnemosyned.memory.intake import content_hash, keys_of_forgotten
from mnemosyned.memory.ports import GraceStore
from mnemosyned.memory.values import Learning, MemoryRecord, Recoverable
from mnemosyned.storage.common.episodes import invalidate, unpruned_episodes
from mnemosyned.storage.common.learnings import LearningRows, learnings_where
from mnemosyned.storage.common.rows import instant, optional_instant
from mnemosyned.storage.common.session import (
    CommonSession,
    EngineSession,
    Transactional,
    reads,
    writes,
)
from mnemosyned.storage.common.state import INSERT_REVISION, request_purge, set_state

LEARNING = "learning"
"""Begins the key of a learning that was forgotten by itself."""
_INSERT = (
    "INSERT INTO forgotten (owner, id, call, final_at, data) "
    "VALUES (%(owner)s, %(id)s, %(call)s, %(final_at)s, %(data)s) ON CONFLICT "
)
_REPLACE = (
    f"{_INSERT} (owner, id) DO UPDATE SET call = excluded.call, "
    "final_at = excluded.final_at, data = excluded.data"
)


class ForgottenRevision(msgspec.Struct, array_like=True):
    """A row of `revision`; `fields` is JSON."""

    changed_at: datetime
    content: str | None
    content_hash: int
    fields: str


class ForgottenCopy(msgspec.Struct, omit_defaults=True):
    """A copy of a forgotten memory with all that belongs to it, or of learnings alone."""

    seq: int = 0
    memory: dict[str, Any] = msgspec.field(default_factory=dict)
    """The values of its `RECOVERABLE` fields, by name."""
    superseded_by: int | None = None
    supersedes: list[int] = msgspec.field(default_factory=list)
    """The memories that it had replaced, by their `seq`."""
    revisions: list[ForgottenRevision] = msgspec.field(default_factory=list)
    learnings: list[Learning] = msgspec.field(default_factory=list)


_decode = msgspec.json.Decoder(ForgottenCopy).decode


def decode_copy(data: str) -> ForgottenCopy:
    """Return a copy from its stored form."""
    return _decode(data)


def _recoverable_values(memory: MemoryRecord | ExportedMemory) -> dict[str, Any]:
    """Return the values of a memory's `RECOVERABLE` fields, by name."""
    return {name: getattr(memory, name) for name in RECOVERABLE}


def save_memories(session: CommonSession, seqs: Sequence[int], grace: Grace) -> None:
    """Save copies of memories for their grace period, before the deletion; pruned ones have no copy."""
    memories = {
        seq: memory
        for seq, memory in session.memories_at(seqs).items()
        if memory.content
    }
    copies = {
        seq: ForgottenCopy(seq=seq, memory=_recoverable_values(memory))
        for seq, memory in memories.items()
    }
    links = session.execute(
        "SELECT memory_seq, superseded_by FROM memory_state WHERE owner = %(owner)s "
        "AND superseded_by IS NOT NULL AND (memory_seq = ANY(%(seqs)s::bigint[]) "
        "OR superseded_by = ANY(%(seqs)s::bigint[])) ORDER BY memory_seq",
        seqs=list(copies),
    )
    for older, newer in links:
        if older in copies:
            copies[older].superseded_by = newer
        if newer in copies:
            copies[newer].supersedes.append(older)
    revisions = session.execute(
        "SELECT memory_seq, changed_at, content, content_hash, fields FROM revision "
        "WHERE owner = %(owner)s AND memory_seq = ANY(%(seqs)s::bigint[]) "
        "ORDER BY memory_seq, seq",
        seqs=list(copies),
    )
    for seq, changed_at, *texts in revisions:
        revision = ForgottenRevision(instant(changed_at), *texts)
        copies[seq].revisions.append(revision)
    by_id = {memory.id: copies[seq] for seq, memory in memories.items()}
    for learning in learnings_where(session, "memory_id", list(by_id)):
        by_id[learning.memory or ""].learnings.append(learning)
    _save_copies(session, grace, by_id)


def save_learnings(session: CommonSession, ids: Sequence[str], grace: Grace) -> None:
    """Save copies of learnings for their grace period, before the deletion."""
    copies = {
        f"{LEARNING}:{learning.id}": ForgottenCopy(learnings=[learning])
        for learning in learnings_where(session, "id", ids)
    }
    _save_copies(session, grace, copies)


def _save_copies(
    session: CommonSession, grace: Grace, copies: Mapping[str, ForgottenCopy]
) -> None:
    """Insert or replace copies under their keys, with the call and the end of its grace."""
    session.execute_many(
        _REPLACE,
        [
            {
                "id": key,
                "call": grace.call,
                "final_at": grace.final_at,
                "data": msgspec.json.encode(copy).decode(),
            }
            for key, copy in copies.items()
        ],
    )


def recoverable_records(
    session: CommonSession, decode: Callable[[str], ForgottenCopy]
) -> Iterator[RecoverableRecord]:
    """Yield the forgotten memories and learnings that can still be put back."""
    for id, call, final_at, data in session.stream(
        "SELECT id, call, final_at, data FROM forgotten WHERE owner = %(owner)s ORDER BY id"
    ):
        copy = decode(data)
        yield RecoverableRecord(
            id=id,
            call=call,
            final_at=instant(final_at),
            memory=_exported_memory(copy) if copy.memory else None,
            superseded_by=copy.superseded_by,
            supersedes=tuple(copy.supersedes),
            learnings=tuple(copy.learnings),
        )


def _exported_memory(copy: ForgottenCopy) -> ExportedMemory:
    """Return a forgotten memory as an export has it."""
    return ExportedMemory(
        **_recoverable_values(msgspec.convert(copy.memory, MemoryRecord)),
        seq=copy.seq,
        revisions=tuple(
            ExportedRevision(
                changed_at=revision.changed_at,
                content=revision.content,
                content_hash=revision.content_hash,
                fields=msgspec.json.decode(revision.fields),
            )
            for revision in copy.revisions
        ),
    )


def restore_recoverable(session: CommonSession, record: RecoverableRecord) -> bool:
    """Store a forgotten memory or learnings in their grace period; return False if already stored."""
    copy = ForgottenCopy(
        superseded_by=record.superseded_by,
        supersedes=list(record.supersedes),
        learnings=list(record.learnings),
    )
    if memory := record.memory:
        copy.seq = memory.seq
        copy.memory = _recoverable_values(memory)
        copy.revisions = [
            ForgottenRevision(
                revision.changed_at,
                revision.content,
                revision.content_hash,
                msgspec.json.encode(revision.fields).decode(),
            )
            for revision in memory.revisions
        ]
    inserted = session.execute(
        f"{_INSERT} DO NOTHING",
        id=record.id,
        call=record.call,
        final_at=record.final_at,
        data=msgspec.json.encode(copy).decode(),
    )
    return bool(inserted.rowcount)


class CommonGrace(Transactional, GraceStore):
    """A `GraceStore` of either engine."""

    _decode = staticmethod(decode_copy)
    """Returns a copy from its stored form."""

    @abstractmethod
    def _insert(
        self, session: EngineSession, memory: MemoryRecord, seq: int | None
    ) -> int:
        """Insert a memory into working memory with tags and validity; return its row number.

        The number is new if `seq` is None.
        """

    def _index(
        self, session: EngineSession, memories: Mapping[int, MemoryRecord]
    ) -> None:
        """Write the index entries that inserting the memories, by row number, has not written."""

    @writes
    def put_back(
        self, session: CommonSession, keys: Sequence[str]
    ) -> list[tuple[str, int]]:
        """Put saved memories and learnings back; return the ids and row numbers of the memories.

        A memory whose id was remembered again since then stays forgotten.
        """
        keeper = LearningRows(session)
        returned: dict[int, MemoryRecord] = {}
        for key in keys:
            data = session.scalar(
                "SELECT data FROM forgotten WHERE owner = %(owner)s AND id = %(key)s",
                key=key,
            )
            copy = self._decode(data) if data else ForgottenCopy()
            if copy.memory:
                if session.position_of(key):
                    continue
                memory = msgspec.convert(copy.memory, MemoryRecord)
                seq = None if session.memories_at([copy.seq]) else copy.seq
                seq = self._insert(session, memory, seq)
                returned[seq] = memory
                _insert_history(session, seq, memory, copy)
            for learning in copy.learnings:
                keeper.keep(learning)
            session.execute(
                "DELETE FROM forgotten WHERE owner = %(owner)s AND id = %(key)s",
                key=key,
            )
        for seq, memory in returned.items():
            if memory.superseded_at and session.successor_of(seq) is None:
                # What superseded it is gone: it holds again.
                session.execute(
                    "UPDATE memory_state SET superseded_at = NULL "
                    "WHERE owner = %(owner)s AND memory_seq = %(seq)s",
                    seq=seq,
                )
        self._index(session, returned)
        return [(memory.id, seq) for seq, memory in returned.items()]

    @reads
    def recoverable_keys(
        self,
        session: CommonSession,
        ids: Sequence[str] = (),
        *,
        before: datetime | None = None,
    ) -> list[str]:
        """Return the keys of forgotten items with these ids or calls, or final by `before`.

        `before` None selects by ids and calls only.
        """
        rows = session.execute(
            "SELECT id FROM forgotten WHERE owner = %(owner)s "
            "AND (id = ANY(%(ids)s::text[]) OR call = ANY(%(ids)s::text[]) "
            "OR final_at <= %(before)s::timestamptz) ORDER BY id",
            ids=list(ids),
            before=before,
        )
        return [id for (id,) in rows]

    @writes
    def finish(self, session: CommonSession, keys: Sequence[str]) -> int:
        """Delete recoverable items for good by their keys; return the number of deleted items."""
        deleted = session.execute(
            "DELETE FROM forgotten WHERE owner = %(owner)s AND id = ANY(%(keys)s::text[])",
            keys=list(keys),
        ).rowcount
        if deleted:
            request_purge(session)
        return deleted

    @reads
    def recoverable(self, session: CommonSession) -> Recoverable:
        """Return the number of recoverable memories, and the end of the first grace period."""
        row = session.execute(
            "SELECT count(*) FILTER (WHERE id NOT LIKE %(learning)s), min(final_at) "
            "FROM forgotten WHERE owner = %(owner)s",
            learning=f"{LEARNING}:%",
        ).fetchone()
        count, final_at = row or (0, None)
        return Recoverable(count, optional_instant(final_at))

    @reads
    def recoverable_until(self, session: CommonSession, id: str) -> datetime | None:
        """Return the end of the grace period of a forgotten memory or call; None if there is none."""
        final_at = session.scalar(
            "SELECT min(final_at) FROM forgotten "
            "WHERE owner = %(owner)s AND (id = %(id)s OR call = %(id)s)",
            id=id,
        )
        return optional_instant(final_at)


def _insert_history(
    session: CommonSession, seq: int, memory: MemoryRecord, copy: ForgottenCopy
) -> None:
    """Insert the revisions and links of a memory that was put back; let its source be read again."""
    for revision in copy.revisions:
        session.execute(
            INSERT_REVISION,
            number=session.new_number(),
            seq=seq,
            changed_at=revision.changed_at,
            content=revision.content,
            hash=revision.content_hash,
            fields=revision.fields,
        )
    if memory.superseded_at:
        set_state(session, seq, "superseded_at", memory.superseded_at)
        newer = copy.superseded_by
        if newer is not None and session.memories_at([newer]):
            set_state(session, seq, "superseded_by", newer)
    older = session.execute(
        "UPDATE memory_state SET superseded_by = %(seq)s, "
        "superseded_at = coalesce(superseded_at, %(moment)s) "
        "WHERE owner = %(owner)s AND memory_seq = ANY(%(older)s::bigint[]) "
        "AND superseded_by IS NULL RETURNING memory_seq",
        seq=seq,
        older=copy.supersedes,
        moment=memory.created_at,
    ).fetchall()
    if older:
        invalidate(session, unpruned_episodes(session, [each for (each,) in older]))
    before = (revision.content_hash for revision in copy.revisions)
    hashes = [content_hash(memory.content), *before]
    session.execute(
        "DELETE FROM agent_forgotten "
        "WHERE owner = %(owner)s AND id = ANY(%(keys)s::text[])",
        keys=list(keys_of_forgotten(memory.id, memory.session, memory.source, hashes)),
    )
