"""Memories, vectors and recoverable memories of a file as records of an export and of a move."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from mnemosyned.memory.exchange import (
    ExportedMemory,
    ExportedRevision,
    ExportedSupersession,
    KeptVector,
    MovedRecord,
    Outcome,
    Record,
    RecoverableRecord,
)
from mnemosyned.memory.intake import content_hash
from mnemosyned.storage.common.exchange import (
    EXPORTED_EPISODE,
    CommonExporting,
    export_condition,
    surrounding_records,
)
from mnemosyned.storage.common.grace import INSERT_FORGOTTEN
from mnemosyned.storage.common.rows import (
    exported_episode_from,
    instant,
    learning_from,
    optional_instant,
)
from mnemosyned.storage.common.surroundings import saved_sighting
from mnemosyned.storage.sqlite.grace import (
    SqliteForgotten,
    decode_forgotten,
    learning_row,
)
from mnemosyned.storage.sqlite.rows import instant_text
from mnemosyned.storage.sqlite.session import SqliteSession

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


class SqliteExporting(CommonExporting):
    """The records of one snapshot."""

    def count_expected(self) -> dict[str, int]:
        """Return the number of exported memories and of all episodes, as `memory` and `episode`."""
        where = export_condition(self._chosen, "m")
        count = f"SELECT count(*) FROM {{}} AS m WHERE {where}"
        memories = sum(
            self._session.scalar(count.format(table), **self._values)
            for table in ("working_memory", "archive")
        )
        episodes = self._session.scalar("SELECT count(*) FROM episodic_memory")
        return {"memory": memories, "episode": episodes}

    def _memory_with_revisions(self, row: Sequence[Any]) -> ExportedMemory:
        """Return a memory from _WORKING or _ARCHIVED, with its earlier versions."""
        memory = _memory_from(row)
        if not row[13]:
            return memory
        rows = self._session.execute(
            "SELECT changed_at, content, content_hash, fields FROM revision "
            "WHERE memory_seq = :seq ORDER BY seq",
            seq=memory.seq,
        )
        return replace(memory, revisions=tuple(map(_revision_from, rows)))

    def episodes(self) -> Iterator[Record]:
        """Yield the episodes whose originals are all exported, each followed by its originals."""
        whole = "e.level = 0"
        if not self._chosen.is_whole:
            whole += (
                " AND NOT EXISTS (SELECT 1 FROM archive AS m WHERE m.episode_seq = e.seq "
                f"AND NOT ({export_condition(self._chosen, 'm')}))"
            )
        episodes = self._stream(
            f"SELECT {EXPORTED_EPISODE} FROM episode AS e "
            f"WHERE e.owner = %(owner)s AND {whole} ORDER BY e.seq"
        )
        for row in episodes:
            originals = self._session.execute(
                f"{_ARCHIVED} JOIN episodic_memory AS e ON e.seq = m.episode_seq "
                "WHERE m.episode_seq = :episode ORDER BY m.seq",
                episode=row[1],
            ).fetchall()
            yield exported_episode_from(row, originals=len(originals))
            yield from map(self._memory_with_revisions, originals)

    def loose_originals(self) -> Iterator[Record]:
        """Yield exported originals whose episode is not exported as a whole, without the episode."""
        rows = self._stream(
            f"{_ARCHIVED} JOIN episodic_memory AS e ON e.seq = m.episode_seq "
            f"WHERE {export_condition(self._chosen, 'm')} AND m.content != '' "
            "AND EXISTS (SELECT 1 FROM archive AS o WHERE o.episode_seq = e.seq "
            f"AND NOT ({export_condition(self._chosen, 'o')})) ORDER BY m.seq"
        )
        return map(self._memory_with_revisions, rows)

    def working(self) -> Iterator[Record]:
        """Yield the exported working memories, in the order they were stored."""
        where = export_condition(self._chosen, "m")
        return map(
            self._memory_with_revisions,
            self._stream(f"{_WORKING} WHERE {where} ORDER BY m.seq"),
        )

    def supersessions(self) -> Iterator[Record]:
        """Yield the links from superseded memories to their successors, both exported."""
        where = export_condition(self._chosen, "m")
        for table in ("working_memory", "archive"):
            for other in ("working_memory", "archive"):
                rows = self._stream(
                    "SELECT m.id, n.id FROM memory_state AS s "
                    f"JOIN {table} AS m ON m.seq = s.memory_seq "
                    f"JOIN {other} AS n ON n.seq = s.superseded_by "
                    f"WHERE s.superseded_by IS NOT NULL AND {where} ORDER BY m.seq"
                )
                for memory, newer in rows:
                    yield ExportedSupersession(memory=memory, superseded_by=newer)


def _memory_from(row: Sequence[Any]) -> ExportedMemory:
    """Return an exported memory from a row of _WORKING or _ARCHIVED."""
    id, seq, session, source, role, content, content_hash, importance = row[:8]
    pinned, metadata, created_at, state, tags, _, held, details, episode = row[8:]
    valid_until, superseded_at, pruned_at = _decode_json_list(state, _NO_TRIPLE)
    held_until, future_since = _decode_json_list(held, _NO_TRIPLE[:2])
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
        tags=tuple(_decode_json_list(tags, ())),
        created_at=instant(created_at),
        episode=episode,
        valid_until=optional_instant(valid_until),
        superseded_at=optional_instant(superseded_at),
        pruned_at=optional_instant(pruned_at),
        held_until=optional_instant(held_until),
        future_since=optional_instant(future_since),
        details=tuple(
            (kind, value, bool(sensitive))
            for kind, value, sensitive in _decode_json_list(details, ())
        ),
    )


def _revision_from(row: Sequence[Any]) -> ExportedRevision:
    """Return an exported revision from a row of a memory's JSON list."""
    changed_at, content, content_hash, fields = row
    return ExportedRevision(
        changed_at=instant(changed_at),
        content=content,
        content_hash=content_hash,
        fields=msgspec.json.decode(fields),
    )


def _decode_json_list(text: str | None, otherwise: Sequence[Any]) -> Sequence[Any]:
    """Return the values of a JSON list, or `otherwise` for NULL."""
    values: Sequence[Any] = msgspec.json.decode(text) if text else otherwise
    return values


def recoverable_records(session: SqliteSession) -> Iterator[RecoverableRecord]:
    """Yield the forgotten memories and learnings that can still be put back."""
    rows = session.execute("SELECT id, call, final_at, data FROM forgotten ORDER BY id")
    for id, call, final_at, data in rows:
        kept = decode_forgotten(data)
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


def restore_recoverable(session: SqliteSession, record: RecoverableRecord) -> bool:
    """Store a forgotten memory or learnings in their grace period; return False if already stored."""
    kept = SqliteForgotten(
        supersedes=list(record.supersedes),
        learnings=list(map(learning_row, record.learnings)),
    )
    if record.memory:
        _fill_recoverable(kept, record.memory, record.superseded_by)
    inserted = session.execute(
        f"{INSERT_FORGOTTEN} DO NOTHING",
        id=record.id,
        call=record.call,
        final_at=record.final_at,
        data=msgspec.json.encode(kept).decode(),
    )
    return bool(inserted.rowcount)


def _recoverable_memory(kept: SqliteForgotten) -> ExportedMemory:
    """Return a forgotten memory as an export has it."""
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
    kept: SqliteForgotten, memory: ExportedMemory, superseded_by: int | None
) -> None:
    """Fill the stored form of a forgotten memory from an exported one."""
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


def moved_records(session: SqliteSession) -> Iterator[MovedRecord]:
    """Yield the records that a move carries besides an export."""
    yield from recoverable_records(session)
    yield from surrounding_records(session)
    yield from _read_vectors(session)
    if sighting := saved_sighting(session):
        yield sighting


def _read_vectors(session: SqliteSession) -> Iterator[KeptVector]:
    """Yield the stored vectors with the ids of their memories and the names of their models."""
    rows = session.execute(
        "SELECT coalesce((SELECT id FROM working_memory WHERE seq = v.memory_seq), "
        "(SELECT id FROM archive WHERE seq = v.memory_seq)), m.name, m.digest, v.vector "
        "FROM embedding AS v JOIN embedding_model AS m ON m.number = v.model "
        "ORDER BY v.memory_seq"
    )
    for id, model, digest, vector in rows:
        if id is not None:
            yield KeptVector(memory=id, model=model, digest=digest, vector=vector)


def _restore_vector(session: SqliteSession, vector: KeptVector) -> Outcome:
    """Store the vector of a memory that has none; return None if the memory is missing."""
    session.execute(
        "INSERT OR IGNORE INTO embedding_model (name, digest) VALUES (?, ?)",
        (vector.model, vector.digest),
    )
    row = session.execute(
        "SELECT seq FROM working_memory WHERE id = ? "
        "UNION ALL SELECT seq FROM archive WHERE id = ?",
        (vector.memory, vector.memory),
    ).fetchone()
    if row is None:
        return None
    inserted = session.execute(
        "INSERT OR IGNORE INTO embedding (memory_seq, model, vector) "
        "SELECT ?, number, ? FROM embedding_model WHERE digest = ?",
        (row[0], vector.vector, vector.digest),
    )
    return bool(inserted.rowcount)


MOVED: Mapping[type[Any], Callable[[SqliteSession, Any], Outcome]] = {
    RecoverableRecord: restore_recoverable,
    KeptVector: _restore_vector,
}
"""Store a record of each kind that a move alone carries."""
