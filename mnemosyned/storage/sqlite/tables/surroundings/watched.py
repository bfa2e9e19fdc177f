"""Watched files as rows."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from mnemosyned.domain.ports.surroundings.watching import WatchedFile
from mnemosyned.domain.storing import rows
from mnemosyned.storage.sqlite.tables.rows import instant, instant_text

file_from = partial(rows.file_from, moment=instant)


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
