"""Values from rows: the columns that both engines name alike, in the order they are read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from mnemosyned.memory.capture import AgentSession, WatchedFile
from mnemosyned.memory.consolidation import GroupStatus, LogEntry, Pending
from mnemosyned.memory.exchange import ExportedEpisode, ExportedMemory, HookActivity
from mnemosyned.memory.fields import ROW_FIELDS, FieldKind, MemoryField
from mnemosyned.memory.values import (
    AgentActivity,
    Episode,
    Learning,
    LearningKind,
    MemoryRecord,
)
from mnemosyned.text.details import Detail, DetailKind

Row = Sequence[Any]

EPISODE_COLUMNS = (
    "id, session_id, source, level, content, item_count, covers_from, covers_until, summarizer, "
    "parent_id, created_at, period_from"
)
LOG_COLUMNS = (
    "session_id, items_consolidated, summary_preview, created_at, cycle_id, source, episode_id, "
    '"trigger", summarizer, status, error, duration_s, chars_before, chars_after, '
    "fallback_reason, level, model_share"
)
LOG_FIELDS = f"id, {LOG_COLUMNS}, undone_at"
LEARNING_COLUMNS = (
    "id, kind, text, session_id, source, memory_id, created_at, superseded_by"
)
SESSION_COLUMNS = (
    "session_id, client, conversation, project, directory, transcript, file, position, "
    "started_at, seen_at, informed_at, shown"
)
ACTIVITY_COLUMNS = (
    "client, event, calls, stored, characters, failures, total_ms, slowest_ms, called_at, "
    "stored_at, informed_at, failed_at, failure"
)
FILE_COLUMNS = (
    "path, file, size, modified_ns, format, position, memories, stored, read_at"
)


def instant(value: datetime | str) -> datetime:
    """Return a stored time as a `datetime`; SQLite's rows hold ISO text."""
    return value if isinstance(value, datetime) else datetime.fromisoformat(value)


def optional_instant(value: datetime | str | None) -> datetime | None:
    """Return a stored time as a `datetime`, or None for a missing one."""
    return instant(value) if value else None


# ------------------------------------------------------------ what is remembered


def _object_from(text: str) -> dict[str, Any]:
    """Return the JSON object in a column."""
    return msgspec.json.decode(text, type=dict[str, Any]) if text != "{}" else {}


_READERS: Mapping[FieldKind, Callable[[Any], Any]] = {
    FieldKind.FLAG: bool,
    FieldKind.TIME: instant,
    FieldKind.JSON: _object_from,
}


def fields_from(
    values: Row, fields: Sequence[MemoryField] = ROW_FIELDS
) -> dict[str, Any]:
    """Return the fields of a memory by name, from the values of their columns."""
    return {
        field.name: _READERS[field.kind](value) if field.kind in _READERS else value
        for field, value in zip(fields, values, strict=True)
    }


def column_values(
    memory: MemoryRecord | ExportedMemory, fields: Sequence[MemoryField] = ROW_FIELDS
) -> dict[str, Any]:
    """Return the values of a memory's own columns, by column; its times as they are."""
    values = {field.column: getattr(memory, field.name) for field in fields}
    for field in fields:
        if field.kind is FieldKind.JSON:
            value = values[field.column]
            values[field.column] = (
                msgspec.json.encode(value).decode() if value else "{}"
            )
    return values


def exported_fields_from(values: Row, content_hash: int | None) -> dict[str, Any]:
    """Return the fields of an exported memory by name, from the values of its columns.

    The hash of its text is exported only if the text was pruned.
    """
    fields = fields_from(values)
    return fields | {"content_hash": None if fields["content"] else content_hash}


def pending_from(row: Row) -> Pending:
    """Return a pending memory from id, session_id, source, created_at, length(content)."""
    id, session, source, created_at, chars = row
    return Pending(
        id=id,
        session=session,
        source=source,
        created_at=instant(created_at),
        chars=chars,
    )


def episode_from(
    row: Row,
    *,
    summary_of: tuple[str, ...] = (),
    details: tuple[Detail, ...] = (),
) -> Episode:
    """Return an episode from a row of `EPISODE_COLUMNS`, with the given source ids and details."""
    id, session, source, level, content, item_count, since, until = row[:8]
    summarizer, parent, created_at, period_from = row[8:]
    return Episode(
        id=id,
        session=session,
        source=source,
        level=level,
        content=content,
        item_count=item_count,
        covers_from=instant(since),
        covers_until=instant(until),
        summarizer=summarizer,
        parent=parent,
        created_at=instant(created_at),
        period_from=optional_instant(period_from),
        summary_of=summary_of,
        details=details,
    )


def episode_values(episode: Episode, index_terms: str) -> dict[str, Any]:
    """Return the values of `EPISODE_COLUMNS` and `index_terms`, by column."""
    return {
        "id": episode.id,
        "session_id": episode.session,
        "source": episode.source,
        "level": int(episode.level),
        "content": episode.content,
        "item_count": episode.item_count,
        "covers_from": episode.covers_from,
        "covers_until": episode.covers_until,
        "summarizer": episode.summarizer,
        "parent_id": episode.parent,
        "created_at": episode.created_at,
        "period_from": episode.period_from,
        "index_terms": index_terms,
    }


def exported_episode_from(
    row: Row,
    *,
    originals: int = 0,
    summary_of: tuple[str, ...] = (),
) -> ExportedEpisode:
    """Return an exported summary from a row of `EXPORTED_EPISODE`.

    `originals` is the number of its originals, `summary_of` are the ids of a roll-up's sources.
    """
    id, seq, session, source, level, content, item_count, since, until = row[:9]
    summarizer, created_at, period_from, index_terms, stale, emptied = row[9:]
    return ExportedEpisode(
        id=id,
        seq=seq,
        session=session,
        source=source,
        level=level,
        content=content,
        item_count=item_count,
        covers_from=instant(since),
        covers_until=instant(until),
        summarizer=summarizer,
        created_at=instant(created_at),
        period_from=optional_instant(period_from),
        index_terms=index_terms,
        stale=bool(stale),
        emptied=bool(emptied),
        originals=originals,
        summary_of=summary_of,
    )


def detail_from(row: Row) -> Detail:
    """Return an exact value from a row: kind, value, sensitive, memory's id, superseded."""
    kind, value, sensitive, memory, superseded = row
    return Detail(
        DetailKind(kind), value, bool(sensitive), memory, superseded=bool(superseded)
    )


def log_entry_from(row: Row) -> LogEntry:
    """Return a log entry from `LOG_FIELDS`."""
    return LogEntry(
        id=row[0],
        session=row[1],
        items_consolidated=row[2],
        summary_preview=row[3],
        created_at=instant(row[4]),
        cycle=row[5],
        source=row[6],
        episode=row[7],
        trigger=row[8],
        summarizer=row[9],
        status=GroupStatus(row[10]),
        error=row[11],
        duration_s=row[12],
        chars_before=row[13],
        chars_after=row[14],
        fallback_reason=row[15],
        level=row[16],
        model_share=row[17],
        undone_at=optional_instant(row[18]),
    )


def log_values(entry: LogEntry) -> Mapping[str, Any]:
    """Return the values of `LOG_COLUMNS`, by column."""
    return {
        "session_id": entry.session,
        "items_consolidated": entry.items_consolidated,
        "summary_preview": entry.summary_preview,
        "created_at": entry.created_at,
        "cycle_id": entry.cycle,
        "source": entry.source,
        "episode_id": entry.episode,
        "trigger": str(entry.trigger),
        "summarizer": entry.summarizer,
        "status": str(entry.status),
        "error": entry.error,
        "duration_s": entry.duration_s,
        "chars_before": entry.chars_before,
        "chars_after": entry.chars_after,
        "fallback_reason": entry.fallback_reason,
        "level": int(entry.level),
        "model_share": entry.model_share,
    }


def learning_from(row: Row) -> Learning:
    """Return a learning from `LEARNING_COLUMNS`."""
    id, kind, text, session, source, memory, created_at, superseded_by = row
    return Learning(
        id=id,
        kind=LearningKind(kind),
        text=text,
        session=session,
        source=source,
        memory=memory,
        created_at=instant(created_at),
        superseded_by=superseded_by,
    )


# ------------------------------------------------------------- what surrounds it


def session_from(row: Row) -> AgentSession:
    """Return an agent's session from `SESSION_COLUMNS`."""
    *texts, position, started_at, seen_at, informed_at, shown = row
    session, client, conversation, project, directory, transcript, file = texts
    return AgentSession(
        session=session,
        client=client,
        conversation=conversation,
        project=project,
        directory=directory,
        transcript=transcript,
        file=file,
        position=position,
        started_at=instant(started_at),
        seen_at=instant(seen_at),
        informed_at=optional_instant(informed_at),
        shown=tuple(json.loads(shown)),
    )


def hook_activity_from(row: Row) -> HookActivity:
    """Return the sums of a client's hooks from `ACTIVITY_COLUMNS`, as a move carries them."""
    client, event, calls, stored, characters, failures, total_ms, slowest_ms = row[:8]
    called_at, *others, failure = row[8:]
    stored_at, informed_at, failed_at = (optional_instant(other) for other in others)
    return HookActivity(
        client=client,
        event=event,
        calls=calls,
        stored=stored,
        characters=characters,
        failures=failures,
        total_ms=total_ms,
        slowest_ms=slowest_ms,
        called_at=instant(called_at),
        stored_at=stored_at,
        informed_at=informed_at,
        failed_at=failed_at,
        failure=failure,
    )


def activity_from(row: Row) -> AgentActivity:
    """Return the activity of a client's hooks from `ACTIVITY_COLUMNS`."""
    sums = hook_activity_from(row)
    return AgentActivity(
        client=sums.client,
        event=sums.event,
        calls=sums.calls,
        stored=sums.stored,
        characters=sums.characters,
        failures=sums.failures,
        mean_ms=round(sums.total_ms / sums.calls, 3),
        slowest_ms=round(sums.slowest_ms, 3),
        called_at=sums.called_at,
        stored_at=sums.stored_at,
        informed_at=sums.informed_at,
        failed_at=sums.failed_at,
        failure=sums.failure,
    )


def file_from(row: Row) -> WatchedFile:
    """Return a watched file's state from `FILE_COLUMNS`."""
    path, file, size, modified_ns, format, position, memories, stored, read_at = row
    return WatchedFile(
        path=path,
        file=file,
        size=size,
        modified_ns=modified_ns,
        format=format,
        position=position,
        memories=json.loads(memories),
        stored=stored,
        read_at=instant(read_at),
    )
