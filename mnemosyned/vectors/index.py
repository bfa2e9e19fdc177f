"""`VectorIndex`: the nearest to a question, exactly among the newest, by codes among the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from mnemosyned.vectors.binary import Codes
from mnemosyned.vectors.exact import Matrix, cosines

READ = 500
"""So many of the older, by their codes the most likely, are read and scored exactly: some 3 ms, far
more from a disk that the system holds nothing of. Among 30,000 real vectors 200 were enough."""


class VectorIndex:
    """The newest vectors in memory, and a code of each that leads to the older ones in the table.

    It holds nothing that the table does not: it is filled anew at each start. Safe from any thread.
    """

    def __init__(
        self, *, rows_max: int, read: Callable[[Sequence[int]], Mapping[int, bytes]]
    ) -> None:
        """`read` gives the vectors at these positions, of those that are still there."""
        self._matrix = Matrix(rows_max=rows_max)
        self._codes = Codes()
        self._read = read

    def __len__(self) -> int:
        """How many vectors a question is held against."""
        return len(self._matrix) + self._codes.count(until=self._matrix.floor)

    @property
    def full(self) -> bool:
        """Whether memory holds as many vectors as it may."""
        return self._matrix.floor > 0

    def put(self, vectors: Mapping[int, bytes]) -> bool:
        """Take these in, unless all are too old to be found by what is held."""
        coded = self._codes.put(
            vectors
        )  # first: what leaves the matrix must be found here
        return self._matrix.put(vectors) or coded

    def keep_only(self, positions: Sequence[int], *, after: int, until: int) -> None:
        """Let go of all others after one position and up to another, and overwrite them."""
        self._codes.keep_only(positions, after=after, until=until)
        self._matrix.keep_only(positions, after=after, until=until)

    def cosines(self, question: bytes, positions: Iterable[int]) -> dict[int, float]:
        """How near these are, of all that have a vector; the older are read."""
        wanted = list(positions)
        cosines = self._matrix.cosines(question, wanted)
        floor = self._matrix.floor
        older = [seq for seq in wanted if seq <= floor and seq not in cosines]
        return cosines | self._older(question, older)

    def nearest(self, question: bytes, count: int, *, least: float) -> dict[int, float]:
        """The nearest, at least so near, nearest first."""
        nearest = self._matrix.nearest(question, count, least=least)
        # Read afterwards: what left meanwhile is found on either side.
        floor = self._matrix.floor
        older = self._codes.alike(question, READ, until=floor) if floor else []
        exact = self._older(question, older)
        for position, cosine in exact.items():
            if cosine >= least:
                nearest[position] = cosine
        nearest_first = sorted(nearest.items(), key=lambda near: -near[1])
        return dict(nearest_first[:count])

    def _older(self, question: bytes, positions: Sequence[int]) -> dict[int, float]:
        return cosines(self._read(positions), question) if positions else {}
