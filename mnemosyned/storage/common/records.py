"""Single memories and episodes, read by their ids."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Sequence

from mnemosyned.errors import NotFound
from mnemosyned.memory.edit import HISTORY_MAX
from mnemosyned.memory.intake import IntakeTransaction, Known
from mnemosyned.memory.ports import Draft, RememberReport
from mnemosyned.memory.values import Episode, MemoryRecord, Tier, TierTotals
from mnemosyned.storage.common.episodes import episode_at
from mnemosyned.storage.common.learnings import LearningRows
from mnemosyned.storage.common.rows import (
    EPISODE_COLUMNS,
    episode_from,
    optional_instant,
)
from mnemosyned.storage.common.session import (
    CommonSession,
    EngineSession,
    Transactional,
    reads,
)
from mnemosyned.storage.common.state import supersede, was_said


class CommonIntake(IntakeTransaction):
    """New memories on their way into working memory of either engine."""

    _known_records: Callable[[EngineSession, Sequence[str]], dict[str, Known]]

    def __init__(self, session: EngineSession) -> None:
        self._session = session

    def _lock(self) -> None:
        """Keep other processes from storing memories until the transaction ends.

        Here, do nothing: an engine that needs a lock overrides the method.
        """

    def make_keeper(self) -> LearningRows:
        """Return an object that reads and stores learnings within this transaction."""
        self._lock()
        return LearningRows(self._session)

    def known_records(self, ids: Sequence[str]) -> dict[str, Known]:
        """Return text, time and text hash of stored memories and episodes with these ids, by id.

        The text of an episode is None.
        """
        self._lock()
        return self._known_records(self._session, ids)

    def was_said(self, id: str, content: str) -> bool:
        """Return whether an earlier revision of the memory with this id had this text."""
        self._lock()
        return was_said(self._session, id, content)

    def forgotten(self, keys: Collection[str]) -> set[str]:
        """Return those of the keys by which a forgotten memory is recognized."""
        rows = self._session.execute(
            "SELECT id FROM agent_forgotten "
            "WHERE owner = %(owner)s AND id = ANY(%(keys)s::text[])",
            keys=list(keys),
        )
        return {key for (key,) in rows}

    def supersede(self, *, old: str, new: str) -> None:
        """Mark the memory `old` as superseded by `new`. Raises `NotFound` and `InvalidRequest`.

        If `old` has successors already, the last of these successors is marked.
        """
        self._lock()
        supersede(self._session, old=old, new=new)


class RecordStore(Transactional):
    """Single memories and episodes, by id."""

    @reads
    def get(self, session: CommonSession, id: str) -> MemoryRecord | Episode:
        """Return the memory or episode with this id. Raises `NotFound`."""
        memory = session.memories([id]).get(id)
        record = memory or episode_at(session, "id", id, details=True)
        if record is None:
            raise NotFound(
                f"nothing has the id {id!r}; `recall` shows the ids that exist",
                field="id",
            )
        return record

    @reads
    def originals(self, session: CommonSession, episode: str) -> list[MemoryRecord]:
        """Return all original memories below a summary of any level, the oldest first."""
        return self._originals(session, episode)

    @abstractmethod
    def _originals(self, session: EngineSession, summary: str) -> list[MemoryRecord]:
        """Return the originals below a summary of any level, the oldest first."""

    @reads
    def summaries(self, session: CommonSession, ids: Sequence[str]) -> list[Episode]:
        """Return the existing summaries with these ids, oldest first, without sources or details.

        Unknown ids are left out.
        """
        rows = session.execute(
            f"SELECT {EPISODE_COLUMNS} FROM episode "
            "WHERE owner = %(owner)s AND id = ANY(%(ids)s::text[])",
            ids=list(ids),
        )
        return sorted(
            map(episode_from, rows),
            key=lambda summary: (summary.covers_from, summary.id),
        )

    @reads
    def working(self, session: CommonSession, ids: Sequence[str]) -> list[MemoryRecord]:
        """Return the memories among these ids that are in working memory, oldest first."""
        memories = session.memories(ids).values()
        return [memory for memory in memories if memory.tier is Tier.WORKING]

    @reads
    def existing(
        self, session: CommonSession, ids: Sequence[str]
    ) -> list[MemoryRecord]:
        """Return the existing memories among these ids, from both tiers, in no order."""
        return list(session.memories(ids).values())

    @reads
    def working_count(self, session: CommonSession) -> int:
        """Return the number of memories in working memory."""
        count, _ = session.totals()[Tier.WORKING]
        return count

    @reads
    def history(self, session: CommonSession, id: str) -> list[MemoryRecord]:
        """Return the memories that a memory superseded, directly or in turn, the newest first.

        None of them for an unknown id; at most `HISTORY_MAX`.
        """
        position = session.position_of(id)
        older: list[MemoryRecord] = []
        newer: list[int] = [position[0]] if position else []
        while newer and len(older) < HISTORY_MAX:
            rows = session.execute(
                "SELECT memory_seq FROM memory_state WHERE owner = %(owner)s "
                "AND superseded_by = ANY(%(seqs)s::bigint[]) "
                "ORDER BY superseded_at DESC, memory_seq DESC LIMIT %(most)s",
                seqs=newer,
                most=HISTORY_MAX,
            )
            newer = [seq for (seq,) in rows]
            memories = session.memories_at(newer)
            older += [memories[seq] for seq in newer if seq in memories]
        return older[:HISTORY_MAX]

    @abstractmethod
    def remember(self, drafts: Sequence[Draft]) -> RememberReport:
        """Store all drafts with their learnings, or none; return an answer for each, and counts.

        Raises `IdTaken`, and `NotFound` for the id that a draft should supersede.
        """


def tier_totals(session: CommonSession) -> dict[Tier, TierTotals]:
    """Return the number of entries, of characters and the earliest time of each tier.

    The earliest time of the archive is that of its first episode.
    """
    working = session.scalar(
        "SELECT min(created_at) FROM fresh WHERE owner = %(owner)s"
    )
    episodes = session.scalar(
        "SELECT min(covers_from) FROM episode WHERE owner = %(owner)s"
    )
    totals = session.totals()
    return {
        tier: TierTotals(*totals[tier], optional_instant(oldest))
        for tier, oldest in (
            (Tier.WORKING, working),
            (Tier.EPISODIC, episodes),
            (Tier.ARCHIVE, episodes),
        )
    }
