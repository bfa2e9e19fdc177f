"""Watched files as rows."""

from __future__ import annotations

import json

from mnemosyned.domain.ports.surroundings.watching import WatchedFile
from mnemosyned.storage.postgres.database.session import Row
from mnemosyned.storage.postgres.tables.rows import utc

_COLUMNS = (
    "path",
    "file",
    "size",
    "modified_ns",
    "format",
    "position",
    "memories",
    "stored",
    "read_at",
)
FILE_COLUMNS = ", ".join(_COLUMNS)
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


def file_from(row: Row) -> WatchedFile:
    """A file's state from FILE_COLUMNS."""
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
        read_at=read_at,
    )
