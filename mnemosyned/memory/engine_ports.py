"""Ports of models, vectors, owners and the database server."""

from __future__ import annotations

import hashlib
import re
from abc import abstractmethod
from collections.abc import (
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set as AbstractSet,
)
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from heapq import nlargest
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from mnemosyned.memory import values
from mnemosyned.text.details import Detail

if TYPE_CHECKING:
    from mnemosyned.search.query import Query, SearchCandidates

RateEvents = Callable[[Sequence[str]], Sequence[float]]
"""Returns the log odds that a diary would name what each sentence says; empty if they are not known."""
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
    """Summary of memories without their secrets, and separately all exact values and secrets."""

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
        """The context window in tokens, prompt and answer together. Raises `SummarizerFailed`."""

    @property
    def parameters(self) -> int:
        """The number of weights of the model; 0 if unknown. Raises `SummarizerFailed`."""
        return 0

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens of a text, or an upper bound. Raises `SummarizerFailed`."""

    def complete(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        max_tokens: int,
        temperature: float,
    ) -> str:
        """Return the model's answer to messages of `role` and `content`, of `max_tokens` at most.

        The call ends within the configured time limit. Raises `SummarizerFailed`.
        """

    def close(self) -> None:
        """Stop the processes of the model; the next call starts them again."""


class Summarizer(Protocol):
    """Summarizer of the memories of an episode; implementations inherit from this class."""

    name: str
    """What the log and `status` call it."""
    reason: str
    """Why this one is in force, in one sentence a person reads in `status`."""
    model: TextModel | None = None
    """The language model it works with."""

    @abstractmethod
    def summarize(self, memories: Sequence[values.MemoryRecord]) -> Summary:
        """Return the summary of memories, given oldest first. Raises `SummarizerFailed` if none is usable."""

    def summarize_each(
        self,
        groups: Iterable[tuple[K, Sequence[values.MemoryRecord]]],
        *,
        expected: int,  # noqa: ARG002 for those that prepare for many
    ) -> Iterator[tuple[K, Summary | Exception]]:
        """Yield the key of each group with its summary or the error raised, in order of completion.

        `groups` is read only as fast as summaries are made, so that a caller can stop by ending it.
        `expected` is about how many groups of usual size there are.
        """
        for key, memories in groups:
            yield key, self.summarize_or_error(memories)

    def digest_each(
        self,
        groups: Iterable[tuple[K, Sequence[values.MemoryRecord]]],
        *,
        expected: int,
    ) -> Iterator[tuple[K, Digest | Exception]]:
        """Yield the key of each group of originals with its digest or the error raised, in order of completion.

        A digest has a summary without secrets, and the exact values apart. `expected` is about how many
        groups of usual size there are.
        """

        def mask_groups() -> Iterator[
            tuple[tuple[K, tuple[Detail, ...]], Sequence[values.MemoryRecord]]
        ]:
            """Yield ((key, exact values), masked memories that a summary may mention) of each group."""
            for key, originals in groups:
                lasting, details = select_mentionable(originals)
                yield (key, details), lasting

        for (key, details), outcome in self.summarize_each(
            mask_groups(), expected=expected
        ):
            if isinstance(outcome, Exception):
                yield key, outcome
            else:
                yield key, Digest(summary=outcome, details=details)

    def digest(self, originals: Sequence[values.MemoryRecord]) -> Digest:
        """Return a summary of what still applies in these memories, without secrets, and all exact values.

        Raises `SummarizerFailed`.
        """
        lasting, details = select_mentionable(originals)
        return Digest(summary=self.summarize(lasting), details=details)

    def summarize_or_error(
        self, memories: Sequence[values.MemoryRecord]
    ) -> Summary | Exception:
        """Return the summary of these memories, or the exception that the attempt raised."""
        try:
            return self.summarize(memories)
        except Exception as error:  # noqa: BLE001 the caller logs it as that group's failure
            return error

    def status(self) -> values.SummarizerStatus:
        """Return the state of the summarizer, and its counts since the start of the process."""
        return values.SummarizerStatus(name=self.name, reason=self.reason)

    def rule_based(self) -> Summarizer:
        """Return the summarizer for callers that cannot wait for a model; by default `self`."""
        return self

    def interrupt(self) -> None:
        """Cancel the model's present answer, and use no model until `resume`; safe from any thread."""
        return

    def resume(self) -> None:
        """Allow the use of the model again after `interrupt`; does nothing without a model."""
        return

    def release_workers(self) -> None:
        """Stop the helper processes that a sleep cycle used, if there are any."""
        return

    def close(self) -> None:
        """Stop the processes of the model; the next summary starts them again."""
        return


def select_mentionable(
    originals: Sequence[values.MemoryRecord],
) -> tuple[list[values.MemoryRecord], tuple[Detail, ...]]:
    """Return the memories that a summary may mention, secrets masked, and the exact values of all `originals`.

    Superseded memories, and memories that may expire, are left out, as no summary, prompt or log row may
    contain their text.
    """
    # Loaded by who summarizes: the shell client needs the values of this module alone.
    from mnemosyned.memory.masking import mask_memories  # noqa: PLC0415

    readable, details = mask_memories(originals)
    return [memory for memory in readable if memory.lasting], details


class Embedder(Protocol):
    """Maker of vectors of texts; the vectors of texts with similar meanings are close to each other.

    A vector is bytes: of length one, in half precision, little-endian, or as the embedder packs it
    (`search/vectors/packing.py`).
    """

    name: str
    """What `status` calls it."""
    in_process: bool = False
    """Whether the vector of a question takes its caller milliseconds, in any thread."""
    similarity_min: float = 0.4
    """The least cosine of texts that mean alike, if the settings name none."""

    @property
    def is_prepared(self) -> bool:
        """Whether the model is ready; if not, the next call first prepares the model's file, in seconds."""
        return True

    def identity(self) -> str:
        """Return a fingerprint that tells the model from any other. Raises `ModelUnavailable`."""

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Return one vector for each text, in order. Raises `EmbedderFailed`, `ModelUnavailable`."""

    def embed_question(self, text: str) -> bytes:
        """Return the vector of a question. Raises `EmbedderFailed` and `ModelUnavailable`."""

    def close(self) -> None:
        """Stop the model's processes: a running call fails, and the next call starts new ones."""


TEXT_CHARS_MAX = 2_000
"""Maximum characters of a text to embed: more than an embedding model can read."""


class EmbeddingInput(NamedTuple):
    """The part of a memory that its vector is made from."""

    position: int
    role: str
    content: str
    """The beginning of the text."""


class VectorNews(NamedTuple):
    """Changes of the vectors that other processes may have made since the last check."""

    vectors: Mapping[int, bytes]
    version: int
    """Version of the last of these vectors, or if there is none, of the newest stored vector."""
    removals: int
    """A number that changes whenever vectors are deleted."""


class VectorProgress(NamedTuple):
    """How many memories of an owner have been embedded by a model."""

    model: int
    done: int
    """Row number up to which all memories have been embedded or refused."""
    newest: int
    rewordings: int
    """Number of times that the text of a memory was changed."""


class ComparisonTooSlow(Exception):
    """The comparison of vectors took longer than allowed."""


class MemoryComparison(NamedTuple):
    """Functions that compare memories by their vectors, which were read in advance."""

    cosines_to: Callable[[str], Mapping[str, float]]
    """Returns the cosines of a memory to all, by their ids; empty if it has no vector."""
    rate_ending: Callable[[str, str], float | None]
    """Returns the log odds that a newer memory ends an older one; None if one of them has no vector."""


NOT_COMPARED = MemoryComparison(lambda _: {}, lambda *_: None)
"""Comparison without a model: it finds no similarity."""


class VectorSearch(Protocol):
    """Comparison of a question's vector with the stored vectors of one model. Safe from any thread."""

    def cosines(self, question: bytes, positions: Iterable[int]) -> dict[int, float]:
        """Return {position: cosine to the question's vector} for the positions that have a stored vector."""

    def nearest(self, question: bytes, count: int, *, least: float) -> dict[int, float]:
        """Return {position: cosine} of the `count` vectors most similar to a question's, nearest first.

        Vectors with a cosine below `least` are left out.
        """

    def nearest_and_cosines(
        self, question: bytes, count: int, positions: AbstractSet[int], *, least: float
    ) -> tuple[dict[int, float], dict[int, float]]:
        """Return what `nearest` returns, and what `cosines` returns for the `positions` not in that."""
        nearest = self.nearest(question, count, least=least)
        return nearest, self.cosines(question, positions - nearest.keys())

    def nearest_of(
        self, question: bytes, positions: Sequence[int], count: int
    ) -> list[int]:
        """Return the `count` of these positions with the vectors most similar to a question's, in any order."""
        cosines = self.cosines(question, positions)
        return nlargest(count, cosines, key=cosines.__getitem__)


class StorageSearch(VectorSearch, Protocol):
    """A `VectorSearch` that the database itself runs over all vectors.

    It raises `StorageFailed`, and `ComparisonTooSlow` after its time limit.
    """

    def prepare(self, *, limit: int) -> int:
        """Index up to `limit` vectors that are not indexed yet; return their number, 0 when all are indexed."""


class PendingVector(Protocol):
    """The vector of a question, which a model is still making."""

    def vector(self) -> bytes | None:
        """Wait for the vector of the question; return None if it is not made in time."""


class MemoryVectors:
    """Vectors of one memory, for recall; the base class has none. Safe from any thread."""

    @property
    def state(self) -> values.EmbedderState:
        """The state of the embedding model; does not read the database."""
        return values.EmbedderState.OFF

    def status(self) -> values.EmbedderStatus:
        """Return the state of the embedding model, with the number of embedded memories."""
        return values.EmbedderStatus()

    def note_new_memories(self) -> None:
        """Tell the embedding thread that there are new memories; return at once."""

    def note_deletions(self) -> None:
        """Tell the embedding thread to drop the vectors of deleted memories; return at once."""

    def note_edits(self, positions: Sequence[int]) -> None:
        """Tell the embedding thread to embed the changed texts at these row numbers; return at once."""

    # From here on, arguments are for those that have vectors.

    def ask(self, text: str) -> PendingVector | None:  # noqa: ARG002
        """Begin to embed a question; return a handle on its vector, None if no model is available."""
        return None

    def add_similarities(
        self,
        question: PendingVector | None,  # noqa: ARG002
        query: Query,  # noqa: ARG002
        candidates: SearchCandidates,
    ) -> tuple[SearchCandidates, str]:
        """Return the candidates of a question with vector similarities added, and an empty note.

        If the question has no vector, return the candidates unchanged and the reason as the note.
        """
        return candidates, ""

    def similarities(self, text: str, ids: Sequence[str]) -> dict[str, float]:  # noqa: ARG002
        """Return {id: cosine of the text to that memory's vector}; empty if the model takes too long."""
        return {}

    def nearest_of(self, text: str, positions: Sequence[int], count: int) -> list[int]:  # noqa: ARG002
        """Return the `count` of these row numbers with the memories most similar to a text, in any order.

        Empty if this takes too long.
        """
        return []

    def vectors_of(self, ids: Sequence[str]) -> Mapping[str, bytes]:  # noqa: ARG002
        """Return the vectors of memories by id; memories without a vector are left out."""
        return {}

    def vectors_at(self, positions: Sequence[int]) -> Mapping[int, bytes]:  # noqa: ARG002
        """Return the vectors of memories by row number; memories without a vector are left out."""
        return {}

    def compare(self, known: Mapping[str, bytes]) -> MemoryComparison:  # noqa: ARG002
        """Return functions that compare memories by these vectors, without asking a model."""
        return NOT_COMPARED


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
CODE_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's Base32, without letters that look like a digit."""
CODE_CHARS = 20
"""Of an invitation's code: 100 random bits."""
_MISREAD = str.maketrans("OIL", "011")


class Scope(StrEnum):
    """A permission of a token."""

    READ = "read"
    WRITE = "write"
    FORGET = "forget"
    ADMIN = "admin"
    """Administers owners and their tokens, and shows no memory; never given by default."""


OWN_SCOPES = (Scope.READ, Scope.WRITE, Scope.FORGET)
"""Everything that an owner may do with its memory."""


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
    is_group: bool = False
    """Whether its members read and write it, by tokens of their own."""
    invitations: int = 0
    """Codes that may still be redeemed."""
    suspended_at: datetime | None = None
    """Since when the owner's tokens are refused."""
    last_used_at: datetime | None = None
    """When a token was last used, to a minute or so."""
    requests: int = 0
    """Requests with its tokens, as far as these are still listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerToken:
    """A token without its secret, which is not stored."""

    id: str
    name: str
    scopes: tuple[Scope, ...]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    valid: bool
    last_used_at: datetime | None = None
    """When it was last used, to a minute or so."""
    requests: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedToken:
    """A new token with its secret, which is shown once."""

    token: OwnerToken
    secret: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """An owner's right to the memory of a group."""

    group: str
    member: str
    scopes: tuple[Scope, ...]
    joined_at: datetime


class SharedMemory(NamedTuple):
    """The memory of a group, as a member may use it."""

    owner: int
    name: str
    scopes: frozenset[Scope]


@dataclass(frozen=True, slots=True, kw_only=True)
class Enrolment:
    """The new token, with its secret, of somebody who redeemed a code or renewed a token; it is shown once."""

    token: str
    owner: str
    """The owner's name."""
    scopes: tuple[Scope, ...]
    expires_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """A one-time code for an owner, which is shown once and not kept."""

    owner: str
    code: str
    expires_at: datetime
    """Until when it may be redeemed."""
    added: bool
    """Whether the owner was added with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenHolder:
    """The owner of a valid token who is not suspended, and the memory that a request is about."""

    owner: int
    token: str
    """The token's id."""
    scopes: frozenset[Scope]
    """Those of the token, in the memory of a group as far as the membership allows them."""
    name: str
    """The token's name, such as that of a laptop."""
    expires_at: datetime | None
    owner_name: str = ""
    groups: tuple[SharedMemory, ...] = ()
    """The memories of the owner's groups, by name, with the scopes of the token there."""
    member: int | None = None
    """The owner of the token, where the memory is that of a group."""

    @property
    def group(self) -> str:
        """The group's name if the request is about the memory of a group, else empty."""
        return "" if self.member is None else self.owner_name

    def in_memory_of(self, name: str) -> TokenHolder | None:
        """Return the holder limited to the owner's memory or one group's, by name; None if not a member."""
        if name == self.owner_name:
            return replace(self, groups=())
        for group in self.groups:
            if group.name == name:
                return replace(
                    self,
                    owner=group.owner,
                    owner_name=name,
                    scopes=group.scopes,
                    groups=(),
                    member=self.owner,
                )
        return None


HolderByName = Callable[
    [str, str, frozenset[Scope], datetime | None], TokenHolder | None
]
"""Function that returns the holder for an owner's name, whom a proxy has authenticated; None if it may not log
in. Takes the name, the id of a token, its scopes, and when it expires."""


@dataclass(frozen=True, slots=True)
class OwnerFigures:
    """Totals of all owners of a database."""

    owners: int
    memories: Mapping[str, int]
    """By tier: working, archive, episodic."""
    owners_due: int
    memories_due: int
    """Memories that wait for a sleep cycle, and their owners."""
    due_s: float
    """How long the oldest of them has been due, in seconds; 0 without any."""
    purges_due: int
    """Requests to purge what was forgotten, and forgotten memories beyond their grace period."""
    purge_s: float
    """How long the oldest of these has waited, in seconds; 0 without any."""
    lacking_vectors: int
    """Memories that may have no vector of the embedding model yet, at most."""


class PoolFigures(NamedTuple):
    """The use of a pool, such as of connections or threads; the fields are named as its metrics."""

    in_use: int
    max: int
    waiting: int
    """Requests that wait for a place now."""
    waits_total: int
    """Requests that had to wait since the start."""
    wait_seconds_total: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedOwner:
    """A removed owner, with the counts of deleted records, and where text of the owner remains."""

    name: str
    number: int
    memories: int
    summaries: int
    rows: dict[str, int]
    """Deleted rows by table, as far as this call deleted them."""
    purged: bool
    """Whether they have left the pages of the tables and indexes, too."""
    left: tuple[str, ...]
    """Places that keep the words, each with what ends that."""


def owner_of(token: str) -> int | None:
    """Return the owner number in the text of a token; None for a text that is no token."""
    form = _TOKEN.fullmatch(token)
    owner = int(form[1]) if form else 0
    return owner if 0 < owner <= _OWNERS_MAX else None


def hash_secret(secret: str) -> bytes:
    """Return the SHA-256 of a token or code, which is kept in place of the secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def format_code(owner: int, characters: str) -> str:
    """Return the code of an invitation, such as `7-K3F9A-…`, from its random characters."""
    groups = [characters[at : at + 5] for at in range(0, CODE_CHARS, 5)]
    return "-".join([str(owner), *groups])


def read_code(text: str) -> tuple[int, str] | None:
    """Return the owner's number and the random characters of a typed code; None for another text."""
    number, _, typed = text.strip().upper().partition("-")
    characters = re.sub(r"[\s-]", "", typed).translate(_MISREAD)
    if not re.fullmatch(r"[1-9][0-9]{0,18}", number, re.ASCII):
        return None
    is_code = len(characters) == CODE_CHARS and set(characters) <= set(CODE_ALPHABET)
    return (int(number), characters) if is_code and int(number) <= _OWNERS_MAX else None


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
    """How a database's tables are distributed over the nodes of a cluster."""

    nodes: int
    """Nodes that take rows."""
    tables: tuple[str, ...]
    """Tables that this call distributed."""
    advice: tuple[str, ...] = ()
    """Steps that are left to a superuser."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """Steps that updated a database."""

    before: int
    """The version of the schema as it was found; 0 for an empty database."""
    after: int
    statements: tuple[str, ...]
    """Statements about roles and rights that were needed."""
