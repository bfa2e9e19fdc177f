"""Export of all records from one snapshot, and their restoration.

Each record is restored once, and no summary without its sources.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from mnemosyned.memory.exchange import (
    KIND_NAMES,
    OTHER_WORDS,
    WORDS_PRUNED,
    AnyRecord,
    ExportedEpisode,
    ExportedMemory,
    ExportedSupersession,
    Outcome,
    Record,
    RestoreReport,
    known_memory,
)
from mnemosyned.memory.fields import MemoryFilter
from mnemosyned.memory.intake import Known


class ExportSnapshot(ABC):
    """The records of one snapshot; each part is read as it is asked for."""

    def __init__(self, chosen: MemoryFilter) -> None:
        self._chosen = chosen

    @abstractmethod
    def count_expected(self) -> dict[str, int]:
        """Return the expected numbers of exported memories and episodes, by kind of record."""

    @abstractmethod
    def episodes(self) -> Iterator[Record]:
        """Yield each episode whose originals are all exported, followed by its originals."""

    @abstractmethod
    def loose_originals(self) -> Iterator[Record]:
        """Yield exported originals whose episode has other originals that are not exported."""

    @abstractmethod
    def working(self) -> Iterator[Record]:
        """Yield the exported working memories, in the order they were stored."""

    @abstractmethod
    def rollups(self) -> Iterator[Record]:
        """Yield the exported summaries of days, weeks and months, each after its members."""

    @abstractmethod
    def supersessions(self) -> Iterator[Record]:
        """Yield a link to its successor from each superseded memory that the export filter selects.

        The successor must be stored, but the filter need not select it.
        """

    @abstractmethod
    def learnings(self) -> Iterator[Record]:
        """Yield the learnings, in the order they were stored."""

    @abstractmethod
    def log(self) -> Iterator[Record]:
        """Yield the rows of the consolidation log."""

    @abstractmethod
    def compactions(self) -> Iterator[Record]:
        """Yield the compactions, the oldest first."""

    @abstractmethod
    def agent_sessions(self) -> Iterator[Record]:
        """Yield the sessions of agents."""

    @abstractmethod
    def forgotten(self) -> Iterator[Record]:
        """Yield the keys by which forgotten messages are recognized, not to be captured again."""

    @abstractmethod
    def briefing_edits(self) -> Iterator[Record]:
        """Yield the edits of lines of briefings."""

    @abstractmethod
    def endings(self) -> Iterator[Record]:
        """Yield the endings of statements."""

    def records(self) -> Iterator[Record]:
        """Yield the records that the filter selects, one kind after the other."""
        yield from self.episodes()
        if self._chosen.is_set:
            yield from self.loose_originals()
        yield from self.working()
        if not (self._chosen.columns or self._chosen.tags):
            yield from self.rollups()
        yield from self.supersessions()
        if not self._chosen.excludes_summaries:
            yield from self.learnings()
            yield from self.log()
        if not self._chosen.is_set:
            yield from self.compactions()
            yield from self.agent_sessions()
            yield from self.forgotten()
            yield from self.briefing_edits()
            yield from self.endings()


class PlacedMemory(NamedTuple):
    """A memory with its number and the position of its episode, if any."""

    memory: ExportedMemory
    seq: int
    home: int | None


@dataclass(slots=True)
class StoredEpisode:
    """A stored episode, and the number of its missing originals."""

    position: int
    room: int


class RestoreTransaction(ABC):
    """Transaction that restores records."""

    def __init__(self, single: Mapping[type[Any], Callable[[Any], Outcome]]) -> None:
        """Take in `single` the function that restores one record, for the simple kinds of record."""
        self._single = single
        self._outcome = RestoreReport()
        self._taken: set[int] = set()
        self._last_seq = 0

    @abstractmethod
    def known_records(self, ids: Sequence[str]) -> dict[str, Known]:
        """Return text, time and text hash of the stored records with these ids, by id.

        The text is None for an episode.
        """

    @abstractmethod
    def homes(self, episodes: Sequence[str]) -> dict[str, StoredEpisode]:
        """Return the stored episodes with these ids, by id.

        Each has its row number and the number of its missing originals.
        """

    @abstractmethod
    def taken_numbers(self, seqs: Sequence[int]) -> set[int]:
        """Return those of the row numbers that stored memories have."""

    @abstractmethod
    def last_number(self) -> int:
        """Return the highest row number that any memory of this store has had."""

    @abstractmethod
    def insert_memories(
        self, memories: Sequence[PlacedMemory], *, last_number: int
    ) -> None:
        """Insert memories at their places, with all rows that belong to them.

        Memories stored later get row numbers above `last_number`.
        """

    @abstractmethod
    def insert_episode(self, episode: ExportedEpisode) -> None:
        """Insert a summary; mark it as stale if it was stale when exported."""

    @abstractmethod
    def can_adopt(self, rollup: ExportedEpisode) -> bool:
        """Return whether a roll-up's members are stored without a parent, and its period is free.

        The period is free if no other roll-up of the level is stored for it.
        """

    @abstractmethod
    def adopt(self, rollup: ExportedEpisode) -> None:
        """Make a stored roll-up the parent of its members."""

    @abstractmethod
    def link(self, supersession: ExportedSupersession) -> Outcome:
        """Mark a memory as superseded by its successor; return whether the mark is new.

        Return None if one of the two memories is not stored.
        """

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
        self._restore_records(by_kind[ExportedSupersession], self.link)
        for kind, store in self._single.items():
            self._restore_records(by_kind[kind], store)
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
        known = {id: record[0] for id, record in self.known_records(ids).items()}
        originals: dict[str | None, set[str]] = defaultdict(set)
        for memory in memories:
            originals[memory.episode].add(memory.id)
        self._restore_episodes(episodes, originals, known)
        seqs = [memory.seq for memory in memories if memory.id not in known]
        self._taken = self.taken_numbers(seqs)
        # New numbers are given above all of them.
        self._last_seq = max([self.last_number(), *seqs])
        self._restore_memories(memories, self.homes([*filter(None, originals)]), known)

    def _restore_episodes(
        self,
        episodes: Sequence[ExportedEpisode],
        originals: Mapping[str | None, set[str]],
        known: Mapping[str, str | None],
    ) -> None:
        """Store the episodes that are new and whose originals are all new, and count the outcomes.

        `originals` has the ids of an episode's originals by its id, `known` the text of each stored
        record by id.
        """

        def store(episode: ExportedEpisode) -> Outcome:
            """Store an episode if all of its originals are new; return the outcome."""
            if episode.id in known:
                return _known_summary(known[episode.id])
            members = originals.get(episode.id, set())
            if not members or not members.isdisjoint(known):
                self._outcome.left_out += 1
                return None
            self.insert_episode(episode)
            return True

        self._restore_records(episodes, store)

    def _restore_memories(
        self,
        memories: Sequence[ExportedMemory],
        homes: Mapping[str, StoredEpisode],
        known: dict[str, str | None],
    ) -> None:
        """Store the memories that are not in `known`, and count the outcomes.

        A memory goes to the archive if its episode in `homes` lacks originals, else to working
        memory. `known` has the text of each stored record by id.
        """
        placed: list[PlacedMemory] = []

        def store(memory: ExportedMemory) -> Outcome:
            """Choose the place of a memory to insert; return the outcome."""
            if memory.id in known:
                return known_memory(memory, known[memory.id])
            known[memory.id] = memory.content
            home = _take_episode_place(homes, memory.episode)
            if memory.episode and home is None and not memory.content:
                return WORDS_PRUNED
            placed.append(PlacedMemory(memory, self._free_number(memory.seq), home))
            self._outcome.working += home is None and memory.episode is not None
            return True

        self._restore_records(memories, store)
        self.insert_memories(placed, last_number=self._last_seq)

    def _free_number(self, seq: int) -> int:
        """Return the row number `seq` that a memory had if it is free, else a new row number."""
        if seq in self._taken:
            self._last_seq += 1
            return self._last_seq
        self._taken.add(seq)
        return seq

    def _restore_rollup(self, rollup: ExportedEpisode) -> Outcome:
        """Store a roll-up if all of its members are stored and have no parent; return the outcome.

        Else count it as left out, as the next sleep cycle writes it.
        """
        known = self.known_records([rollup.id])
        if rollup.id in known:
            return _known_summary(known[rollup.id][0])
        if not self.can_adopt(rollup):
            self._outcome.left_out += 1
            return None
        self.insert_episode(rollup)
        self.adopt(rollup)
        return True


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
    """Return False if a summary is stored already, or the reason of a conflict.

    `content` is the text stored under its id: None for a summary, whose text may have been
    rewritten since; the text of a memory is a conflict.
    """
    return False if content is None else OTHER_WORDS
