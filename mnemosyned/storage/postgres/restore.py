"""Restores exported records: each once, and no summary without its originals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import Any

import msgspec

from mnemosyned.memory.capture import AgentSession
from mnemosyned.memory.consolidation import LogEntry
from mnemosyned.memory.exchange import (
    OTHER_WORDS,
    AnyRecord,
    ExchangeStore,
    ExportedCompaction,
    ExportedEpisode,
    ExportedSupersession,
    ExportFilter,
    ForgottenCapture,
    Outcome,
    Record,
    Restored,
)
from mnemosyned.memory.intake import Known
from mnemosyned.memory.learning import Learning
from mnemosyned.memory.restore import Home, PlacedMemory, Restoring
from mnemosyned.memory.values import MemoryRecord, Tier, content_hash
from mnemosyned.storage.postgres.connections import Use
from mnemosyned.storage.postgres.export import MOVED, PostgresExporting, moved_records
from mnemosyned.storage.postgres.insert import (
    INSERT_FRESH,
    INSERT_MEMORIES,
    INSERT_PLACED,
    columns,
    known_records,
)
from mnemosyned.storage.postgres.learnings import insert_learning
from mnemosyned.storage.postgres.memories import Values, restore_episode, written
from mnemosyned.storage.postgres.pool import Transactional, writes
from mnemosyned.storage.postgres.rows import (
    add_to_totals,
    memory_values,
    note_rewording,
    pass_number,
    take_numbers,
    utc,
)
from mnemosyned.storage.postgres.session import Session
from mnemosyned.storage.postgres.sleep import restore_log
from mnemosyned.storage.postgres.state import add_tags, mark_emptied
from mnemosyned.storage.postgres.surroundings import restore_session

_STATES = {
    "memory_state": ("valid_until", "superseded_at", "pruned_at"),
    "working_state": ("held_until", "future_since"),
}
_INSERT_REVISION = (
    "INSERT INTO revision "
    "(owner, seq, memory_seq, changed_at, content, content_hash, fields) VALUES "
    "(%(owner)s, %(number)s, %(seq)s, %(changed_at)s, %(content)s, %(hash)s, %(fields)s)"
)


def insert_memories(session: Session, memories: Sequence[PlacedMemory]) -> None:
    """Insert memories with all that is kept of them."""
    if not memories:
        return
    session.execute(
        INSERT_MEMORIES,
        seq=[each.seq for each in memories],
        **columns([_values(session.owner, each) for each in memories]),
    )
    session.grown += len(memories)
    note_rewording(session)
    working = [each for each in memories if each.home is None]
    archived = [each for each in memories if each.home is not None]
    _place(session, working, archived)
    _insert_states(session, memories, working)
    _insert_changes(session, memories)


def _place(
    session: Session, working: Sequence[PlacedMemory], archived: Sequence[PlacedMemory]
) -> None:
    """Put memories into their tiers, and count them there."""
    session.execute(
        INSERT_FRESH,
        seq=[each.seq for each in working],
        created_at=[utc(each.memory.created_at) for each in working],
    )
    session.execute(
        INSERT_PLACED,
        seqs=[each.seq for each in archived],
        homes=[each.home for each in archived],
        **written(map(_details, archived))._asdict(),
    )
    for tier, members in ((Tier.WORKING, working), (Tier.ARCHIVE, archived)):
        characters = sum(len(each.memory.content) for each in members)
        add_to_totals(session, tier, count=len(members), characters=characters)


def _details(placed: PlacedMemory) -> Values:
    """The exact values of an original; of two alike the first one counts."""
    return {
        (kind, value): is_secret
        for kind, value, is_secret in reversed(placed.memory.details)
    }


def _values(owner: int, placed: PlacedMemory) -> dict[str, object]:
    """The values of a row; a pruned memory is found by no word, not even by its speaker's."""
    memory = placed.memory
    record = MemoryRecord(
        id=memory.id,
        session=memory.session,
        source=memory.source,
        role=memory.role,
        content=memory.content,
        importance=memory.importance,
        pinned=memory.pinned,
        metadata=memory.metadata,
        created_at=memory.created_at,
    )
    values = memory_values(record, owner)
    if not memory.content:
        known = memory.content_hash
        values["content_hash"] = content_hash("") if known is None else known
        values["words"], values["grams"] = [], None
    return values


def _insert_states(
    session: Session, memories: Sequence[PlacedMemory], working: Sequence[PlacedMemory]
) -> None:
    for table, members in (("memory_state", memories), ("working_state", working)):
        names = _STATES[table]
        rows = [
            {"seq": each.seq, **{name: getattr(each.memory, name) for name in names}}
            for each in members
            if any(getattr(each.memory, name) for name in names)
        ]
        session.execute_many(
            f"INSERT INTO {table} (owner, memory_seq, {', '.join(names)}) VALUES "
            f"(%(owner)s, %(seq)s, {', '.join(f'%({name})s' for name in names)})",
            rows,
        )


def _insert_changes(session: Session, memories: Sequence[PlacedMemory]) -> None:
    """Insert the tags of memories and what they were before they were edited."""
    for memory, seq, _ in memories:
        if memory.tags:
            add_tags(session, seq, memory.tags)
    revisions = [
        (seq, revision) for memory, seq, _ in memories for revision in memory.revisions
    ]
    numbers = take_numbers(session, "record", len(revisions))
    session.execute_many(
        _INSERT_REVISION,
        [
            {
                "number": number,
                "seq": seq,
                "changed_at": utc(revision.changed_at),
                "content": revision.content,
                "hash": revision.content_hash,
                "fields": msgspec.json.encode(revision.fields).decode(),
            }
            for number, (seq, revision) in zip(numbers, revisions, strict=True)
        ],
    )


_SAME_ENTRY = (
    "SELECT 1 FROM consolidation_log WHERE owner = %(owner)s "
    "AND episode_id IS NOT DISTINCT FROM %(episode)s::text AND cycle_id = %(cycle)s "
    "AND created_at = %(created_at)s AND session_id = %(session)s AND level = %(level)s "
    "LIMIT 1"
)
_INSERT_COMPACTION = (
    "INSERT INTO compaction "
    "(owner, id, session_id, source, policy, text_hash, created_at) VALUES (%(owner)s, "
    "%(id)s, %(session)s, %(source)s, %(policy)s, %(text_hash)s, %(created_at)s) "
    "ON CONFLICT DO NOTHING"
)
_INSERT_PARTS = (
    "INSERT INTO compacted (owner, compaction, position, part) "
    "SELECT o.owner, %(id)s, r.place - 1, r.part FROM owner AS o "
    "CROSS JOIN unnest(%(parts)s::text[]) WITH ORDINALITY AS r (part, place) "
    "WHERE o.owner = %(owner)s"
)


def _learning(session: Session, learning: Learning) -> Outcome:
    text = session.scalar(
        "SELECT text FROM learning WHERE owner = %(owner)s AND id = %(id)s",
        id=learning.id,
    )
    if text is None:
        insert_learning(session, learning)
    elif text != learning.text:
        return OTHER_WORDS
    return text is None


def _log_entry(session: Session, entry: LogEntry) -> Outcome:
    known = session.scalar(
        _SAME_ENTRY,
        episode=entry.episode,
        cycle=entry.cycle,
        created_at=utc(entry.created_at),
        session=entry.session,
        level=int(entry.level),
    )
    if known is None:
        restore_log(session, entry)
    return known is None


def _compaction(session: Session, compaction: ExportedCompaction) -> Outcome:
    stored = session.execute(
        _INSERT_COMPACTION,
        id=compaction.id,
        session=compaction.session,
        source=compaction.source,
        policy=compaction.policy,
        text_hash=compaction.text_hash,
        created_at=utc(compaction.created_at),
    ).rowcount
    if stored:
        session.execute(_INSERT_PARTS, id=compaction.id, parts=list(compaction.parts))
    return bool(stored)


def _forgotten(session: Session, capture: ForgottenCapture) -> Outcome:
    inserted = session.execute(
        "INSERT INTO agent_forgotten (owner, id) VALUES (%(owner)s, %(id)s) "
        "ON CONFLICT DO NOTHING",
        id=capture.id,
    )
    return bool(inserted.rowcount)


SINGLE: Mapping[type[Any], Callable[[Session, Any], Outcome]] = {
    Learning: _learning,
    LogEntry: _log_entry,
    ExportedCompaction: _compaction,
    AgentSession: restore_session,
    ForgottenCapture: _forgotten,
}
"""How each kind is stored."""


_SUPERSEDE = (
    "UPDATE memory_state AS s SET superseded_by = n.seq FROM memory AS m, memory AS n "
    "WHERE m.owner = %(owner)s AND m.id = %(memory)s "
    "AND n.owner = %(owner)s AND n.id = %(newer)s "
    "AND s.owner = %(owner)s AND s.memory_seq = m.seq "
    "AND s.superseded_at IS NOT NULL AND s.superseded_by IS NULL"
)
_BOTH_HERE = (
    "SELECT count(*) FROM unnest(ARRAY[%(memory)s, %(newer)s]::text[]) AS r (id) "
    "JOIN memory AS m ON m.owner = %(owner)s AND m.id = r.id"
)


class PostgresRestoring(Restoring):
    """The restoring of records in one transaction."""

    def __init__(self, session: Session) -> None:
        kinds = {**SINGLE, **MOVED}.items()
        super().__init__({kind: partial(store, session) for kind, store in kinds})
        self._session = session

    def known_records(self, ids: Sequence[str]) -> dict[str, Known]:
        return known_records(self._session, ids)

    def homes(self, episodes: Sequence[str]) -> dict[str, Home]:
        rows = self._session.execute(
            "SELECT id, seq, item_count - (SELECT count(*) FROM placed AS p "
            "WHERE p.owner = %(owner)s AND p.episode_seq = e.seq) "
            "FROM episode AS e WHERE e.owner = %(owner)s AND level = 0 "
            "AND id = ANY(%(ids)s::text[])",
            ids=list(episodes),
        )
        return {id: Home(position, room) for id, position, room in rows.fetchall()}

    def taken_numbers(self, seqs: Sequence[int]) -> set[int]:
        rows = self._session.execute(
            "SELECT seq FROM memory WHERE owner = %(owner)s "
            "AND seq = ANY(%(seqs)s::bigint[])",
            seqs=list(seqs),
        )
        return {seq for (seq,) in rows}

    def last_number(self) -> int:
        last: int = self._session.scalar(
            "SELECT last_memory FROM owner WHERE owner = %(owner)s"
        )
        return last

    def insert_memories(
        self, memories: Sequence[PlacedMemory], *, last_number: int
    ) -> None:
        insert_memories(self._session, memories)
        pass_number(self._session, "memory", last_number)

    def insert_episode(self, episode: ExportedEpisode) -> None:
        seq = restore_episode(self._session, episode)
        if episode.emptied:
            mark_emptied(self._session, seq)

    def can_adopt(self, rollup: ExportedEpisode) -> bool:
        free = self._session.scalar(
            "SELECT count(*) FROM episode WHERE owner = %(owner)s AND parent_id IS NULL "
            "AND level < %(level)s AND id = ANY(%(below)s::text[])",
            level=rollup.level,
            below=list(rollup.summary_of),
        )
        taken = self._session.scalar(
            "SELECT 1 FROM episode WHERE owner = %(owner)s AND level = %(level)s "
            "AND period_from = %(period)s::timestamptz",
            level=rollup.level,
            period=utc(rollup.period_from) if rollup.period_from else None,
        )
        return not taken and free == len(rollup.summary_of)

    def adopt(self, rollup: ExportedEpisode) -> None:
        self._session.execute(
            "UPDATE episode SET parent_id = %(id)s "
            "WHERE owner = %(owner)s AND id = ANY(%(below)s::text[])",
            id=rollup.id,
            below=list(rollup.summary_of),
        )

    def link(self, supersession: ExportedSupersession) -> Outcome:
        ids = {
            "memory": supersession.memory,
            "newer": supersession.superseded_by,
        }
        changed = self._session.execute(_SUPERSEDE, **ids).rowcount
        if changed:
            return True
        return False if self._session.scalar(_BOTH_HERE, **ids) == len(ids) else None


READER_S = 600
"""Seconds that whoever reads an export may take for a part of it, which others do not wait for."""


class PostgresExchange(Transactional, ExchangeStore):
    """An `ExchangeStore` of one owner in PostgreSQL."""

    @contextmanager
    def export(
        self, chosen: ExportFilter
    ) -> Iterator[tuple[dict[str, int], Iterator[Record]]]:
        with self._pool.reading(self._owner, use=Use.STREAM) as session:
            session.execute(
                f"SET LOCAL idle_in_transaction_session_timeout = '{READER_S}s'"
            )
            exported = PostgresExporting(session, chosen)
            yield exported.expected(), exported.records()

    @contextmanager
    def everything(self) -> Iterator[tuple[dict[str, int], Iterator[AnyRecord]]]:
        with self._pool.reading(self._owner, use=Use.STREAM) as session:
            exported = PostgresExporting(session, ExportFilter())
            records = chain(exported.records(), moved_records(session))
            yield exported.expected(), records

    @writes
    def restore(self, session: Session, records: Sequence[AnyRecord]) -> Restored:
        return PostgresRestoring(session).restore(records)
