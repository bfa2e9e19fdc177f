"""Lists: pages of memories and summaries, sessions and sources."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from mnemosyned.domain.listing import (
    ListFilter,
    ListPage,
    RecordKind,
    SessionTotals,
    SourceTotals,
)
from mnemosyned.domain.ports.listing import ListStore
from mnemosyned.storage.sqlite.database.transactions import Transactional, reads
from mnemosyned.storage.sqlite.search.listing import Key, page_keys
from mnemosyned.storage.sqlite.tables.agents import projects_of
from mnemosyned.storage.sqlite.tables.memories import episode_at, memories_at
from mnemosyned.storage.sqlite.tables.rows import instant, instant_text

_GROUPS = (
    "SELECT session_id, source, count(*), min(created_at), max(created_at) "
    "FROM working_memory GROUP BY session_id, source UNION ALL "
    "SELECT session_id, source, sum(item_count), min(covers_from), max(covers_until) "
    "FROM episodic_memory NOT INDEXED WHERE level = 0 GROUP BY session_id, source"
)


class _Group(NamedTuple):
    """Memories of one session and source in one tier."""

    session: str
    source: str | None
    memories: int
    first: str
    last: str


class SqliteLists(Transactional, ListStore):
    """A `ListStore` on one SQLite file."""

    @reads
    def page(self, connection: sqlite3.Connection, wanted: ListFilter) -> ListPage:
        keys = page_keys(connection, wanted)
        shown = keys[: wanted.limit]
        memories = memories_at(connection, _seqs(shown, RecordKind.MEMORY))
        summaries = [
            episode_at(connection, "seq", seq)
            for seq in _seqs(shown, RecordKind.SUMMARY)
        ]
        return ListPage(
            [memories[seq] for seq in _seqs(shown, RecordKind.MEMORY)],
            [summary for summary in summaries if summary],
            shown[-1].place() if len(keys) > wanted.limit else None,
        )

    @reads
    def sessions(self, connection: sqlite3.Connection) -> list[SessionTotals]:
        members: dict[str, list[_Group]] = {}
        for group in _groups(connection):
            members.setdefault(group.session, []).append(group)
        projects = projects_of(connection, list(members))
        totals = [
            SessionTotals(
                session=session,
                sources=tuple(
                    sorted({group.source for group in groups if group.source})
                ),
                count=sum(group.memories for group in groups),
                first=instant(min(group.first for group in groups)),
                last=instant(max(group.last for group in groups)),
                project=projects.get(session, ""),
            )
            for session, groups in members.items()
        ]
        return sorted(
            totals, key=lambda total: (total.last, total.session), reverse=True
        )

    @reads
    def sources(self, connection: sqlite3.Connection) -> list[SourceTotals]:
        members: dict[str | None, list[_Group]] = {}
        for group in _groups(connection):
            members.setdefault(group.source, []).append(group)
        totals = [
            SourceTotals(
                source=source,
                count=sum(group.memories for group in groups),
                sessions=len({group.session for group in groups}),
                first=instant(min(group.first for group in groups)),
                last=instant(max(group.last for group in groups)),
            )
            for source, groups in members.items()
        ]
        return sorted(totals, key=lambda total: total.last, reverse=True)

    @reads
    def count_since(self, connection: sqlite3.Connection, moment: datetime) -> int:
        since = instant_text(moment)
        count: int = connection.execute(
            "SELECT (SELECT count(*) FROM working_memory WHERE created_at >= ?1) + "
            "(SELECT count(*) FROM episodic_memory AS e CROSS JOIN archive AS a "
            "ON a.episode_seq = e.seq WHERE e.level = 0 AND e.covers_until >= ?1 "
            "AND a.created_at >= ?1)",
            (since,),
        ).fetchone()[0]
        return count


def _seqs(keys: Sequence[Key], kind: RecordKind) -> list[int]:
    return [key.seq for key in keys if key.kind is kind]


def _groups(connection: sqlite3.Connection) -> Iterator[_Group]:
    return map(_Group._make, connection.execute(_GROUPS))
