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
        """Return the keys of what can be put back: of these memories and calls, or final by then."""
        ...

    def put_back(self, keys: Sequence[str]) -> list[tuple[str, int]]:
        """Put what was kept under these keys back, memories into working memory.

        Returns ids and positions; those whose id was remembered again stay forgotten.
        """
        ...

    def finish(self, keys: Sequence[str]) -> int:
        """Delete recoverable memories for good by their keys; return the number deleted."""
        ...

    def recoverable(self) -> Recoverable:
        """Return what can be put back."""
        ...

    def is_recoverable(self, id: str) -> datetime | None:
        """Return the end of the grace period of a memory or call; None if there is none."""
        ...


class RetentionStore(Protocol):
    """Restores memories, and prunes the text of old originals."""

    def restore(self, id: str) -> Removal:
        """Move an original back to working memory, pinned.

        Raises `BatchChanged`, and `WordsPruned` if pruned originals would lose their summary.
        """
        ...

    def prunable(self, retention: Retention, *, now: datetime, limit: int) -> Prunable:
        """Return the originals whose text a retention gives up, oldest first."""
        ...

    def prune(self, ids: Sequence[str], *, now: datetime) -> int:
        """Delete the text of these originals; details, hashes and provenance stay."""
        ...


class UndoStore(Protocol):
    """Takes consolidated episodes apart again."""

    def last_cycle(self) -> str | None:
        """Return the newest cycle of which something can be put back."""
        ...

    def preview(self, episodes: Sequence[str]) -> list[UndoneEpisode]:
        """Return what an undo of these episodes would put back."""
        ...

    def apply(
        self, episodes: Sequence[str], *, now: datetime, held_until: datetime
    ) -> list[UndoneEpisode]:
        """Put the originals of these episodes back as they were, and delete the episodes.

        Until `held_until` no cycle takes them again, except one that ignores age.
        """
        ...


class ChangeStore(Protocol):
    """Changes memories in whatever tier they are; unknown ids are skipped."""

    def edit(
        self, edits: Sequence[MemoryEdit], *, now: datetime, drop_history: bool = False
    ) -> EditOutcome:
        """Edit memories, save their revisions, and empty their stale summaries.

        An original that belongs elsewhere now returns to working memory, unless all originals of
        its episode move to the same session and source. With `drop_history` no earlier words are
        kept. Raises `BatchChanged` if a memory is no longer as it was read.
        """
        ...

    def groups(self, ids: Sequence[str], *, size: int) -> list[list[str]]:
        """Part memories into groups of about a size, with the originals of an episode together."""
        ...

    def revisions(self, id: str) -> list[Revision]:
        """Return what a memory was before, the latest first."""
        ...

    def tag(self, ids: Sequence[str], tags: Sequence[str]) -> int:
        """Give memories tags; return how many lacked one. Raises `InvalidRequest` for too many."""
        ...

    def untag(self, ids: Sequence[str], tags: Sequence[str]) -> int:
        """Take tags from memories; return how many had one."""
        ...

    def pin(self, ids: Sequence[str], *, pinned: bool) -> int:
        """Pin or unpin working memories; return how many of these there are."""
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
        """Store all drafts with their learnings, or none.

        Raises `IdTaken`, and `NotFound` for the id that a draft should supersede.
        """
        ...

    def get(self, id: str) -> MemoryRecord | Episode:
        """Return the memory or episode with this id. Raises `NotFound`."""
        ...

    def originals(self, episode: str) -> list[MemoryRecord]:
        """Return all originals under a summary of any level, oldest first, word for word."""
        ...

    def summaries(self, ids: Sequence[str]) -> list[Episode]:
        """Return the existing ones of these summaries, oldest first.

        Provenance and details are left empty.
        """
        ...

    def working(self, ids: Sequence[str]) -> list[MemoryRecord]:
        """Return those of these memories still in the working tier, oldest first."""
        ...

    def existing(self, ids: Sequence[str]) -> list[MemoryRecord]:
        """Return the memories that exist of these, in either tier and in no order."""
        ...

    def working_count(self) -> int:
        """Count the memories of the working tier."""
        ...

    def history(self, id: str) -> list[MemoryRecord]:
        """Return the memories superseded by a memory, the newest first."""
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
        """Return the ids of its parts; for a message, the id of its memory."""
        return [
            places[part.draft.memory.id] if isinstance(part, ArchivedMessage) else part
            for part in self.parts
        ]


def archived_messages(
    compactions: Iterable[NewCompaction],
) -> Iterable[ArchivedMessage]:
    """Return the messages that were taken out, each once."""
    messages: dict[str, ArchivedMessage] = {}
    for compaction in compactions:
        for part in compaction.parts:
            if isinstance(part, ArchivedMessage):
                messages[part.draft.memory.id] = part
    return messages.values()


def places_of(
    compactions: Iterable[NewCompaction],
    home_of: Callable[[ArchivedMessage], str | None],
) -> tuple[dict[str, str], list[Draft]]:
    """Return the memory of each message by id, and the messages to store.

    `home_of` finds the memory that holds a message already.
    """
    places: dict[str, str] = {}
    drafts: list[Draft] = []
    for message in archived_messages(compactions):
        id = message.draft.memory.id
        home = home_of(message)
        if home is None:
            drafts.append(message.draft)
        places[id] = home or id
    return places, drafts


class CompactionStore(Protocol):
    """Keeps the messages that compactions replaced by a summary."""

    def add(self, compactions: Sequence[NewCompaction]) -> list[str]:
        """Store compactions with their messages, or none; returns the ids of the memories.

        Messages stored before are not stored twice.
        """
        ...

    def get(self, id: str) -> tuple[CompactionRecord, list[MemoryRecord]] | None:
        """Return a compaction and its remaining messages, in conversation order."""
        ...

    def find_by_summary(
        self, text: str, *, session: str, source: str | None
    ) -> str | None:
        """Return the id of the session's compaction with this summary, if any."""
        ...


class DeletionStore(Protocol):
    """Deletes memories and learnings for good."""

    def select(self, choice: ForgetFilter) -> list[str]:
        """Return the ids of the memories that match a filter, in every tier."""
        ...

    def select_learnings(self, choice: ForgetFilter) -> list[str]:
        """Return the ids of the learnings that match a filter."""
        ...

    def newest(self) -> Newest:
        """Return the last memory and the last learning that there are now."""
        ...

    def ids_under(self, summary: str) -> list[str]:
        """Return the ids of all originals under a summary of any level."""
        ...

    def preview(self, ids: Sequence[str], *, learned: Sequence[str] = ()) -> Removal:
        """Return what forgetting these memories and learnings would remove."""
        ...

    def forget(self, ids: Sequence[str], *, grace: Grace | None = None) -> Removal:
        """Delete these memories from every tier and index; unknown ids are skipped.

        With `grace` they are kept where nothing reads them, and no purge is asked for yet.

        Every summary made of them loses its text, in the log too, until `RollupStore.rewrite` gives
        it a new one; a summary without remaining members is deleted.
        """
        ...

    def forget_learnings(
        self, ids: Sequence[str], *, grace: Grace | None = None
    ) -> Removal:
        """Delete these learnings; unknown ids are skipped."""
        ...

    def orphaned_log_names(self) -> tuple[list[str], list[str]]:
        """Return sessions and sources that logs and compactions name but no memory has."""
        ...

    def forget_names(self, *, sessions: Iterable[str], sources: Iterable[str]) -> None:
        """Remove names without memories from logs and compactions."""
        ...

    def purge_due(self) -> bool:
        """Tell whether deleted text is still to be purged."""
        ...

    def purge_deleted(self) -> bool:
        """Purge text deleted before this call from everything the store writes.

        Others read and write meanwhile: a store on a server does no more than its VACUUM does.
        False if some of it remains, as another program is reading; try again later. What a server
        keeps by itself, beyond the reach of the store, `beyond_purge` names.
        """
        ...

    def beyond_purge(self) -> tuple[str, ...]:
        """Name what keeps deleted text after a purge, and until when."""
        ...


class LearningStore(Protocol):
    """Store of learnings; a new learning supersedes contradicting old ones."""

    def add(self, learning: Learning) -> tuple[Learning, list[str]]:
        """Store a learning or find an equal one; also return the ids of superseded learnings."""
        ...

    def find(
        self,
        *,
        sources: Sequence[str | None] = (),
        kind: LearningKind | None = None,
        superseded: bool = False,
        limit: int,
    ) -> list[Learning]:
        """Return learnings of these sources or of all, newest first; None is no source."""
        ...

    def edit(self, id: str, text: str) -> None:
        """Replace the text of a learning. Raises `NotFound`."""
        ...

    def remove(self, id: str) -> None:
        """Delete a learning; those it superseded apply again. Raises `NotFound`."""
        ...


class ListStore(Protocol):
    """Lists what is kept, without a question."""

    def page(self, wanted: ListFilter) -> ListPage:
        """Return one page of memories, summaries or both."""
        ...

    def sessions(self) -> list[SessionTotals]:
        """Return every session, the one with the newest memory first."""
        ...

    def sources(self) -> list[SourceTotals]:
        """Return every source, the one with the newest memory first."""
        ...

    def count_since(self, moment: datetime) -> int:
        """Count the memories of this time and later, in every tier."""
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
        """Return the size of each tier."""
        ...

    def bytes_on_disk(self) -> int:
        """Return the size of the database in bytes, with logs beside it."""
        ...

    def problems(self) -> list[str]:
        """Return present faults of the store, a sentence each; empty if it is healthy."""
        ...

    def warnings(self) -> list[str]:
        """Return conditions that endanger the stored data, the gravest first."""
        ...

    def longest_write_s(self) -> float:
        """Return the longest that one commit blocked other writers since the start."""
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

        False if it should be tried again after the next write.
        """
        ...

    def run_idle_upkeep(self) -> None:
        """Do deferred work that only pays while nothing is written."""
        ...

    def release_memory(self, *, words: bool = False) -> None:
        """Free caches; later calls refill them. `words`: also caches of the words of memories."""
        ...

    def back_up(self, target: Path) -> CopyReport:
        """Write a consistent copy of the store to a new file, and read it through."""
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
        """Return summaries that began before an instant and wait for a roll-up, or a new one.

        `opened` are beginnings of periods that further summaries will join.
        """
        ...

    def write(self, rollup: Rollup) -> None:
        """Insert or replace the roll-up of a period, link its members, and log it.

        Raises `BatchChanged` if a member has changed since it was read.
        """
        ...

    def next_stale(self, *, highest: Level = Level.MONTH) -> StaleSummary | None:
        """Return the next stale summary up to a level with its members, lowest level first."""
        ...

    def index_terms(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the index terms of summaries by id."""
        ...

    def rewrite(self, token: int, episode: Episode, *, index_terms: str = "") -> None:
        """Give a stale summary its new text. Raises `BatchChanged` if it went stale again."""
        ...


class SearchStore(Protocol):
    """Finds candidates; ranking them is the domain's."""

    def candidates(self, query: Query) -> SearchCandidates:
        """Return all candidates for a question."""
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
        """Summarize the state of working memory from its first `limit` rows.

        `by_source` counts memories created before `fresh`. Memories that an undo holds back beyond
        `now` are not movable.
        """
        ...

    def claim(self) -> AbstractContextManager[Callable[[], bool]]:
        """Keep other processes from consolidating these memories while the block runs.

        Raises `SleepInProgress` where one does. Yields a check whether the claim still holds: a
        process that lost it is to end its cycle, as another may have begun one.
        """
        ...

    def newest_revision(self) -> int:
        """Return the number of the last edit of a memory."""
        ...

    def pending(self, selection: Selection, *, limit: int) -> list[Pending]:
        """Return the selected unpinned working memories, oldest first, up to `limit`.

        With `selection.now`, memories dated in the future are counted in if that was known before
        `selection.before`.
        """
        ...

    def count_due(self, selection: Selection, *, limit: int) -> int:
        """Count pending memories, up to a limit."""
        ...

    def ids_excluded_from_summaries(self) -> AbstractSet[str]:
        """Return the ids of working memories that no summary may mention."""
        ...

    def chars_per_s(self, summarizer: str) -> float | None:
        """Return how fast this summarizer read recently; None if it wrote nothing."""
        ...

    def consolidate(
        self, groups: Sequence[Sequence[Promotion]], *, durable: bool = True
    ) -> list[Exception | None]:
        """Promote, evict and log groups, each all or nothing and independent of the others.

        Returns None or the error for each, `BatchChanged` if one of its memories has moved.
        Without `durable`, a power failure may undo the groups as a whole until the next durable
        write or `flush`.
        """
        ...

    def record_failure(self, entry: LogEntry) -> None:
        """Write the log row of a group that failed."""
        ...

    def log(
        self, *, limit: int, session: str | None = None, cycle: str | None = None
    ) -> list[LogEntry]:
        """Return rows of the consolidation log, newest first."""
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
    def retention(self) -> RetentionStore:
        """Restoring and pruning."""
        ...

    @property
    def undo(self) -> UndoStore:
        """Undo of consolidated episodes."""
        ...

    @property
    def grace(self) -> GraceStore:
        """Forgotten memories in their grace period."""
        ...

    @property
    def exchange(self) -> ExchangeStore:
        """Export and exact import."""
        ...

    @property
    def agents(self) -> AgentStore:
        """Sessions of agents, and the activity of their hooks."""
        ...

    @property
    def watches(self) -> WatchStore:
        """Watched folders, and the reading positions of their files."""
        ...

    @property
    def clock(self) -> ClockStore:
        """The last believed clock reading."""
        ...
