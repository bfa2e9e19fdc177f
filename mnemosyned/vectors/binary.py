"""`Codes`: which of many vectors may be near a question, by the signs of their numbers.

A bit for each number: a million vectors of 384 take 50 MB and 8 for their positions, and 9 ms a
question on one core. With MiniLM, taking the mean off first found no more among 30,000 texts, so
what is held never has to be made anew.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

ROWS_MIN, ROWS_MAX = 1_024, 1 << 20
SIFTED = 8_000
"""So many are taken by the count of bits that differ, then weighed by the question's numbers: where
those are small, a bit that differs says little. An eighth of them is then as good as all."""
BLOCK = 16_384
"""Rows at once: what is worked on stays in the processor's cache."""
NONE = (1 << 63) - 1
"""The position of a row that holds none, beyond every other."""


class Codes:
    """Signs of vectors by position, over a span of so many positions up to the newest.

    A position has its place by its remainder, so that one is put, found and forgotten without a
    search, from either end, and the newer overwrites. Safe from any thread.
    """

    def __init__(self, *, rows_max: int = ROWS_MAX) -> None:
        # Loaded here: only a memory with an embedding model pays for it.
        import numpy  # noqa: PLC0415, ICN001

        self._np = numpy
        self._rows_max = rows_max
        self._lock = threading.Lock()
        self._low, self._high = NONE, 0
        self._width = 0
        self._positions: Any = numpy.empty(0, dtype=numpy.int64)
        """By row."""
        self._codes: Any = None
        """Words of 64 bits by row: the first of all rows, then the second of all, and so on."""

    def count(self, *, until: int) -> int:
        """How many positions are held, up to and including one."""
        with self._lock:
            return int(self._np.count_nonzero(self._positions <= until))

    def put(self, vectors: Mapping[int, bytes]) -> bool:
        """Take these in, unless all are too old. All have as many numbers as the first ever."""
        np = self._np
        with self._lock:
            newest = max(self._high, *vectors) if vectors else 0
            taken = sorted(seq for seq in vectors if seq > newest - self._rows_max)
            if not taken:
                return False
            codes = self._coded([vectors[position] for position in taken])
            self._make_room(taken[0], newest, codes.shape[1])
            positions = np.array(taken, dtype=np.int64)
            rows = positions % len(self._positions)
            self._positions[rows] = positions
            self._codes[:, rows] = codes.T
        return True

    def keep_only(self, positions: Sequence[int], *, after: int, until: int) -> None:
        """Let go of all others after one position and up to another, and overwrite them."""
        np = self._np
        with self._lock:
            within = np.flatnonzero(
                (self._positions > after) & (self._positions <= min(until, NONE - 1))
            )
            gone = within[np.isin(self._positions[within], positions, invert=True)]
            self._positions[gone] = NONE
            if len(gone):
                self._codes[:, gone] = 0

    def alike(self, question: bytes, count: int, *, until: int) -> list[int]:
        """Positions up to one that are likely to be the nearest; in no order."""
        np = self._np
        with self._lock:
            if self._codes is None:
                return []
            rows = self._sifted(self._coded([question])[0], until)
            positions = self._positions[rows]
            packed = np.ascontiguousarray(self._codes[:, rows].T).view(np.uint8)
        if len(rows) > count:
            bits = np.unpackbits(packed, axis=1, count=self._width)
            numbers = np.frombuffer(question, dtype="<f2").astype(np.float32)
            near = np.einsum("ij,j->i", bits, numbers)
            positions = positions[np.argpartition(-near, count - 1)[:count]]
        return list(positions.tolist())

    def _sifted(self, code: Any, until: int) -> Any:  # noqa: ANN401 numpy is optional
        """The rows with the fewest bits that differ, no more than `SIFTED`."""
        np = self._np
        differ = np.empty(len(self._positions), dtype=np.uint16)
        for start in range(0, len(differ), BLOCK):
            block = slice(start, start + BLOCK)
            total = differ[block]
            total[:] = 0
            for held, asked in zip(self._codes[:, block], code, strict=True):
                total += np.bitwise_count(held ^ asked)
            total[self._positions[block] > until] = self._width + 1
        within = np.bincount(differ)[: self._width + 1].cumsum()
        reach = min(int(np.searchsorted(within, SIFTED)), self._width)
        rows = np.flatnonzero(differ <= reach)
        return rows[np.argsort(differ[rows], kind="stable")[:SIFTED]]

    def _coded(self, vectors: Sequence[bytes]) -> Any:  # noqa: ANN401 numpy is optional
        """A row of words for each; half precision has its sign where an integer has it."""
        np = self._np
        numbers = np.frombuffer(b"".join(vectors), dtype="<i2").reshape(
            len(vectors), -1
        )
        self._width = numbers.shape[1]
        bits = np.packbits(numbers > 0, axis=1)
        padding = -bits.shape[1] % np.uint64(0).itemsize
        return np.pad(bits, ((0, 0), (0, padding))).view(np.uint64)

    def _make_room(self, low: int, high: int, words: int) -> None:
        """For the span of all that ever came, as far as it may grow."""
        np = self._np
        self._low, self._high = min(self._low, low), max(self._high, high)
        span = self._high - self._low + 1
        have = len(self._positions)
        if span <= have or have == self._rows_max:
            return
        room = min(self._rows_max, max(ROWS_MIN, 1 << (span - 1).bit_length()))
        positions = np.full(room, NONE, dtype=np.int64)
        codes = np.zeros((words, room), dtype=np.uint64)
        held = np.flatnonzero(self._positions != NONE)
        if len(held):
            rows = self._positions[held] % room
            positions[rows] = self._positions[held]
            codes[:, rows] = self._codes[:, held]
        self._positions, self._codes = positions, codes
