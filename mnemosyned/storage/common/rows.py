"""Rows of both engines: values by column, and tables whose rows are records of one type each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum, EnumType
from functools import cache, cached_property
from typing import Any, Generic, TypeVar, get_args, get_type_hints

import msgspec

from mnemosyned.memory import capture, clock, consolidation, endings, exchange, values
from mnemosyned.memory.injections import BriefingEdit, Injection
from mnemosyned.storage.common.session import (
    CommonSession,
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


DERIVED = "derived"
"""Key, in the fields of a revision, of what the edit deleted; only the undo of the edit reads it."""
_FIELDS = {
    **{field.column: field.name for field in values.ROW_FIELDS},
    "memory_id": "memory",
    "parent_id": "parent",
    "cycle_id": "cycle",
    "episode_id": "episode",
    "injection_kind": "kind",
    "older_id": "older",
    "newer_id": "newer",
    "agreed_id": "agreed",
    "slack_s": "slack",
}
"""Fields of records, by their columns that have another name."""
_COLUMNS = {name: column for column, name in _FIELDS.items()} | {
    "kind": "kind",
    "trigger": '"trigger"',
}
"""Columns by the names of fields, where they differ."""
# Made with the import: no type may be built while another thread can use it.
_decode_copy = msgspec.json.Decoder(exchange.ForgottenCopy).decode
_JSON: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("metadata", "memories"), msgspec.json.decode),
    "fields": lambda text: {
        name: value
        for name, value in msgspec.json.decode(text).items()
        if name != DERIVED
    },
    "shown": lambda text: tuple(msgspec.json.decode(text)),
    "data": _decode_copy,
}
"""Decoders of the columns that contain JSON."""


@cache
def column_names(columns: str) -> tuple[str, ...]:
    """Return the names in a comma-separated list of columns, without quotation marks."""
    return tuple(column.strip('"') for column in columns.split(", "))


@cache
def _field_readers(
    kind: type, columns: str
) -> tuple[list[str], list[tuple[str, Callable[[Any], Any]]]]:
    """Return the field names of columns, and (name, converter) for fields stored in another form."""
    names: list[str] = []
    readers: list[tuple[str, Callable[[Any], Any]]] = []
    hints = get_type_hints(kind)
    for column in column_names(columns):
        name = _FIELDS.get(column, column)
        names.append(name)
        hint = hints[name]
        if column in _JSON:
            readers.append((name, _JSON[column]))
        elif datetime in (hint, *get_args(hint)):
            readers.append((name, optional_instant))
        elif hint is timedelta:
            readers.append((name, lambda seconds: timedelta(seconds=seconds)))
        elif hint is bool or isinstance(hint, EnumType):
            readers.append((name, hint))
    return names, readers


def record_fields(kind: type, columns: str, row: Row) -> dict[str, Any]:
    """Return fields of a record of a type by name, from a row of comma-separated `columns`."""
    names, readers = _field_readers(kind, columns)
    fields = dict(zip(names, row, strict=True))
    for name, read in readers:
        fields[name] = read(fields[name])
    return fields


def stored_values(columns: str, record: object) -> dict[str, Any]:
    """Return {column: value to store} of a record: an enum's value, a duration's seconds, JSON of a tuple."""
    stored = {
        name: getattr(record, _FIELDS.get(name, name)) for name in column_names(columns)
    }
    for name, value in stored.items():
        if isinstance(value, Enum):
            stored[name] = value.value
        elif isinstance(value, timedelta):
            stored[name] = value.total_seconds()
        elif isinstance(value, tuple | dict | exchange.ForgottenCopy):
            stored[name] = msgspec.json.encode(value).decode()
    return stored


ROW_COLUMNS = values.column_list()
"""Columns of a memory's own fields."""
_WHOLE = f"{ROW_COLUMNS}, valid_until, superseded_at, pruned_at, superseded_by, edited_at, episode"


def memory_of(row: Row, tags: Sequence[str] | None) -> values.MemoryRecord:
    """Return a memory from the values of the columns `_WHOLE`, in order, and its sorted tags."""
    fields = record_fields(values.MemoryRecord, _WHOLE, row)
    tier = values.Tier.ARCHIVE if fields["episode"] else values.Tier.WORKING
    return values.MemoryRecord(**fields, tier=tier, tags=tuple(tags or ()))


REVISION_COLUMNS = "changed_at, content, content_hash, fields"
"""Time of an edit, the text before it or None, the hash of that text, and the other fields as JSON.

The text is None where it stayed or was dropped; the fields are those that changed, with earlier values.
"""


def episode_from(row: Row, *, summary_of: tuple[str, ...] = ()) -> values.Episode:
    """Return an episode without exact values from a row of `EPISODE_COLUMNS` and the ids of its sources."""
    return values.Episode(
        **record_fields(values.Episode, EPISODE_COLUMNS, row), summary_of=summary_of
    )


def episode_values(episode: values.Episode, index_terms: str) -> dict[str, Any]:
    """Return the values of an episode's row by column: `EPISODE_COLUMNS` and `index_terms`."""
    return stored_values(EPISODE_COLUMNS, episode) | {"index_terms": index_terms}


def exported_episode_from(
    row: Row,
    *,
    originals: int = 0,
    summary_of: tuple[str, ...] = (),
) -> exchange.ExportedEpisode:
    """Return an exported summary from a row of `EXPORTED_EPISODE`, a number of originals and source ids."""
    return exchange.ExportedEpisode(
        **record_fields(exchange.ExportedEpisode, f"{_EXPORTED}, emptied", row),
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
    order: str
    """Sorts an export of all."""
    without: str = ""
    """A field whose values are in another table."""
    named: Mapping[str, str] = field(default_factory=dict)
    """Columns by field, where not `_COLUMNS` has them."""

    @cached_property
    def columns(self) -> str:
        """The columns of the fields, in their order, separated by commas."""
        names = (each for each in get_type_hints(self.kind) if each != self.without)
        return ", ".join(
            self.named.get(name, _COLUMNS.get(name, name)) for name in names
        )

    def read(self, row: Row, **others: object) -> T:
        """Return the record from a row of the table's columns; `others` are values of further fields."""
        return self.kind(**record_fields(self.kind, self.columns, row), **others)

    def find(self, session: CommonSession, condition: str, /, **named: Any) -> list[T]:  # noqa: ANN401 any column
        """Return the owner's records that `condition`, such as "AND id = …" in SQL, selects and orders."""
        rows = session.execute(
            f"SELECT {self.columns} FROM {self.name} WHERE owner = %(owner)s {condition}",
            **named,
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

        `conflict` is an SQL clause for a key that is stored already. `others` are values of further
        columns, or replace values of the record.
        """
        stored = stored_values(self.columns, record) | others
        return bool(session.insert(self.name, conflict, **stored).rowcount)


LEARNINGS = RecordTable("learning", values.Learning, "seq")
LOG = RecordTable("consolidation_log", consolidation.LogEntry, "id")
COMPACTIONS = RecordTable(
    "compaction", exchange.ExportedCompaction, "created_at, id", "parts"
)
SESSIONS = RecordTable("agent_session", capture.AgentSession, "session_id")
ACTIVITY = RecordTable("agent_activity", exchange.HookActivity, "client, event")
FORGOTTEN_CAPTURES = RecordTable("agent_forgotten", exchange.ForgottenCapture, "id")
INJECTIONS = RecordTable(
    "injection", Injection, "id", "lines", {"kind": "injection_kind"}
)
BRIEFING_EDITS = RecordTable("briefing_line", BriefingEdit, "id")
ENDINGS = RecordTable(
    "ending",
    endings.EndingRecord,
    "newer_id, older_id, older_place, older_start, older_end",
)
FORGOTTEN = RecordTable("forgotten", exchange.RecoverableRecord, "id")
CLOCK = RecordTable("clock_seen", clock.Sighting, "moment")
FOLDERS = RecordTable("watched_folder", exchange.FollowedFolder, "path")
FILES = RecordTable("watched_file", capture.WatchedFile, "path")
REPLACE_FILE = replace_by("path", column_names(FILES.columns)[1:])
EXPORTED_TABLES: tuple[RecordTable[Any], ...] = (
    SESSIONS,
    FORGOTTEN_CAPTURES,
    BRIEFING_EDITS,
    ENDINGS,
)
"""Tables that an export without a filter contains in full."""
MOVED_TABLES: tuple[RecordTable[Any], ...] = (FORGOTTEN, FOLDERS, FILES, ACTIVITY)
"""Tables that only a move contains."""
