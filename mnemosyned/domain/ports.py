"""What the core asks of the outside: a clock, a summariser and a store."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal, NamedTuple, Protocol, TypeVar

from mnemosyned.domain.consolidation import LogEntry, Pending
from mnemosyned.domain.memory import Acknowledged, Episode, Memory, Tier, TierTotals
from mnemosyned.domain.recall import Found, Match, Place, Query, Shown

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


class Embedder(Protocol):
    """Makes vectors of texts, near each other where the texts mean alike.

    A vector is bytes: of length one, in half precision, little-endian.
    """

    name: str
    """What `status` calls it."""

    def identity(self) -> str:
        """What sets its vectors apart from another model's. Raises `ModelUnavailable`."""
        ...

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """A vector for each text of a memory. Raises `EmbedderFailed` and `ModelUnavailable`."""
        ...

    def embed_question(self, text: str) -> bytes:
        """The vector of a question. Raises `EmbedderFailed` and `ModelUnavailable`."""
        ...

    def close(self) -> None:
        """End what runs for it, also amid a call, which fails; the next call starts it again."""
        ...


class EmbedderState(StrEnum):
    """Whether recall goes by meaning too."""

    OFF = "off"
    """No model is configured."""
    LOADING = "loading"
    READY = "ready"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedderStanding:
    """The embedding model as `status` shows it."""

    state: EmbedderState = EmbedderState.OFF
    name: str = ""
    reason: str = ""
    """Why it is unavailable, in one sentence."""
    embedded: int = 0
    """Memories that have a vector of this model."""
    searched: int = 0
    """Those of them that are found without a word in common: the newest, where memory is full."""
    failed: int = 0
    """Memories it made no vector of since the start; the next start tries them again."""
    missed: int = 0
    """Questions answered by words alone since the start, as it was not ready in time."""


class Spoken(NamedTuple):
    """A memory as a vector is made of it."""

    position: int
    role: str
    content: str
    """The beginning of it."""


class VectorStore(Protocol):
    """Keeps the vectors of memories, which the store knows by position. Safe from any thread.

    All raise `StorageFailed` when the disk or the file refuses.
    """

    def use_model(self, name: str, identity: str) -> int:
        """The number of a model, from now on if it has none."""
        ...

    def newest_position(self) -> int:
        """The position of the memory that came in last."""
        ...

    def without_vector(self, model: int, *, after: int, before: int, limit: int) -> list[Spoken]:
        """Memories between two positions that have no vector of a model, newest first."""
        ...

    def keep_vectors(self, model: int, vectors: Mapping[int, bytes]) -> list[int]:
        """Keep the vectors of memories that still exist; the positions of those."""
        ...

    def vectors(self, model: int, *, before: int, limit: int) -> dict[int, bytes]:
        """The vectors of a model at the newest positions before one."""
        ...

    def vectors_of(self, model: int, positions: Sequence[int]) -> dict[int, bytes]:
        """The vectors of a model at these positions, where there are some."""
        ...

    def embedded(self, model: int) -> list[int]:
        """The positions that have a vector of a model."""
        ...

    def candidates(self, query: Query, positions: Sequence[int]) -> list[Match]:
        """The memories at these positions that lie within a question's filters, with score 0."""
        ...


@dataclass(frozen=True, slots=True)
class Draft:
    """A memory handed in; with `dedupe` an earlier one with the same words stands for it."""

    memory: Memory
    dedupe: bool = False
    secrets: Literal["", "kept", "masked"] = ""
    """What became of the secrets in it, where it has some."""


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
        """Put all drafts on disk, or none. Raises `IdTaken`."""
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
