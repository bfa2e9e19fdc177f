"""Searches of vectors that stay in the storage: by the storage itself, or read for each question."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from mnemosyned.domain.ports.vectors import StorageSearch, VectorSearch, VectorStore

READ_AT_ONCE = 5_000
READ_MAX = 20_000
"""So many vectors, the newest, are read and compared for a question: about 0.2 s."""


class NewestVectors(VectorSearch):
    """Compares a question with the newest vectors of a store, which it reads each time.

    It holds nothing: a memory of many that costs no room while nobody asks, and what any other
    daemon did to its vectors is seen at once.
    """

    def __init__(
        self, store: VectorStore, model: int, *, rows_max: int = READ_MAX
    ) -> None:
        self._store = store
        self._model = model
        self._rows_max = rows_max

    def cosines(self, question: bytes, positions: Iterable[int]) -> dict[int, float]:
        return _cosines(self._store.vectors_of(self._model, list(positions)), question)

    def nearest(self, question: bytes, count: int, *, least: float) -> dict[int, float]:
        near: dict[int, float] = {}
        for page in self._pages():
            compared = near | _cosines(page, question)
            first = sorted(compared.items(), key=lambda pair: -pair[1])[:count]
            near = {seq: cosine for seq, cosine in first if cosine >= least}
        return near

    def _pages(self) -> Iterator[Mapping[int, bytes]]:
        """Read the newest vectors, page by page."""
        newest = self._store.newest_position()
        before, left = newest + 1, self._rows_max
        while left > 0:
            size = min(READ_AT_ONCE, left)
            page = self._store.vectors(self._model, before=before, limit=size)
            yield page
            if len(page) < size:
                return
            before, left = min(page), left - size


class StorageIndex:
    """A `StorageSearch` in the place of a `VectorIndex`: there is nothing to load or to follow."""

    full = True

    def __init__(self, search: StorageSearch) -> None:
        self.cosines = search.cosines
        self.nearest = search.nearest
        self._count = 0

    def __len__(self) -> int:
        """How many vectors a question is compared with, as far as it was counted."""
        return self._count

    def put(self, vectors: Mapping[int, bytes]) -> bool:
        """Count vectors that were just stored; there is none to load."""
        self._count += len(vectors)
        return False

    def keep_only(self, positions: Sequence[int], *, after: int, until: int) -> None:  # noqa: ARG002
        """Count those that are stored, part by part from the first."""
        self._count = len(positions) + (self._count if after else 0)


def _cosines(vectors: Mapping[int, bytes], question: bytes) -> dict[int, float]:
    # Loaded here: where the storage searches, numpy is not needed.
    from mnemosyned.vectors.exact import cosines  # noqa: PLC0415

    return cosines(vectors, question)
