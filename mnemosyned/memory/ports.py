"""The store of memories, as used by services; each method of a part is one short transaction.

Code that both engines share is in the parts of `storage/common/`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from mnemosyned.memory import consolidation, engine_ports, periods, values
from mnemosyned.memory.exchange import ExportedCompaction

if TYPE_CHECKING:
    from mnemosyned.search.query import Documents, Query, RankedResult, SearchCandidates
    from mnemosyned.storage.common import surroundings
    from mnemosyned.storage.common.edits import ChangeStore
    from mnemosyned.storage.common.endings import EndingStore
    from mnemosyned.storage.common.exchange import ExchangeStore
    from mnemosyned.storage.common.forgetting import DeletionStore
    from mnemosyned.storage.common.injections import InjectionStore
    from mnemosyned.storage.common.learnings import LearningStore
    from mnemosyned.storage.common.listing import ListStore
    from mnemosyned.storage.common.records import RecordStore
    from mnemosyned.storage.common.search import VectorStore
    from mnemosyned.storage.common.sleep import RollupStore, SleepStore
    from mnemosyned.storage.common.undo import RetentionStore, UndoStore


@dataclass(frozen=True, slots=True)
class Draft:
    """A memory to be stored, and how to store it."""

    memory: values.MemoryRecord
    dedupe: bool = False
    """If an earlier memory has the same text, return that one, and store nothing."""
    secrets: Literal["", "kept", "masked"] = ""
    """How secrets in the text were treated; empty if it has none."""
    supersedes: str | None = None
    """The id of the memory that this one replaces."""
    learnings: tuple[values.Learning, ...] = ()
    """Learnings recognized in the text."""
    has_new_id: bool = False
    """Whether the id was generated for this memory, so that no record can have it already."""


@dataclass(frozen=True, slots=True)
class RememberReport:
    """The result of storing drafts."""

    acknowledged: list[values.Acknowledged]
    """One answer for each draft, in order."""
    working: int
    """The size of the working tier, the new memories included."""
    learned: int = 0
    """How many learnings in force came with them."""


@dataclass(frozen=True, slots=True)
class ArchivedMessage:
    """A message taken out of a conversation, as a memory."""

    draft: Draft
    may_reuse: bool
    """Whether a memory with the same text, session, source and speaker may stand in for it."""
    has_timestamp: bool
    """Whether the message has a time of its own: then such a memory must be within the hour."""


@dataclass(frozen=True, slots=True)
class NewCompaction:
    """A compaction to be stored."""

    record: ExportedCompaction
    """With the hash of the summary as it appears in the conversation, and no parts yet."""
    parts: tuple[ArchivedMessage | str, ...]
    """Messages and ids of earlier compactions that it includes, in conversation order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyReport:
    """Result of a check of a store's copy: what it contains."""

    bytes: int
    memories: int
    episodes: int
    problems: tuple[str, ...] = ()
    """Faults that the store itself has, and the copy with it."""


class MaintenanceStore(Protocol):
    """Checks and maintenance of the store, for its operator."""

    def totals(self) -> Mapping[values.Tier, values.TierTotals]:
        """Return the number of entries and characters, and the earliest time, of each tier."""

    def bytes_on_disk(self) -> int:
        """Return the size of the database in bytes, its log files included."""

    def problems(self) -> list[str]:
        """Return present faults of the store, a sentence each; empty if it is healthy."""

    def warnings(self) -> list[str]:
        """Return conditions that endanger the stored data, the gravest first."""

    def longest_write_s(self) -> float:
        """Return the longest time, in seconds, that a commit of this process blocked other writers."""

    def ensure_durable(self) -> None:
        """Verify that acknowledged writes are durable, or repair the file. Raises `DatabaseReplaced`."""

    def pool_figures(self) -> engine_ports.PoolFigures | None:
        """Return the use of the connections to the server; None for a file."""
        return None

    def check_ready(self) -> None:
        """Verify that the store can be read, and written to unless it was opened on a standby.

        Neither connections that are busy nor locks delay it. Raises `StorageFailed`, and `SchemaTooNew`
        if a later program has changed the tables.
        """

    def flush(self) -> None:
        """Make all writes durable."""

    def run_upkeep(self) -> bool:
        """Do deferred work now that would otherwise delay a later write.

        Return False if it could not be finished, so that the caller tries again after the next write. A
        server maintains its files by itself.
        """
        return True

    def run_idle_upkeep(self) -> None:
        """Do deferred work that is only worth it while nothing is being written, if there is any."""
        return

    def release_memory(self, *, words: bool = False) -> None:
        """Free caches, which later calls fill again; word caches only with `words`."""

    def back_up(self, target: Path) -> CopyReport:
        """Write a copy of the store to a new file, check the copy, and return a report on it."""


@dataclass(frozen=True, slots=True)
class Rollup:
    """The summary of a day, week or month with its log row."""

    episode: values.Episode
    entry: consolidation.LogEntry
    members: Mapping[str, str]
    """The summaries it was made from: ids, with the text that was read."""
    index_terms: str = ""
    """Index terms in addition to the words of its text."""


@dataclass(frozen=True, slots=True)
class PendingRollups:
    """Summaries that can be rolled up into one level."""

    children: Sequence[periods.Child]
    """All members of each period in which something is new or was rewritten."""
    existing: Mapping[datetime, str]
    """The ids of roll-ups that exist already, by the beginning of their periods."""


class SearchStore(Protocol):
    """Finder of candidates for a question, which `search/` ranks."""

    def one_snapshot(self) -> AbstractContextManager[None]:
        """Let all reads of this thread in the block share a snapshot, which saves time."""

    def candidates(self, query: Query) -> SearchCandidates:
        """Return the memories and summaries that match a query, not yet ranked."""

    def documents(self, results: Sequence[RankedResult]) -> Documents:
        """Return the memories and episodes that ranked results refer to."""


@dataclass(frozen=True, slots=True)
class Promotion:
    """An episode with its log row, to be stored together."""

    episode: values.Episode
    entry: consolidation.LogEntry
    spoken: frozenset[str] = frozenset()
    """Originals that the summary mentions: none may be superseded meanwhile."""
    index_terms: str = ""
    """Index terms in addition to the words of its text."""
    revision: int | None = None
    """The last edit before the originals were read: none of them may be edited since."""


class MemoryStore(Protocol):
    """The whole store. Every method of its parts is one short transaction, safe from any thread.

    All of them raise `StorageFailed` if the storage fails.
    """

    schema_version: int
    read_only: bool
    """Whether the server takes no writes, as a standby does."""
    memories: RecordStore
    """Single memories and episodes, and messages replaced by summaries."""
    lists: ListStore
    """Memories and summaries in the order of time, sessions and sources."""
    search: SearchStore
    """Candidates and documents of a recall."""
    vectors: VectorStore
    """Vectors of memories."""
    sleep: SleepStore
    """Pending memories, promotion and the consolidation log."""
    rollups: RollupStore
    """Summaries of periods, and stale summaries."""
    deletion: DeletionStore
    """Forgetting, the grace period, and purging."""
    changes: ChangeStore
    """Edits, tags and pins."""
    learnings: LearningStore
    """Standing instructions and facts."""
    maintenance: MaintenanceStore
    """Totals, health, durability and backups."""
    retention: RetentionStore
    """Restoring and pruning."""
    undo: UndoStore
    """Records of actions that can be undone, and undo of consolidated episodes."""
    exchange: ExchangeStore
    """Export and exact import."""
    agents: surroundings.AgentStore
    """Sessions of agents, and the activity of their hooks."""
    endings: EndingStore
    """Statements that newer ones ended."""
    injections: InjectionStore
    """The ledger of injected context, and edits of briefings."""
    watches: surroundings.WatchStore
    """Watched folders, and the reading positions of their files."""
    clock: surroundings.ClockStore
    """The last believed clock reading."""
