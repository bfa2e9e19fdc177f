"""Port of vectors: one embedding of each memory, by model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from mnemosyned.domain.search.query import Match, Query

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
