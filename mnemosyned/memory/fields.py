"""The fields of a memory in one table, which rows and edits of both engines read.

Exports and requests name their fields themselves; a test holds them to this table.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryField:
    """A field of `MemoryRecord`."""

    name: str
    column: str = ""
    """Its column in both engines; empty for a field kept in a table of its own."""
    editable: bool = False
    """Whether an edit may change the field."""
    exported: bool = True
    """Whether an export has the field in the record of the memory."""


FIELDS = (
    MemoryField(name="id", column="id"),
    MemoryField(
        name="session",
        column="session_id",
        editable=True,
    ),
    MemoryField(name="source", column="source", editable=True),
    MemoryField(name="role", column="role", editable=True),
    MemoryField(name="content", column="content", editable=True),
    MemoryField(name="importance", column="importance", editable=True),
    MemoryField(name="pinned", column="pinned"),
    MemoryField(name="metadata", column="metadata"),
    MemoryField(
        name="created_at",
        column="created_at",
        editable=True,
    ),
    MemoryField(name="tier", exported=False),
    MemoryField(name="episode"),
    MemoryField(name="valid_until"),
    MemoryField(name="superseded_at"),
    MemoryField(name="superseded_by", exported=False),
    MemoryField(name="pruned_at"),
    MemoryField(name="tags", editable=True),
    MemoryField(name="edited_at", exported=False),
)
"""All fields of a memory. Links of superseded memories, and revisions, are exported apart."""
ROW_FIELDS = tuple(field for field in FIELDS if field.column)
"""Fields with a column of their own, in the order they are read and written."""
EDITED_FIELDS = tuple(field for field in ROW_FIELDS if field.editable)
"""Columns that an edit may change; tags have a table."""


def column_list(fields: tuple[MemoryField, ...] = ROW_FIELDS, prefix: str = "") -> str:
    """Return the column names of fields for an SQL statement, each after `prefix`."""
    return ", ".join(f"{prefix}{field.column}" for field in fields)
