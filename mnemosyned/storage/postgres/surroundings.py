"""Agents' sessions and hook activity, watched folders and files, and the last trusted time of the clock."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta

from mnemosyned.memory import capture as limits
from mnemosyned.memory.capture import (
    CLIENTS_MAX,
    FAILURE_CHARS_MAX,
    FILES_MAX,
    FOLDERS_MAX,
    SHOWN_MAX,
    AgentCall,
    AgentSession,
    AgentStore,
    FolderTotals,
    WatchedFile,
    WatchStore,
)
from mnemosyned.memory.clock import ClockStore, Sighting
from mnemosyned.memory.rows import (
    ACTIVITY_COLUMNS,
    EPISODE_COLUMNS,
    FILE_COLUMNS,
    SESSION_COLUMNS,
    activity_from,
    episode_from,
    file_from,
    session_from,
)
from mnemosyned.memory.values import AgentActivity, Episode, MemoryRecord
from mnemosyned.storage.postgres.memories import memories_at
from mnemosyned.storage.postgres.pool import Transactional, reads, writes, writes_lazily
from mnemosyned.storage.postgres.rows import storable, utc
from mnemosyned.storage.postgres.session import Session

_INSERT = (
    f"INSERT INTO agent_session (owner, {SESSION_COLUMNS}) VALUES (%(owner)s, %(session)s, "
    "%(client)s, %(conversation)s, %(project)s, %(directory)s, %(transcript)s, %(file)s, "
    "%(position)s, %(started_at)s, %(seen_at)s, %(informed_at)s, %(shown)s) "
    "ON CONFLICT (owner, session_id) DO "
)
_KEEP = (
    f"{_INSERT} UPDATE SET project = excluded.project, "
    "directory = excluded.directory, transcript = excluded.transcript, "
    "seen_at = excluded.seen_at"
)
_DROP_SESSIONS = (
    "DELETE FROM agent_session WHERE owner = %(owner)s AND session_id IN ("
    "SELECT session_id FROM agent_session WHERE owner = %(owner)s "
    "ORDER BY seen_at DESC OFFSET %(most)s)"
)
_COUNT = (
    f"INSERT INTO agent_activity AS a (owner, {ACTIVITY_COLUMNS}) VALUES (%(owner)s, "
    "%(client)s, %(event)s, 1, %(stored)s, %(characters)s, %(failures)s, %(duration_ms)s, "
    "%(duration_ms)s, %(called_at)s, %(stored_at)s, %(informed_at)s, %(failed_at)s, "
    "%(failure)s) ON CONFLICT (owner, client, event) DO UPDATE SET calls = a.calls + 1, "
    "stored = a.stored + excluded.stored, "
    "characters = a.characters + excluded.characters, "
    "failures = a.failures + excluded.failures, "
    "total_ms = a.total_ms + excluded.total_ms, "
    "slowest_ms = greatest(a.slowest_ms, excluded.slowest_ms), "
    "called_at = excluded.called_at, "
    "stored_at = coalesce(excluded.stored_at, a.stored_at), "
    "informed_at = coalesce(excluded.informed_at, a.informed_at), "
    "failed_at = coalesce(excluded.failed_at, a.failed_at), "
    "failure = CASE WHEN excluded.failed_at IS NULL THEN a.failure ELSE excluded.failure END"
)
# Not by a pair of columns, which Citus cannot hand on under row-level security.
_DROP_ACTIVITY = (
    "DELETE FROM agent_activity WHERE owner = %(owner)s AND event || ' ' || client IN ("
    "SELECT event || ' ' || client FROM agent_activity WHERE owner = %(owner)s "
    "ORDER BY called_at DESC OFFSET %(most)s)"
)


def insert_session(session: Session, told: AgentSession) -> None:
    """Add an agent's session, or replace what changes in it; the last seen are kept."""
    session.execute(_KEEP, **_session_values(told))
    session.execute(_DROP_SESSIONS, most=limits.SESSIONS_MAX)


def restore_session(session: Session, told: AgentSession) -> bool:
    """Add an agent's session as it was, unless it is there; tell whether it was added."""
    added = session.execute(f"{_INSERT} NOTHING", **_session_values(told))
    return bool(added.rowcount)


def _session_values(told: AgentSession) -> dict[str, object]:
    return {
        "session": storable(told.session),
        "client": storable(told.client),
        "conversation": storable(told.conversation),
        "project": storable(told.project),
        "directory": storable(told.directory),
        "transcript": storable(told.transcript),
        "file": storable(told.file),
        "position": told.position,
        "started_at": utc(told.started_at),
        "seen_at": utc(told.seen_at),
        "informed_at": utc(told.informed_at) if told.informed_at else None,
        "shown": json.dumps(told.shown[-SHOWN_MAX:]),
    }


def count_call(session: Session, call: AgentCall) -> None:
    """Add a call to the activity of its client and event; the last called are kept."""
    called = utc(call.called_at)
    session.execute(
        _COUNT,
        client=storable(call.client),
        event=storable(call.event),
        stored=call.stored,
        characters=call.characters,
        failures=int(bool(call.failure)),
        duration_ms=call.duration_ms,
        called_at=called,
        stored_at=called if call.stored else None,
        informed_at=called if call.characters else None,
        failed_at=called if call.failure else None,
        failure=storable(call.failure[:FAILURE_CHARS_MAX]),
    )
    session.execute(_DROP_ACTIVITY, most=CLIENTS_MAX)


_LATEST_WORKING = (
    "SELECT f.seq FROM fresh AS f JOIN memory AS m ON m.owner = f.owner AND m.seq = f.seq "
    "WHERE f.owner = %(owner)s AND m.session_id = ANY(%(sessions)s::text[]) "
    "ORDER BY f.created_at DESC, f.seq DESC LIMIT %(limit)s"
)
_LATEST_ARCHIVED = (
    "SELECT p.seq FROM episode AS e "
    "JOIN placed AS p ON p.owner = e.owner AND p.episode_seq = e.seq "
    "JOIN memory AS m ON m.owner = p.owner AND m.seq = p.seq "
    "WHERE e.owner = %(owner)s AND e.session_id = ANY(%(sessions)s::text[]) AND e.level = 0 "
    "ORDER BY e.covers_from DESC, m.created_at DESC, m.seq DESC LIMIT %(limit)s"
)
_KNOWN = " UNION ALL ".join(
    f"SELECT id FROM {table} WHERE owner = %(owner)s AND id = ANY(%(ids)s::text[])"
    for table in ("memory", "agent_forgotten")
)


class PostgresAgents(Transactional, AgentStore):
    """An `AgentStore` of one owner in PostgreSQL.

    Nothing of it waits for the disk: what a failure of power takes back is read or counted again.
    """

    @reads
    def session(self, session: Session, name: str) -> AgentSession | None:
        row = session.execute(
            f"SELECT {SESSION_COLUMNS} FROM agent_session "
            "WHERE owner = %(owner)s AND session_id = %(name)s",
            name=storable(name),
        ).fetchone()
        return session_from(row) if row else None

    @writes_lazily
    def keep_session(self, session: Session, told: AgentSession) -> None:
        insert_session(session, told)

    @writes_lazily
    def advance(self, session: Session, name: str, position: int, file: str) -> None:
        session.execute(
            "UPDATE agent_session SET position = %(position)s, file = %(file)s "
            "WHERE owner = %(owner)s AND session_id = %(name)s",
            name=storable(name),
            position=position,
            file=storable(file),
        )

    @writes_lazily
    def note_shown(
        self,
        session: Session,
        name: str,
        ids: Sequence[str],
        *,
        informed_at: datetime | None = None,
    ) -> None:
        before = session.scalar(
            "SELECT shown FROM agent_session "
            "WHERE owner = %(owner)s AND session_id = %(name)s",
            name=storable(name),
        )
        if before is None:
            return
        shown = list(dict.fromkeys([*json.loads(before), *ids]))[-SHOWN_MAX:]
        session.execute(
            "UPDATE agent_session SET shown = %(shown)s, "
            "informed_at = coalesce(%(informed_at)s::timestamptz, informed_at) "
            "WHERE owner = %(owner)s AND session_id = %(name)s",
            name=storable(name),
            shown=json.dumps(shown),
            informed_at=utc(informed_at) if informed_at else None,
        )

    @reads
    def latest(
        self, session: Session, sessions: Sequence[str], limit: int
    ) -> list[MemoryRecord]:
        seqs: list[int] = []
        for statement in (_LATEST_WORKING, _LATEST_ARCHIVED):
            rows = session.execute(
                statement, sessions=list(map(storable, sessions)), limit=limit
            )
            seqs += [seq for (seq,) in rows]
        found = memories_at(session, seqs)
        memories = [found[seq] for seq in seqs]
        memories.sort(key=lambda memory: memory.created_at, reverse=True)
        return memories[:limit]

    @reads
    def latest_episode(self, session: Session, name: str) -> Episode | None:
        row = session.execute(
            f"SELECT {EPISODE_COLUMNS} FROM episode WHERE owner = %(owner)s "
            "AND session_id = %(name)s AND level = 0 ORDER BY covers_from DESC LIMIT 1",
            name=storable(name),
        ).fetchone()
        return episode_from(row) if row else None

    @reads
    def sessions_of(self, session: Session, project: str, limit: int) -> list[str]:
        if not project:
            return []
        rows = session.execute(
            "SELECT session_id FROM agent_session AS s "
            "WHERE s.owner = %(owner)s AND project = %(project)s AND EXISTS ("
            "SELECT 1 FROM memory AS m "
            "WHERE m.owner = %(owner)s AND m.session_id = s.session_id) "
            "ORDER BY seen_at DESC LIMIT %(limit)s",
            project=storable(project),
            limit=limit,
        )
        return [name for (name,) in rows]

    @reads
    def projects_of(self, session: Session, sessions: Sequence[str]) -> dict[str, str]:
        rows = session.execute(
            "SELECT session_id, project FROM agent_session "
            "WHERE owner = %(owner)s AND session_id = ANY(%(sessions)s::text[])",
            sessions=list(map(storable, sessions)),
        )
        return dict(rows.fetchall())

    @reads
    def recent(self, session: Session, limit: int) -> list[AgentSession]:
        rows = session.execute(
            f"SELECT {SESSION_COLUMNS} FROM agent_session "
            "WHERE owner = %(owner)s AND transcript != '' "
            "ORDER BY seen_at DESC LIMIT %(limit)s",
            limit=limit,
        )
        return list(map(session_from, rows))

    @reads
    def unknown(self, session: Session, ids: Sequence[str]) -> list[str]:
        known = {id for (id,) in session.execute(_KNOWN, ids=list(map(storable, ids)))}
        return [id for id in ids if id not in known]

    @writes_lazily
    def count(self, session: Session, call: AgentCall) -> None:
        count_call(session, call)

    @reads
    def activity(self, session: Session) -> list[AgentActivity]:
        rows = session.execute(
            f"SELECT {ACTIVITY_COLUMNS} FROM agent_activity WHERE owner = %(owner)s "
            "ORDER BY client, event LIMIT %(most)s",
            most=CLIENTS_MAX,
        )
        return list(map(activity_from, rows))


def kept_sighting(session: Session) -> Sighting | None:
    """The last sighting that was kept."""
    row = session.execute(
        "SELECT moment, boot, uptime_s, slack_s, slack_from_s FROM clock_seen "
        "WHERE owner = %(owner)s"
    ).fetchone()
    if row is None:
        return None
    moment, boot, uptime_s, slack_s, slack_from_s = row
    return Sighting(
        moment=moment,
        boot=boot,
        uptime_s=uptime_s,
        slack=timedelta(seconds=slack_s),
        slack_from_s=slack_from_s,
    )


def keep_sighting(session: Session, sighting: Sighting) -> None:
    """Replace the sighting that is kept."""
    session.execute(
        "INSERT INTO clock_seen (owner, moment, boot, uptime_s, slack_s, slack_from_s) "
        "VALUES (%(owner)s, %(moment)s, %(boot)s, %(uptime_s)s, %(slack_s)s, "
        "%(slack_from_s)s) ON CONFLICT (owner) DO UPDATE SET moment = excluded.moment, "
        "boot = excluded.boot, uptime_s = excluded.uptime_s, slack_s = excluded.slack_s, "
        "slack_from_s = excluded.slack_from_s",
        moment=utc(sighting.moment),
        boot=sighting.boot,
        uptime_s=sighting.uptime_s,
        slack_s=sighting.slack.total_seconds(),
        slack_from_s=sighting.slack_from_s,
    )


UNKNOWN_START = ""
"""Which start of the machine it was is not known of what was written before sightings were kept."""
_NEWEST = (
    "SELECT max(moment) FROM ("
    "SELECT max(created_at) AS moment FROM fresh WHERE owner = %(owner)s UNION ALL "
    "(SELECT created_at FROM consolidation_log WHERE owner = %(owner)s "
    "ORDER BY id DESC LIMIT 1)) AS known"
)
_FUTURE = (
    "FROM fresh AS f WHERE f.owner = %(owner)s AND f.created_at > %(now)s "
    "AND NOT EXISTS (SELECT 1 FROM working_state AS s WHERE s.owner = %(owner)s "
    "AND s.memory_seq = f.seq AND s.future_since IS NOT NULL)"
)
"""Working memories dated in the future of which it is not known yet."""


class PostgresClock(Transactional, ClockStore):
    """A `ClockStore` of one owner in PostgreSQL."""

    @reads
    def last_sighting(self, session: Session) -> Sighting | None:
        if sighting := kept_sighting(session):
            return sighting
        newest = session.scalar(_NEWEST)
        if newest is None:
            return None
        return Sighting(moment=newest, boot=UNKNOWN_START, uptime_s=0.0)

    @writes
    def keep_sighting(self, session: Session, sighting: Sighting) -> None:
        keep_sighting(session, sighting)

    def note_future(self, *, now: datetime) -> None:
        if self._has_future(now):
            self._note_future(now)

    @reads
    def _has_future(self, session: Session, now: datetime) -> bool:
        return session.scalar(f"SELECT 1 {_FUTURE} LIMIT 1", now=utc(now)) is not None

    @writes
    def _note_future(self, session: Session, now: datetime) -> None:
        session.execute(
            "INSERT INTO working_state (owner, memory_seq, future_since) "
            f"SELECT f.owner, f.seq, %(now)s {_FUTURE} "
            "ON CONFLICT (owner, memory_seq) DO UPDATE SET future_since = excluded.future_since",
            now=utc(now),
        )


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


MOVED_MAX = 10
"""Files of one device and inode that are read."""
_BELOW = (
    "owner = %(owner)s AND (path = %(path)s::text "
    "OR (path > %(path)s::text || '/' AND path < %(path)s::text || '0'))"
)
"""The path itself, and all that begins with it and a slash, which the digit follows."""


class PostgresWatches(Transactional, WatchStore):
    """A `WatchStore` of one owner in PostgreSQL.

    The state of files does not wait for the disk: what a failure of power takes back is read again.
    """

    @reads
    def folders(self, session: Session) -> list[str]:
        rows = session.execute(
            "SELECT path FROM watched_folder WHERE owner = %(owner)s "
            "ORDER BY path LIMIT %(most)s",
            most=FOLDERS_MAX,
        )
        return [path for (path,) in rows]

    @writes
    def add_folder(self, session: Session, path: str, added_at: datetime) -> None:
        session.execute(
            "INSERT INTO watched_folder (owner, path, added_at) "
            "VALUES (%(owner)s, %(path)s, %(added_at)s) ON CONFLICT DO NOTHING",
            path=path,
            added_at=utc(added_at),
        )

    @writes
    def remove_folder(self, session: Session, path: str) -> bool:
        removed = session.execute(
            "DELETE FROM watched_folder WHERE owner = %(owner)s AND path = %(path)s",
            path=path,
        )
        session.execute(f"DELETE FROM watched_file WHERE {_BELOW}", path=path)
        return removed.rowcount > 0

    @reads
    def file(self, session: Session, path: str) -> WatchedFile | None:
        row = session.execute(
            f"SELECT {FILE_COLUMNS} FROM watched_file WHERE owner = %(owner)s AND path = %(path)s",
            path=path,
        ).fetchone()
        return file_from(row) if row else None

    @reads
    def moved_from(self, session: Session, file: str) -> list[WatchedFile]:
        rows = session.execute(
            f"SELECT {FILE_COLUMNS} FROM watched_file "
            "WHERE owner = %(owner)s AND file = %(file)s LIMIT %(most)s",
            file=file,
            most=MOVED_MAX,
        )
        return list(map(file_from, rows))

    @writes_lazily
    def keep_file(self, session: Session, state: WatchedFile) -> None:
        session.execute(KEEP_FILE, **file_values(state))

    @writes_lazily
    def drop_files(self, session: Session, paths: Sequence[str]) -> None:
        session.execute(
            "DELETE FROM watched_file "
            "WHERE owner = %(owner)s AND path = ANY(%(paths)s::text[])",
            paths=list(paths),
        )

    @reads
    def states(self, session: Session, folder: str) -> dict[str, tuple[int, int]]:
        rows = session.execute(
            f"SELECT path, size, modified_ns FROM watched_file WHERE {_BELOW} "
            "LIMIT %(most)s",
            path=folder,
            most=FILES_MAX,
        )
        return {path: (size, modified) for path, size, modified in rows}

    @reads
    def totals(self, session: Session, folder: str) -> FolderTotals:
        row = session.execute(
            "SELECT count(*), coalesce(sum(stored), 0)::bigint, max(read_at) "
            f"FROM watched_file WHERE {_BELOW} AND format != ''",
            path=folder,
        ).fetchone()
        files, stored, read_at = row or (0, 0, None)
        return FolderTotals(files, stored, read_at)
