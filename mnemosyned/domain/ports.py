"""What the core asks of the outside: a clock, a summariser and a store."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal, Protocol, TypeVar

from mnemosyned.domain.consolidation import LogEntry, Pending
from mnemosyned.domain.learnings import Learning, LearningKind
from mnemosyned.domain.memory import Acknowledged, Episode, Memory, Tier, TierTotals
from mnemosyned.domain.recall import Found, Place, Query, Shown

K = TypeVar("K")


class Clock(Protocol):
    """Tells the time; tests hand in one they can move."""

    def now(self) -> datetime:
        """The present instant, aware, in UTC."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a summariser made of a batch."""

    text: str
    """The episode's content: the summary, then a line of keywords."""
    summarizer: str
    """Name of the implementation that wrote it, for the log."""
    fallback_reason: str = ""
    """Why a fallback wrote it, empty where the summariser in force did."""


class TextModel(Protocol):
    """A language model: llama.cpp in a child process, or an endpoint that speaks OpenAI's form."""

    name: str
    """What the log and `status` call it, such as `llama:tinyllama-1.1b-chat-v1.0.Q4_K_M`."""

    @property
    def context_tokens(self) -> int:
        """The size of its window, prompt and answer together. Raises `SummarizerFailed`."""
        ...

    def count_tokens(self, text: str) -> int:
        """How many tokens of the window a text takes, by the model's own count or an upper bound.

        Raises `SummarizerFailed`.
        """
        ...

    def complete(
        self, messages: Sequence[Mapping[str, str]], *, max_tokens: int, temperature: float
    ) -> str:
        """The answer to a conversation of role and content. Raises `SummarizerFailed`.

        Whatever the model does, this returns or raises within its configured time limit.
        """
        ...

    def close(self) -> None:
        """End what runs for it; the next call starts it again."""
        ...


class SummarizerState(StrEnum):
    """Who writes the next summary."""

    RULES = "rules"
    """No model is configured."""
    MODEL = "model"
    FALLBACK = "fallback"
    """A model is configured and left alone for a while, or for good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The summariser in force as `status` shows it, with its counts since the start."""

    name: str
    reason: str
    """Why it is in force, in one sentence."""
    state: SummarizerState = SummarizerState.RULES
    accepted: int = 0
    """Summaries of the model that were kept."""
    retried: int = 0
    """Groups the model was asked twice about, as its first answer was not kept."""
    rejected: int = 0
    """Groups of which no answer of the model was kept."""
    fallbacks: int = 0
    """Summaries by rule in the place of the model's, for whatever reason."""


class Summarizer(Protocol):
    """Makes one text of the memories of one episode; implementations inherit from it."""

    name: str
    """What the log and `status` call it."""
    reason: str
    """Why this one is in force, in one sentence a person reads in `status`."""
    model: TextModel | None = None
    """The language model it works with."""

    @abstractmethod
    def summarize(self, memories: Sequence[Memory]) -> Summary:
        """Summarise the memories, which stand oldest first.

        Raises `SummarizerFailed` when nothing worth keeping came out.
        """

    def summarize_each(
        self,
        groups: Iterable[tuple[K, Sequence[Memory]]],
        *,
        expected: int,  # noqa: ARG002 for those that prepare for many
    ) -> Iterator[tuple[K, Summary | Exception]]:
        """Summarise groups, each with a key of the caller's, in whatever order they are finished.

        `groups` is read as there is room, so that the caller can end the work by ending it;
        `expected` says about how many will come. What one group raised stands in its place.
        """
        for key, memories in groups:
            yield key, self.outcome(memories)

    def outcome(self, memories: Sequence[Memory]) -> Summary | Exception:
        """The summary, or what went wrong: one group's failure must not end the others'."""
        try:
            return self.summarize(memories)
        except Exception as error:  # noqa: BLE001 the caller logs it as that group's failure
            return error

    def standing(self) -> Standing:
        """Who writes the next summary, and how it went so far."""
        return Standing(name=self.name, reason=self.reason)

    def quick(self) -> Summarizer:
        """The one for whoever waits, at shutdown and when forgetting: it asks no model."""
        return self

    def interrupt(self) -> None:
        """End what a model is writing and ask it no more, for good; safe from any thread."""
        return

    def close(self) -> None:
        """End what runs for it; the next summary starts it again."""
        return


@dataclass(frozen=True, slots=True)
class Draft:
    """A memory handed in; with `dedupe` an earlier one with the same words stands for it."""

    memory: Memory
    dedupe: bool = False
    secrets: Literal["", "kept", "masked"] = ""
    """What became of the secrets in it, where it has some."""
    learnings: tuple[Learning, ...] = ()
    """What its words say is to hold from now on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """What a compaction took out of a conversation, under the id that its summary names."""

    id: str
    session: str
    source: str | None
    policy: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Taken:
    """A message taken out, as a memory.

    What its agent remembered in the same words stands for it, where that is allowed: of the same
    session, source and speaker, and within the hour where the message tells when it was said.
    """

    draft: Draft
    alike: bool
    timed: bool


@dataclass(frozen=True, slots=True)
class Compacting:
    """A compaction to be kept."""

    compacted: Compacted
    text: str
    """The summary as it stands in the conversation, to be known again by."""
    parts: tuple[Taken | str, ...]
    """In the order of the conversation: messages, and ids of compactions that it goes on from."""


@dataclass(frozen=True, slots=True)
class Promotion:
    """An episode with its log row: what one summary changes."""

    episode: Episode
    entry: LogEntry


class MemoryStore(Protocol):
    """Keeps the tiers. Every method is one short transaction, safe from any thread.

    All raise `StorageFailed` when the disk or the file refuses.
    """

    def remember(self, drafts: Sequence[Draft]) -> list[Acknowledged]:
        """Put all drafts on disk with what is learned of them, or none. Raises `IdTaken`."""
        ...

    def compact(self, compactings: Sequence[Compacting]) -> list[str]:
        """Put compactions and their messages on disk, or none; the ids of the messages' memories.

        What is there already is not kept twice.
        """
        ...

    def compaction(self, id: str) -> tuple[Compacted, list[Memory]] | None:
        """A compaction and what is left of its messages, in the order of the conversation."""
        ...

    def compaction_saying(self, text: str, *, session: str, source: str | None) -> str | None:
        """The id of the session's compaction whose summary says this, where one does."""
        ...

    def get(self, id: str) -> Memory | Episode:
        """The memory or episode with this id. Raises `NotFound`."""
        ...

    def originals(self, episode: str) -> list[Memory]:
        """What an episode was made of, oldest first, word for word."""
        ...

    def search(self, query: Query) -> Found:
        """All candidates for a question, with the engine's own scores."""
        ...

    def show(self, places: Sequence[Place]) -> Shown:
        """The memories and episodes that these places speak of, whole."""
        ...

    def pending(
        self, *, before: datetime | None = None, session: str | None = None, limit: int
    ) -> list[Pending]:
        """Working memories created before an instant, oldest first, pinned ones left out."""
        ...

    def count_due(self, *, before: datetime, limit: int) -> int:
        """How many working memories are pending, counted up to a limit."""
        ...

    def working_count(self) -> int:
        """How many memories the working tier holds."""
        ...

    def working(self, ids: Sequence[str]) -> list[Memory]:
        """Those of these memories that are still in the working tier, oldest first."""
        ...

    def consolidate(self, groups: Sequence[Sequence[Promotion]]) -> list[Exception | None]:
        """Promote, evict and log groups, each all or nothing and whatever becomes of the others.

        Answers for each with None or what went wrong, `BatchChanged` where a memory has moved.
        """
        ...

    def record_failure(self, entry: LogEntry) -> None:
        """Write the log row of a group that failed."""
        ...

    def forget(self, memories: Sequence[Memory], *, episode: Episode | None = None) -> None:
        """Delete memories from every tier, the index and log previews.

        With `episode`, that rewritten summary replaces the one they went into; an episode left
        without originals goes with them. Raises `BatchChanged` where they have moved meanwhile.
        """
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

    def scrub(self) -> None:
        """Press what was forgotten out of index segments and the write-ahead log."""
        ...

    def log(
        self, *, limit: int, session: str | None = None, cycle: str | None = None
    ) -> list[LogEntry]:
        """Rows of the consolidation log, newest first."""
        ...

    def totals(self) -> Mapping[Tier, TierTotals]:
        """How much each tier holds."""
        ...
