"""Records of an export and of a move, read from one snapshot; moved records stored again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any

import msgspec

from mnemosyned.memory.capture import AgentSession, WatchedFile
from mnemosyned.memory.clock import Sighting
from mnemosyned.memory.exchange import (
    ExportedCompaction,
    ExportedMemory,
    ExportedRevision,
    ExportedSupersession,
    ExportFilter,
    FollowedFolder,
    ForgottenCapture,
    HookActivity,
    KeptVector,
    MovedRecord,
    Outcome,
    Record,
    RecoverableRecord,
)
from mnemosyned.memory.restore import Exporting
from mnemosyned.memory.rows import (
    ACTIVITY_COLUMNS,
    FILE_COLUMNS,
    LEARNING_COLUMNS,
    LOG_FIELDS,
    SESSION_COLUMNS,
    exported_episode_from,
    file_from,
    hook_activity_from,
    learning_from,
    log_entry_from,
    session_from,
)
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.storage.postgres.grace import (
    KEPT_FIELDS,
    Kept,
    KeptRevision,
    decode_kept,
)
from mnemosyned.storage.postgres.memories import values_of
from mnemosyned.storage.postgres.rows import storable, take_numbers, utc
from mnemosyned.storage.postgres.session import Row, Session
from mnemosyned.storage.postgres.surroundings import (
    INSERT_FILE,
    file_values,
    keep_sighting,
    kept_sighting,
)

_EPISODE = (
    "e.id, e.seq, e.session_id, e.source, e.level, e.content, e.item_count, e.covers_from, "
    "e.covers_until, e.summarizer, e.created_at, e.period_from, e.index_terms, e.stale, "
    "EXISTS (SELECT 1 FROM emptied_episode AS w "
    "WHERE w.owner = %(owner)s AND w.episode_seq = e.seq)"
)
_ORIGINALS = "(SELECT count(*) FROM placed AS p WHERE p.owner = %(owner)s AND p.episode_seq = e.seq)"
_BELOW = (
    "(SELECT array_agg(c.id ORDER BY c.seq) FROM episode AS c "
    "WHERE c.owner = %(owner)s AND c.parent_id = e.id)"
)
_TAGS = (
    "(SELECT array_agg(t.name ORDER BY t.name) FROM tag AS t "
    "WHERE t.owner = %(owner)s AND t.memory_seq = m.seq)"
)
_REVISIONS = (
    "(SELECT json_agg(json_build_array(r.changed_at, r.content, r.content_hash, r.fields) "
    "ORDER BY r.seq)::text FROM revision AS r "
    "WHERE r.owner = %(owner)s AND r.memory_seq = m.seq)"
)
_MEMORY = (
    "m.id, m.seq, m.session_id, m.source, m.role, m.content, m.content_hash, m.importance, "
    "m.pinned, m.metadata, m.created_at, m.valid_until, m.superseded_at, m.pruned_at, "
    f"m.held_until, m.future_since, k.episode, {_TAGS}, k.details, k.secrets, {_REVISIONS}"
)
# A planner that takes an owner for small, as statistics older than its memories do, reads all of a
# table again for each row of another. It takes no `OFFSET 0` apart: what is inside it is looked up
# by its key.
_AT_KEYS = (
    f"SELECT {_MEMORY} FROM ({{keys}} OFFSET 0) AS k CROSS JOIN LATERAL ("
    "SELECT m.id, m.seq, m.session_id, m.source, m.role, m.content, m.content_hash, m.importance, "
    "m.pinned, m.metadata, m.created_at, s.valid_until, s.superseded_at, s.pruned_at, "
    "h.held_until, h.future_since FROM memory AS m "
    "LEFT JOIN memory_state AS s ON s.owner = m.owner AND s.memory_seq = m.seq "
    "LEFT JOIN working_state AS h ON h.owner = m.owner AND h.memory_seq = m.seq "
    "WHERE m.owner = %(owner)s AND m.seq = k.seq AND {where} OFFSET 0) AS m ORDER BY {order}"
)
"""The memories of some keys: each a `seq`, the id of its episode, and its exact values."""
_WORKING = (
    "SELECT f.seq, NULL::text AS episode, NULL::text AS details, NULL::text AS secrets FROM fresh AS f "
    "WHERE f.owner = %(owner)s ORDER BY f.seq"
)
_ARCHIVED = (
    "SELECT p.seq, e.id AS episode, e.seq AS episode_seq, p.details, p.secrets FROM ("
    "SELECT e.id, e.seq FROM episode AS e "
    "WHERE e.owner = %(owner)s AND {episodes} OFFSET 0) AS e CROSS JOIN LATERAL ("
    "SELECT p.seq, p.details, p.secrets FROM placed AS p "
    "WHERE p.owner = %(owner)s AND p.episode_seq = e.seq OFFSET 0) AS p ORDER BY {order}"
)
_ORIGINALS_NOT = (
    "EXISTS (SELECT 1 FROM placed AS q CROSS JOIN LATERAL (SELECT 1 FROM memory AS o "
    "WHERE o.owner = %(owner)s AND o.seq = q.seq AND NOT ({}) OFFSET 0) AS n "
    "WHERE q.owner = %(owner)s AND q.episode_seq = e.seq OFFSET 0)"
)
"""Whether an episode has originals for which a condition does not hold."""
_SUPERSESSIONS = (
    "SELECT m.id, n.id FROM (SELECT s.memory_seq, s.superseded_by FROM memory_state AS s "
    "WHERE s.owner = %(owner)s AND s.superseded_by IS NOT NULL OFFSET 0) AS s "
    "CROSS JOIN LATERAL (SELECT m.id, m.seq, EXISTS (SELECT 1 FROM fresh AS f "
    "WHERE f.owner = %(owner)s AND f.seq = m.seq OFFSET 0) AS works FROM memory AS m "
    "WHERE m.owner = %(owner)s AND m.seq = s.memory_seq AND {} OFFSET 0) AS m "
    "CROSS JOIN LATERAL (SELECT n.id, EXISTS (SELECT 1 FROM fresh AS g "
    "WHERE g.owner = %(owner)s AND g.seq = n.seq OFFSET 0) AS works FROM memory AS n "
    "WHERE n.owner = %(owner)s AND n.seq = s.superseded_by OFFSET 0) AS n "
    "ORDER BY NOT m.works, NOT n.works, m.seq"
)
"""Those in working memory first."""
_COMPACTIONS = (
    "SELECT c.id, c.session_id, c.source, c.policy, c.text_hash, c.created_at, "
    "(SELECT array_agg(p.part ORDER BY p.position) FROM compacted AS p "
    "WHERE p.owner = %(owner)s AND p.compaction = c.id) "
    "FROM compaction AS c WHERE c.owner = %(owner)s ORDER BY c.created_at, c.id"
)


_DECODER = msgspec.json.Decoder(list[tuple[datetime, str | None, int, str]])


class PostgresExporting(Exporting):
    """The records of one snapshot."""

    def __init__(self, session: Session, chosen: ExportFilter) -> None:
        self._session = session
        super().__init__(chosen)
        self._values: dict[str, object] = {
            "sessions": list(chosen.sessions),
            "sources": list(chosen.sources),
            "tags": list(chosen.tags),
            "since": chosen.since and utc(chosen.since),
            "until": chosen.until and utc(chosen.until),
        }

    def expected(self) -> dict[str, int]:
        where = _condition(self._chosen, "m")
        memories = self._session.scalar(
            f"SELECT count(*) FROM memory AS m WHERE m.owner = %(owner)s AND {where}",
            **self._values,
        )
        episodes = self._session.scalar(
            "SELECT count(*) FROM episode WHERE owner = %(owner)s"
        )
        return {"memory": memories, "episode": episodes}

    def _rows(self, statement: str) -> Iterator[Row]:
        return self._session.stream(statement, **self._values)

    def _memories(
        self, keys: str, where: str = "true", *, order: str
    ) -> Iterator[ExportedMemory]:
        rows = self._rows(_AT_KEYS.format(keys=keys, where=where, order=order))
        return map(_memory, rows)

    def episodes(self) -> Iterator[Record]:
        whole = "e.level = 0"
        if not self._chosen.is_whole:
            others = _ORIGINALS_NOT.format(_condition(self._chosen, "o"))
            whole += f" AND NOT {others}"
        # Two streams in the same order, so that an episode costs no round trip.
        keys = _ARCHIVED.format(episodes=whole, order="e.seq, p.seq")
        originals = self._memories(keys, order="k.episode_seq, k.seq")
        episodes = self._rows(
            f"SELECT {_EPISODE}, {_ORIGINALS} FROM episode AS e "
            f"WHERE e.owner = %(owner)s AND {whole} ORDER BY e.seq"
        )
        for *row, count in episodes:
            yield exported_episode_from(tuple(row), originals=count)
            yield from islice(originals, count)

    def loose_originals(self) -> Iterator[Record]:
        others = _ORIGINALS_NOT.format(_condition(self._chosen, "o"))
        keys = _ARCHIVED.format(episodes=others, order="p.seq")
        where = f"{_condition(self._chosen, 'm')} AND m.content != ''"
        yield from self._memories(keys, where, order="k.seq")

    def working(self) -> Iterator[Record]:
        where = _condition(self._chosen, "m")
        yield from self._memories(_WORKING, where, order="k.seq")

    def rollups(self) -> Iterator[Record]:
        rows = self._rows(
            f"SELECT {_EPISODE}, {_BELOW} FROM episode AS e "
            "WHERE e.owner = %(owner)s AND e.level > 0 "
            "AND (%(since)s::timestamptz IS NULL OR e.covers_until >= %(since)s) "
            "AND (%(until)s::timestamptz IS NULL OR e.covers_from < %(until)s) "
            "ORDER BY e.level, e.seq"
        )
        for *row, below in rows:
            yield exported_episode_from(tuple(row), summary_of=tuple(below or ()))

    def supersessions(self) -> Iterator[Record]:
        where = _condition(self._chosen, "m")
        for memory, newer in self._rows(_SUPERSESSIONS.format(where)):
            yield ExportedSupersession(memory=memory, superseded_by=newer)

    def learnings(self) -> Iterator[Record]:
        rows = self._rows(
            f"SELECT {LEARNING_COLUMNS} FROM learning AS l WHERE l.owner = %(owner)s "
            f"AND {_condition(self._chosen, 'l')} ORDER BY l.seq"
        )
        yield from map(learning_from, rows)

    def log(self) -> Iterator[Record]:
        rows = self._rows(
            f"SELECT {LOG_FIELDS} FROM consolidation_log AS g WHERE g.owner = %(owner)s "
            f"AND {_condition(self._chosen, 'g')} ORDER BY g.id"
        )
        yield from map(log_entry_from, rows)

    def compactions(self) -> Iterator[Record]:
        for row in self._rows(_COMPACTIONS):
            id, session, source, policy, text_hash, created_at, parts = row
            yield ExportedCompaction(
                id=id,
                session=session,
                source=source,
                policy=policy,
                text_hash=text_hash,
                created_at=created_at,
                parts=tuple(parts or ()),
            )

    def agent_sessions(self) -> Iterator[AgentSession]:
        rows = self._rows(
            f"SELECT {SESSION_COLUMNS} FROM agent_session "
            "WHERE owner = %(owner)s ORDER BY session_id"
        )
        return map(session_from, rows)

    def forgotten(self) -> Iterator[Record]:
        for (id,) in self._rows(
            "SELECT id FROM agent_forgotten WHERE owner = %(owner)s ORDER BY id"
        ):
            yield ForgottenCapture(id=id)


def _condition(chosen: ExportFilter, alias: str) -> str:
    """Return the condition that holds for what was chosen."""
    clauses: list[str] = ["true"]
    for column, name, wanted in (
        ("session_id", "sessions", chosen.sessions),
        ("source", "sources", chosen.sources),
    ):
        if wanted:
            text = f"coalesce({alias}.{column}, '') = ANY(%({name})s::text[])"
            clauses.append(text)
    if chosen.tags:
        clauses.append(
            "EXISTS (SELECT 1 FROM tag AS t WHERE t.owner = %(owner)s "
            f"AND t.memory_seq = {alias}.seq AND t.name = ANY(%(tags)s::text[]) OFFSET 0)"
        )
    if chosen.since:
        clauses.append(f"{alias}.created_at >= %(since)s::timestamptz")
    if chosen.until:
        clauses.append(f"{alias}.created_at < %(until)s::timestamptz")
    return " AND ".join(clauses)


def _memory(row: Row) -> ExportedMemory:
    """Return a memory from _MEMORY."""
    id, seq, session, source, role, content, content_hash, importance = row[:8]
    pinned, metadata, created_at, valid_until, superseded_at, pruned_at = row[8:14]
    held_until, future_since, episode, tags, plain, secret, revisions = row[14:]
    return ExportedMemory(
        id=id,
        seq=seq,
        session=session,
        source=source,
        role=role,
        content=content,
        content_hash=None if content else content_hash,
        importance=importance,
        pinned=pinned,
        metadata={} if metadata == "{}" else msgspec.json.decode(metadata),
        tags=tuple(tags or ()),
        created_at=created_at,
        episode=episode,
        valid_until=valid_until,
        superseded_at=superseded_at,
        pruned_at=pruned_at,
        held_until=held_until,
        future_since=future_since,
        details=tuple(
            (kind, value, is_secret)
            for (kind, value), is_secret in values_of(plain, secret).items()
        ),
        revisions=tuple(_revisions(revisions)) if revisions else (),
    )


def _revisions(text: str) -> Iterator[ExportedRevision]:
    """Return revisions from _REVISIONS."""
    for changed_at, content, content_hash, fields in _DECODER.decode(text):
        yield ExportedRevision(
            changed_at=changed_at,
            content=content,
            content_hash=content_hash,
            fields=msgspec.json.decode(fields),
        )


_READ = (
    "SELECT id, call, final_at, data FROM forgotten WHERE owner = %(owner)s ORDER BY id"
)
_INSERT = (
    "INSERT INTO forgotten (owner, id, call, final_at, data) "
    "VALUES (%(owner)s, %(id)s, %(call)s, %(final_at)s, %(data)s) ON CONFLICT DO NOTHING"
)


def recoverable_records(session: Session) -> Iterator[RecoverableRecord]:
    """Read all that can be put back."""
    for id, call, final_at, data in session.stream(_READ):
        kept = decode_kept(data)
        yield RecoverableRecord(
            id=id,
            call=call,
            final_at=final_at,
            memory=_recoverable_memory(kept) if kept.memory else None,
            superseded_by=kept.superseded_by,
            supersedes=tuple(kept.supersedes),
            learnings=tuple(kept.learnings),
        )


def restore_recoverable(session: Session, record: RecoverableRecord) -> bool:
    """Keep what can be put back, unless it is kept already."""
    kept = Kept(
        superseded_by=record.superseded_by,
        supersedes=list(record.supersedes),
        learnings=list(record.learnings),
    )
    if memory := record.memory:
        kept.seq = memory.seq
        kept.memory = {name: getattr(memory, name) for name in KEPT_FIELDS}
        kept.revisions = [
            KeptRevision(
                revision.changed_at,
                revision.content,
                revision.content_hash,
                msgspec.json.encode(revision.fields).decode(),
            )
            for revision in memory.revisions
        ]
    inserted = session.execute(
        _INSERT,
        id=record.id,
        call=record.call,
        final_at=utc(record.final_at),
        data=msgspec.json.encode(kept).decode(),
    )
    return bool(inserted.rowcount)


def _recoverable_memory(kept: Kept) -> ExportedMemory:
    memory = msgspec.convert(kept.memory, MemoryRecord)
    return ExportedMemory(
        id=memory.id,
        seq=kept.seq,
        session=memory.session,
        source=memory.source,
        role=memory.role,
        content=memory.content,
        importance=memory.importance,
        pinned=memory.pinned,
        metadata=memory.metadata,
        tags=memory.tags,
        created_at=memory.created_at,
        valid_until=memory.valid_until,
        superseded_at=memory.superseded_at,
        revisions=tuple(
            ExportedRevision(
                changed_at=revision.changed_at,
                content=revision.content,
                content_hash=revision.content_hash,
                fields=msgspec.json.decode(revision.fields),
            )
            for revision in kept.revisions
        ),
    )


_VECTORS = (
    "SELECT n.id, m.name, m.digest, v.vector FROM embedding AS v "
    "JOIN embedding_model AS m ON m.owner = v.owner AND m.number = v.model "
    "JOIN memory AS n ON n.owner = v.owner AND n.seq = v.memory_seq "
    "WHERE v.owner = %(owner)s ORDER BY v.memory_seq"
)
_INSERT_ACTIVITY = (
    f"INSERT INTO agent_activity (owner, {ACTIVITY_COLUMNS}) VALUES (%(owner)s, %(client)s, "
    "%(event)s, %(calls)s, %(stored)s, %(characters)s, %(failures)s, %(total_ms)s, "
    "%(slowest_ms)s, %(called_at)s, %(stored_at)s, %(informed_at)s, %(failed_at)s, "
    "%(failure)s) ON CONFLICT DO NOTHING"
)
_INSERT_MODEL = (
    "INSERT INTO embedding_model (owner, number, name, digest) "
    "SELECT o.owner, (SELECT coalesce(max(m.number), 0) + 1 FROM embedding_model AS m "
    "WHERE m.owner = %(owner)s), %(name)s, %(digest)s "
    "FROM owner AS o WHERE o.owner = %(owner)s ON CONFLICT DO NOTHING"
)
_INSERT_VECTOR = (
    "INSERT INTO embedding (owner, memory_seq, model, vector, version) "
    "SELECT n.owner, n.seq, m.number, %(vector)s, %(version)s FROM memory AS n "
    "JOIN embedding_model AS m ON m.owner = n.owner AND m.digest = %(digest)s "
    "WHERE n.owner = %(owner)s AND n.id = %(memory)s ON CONFLICT DO NOTHING"
)


def moved_records(session: Session) -> Iterator[MovedRecord]:
    """Read all of it, each record as it is asked for."""
    yield from recoverable_records(session)
    rows = session.stream(
        "SELECT path, added_at FROM watched_folder WHERE owner = %(owner)s ORDER BY path"
    )
    for path, added_at in rows:
        yield FollowedFolder(path=path, added_at=added_at)
    rows = session.stream(
        f"SELECT {FILE_COLUMNS} FROM watched_file WHERE owner = %(owner)s ORDER BY path"
    )
    yield from map(file_from, rows)
    yield from _activity(session)
    for id, model, digest, vector in session.stream(_VECTORS):
        yield KeptVector(memory=id, model=model, digest=digest, vector=bytes(vector))
    if sighting := kept_sighting(session):
        yield sighting


def _activity(session: Session) -> Iterator[HookActivity]:
    rows = session.stream(
        f"SELECT {ACTIVITY_COLUMNS} FROM agent_activity "
        "WHERE owner = %(owner)s ORDER BY client, event"
    )
    return map(hook_activity_from, rows)


# ------------------------------------------------------------------ back again


def _folder(session: Session, folder: FollowedFolder) -> Outcome:
    inserted = session.execute(
        "INSERT INTO watched_folder (owner, path, added_at) "
        "VALUES (%(owner)s, %(path)s, %(added_at)s) ON CONFLICT DO NOTHING",
        path=folder.path,
        added_at=utc(folder.added_at),
    )
    return bool(inserted.rowcount)


def _file(session: Session, state: WatchedFile) -> Outcome:
    inserted = session.execute(
        f"{INSERT_FILE} ON CONFLICT DO NOTHING", **file_values(state)
    )
    return bool(inserted.rowcount)


def _hook_activity(session: Session, activity: HookActivity) -> Outcome:
    moments = {
        name: moment and utc(moment)
        for name in ("called_at", "stored_at", "informed_at", "failed_at")
        for moment in [getattr(activity, name)]
    }
    inserted = session.execute(
        _INSERT_ACTIVITY,
        client=storable(activity.client),
        event=storable(activity.event),
        calls=activity.calls,
        stored=activity.stored,
        characters=activity.characters,
        failures=activity.failures,
        total_ms=activity.total_ms,
        slowest_ms=activity.slowest_ms,
        failure=storable(activity.failure),
        **moments,
    )
    return bool(inserted.rowcount)


def _vector(session: Session, vector: KeptVector) -> Outcome:
    """Keep the vector of a memory that is here and has none."""
    known = session.scalar(
        "SELECT 1 FROM embedding_model WHERE owner = %(owner)s AND digest = %(digest)s",
        digest=vector.digest,
    )
    if known is None:
        session.execute(_INSERT_MODEL, name=vector.model, digest=vector.digest)
    (version,) = take_numbers(session, "record", 1)
    inserted = session.execute(
        _INSERT_VECTOR,
        version=version,
        memory=vector.memory,
        digest=vector.digest,
        vector=vector.vector,
    )
    return bool(inserted.rowcount)


def _sighting(session: Session, sighting: Sighting) -> Outcome:
    if kept_sighting(session):
        return False
    keep_sighting(session, sighting)
    return True


MOVED: Mapping[type[Any], Callable[[Session, Any], Outcome]] = {
    RecoverableRecord: restore_recoverable,
    FollowedFolder: _folder,
    WatchedFile: _file,
    HookActivity: _hook_activity,
    KeptVector: _vector,
    Sighting: _sighting,
}
"""How each kind is stored."""
