"""Records of an export and of a move: all but those of memories are read and restored here."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec

from mnemosyned.memory.capture import AgentSession, WatchedFile
from mnemosyned.memory.clock import Sighting
from mnemosyned.memory.consolidation import LogEntry
from mnemosyned.memory.endings import EndingRecord
from mnemosyned.memory.exchange import (
    OTHER_WORDS,
    AnyRecord,
    ExportedCompaction,
    ExportedEpisode,
    ExportedSupersession,
    FollowedFolder,
    ForgottenCapture,
    HookActivity,
    KeptVector,
    Outcome,
    Record,
    RecoverableRecord,
    RestoreReport,
)
from mnemosyned.memory.fields import MemoryFilter
from mnemosyned.memory.injections import BriefingEdit, Injection
from mnemosyned.memory.restore import (
    ExportSnapshot,
    PlacedMemory,
    RestoreTransaction,
    StoredEpisode,
)
from mnemosyned.memory.values import Episode, Learning
from mnemosyned.storage.common.compactions import INSERT_COMPACTION, insert_parts
from mnemosyned.storage.common.endings import restore_ending
from mnemosyned.storage.common.episodes import mark_emptied
from mnemosyned.storage.common.forgetting import (
    decode_copy,
    recoverable_records,
    restore_recoverable,
)
from mnemosyned.storage.common.injections import (
    INSERT_EDIT,
    insert_injection,
    read_injections,
)
from mnemosyned.storage.common.learnings import insert_learning
from mnemosyned.storage.common.listing import (
    column_conditions,
    join_conditions,
    tag_conditions,
    time_conditions,
)
from mnemosyned.storage.common.rows import (
    ACTIVITY_COLUMNS,
    BRIEFING_COLUMNS,
    ENDING_COLUMNS,
    EXPORTED_EPISODE,
    FILE_COLUMNS,
    LEARNING_COLUMNS,
    LOG_FIELDS,
    SESSION_COLUMNS,
    bind_values,
    exported_episode_from,
    file_from,
    hook_activity_from,
    instant,
    learning_from,
    log_entry_from,
    record_fields,
    session_from,
    stored_values,
)
from mnemosyned.storage.common.session import (
    CommonSession,
    EngineSession,
    Row,
    Transactional,
    writes,
)
from mnemosyned.storage.common.sleep import insert_log
from mnemosyned.storage.common.state import add_tags, insert_revision
from mnemosyned.storage.common.surroundings import (
    INSERT_FILE,
    INSERT_FOLDER,
    INSERT_SESSION,
    save_sighting,
    saved_sighting,
    session_values,
)

_ROLLUPS = (
    "FROM episode AS e WHERE e.owner = %(owner)s AND e.level > 0 "
    "AND (%(since)s::timestamptz IS NULL OR e.covers_until >= %(since)s) "
    "AND (%(until)s::timestamptz IS NULL OR e.covers_from < %(until)s)"
)


def export_condition(chosen: MemoryFilter, alias: str) -> str:
    """Return the SQL condition for the rows of table `alias` that an export filter selects.

    `CommonExporting` has the values that it binds.
    """
    when = f"{alias}.created_at"
    conditions = [
        *column_conditions(chosen.columns, f"coalesce({alias}.{{}}, '')"),
        *tag_conditions(chosen.tags, f"{alias}.seq"),
        *time_conditions(chosen, first=when, last=when),
    ]
    return f"1 = 1{join_conditions(conditions).text}"


class CommonExporting(ExportSnapshot):
    """The records of one snapshot; an engine adds those of memories."""

    def __init__(self, session: CommonSession, chosen: MemoryFilter) -> None:
        self._session = session
        super().__init__(chosen)
        self._values: dict[str, object] = {
            **{column: list(values) for column, values in chosen.columns.items()},
            "tags": list(chosen.tags),
            "since": chosen.since,
            "until": chosen.until,
        }

    def _stream(self, statement: str) -> Iterator[Row]:
        """Run an SQL statement with the values of the export filter; yield its rows in portions."""
        return self._session.stream(statement, **self._values)

    def rollups(self) -> Iterator[Record]:
        """Yield the exported summaries of days, weeks and months, each after its members."""
        # Two streams in the same order, so that a summary costs no round trip.
        below = self._stream(
            "SELECT r.seq, c.id FROM (SELECT e.seq, e.id, e.level "
            f"{_ROLLUPS}) AS r JOIN episode AS c ON c.owner = %(owner)s AND c.parent_id = r.id "
            "ORDER BY r.level, r.seq, c.seq"
        )
        groups = groupby(below, key=itemgetter(0))
        group = next(groups, None)
        rows = self._stream(
            f"SELECT {EXPORTED_EPISODE} {_ROLLUPS} ORDER BY e.level, e.seq"
        )
        for row in rows:
            members: tuple[str, ...] = ()
            if group and group[0] == row[1]:
                members = tuple(id for _, id in group[1])
                group = next(groups, None)
            yield exported_episode_from(row, summary_of=members)

    def learnings(self) -> Iterator[Record]:
        """Yield the exported learnings in the order they were learned."""
        rows = self._stream(
            f"SELECT {LEARNING_COLUMNS} FROM learning AS l WHERE l.owner = %(owner)s "
            f"AND {export_condition(self._chosen, 'l')} ORDER BY l.seq"
        )
        return map(learning_from, rows)

    def log(self) -> Iterator[Record]:
        """Yield the exported entries of the consolidation log."""
        rows = self._stream(
            f"SELECT {LOG_FIELDS} FROM consolidation_log AS g WHERE g.owner = %(owner)s "
            f"AND {export_condition(self._chosen, 'g')} ORDER BY g.id"
        )
        return map(log_entry_from, rows)

    def compactions(self) -> Iterator[Record]:
        """Yield the exported compactions with the ids of their messages, the oldest first."""
        rows = self._stream(
            "SELECT c.id, c.session_id, c.source, c.policy, c.text_hash, c.created_at, p.part "
            "FROM compaction AS c LEFT JOIN compacted AS p ON p.owner = c.owner "
            "AND p.compaction = c.id WHERE c.owner = %(owner)s "
            "ORDER BY c.created_at, c.id, p.position"
        )
        for fields, parts in groupby(rows, key=lambda row: row[:6]):
            id, session, source, policy, text_hash, created_at = fields
            yield ExportedCompaction(
                id=id,
                session=session,
                source=source,
                policy=policy,
                text_hash=text_hash,
                created_at=instant(created_at),
                parts=tuple(part for *_, part in parts if part is not None),
            )

    def agent_sessions(self) -> Iterator[AgentSession]:
        """Yield the exported sessions of agents."""
        rows = self._stream(
            f"SELECT {SESSION_COLUMNS} FROM agent_session "
            "WHERE owner = %(owner)s ORDER BY session_id"
        )
        return map(session_from, rows)

    def forgotten(self) -> Iterator[Record]:
        """Yield the keys by which forgotten messages are recognized, not to be captured again."""
        rows = self._stream(
            "SELECT id FROM agent_forgotten WHERE owner = %(owner)s ORDER BY id"
        )
        return (ForgottenCapture(id=id) for (id,) in rows)

    def briefing_edits(self) -> Iterator[Record]:
        """Yield the exported edits of lines of briefings."""
        rows = self._stream(
            f"SELECT {BRIEFING_COLUMNS} FROM briefing_line "
            "WHERE owner = %(owner)s ORDER BY id"
        )
        return (BriefingEdit(**record_fields(BRIEFING_COLUMNS, row)) for row in rows)

    def endings(self) -> Iterator[Record]:
        """Yield the exported endings of statements."""
        rows = self._stream(
            f"SELECT {ENDING_COLUMNS} FROM ending WHERE owner = %(owner)s "
            "ORDER BY newer_id, older_id, older_place"
        )
        return (EndingRecord(**record_fields(ENDING_COLUMNS, row)) for row in rows)

    def all_records(self) -> Iterator[AnyRecord]:
        """Yield all records of an export, then the records that only a move to a new store has."""
        yield from self.records()
        session = self._session
        yield from recoverable_records(session, self._decode_copy)
        yield from read_injections(session, "ORDER BY id")
        for path, added_at in session.stream(
            "SELECT path, added_at FROM watched_folder WHERE owner = %(owner)s ORDER BY path"
        ):
            yield FollowedFolder(path=path, added_at=instant(added_at))
        rows = session.stream(
            f"SELECT {FILE_COLUMNS} FROM watched_file WHERE owner = %(owner)s ORDER BY path"
        )
        yield from map(file_from, rows)
        rows = session.stream(
            f"SELECT {ACTIVITY_COLUMNS} FROM agent_activity "
            "WHERE owner = %(owner)s ORDER BY client, event"
        )
        yield from map(hook_activity_from, rows)
        for id, model, digest, vector in session.stream(self._vectors):
            yield KeptVector(
                memory=id, model=model, digest=digest, vector=bytes(vector)
            )
        if sighting := saved_sighting(session):
            yield sighting

    _vectors: str
    """Selects memory id, model, digest and vector of all vectors, in the order of the memories."""
    _decode_copy = staticmethod(decode_copy)
    """Returns the copy of a forgotten memory from its stored form."""


def _restore_learning(session: CommonSession, learning: Learning) -> Outcome:
    """Insert a learning unless its id is stored; return whether it was inserted.

    Return `OTHER_WORDS`, the reason of a conflict, if another text has the id.
    """
    text = session.scalar(
        "SELECT text FROM learning WHERE owner = %(owner)s AND id = %(id)s",
        id=learning.id,
    )
    if text is None:
        insert_learning(session, learning)
        return True
    return False if text == learning.text else OTHER_WORDS


def _restore_log_entry(session: CommonSession, entry: LogEntry) -> Outcome:
    """Insert a log entry unless the same entry is stored; return whether it was inserted.

    It keeps its old number, or gets a new one if that is taken.
    """
    known = session.scalar(
        "SELECT 1 FROM consolidation_log WHERE owner = %(owner)s "
        "AND episode_id IS NOT DISTINCT FROM %(episode)s::text AND cycle_id = %(cycle)s "
        "AND created_at = %(created_at)s AND session_id = %(session)s AND level = %(level)s "
        "LIMIT 1",
        episode=entry.episode,
        cycle=entry.cycle,
        created_at=entry.created_at,
        session=entry.session,
        level=int(entry.level),
    )
    if known:
        return False
    taken = session.scalar(
        "SELECT 1 FROM consolidation_log WHERE owner = %(owner)s AND id = %(id)s",
        id=entry.id,
    )
    insert_log(
        session, entry, id=None if taken else entry.id, undone_at=entry.undone_at
    )
    if not taken:
        session.skip_numbers("log", entry.id)
    return True


def _restore_compaction(
    session: CommonSession, compaction: ExportedCompaction
) -> Outcome:
    """Insert a compaction with its messages' ids unless its id is stored; return if inserted."""
    stored = session.execute(
        INSERT_COMPACTION,
        id=compaction.id,
        session=compaction.session,
        source=compaction.source,
        policy=compaction.policy,
        hash=compaction.text_hash,
        created_at=compaction.created_at,
    ).rowcount
    if stored:
        insert_parts(session, compaction.id, compaction.parts)
    return bool(stored)


_INSERTS: Mapping[type[Any], tuple[str, Callable[[Any], Mapping[str, object]]]] = {
    AgentSession: (f"{INSERT_SESSION} NOTHING", session_values),
    ForgottenCapture: (
        (
            "INSERT INTO agent_forgotten (owner, id) VALUES (%(owner)s, %(id)s) "
            "ON CONFLICT DO NOTHING"
        ),
        lambda capture: {"id": capture.id},
    ),
    FollowedFolder: (
        INSERT_FOLDER,
        lambda folder: {"path": folder.path, "added_at": folder.added_at},
    ),
    WatchedFile: (
        f"{INSERT_FILE} ON CONFLICT DO NOTHING",
        partial(stored_values, FILE_COLUMNS),
    ),
    BriefingEdit: (
        f"{INSERT_EDIT} ON CONFLICT DO NOTHING",
        partial(stored_values, BRIEFING_COLUMNS),
    ),
    HookActivity: (
        (
            f"INSERT INTO agent_activity (owner, {ACTIVITY_COLUMNS}) "
            f"VALUES (%(owner)s, {bind_values(ACTIVITY_COLUMNS)}) ON CONFLICT DO NOTHING"
        ),
        partial(stored_values, ACTIVITY_COLUMNS),
    ),
}
"""Statement and values of records that are stored unless their key is known."""


def _insert_unless_known(session: CommonSession, record: object) -> Outcome:
    """Insert a record of a type in `_INSERTS` unless it is stored; return if it was inserted."""
    statement, values_of = _INSERTS[type(record)]
    return bool(session.execute(statement, **values_of(record)).rowcount)


def _restore_sighting(session: CommonSession, sighting: Sighting) -> Outcome:
    """Save the exported reading of the clock, unless one is saved; return whether it was saved."""
    if saved_sighting(session):
        return False
    save_sighting(session, sighting)
    return True


RESTORERS: Mapping[type[Any], Callable[[CommonSession, Any], Outcome]] = {
    Learning: _restore_learning,
    LogEntry: _restore_log_entry,
    ExportedCompaction: _restore_compaction,
    Sighting: _restore_sighting,
    RecoverableRecord: restore_recoverable,
    Injection: insert_injection,
    EndingRecord: restore_ending,
    **dict.fromkeys(_INSERTS, _insert_unless_known),
}
"""Store a record of each kind that refers to no memory."""


class CommonRestoring(RestoreTransaction):
    """The restoring of records in one transaction; an engine adds memories."""

    def __init__(self, session: CommonSession) -> None:
        kinds: dict[type[Any], Callable[[Any], Outcome]] = {
            kind: partial(store, session) for kind, store in RESTORERS.items()
        }
        super().__init__({**kinds, KeptVector: self._restore_vector})
        self._session = session

    @abstractmethod
    def _restore_vector(self, vector: KeptVector) -> Outcome:
        """Store the vector of a memory that has none of the model; return whether it was stored."""

    def homes(self, episodes: Sequence[str]) -> dict[str, StoredEpisode]:
        """Return the stored episodes with these ids, by id.

        Each has its row number and the number of its missing originals.
        """
        rows = self._session.execute(
            "SELECT id, seq, item_count - (SELECT count(*) FROM placed AS p "
            "WHERE p.owner = %(owner)s AND p.episode_seq = e.seq) "
            "FROM episode AS e WHERE e.owner = %(owner)s AND level = 0 "
            "AND id = ANY(%(ids)s::text[])",
            ids=list(episodes),
        )
        return {
            id: StoredEpisode(position, room) for id, position, room in rows.fetchall()
        }

    def insert_episode(self, episode: ExportedEpisode) -> None:
        """Insert a summary under its old row number, or under a new number if that is taken.

        Mark it as stale, or as emptied, if it was so when exported.
        """
        taken = self._session.scalar(
            "SELECT 1 FROM episode WHERE owner = %(owner)s AND seq = %(seq)s",
            seq=episode.seq,
        )
        if not taken:
            self._session.skip_numbers("record", episode.seq)
        record = Episode(
            id=episode.id,
            session=episode.session,
            source=episode.source,
            level=episode.level,
            content=episode.content,
            item_count=episode.item_count,
            covers_from=episode.covers_from,
            covers_until=episode.covers_until,
            summarizer=episode.summarizer,
            created_at=episode.created_at,
            period_from=episode.period_from,
        )
        number = self._session.insert_episode(
            record, episode.index_terms, seq=None if taken else episode.seq
        )
        if episode.stale:
            self._session.execute(
                "UPDATE episode SET stale = true "
                "WHERE owner = %(owner)s AND seq = %(seq)s",
                seq=number,
            )
        if episode.emptied:
            mark_emptied(self._session, number)

    def can_adopt(self, rollup: ExportedEpisode) -> bool:
        """Return whether a roll-up's members are stored without a parent, and its period is free.

        The period is free if no other roll-up of the level is stored for it.
        """
        free = self._session.scalar(
            "SELECT count(*) FROM episode WHERE owner = %(owner)s AND parent_id IS NULL "
            "AND level < %(level)s AND id = ANY(%(below)s::text[])",
            level=int(rollup.level),
            below=list(rollup.summary_of),
        )
        taken = self._session.scalar(
            "SELECT 1 FROM episode WHERE owner = %(owner)s AND level = %(level)s "
            "AND period_from = %(period)s::timestamptz",
            level=int(rollup.level),
            period=rollup.period_from,
        )
        return not taken and free == len(rollup.summary_of)

    def adopt(self, rollup: ExportedEpisode) -> None:
        """Make a stored roll-up the parent of its members."""
        self._session.execute(
            "UPDATE episode SET parent_id = %(id)s "
            "WHERE owner = %(owner)s AND id = ANY(%(below)s::text[])",
            id=rollup.id,
            below=list(rollup.summary_of),
        )

    def link(self, supersession: ExportedSupersession) -> Outcome:
        """Mark a memory as superseded by its successor, and return whether the mark is new.

        Return None if one of the two memories is not stored.
        """
        older = self._session.position_of(supersession.memory)
        newer = self._session.position_of(supersession.superseded_by)
        if older is None or newer is None:
            return None
        changed = self._session.execute(
            "UPDATE memory_state SET superseded_by = %(newer)s "
            "WHERE owner = %(owner)s AND memory_seq = %(older)s "
            "AND superseded_at IS NOT NULL AND superseded_by IS NULL",
            older=older[0],
            newer=newer[0],
        ).rowcount
        return bool(changed)


def insert_states(session: CommonSession, memories: Sequence[PlacedMemory]) -> None:
    """Insert the validity, holds, tags and revisions of restored memories.

    A hold keeps sleep cycles from taking a working memory until a time.
    """
    for table, names, members in (
        ("memory_state", ("valid_until", "superseded_at", "pruned_at"), memories),
        (
            "working_state",
            ("held_until", "future_since"),
            [placed for placed in memories if placed.home is None],
        ),
    ):
        marks = ", ".join(f"%({name})s" for name in names)
        session.execute_many(
            f"INSERT INTO {table} (owner, memory_seq, {', '.join(names)}) "
            f"VALUES (%(owner)s, %(seq)s, {marks})",
            [
                {"seq": seq, **{name: getattr(memory, name) for name in names}}
                for memory, seq, _ in members
                if any(getattr(memory, name) for name in names)
            ],
        )
    for memory, seq, _ in memories:
        if memory.tags:
            add_tags(session, seq, memory.tags)
        for revision in memory.revisions:
            insert_revision(
                session,
                seq,
                changed_at=revision.changed_at,
                content=revision.content,
                content_hash=revision.content_hash,
                fields=msgspec.json.encode(revision.fields).decode(),
            )


class ExchangeStore(Transactional):
    """Everything that is kept, out of the store and in again."""

    _exporting: Callable[[EngineSession, MemoryFilter], CommonExporting]
    _restoring: Callable[[EngineSession], CommonRestoring]

    @abstractmethod
    def _snapshot(self) -> AbstractContextManager[EngineSession]:
        """Open a session that reads one snapshot for as long as the block runs."""

    @contextmanager
    def export(
        self, chosen: MemoryFilter
    ) -> Iterator[tuple[dict[str, int], Iterator[Record]]]:
        """Open a snapshot of the records that a filter selects.

        Yields the counts of memories and of summaries by kind, and an iterator that reads the
        records while the block runs. An episode comes before its originals, a roll-up after its
        members.
        """
        with self._snapshot() as session:
            exported = self._exporting(session, chosen)
            yield exported.count_expected(), exported.records()

    @contextmanager
    def everything(self) -> Iterator[tuple[dict[str, int], Iterator[AnyRecord]]]:
        """Open a snapshot of all records, with those that only a move to another store carries.

        Yields the counts by kind, and an iterator that reads the records while the block runs. The
        order is the same in every store, and the records of a move alone come last.
        """
        with self._snapshot() as session:
            exported = self._exporting(session, MemoryFilter())
            yield exported.count_expected(), exported.all_records()

    @writes
    def restore(
        self, session: CommonSession, records: Sequence[AnyRecord]
    ) -> RestoreReport:
        """Store the records that are not here yet, in one transaction; count the outcomes.

        An episode is stored only with its originals in the same call; else they go to working
        memory. A roll-up is stored if all of its members are here.
        """
        return self._restoring(session).restore(records)
