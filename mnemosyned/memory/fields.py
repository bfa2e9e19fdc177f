"""The fields of a memory in one table, for rows, edits, filters, exports and restores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryField:
    """A field of `MemoryRecord`."""

    name: str
    kind: type
    column: str = ""
    """Its column in both engines; empty for a field kept in a table of its own."""
    filterable: bool = False
    """Whether memories can be selected by it."""
    editable: bool = False
    exported: bool = True


FIELDS = (
    MemoryField(name="id", kind=str, column="id"),
    MemoryField(
        name="session",
        kind=str,
        column="session_id",
        filterable=True,
        editable=True,
    ),
    MemoryField(
        name="source", kind=str, column="source", filterable=True, editable=True
    ),
    MemoryField(name="role", kind=str, column="role", filterable=True, editable=True),
    MemoryField(name="content", kind=str, column="content", editable=True),
    MemoryField(name="importance", kind=float, column="importance", editable=True),
    MemoryField(name="pinned", kind=bool, column="pinned", filterable=True),
    MemoryField(name="metadata", kind=Mapping, column="metadata"),
    MemoryField(
        name="created_at",
        kind=datetime,
        column="created_at",
        filterable=True,
        editable=True,
    ),
    MemoryField(name="tier", kind=str, filterable=True, exported=False),
    MemoryField(name="episode", kind=str),
    MemoryField(name="valid_until", kind=datetime, filterable=True),
    MemoryField(name="superseded_at", kind=datetime, filterable=True),
    MemoryField(name="superseded_by", kind=str, exported=False),
    MemoryField(name="pruned_at", kind=datetime),
    MemoryField(name="tags", kind=tuple, filterable=True, editable=True),
    MemoryField(name="edited_at", kind=datetime, exported=False),
)
"""All fields of a memory. Links of superseded memories, and revisions, are exported apart."""
ROW_FIELDS = tuple(field for field in FIELDS if field.column)
"""Fields with a column of their own, in the order they are read and written."""
EDITED_FIELDS = tuple(field for field in ROW_FIELDS if field.editable)
"""Columns that an edit may change; tags have a table."""


def column_list(fields: tuple[MemoryField, ...] = ROW_FIELDS, prefix: str = "") -> str:
    """Return the column names of fields for an SQL statement, each after `prefix`."""
    return ", ".join(f"{prefix}{field.column}" for field in fields)
