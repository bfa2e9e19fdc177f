"""Records of an export stored again: each once, and no summary without what it was made of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from mnemosyned.domain.exchange import (
    OTHER_WORDS,
    WORDS_PRUNED,
    ExportedEpisode,
    ExportedMemory,
    ExportedSupersession,
    Outcome,
    Restored,
    known_memory,
)
from mnemosyned.domain.ports.archive.exchange import KIND_NAMES, AnyRecord
from mnemosyned.storage.postgres.database.session import Session
from mnemosyned.storage.postgres.tables.changing.rewrites import mark_emptied
from mnemosyned.storage.postgres.tables.episodes import restore_episode
from mnemosyned.storage.postgres.tables.exchange.moved import MOVED
from mnemosyned.storage.postgres.tables.exchange.restore_memories import (
    Placed,
    insert_memories,
)
from mnemosyned.storage.postgres.tables.exchange.restore_single import SINGLE
from mnemosyned.storage.postgres.tables.insert import known_records
from mnemosyned.storage.postgres.tables.owners.owner import pass_number
from mnemosyned.storage.postgres.tables.rows import utc

_SUPERSEDE = (
    "UPDATE memory_state AS s SET superseded_by = n.seq FROM memory AS m, memory AS n "
    "WHERE m.owner = %(owner)s AND m.id = %(memory)s "
    "AND n.owner = %(owner)s AND n.id = %(newer)s "
    "AND s.owner = %(owner)s AND s.memory_seq = m.seq "
    "AND s.superseded_at IS NOT NULL AND s.superseded_by IS NULL"
)
_BOTH_HERE = (
    "SELECT count(*) FROM unnest(ARRAY[%(memory)s, %(newer)s]::text[]) AS r (id) "
    "JOIN memory AS m ON m.owner = %(owner)s AND m.id = r.id"
)


class Restoring:
    """The restoring of records in one transaction."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._outcome = Restored()
        self._taken: set[int] = set()
        self._last_seq = 0

    def restore(self, records: Sequence[AnyRecord]) -> Restored:
        """Store what is not here yet."""
        sorted_records: dict[type[Any], list[Any]] = defaultdict(list)
        for record in records:
            sorted_records[type(record)].append(record)
        episodes = sorted_records[ExportedEpisode]
        self._restore_groups(
            [episode for episode in episodes if episode.level == 0],
            sorted_records[ExportedMemory],
        )
        rollups = [episode for episode in episodes if episode.level > 0]
        self._each(sorted(rollups, key=lambda rollup: rollup.level), self._rollup)
        self._each(sorted_records[ExportedSupersession], self._supersession)
        for kind, store in {**SINGLE, **MOVED}.items():
            self._each(sorted_records[kind], partial(store, self._session))
        return self._outcome

    def _each(self, records: Iterable[Any], store: Callable[[Any], Outcome]) -> None:
        """Store records one by one, and count what became of them."""
        for record in records:
            id = str(getattr(record, "id", ""))
            self._outcome.count(KIND_NAMES[type(record)], id, store(record))

    # ------------------------------------------------- episodes and memories

    def _restore_groups(
        self, episodes: Sequence[ExportedEpisode], memories: Sequence[ExportedMemory]
    ) -> None:
        ids = [episode.id for episode in episodes] + [memory.id for memory in memories]
        known = {id: row[0] for id, row in known_records(self._session, ids).items()}
        by_episode: dict[str | None, list[ExportedMemory]] = defaultdict(list)
        for memory in memories:
            by_episode[memory.episode].append(memory)
        self._restore_episodes(episodes, by_episode, known)
        self._reserve([memory.seq for memory in memories if memory.id not in known])
        homes = self._homes(set(by_episode) - {None})
        self._restore_memories(memories, homes, known)

    def _restore_episodes(
        self,
        episodes: Sequence[ExportedEpisode],
        by_episode: Mapping[str | None, Sequence[ExportedMemory]],
        known: dict[str, str | None],
    ) -> None:
        """Store episodes whose originals come with them and are new."""

        def store(episode: ExportedEpisode) -> Outcome:
            originals = {memory.id for memory in by_episode.get(episode.id, ())}
            complete = bool(originals) and originals.isdisjoint(known)
            return self._episode(episode, known=known, complete=complete)

        self._each(episodes, store)

    def _restore_memories(
        self,
        memories: Sequence[ExportedMemory],
        homes: Mapping[str | None, int],
        known: dict[str, str | None],
    ) -> None:
        """Store memories that are new: into the archive, where their episode is here."""
        placed: list[Placed] = []

        def store(memory: ExportedMemory) -> Outcome:
            if memory.id in known:
                return known_memory(memory, known[memory.id])
            known[memory.id] = memory.content
            home = homes.get(memory.episode)
            if memory.episode and home is None and not memory.content:
                return WORDS_PRUNED
            placed.append(Placed(memory, self._number(memory.seq), home))
            self._outcome.working += home is None and memory.episode is not None
            return True

        self._each(memories, store)
        insert_memories(self._session, placed)
        pass_number(self._session, "memory", self._last_seq)

    def _homes(self, episodes: set[str | None]) -> dict[str | None, int]:
        """Return the rows of those episodes that are here, by id."""
        rows = self._session.execute(
            "SELECT id, seq FROM episode WHERE owner = %(owner)s AND level = 0 "
            "AND id = ANY(%(ids)s::text[])",
            ids=list(filter(None, episodes)),
        )
        return dict(rows.fetchall())

    def _episode(
        self, episode: ExportedEpisode, *, known: dict[str, str | None], complete: bool
    ) -> Outcome:
        if episode.id in known:
            # Of an episode no words are known: they may have been written again.
            return False if known[episode.id] is None else OTHER_WORDS
        if not complete:
            self._outcome.left_out += 1
            return None
        self._insert_episode(episode)
        return True

    def _insert_episode(self, episode: ExportedEpisode) -> None:
        seq = restore_episode(self._session, episode)
        if episode.emptied:
            mark_emptied(self._session, seq)

    def _reserve(self, seqs: Sequence[int]) -> None:
        """Note which of these numbers are taken; new ones are given above all of them."""
        rows = self._session.execute(
            "SELECT seq FROM memory WHERE owner = %(owner)s "
            "AND seq = ANY(%(seqs)s::bigint[])",
            seqs=list(seqs),
        )
        self._taken = {seq for (seq,) in rows}
        last = self._session.scalar(
            "SELECT last_memory FROM owner WHERE owner = %(owner)s"
        )
        self._last_seq = max([last, *seqs])

    def _number(self, seq: int) -> int:
        """Return the number of a memory: the one it had, if that is free."""
        if seq in self._taken:
            self._last_seq += 1
            return self._last_seq
        self._taken.add(seq)
        return seq

    # -------------------------------------------------- roll-ups and links

    def _rollup(self, rollup: ExportedEpisode) -> Outcome:
        """Store a day, week or month, if all it was made of is here and belongs to no other."""
        known = known_records(self._session, [rollup.id])
        if rollup.id in known:
            return False if known[rollup.id][0] is None else OTHER_WORDS
        below = list(rollup.summary_of)
        free = self._session.scalar(
            "SELECT count(*) FROM episode WHERE owner = %(owner)s AND parent_id IS NULL "
            "AND level < %(level)s AND id = ANY(%(below)s::text[])",
            level=rollup.level,
            below=below,
        )
        taken = self._session.scalar(
            "SELECT 1 FROM episode WHERE owner = %(owner)s AND level = %(level)s "
            "AND period_from = %(period)s::timestamptz",
            level=rollup.level,
            period=utc(rollup.period_from) if rollup.period_from else None,
        )
        if taken or free != len(below):
            self._outcome.left_out += 1
            return None
        self._insert_episode(rollup)
        self._session.execute(
            "UPDATE episode SET parent_id = %(id)s "
            "WHERE owner = %(owner)s AND id = ANY(%(below)s::text[])",
            id=rollup.id,
            below=below,
        )
        return True

    def _supersession(self, link: ExportedSupersession) -> Outcome:
        """Link a superseded memory to the newer one, where both are here."""
        ids = {"memory": link.memory, "newer": link.superseded_by}
        changed = self._session.execute(_SUPERSEDE, **ids).rowcount
        if changed:
            return True
        return False if self._session.scalar(_BOTH_HERE, **ids) == len(ids) else None
