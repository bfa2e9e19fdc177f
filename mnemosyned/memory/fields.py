"""The fields of a memory in one table: rows, edits, filters, exports and forgetting read it.

A test holds the records of a memory, an export and an edit to the table, and passes every field through
each of these ways.
"""

from __future__ import annotations

from dataclasses import dataclass
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


FIELDS = (
    MemoryField(name="id", column="id"),
    MemoryField(name="session", column="session_id", editable=True),
    MemoryField(name="source", column="source", editable=True),
    MemoryField(name="role", column="role", editable=True),
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


def column_list(fields: tuple[MemoryField, ...] = ROW_FIELDS, prefix: str = "") -> str:
    """Return the column names of fields for an SQL statement, each after `prefix`."""
    return ", ".join(f"{prefix}{field.column}" for field in fields)
