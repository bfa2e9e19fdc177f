"""Records of an export and of a move, read from one snapshot; moved records stored again."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
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
from mnemosyned.memory.learning import Learning
from mnemosyned.memory.restore import Exporting
from mnemosyned.memory.rows import (
    ACTIVITY_COLUMNS,
    FILE_COLUMNS,
    LEARNING_COLUMNS,
    LOG_FIELDS,
    SESSION_COLUMNS,
    exported_episode_from,
)
from mnemosyned.memory.values import content_hash
from mnemosyned.storage.sqlite.grace import Kept, decode_kept
from mnemosyned.storage.sqlite.learnings import learning_from
from mnemosyned.storage.sqlite.rows import (
    instant,
    instant_text,
    log_entry_from,
    optional_instant,
)
from mnemosyned.storage.sqlite.surroundings import (
    file_from,
    file_row,
    hook_activity_from,
    keep_sighting,
    kept_sighting,
    session_from,
)

_EPISODE = (
    "e.id, e.seq, e.session_id, e.source, e.level, e.content, e.item_count, e.covers_from, "
    "e.covers_until, e.summarizer, e.created_at, e.period_from, e.index_terms, e.stale, "
    "EXISTS (SELECT 1 FROM emptied_episode AS w WHERE w.episode_seq = e.seq)"
)
_STATE = (
    "(SELECT json_array(s.valid_until, s.superseded_at, s.pruned_at) "
    "FROM memory_state AS s WHERE s.memory_seq = m.seq)"
)
_HELD = (
    "(SELECT json_array(h.held_until, h.future_since) "
    "FROM working_state AS h WHERE h.memory_seq = m.seq)"
)
_DETAILS = (
    "(SELECT json_group_array(json_array(k.name, d.value, d.sensitive)) FROM detail AS d "
    "JOIN detail_kind AS k ON k.number = d.kind WHERE d.memory_seq = m.seq)"
)
_TAGS = "(SELECT json_group_array(t.name) FROM tag AS t WHERE t.memory_seq = m.seq)"
_REVISED = "EXISTS (SELECT 1 FROM revision AS r WHERE r.memory_seq = m.seq)"
_MEMORY = (
    "m.id, m.seq, m.session_id, m.source, m.role, m.content, m.content_hash, m.importance, "
    f"m.pinned, m.metadata, m.created_at, {_STATE}, {_TAGS}, {_REVISED}"
)
_WORKING = f"SELECT {_MEMORY}, {_HELD}, NULL, NULL FROM working_memory AS m"
_ARCHIVED = f"SELECT {_MEMORY}, NULL, {_DETAILS}, e.id FROM archive AS m"
_NO_TRIPLE = (None, None, None)


_episode = partial(exported_episode_from, moment=instant)


class SqliteExporting(Exporting):
    """The records of one snapshot."""

    def __init__(self, connection: sqlite3.Connection, chosen: ExportFilter) -> None:
        self._connection = connection
        super().__init__(chosen)

    def expected(self) -> dict[str, int]:
        where, values = _condition(self._chosen, "m")
        counts = [
            self._number(f"SELECT count(*) FROM {table} AS m WHERE {where}", values)
            for table in ("working_memory", "archive")
        ]
        episodes = self._number("SELECT count(*) FROM episodic_memory", ())
        return {"memory": sum(counts), "episode": episodes}

    def _memory(self, row: Sequence[Any]) -> ExportedMemory:
        memory = _memory(row)
        if not row[13]:
            return memory
        rows = self._connection.execute(
            "SELECT changed_at, content, content_hash, fields FROM revision "
            "WHERE memory_seq = ? ORDER BY seq",
            (memory.seq,),
        )
        return replace(memory, revisions=tuple(map(_revision, rows)))

    def _number(self, statement: str, values: Sequence[Any]) -> int:
        number: int = self._connection.execute(statement, values).fetchone()[0]
        return number

    def episodes(self) -> Iterator[Record]:
        where, values = _condition(self._chosen, "m")
        whole = "1"
        if not self._chosen.is_whole:
            whole = (
                "NOT EXISTS (SELECT 1 FROM archive AS m "
                f"WHERE m.episode_seq = e.seq AND NOT ({where}))"
            )
        episodes = self._connection.execute(
            f"SELECT {_EPISODE} FROM episodic_memory AS e "
            f"WHERE e.level = 0 AND {whole} ORDER BY e.seq",
            () if self._chosen.is_whole else values,
        )
        for row in episodes:
            originals = self._connection.execute(
                f"{_ARCHIVED} JOIN episodic_memory AS e ON e.seq = m.episode_seq "
                "WHERE m.episode_seq = ? ORDER BY m.seq",
                (row[1],),
            ).fetchall()
            yield _episode(row, originals=len(originals))
            yield from map(self._memory, originals)

    def loose_originals(self) -> Iterator[Record]:
        where, values = _condition(self._chosen, "m")
        others, _ = _condition(self._chosen, "o")
        rows = self._connection.execute(
            f"{_ARCHIVED} JOIN episodic_memory AS e ON e.seq = m.episode_seq "
            f"WHERE {where} AND m.content != '' AND EXISTS (SELECT 1 FROM archive AS o "
            f"WHERE o.episode_seq = e.seq AND NOT ({others})) ORDER BY m.seq",
            (*values, *values),
        )
        yield from map(self._memory, rows)

    def working(self) -> Iterator[Record]:
        where, values = _condition(self._chosen, "m")
        rows = self._connection.execute(
            f"{_WORKING} WHERE {where} ORDER BY m.seq", values
        )
        yield from map(self._memory, rows)

    def rollups(self) -> Iterator[Record]:
        since, until = self._chosen.since, self._chosen.until
        first, last = since and instant_text(since), until and instant_text(until)
        rows = self._connection.execute(
            f"SELECT {_EPISODE} FROM episodic_memory AS e WHERE e.level > 0 "
            "AND (? IS NULL OR e.covers_until >= ?) AND (? IS NULL OR e.covers_from < ?) "
            "ORDER BY e.level, e.seq",
            (first, first, last, last),
        )
        for row in rows:
            below = self._connection.execute(
                "SELECT id FROM episodic_memory WHERE parent_id = ? ORDER BY seq",
                (row[0],),
            ).fetchall()
            yield _episode(row, summary_of=tuple(id for (id,) in below))

    def supersessions(self) -> Iterator[Record]:
        where, values = _condition(self._chosen, "m")
        for table in ("working_memory", "archive"):
            for other in ("working_memory", "archive"):
                rows = self._connection.execute(
                    f"SELECT m.id, n.id FROM memory_state AS s "
                    f"JOIN {table} AS m ON m.seq = s.memory_seq "
                    f"JOIN {other} AS n ON n.seq = s.superseded_by "
                    f"WHERE s.superseded_by IS NOT NULL AND {where} ORDER BY m.seq",
                    values,
                )
                for memory, newer in rows:
                    yield ExportedSupersession(memory=memory, superseded_by=newer)

    def learnings(self) -> Iterator[Record]:
        where, values = _condition(self._chosen, "learning")
        rows = self._connection.execute(
            f"SELECT {LEARNING_COLUMNS} FROM learning WHERE {where} ORDER BY seq",
            values,
        )
        yield from map(learning_from, rows)

    def log(self) -> Iterator[Record]:
        where, values = _condition(self._chosen, "consolidation_log")
        rows = self._connection.execute(
            f"SELECT {LOG_FIELDS} FROM consolidation_log WHERE {where} ORDER BY id",
            values,
        )
        yield from map(log_entry_from, rows)

    def compactions(self) -> Iterator[Record]:
        rows = self._connection.execute(
            "SELECT id, session_id, source, policy, text_hash, created_at FROM compaction "
            "ORDER BY created_at, id"
        )
        for id, session, source, policy, text_hash, created_at in rows:
            parts = self._connection.execute(
                "SELECT part FROM compacted WHERE compaction = ? ORDER BY position",
                (id,),
            )
            yield ExportedCompaction(
                id=id,
                session=session,
                source=source,
                policy=policy,
                text_hash=text_hash,
                created_at=instant(created_at),
                parts=tuple(part for (part,) in parts),
            )

    def agent_sessions(self) -> Iterator[AgentSession]:
        rows = self._connection.execute(
            f"SELECT {SESSION_COLUMNS} FROM agent_session ORDER BY session_id"
        )
        return map(session_from, rows)

    def forgotten(self) -> Iterator[Record]:
        for (id,) in self._connection.execute(
            "SELECT id FROM agent_forgotten ORDER BY id"
        ):
            yield ForgottenCapture(id=id)


def _condition(chosen: ExportFilter, alias: str) -> tuple[str, list[Any]]:
    """Return the condition that holds for what was chosen."""
    clauses: list[str] = ["1"]
    values: list[Any] = []
    for column, wanted in (
        ("session_id", chosen.sessions),
        ("source", chosen.sources),
    ):
        if wanted:
            marks = ", ".join("?" * len(wanted))
            clauses.append(f"ifnull({alias}.{column}, '') IN ({marks})")
            values.extend(wanted)
    if chosen.tags:
        marks = ", ".join("?" * len(chosen.tags))
        clauses.append(
            f"{alias}.seq IN (SELECT memory_seq FROM tag WHERE name IN ({marks}))"
        )
        values.extend(chosen.tags)
    for operator, moment in ((">=", chosen.since), ("<", chosen.until)):
        if moment:
            clauses.append(f"{alias}.created_at {operator} ?")
            values.append(instant_text(moment))
    return " AND ".join(clauses), values


def _memory(row: Sequence[Any]) -> ExportedMemory:
    """Return a memory from _WORKING or _ARCHIVED."""
    id, seq, session, source, role, content, content_hash, importance = row[:8]
    pinned, metadata, created_at, state, tags, _, held, details, episode = row[8:]
    valid_until, superseded_at, pruned_at = _decoded(state, _NO_TRIPLE)
    held_until, future_since = _decoded(held, _NO_TRIPLE[:2])
    return ExportedMemory(
        id=id,
        seq=seq,
        session=session,
        source=source,
        role=role,
        content=content,
        content_hash=None if content else content_hash,
        importance=importance,
        pinned=bool(pinned),
        metadata={} if metadata == "{}" else msgspec.json.decode(metadata),
        tags=tuple(_decoded(tags, ())),
        created_at=instant(created_at),
        episode=episode,
        valid_until=optional_instant(valid_until),
        superseded_at=optional_instant(superseded_at),
        pruned_at=optional_instant(pruned_at),
        held_until=optional_instant(held_until),
        future_since=optional_instant(future_since),
        details=tuple(
            (kind, value, bool(sensitive))
            for kind, value, sensitive in _decoded(details, ())
        ),
    )


def _revision(row: Sequence[Any]) -> ExportedRevision:
    changed_at, content, content_hash, fields = row
    return ExportedRevision(
        changed_at=instant(changed_at),
        content=content,
        content_hash=content_hash,
        fields=msgspec.json.decode(fields),
    )


def _decoded(text: str | None, otherwise: Sequence[Any]) -> Sequence[Any]:
    """Return the values of a JSON list that SQLite made."""
    values: Sequence[Any] = msgspec.json.decode(text) if text else otherwise
    return values


def recoverable_records(connection: sqlite3.Connection) -> Iterator[RecoverableRecord]:
    """Read all that can be put back."""
    rows = connection.execute(
        "SELECT id, call, final_at, data FROM forgotten ORDER BY id"
    )
    for id, call, final_at, data in rows:
        kept = decode_kept(data)
        superseded_by = kept.state[2] if kept.state else None
        yield RecoverableRecord(
            id=id,
            call=call,
            final_at=instant(final_at),
            memory=_recoverable_memory(kept) if kept.row else None,
            superseded_by=superseded_by,
            supersedes=tuple(kept.supersedes),
            learnings=tuple(map(learning_from, kept.learnings)),
        )


def restore_recoverable(
    connection: sqlite3.Connection, record: RecoverableRecord
) -> bool:
    """Keep what can be put back, unless it is kept already."""
    kept = Kept(
        supersedes=list(record.supersedes),
        learnings=list(map(_learning_row, record.learnings)),
    )
    if record.memory:
        _fill_recoverable(kept, record.memory, record.superseded_by)
    inserted = connection.execute(
        "INSERT OR IGNORE INTO forgotten (id, call, final_at, data) VALUES (?, ?, ?, ?)",
        (
            record.id,
            record.call,
            instant_text(record.final_at),
            msgspec.json.encode(kept).decode(),
        ),
    )
    return bool(inserted.rowcount)


def _recoverable_memory(kept: Kept) -> ExportedMemory:
    seq, id, session, source, role, content, importance, pinned = kept.row[:8]
    metadata, created_at, _ = kept.row[8:]
    valid_until, superseded_at, _ = kept.state or (None, None, None)
    return ExportedMemory(
        id=id,
        seq=seq,
        session=session,
        source=source,
        role=role,
        content=content,
        importance=importance,
        pinned=bool(pinned),
        metadata=msgspec.json.decode(metadata),
        tags=tuple(kept.tags),
        created_at=instant(created_at),
        valid_until=optional_instant(valid_until),
        superseded_at=optional_instant(superseded_at),
        revisions=tuple(
            ExportedRevision(
                changed_at=instant(changed_at),
                content=content,
                content_hash=content_hash,
                fields=msgspec.json.decode(fields),
            )
            for changed_at, content, content_hash, fields in kept.revisions
        ),
    )


def _fill_recoverable(
    kept: Kept, memory: ExportedMemory, superseded_by: int | None
) -> None:
    kept.row = [
        memory.seq,
        memory.id,
        memory.session,
        memory.source,
        memory.role,
        memory.content,
        memory.importance,
        int(memory.pinned),
        msgspec.json.encode(memory.metadata).decode(),
        instant_text(memory.created_at),
        content_hash(memory.content),
    ]
    if memory.valid_until or memory.superseded_at:
        kept.state = [
            memory.valid_until and instant_text(memory.valid_until),
            memory.superseded_at and instant_text(memory.superseded_at),
            superseded_by,
        ]
    kept.tags = list(memory.tags)
    kept.revisions = [
        [
            instant_text(revision.changed_at),
            revision.content,
            revision.content_hash,
            msgspec.json.encode(revision.fields).decode(),
        ]
        for revision in memory.revisions
    ]


def _learning_row(learning: Learning) -> list[Any]:
    return [
        learning.id,
        str(learning.kind),
        learning.text,
        learning.session,
        learning.source,
        learning.memory,
        instant_text(learning.created_at),
        learning.superseded_by,
    ]


def moved_records(connection: sqlite3.Connection) -> Iterator[MovedRecord]:
    """Read all of it, each record as it is asked for."""
    yield from recoverable_records(connection)
    rows = connection.execute("SELECT path, added_at FROM watched_folder ORDER BY path")
    for path, added_at in rows:
        yield FollowedFolder(path=path, added_at=instant(added_at))
    rows = connection.execute(f"SELECT {FILE_COLUMNS} FROM watched_file ORDER BY path")
    yield from map(file_from, rows)
    yield from _activity(connection)
    yield from _vectors(connection)
    if sighting := kept_sighting(connection):
        yield sighting


def _activity(connection: sqlite3.Connection) -> Iterator[HookActivity]:
    rows = connection.execute(
        f"SELECT {ACTIVITY_COLUMNS} FROM agent_activity ORDER BY client, event"
    )
    return map(hook_activity_from, rows)


def _vectors(connection: sqlite3.Connection) -> Iterator[KeptVector]:
    rows = connection.execute(
        "SELECT coalesce((SELECT id FROM working_memory WHERE seq = v.memory_seq), "
        "(SELECT id FROM archive WHERE seq = v.memory_seq)), m.name, m.digest, v.vector "
        "FROM embedding AS v JOIN embedding_model AS m ON m.number = v.model "
        "ORDER BY v.memory_seq"
    )
    for id, model, digest, vector in rows:
        if id is not None:
            yield KeptVector(memory=id, model=model, digest=digest, vector=vector)


# ------------------------------------------------------------------ back again


def _folder(connection: sqlite3.Connection, folder: FollowedFolder) -> Outcome:
    inserted = connection.execute(
        "INSERT OR IGNORE INTO watched_folder VALUES (?, ?)",
        (folder.path, instant_text(folder.added_at)),
    )
    return bool(inserted.rowcount)


def _file(connection: sqlite3.Connection, state: WatchedFile) -> Outcome:
    inserted = connection.execute(
        f"INSERT OR IGNORE INTO watched_file ({FILE_COLUMNS}) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        file_row(state),
    )
    return bool(inserted.rowcount)


def _hook_activity(connection: sqlite3.Connection, activity: HookActivity) -> Outcome:
    moments = [
        moment and instant_text(moment)
        for moment in (activity.stored_at, activity.informed_at, activity.failed_at)
    ]
    inserted = connection.execute(
        f"INSERT OR IGNORE INTO agent_activity ({ACTIVITY_COLUMNS}) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            activity.client,
            activity.event,
            activity.calls,
            activity.stored,
            activity.characters,
            activity.failures,
            activity.total_ms,
            activity.slowest_ms,
            instant_text(activity.called_at),
            *moments,
            activity.failure,
        ),
    )
    return bool(inserted.rowcount)


def _vector(connection: sqlite3.Connection, vector: KeptVector) -> Outcome:
    """Keep the vector of a memory that is here and has none."""
    connection.execute(
        "INSERT OR IGNORE INTO embedding_model (name, digest) VALUES (?, ?)",
        (vector.model, vector.digest),
    )
    row = connection.execute(
        "SELECT seq FROM working_memory WHERE id = ? "
        "UNION ALL SELECT seq FROM archive WHERE id = ?",
        (vector.memory, vector.memory),
    ).fetchone()
    if row is None:
        return None
    inserted = connection.execute(
        "INSERT OR IGNORE INTO embedding (memory_seq, model, vector) "
        "SELECT ?, number, ? FROM embedding_model WHERE digest = ?",
        (row[0], vector.vector, vector.digest),
    )
    return bool(inserted.rowcount)


def _sighting(connection: sqlite3.Connection, sighting: Sighting) -> Outcome:
    if kept_sighting(connection):
        return False
    keep_sighting(connection, sighting)
    return True


MOVED: Mapping[type[Any], Callable[[sqlite3.Connection, Any], Outcome]] = {
    RecoverableRecord: restore_recoverable,
    FollowedFolder: _folder,
    WatchedFile: _file,
    HookActivity: _hook_activity,
    KeptVector: _vector,
    Sighting: _sighting,
}
"""How each kind is stored."""
