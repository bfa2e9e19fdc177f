"""Rows that an export leaves out and a move carries, as records and back as rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mnemosyned.domain.exchange import Outcome
from mnemosyned.domain.ports.archive.moving import (
    FollowedFolder,
    HookActivity,
    KeptVector,
    MovedRecord,
    RecoverableRecord,
)
from mnemosyned.domain.ports.surroundings.watching import WatchedFile
from mnemosyned.domain.storing.rows import ACTIVITY_COLUMNS, FILE_COLUMNS
from mnemosyned.domain.timekeeping import Sighting
from mnemosyned.storage.sqlite.tables.exchange.recoverable import (
    recoverable_records,
    restore_recoverable,
)
from mnemosyned.storage.sqlite.tables.rows import (
    instant,
    instant_text,
)
from mnemosyned.storage.sqlite.tables.surroundings.agents import hook_activity_from
from mnemosyned.storage.sqlite.tables.surroundings.sightings import (
    keep_sighting,
    kept_sighting,
)
from mnemosyned.storage.sqlite.tables.surroundings.watched import file_from, file_row


def moved_records(connection: sqlite3.Connection) -> Iterator[MovedRecord]:
    """Read all of it, each record as it is asked for."""
    yield from recoverable_records(connection)
    rows = connection.execute("SELECT path, added_at FROM watched_folder ORDER BY path")
    for path, added_at in rows:
        yield FollowedFolder(path=path, added_at=instant(added_at))
    rows = connection.execute(f"SELECT {FILE_COLUMNS} FROM watched_file ORDER BY path")
    yield from map(file_from, rows)
    yield from _activity(connection)
    yield from _vectors(connection)
    if sighting := kept_sighting(connection):
        yield sighting


def _activity(connection: sqlite3.Connection) -> Iterator[HookActivity]:
    rows = connection.execute(
        f"SELECT {ACTIVITY_COLUMNS} FROM agent_activity ORDER BY client, event"
    )
    return map(hook_activity_from, rows)


def _vectors(connection: sqlite3.Connection) -> Iterator[KeptVector]:
    rows = connection.execute(
        "SELECT coalesce((SELECT id FROM working_memory WHERE seq = v.memory_seq), "
        "(SELECT id FROM archive WHERE seq = v.memory_seq)), m.name, m.digest, v.vector "
        "FROM embedding AS v JOIN embedding_model AS m ON m.number = v.model "
        "ORDER BY v.memory_seq"
    )
    for id, model, digest, vector in rows:
        if id is not None:
            yield KeptVector(memory=id, model=model, digest=digest, vector=vector)


# ------------------------------------------------------------------ back again


def _folder(connection: sqlite3.Connection, folder: FollowedFolder) -> Outcome:
    inserted = connection.execute(
        "INSERT OR IGNORE INTO watched_folder VALUES (?, ?)",
        (folder.path, instant_text(folder.added_at)),
    )
    return bool(inserted.rowcount)


def _file(connection: sqlite3.Connection, state: WatchedFile) -> Outcome:
    inserted = connection.execute(
        f"INSERT OR IGNORE INTO watched_file ({FILE_COLUMNS}) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        file_row(state),
    )
    return bool(inserted.rowcount)


def _hook_activity(connection: sqlite3.Connection, activity: HookActivity) -> Outcome:
    moments = [
        moment and instant_text(moment)
        for moment in (activity.stored_at, activity.informed_at, activity.failed_at)
    ]
    inserted = connection.execute(
        f"INSERT OR IGNORE INTO agent_activity ({ACTIVITY_COLUMNS}) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            activity.client,
            activity.event,
            activity.calls,
            activity.stored,
            activity.characters,
            activity.failures,
            activity.total_ms,
            activity.slowest_ms,
            instant_text(activity.called_at),
            *moments,
            activity.failure,
        ),
    )
    return bool(inserted.rowcount)


def _vector(connection: sqlite3.Connection, vector: KeptVector) -> Outcome:
    """Keep the vector of a memory that is here and has none."""
    connection.execute(
        "INSERT OR IGNORE INTO embedding_model (name, digest) VALUES (?, ?)",
        (vector.model, vector.digest),
    )
    row = connection.execute(
        "SELECT seq FROM working_memory WHERE id = ? "
        "UNION ALL SELECT seq FROM archive WHERE id = ?",
        (vector.memory, vector.memory),
    ).fetchone()
    if row is None:
        return None
    inserted = connection.execute(
        "INSERT OR IGNORE INTO embedding (memory_seq, model, vector) "
        "SELECT ?, number, ? FROM embedding_model WHERE digest = ?",
        (row[0], vector.vector, vector.digest),
    )
    return bool(inserted.rowcount)


def _sighting(connection: sqlite3.Connection, sighting: Sighting) -> Outcome:
    if kept_sighting(connection):
        return False
    keep_sighting(connection, sighting)
    return True


MOVED: Mapping[type[Any], Callable[[sqlite3.Connection, Any], Outcome]] = {
    RecoverableRecord: restore_recoverable,
    FollowedFolder: _folder,
    WatchedFile: _file,
    HookActivity: _hook_activity,
    KeptVector: _vector,
    Sighting: _sighting,
}
"""How each kind is stored."""
