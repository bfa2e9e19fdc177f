"""Port of vectors: one embedding of each memory, by model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from mnemosyned.domain.search.query import Match, Query, SearchCandidates
from mnemosyned.domain.statuses import EmbedderStatus

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
        """Return the similarity of those of these positions that have a vector."""
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

    def embedded(self, model: int, *, after: int, limit: int) -> list[int]:
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
        """Claim the memories that lack a vector, also once more; None where another holds them."""
        ...

    def keep_made(
        self, model: int, made: Sequence[tuple[EmbeddingInput, bytes]]
    ) -> int:
        """Store vectors of memories that still have these words; return their number."""
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

    def remembered(self) -> None:
        """Note that there are new memories; returns at once."""
        ...

    def forgot(self) -> None:
        """Note that memories were deleted."""
        ...

    def reworded(self, positions: Sequence[int]) -> None:
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
        """Add similarities to candidates, or a note why words alone decide."""
        ...
