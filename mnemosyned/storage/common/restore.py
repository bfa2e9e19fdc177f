"""Restoration of exported records: each record once, and no summary without its sources."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, NamedTuple

import msgspec

from mnemosyned.memory.actions import Action
from mnemosyned.memory.clock import Sighting
from mnemosyned.memory.consolidation import LogEntry
from mnemosyned.memory.endings import EndingRecord
from mnemosyned.memory.exchange import (
    KIND_NAMES,
    OTHER_WORDS,
    WORDS_PRUNED,
    AnyRecord,
    ExportedCompaction,
    ExportedEpisode,
    ExportedMemory,
    ExportedSupersession,
    KeptVector,
    Outcome,
    RecoverableRecord,
    RestoreReport,
    known_memory,
)
from mnemosyned.memory.injections import Injection
from mnemosyned.memory.values import Episode, Learning
from mnemosyned.storage.common.actions import delete_steps, record_action
from mnemosyned.storage.common.compactions import insert_compaction
from mnemosyned.storage.common.endings import restore_ending
from mnemosyned.storage.common.episodes import mark_emptied
from mnemosyned.storage.common.forgetting import restore_recoverable
from mnemosyned.storage.common.injections import insert_injection
from mnemosyned.storage.common.learnings import insert_learning, mark_learned
from mnemosyned.storage.common.session import UNLESS_KNOWN, CommonSession
from mnemosyned.storage.common.sleep import insert_log
from mnemosyned.storage.common.state import add_tags, insert_revision
from mnemosyned.storage.common.surroundings import save_sighting, saved_sighting
from mnemosyned.storage.common.tables import (
    EXPORTED_TABLES,
    MOVED_TABLES,
)


class PlacedMemory(NamedTuple):
    """A memory with its number and the position of its episode, if any."""

    memory: ExportedMemory
    seq: int
    home: int | None


_EPISODE_FIELDS = {each.name for each in fields(Episode)}.intersection(
    each.name for each in fields(ExportedEpisode)
)


@dataclass(slots=True)
class StoredEpisode:
    """A stored episode, and the number of its missing originals."""

    position: int
    room: int


def _restore_learning(session: CommonSession, learning: Learning) -> Outcome:
    """Insert a learning unless its id is stored; return the outcome."""
    text = session.select_value("learning", "text", id=learning.id)
    if text is None:
        insert_learning(session, learning)
        return True
    return False if text == learning.text else OTHER_WORDS


def _restore_log_entry(session: CommonSession, entry: LogEntry) -> Outcome:
    """Insert a log entry unless it is stored, under its old number if that is free; return whether."""
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
    taken = session.select_value("consolidation_log", "1", id=entry.id)
    insert_log(
        session, entry, id=None if taken else entry.id, undone_at=entry.undone_at
    )
    if not taken:
        session.skip_numbers("log", entry.id)
    return True


def _restore_sighting(session: CommonSession, sighting: Sighting) -> Outcome:
    """Save the exported reading of the clock, unless one is saved; return whether it was saved."""
    if saved_sighting(session):
        return False
    save_sighting(session, sighting)
    return True


RESTORERS: Mapping[type[Any], Callable[[CommonSession, Any], Outcome]] = {
    Learning: _restore_learning,
    LogEntry: _restore_log_entry,
    ExportedCompaction: insert_compaction,
    Sighting: _restore_sighting,
    RecoverableRecord: restore_recoverable,
    Injection: insert_injection,
    **{
        table.kind: partial(table.add, conflict=UNLESS_KNOWN)
        for table in (*EXPORTED_TABLES, *MOVED_TABLES)
    },
    EndingRecord: restore_ending,  # unlike other rows, endings refer to memories
}
"""Store a record of each kind that refers to no memory."""


class RestoreTransaction(ABC):
    """Transaction that restores records; an engine inserts memories and vectors."""

    def __init__(self, session: CommonSession, action: Action | None = None) -> None:
        self._session = session
        self._action = action
        self._outcome = RestoreReport()
        self._taken: set[int] = set()
        self._last_seq = 0

    def restore(self, records: Iterable[AnyRecord]) -> RestoreReport:
        """Store the records that are not here yet; return counts of the outcomes."""
        by_kind: dict[type[Any], list[Any]] = defaultdict(list)
        for record in records:
            by_kind[type(record)].append(record)
        episodes: list[ExportedEpisode] = by_kind[ExportedEpisode]
        self._restore_groups(
            [episode for episode in episodes if episode.level == 0],
            by_kind[ExportedMemory],
        )
        rollups = [episode for episode in episodes if episode.level > 0]
        self._restore_records(
            sorted(rollups, key=lambda rollup: rollup.level), self._restore_rollup
        )
        self._restore_records(by_kind[ExportedSupersession], self._link)
        for kind, store in RESTORERS.items():
            self._restore_records(by_kind[kind], partial(store, self._session))
        self._restore_records(by_kind[KeptVector], self._restore_vector)
        return self._outcome

    def _restore_records(
        self, records: Iterable[Any], store: Callable[[Any], Outcome]
    ) -> None:
        """Call `store` with each record, and count the outcomes that it returns."""
        for record in records:
            id = str(getattr(record, "id", ""))
            self._outcome.count(KIND_NAMES[type(record)], id, store(record))

    # ------------------------------------------------- episodes and memories

    def _restore_groups(
        self, episodes: Sequence[ExportedEpisode], memories: Sequence[ExportedMemory]
    ) -> None:
        """Restore episodes and memories, each memory under its episode if that lacks originals."""
        ids = [episode.id for episode in episodes] + [memory.id for memory in memories]
        known = {
            id: record[0] for id, record in self._session.known_records(ids).items()
        }
        originals: dict[str | None, set[str]] = defaultdict(set)
        for memory in memories:
            originals[memory.episode].add(memory.id)
        self._restore_episodes(episodes, originals, known)
        seqs = [memory.seq for memory in memories if memory.id not in known]
        self._taken = set(
            self._session.column(
                "SELECT seq FROM fresh WHERE owner = %(owner)s AND seq = ANY(%(seqs)s::bigint[]) UNION ALL "
                "SELECT seq FROM placed WHERE owner = %(owner)s AND seq = ANY(%(seqs)s::bigint[])",
                seqs=seqs,
            )
        )
        # New numbers are given above all of them.
        self._last_seq = max([self._last_number(), *seqs])
        self._restore_memories(memories, self._homes([*filter(None, originals)]), known)

    def _restore_episodes(
        self,
        episodes: Sequence[ExportedEpisode],
        originals: Mapping[str | None, set[str]],
        known: Mapping[str, str | None],
    ) -> None:
        """Store the episodes that are new and whose originals are all new, and count the outcomes."""

        def store(episode: ExportedEpisode) -> Outcome:
            """Store an episode if all of its originals are new; return the outcome."""
            if episode.id in known:
                return _known_summary(known[episode.id])
            members = originals.get(episode.id, set())
            if not members or not members.isdisjoint(known):
                self._outcome.left_out += 1
                return None
            self._insert_episode(episode)
            return True

        self._restore_records(episodes, store)

    def _restore_memories(
        self,
        memories: Sequence[ExportedMemory],
        homes: Mapping[str, StoredEpisode],
        known: dict[str, str | None],
    ) -> None:
        """Store the memories that are not in `known`, in the archive if their episode lacks originals."""
        placed: list[PlacedMemory] = []

        def store(memory: ExportedMemory) -> Outcome:
            """Choose the place of a memory to insert; return the outcome."""
            if memory.id in known:
                return known_memory(memory, known[memory.id])
            known[memory.id] = memory.content
            home = _take_episode_place(homes, memory.episode)
            if memory.episode and home is None and not memory.content:
                return WORDS_PRUNED
            seq = memory.seq
            if seq in self._taken:
                seq = self._last_seq = self._last_seq + 1
            self._taken.add(seq)
            placed.append(PlacedMemory(memory, seq, home))
            self._outcome.working += home is None and memory.episode is not None
            return True

        self._restore_records(memories, store)
        self._insert_memories(placed, last_number=self._last_seq)
        seqs = [each.seq for each in placed]
        delete_steps(self._session, seqs)  # of forgotten memories with these numbers
        record_action(self._session, self._action, [(seq, "") for seq in seqs])
        mark_learned(self._session, seqs)

    def _restore_rollup(self, rollup: ExportedEpisode) -> Outcome:
        """Store a roll-up if its members are stored without a parent; else the next cycle writes it."""
        known = self._session.known_records([rollup.id])
        if rollup.id in known:
            return _known_summary(known[rollup.id][0])
        if not self._can_adopt(rollup):
            self._outcome.left_out += 1
            return None
        self._insert_episode(rollup)
        self._session.update(
            "episode", {"parent_id": rollup.id}, id=list(rollup.summary_of)
        )
        return True

    @abstractmethod
    def _last_number(self) -> int:
        """Return the highest row number that any memory of this store has had."""

    @abstractmethod
    def _insert_memories(
        self, memories: Sequence[PlacedMemory], *, last_number: int
    ) -> None:
        """Insert memories with all that belongs to them; later ones get numbers above `last_number`."""

    @abstractmethod
    def _restore_vector(self, vector: KeptVector) -> Outcome:
        """Store the vector of a memory that has none; return whether, or None without the memory."""

    def _homes(self, episodes: Sequence[str]) -> dict[str, StoredEpisode]:
        """Return row number and count of missing originals of the stored episodes with these ids."""
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

    def _insert_episode(self, episode: ExportedEpisode) -> None:
        """Insert a summary as it was exported, under its old row number or, if that is taken, a new one."""
        taken = self._session.select_value("episode", "1", seq=episode.seq)
        if not taken:
            self._session.skip_numbers("record", episode.seq)
        record = Episode(**{name: getattr(episode, name) for name in _EPISODE_FIELDS})
        number = self._session.insert_episode(
            record, episode.index_terms, seq=None if taken else episode.seq
        )
        if episode.stale:
            self._session.update("episode", {"stale": True}, seq=number)
        if episode.emptied:
            mark_emptied(self._session, number)

    def _can_adopt(self, rollup: ExportedEpisode) -> bool:
        """Return whether a roll-up's members are stored without a parent, and no other has its period."""
        free = self._session.scalar(
            "SELECT count(*) FROM episode WHERE owner = %(owner)s AND parent_id IS NULL "
            "AND level < %(level)s AND id = ANY(%(below)s::text[])",
            level=int(rollup.level),
            below=list(rollup.summary_of),
        )
        taken = self._session.select_value(
            "episode", "1", level=int(rollup.level), period_from=rollup.period_from
        )
        return not taken and free == len(rollup.summary_of)

    def _link(self, supersession: ExportedSupersession) -> Outcome:
        """Mark a memory as superseded; return whether that is new, or None without one of the memories."""
        older = self._session.position_of(supersession.memory)
        newer = self._session.position_of(supersession.superseded_by)
        if older is None or newer is None:
            return None
        changed = self._session.update(
            "memory_state",
            {"superseded_by": newer[0]},
            "AND superseded_at IS NOT NULL AND superseded_by IS NULL",
            memory_seq=older[0],
        )
        return bool(changed.rowcount)


def _take_episode_place(
    homes: Mapping[str, StoredEpisode], episode: str | None
) -> int | None:
    """Return the row number of an episode that lacks originals, and count one original as found.

    None if it lacks none: an original that was forgotten here is not missing, as the summary was
    written without it.
    """
    home = homes.get(episode) if episode else None
    if home is None or home.room <= 0:
        return None
    home.room -= 1
    return home.position


def _known_summary(content: str | None) -> Outcome:
    """Return False if a summary has the id of another, or the reason of a conflict if a memory has it."""
    return False if content is None else OTHER_WORDS


def insert_states(session: CommonSession, memories: Sequence[PlacedMemory]) -> None:
    """Insert validity, holds (until when no cycle takes a memory), tags and revisions of restored memories."""
    for table, names, members in (
        ("memory_state", ("valid_until", "superseded_at", "pruned_at"), memories),
        (
            "working_state",
            ("held_until", "future_since"),
            [placed for placed in memories if placed.home is None],
        ),
    ):
        session.insert_each(
            table,
            [
                {"memory_seq": seq, **{name: getattr(memory, name) for name in names}}
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
