"""Watched files as rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from mnemosyned.domain.ports.surroundings.watching import WatchedFile
from mnemosyned.storage.sqlite.tables.rows import instant, instant_text

FILE_COLUMNS = (
    "path, file, size, modified_ns, format, position, memories, stored, read_at"
)


def file_row(state: WatchedFile) -> tuple[Any, ...]:
    """Values for FILE_COLUMNS."""
    return (
        state.path,
        state.file,
        state.size,
        state.modified_ns,
        state.format,
        state.position,
        json.dumps(dict(state.memories)),
        state.stored,
        instant_text(state.read_at),
    )


def file_from(row: Sequence[Any]) -> WatchedFile:
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
        read_at=instant(read_at),
    )
