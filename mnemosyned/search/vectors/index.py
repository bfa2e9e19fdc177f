"""Vector indexes: binary codes in memory, which lead to vectors in the table, or the storage's own.

Codes keep a bit for each number: a million vectors of 512 take 64 MB and 8 for their positions. With
MiniLM, subtracting the mean first found no more among 30,000 texts, so codes need not be computed
again as vectors are added.
"""

from __future__ import annotations

import threading
from collections.abc import (
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set as AbstractSet,
)
from typing import TYPE_CHECKING, Any

from mnemosyned.memory.engine_ports import StorageSearch, VectorSearch
from mnemosyned.search.vectors.packing import load_numpy, unpack

if TYPE_CHECKING:
    from mnemosyned.storage.common.search import VectorStore

CODE_ROWS_MIN, CODE_ROWS_MAX = 1_024, 1 << 20
SIFTED_MAX = 1_000
"""Rows chosen by the number of different bits, then compared with the question's numbers. A different bit of a
small number says little. With 24,000 texts and the built-in encoder, the 200 vectors read then contain .994 of
the twenty nearest to a question, and .996 with twice as many rows."""
CODES_AT_ONCE = 16_384
"""Rows compared at once, which fit into the processor's cache."""
NO_POSITIONS = (1 << 63) - 1
"""Position of an empty row, beyond every other position."""


class VectorCodes:
    """Sign bits of vectors by position, of the `rows_max` newest positions at most.

    A position's row is its remainder, so that no search is needed to put, find or remove a vector, and newer
    vectors overwrite older ones. Safe from any thread.
    """

    def __init__(self, *, rows_max: int = CODE_ROWS_MAX) -> None:
        """Begin without vectors; hold codes of up to `rows_max` positions."""
        np = self._np = load_numpy()
        self._rows_max = rows_max
        self._lock = threading.Lock()
        self._low, self._high = NO_POSITIONS, 0
        self._width = 0
        self._positions: Any = np.empty(0, dtype=np.int64)
        """By row."""
        self._codes: Any = None
        """Words of 64 bits by row: the first of all rows, then the second of all, and so on."""

    def __len__(self) -> int:
        """Return the number of positions held."""
        with self._lock:
            return int(self._np.count_nonzero(self._positions < NO_POSITIONS))

    def put(self, vectors: Mapping[int, bytes]) -> bool:
        """Store the codes of {position: vector}; return False if all positions are too old."""
        np = self._np
        with self._lock:
            newest = max(self._high, *vectors) if vectors else 0
            taken = sorted(seq for seq in vectors if seq > newest - self._rows_max)
            if not taken:
                return False
            codes = self._encode([vectors[position] for position in taken])
            self._make_room(taken[0], newest, codes.shape[1])
            positions = np.array(taken, dtype=np.int64)
            rows = positions % len(self._positions)
            self._positions[rows] = positions
            self._codes[:, rows] = codes.T
        return True

    def keep_only(self, positions: Sequence[int], *, after: int, until: int) -> None:
        """Remove every stored position above `after` and up to `until`, except `positions`."""
        np = self._np
        with self._lock:
            within = np.flatnonzero(
                (self._positions > after)
                & (self._positions <= min(until, NO_POSITIONS - 1))
            )
            gone = within[np.isin(self._positions[within], positions, invert=True)]
            self._positions[gone] = NO_POSITIONS
            if len(gone):
                self._codes[:, gone] = 0

    def likely_nearest(
        self, question: bytes, count: int, *, among: Sequence[int] | None = None
    ) -> list[int]:
        """Return up to `count` positions, from `among` if given, most like the vector `question`; unsorted."""
        np = self._np
        with self._lock:
            if self._codes is None:
                return []
            if among is None:
                rows = self._sift_rows(self._encode([question])[0])
            else:
                wanted = np.array(among, dtype=np.int64)
                rows = wanted % len(self._positions)
                rows = rows[self._positions[rows] == wanted]
            positions = self._positions[rows]
            packed = np.ascontiguousarray(self._codes[:, rows].T).view(np.uint8)
        if len(rows) > count:
            bits = np.unpackbits(packed, axis=1, count=self._width).astype(np.float32)
            near = np.einsum("ij,j->i", bits, unpack([question])[0])
            positions = positions[np.argpartition(-near, count - 1)[:count]]
        return list(positions.tolist())

    def _sift_rows(self, code: Any) -> Any:  # noqa: ANN401 numpy is loaded late
        """Return up to `SIFTED_MAX` rows in use whose codes differ least from `code`."""
        np = self._np
        differ = np.empty(len(self._positions), dtype=np.uint16)
        for start in range(0, len(differ), CODES_AT_ONCE):
            block = slice(start, start + CODES_AT_ONCE)
            total = differ[block]
            total[:] = 0
            for held, asked in zip(self._codes[:, block], code, strict=True):
                total += np.bitwise_count(held ^ asked)
            total[self._positions[block] == NO_POSITIONS] = self._width + 1
        within = np.bincount(differ)[: self._width + 1].cumsum()
        reach = min(int(np.searchsorted(within, SIFTED_MAX)), self._width)
        rows = np.flatnonzero(differ <= reach)
        return rows[np.argsort(differ[rows], kind="stable")[:SIFTED_MAX]]

    def _encode(self, vectors: Sequence[bytes]) -> Any:  # noqa: ANN401 numpy is loaded late
        """Return the sign bits of each vector as a row of machine words."""
        np = self._np
        numbers = unpack(vectors)
        self._width = numbers.shape[1]
        bits = np.packbits(numbers > 0, axis=1)
        if padding := -bits.shape[1] % np.uint64(0).itemsize:
            bits = np.pad(bits, ((0, 0), (0, padding)))
        return bits.view(np.uint64)

    def _make_room(self, low: int, high: int, words: int) -> None:
        """Enlarge the table, up to `rows_max` rows, for positions from `low` to `high`."""
        np = self._np
        self._low, self._high = min(self._low, low), max(self._high, high)
        span = self._high - self._low + 1
        have = len(self._positions)
        if span <= have or have == self._rows_max:
            return
        room = min(self._rows_max, max(CODE_ROWS_MIN, 1 << (span - 1).bit_length()))
        positions = np.full(room, NO_POSITIONS, dtype=np.int64)
        codes = np.zeros((words, room), dtype=np.uint64)
        held = np.flatnonzero(self._positions != NO_POSITIONS)
        if len(held):
            rows = self._positions[held] % room
            positions[rows] = self._positions[held]
            codes[:, rows] = self._codes[:, held]
        self._positions, self._codes = positions, codes


def cosines(vectors: Mapping[int, bytes], question: bytes) -> dict[int, float]:
    """Return {position: cosine with the vector `question`} for each of `vectors`, by position."""
    if not vectors:
        return {}
    near = dot_products(unpack(list(vectors.values())), question)
    return dict(zip(vectors, near.tolist(), strict=True))


def dot_products(vectors: Any, question: bytes) -> Any:  # noqa: ANN401 numpy is loaded late
    """Return the dot product of each row of `vectors` with the vector `question`, as an array.

    Not by numpy's `@`, whose threads keep spinning in a program that loaded numpy itself.
    """
    return load_numpy().einsum("ij,j->i", vectors, unpack([question])[0])


READ = 200
"""Number of vectors, the nearest by their codes, that are read and compared exactly: some 1 ms if cached."""


class VectorIndex(VectorCodes, VectorSearch):
    """Codes of vectors in memory, which lead to the vectors in the table.

    It is filled from the table at each start. Safe from any thread.
    """

    def __init__(
        self,
        *,
        read: Callable[[Sequence[int]], Mapping[int, bytes]],
        rows_max: int = CODE_ROWS_MAX,
        kept_max: int = 0,
    ) -> None:
        """Hold codes of up to `rows_max` positions; `read` returns vectors by position."""
        super().__init__(rows_max=rows_max)
        self._read = read
        self._kept_max = kept_max
        self.kept: dict[int, bytes] = {}
        """Vectors by position."""

    def put(self, vectors: Mapping[int, bytes]) -> bool:
        """Store codes, and the vectors too unless too many. Return False if all positions are too old."""
        with self._lock:  # what was dropped must not come back
            if len(self.kept) + len(vectors) <= self._kept_max:
                self.kept = {**self.kept, **vectors}
            else:
                self._kept_max, self.kept = 0, {}
        return super().put(vectors)

    def keep_only(self, positions: Sequence[int], *, after: int, until: int) -> None:
        """Remove every stored position above `after` and up to `until`, except `positions`."""
        super().keep_only(positions, after=after, until=until)
        with self._lock:
            gone = {seq for seq in self.kept if after < seq <= until}.difference(
                positions
            )
            self.kept = {
                seq: each for seq, each in self.kept.items() if seq not in gone
            }

    def drop_vectors(self) -> None:
        """Drop the vectors in memory, and from now on read vectors from the storage."""
        with self._lock:
            self._kept_max, self.kept = 0, {}

    def cosines(self, question: bytes, positions: Iterable[int]) -> dict[int, float]:
        """Return {position: cosine with the vector `question`} of `positions` with a vector."""
        kept, wanted = self.kept, sorted(positions)
        found = {position: kept[position] for position in wanted if position in kept}
        if missing := [position for position in wanted if position not in found]:
            found |= self._read(missing)
        return cosines(found, question)

    def nearest(self, question: bytes, count: int, *, least: float) -> dict[int, float]:
        """Return {position: cosine} of up to `count` vectors nearest to `question`, nearest first.

        Only cosines of at least `least` count. Vectors are found by their codes, so that some may be
        missed among many.
        """
        return self.nearest_and_cosines(question, count, set(), least=least)[0]

    def nearest_of(
        self, question: bytes, positions: Sequence[int], count: int
    ) -> list[int]:
        """Return the `count` of these positions whose codes are most like the question's, unsorted."""
        return self.likely_nearest(question, count, among=positions)

    def nearest_and_cosines(
        self, question: bytes, count: int, positions: AbstractSet[int], *, least: float
    ) -> tuple[dict[int, float], dict[int, float]]:
        """Return {position: cosine} of the `count` nearest, and another for the other `positions`."""
        likely = dict.fromkeys(self.likely_nearest(question, READ))
        near = self.cosines(question, [*likely, *(positions - likely.keys())])
        found = [pair for pair in near.items() if pair[0] in likely]
        found.sort(key=lambda pair: -pair[1])
        nearest = {seq: cosine for seq, cosine in found[:count] if cosine >= least}
        others = {
            seq: cosine
            for seq, cosine in near.items()
            if seq in positions and seq not in nearest
        }
        return nearest, others


READ_AT_ONCE = 5_000
READ_MAX = 20_000
"""Newest vectors that are read and compared for a question: about 0.2 s."""


class NewestVectors(VectorSearch):
    """Search in the newest vectors of a store, which are read for each question.

    It keeps no vectors in memory: an owner who asks nothing needs no space, and changes by other daemons are
    seen at once.
    """

    def __init__(
        self, store: VectorStore, model: int, *, rows_max: int = READ_MAX
    ) -> None:
        """Search the newest `rows_max` vectors of the model with the number `model` in `store`."""
        self._store = store
        self._model = model
        self._rows_max = rows_max

    def cosines(self, question: bytes, positions: Iterable[int]) -> dict[int, float]:
        """Return {position: cosine with the vector `question`} of `positions` with a vector."""
        return cosines(self._store.vectors_of(self._model, list(positions)), question)

    def nearest(self, question: bytes, count: int, *, least: float) -> dict[int, float]:
        """Return {position: cosine} of up to `count` nearest vectors, with `least` or more, nearest first."""
        near: dict[int, float] = {}
        for page in self._read_pages():
            compared = near | cosines(page, question)
            first = sorted(compared.items(), key=lambda pair: -pair[1])[:count]
            near = {seq: cosine for seq, cosine in first if cosine >= least}
        return near

    def nearest_of(
        self, question: bytes, positions: Sequence[int], count: int
    ) -> list[int]:
        """Return the `count` of these positions most like the question, of the newest `rows_max`."""
        return super().nearest_of(question, sorted(positions)[-self._rows_max :], count)

    def _read_pages(self) -> Iterator[Mapping[int, bytes]]:
        """Yield {position: vector} of the newest vectors, page by page, up to `rows_max`."""
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
    """Substitute for a `VectorIndex` if the database itself compares vectors: there is nothing to load."""

    def __init__(self, search: StorageSearch) -> None:
        """Answer by `search`, which compares vectors in the storage."""
        self.cosines = search.cosines
        self.nearest = search.nearest
        self.nearest_of = search.nearest_of
        self.nearest_and_cosines = search.nearest_and_cosines
        self._count = 0

    def __len__(self) -> int:
        """Return the number of vectors that a question is compared with, as last counted."""
        return self._count

    def put(self, vectors: Mapping[int, bytes]) -> bool:
        """Count the newly stored `vectors`; return False, as this index stores none itself."""
        self._count += len(vectors)
        return False

    def keep_only(self, positions: Sequence[int], *, after: int, until: int) -> None:  # noqa: ARG002
        """Remove nothing, as the storage does so; count `positions`, from 0 again if `after` is 0."""
        self._count = len(positions) + (self._count if after else 0)
