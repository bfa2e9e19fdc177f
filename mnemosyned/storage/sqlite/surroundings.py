"""Agents' sessions and hook activity, watched folders and files, and the last trusted time of the clock."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from mnemosyned.memory import capture as limits, rows
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
)
from mnemosyned.memory.values import AgentActivity, Episode, MemoryRecord, Tier
from mnemosyned.storage.sqlite.rows import (
    ARCHIVE_FIELDS,
    MEMORY_FIELDS,
    episode_from,
    instant,
    instant_text,
    memory_from,
    optional_instant,
)
from mnemosyned.storage.sqlite.writer import Transactional, reads, writes, writes_lazily

session_from = partial(rows.session_from, moment=instant)
activity_from = partial(rows.activity_from, moment=instant)
hook_activity_from = partial(rows.hook_activity_from, moment=instant)


def projects_of(
    connection: sqlite3.Connection, sessions: Sequence[str]
) -> dict[str, str]:
    """The projects of those sessions that have one."""
    rows = connection.execute(
        "SELECT session_id, project FROM agent_session WHERE project != '' "
        "AND session_id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(sessions)),),
    )
    return dict(rows.fetchall())


def session_row(session: AgentSession) -> tuple[Any, ...]:
    """Values for SESSION_COLUMNS."""
    informed = session.informed_at
    return (
        session.session,
        session.client,
        session.conversation,
        session.project,
        session.directory,
        session.transcript,
        session.file,
        session.position,
        instant_text(session.started_at),
        instant_text(session.seen_at),
        instant_text(informed) if informed else None,
        json.dumps(session.shown[-SHOWN_MAX:]),
    )


class SqliteAgents(Transactional, AgentStore):
    """An `AgentStore` on one SQLite file.

    Nothing of it waits for the disk: what a failure of power takes back is read or counted again.
    """

    @reads
    def session(
        self, connection: sqlite3.Connection, session: str
    ) -> AgentSession | None:
        row = connection.execute(
            f"SELECT {SESSION_COLUMNS} FROM agent_session WHERE session_id = ?",
            (session,),
        ).fetchone()
        return session_from(row) if row else None

    @writes_lazily
    def keep_session(
        self, connection: sqlite3.Connection, session: AgentSession
    ) -> None:
        connection.execute(
            f"INSERT INTO agent_session ({SESSION_COLUMNS}) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (session_id) DO UPDATE SET project = excluded.project, "
            "directory = excluded.directory, transcript = excluded.transcript, "
            "seen_at = excluded.seen_at",
            session_row(session),
        )
        connection.execute(
            "DELETE FROM agent_session WHERE session_id IN (SELECT session_id "
            "FROM agent_session ORDER BY seen_at DESC LIMIT -1 OFFSET ?)",
            (limits.SESSIONS_MAX,),
        )

    @writes_lazily
    def advance(
        self, connection: sqlite3.Connection, session: str, position: int, file: str
    ) -> None:
        connection.execute(
            "UPDATE agent_session SET position = ?, file = ? WHERE session_id = ?",
            (position, file, session),
        )

    @writes_lazily
    def note_shown(
        self,
        connection: sqlite3.Connection,
        session: str,
        ids: Sequence[str],
        *,
        informed_at: datetime | None = None,
    ) -> None:
        row = connection.execute(
            "SELECT shown FROM agent_session WHERE session_id = ?", (session,)
        ).fetchone()
        if row is None:
            return
        shown = list(dict.fromkeys([*json.loads(row[0]), *ids]))[-SHOWN_MAX:]
        connection.execute(
            "UPDATE agent_session SET shown = ?, informed_at = ifnull(?, informed_at) "
            "WHERE session_id = ?",
            (
                json.dumps(shown),
                instant_text(informed_at) if informed_at else None,
                session,
            ),
        )

    @reads
    def latest(
        self, connection: sqlite3.Connection, sessions: Sequence[str], limit: int
    ) -> list[MemoryRecord]:
        names = json.dumps(list(sessions))
        among = "session_id IN (SELECT value FROM json_each(?))"
        working = connection.execute(
            f"SELECT {MEMORY_FIELDS} FROM working_memory WHERE {among} "
            "ORDER BY created_at DESC, seq DESC LIMIT ?",
            (names, limit),
        )
        memories = [memory_from(row, tier=Tier.WORKING) for row in working]
        archived = connection.execute(
            f"SELECT e.id, {ARCHIVE_FIELDS} FROM episodic_memory AS e "
            "CROSS JOIN archive AS a ON a.episode_seq = e.seq "
            f"WHERE e.{among} AND e.level = 0 "
            "ORDER BY e.covers_from DESC, a.created_at DESC, a.seq DESC LIMIT ?",
            (names, limit),
        )
        memories += [
            memory_from(row[1:], tier=Tier.ARCHIVE, episode=row[0]) for row in archived
        ]
        memories.sort(key=lambda memory: memory.created_at, reverse=True)
        return memories[:limit]

    @reads
    def latest_episode(
        self, connection: sqlite3.Connection, session: str
    ) -> Episode | None:
        row = connection.execute(
            f"SELECT {EPISODE_COLUMNS} FROM episodic_memory "
            "WHERE session_id = ? AND level = 0 ORDER BY covers_from DESC LIMIT 1",
            (session,),
        ).fetchone()
        return episode_from(row) if row else None

    @reads
    def sessions_of(
        self, connection: sqlite3.Connection, project: str, limit: int
    ) -> list[str]:
        if not project:
            return []
        rows = connection.execute(
            "SELECT session_id FROM agent_session AS s WHERE project = ? AND ("
            "EXISTS (SELECT 1 FROM working_memory AS w WHERE +w.session_id = +s.session_id) OR "
            "EXISTS (SELECT 1 FROM episodic_memory AS e WHERE e.session_id = s.session_id)) "
            "ORDER BY seen_at DESC LIMIT ?",
            (project, limit),
        )
        return [session for (session,) in rows]

    @reads
    def projects_of(
        self, connection: sqlite3.Connection, sessions: Sequence[str]
    ) -> dict[str, str]:
        return projects_of(connection, sessions)

    @reads
    def recent(self, connection: sqlite3.Connection, limit: int) -> list[AgentSession]:
        rows = connection.execute(
            f"SELECT {SESSION_COLUMNS} FROM agent_session WHERE transcript != '' "
            "ORDER BY seen_at DESC LIMIT ?",
            (limit,),
        )
        return [session_from(row) for row in rows]

    @reads
    def unknown(self, connection: sqlite3.Connection, ids: Sequence[str]) -> list[str]:
        among = "id IN (SELECT value FROM json_each(?))"
        known = {
            id
            for (id,) in connection.execute(
                f"SELECT id FROM working_memory WHERE {among} "
                f"UNION ALL SELECT id FROM archive WHERE {among} "
                f"UNION ALL SELECT id FROM agent_forgotten WHERE {among}",
                (json.dumps(list(ids)),) * 3,
            )
        }
        return [id for id in ids if id not in known]

    @writes_lazily
    def count(self, connection: sqlite3.Connection, call: AgentCall) -> None:
        _count(connection, call)

    @reads
    def activity(self, connection: sqlite3.Connection) -> list[AgentActivity]:
        rows = connection.execute(
            f"SELECT {ACTIVITY_COLUMNS} FROM agent_activity ORDER BY client, event LIMIT ?",
            (CLIENTS_MAX,),
        )
        return [activity_from(row) for row in rows]


def _count(connection: sqlite3.Connection, call: AgentCall) -> None:
    called = instant_text(call.called_at)
    connection.execute(
        f"INSERT INTO agent_activity ({ACTIVITY_COLUMNS}) "
        "VALUES (?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (client, event) DO UPDATE SET calls = calls + 1, "
        "stored = stored + excluded.stored, characters = characters + excluded.characters, "
        "failures = failures + excluded.failures, total_ms = total_ms + excluded.total_ms, "
        "slowest_ms = max(slowest_ms, excluded.slowest_ms), called_at = excluded.called_at, "
        "stored_at = ifnull(excluded.stored_at, stored_at), "
        "informed_at = ifnull(excluded.informed_at, informed_at), "
        "failed_at = ifnull(excluded.failed_at, failed_at), "
        "failure = iif(excluded.failed_at IS NULL, failure, excluded.failure)",
        (
            call.client,
            call.event,
            call.stored,
            call.characters,
            int(bool(call.failure)),
            call.duration_ms,
            call.duration_ms,
            called,
            called if call.stored else None,
            called if call.characters else None,
            called if call.failure else None,
            call.failure[:FAILURE_CHARS_MAX],
        ),
    )
    connection.execute(
        "DELETE FROM agent_activity WHERE (client, event) IN (SELECT client, event "
        "FROM agent_activity ORDER BY called_at DESC LIMIT -1 OFFSET ?)",
        (CLIENTS_MAX,),
    )


def kept_sighting(connection: sqlite3.Connection) -> Sighting | None:
    """The last sighting that was kept."""
    row = connection.execute(
        "SELECT moment, boot, uptime_s, slack_s, slack_from_s FROM clock_seen"
    ).fetchone()
    if row is None:
        return None
    moment, boot, uptime_s, slack_s, slack_from_s = row
    return Sighting(
        moment=instant(moment),
        boot=boot,
        uptime_s=uptime_s,
        slack=timedelta(seconds=slack_s),
        slack_from_s=slack_from_s,
    )


def keep_sighting(connection: sqlite3.Connection, sighting: Sighting) -> None:
    """Replace the sighting that is kept."""
    connection.execute(
        "INSERT OR REPLACE INTO clock_seen VALUES (1, ?, ?, ?, ?, ?)",
        (
            instant_text(sighting.moment),
            sighting.boot,
            sighting.uptime_s,
            sighting.slack.total_seconds(),
            sighting.slack_from_s,
        ),
    )


UNKNOWN_START = ""
"""Which start of the machine it was is not known of what was written before sightings were kept."""


class SqliteClock(Transactional, ClockStore):
    """A `ClockStore` on one SQLite file."""

    @reads
    def last_sighting(self, connection: sqlite3.Connection) -> Sighting | None:
        if sighting := kept_sighting(connection):
            return sighting
        (newest,) = connection.execute(
            "SELECT max(created_at) FROM (SELECT max(created_at) AS created_at FROM working_memory "
            "UNION ALL SELECT created_at FROM consolidation_log "
            "WHERE id = (SELECT max(id) FROM consolidation_log))"
        ).fetchone()
        if newest is None:
            return None
        return Sighting(moment=instant(newest), boot=UNKNOWN_START, uptime_s=0.0)

    @writes
    def keep_sighting(self, connection: sqlite3.Connection, sighting: Sighting) -> None:
        keep_sighting(connection, sighting)

    def note_future(self, *, now: datetime) -> None:
        if self._has_future(now):
            self._note_future(now)

    @reads
    def _has_future(self, connection: sqlite3.Connection, now: datetime) -> bool:
        return (
            connection.execute(
                "SELECT 1 FROM working_memory WHERE created_at > ? AND seq NOT IN "
                "(SELECT memory_seq FROM working_state WHERE future_since IS NOT NULL) LIMIT 1",
                (instant_text(now),),
            ).fetchone()
            is not None
        )

    @writes
    def _note_future(self, connection: sqlite3.Connection, now: datetime) -> None:
        connection.execute(
            "INSERT INTO working_state (memory_seq, future_since) "
            "SELECT seq, ? FROM working_memory WHERE created_at > ? "
            "ON CONFLICT (memory_seq) DO UPDATE SET future_since = ifnull(future_since, excluded.future_since)",
            (instant_text(now), instant_text(now)),
        )


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


_BELOW = "(path = ? OR (path > ? || '/' AND path < ? || '0'))"
"""The path itself, and all that begins with it and a slash, which the digit follows."""


class SqliteWatches(Transactional, WatchStore):
    """A `WatchStore` on one SQLite file.

    The state of files does not wait for the disk: what a failure of power takes back is read again.
    """

    @reads
    def folders(self, connection: sqlite3.Connection) -> list[str]:
        rows = connection.execute(
            "SELECT path FROM watched_folder ORDER BY path LIMIT ?", (FOLDERS_MAX,)
        )
        return [path for (path,) in rows]

    @writes
    def add_folder(
        self, connection: sqlite3.Connection, path: str, added_at: datetime
    ) -> None:
        connection.execute(
            "INSERT OR IGNORE INTO watched_folder VALUES (?, ?)",
            (path, instant_text(added_at)),
        )

    @writes
    def remove_folder(self, connection: sqlite3.Connection, path: str) -> bool:
        removed = connection.execute(
            "DELETE FROM watched_folder WHERE path = ?", (path,)
        )
        connection.execute(f"DELETE FROM watched_file WHERE {_BELOW}", (path,) * 3)
        return removed.rowcount > 0

    @reads
    def file(self, connection: sqlite3.Connection, path: str) -> WatchedFile | None:
        row = connection.execute(
            f"SELECT {FILE_COLUMNS} FROM watched_file WHERE path = ?", (path,)
        ).fetchone()
        return file_from(row) if row else None

    @reads
    def moved_from(
        self, connection: sqlite3.Connection, file: str
    ) -> list[WatchedFile]:
        rows = connection.execute(
            f"SELECT {FILE_COLUMNS} FROM watched_file WHERE file = ? LIMIT 10", (file,)
        )
        return list(map(file_from, rows))

    @writes_lazily
    def keep_file(self, connection: sqlite3.Connection, state: WatchedFile) -> None:
        connection.execute(
            f"INSERT OR REPLACE INTO watched_file ({FILE_COLUMNS}) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            file_row(state),
        )

    @writes_lazily
    def drop_files(self, connection: sqlite3.Connection, paths: Sequence[str]) -> None:
        connection.execute(
            "DELETE FROM watched_file WHERE path IN (SELECT value FROM json_each(?))",
            (json.dumps(list(paths)),),
        )

    @reads
    def states(
        self, connection: sqlite3.Connection, folder: str
    ) -> dict[str, tuple[int, int]]:
        rows = connection.execute(
            f"SELECT path, size, modified_ns FROM watched_file WHERE {_BELOW} LIMIT ?",
            (folder, folder, folder, FILES_MAX),
        )
        return {path: (size, modified) for path, size, modified in rows}

    @reads
    def totals(self, connection: sqlite3.Connection, folder: str) -> FolderTotals:
        files, stored, read_at = connection.execute(
            "SELECT count(*), ifnull(sum(stored), 0), max(read_at) FROM watched_file "
            f"WHERE {_BELOW} AND format != ''",
            (folder,) * 3,
        ).fetchone()
        return FolderTotals(files, stored, optional_instant(read_at))
