"""Values from rows of the columns that both engines name alike, in the order they are read.

An engine that keeps times in its own form passes `moment`, which reads one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from mnemosyned.memory.capture import AgentSession, WatchedFile
from mnemosyned.memory.consolidation import GroupStatus, LogEntry, Pending
from mnemosyned.memory.exchange import ExportedEpisode, HookActivity
from mnemosyned.memory.learning import Learning, LearningKind
from mnemosyned.memory.values import AgentActivity, Episode
from mnemosyned.text.details import Detail, DetailKind

Row = Sequence[Any]
Moment = Callable[[Any], datetime]

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


def as_read(moment: datetime) -> datetime:
    """The moment itself, where the driver reads times."""
    return moment


# ------------------------------------------------------------ what is remembered


def pending_from(row: Row, *, moment: Moment = as_read) -> Pending:
    """A pending memory from id, session_id, source, created_at, length(content)."""
    id, session, source, created_at, chars = row
    return Pending(
        id=id,
        session=session,
        source=source,
        created_at=moment(created_at),
        chars=chars,
    )


def episode_from(
    row: Row,
    *,
    summary_of: tuple[str, ...] = (),
    details: tuple[Detail, ...] = (),
    moment: Moment = as_read,
) -> Episode:
    """An episode from `EPISODE_COLUMNS`."""
    id, session, source, level, content, item_count, since, until = row[:8]
    summarizer, parent, created_at, period_from = row[8:]
    return Episode(
        id=id,
        session=session,
        source=source,
        level=level,
        content=content,
        item_count=item_count,
        covers_from=moment(since),
        covers_until=moment(until),
        summarizer=summarizer,
        parent=parent,
        created_at=moment(created_at),
        period_from=moment(period_from) if period_from else None,
        summary_of=summary_of,
        details=details,
    )


def exported_episode_from(
    row: Row,
    *,
    originals: int = 0,
    summary_of: tuple[str, ...] = (),
    moment: Moment = as_read,
) -> ExportedEpisode:
    """A summary of an export, from its number and all that is kept of it."""
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
        covers_from=moment(since),
        covers_until=moment(until),
        summarizer=summarizer,
        created_at=moment(created_at),
        period_from=moment(period_from) if period_from else None,
        index_terms=index_terms,
        stale=bool(stale),
        emptied=bool(emptied),
        originals=originals,
        summary_of=summary_of,
    )


def detail_from(row: Row) -> Detail:
    """A detail from its kind's name, value, sensitive, the memory's id, and superseded."""
    kind, value, sensitive, memory, superseded = row
    return Detail(
        DetailKind(kind), value, bool(sensitive), memory, superseded=bool(superseded)
    )


def log_entry_from(row: Row, *, moment: Moment = as_read) -> LogEntry:
    """A log entry from `LOG_FIELDS`."""
    return LogEntry(
        id=row[0],
        session=row[1],
        items_consolidated=row[2],
        summary_preview=row[3],
        created_at=moment(row[4]),
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
        undone_at=moment(row[18]) if row[18] else None,
    )


def learning_from(row: Row, *, moment: Moment = as_read) -> Learning:
    """A learning from `LEARNING_COLUMNS`."""
    id, kind, text, session, source, memory, created_at, superseded_by = row
    return Learning(
        id=id,
        kind=LearningKind(kind),
        text=text,
        session=session,
        source=source,
        memory=memory,
        created_at=moment(created_at),
        superseded_by=superseded_by,
    )


# ------------------------------------------------------------- what surrounds it


def session_from(row: Row, *, moment: Moment = as_read) -> AgentSession:
    """An agent's session from `SESSION_COLUMNS`."""
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
        started_at=moment(started_at),
        seen_at=moment(seen_at),
        informed_at=moment(informed_at) if informed_at else None,
        shown=tuple(json.loads(shown)),
    )


def hook_activity_from(row: Row, *, moment: Moment = as_read) -> HookActivity:
    """The sums of a client's hooks from `ACTIVITY_COLUMNS`, as a move carries them."""
    client, event, calls, stored, characters, failures, total_ms, slowest_ms = row[:8]
    called_at, *others, failure = row[8:]
    stored_at, informed_at, failed_at = (
        moment(other) if other else None for other in others
    )
    return HookActivity(
        client=client,
        event=event,
        calls=calls,
        stored=stored,
        characters=characters,
        failures=failures,
        total_ms=total_ms,
        slowest_ms=slowest_ms,
        called_at=moment(called_at),
        stored_at=stored_at,
        informed_at=informed_at,
        failed_at=failed_at,
        failure=failure,
    )


def activity_from(row: Row, *, moment: Moment = as_read) -> AgentActivity:
    """The activity of a client's hooks from `ACTIVITY_COLUMNS`."""
    sums = hook_activity_from(row, moment=moment)
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


def file_from(row: Row, *, moment: Moment = as_read) -> WatchedFile:
    """A watched file's state from `FILE_COLUMNS`."""
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
        read_at=moment(read_at),
    )
