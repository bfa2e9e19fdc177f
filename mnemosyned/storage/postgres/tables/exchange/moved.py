"""Rows that an export leaves out and a move carries, as records and back as rows."""

from __future__ import annotations

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
from mnemosyned.domain.storing.rows import (
    ACTIVITY_COLUMNS,
    FILE_COLUMNS,
    file_from,
    hook_activity_from,
)
from mnemosyned.domain.timekeeping import Sighting
from mnemosyned.storage.postgres.database.session import Session
from mnemosyned.storage.postgres.tables.exchange.recoverable import (
    recoverable_records,
    restore_recoverable,
)
from mnemosyned.storage.postgres.tables.owners.owner import take_numbers
from mnemosyned.storage.postgres.tables.rows import storable, utc
from mnemosyned.storage.postgres.tables.surroundings.sightings import (
    keep_sighting,
    kept_sighting,
)
from mnemosyned.storage.postgres.tables.surroundings.watched import (
    INSERT_FILE,
    file_values,
)

_VECTORS = (
    "SELECT n.id, m.name, m.digest, v.vector FROM embedding AS v "
    "JOIN embedding_model AS m ON m.owner = v.owner AND m.number = v.model "
    "JOIN memory AS n ON n.owner = v.owner AND n.seq = v.memory_seq "
    "WHERE v.owner = %(owner)s ORDER BY v.memory_seq"
)
_INSERT_ACTIVITY = (
    f"INSERT INTO agent_activity (owner, {ACTIVITY_COLUMNS}) VALUES (%(owner)s, %(client)s, "
    "%(event)s, %(calls)s, %(stored)s, %(characters)s, %(failures)s, %(total_ms)s, "
    "%(slowest_ms)s, %(called_at)s, %(stored_at)s, %(informed_at)s, %(failed_at)s, "
    "%(failure)s) ON CONFLICT DO NOTHING"
)
_INSERT_MODEL = (
    "INSERT INTO embedding_model (owner, number, name, digest) "
    "SELECT o.owner, (SELECT coalesce(max(m.number), 0) + 1 FROM embedding_model AS m "
    "WHERE m.owner = %(owner)s), %(name)s, %(digest)s "
    "FROM owner AS o WHERE o.owner = %(owner)s ON CONFLICT DO NOTHING"
)
_INSERT_VECTOR = (
    "INSERT INTO embedding (owner, memory_seq, model, vector, version) "
    "SELECT n.owner, n.seq, m.number, %(vector)s, %(version)s FROM memory AS n "
    "JOIN embedding_model AS m ON m.owner = n.owner AND m.digest = %(digest)s "
    "WHERE n.owner = %(owner)s AND n.id = %(memory)s ON CONFLICT DO NOTHING"
)


def moved_records(session: Session) -> Iterator[MovedRecord]:
    """Read all of it, each record as it is asked for."""
    yield from recoverable_records(session)
    rows = session.stream(
        "SELECT path, added_at FROM watched_folder WHERE owner = %(owner)s ORDER BY path"
    )
    for path, added_at in rows:
        yield FollowedFolder(path=path, added_at=added_at)
    rows = session.stream(
        f"SELECT {FILE_COLUMNS} FROM watched_file WHERE owner = %(owner)s ORDER BY path"
    )
    yield from map(file_from, rows)
    yield from _activity(session)
    for id, model, digest, vector in session.stream(_VECTORS):
        yield KeptVector(memory=id, model=model, digest=digest, vector=bytes(vector))
    if sighting := kept_sighting(session):
        yield sighting


def _activity(session: Session) -> Iterator[HookActivity]:
    rows = session.stream(
        f"SELECT {ACTIVITY_COLUMNS} FROM agent_activity "
        "WHERE owner = %(owner)s ORDER BY client, event"
    )
    return map(hook_activity_from, rows)


# ------------------------------------------------------------------ back again


def _folder(session: Session, folder: FollowedFolder) -> Outcome:
    inserted = session.execute(
        "INSERT INTO watched_folder (owner, path, added_at) "
        "VALUES (%(owner)s, %(path)s, %(added_at)s) ON CONFLICT DO NOTHING",
        path=folder.path,
        added_at=utc(folder.added_at),
    )
    return bool(inserted.rowcount)


def _file(session: Session, state: WatchedFile) -> Outcome:
    inserted = session.execute(
        f"{INSERT_FILE} ON CONFLICT DO NOTHING", **file_values(state)
    )
    return bool(inserted.rowcount)


def _hook_activity(session: Session, activity: HookActivity) -> Outcome:
    moments = {
        name: moment and utc(moment)
        for name in ("called_at", "stored_at", "informed_at", "failed_at")
        for moment in [getattr(activity, name)]
    }
    inserted = session.execute(
        _INSERT_ACTIVITY,
        client=storable(activity.client),
        event=storable(activity.event),
        calls=activity.calls,
        stored=activity.stored,
        characters=activity.characters,
        failures=activity.failures,
        total_ms=activity.total_ms,
        slowest_ms=activity.slowest_ms,
        failure=storable(activity.failure),
        **moments,
    )
    return bool(inserted.rowcount)


def _vector(session: Session, vector: KeptVector) -> Outcome:
    """Keep the vector of a memory that is here and has none."""
    known = session.scalar(
        "SELECT 1 FROM embedding_model WHERE owner = %(owner)s AND digest = %(digest)s",
        digest=vector.digest,
    )
    if known is None:
        session.execute(_INSERT_MODEL, name=vector.model, digest=vector.digest)
    (version,) = take_numbers(session, "record", 1)
    inserted = session.execute(
        _INSERT_VECTOR,
        version=version,
        memory=vector.memory,
        digest=vector.digest,
        vector=vector.vector,
    )
    return bool(inserted.rowcount)


def _sighting(session: Session, sighting: Sighting) -> Outcome:
    if kept_sighting(session):
        return False
    keep_sighting(session, sighting)
    return True


MOVED: Mapping[type[Any], Callable[[Session, Any], Outcome]] = {
    RecoverableRecord: restore_recoverable,
    FollowedFolder: _folder,
    WatchedFile: _file,
    HookActivity: _hook_activity,
    KeptVector: _vector,
    Sighting: _sighting,
}
"""How each kind is stored."""
