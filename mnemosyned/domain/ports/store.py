"""What the core asks of the outside: a clock and a store, with the values that pass between."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, Protocol

from mnemosyned.domain.consolidation import Activity, LogEntry, Pending
from mnemosyned.domain.learnings.learning import Learning, LearningKind
from mnemosyned.domain.memory import (
    Acknowledged,
    Episode,
    MemoryRecord,
    Tier,
    TierTotals,
)
from mnemosyned.domain.retention import (
    Choice,
    Emptied,
    Prunable,
    Removal,
    Retention,
    Returned,
)
from mnemosyned.domain.rollup import Child, Level
from mnemosyned.domain.search.query import Found, Place, Query, Shown
from mnemosyned.domain.timekeeping import Sighting


class Clock(Protocol):
    """Tells the time; tests hand in one they can move."""

    def now(self) -> datetime:
        """The present instant, aware, in UTC."""
        ...


@dataclass(frozen=True, slots=True)
class Draft:
    """A memory handed in; with `dedupe` an earlier one with the same words stands for it."""

    memory: MemoryRecord
    dedupe: bool = False
    secrets: Literal["", "kept", "masked"] = ""
    """What became of the secrets in it, where it has some."""
    supersedes: str | None = None
    """The id of the memory whose place it takes."""
    learnings: tuple[Learning, ...] = ()
    """What its words say is to hold from now on."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """What became of drafts."""

    acknowledged: list[Acknowledged]
    working: int
    """How many memories the working tier held with them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """What a compaction took out of a conversation, under the id that its summary names."""

    id: str
    session: str
    source: str | None
    policy: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ArchivedMessage:
    """A message taken out, as a memory.

    What its agent remembered in the same words stands for it, where that is allowed: of the same
    session, source and speaker, and within the hour where the message tells when it was said.
    """

    draft: Draft
    may_reuse: bool
    """Whether a memory in the same words may hold it."""
    has_timestamp: bool


@dataclass(frozen=True, slots=True)
class Compacting:
    """A compaction to be kept."""

    compacted: Compacted
    text: str
    """The summary as it stands in the conversation, to be known again by."""
    parts: tuple[ArchivedMessage | str, ...]
    """In the order of the conversation: messages, and ids of compactions that it goes on from."""


@dataclass(frozen=True, slots=True)
class Promotion:
    """An episode with its log row: what one summary changes."""

    episode: Episode
    entry: LogEntry
    spoken: frozenset[str] = frozenset()
    """The originals that the summary speaks of: none may be superseded meanwhile."""


@dataclass(frozen=True, slots=True)
class Fold:
    """The summary of a day, week or month with its log row."""

    episode: Episode
    entry: LogEntry
    members: Mapping[str, str]
    """What it was made of: ids, with the words that were read."""


@dataclass(frozen=True, slots=True)
class Foldable:
    """What can be folded into summaries of one level."""

    children: Sequence[Child]
    """All that belongs to a period in which something is new or was rewritten."""
    standing: Mapping[datetime, str]
    """By the beginning of their periods, the ids of those summaries that exist already."""


class MemoryStore(Protocol):
    """Keeps the tiers. Every method is one short transaction, safe from any thread.

    All raise `StorageFailed` when the disk or the file refuses.
    """

    def remember(self, drafts: Sequence[Draft]) -> Remembered:
        """Put all drafts on disk with what is learned of them, or none.

        Raises `IdTaken`, and `NotFound` for what a draft should supersede.
        """
        ...

    def compact(self, compactings: Sequence[Compacting]) -> list[str]:
        """Put compactions and their messages on disk, or none; the ids of the messages' memories.

        What is there already is not kept twice.
        """
        ...

    def compaction(self, id: str) -> tuple[Compacted, list[MemoryRecord]] | None:
        """A compaction and what is left of its messages, in the order of the conversation."""
        ...

    def compaction_saying(
        self, text: str, *, session: str, source: str | None
    ) -> str | None:
        """The id of the session's compaction whose summary says this, where one does."""
        ...

    def get(self, id: str) -> MemoryRecord | Episode:
        """The memory or episode with this id. Raises `NotFound`."""
        ...

    def originals(self, episode: str) -> list[MemoryRecord]:
        """The memories that a summary of any level goes back to, oldest first, word for word."""
        ...

    def summaries(self, ids: Sequence[str]) -> list[Episode]:
        """Those of these summaries that exist, oldest first, without provenance and details."""
        ...

    def search(self, query: Query) -> Found:
        """All candidates for a question, with the engine's own scores."""
        ...

    def show(self, places: Sequence[Place]) -> Shown:
        """The memories and episodes that these places speak of, whole."""
        ...

    def pending(
        self,
        *,
        before: datetime | None = None,
        session: str | None = None,
        sources: Sequence[str | None] = (),
        now: datetime | None = None,
        limit: int,
    ) -> list[Pending]:
        """Working memories created before an instant, oldest first, pinned ones left out.

        With `sources` only those of them, None being no source. With `now`, those that an undo
        holds back are left out, and those in the future counted in that were so before then.
        """
        ...

    def count_due(
        self,
        *,
        before: datetime | None = None,
        session: str | None = None,
        sources: Sequence[str | None] = (),
        now: datetime | None = None,
        limit: int,
    ) -> int:
        """How many working memories are pending, counted up to a limit."""
        ...

    def activity(self, *, fresh: datetime, now: datetime, limit: int) -> Activity:
        """What is going on in working memory, as its first so many rows tell.

        `by_source` counts what was created before `fresh`; what an undo holds back beyond `now`
        is not movable.
        """
        ...

    def pace(self, summarizer: str) -> float | None:
        """Characters a second that this summarizer read of late; None where it wrote nothing."""
        ...

    def working_count(self) -> int:
        """How many memories the working tier holds."""
        ...

    def working(self, ids: Sequence[str]) -> list[MemoryRecord]:
        """Those of these memories that are still in the working tier, oldest first."""
        ...

    def consolidate(
        self, groups: Sequence[Sequence[Promotion]], *, durable: bool = True
    ) -> list[Exception | None]:
        """Promote, evict and log groups, each all or nothing and whatever becomes of the others.

        Answers for each with None or what went wrong, `BatchChanged` where a memory has moved.
        What need not be `durable` is so from the next write on, or `settle`: until then, a
        failure of power puts the groups back whole.
        """
        ...

    def checkpoint(self) -> bool:
        """Do now what the store would else put off and do while a writer waits.

        False where that should be tried again after the next write.
        """
        ...

    def settle(self) -> None:
        """Have everything that was written on disk."""
        ...

    def release(self) -> None:
        """Free what is cached in memory; later calls read it again."""
        ...

    def foldable(
        self,
        *,
        to_level: Level,
        before: datetime,
        limit: int,
        opened: Iterable[datetime] = (),
    ) -> Foldable:
        """What began before an instant and is not folded yet, or has to be folded anew.

        `opened` are beginnings of periods that more is coming for.
        """
        ...

    def passing(self) -> AbstractSet[str]:
        """The ids of the working memories that no summary may speak of."""
        ...

    def fold(self, change: Fold) -> None:
        """Write, or rewrite, the summary of a period, link what it was made of, and log it.

        Raises `BatchChanged` where one of those has changed since it was read.
        """
        ...

    def record_failure(self, entry: LogEntry) -> None:
        """Write the log row of a group that failed."""
        ...

    def chosen(self, choice: Choice) -> list[str]:
        """The ids of the memories that a choice means, in both their homes."""
        ...

    def below(self, episode: str) -> list[str]:
        """The ids of all originals under an episode of any level."""
        ...

    def chosen_learnings(self, choice: Choice) -> list[str]:
        """The ids of the learnings that a choice means."""
        ...

    def foreseen(self, ids: Sequence[str], *, learned: Sequence[str] = ()) -> Removal:
        """What forgetting these memories, and these learnings, would take away."""
        ...

    def forget(self, ids: Sequence[str]) -> Removal:
        """Delete these memories wherever they are, from every tier and the index.

        Every summary made of them is emptied, with its words in the log, until `rewrite` gives it
        new ones; one left with nothing goes. An id that is not there is passed over.
        """
        ...

    def unlearn(self, learned: Sequence[str]) -> Removal:
        """Delete these learnings. An id that is not there is passed over."""
        ...

    def learn(self, learning: Learning) -> tuple[Learning, list[str]]:
        """Keep a learning, or find the one that says the same; the ids of what it supersedes."""
        ...

    def learnings(
        self,
        *,
        sources: Sequence[str | None] = (),
        kind: LearningKind | None = None,
        superseded: bool = False,
        limit: int,
    ) -> list[Learning]:
        """Learnings of these sources or of all, newest first; None is for those without one."""
        ...

    def edit_learning(self, id: str, text: str) -> None:
        """Replace the words of a learning. Raises `NotFound`."""
        ...

    def remove_learning(self, id: str) -> None:
        """Delete a learning; what it superseded holds again. Raises `NotFound`."""
        ...

    def unborne_names(self) -> tuple[list[str], list[str]]:
        """The sessions and sources that the log or a compaction names and no memory bears now."""
        ...

    def forget_names(self, *, sessions: Iterable[str], sources: Iterable[str]) -> None:
        """Take those of these names that no memory bears now out of the log and compactions."""
        ...

    def next_emptied(self, *, highest: Level = Level.MONTH) -> Emptied | None:
        """An emptied summary up to a level with what it is made of, the lowest level first."""
        ...

    def rewrite(self, mark: int, episode: Episode) -> None:
        """Give an emptied summary its new words. Raises `BatchChanged` if emptied again."""
        ...

    def pin(self, id: str, *, pinned: bool) -> bool:
        """Pin a working memory or let it go; False where the working tier has none of this id."""
        ...

    def restore(self, id: str) -> Removal:
        """Move an original back to working memory, pinned.

        Raises `BatchChanged`, and `WordsPruned` where others would lose what is left of theirs.
        """
        ...

    def undo(
        self, episodes: Sequence[str], *, now: datetime, held_until: datetime
    ) -> list[Returned]:
        """Put the originals of these episodes back as they were, and delete the episodes.

        No cycle takes them before `held_until`, but one that ignores age.
        """
        ...

    def note_future(self, *, now: datetime) -> None:
        """Note since when working memories are known to lie in the future, where some do."""
        ...

    def last_sighting(self) -> Sighting | None:
        """The clock as it was last believed; None in a new store."""
        ...

    def keep_sighting(self, sighting: Sighting) -> None:
        """Keep the clock as it is believed now."""
        ...

    def returning(self, episodes: Sequence[str]) -> list[Returned]:
        """What an undo of these episodes would put back."""
        ...

    def last_cycle(self) -> str | None:
        """The newest cycle of which something can be put back."""
        ...

    def prunable(self, retention: Retention, *, now: datetime, limit: int) -> Prunable:
        """The originals whose words a retention gives up, the oldest first."""
        ...

    def prune(self, ids: Sequence[str], *, now: datetime) -> int:
        """Give up these originals' words; details, hashes and provenance stay."""
        ...

    def history(self, id: str) -> list[MemoryRecord]:
        """What this memory superseded, the newest first."""
        ...

    def scrub_due(self) -> bool:
        """Whether something was forgotten that no `scrub` has purged yet."""
        ...

    def scrub(self) -> bool:
        """Purge what was forgotten before this call from the file and all that belongs to it.

        False where another program reads the file, so that its words are still in the log.
        """
        ...

    def log(
        self, *, limit: int, session: str | None = None, cycle: str | None = None
    ) -> list[LogEntry]:
        """Rows of the consolidation log, newest first."""
        ...

    def problems(self) -> list[str]:
        """What is wrong with the store now, a sentence each; empty when all of it answers."""
        ...

    def secure(self) -> None:
        """See to it that what was acknowledged lasts, whatever became of the file.

        Raises `DatabaseReplaced` where nothing more can be kept until a restart.
        """
        ...

    def warnings(self) -> list[str]:
        """What the owner of the store should know about its file, the gravest first."""
        ...

    def checkpoint_idle(self) -> None:
        """Have what was written since the last call in the file itself, not in its log alone."""
        ...

    def back_up(self, target: Path) -> int:
        """Write a whole copy of the store to a file, in one step; its size in bytes."""
        ...

    def longest_write_s(self) -> float:
        """The longest that one commit kept other writers waiting since the start."""
        ...

    def totals(self) -> Mapping[Tier, TierTotals]:
        """How much each tier holds."""
        ...
