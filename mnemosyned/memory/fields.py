"""The fields of a memory in one table: rows, edits, filters, exports and forgetting read it.

A test compares the records of a memory, an export and an edit with the table, and passes every
field through each of these ways.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class FieldKind(StrEnum):
    """The kind of a field's values, by which a column stores them."""

    TEXT = "text"
    NUMBER = "number"
    FLAG = "flag"
    TIME = "time"
    JSON = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryField:
    """A field of `MemoryRecord`."""

    name: str
    column: str = ""
    """Its column in both engines; empty for a field kept in a table of its own."""
    kind: FieldKind = FieldKind.TEXT
    """The kind of the values in its column."""
    editable: bool = False
    """Whether an edit may change the field."""
    exported: bool = True
    """Whether an export has the field in the record of the memory."""
    recoverable: bool = True
    """Whether a forgotten memory keeps the field in its grace period."""
    filter: str = ""
    """The field of `MemoryFilter` that selects memories by this one; requests name it as it is."""
    in_summaries: bool = False
    """Whether summaries have the column, too."""


FIELDS = (
    MemoryField(name="id", column="id"),
    MemoryField(
        name="session",
        column="session_id",
        editable=True,
        filter="sessions",
        in_summaries=True,
    ),
    MemoryField(
        name="source",
        column="source",
        editable=True,
        filter="sources",
        in_summaries=True,
    ),
    MemoryField(name="role", column="role", editable=True, filter="roles"),
    MemoryField(name="content", column="content", editable=True),
    MemoryField(
        name="created_at", column="created_at", kind=FieldKind.TIME, editable=True
    ),
    MemoryField(
        name="importance", column="importance", kind=FieldKind.NUMBER, editable=True
    ),
    MemoryField(name="pinned", column="pinned", kind=FieldKind.FLAG),
    MemoryField(name="metadata", column="metadata", kind=FieldKind.JSON),
    MemoryField(name="tier", exported=False, recoverable=False),
    MemoryField(name="episode", recoverable=False),
    MemoryField(name="valid_until"),
    MemoryField(name="superseded_at"),
    MemoryField(name="superseded_by", exported=False, recoverable=False),
    MemoryField(name="pruned_at", recoverable=False),
    MemoryField(name="tags", editable=True),
    MemoryField(name="edited_at", exported=False, recoverable=False),
)
"""All fields of a memory. Links of superseded memories, and revisions, are exported apart."""
ROW_FIELDS = tuple(field for field in FIELDS if field.column)
"""Fields with a column of their own, in the order they are read and written."""
ROW_NAMES = tuple(field.name for field in ROW_FIELDS)
EDITED_FIELDS = tuple(field for field in ROW_FIELDS if field.editable)
"""Columns that an edit may change; tags have a table."""
EDITABLE = tuple(
    field.name for field in FIELDS if field.editable and field.name != "content"
)
"""Names of the fields that an edit may change, besides the text."""
RECOVERABLE = tuple(field.name for field in FIELDS if field.recoverable)
"""Names of the fields that a forgotten memory keeps in its grace period."""
NAMING_FIELDS = tuple(
    field
    for field in ROW_FIELDS
    if field.kind in (FieldKind.TEXT, FieldKind.JSON)
    and field.name not in ("id", "content", "role")
)
"""Columns that may mention a person, besides the text and its speaker."""
FILTER_FIELDS = tuple(field for field in ROW_FIELDS if field.filter)
"""Columns by whose values memories are selected."""
_SUMMARY_COLUMNS = {field.column for field in FILTER_FIELDS if field.in_summaries}


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFilter:
    """Filter of memories by their fields; a field of the filter that is empty selects all."""

    sessions: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    """Memories with one of these."""
    since: datetime | None = None
    """Memories of this time or later."""
    until: datetime | None = None
    """Memories before this time."""

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """The accepted values by column; a memory is selected if every column contains an accepted value."""
        return {
            field.column: values
            for field in FILTER_FIELDS
            if (values := getattr(self, field.filter))
        }

    @property
    def summary_columns(self) -> dict[str, tuple[str, ...]]:
        """The values by column, as in `columns`, for the columns that summaries have, too."""
        columns = self.columns
        return {name: columns[name] for name in columns if name in _SUMMARY_COLUMNS}

    @property
    def own_columns(self) -> dict[str, tuple[str, ...]]:
        """The values by column, as in `columns`, for the columns that only memories have."""
        columns = self.columns
        return {name: columns[name] for name in columns if name not in _SUMMARY_COLUMNS}

    @property
    def excludes_summaries(self) -> bool:
        """Whether the filter selects by tags or by a column that only memories have."""
        return bool(self.tags or self.own_columns)

    @property
    def is_set(self) -> bool:
        """Whether the filter leaves out any memory."""
        return bool(self.columns or self.tags or self.since or self.until)


def column_list(fields: tuple[MemoryField, ...] = ROW_FIELDS, prefix: str = "") -> str:
    """Return the column names of fields as a comma-separated list, each after `prefix`."""
    return ", ".join(f"{prefix}{field.column}" for field in fields)
