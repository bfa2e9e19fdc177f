"""Ports of the store of memories; each method of a store is one short transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set as AbstractSet
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from mnemosyned.memory.capture import AgentStore, WatchStore
from mnemosyned.memory.clock import ClockStore
from mnemosyned.memory.consolidation import (
    LogEntry,
    Pending,
    Selection,
    WorkingActivity,
)
from mnemosyned.memory.edit import EditOutcome, MemoryEdit
from mnemosyned.memory.endings import EndingStore
from mnemosyned.memory.engine_ports import VectorStore
from mnemosyned.memory.exchange import ExchangeStore
from mnemosyned.memory.forgetting import (
    ForgetFilter,
    Grace,
    Newest,
    Prunable,
    Removal,
    Retention,
    StaleSummary,
    UndoneEpisode,
)
from mnemosyned.memory.injections import InjectionStore
from mnemosyned.memory.listing import ListFilter, ListPage, SessionTotals, SourceTotals
from mnemosyned.memory.periods import Child, Level
from mnemosyned.memory.values import (
    Acknowledged,
    Episode,
    Learning,
    LearningKind,
    MemoryRecord,
    Recoverable,
    Revision,
    Tier,
    TierTotals,
)

if TYPE_CHECKING:
    from mnemosyned.search.query import (
        Documents,
        Query,
        RankedResult,
        SearchCandidates,
    )


class GraceStore(Protocol):
    """Puts forgotten memories back, or deletes them for good."""

    def recoverable_keys(
        self, ids: Sequence[str] = (), *, before: datetime | None = None
    ) -> list[str]:
        """Return the keys of forgotten records by memory ids or ids of forget calls.

        With `before`, return also those whose grace period ends by then.
        """
        ...

    def put_back(self, keys: Sequence[str]) -> list[tuple[str, int]]:
        """Restore forgotten records by key; return ids and row numbers of the restored memories.

        Memories go to working memory. A memory stays forgotten if its id has been stored again
        since.
        """
        ...

    def finish(self, keys: Sequence[str]) -> int:
        """Delete forgotten records for good by their keys, and return how many were deleted."""
        ...

    def recoverable(self) -> Recoverable:
        """Return the number of recoverable memories, and the first end of a grace period."""
        ...

    def recoverable_until(self, id: str) -> datetime | None:
        """Return the end of the grace period of a memory or forget call, by id.

        None if it has none.
        """
        ...


class RetentionStore(Protocol):
    """Restores memories, and prunes the text of old originals."""

    def restore(self, id: str) -> Removal:
        """Move an original from the archive back to working memory, pinned; return what changed.

        Raises `BatchChanged`, and `WordsPruned` if pruned originals would lose their summary.
        """
        ...

    def prunable(self, retention: Retention, *, now: datetime, limit: int) -> Prunable:
        """Return up to about `limit` originals whose text a retention prunes, oldest first."""
        ...

    def prune(self, ids: Sequence[str], *, now: datetime) -> int:
        """Delete the text of the originals with these ids; return how many had a text.

        Exact values and provenance stay.
        """
        ...


class UndoStore(Protocol):
    """Takes consolidated episodes apart again."""

    def last_cycle(self) -> str | None:
        """Return the id of the newest cycle that can be undone; None if there is none."""
        ...

    def preview(self, episodes: Sequence[str]) -> list[UndoneEpisode]:
        """Return the result that undoing each of these episodes would have, and change nothing."""
        ...

    def apply(
        self, episodes: Sequence[str], *, now: datetime, held_until: datetime
    ) -> list[UndoneEpisode]:
        """Move the originals of episodes back to working memory, and delete the episodes.

        An episode with pruned originals stays. Until `held_until` no cycle takes the memories
        again, except a cycle that ignores age. Return one result for each episode.
        """
        ...


class ChangeStore(Protocol):
    """Changes memories in whatever tier they are; unknown ids are skipped."""

    def edit(
        self, edits: Sequence[MemoryEdit], *, now: datetime, drop_history: bool = False
    ) -> EditOutcome:
        """Apply edits, save the earlier revisions, and empty the summaries that become stale.

        An original with a new session, source or time returns to working memory, unless all
        originals of its episode move alike. With `drop_history` no earlier text is kept. Raises
        `BatchChanged` if a memory is no longer as it was read.
        """
        ...

    def groups(self, ids: Sequence[str], *, size: int) -> list[list[str]]:
        """Split memory ids into groups of about `size`; originals of one episode stay together."""
        ...

    def revisions(self, id: str) -> list[Revision]:
        """Return the earlier revisions of an edited memory, the latest first."""
        ...

    def tag(self, ids: Sequence[str], tags: Sequence[str]) -> int:
        """Add tags to memories; return how many memories lacked a tag. Raises `InvalidRequest`."""
        ...

    def untag(self, ids: Sequence[str], tags: Sequence[str]) -> int:
        """Remove tags from memories; return how many memories had a tag."""
        ...

    def pin(self, ids: Sequence[str], *, pinned: bool) -> int:
        """Pin or unpin working memories; return how many of these ids are working memories."""
        ...


@dataclass(frozen=True, slots=True)
class Draft:
    """A memory handed in, with what else its storing entails."""

    memory: MemoryRecord
    dedupe: bool = False
    """Answer with an earlier memory of the same words, if there is one, instead of storing."""
    secrets: Literal["", "kept", "masked"] = ""
    """How secrets in the text were treated; empty if it has none."""
    supersedes: str | None = None
    """The id of the memory that this one replaces."""
    learnings: tuple[Learning, ...] = ()
    """Learnings recognized in the text."""
    has_new_id: bool = False
    """Whether its id was made for it, so that no record can have it already."""


@dataclass(frozen=True, slots=True)
class RememberReport:
    """The result of storing drafts."""

    acknowledged: list[Acknowledged]
    """One answer for each draft, in order."""
    working: int
    """The size of the working tier, the new memories included."""
    learned: int = 0
    """How many learnings in force came with them."""


class RecordStore(Protocol):
    """Single memories and episodes, by id."""

    def remember(self, drafts: Sequence[Draft]) -> RememberReport:
        """Store all drafts with their learnings, or none; return an answer for each, and counts.

        Raises `IdTaken`, and `NotFound` for the id that a draft should supersede.
        """
        ...

    def get(self, id: str) -> MemoryRecord | Episode:
        """Return the memory or episode with this id. Raises `NotFound`."""
        ...

    def originals(self, episode: str) -> list[MemoryRecord]:
        """Return all original memories below a summary of any level, the oldest first."""
        ...

    def summaries(self, ids: Sequence[str]) -> list[Episode]:
        """Return the summaries with these ids that exist, the oldest first.

        Their sources and exact values are left empty.
        """
        ...

    def working(self, ids: Sequence[str]) -> list[MemoryRecord]:
        """Return the memories with these ids that are in working memory, oldest first."""
        ...

    def existing(self, ids: Sequence[str]) -> list[MemoryRecord]:
        """Return the memories with these ids that exist, in either tier and in no order."""
        ...

    def working_count(self) -> int:
        """Count the memories of the working tier."""
        ...

    def history(self, id: str) -> list[MemoryRecord]:
        """Return the memories that a memory superseded, directly or in turn, the newest first."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionRecord:
    """A compaction of a conversation, by the id that its summary names."""

    id: str
    session: str
    source: str | None
    policy: str
    created_at: datetime


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

    record: CompactionRecord
    text: str
    """The summary as it appears in the conversation, which identifies it later."""
    parts: tuple[ArchivedMessage | str, ...]
    """Messages and ids of earlier compactions that it includes, in conversation order."""

    def part_ids(self, places: Mapping[str, str]) -> list[str]:
        """Return the ids of the compaction's parts, in order.

        They are the memory ids of messages, and the ids of earlier compactions. `places` has the id
        of the memory that stores a message by the message's id.
        """
        return [
            places[part.draft.memory.id] if isinstance(part, ArchivedMessage) else part
            for part in self.parts
        ]


def assign_memory_ids(
    compactions: Iterable[NewCompaction],
    find_memory: Callable[[ArchivedMessage], str | None],
) -> tuple[dict[str, str], list[Draft]]:
    """Return the memory id of each message by message id, and the drafts of memories to store.

    `find_memory` returns the id of a stored memory that holds a message already, or None.
    """
    places: dict[str, str] = {}
    drafts: list[Draft] = []
    messages = {
        part.draft.memory.id: part
        for compaction in compactions
        for part in compaction.parts
        if isinstance(part, ArchivedMessage)
    }
    for id, message in messages.items():
        home = find_memory(message)
        if home is None:
            drafts.append(message.draft)
        places[id] = home or id
    return places, drafts


class CompactionStore(Protocol):
    """Keeps the messages that compactions replaced by a summary."""

    def add(self, compactions: Sequence[NewCompaction]) -> list[str]:
        """Store compactions with their messages, all or none; return the ids of the memories.

        Messages that were stored before are not stored again.
        """
        ...

    def get(self, id: str) -> tuple[CompactionRecord, list[MemoryRecord]] | None:
        """Return a compaction and its remaining messages, in conversation order; None if unknown."""
        ...

    def find_by_summary(
        self, text: str, *, session: str, source: str | None
    ) -> str | None:
        """Return the id of the compaction in a session and source with this summary text.

        None if there is none.
        """
        ...


class DeletionStore(Protocol):
    """Deletes memories and learnings for good."""

    def select(self, choice: ForgetFilter) -> list[str]:
        """Return the ids of the memories that match a filter, in working memory and the archive."""
        ...

    def select_learnings(self, choice: ForgetFilter) -> list[str]:
        """Return the ids of the learnings that match a filter."""
        ...

    def newest(self) -> Newest:
        """Return the row numbers of the newest memory and the newest learning, 0 for none."""
        ...

    def ids_under(self, summary: str) -> list[str]:
        """Return the ids of all originals under a summary of any level."""
        ...

    def preview(self, ids: Sequence[str], *, learned: Sequence[str] = ()) -> Removal:
        """Return the counts of what forgetting these memories and learnings would delete."""
        ...

    def forget(self, ids: Sequence[str], *, grace: Grace | None = None) -> Removal:
        """Delete the memories with the given ids and their index entries; return the changes.

        With `grace` copies are kept apart until it ends, and not purged before. Every summary made
        of them loses its text until `RollupStore.rewrite` writes a new one; without remaining
        members it is deleted.
        """
        ...

    def forget_learnings(
        self, ids: Sequence[str], *, grace: Grace | None = None
    ) -> Removal:
        """Delete these learnings; unknown ids are skipped; return the counts.

        With `grace` copies are kept apart until it ends.
        """
        ...

    def orphaned_log_names(self) -> tuple[list[str], list[str]]:
        """Return the sessions and the sources that logs or compactions have but no memory has."""
        ...

    def forget_names(self, *, sessions: Iterable[str], sources: Iterable[str]) -> None:
        """Erase these sessions and sources from logs and compactions, unless a memory has them."""
        ...

    def purge_due(self) -> bool:
        """Return whether deleted text still waits for a purge."""
        ...

    def purge_deleted(self) -> bool:
        """Overwrite all text deleted before this call in the files of the store.

        Return False if some text remains, as another program is reading; then try again later. On a
        server it is no more than VACUUM, and `beyond_purge` names what the server keeps.
        """
        ...

    def beyond_purge(self) -> tuple[str, ...]:
        """Return the places that keep deleted text after a purge, and until when, as sentences."""
        ...


class LearningStore(Protocol):
    """Store of learnings; a new learning supersedes contradicting old ones."""

    def add(self, learning: Learning) -> tuple[Learning, list[str]]:
        """Store a learning unless an equal one is stored; return the stored learning.

        Also return the ids of the learnings that it supersedes.
        """
        ...

    def find(
        self,
        *,
        sources: Sequence[str | None] = (),
        kind: LearningKind | None = None,
        superseded: bool = False,
        limit: int,
    ) -> list[Learning]:
        """Return up to `limit` learnings, the newest first; superseded ones only with `superseded`.

        `sources` limits them to these sources, None being no source, and `kind` to one kind; by
        default all sources and kinds count.
        """
        ...

    def edit(self, id: str, text: str) -> None:
        """Replace the text of a learning. Raises `NotFound`."""
        ...

    def remove(self, id: str) -> None:
        """Delete a learning; learnings that it superseded apply again. Raises `NotFound`."""
        ...


class ListStore(Protocol):
    """Lists what is kept, without a question."""

    def page(self, wanted: ListFilter) -> ListPage:
        """Return one page of the records that a filter selects: memories, summaries or both."""
        ...

    def sessions(self) -> list[SessionTotals]:
        """Return the totals of each session, the session with the newest memory first."""
        ...

    def sources(self) -> list[SourceTotals]:
        """Return the totals of each source, the source with the newest memory first."""
        ...

    def count_since(self, moment: datetime) -> int:
        """Count the memories created at `moment` or later, in every tier."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyReport:
    """The contents of a copy of the store, which was read through."""

    bytes: int
    memories: int
    episodes: int
    problems: tuple[str, ...] = ()
    """Faults that the store itself has, and the copy with it."""


class MaintenanceStore(Protocol):
    """The store as its operator sees it."""

    def totals(self) -> Mapping[Tier, TierTotals]:
        """Return the number of entries, of characters and the earliest time of each tier."""
        ...

    def bytes_on_disk(self) -> int:
        """Return the size of the database in bytes, its log files included."""
        ...

    def problems(self) -> list[str]:
        """Return present faults of the store, a sentence each; empty if it is healthy."""
        ...

    def warnings(self) -> list[str]:
        """Return conditions that endanger the stored data, the gravest first."""
        ...

    def longest_write_s(self) -> float:
        """Return the longest time in seconds for which a commit has blocked other writers.

        The time counts from the start of this process.
        """
        ...

    def ensure_durable(self) -> None:
        """Verify that acknowledged writes are durable, and repair the database file.

        Raises `DatabaseReplaced` if nothing more can be stored until a restart.
        """
        ...

    def flush(self) -> None:
        """Make all writes durable."""
        ...

    def run_upkeep(self) -> bool:
        """Do deferred work now that would otherwise delay a later write.

        Return False if it could not be finished, and is to be tried again after the next write.
        """
        ...

    def run_idle_upkeep(self) -> None:
        """Do deferred work that is only worth it while nothing is being written."""
        ...

    def release_memory(self, *, words: bool = False) -> None:
        """Free caches, which later calls fill again; word caches only with `words`."""
        ...

    def back_up(self, target: Path) -> CopyReport:
        """Write a consistent copy of the store to a new file, and verify it by reading all of it.

        Return what the copy holds.
        """
        ...


@dataclass(frozen=True, slots=True)
class Rollup:
    """The summary of a day, week or month with its log row."""

    episode: Episode
    entry: LogEntry
    members: Mapping[str, str]
    """The summaries it was made of: ids, with the text that was read."""
    index_terms: str = ""
    """Index terms in addition to the words of its text."""


@dataclass(frozen=True, slots=True)
class PendingRollups:
    """Summaries that can be rolled up into one level."""

    children: Sequence[Child]
    """All members of each period in which something is new or was rewritten."""
    existing: Mapping[datetime, str]
    """The ids of roll-ups that exist already, by the beginning of their periods."""


class RollupStore(Protocol):
    """Roll-ups and stale summaries."""

    def pending(
        self,
        *,
        to_level: Level,
        before: datetime,
        limit: int,
        opened: Iterable[datetime] = (),
    ) -> PendingRollups:
        """Return summaries to be rolled up into `to_level`, and the existing roll-ups to replace.

        Up to `limit` summaries without a roll-up that began before `before` are among them. A
        roll-up is replaced if it is stale, or if such a summary or a time in `opened` belongs to
        its period.
        """
        ...

    def write(self, rollup: Rollup) -> None:
        """Insert or replace the roll-up of a period, make it the parent of its members, and log it.

        Raises `BatchChanged` if a member has changed since it was read.
        """
        ...

    def next_stale(self, *, highest: Level = Level.MONTH) -> StaleSummary | None:
        """Return the next summary to be rewritten, with its originals or members, or None.

        Summaries of the lowest level come first; levels above `highest` are left out.
        """
        ...

    def index_terms(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the stored index terms of summaries by id, one text for each summary."""
        ...

    def rewrite(self, token: int, episode: Episode, *, index_terms: str = "") -> None:
        """Write the new text of a stale summary.

        `token` is that of the `StaleSummary`. Raises `BatchChanged` if it became stale again since
        then.
        """
        ...


class SearchStore(Protocol):
    """Finds candidates; ranking them is the domain's."""

    def candidates(self, query: Query) -> SearchCandidates:
        """Return the memories and summaries that match a query, not yet ranked."""
        ...

    def documents(self, results: Sequence[RankedResult]) -> Documents:
        """Return the memories and episodes that ranked results refer to."""
        ...


@dataclass(frozen=True, slots=True)
class Promotion:
    """An episode with its log row, to be stored together."""

    episode: Episode
    entry: LogEntry
    spoken: frozenset[str] = frozenset()
    """Originals that the summary mentions: none may be superseded meanwhile."""
    index_terms: str = ""
    """Index terms in addition to the words of its text."""
    revision: int | None = None
    """The last edit before the originals were read: none of them may be edited meanwhile."""


class SleepStore(Protocol):
    """The working tier as a sleep cycle reads it, and the changes that a cycle writes."""

    def activity(
        self, *, fresh: datetime, now: datetime, limit: int
    ) -> WorkingActivity:
        """Count the first `limit` working memories for the triggers of sleep.

        `by_source` counts memories created before `fresh`. Memories that an undo holds back beyond
        `now` are not movable.
        """
        ...

    def claim(self) -> AbstractContextManager[Callable[[], bool]]:
        """Keep other processes from consolidating this memory while the block runs.

        Yields a function that returns whether the claim still holds; a process that lost it must
        end its cycle. Raises `SleepInProgress` if another process consolidates.
        """
        ...

    def newest_revision(self) -> int:
        """Return the revision number of the latest edit of any memory; 0 if there is none."""
        ...

    def pending(self, selection: Selection, *, limit: int) -> list[Pending]:
        """Return up to `limit` working memories of a selection that are not pinned, oldest first.

        With `selection.now`, memories dated in the future are included if their date was known to
        be in the future before `selection.before`.
        """
        ...

    def count_due(self, selection: Selection, *, limit: int) -> int:
        """Count the working memories, not pinned, that a selection has; stop at `limit`."""
        ...

    def ids_excluded_from_summaries(self) -> AbstractSet[str]:
        """Return the ids of working memories that were superseded or may expire.

        No summary may mention them.
        """
        ...

    def chars_per_s(self, summarizer: str) -> float | None:
        """Return how many characters a second a summarizer recently read; None without data."""
        ...

    def consolidate(
        self, groups: Sequence[Sequence[Promotion]], *, durable: bool = True
    ) -> list[Exception | None]:
        """Store the episodes of each group, and move their originals to the archive.

        Each group is stored entirely or not at all, independent of the others. Return for each None
        or the error, `BatchChanged` if one of its memories has changed. Without `durable`, a power
        failure may undo all groups until the next durable write or `flush`.
        """
        ...

    def record_failure(self, entry: LogEntry) -> None:
        """Write the log row of a group that failed."""
        ...

    def log(
        self, *, limit: int, session: str | None = None, cycle: str | None = None
    ) -> list[LogEntry]:
        """Return up to `limit` entries of the consolidation log, the newest first.

        `session` and `cycle` limit them to a session and to a cycle; None sets no limit.
        """
        ...


class MemoryStore(Protocol):
    """The whole store. Every method of its parts is one short transaction, safe from any thread.

    All of them raise `StorageFailed` if the storage fails.
    """

    schema_version: int
    read_only: bool
    """Whether the server takes no writes, as a standby does."""
    memories: RecordStore
    """Single memories and episodes."""
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
    """Forgetting and purging."""
    changes: ChangeStore
    """Edits, tags and pins."""
    learnings: LearningStore
    """Standing instructions and facts."""
    compactions: CompactionStore
    """Messages replaced by summaries."""
    maintenance: MaintenanceStore
    """Totals, health, durability and backups."""
    retention: RetentionStore
    """Restoring and pruning."""
    undo: UndoStore
    """Undo of consolidated episodes."""
    grace: GraceStore
    """Forgotten memories in their grace period."""
    exchange: ExchangeStore
    """Export and exact import."""
    agents: AgentStore
    """Sessions of agents, and the activity of their hooks."""
    endings: EndingStore
    """Statements that newer ones ended."""
    injections: InjectionStore
    """The ledger of injected context, and edits of briefings."""
    watches: WatchStore
    """Watched folders, and the reading positions of their files."""
    clock: ClockStore
    """The last believed clock reading."""
