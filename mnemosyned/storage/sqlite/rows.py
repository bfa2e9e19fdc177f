"""Rows and values: the one place where a table's columns meet the fields of memories."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from mnemosyned.instants import in_zone
from mnemosyned.memory.exchange import ExportedMemory
from mnemosyned.memory.fields import ROW_FIELDS, FieldKind, column_list
from mnemosyned.memory.intake import content_hash
from mnemosyned.memory.values import MemoryRecord, Tier
from mnemosyned.storage.common.rows import (
    column_values,
    fields_from,
    optional_instant,
)
from mnemosyned.storage.common.session import Row

MEMORY_COLUMNS = f"{column_list()}, content_hash"
_STATE = (
    "(SELECT json_array(s.valid_until, s.superseded_at, s.pruned_at, ("
    "SELECT n.id FROM working_memory AS n WHERE n.seq = s.superseded_by UNION ALL "
    "SELECT n.id FROM archive AS n WHERE n.seq = s.superseded_by)) "
    "FROM memory_state AS s WHERE s.memory_seq = {seq})"
)
"""NULL for most; one look-up for the few of which there is more to say."""
_TAGS = (
    "(SELECT group_concat(t.name, char(10)) FROM tag AS t WHERE t.memory_seq = {seq})"
)
_EDITED = "(SELECT max(r.changed_at) FROM revision AS r WHERE r.memory_seq = {seq})"
_BESIDE = f"{_STATE}, {_TAGS}, {_EDITED}"
MEMORY_FIELDS = f"{column_list()}, {_BESIDE.format(seq='working_memory.seq')}"
ARCHIVE_FIELDS = f"{column_list(prefix='a.')}, {_BESIDE.format(seq='a.seq')}"
SEQ_AMONG = "seq IN (SELECT value FROM json_each(?))"
"""One text for any number of rows: SQLite reads a statement once, and these are asked again."""


def instant_text(moment: datetime) -> str:
    """Return an instant in UTC, always 27 characters, so that text order is time order."""
    return in_zone(moment, UTC).isoformat(timespec="microseconds")[:26] + "Z"


_TIME_COLUMNS = [field.column for field in ROW_FIELDS if field.kind is FieldKind.TIME]


def memory_row(memory: MemoryRecord | ExportedMemory) -> Row:
    """Return the values of `MEMORY_COLUMNS`."""
    values = column_values(memory)
    for column in _TIME_COLUMNS:
        values[column] = instant_text(values[column])
    return (*values.values(), content_hash(memory.content))


def memory_from(
    row: Sequence[Any], *, tier: Tier, episode: str | None = None
) -> MemoryRecord:
    """Return a memory from `MEMORY_FIELDS`."""
    *values, state, tags, edited_at = row
    valid_until, superseded_at, pruned_at, superseded_by = (
        msgspec.json.decode(state) if state else (None,) * 4
    )
    return MemoryRecord(
        **fields_from(values),
        tier=tier,
        episode=episode,
        valid_until=optional_instant(valid_until),
        superseded_at=optional_instant(superseded_at),
        superseded_by=superseded_by,
        pruned_at=optional_instant(pruned_at),
        tags=tuple(sorted(tags.split("\n"))) if tags else (),
        edited_at=optional_instant(edited_at),
    )
