"""Rows of both engines: values by column, and tables whose rows are records of one type each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from functools import cache
from typing import Any, Generic, TypeVar

import msgspec

from mnemosyned.memory.capture import AgentSession, WatchedFile
from mnemosyned.memory.clock import Sighting
from mnemosyned.memory.consolidation import GroupStatus, LogEntry
from mnemosyned.memory.endings import EndingRecord
from mnemosyned.memory.exchange import (
    ExportedCompaction,
    ExportedEpisode,
    ExportedMemory,
    FollowedFolder,
    ForgottenCapture,
    ForgottenCopy,
    HookActivity,
    RecoverableRecord,
)
from mnemosyned.memory.injections import (
    BriefingEdit,
    Injection,
    InjectionKind,
    InjectionOutcome,
)
from mnemosyned.memory.values import (
    ROW_FIELDS,
    ROW_NAMES,
    Episode,
    FieldKind,
    Learning,
    LearningKind,
    MemoryField,
    MemoryRecord,
)
from mnemosyned.storage.common.session import (
    CommonSession,
    instant,
    optional_instant,
    replace_by,
)
from mnemosyned.text.details import Detail, DetailKind

Row = Sequence[Any]

EPISODE_COLUMNS = (
    "id, session_id, source, level, content, item_count, covers_from, covers_until, summarizer, "
    "parent_id, created_at, period_from"
)
_EXPORTED = (
    "id, seq, session_id, source, level, content, item_count, covers_from, covers_until, "
    "summarizer, created_at, period_from, index_terms, stale"
)
EXPORTED_EPISODE = (
    f"e.{_EXPORTED.replace(', ', ', e.')}, EXISTS (SELECT 1 FROM emptied_episode AS w "
    "WHERE w.owner = %(owner)s AND w.episode_seq = e.seq)"
)
"""Columns of an episode `e`, for `exported_episode_from`."""


_FIELDS = {
    "session_id": "session",
    "memory_id": "memory",
    "parent_id": "parent",
    "cycle_id": "cycle",
    "episode_id": "episode",
    "injection_kind": "kind",
    "older_id": "older",
    "newer_id": "newer",
    "slack_s": "slack",
}
"""Fields of records, by their columns that have another name."""
_decode_copy = msgspec.json.Decoder(ForgottenCopy).decode
_CONVERTERS: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(
        (
            "created_at", "covers_from", "covers_until", "period_from", "undone_at", "started_at",
            "seen_at", "informed_at", "called_at", "stored_at", "failed_at", "read_at",
            "changed_at", "found_at", "added_at", "final_at", "moment",
        ),
        optional_instant,
    ),
    "slack_s": lambda seconds: timedelta(seconds=seconds),
    "fields": msgspec.json.decode,
    "stale": bool,
    "emptied": bool,
    "pinned": bool,
    "dropped": bool,
    "undone": bool,
    "injection_kind": InjectionKind,
    "outcome": InjectionOutcome,
    "status": GroupStatus,
    "kind": LearningKind,
    "shown": lambda text: tuple(json.loads(text)),
    "memories": json.loads,
    "data": _decode_copy,
}  # fmt: skip
"""What makes the value of a field from that of a column, if they differ."""


@cache
def column_names(columns: str) -> tuple[str, ...]:
    """Return the names in a comma-separated list of columns, without quotation marks."""
    return tuple(column.strip('"') for column in columns.split(", "))


@cache
def _field_readers(
    columns: str,
) -> tuple[list[str], list[tuple[str, Callable[[Any], Any]]]]:
    """Return the field names of columns, and (name, converter) for fields whose stored values differ."""
    names = {name: _FIELDS.get(name, name) for name in column_names(columns)}
    return [*names.values()], [
        (names[name], _CONVERTERS[name]) for name in names if name in _CONVERTERS
    ]


def record_fields(columns: str, row: Row) -> dict[str, Any]:
    """Return a record's fields by name from a row of comma-separated `columns`; decode JSON and times."""
    names, readers = _field_readers(columns)
    fields = dict(zip(names, row, strict=True))
    for name, read in readers:
        fields[name] = read(fields[name])
    return fields


def stored_values(columns: str, record: object) -> dict[str, Any]:
    """Return {column: stored value} of a record: an enum's value, a duration's seconds, a collection's JSON."""
    values = {
        name: getattr(record, _FIELDS.get(name, name)) for name in column_names(columns)
    }
    for name, value in values.items():
        if isinstance(value, Enum):
            values[name] = value.value
        elif isinstance(value, timedelta):
            values[name] = value.total_seconds()
        elif isinstance(value, tuple | Mapping | ForgottenCopy):
            values[name] = msgspec.json.encode(value).decode()
    return values


_decode_object = msgspec.json.Decoder(dict[str, Any]).decode


_READERS: Mapping[FieldKind, Callable[[Any], Any]] = {
    FieldKind.FLAG: bool,
    FieldKind.TIME: instant,
    FieldKind.JSON: lambda text: {} if text == "{}" else _decode_object(text),
}
# By name, as a member of an enumeration is looked up slowly, and rows are read by the thousand.
_READ_FIELDS = [
    (field.name, _READERS[field.kind]) for field in ROW_FIELDS if field.kind in _READERS
]
_OBJECT_COLUMNS = [field.column for field in ROW_FIELDS if field.kind is FieldKind.JSON]


def fields_from(values: Row) -> dict[str, Any]:
    """Return the fields of a memory by name, from the stored values of `ROW_NAMES`."""
    named = dict(zip(ROW_NAMES, values, strict=True))
    for name, read in _READ_FIELDS:
        named[name] = read(named[name])
    return named


def column_values(
    memory: MemoryRecord | ExportedMemory, fields: Sequence[MemoryField] = ROW_FIELDS
) -> dict[str, Any]:
    """Return the stored values of a memory's fields by column: JSON objects as text, times as `datetime`."""
    values = {field.column: getattr(memory, field.name) for field in fields}
    for column in _OBJECT_COLUMNS:
        if column in values:
            given = values[column]
            values[column] = msgspec.json.encode(given).decode() if given else "{}"
    return values


REVISION_COLUMNS = "changed_at, content, content_hash, fields"
"""Time of an edit, the text before it or None, the hash of that text, and the other fields as JSON.

The text is None where it stayed or was dropped; the fields are those that changed, with earlier values.
"""


def episode_from(row: Row, *, summary_of: tuple[str, ...] = ()) -> Episode:
    """Return an episode without exact values from a row of `EPISODE_COLUMNS` and the ids of its sources."""
    return Episode(**record_fields(EPISODE_COLUMNS, row), summary_of=summary_of)


def episode_values(episode: Episode, index_terms: str) -> dict[str, Any]:
    """Return the values of an episode's row by column: `EPISODE_COLUMNS` and `index_terms`."""
    return stored_values(EPISODE_COLUMNS, episode) | {"index_terms": index_terms}


def exported_episode_from(
    row: Row,
    *,
    originals: int = 0,
    summary_of: tuple[str, ...] = (),
) -> ExportedEpisode:
    """Return an exported summary from a row of `EXPORTED_EPISODE`, with the number of its originals."""
    return ExportedEpisode(
        **record_fields(f"{_EXPORTED}, emptied", row),
        originals=originals,
        summary_of=summary_of,
    )


def detail_from(row: Row) -> Detail:
    """Return an exact value from a row of kind, value, whether secret, memory id and superseded."""
    kind, value, sensitive, memory, superseded = row
    return Detail(
        DetailKind(kind), value, bool(sensitive), memory, superseded=bool(superseded)
    )


T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class RecordTable(Generic[T]):
    """A table with the records of one type."""

    name: str
    kind: type[T]
    columns: str
    order: str
    """Sorts an export of all."""

    def read(self, row: Row, **others: object) -> T:
        """Return the record from a row of the table's columns; `others` are values of further fields."""
        return self.kind(**record_fields(self.columns, row), **others)

    def find(self, session: CommonSession, condition: str, /, **values: Any) -> list[T]:  # noqa: ANN401 any column
        """Return the owner's records that an SQL clause, such as "AND id = …", selects and orders."""
        rows = session.execute(
            f"SELECT {self.columns} FROM {self.name} WHERE owner = %(owner)s {condition}",
            **values,
        )
        return list(map(self.read, rows))

    def stream(self, session: CommonSession) -> Iterator[T]:
        """Yield all records of the owner in the order of an export, fetched in portions."""
        rows = session.stream(
            f"SELECT {self.columns} FROM {self.name} WHERE owner = %(owner)s ORDER BY {self.order}"
        )
        return map(self.read, rows)

    def add(
        self,
        session: CommonSession,
        record: T,
        /,
        conflict: str = "",
        **others: Any,  # noqa: ANN401
    ) -> bool:
        """Insert a record; return whether a row was inserted or changed.

        `conflict` is an SQL clause for a key that is stored already. `others` are the values of
        further columns, or take the place of the record's own.
        """
        values = stored_values(self.columns, record) | others
        return bool(session.insert(self.name, conflict, **values).rowcount)


LEARNINGS = RecordTable(
    "learning",
    Learning,
    "id, kind, text, session_id, source, memory_id, created_at, superseded_by",
    order="seq",
)
LOG = RecordTable(
    "consolidation_log",
    LogEntry,
    "id, session_id, items_consolidated, summary_preview, created_at, cycle_id, source, episode_id, "
    '"trigger", summarizer, status, error, duration_s, chars_before, chars_after, '
    "fallback_reason, level, model_share, undone_at",
    order="id",
)
COMPACTIONS = RecordTable(
    "compaction",
    ExportedCompaction,
    "id, session_id, source, policy, text_hash, created_at",
    order="created_at, id",
)
SESSIONS = RecordTable(
    "agent_session",
    AgentSession,
    "session_id, client, conversation, project, directory, transcript, file, position, "
    "started_at, seen_at, informed_at, shown",
    order="session_id",
)
ACTIVITY = RecordTable(
    "agent_activity",
    HookActivity,
    "client, event, calls, stored, characters, failures, total_ms, slowest_ms, called_at, "
    "stored_at, informed_at, failed_at, failure",
    order="client, event",
)
FORGOTTEN_CAPTURES = RecordTable("agent_forgotten", ForgottenCapture, "id", order="id")
INJECTIONS = RecordTable(
    "injection",
    Injection,
    "id, created_at, client, session_id, project, injection_kind, prompt, characters, tokens, "
    "outcome",
    order="id",
)
BRIEFING_EDITS = RecordTable(
    "briefing_line", BriefingEdit, "id, pinned, dropped, text, changed_at", order="id"
)
ENDINGS = RecordTable(
    "ending",
    EndingRecord,
    "older_id, newer_id, reason, older_place, newer_place, found_at, undone",
    order="newer_id, older_id, older_place",
)
FORGOTTEN = RecordTable(
    "forgotten", RecoverableRecord, "id, call, final_at, data", order="id"
)
CLOCK = RecordTable(
    "clock_seen",
    Sighting,
    "moment, boot, uptime_s, slack_s, slack_from_s",
    order="moment",
)
FOLDERS = RecordTable("watched_folder", FollowedFolder, "path, added_at", order="path")
FILES = RecordTable(
    "watched_file",
    WatchedFile,
    "path, file, size, modified_ns, format, position, memories, stored, read_at",
    order="path",
)
REPLACE_FILE = replace_by("path", column_names(FILES.columns)[1:])
EXPORTED_TABLES: tuple[RecordTable[Any], ...] = (
    SESSIONS,
    FORGOTTEN_CAPTURES,
    BRIEFING_EDITS,
    ENDINGS,
)
"""Tables that an export without a filter has whole."""
MOVED_TABLES: tuple[RecordTable[Any], ...] = (FORGOTTEN, FOLDERS, FILES, ACTIVITY)
"""Tables that only a move has."""
