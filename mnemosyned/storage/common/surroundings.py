"""Agents' sessions and hook activity, watched folders and files, and the last trusted time of the clock."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime
from itertools import chain

from mnemosyned.memory import capture, clock, exchange, values
from mnemosyned.storage.common import rows
from mnemosyned.storage.common.session import (
    UNLESS_KNOWN,
    CommonSession,
    StorePart,
    as_method,
    instant,
    optional_instant,
    reads,
    writes,
    writes_lazily,
)

_KEEP_SESSION = (
    "ON CONFLICT (owner, session_id) DO UPDATE SET project = excluded.project, "
    "directory = excluded.directory, transcript = excluded.transcript, "
    "seen_at = excluded.seen_at"
)
_COUNT_CALL = (
    "ON CONFLICT (owner, client, event) DO UPDATE SET calls = agent_activity.calls + 1, "
    "stored = agent_activity.stored + excluded.stored, "
    "characters = agent_activity.characters + excluded.characters, "
    "failures = agent_activity.failures + excluded.failures, "
    "total_ms = agent_activity.total_ms + excluded.total_ms, "
    "slowest_ms = greatest(agent_activity.slowest_ms, excluded.slowest_ms), "
    "called_at = excluded.called_at, "
    "stored_at = coalesce(excluded.stored_at, agent_activity.stored_at), "
    "informed_at = coalesce(excluded.informed_at, agent_activity.informed_at), "
    "failed_at = coalesce(excluded.failed_at, agent_activity.failed_at), "
    "failure = CASE WHEN excluded.failed_at IS NULL THEN agent_activity.failure ELSE excluded.failure END"
)


def projects_of(session: CommonSession, names: Sequence[str]) -> dict[str, str]:
    """Return the projects of agents' sessions by session name; sessions without a project are left out."""
    sessions = session.select(
        "agent_session", "session_id, project", "AND project != ''", session_id=names
    )
    return dict(sessions.fetchall())


_LATEST_WORKING = (
    "SELECT f.seq FROM fresh AS f JOIN memory AS m ON m.owner = f.owner AND m.seq = f.seq "
    "WHERE f.owner = %(owner)s AND m.session_id = ANY(%(names)s::text[]) "
    "AND NOT m.role = ANY(%(without)s::text[]) ORDER BY f.created_at DESC, f.seq DESC LIMIT %(limit)s"
)
_LATEST_ARCHIVED = (
    "SELECT p.seq FROM episode AS e "
    "JOIN placed AS p ON p.owner = e.owner AND p.episode_seq = e.seq "
    "JOIN memory AS m ON m.owner = p.owner AND m.seq = p.seq "
    "WHERE e.owner = %(owner)s AND e.session_id = ANY(%(names)s::text[]) AND e.level = 0 "
    "AND NOT m.role = ANY(%(without)s::text[]) "
    "ORDER BY e.covers_from DESC, m.created_at DESC, m.seq DESC LIMIT %(limit)s"
)


def _latest_positions(
    session: CommonSession,
    names: Sequence[str],
    limit: int,
    *,
    without: str | None = None,
) -> list[int]:
    """Return row numbers of each tier's newest `limit` memories in sessions, except of the role `without`."""
    parameters = {"names": list(names), "without": [] if without is None else [without]}
    statements = (_LATEST_WORKING, _LATEST_ARCHIVED)
    found = (session.column(each, limit=limit, **parameters) for each in statements)
    return list(chain.from_iterable(found))


def project_sessions(session: CommonSession, project: str, limit: int) -> list[str]:
    """Return up to `limit` sessions of a project, also those without memories, last seen first."""
    order = f"ORDER BY seen_at DESC LIMIT {limit}"
    return session.select_column("agent_session", "session_id", order, project=project)


class AgentStore(StorePart):
    """Store of agents' sessions, the newest thousands, and of the counts of their hooks' calls.

    No write waits for the disk: what a power failure undoes is read or counted again.
    """

    @reads
    def session(self, session: CommonSession, name: str) -> capture.AgentSession | None:
        """Return the agent's session with this name; None if it is unknown."""
        found = rows.SESSIONS.find(session, "AND session_id = %(name)s", name=name)
        return found[0] if found else None

    @writes_lazily
    def keep_session(
        self,
        session: CommonSession,
        agent: capture.AgentSession,
        former: Sequence[str] = (),
        root: str = "",
    ) -> None:
        """Insert a session, or update project, directory, transcript and time; drop the oldest sessions.

        Other sessions of a former project, with their injections, get this session's project: all those with
        the first of the `former` keys, and those with another of these keys whose directory is in `root`.
        """
        moved = []
        if former:
            columns = "session_id, project, directory"
            moved = [
                name
                for name, key, place in session.select(
                    "agent_session", columns, project=list(former)
                ).fetchall()
                if key == former[0] or (root and f"{place}/".startswith(f"{root}/"))
            ]
        for table in ("agent_session", "injection") if moved else ():
            session.update(table, {"project": agent.project}, session_id=moved)
        kept = replace(agent, shown=agent.shown[-capture.SHOWN_MAX :])
        rows.SESSIONS.add(session, kept, _KEEP_SESSION)
        most = capture.SESSIONS_MAX
        session.keep_newest("agent_session", "session_id", "seen_at", most)

    @writes_lazily
    def save_position(
        self, session: CommonSession, name: str, position: int, file: str
    ) -> None:
        """Save how many bytes of a session's transcript were read; `file` has the file's device and inode."""
        session.update(
            "agent_session", {"position": position, "file": file}, session_id=name
        )

    @writes_lazily
    def note_shown(
        self,
        session: CommonSession,
        name: str,
        ids: Sequence[str],
        *,
        informed_at: datetime | None = None,
    ) -> None:
        """Record that memories were injected into a known session, and the time of a briefing if given."""
        before = session.select_value("agent_session", "shown", session_id=name)
        if before is None:
            return
        shown = list(dict.fromkeys([*json.loads(before), *ids]))[-capture.SHOWN_MAX :]
        session.execute(
            "UPDATE agent_session SET shown = %(shown)s, "
            "informed_at = coalesce(%(informed_at)s::timestamptz, informed_at) "
            "WHERE owner = %(owner)s AND session_id = %(name)s",
            name=name,
            shown=json.dumps(shown),
            informed_at=informed_at,
        )

    @reads
    def latest(
        self, session: CommonSession, names: Sequence[str], limit: int
    ) -> list[values.MemoryRecord]:
        """Return up to `limit` of the newest memories of these sessions, newest first, from every tier."""
        seqs = _latest_positions(session, names, limit)
        found = session.memories_at(seqs)
        memories = sorted(
            (found[seq] for seq in seqs),
            key=lambda memory: memory.created_at,
            reverse=True,
        )
        return memories[:limit]

    latest_positions = reads(as_method(_latest_positions))

    @reads
    def sessions_of(
        self, session: CommonSession, project: str, limit: int
    ) -> list[str]:
        """Return up to `limit` sessions of a project that have memories, last seen first."""
        if not project:
            return []
        return session.column(
            "SELECT session_id FROM agent_session AS s "
            f"WHERE s.owner = %(owner)s AND project = %(project)s AND ({session.has_session}) "
            "ORDER BY seen_at DESC LIMIT %(limit)s",
            project=project,
            limit=limit,
        )

    projects_of = reads(as_method(projects_of))
    project_sessions = reads(as_method(project_sessions))

    @reads
    def recent(
        self, session: CommonSession, limit: int, *, with_transcript: bool = False
    ) -> list[capture.AgentSession]:
        """Return up to `limit` sessions, the last seen first; `with_transcript` selects those that have one."""
        condition = "AND transcript != '' " if with_transcript else ""
        return rows.SESSIONS.find(
            session,
            f"{condition}ORDER BY seen_at DESC LIMIT %(limit)s",
            limit=limit,
        )

    @reads
    def unknown(self, session: CommonSession, ids: Sequence[str]) -> list[str]:
        """Return the ids that no stored and no forgotten memory has."""
        known = " UNION ALL ".join(
            f"SELECT id FROM {table} WHERE owner = %(owner)s AND id = ANY(%(ids)s::text[])"
            for table in (*session.memory_tables, "agent_forgotten")
        )
        found = set(session.column(known, ids=list(ids)))
        return [id for id in ids if id not in found]

    @writes_lazily
    def count_call(self, session: CommonSession, call: capture.AgentCall) -> None:
        """Add a hook call to the sums of its client and event; keep the latest `CLIENTS_MAX` sums."""
        at = call.called_at
        activity = exchange.HookActivity(
            client=call.client,
            event=call.event,
            calls=1,
            stored=call.stored,
            characters=call.characters,
            failures=int(bool(call.failure)),
            total_ms=call.duration_ms,
            slowest_ms=call.duration_ms,
            called_at=at,
            stored_at=at if call.stored else None,
            informed_at=at if call.characters else None,
            failed_at=at if call.failure else None,
            failure=call.failure[: capture.FAILURE_CHARS_MAX],
        )
        rows.ACTIVITY.add(session, activity, _COUNT_CALL)
        # Not by a pair of columns, which Citus cannot hand on under row-level security.
        key = "event || ' ' || client"
        session.keep_newest("agent_activity", key, "called_at", capture.CLIENTS_MAX)

    @reads
    def activity(self, session: CommonSession) -> list[values.AgentActivity]:
        """Return the count, totals and latencies of hook calls for each client and event."""
        sums = rows.ACTIVITY.find(
            session, "ORDER BY client, event LIMIT %(most)s", most=capture.CLIENTS_MAX
        )
        activity = []
        for each in map(asdict, sums):
            mean_ms = round(each.pop("total_ms") / each["calls"], 3)
            each["slowest_ms"] = round(each["slowest_ms"], 3)
            activity.append(values.AgentActivity(**each, mean_ms=mean_ms))
        return activity


def saved_sighting(session: CommonSession) -> clock.Sighting | None:
    """Return the saved reading of the clock; None if there is none."""
    found = rows.CLOCK.find(session, "")
    return found[0] if found else None


def save_sighting(session: CommonSession, sighting: clock.Sighting) -> None:
    """Save a reading of the clock in place of the earlier one."""
    session.delete("clock_seen")
    rows.CLOCK.add(session, sighting)


UNKNOWN_START = ""
"""The machine's start time for memories written before clock readings were saved."""


_FUTURE = (
    "FROM fresh AS f WHERE f.owner = %(owner)s AND f.created_at > %(now)s "
    "AND NOT EXISTS (SELECT 1 FROM working_state AS s WHERE s.owner = %(owner)s "
    "AND s.memory_seq = f.seq AND s.future_since IS NOT NULL)"
)
"""Working memories dated in the future that are not noted yet."""


class ClockStore(StorePart):
    """Store of the last trusted clock reading, and of which memories are dated after it."""

    @reads
    def last_sighting(self, session: CommonSession) -> clock.Sighting | None:
        """Return the saved reading of the clock, or one made of the newest record; None in a new store."""
        if sighting := saved_sighting(session):
            return sighting
        newest = [
            session.select_value("fresh", "max(created_at)"),
            session.select_value(
                "consolidation_log", "created_at", "ORDER BY id DESC LIMIT 1"
            ),
        ]
        moments = [instant(moment) for moment in newest if moment]
        if not moments:
            return None
        return clock.Sighting(moment=max(moments), boot=UNKNOWN_START, uptime_s=0.0)

    keep_sighting = writes(as_method(save_sighting))

    def note_future(self, *, now: datetime) -> None:
        """Save that working memories dated in the future were noticed at `now`, unless saved already."""
        with self._engine.reading() as session:
            is_due = session.scalar(f"SELECT 1 {_FUTURE} LIMIT 1", now=now)
        if is_due:
            note = (
                "INSERT INTO working_state (owner, memory_seq, future_since) "
                f"SELECT f.owner, f.seq, %(now)s {_FUTURE} ON CONFLICT (owner, memory_seq) "
                "DO UPDATE SET future_since = excluded.future_since"
            )
            self._engine.write(lambda session: session.execute(note, now=now))


MOVED_MAX = 10
"""Files of one device and inode that are read."""
_BELOW = (
    "owner = %(owner)s AND (path = %(path)s::text "
    "OR (path > %(path)s::text || '/' AND path < %(path)s::text || '0'))"
)
"""Condition for the path itself and for all paths below it. The digit 0 follows the slash in the order of
characters."""


class WatchStore(StorePart):
    """Keeps watched folders and files.

    The state of files does not wait for the disk: what a power failure takes back is read again.
    """

    @reads
    def folders(self, session: CommonSession) -> list[str]:
        """Return the paths of the watched folders in alphabetical order."""
        return session.select_column(
            "watched_folder", "path", f"ORDER BY path LIMIT {capture.FOLDERS_MAX}"
        )

    @writes
    def add_folder(self, session: CommonSession, path: str, added_at: datetime) -> None:
        """Add a folder to watch, by its path; change nothing if it is watched already."""
        folder = exchange.FollowedFolder(path=path, added_at=added_at)
        rows.FOLDERS.add(session, folder, UNLESS_KNOWN)

    @writes
    def remove_folder(self, session: CommonSession, path: str) -> bool:
        """Stop watching a folder, with the states of its files; return False if it was not watched."""
        removed = session.delete("watched_folder", path=path)
        session.execute(f"DELETE FROM watched_file WHERE {_BELOW}", path=path)
        return removed.rowcount > 0

    @reads
    def file(self, session: CommonSession, path: str) -> capture.WatchedFile | None:
        """Return the state of a watched file, or None if it was never read."""
        found = rows.FILES.find(session, "AND path = %(path)s", path=path)
        return found[0] if found else None

    @reads
    def moved_from(
        self, session: CommonSession, file: str
    ) -> list[capture.WatchedFile]:
        """Return up to `MOVED_MAX` states of files with this device and inode, whatever their paths."""
        return rows.FILES.find(
            session, "AND file = %(file)s LIMIT %(most)s", file=file, most=MOVED_MAX
        )

    @writes_lazily
    def keep_file(self, session: CommonSession, state: capture.WatchedFile) -> None:
        """Insert or replace the state of a watched file, by its path."""
        rows.FILES.add(session, state, rows.REPLACE_FILE)

    @writes_lazily
    def drop_files(self, session: CommonSession, paths: Sequence[str]) -> None:
        """Delete the states of the files with these paths."""
        session.delete("watched_file", path=paths)

    @reads
    def states(self, session: CommonSession, folder: str) -> dict[str, tuple[int, int]]:
        """Return {path: (bytes, modification time in ns)} of the files below a folder, as last read."""
        files = session.execute(
            f"SELECT path, size, modified_ns FROM watched_file WHERE {_BELOW} "
            "LIMIT %(most)s",
            path=folder,
            most=capture.FILES_MAX,
        )
        return {path: (size, modified) for path, size, modified in files}

    @reads
    def totals(self, session: CommonSession, folder: str) -> capture.FolderTotals:
        """Return a folder's number of files of known formats, number of their memories, and last reading."""
        row = session.execute(
            "SELECT count(*), coalesce(sum(stored), 0)::bigint, max(read_at) "
            f"FROM watched_file WHERE {_BELOW} AND format != ''",
            path=folder,
        ).fetchone()
        files, stored, read_at = row or (0, 0, None)
        return capture.FolderTotals(files, stored, optional_instant(read_at))
