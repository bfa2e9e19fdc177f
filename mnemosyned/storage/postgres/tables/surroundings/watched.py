"""Watched files as rows."""

from __future__ import annotations

import json

from mnemosyned.domain.ports.surroundings.watching import WatchedFile
from mnemosyned.domain.storing.rows import FILE_COLUMNS
from mnemosyned.storage.postgres.tables.rows import utc

_COLUMNS = FILE_COLUMNS.split(", ")
INSERT_FILE = (
    f"INSERT INTO watched_file (owner, {FILE_COLUMNS}) "
    f"VALUES (%(owner)s, {', '.join(f'%({name})s' for name in _COLUMNS)})"
)
KEEP_FILE = f"{INSERT_FILE} ON CONFLICT (owner, path) DO UPDATE SET " + ", ".join(
    f"{name} = excluded.{name}" for name in _COLUMNS[1:]
)


def file_values(state: WatchedFile) -> dict[str, object]:
    """The values of INSERT_FILE and KEEP_FILE."""
    return {
        "path": state.path,
        "file": state.file,
        "size": state.size,
        "modified_ns": state.modified_ns,
        "format": state.format,
        "position": state.position,
        "memories": json.dumps(dict(state.memories)),
        "stored": state.stored,
        "read_at": utc(state.read_at),
    }
