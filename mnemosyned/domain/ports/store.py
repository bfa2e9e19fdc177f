"""The store: one port for each of its consumers, over the same data."""

from __future__ import annotations

from typing import Protocol

from mnemosyned.domain.ports.archive.exchange import ExchangeStore
from mnemosyned.domain.ports.archive.grace import GraceStore
from mnemosyned.domain.ports.archive.retention import RetentionStore, UndoStore
from mnemosyned.domain.ports.changes import ChangeStore
from mnemosyned.domain.ports.clock import ClockStore
from mnemosyned.domain.ports.compactions import CompactionStore
from mnemosyned.domain.ports.deletion import DeletionStore
from mnemosyned.domain.ports.learnings import LearningStore
from mnemosyned.domain.ports.listing import ListStore
from mnemosyned.domain.ports.maintenance import MaintenanceStore
from mnemosyned.domain.ports.records import RecordStore
from mnemosyned.domain.ports.rollups import RollupStore
from mnemosyned.domain.ports.search import SearchStore
from mnemosyned.domain.ports.sleep import SleepStore
from mnemosyned.domain.ports.surroundings.agents import AgentStore
from mnemosyned.domain.ports.surroundings.watching import WatchStore


class ArchiveStores(Protocol):
    """Restoring and pruning, undo, grace times, export and exact import."""

    @property
    def retention(self) -> RetentionStore:
        """Restoring and pruning."""
        ...

    @property
    def undo(self) -> UndoStore:
        """Undo of consolidated episodes."""
        ...

    @property
    def grace(self) -> GraceStore:
        """Forgotten memories that can be put back."""
        ...

    @property
    def exchange(self) -> ExchangeStore:
        """Export and exact import."""
        ...


class SurroundingStores(Protocol):
    """State of what surrounds memory."""

    @property
    def agents(self) -> AgentStore:
        """Sessions of agents, and what their hooks did."""
        ...

    @property
    def watches(self) -> WatchStore:
        """Folders that are followed, and how far their files were read."""
        ...

    @property
    def clock(self) -> ClockStore:
        """The last believed clock reading."""
        ...


class MemoryStore(Protocol):
    """The whole store. Every method of its parts is one short transaction, safe from any thread.

    All of them raise `StorageFailed` if the storage fails.
    """

    @property
    def memories(self) -> RecordStore:
        """Single memories and episodes."""
        ...

    @property
    def lists(self) -> ListStore:
        """Memories and summaries in the order of time, sessions and sources."""
        ...

    @property
    def search(self) -> SearchStore:
        """Candidates and documents of a recall."""
        ...

    @property
    def sleep(self) -> SleepStore:
        """Pending memories, promotion and the consolidation log."""
        ...

    @property
    def rollups(self) -> RollupStore:
        """Summaries of periods, and stale summaries."""
        ...

    @property
    def deletion(self) -> DeletionStore:
        """Forgetting and purging."""
        ...

    @property
    def changes(self) -> ChangeStore:
        """Tags and pins."""
        ...

    @property
    def learnings(self) -> LearningStore:
        """Standing instructions and facts."""
        ...

    @property
    def compactions(self) -> CompactionStore:
        """Messages replaced by summaries."""
        ...

    @property
    def maintenance(self) -> MaintenanceStore:
        """Totals, health, durability and backups."""
        ...

    @property
    def archive(self) -> ArchiveStores:
        """Restoring, pruning, undo, export and exact import."""
        ...

    @property
    def surroundings(self) -> SurroundingStores:
        """Sessions of agents, watched folders, the last believed clock reading."""
        ...
