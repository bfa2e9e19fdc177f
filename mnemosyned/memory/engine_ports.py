"""Ports of models, vectors, owners and the database server."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from mnemosyned.memory.periods import Level
from mnemosyned.memory.values import EmbedderStatus, MemoryRecord, SummarizerStatus
from mnemosyned.text.details import Detail

if TYPE_CHECKING:
    from mnemosyned.search.query import Match, Query, SearchCandidates

K = TypeVar("K")


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The summary of a batch."""

    text: str
    """What is shown and read: the episode's content."""
    index_terms: str = ""
    """What is searched alone: words of the memories that the text leaves out, one term a line."""
    summarizer: str
    """Name of the implementation that wrote it, for the log."""
    fallback_reason: str = ""
    """Why a fallback wrote it, empty where the summarizer in force did."""
    model_share: float = 0.0
    """Share of the text's characters that a model wrote; rules wrote the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """The summary of memories as they were remembered, with their secrets apart."""

    summary: Summary
    """Of those that last, with every secret masked."""
    details: tuple[Detail, ...]
    """The exact values of all of them, secrets among them."""


class TextModel(Protocol):
    """A language model: llama.cpp in a child process, or an endpoint that speaks OpenAI's form."""

    name: str
    """What the log and `status` call it, such as `llama:tinyllama-1.1b-chat-v1.0.Q4_K_M`."""

    @property
    def context_tokens(self) -> int:
        """The size of its window, prompt and answer together. Raises `SummarizerFailed`."""
        ...

    @property
    def parameters(self) -> int:
        """How many weights it has; 0 where that is unknown. Raises `SummarizerFailed`."""
        return 0

    def count_tokens(self, text: str) -> int:
        """Return the tokens of a text by the model's own count, or an upper bound.

        Raises `SummarizerFailed`.
        """
        ...

    def complete(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        max_tokens: int,
        temperature: float,
    ) -> str:
        """Return the answer to a conversation of role and content. Raises `SummarizerFailed`.

        To a model run here the last message may be an assistant's: the opening of the answer,
        which is then one sentence.

        Whatever the model does, this returns or raises within its configured time limit.
        """
        ...

    def close(self) -> None:
        """End the processes of the model; the next call starts them again."""
        ...


class Summarizer(Protocol):
    """Summarizer of the memories of an episode; implementations inherit from this class."""

    name: str
    """What the log and `status` call it."""
    reason: str
    """Why this one is in force, in one sentence a person reads in `status`."""
    model: TextModel | None = None
    """The language model it works with."""

    @abstractmethod
    def summarize(self, memories: Sequence[MemoryRecord]) -> Summary:
        """Summarize the memories, which stand oldest first.

        Raises `SummarizerFailed` when nothing worth keeping came out.
        """

    def summarize_each(
        self,
        groups: Iterable[tuple[K, Sequence[MemoryRecord]]],
        *,
        expected: int,  # noqa: ARG002 for those that prepare for many
    ) -> Iterator[tuple[K, Summary | Exception]]:
        """Summarize groups, each with a key of the caller's, in whatever order they are finished.

        `groups` is read as there is room, so that the caller can end the work by ending it;
        `expected` says about how many groups of ordinary size they amount to. What one group
        raised stands in its place.
        """
        for key, memories in groups:
            yield key, self.outcome(memories)

    def digest_each(
        self, groups: Iterable[tuple[K, Sequence[MemoryRecord]]], *, expected: int
    ) -> Iterator[tuple[K, Digest | Exception]]:
        """Digests of groups as they were remembered; else like `summarize_each`."""

        def readable() -> Iterator[
            tuple[tuple[K, tuple[Detail, ...]], Sequence[MemoryRecord]]
        ]:
            for key, originals in groups:
                lasting, details = spoken_of(originals)
                yield (key, details), lasting

        for (key, details), outcome in self.summarize_each(
            readable(), expected=expected
        ):
            if isinstance(outcome, Exception):
                yield key, outcome
            else:
                yield key, Digest(summary=outcome, details=details)

    def digest(self, originals: Sequence[MemoryRecord]) -> Digest:
        """Return the digest of one group. Raises `SummarizerFailed`."""
        lasting, details = spoken_of(originals)
        return Digest(summary=self.summarize(lasting), details=details)

    def outcome(self, memories: Sequence[MemoryRecord]) -> Summary | Exception:
        """Return the summary, or the error: a failed group must not end the others."""
        try:
            return self.summarize(memories)
        except Exception as error:  # noqa: BLE001 the caller logs it as that group's failure
            return error

    def status(self) -> SummarizerStatus:
        """Who writes the next summary, and how it went so far."""
        return SummarizerStatus(name=self.name, reason=self.reason)

    def rule_based(self) -> Summarizer:
        """Return the summarizer without a model, for callers that wait."""
        return self

    def interrupt(self) -> None:
        """End what a model is writing and ask it no more; safe from any thread."""
        return

    def resume(self) -> None:
        """Take an interrupt back: a model may be asked again."""
        return

    def release_workers(self) -> None:
        """End the helper processes of a cycle."""
        return

    def close(self) -> None:
        """End the processes of the model; the next summary starts them again."""
        return


def spoken_of(
    originals: Sequence[MemoryRecord],
) -> tuple[list[MemoryRecord], tuple[Detail, ...]]:
    """Return the memories that a summary may mention, and the exact values of all.

    No summary, prompt or log row may hold a secret, nor what is superseded or expires while the
    summary stays.
    """
    # Loaded by who summarizes: the shell client needs the values of this module alone.
    from mnemosyned.memory.masking import mask_memories  # noqa: PLC0415

    readable, details = mask_memories(originals)
    return [memory for memory in readable if memory.lasting], details


class Embedder(Protocol):
    """Makes vectors of texts, near each other where the texts mean alike.

    A vector is bytes: of length one, in half precision, little-endian.
    """

    name: str
    """What `status` calls it."""

    def identity(self) -> str:
        """Return a fingerprint that differs between models. Raises `ModelUnavailable`."""
        ...

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Return a vector for each text of a memory. Raises `EmbedderFailed` and `ModelUnavailable`."""
        ...

    def embed_question(self, text: str) -> bytes:
        """Return the vector of a question. Raises `EmbedderFailed` and `ModelUnavailable`."""
        ...

    def close(self) -> None:
        """End the processes of the model; a running call fails, the next one starts them again."""
        ...


TEXT_CHARS_MAX = 2_000
"""More than the window of an embedding model takes in."""


class EmbeddingInput(NamedTuple):
    """The part of a memory that its vector is made of."""

    position: int
    role: str
    content: str
    """The beginning of the text."""


class VectorNews(NamedTuple):
    """What other processes may have changed."""

    vectors: Mapping[int, bytes]
    version: int
    """Of the last of these; without any, of the newest that there is."""
    removals: int
    """A number that is another one after vectors were deleted."""


class VectorProgress(NamedTuple):
    """How far the memories of one owner have come with a model."""

    model: int
    done: int
    """The position up to which all memories have had their turn."""
    newest: int
    rewordings: int
    """The number of changes to words that were there."""


class ComparisonTooSlow(Exception):
    """Vectors were not compared within the time for it."""


class VectorSearch(Protocol):
    """Compares the vector of a question with those of one model. Safe from any thread."""

    def cosines(self, question: bytes, positions: Iterable[int]) -> dict[int, float]:
        """Return the similarities by position; positions without a vector are left out."""
        ...

    def nearest(self, question: bytes, count: int, *, least: float) -> dict[int, float]:
        """Return the most similar positions of at least that similarity, nearest first."""
        ...


class StorageSearch(VectorSearch, Protocol):
    """A `VectorSearch` in the storage itself, over all vectors.

    It raises `StorageFailed`, and `ComparisonTooSlow` after the time that it was given.
    """

    def prepare(self, *, limit: int) -> int:
        """Make vectors searchable that were kept without; return their number, 0 at the end."""
        ...


class VectorStore(Protocol):
    """Keeps the vectors of memories, addressed by position. Safe from any thread.

    All methods raise `StorageFailed` if the storage fails.
    """

    def use_model(self, name: str, identity: str) -> int:
        """Return the number of a model, assigning one on first use."""
        ...

    def newest_position(self) -> int:
        """Return the position of the newest memory."""
        ...

    def without_vector(
        self, model: int, *, after: int, before: int, limit: int
    ) -> list[EmbeddingInput]:
        """Return memories between two positions that lack a vector of a model, newest first."""
        ...

    def keep_vectors(self, model: int, vectors: Mapping[int, bytes]) -> list[int]:
        """Store the vectors of memories that still exist; returns their positions."""
        ...

    def drop_vectors(self, positions: Sequence[int]) -> None:
        """Delete the vectors at these positions."""
        ...

    def vectors(self, model: int, *, before: int, limit: int) -> dict[int, bytes]:
        """Return vectors of a model at the newest positions before one."""
        ...

    def vectors_of(self, model: int, positions: Sequence[int]) -> dict[int, bytes]:
        """Return the existing vectors of a model at these positions."""
        ...

    def embedded_positions(self, model: int, *, after: int, limit: int) -> list[int]:
        """Return the first positions after one that have a vector of a model, ascending."""
        ...

    def news(self, model: int, *, since: int | None, limit: int) -> VectorNews | None:
        """Return vectors of a model stored after a version, the first of them first.

        Without `since` none, to begin with. None where no other process stores vectors.
        """
        ...

    def candidates(self, query: Query, positions: Sequence[int]) -> list[Match]:
        """Return the memories at these positions that pass a question's filters, score 0."""
        ...

    def search(
        self, model: int, *, limit_s: float | None = None
    ) -> StorageSearch | None:
        """Return the storage's own search; None where whoever reads vectors compares them.

        `limit_s`: how long each comparison may take; None: as long as it takes.
        """
        ...


class OwnedVectorStore(VectorStore, Protocol):
    """A `VectorStore` of one of many owners, which several daemons fill."""

    def known_model(self, identity: str) -> int:
        """Return the number of a model; 0 where it was never used."""
        ...

    def claim(
        self, name: str, identity: str, *, claimant: int, seconds: float
    ) -> VectorProgress | None:
        """Claim the memories without a vector, or renew the claim; None if another process has it."""
        ...

    def keep_made(
        self, model: int, made: Sequence[tuple[EmbeddingInput, bytes]]
    ) -> int:
        """Store vectors of memories whose words did not change; return their number."""
        ...

    def finish(self, progress: VectorProgress) -> bool:
        """Release the claim; note that all memories up to the newest have had their turn.

        Return False, and note nothing, where words were changed meanwhile.
        """
        ...

    def count(self, model: int) -> int:
        """Return the number of memories that have a vector of a model."""
        ...


class PendingVector(Protocol):
    """A question on its way to the model."""

    def vector(self) -> bytes | None:
        """Wait for the vector; None where it does not come in time."""
        ...


class MemoryVectors(Protocol):
    """Adds vectors to one memory and to its recall. Safe from any thread."""

    def status(self) -> EmbedderStatus:
        """Return how far it is, and whether it can be asked."""
        ...

    def note_new_memories(self) -> None:
        """Note that there are new memories; returns at once."""
        ...

    def note_deletions(self) -> None:
        """Note that memories were deleted."""
        ...

    def note_edits(self, positions: Sequence[int]) -> None:
        """Note that memories have other words: their vectors are made again, soon."""
        ...

    def ask(self, text: str) -> PendingVector | None:
        """Begin to make the vector of a question; None where the model cannot be asked now."""
        ...

    def near(
        self,
        question: PendingVector | None,
        query: Query,
        candidates: SearchCandidates,
    ) -> tuple[SearchCandidates, str]:
        """Return the candidates with vector similarities added, and an empty note.

        If the question has no vector, return the candidates unchanged with a note of the reason.
        """
        ...


NAME_FORM = r"[A-Za-z0-9][A-Za-z0-9._@-]{0,99}"
"""An owner's name, and a token's."""
LOCAL_OWNER = 1
LOCAL_NAME = "local"
"""The owner of a memory that has only one, which a daemon serves on its Unix socket."""

TOKEN_PREFIX = "mnt_"  # noqa: S105 how each begins
_TOKEN = re.compile(
    rf"{TOKEN_PREFIX}([1-9][0-9]{{0,18}})_[A-Za-z0-9_-]{{43}}", re.ASCII
)
_OWNERS_MAX = 2**63 - 1


class Scope(StrEnum):
    """A permission of a token."""

    READ = "read"
    WRITE = "write"
    FORGET = "forget"


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """An owner, and how much memory it has."""

    number: int
    name: str
    created_at: datetime
    memories: int
    summaries: int
    characters: int
    bytes: int | None = None
    """In the tables, without their indexes; None where they were not measured."""
    tokens: int = 0
    """Tokens that are valid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerToken:
    """A token, as far as it is known: the secret itself is not kept."""

    id: str
    name: str
    scopes: tuple[Scope, ...]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    valid: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedToken:
    """A new token with its secret, which is shown once."""

    token: OwnerToken
    secret: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenHolder:
    """The owner and the scopes of a token."""

    owner: int
    token: str
    scopes: frozenset[Scope]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedOwner:
    """A removed owner, with the counts of deleted records and the places of its remaining words."""

    name: str
    memories: int
    summaries: int
    purged: bool
    """Whether they have left the pages of the tables and indexes, too."""
    left: tuple[str, ...]
    """Places that keep the words, each with what ends that."""


def owner_of(token: str) -> int | None:
    """Return the number of a token's owner; None for a text of another form."""
    form = _TOKEN.fullmatch(token)
    owner = int(form[1]) if form else 0
    return owner if 0 < owner <= _OWNERS_MAX else None


class OwnerStore(Protocol):
    """The owners of a database. Every method raises `StorageFailed` if the database fails."""

    def add(self, name: str) -> Owner:
        """Add an owner. Raises `InvalidRequest` for a name that is taken or not one."""
        ...

    def owners(self, *, measured: bool = False) -> Sequence[Owner]:
        """List all owners by name; `measured` reads all rows for their bytes."""
        ...

    def remove(self, name: str) -> RemovedOwner:
        """Delete an owner with every row of it; again, where that was cut short.

        Its tokens are revoked first. Raises `NotFound`, and `InvalidRequest` for the owner of a
        memory with only one.
        """
        ...

    def issue(
        self,
        owner: str,
        name: str,
        scopes: Sequence[Scope],
        *,
        valid_for: timedelta | None = None,
    ) -> IssuedToken:
        """Issue a token. Raises `NotFound` and `InvalidRequest`."""
        ...

    def tokens(self, owner: str) -> Sequence[OwnerToken]:
        """List an owner's tokens, also those that are valid no more; the newest first."""
        ...

    def rotate(
        self, owner: str, token: str, *, keep_for: timedelta = timedelta()
    ) -> IssuedToken:
        """Replace a token by a new one; the old one is valid for so long yet.

        `token` is its id or its name. The new one is valid as long as the old one was when it was
        issued. Raises `NotFound`.
        """
        ...

    def revoke(self, owner: str, token: str) -> int:
        """Revoke a token by its id, or all of a name; how many. Raises `NotFound`."""
        ...

    def number(self, name: str) -> int:
        """Look up an owner's number. Raises `NotFound`."""
        ...

    def with_work(
        self,
        *,
        before: datetime,
        closed: Mapping[Level, datetime],
        archived: bool = False,
        after: int = 0,
        limit: int = 1_000,
    ) -> Sequence[int]:
        """List the numbers of owners, above `after`, whose memory has something to consolidate.

        That is a memory in working memory from before a time, a summary that no period has yet
        although its period began before `closed`, one that is to be rewritten, or what is still to
        be deleted for good. With `archived` also those who have an archive, which may be pruned.
        """
        ...

    def lacking_vectors(
        self, identity: str, *, after: int = 0, limit: int = 1_000
    ) -> Sequence[int]:
        """List the numbers of owners, above `after`, with memories that had no turn with a model.

        Those whom another daemon has claimed are left out.
        """
        ...

    def holder(self, secret: str) -> TokenHolder | None:
        """Look up whose a token is; None where it is none, has expired or was revoked."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPurge:
    """Result of a purge of a whole server."""

    tables: int
    """Tables that were rewritten, with their indexes."""
    duration_s: float
    longest_s: float
    """The longest that one table was locked."""
    log_files: int
    """Files of the write-ahead log that were written over."""
    undone: tuple[str, ...]
    """Steps that another program or a missing right forbade, each with what to do; repeat then."""
    left: tuple[str, ...]
    """Places out of reach that keep deleted words, each with what ends that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """How a database lies on the nodes of a cluster."""

    nodes: int
    """Nodes that take rows."""
    tables: tuple[str, ...]
    """Tables that this call distributed."""
    advice: tuple[str, ...] = ()
    """Steps that are left to a superuser."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """What was done to bring a database up to date."""

    before: int
    """The version of the schema as it was found; 0 for an empty database."""
    after: int
    statements: tuple[str, ...]
    """Statements about roles and rights that were needed."""


class DatabaseServer(Protocol):
    """A database as a whole. Every method raises `StorageFailed` if the database fails."""

    def migrate(self, *, serving: str | None = None) -> Migration:
        """Bring the schema up to date, and the rights of the role of requests where it is used.

        `serving` is a login that owns nothing and serves from now on. Raises `StorageFailed` for a
        login that does not own the tables. May be repeated.
        """
        ...

    def purge(self) -> ServerPurge:
        """Rewrite all tables and overwrite the write-ahead log, so that no deleted word is left.

        Each table is locked while it is written. May be repeated at any time.
        """
        ...

    def distribute(self, shards: int) -> Distribution:
        """Spread the tables over the nodes of a cluster, all rows of an owner on one.

        Raises `InvalidRequest` where there is no cluster. May be repeated.
        """
        ...
