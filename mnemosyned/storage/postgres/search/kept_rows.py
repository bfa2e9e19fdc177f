"""The rows of common words, kept from one question to the next, within a limit.

An index of PostgreSQL knows where a row is, and not its number: to name one takes half a microsecond,
as it is read, and up to 8,000 are named for a question. That is most of what a question takes longer
than on SQLite; from here they come in a tenth of that. What is kept are numbers, no words, and true
for one state of an owner's words: `rewordings` counts what changed or went. What has come since is
looked up alone. Of a word with more rows than a question reads, the newest are kept: to find those
among a million memories takes up to a fifth of a second.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import ClassVar, NamedTuple

from mnemosyned.storage.postgres.search.kept_numbers import KeptNumbers
from mnemosyned.storage.postgres.search.statements import AnyOf

KEPT_FROM = 200
"""Rows of a word from which they are kept."""
SINCE_MAX = 1_000
"""Memories that may have come since; with more of them the word is looked up anew."""


class Moment(NamedTuple):
    """The state of an owner's words in a snapshot."""

    rewordings: int
    last: int
    """The last number that was given to a memory."""


class Kept(NamedTuple):
    """Rows of a word at a moment, the newest first."""

    rows: Sequence[int]
    at: Moment
    is_all: bool
    """Whether the word had no others."""

    def has(self, limit: int) -> bool:
        """Whether the newest rows, as many as `limit`, are among these."""
        return self.is_all or len(self.rows) >= limit


class KeptRows:
    """Rows of words of one memory; used from any thread."""

    _all: ClassVar[KeptNumbers[Kept]] = KeptNumbers()
    """Of all memories."""

    def of(self, word: AnyOf, at: Moment) -> Kept | None:
        """Rows of a word as they were at this moment or shortly before."""
        kept = self._all.get((self, word))
        if kept is None or kept.at.rewordings != at.rewordings:
            return None
        if (
            kept.at.last > at.last
        ):  # what others have asked since is not in this snapshot yet
            rows = [seq for seq in kept.rows if seq <= at.last]
            return Kept(rows, at, kept.is_all)
        return kept if at.last - kept.at.last <= SINCE_MAX else None

    def keep(
        self, word: AnyOf, rows: Iterable[int], at: Moment, *, is_all: bool
    ) -> None:
        """Keep rows of a word, the newest first, if they are many and more than are known."""
        kept = Kept(array("q", rows), at, is_all)
        known = self._all.get((self, word))
        if len(kept.rows) >= KEPT_FROM and not (known and _serves_better(known, kept)):
            self._all.keep((self, word), kept, len(kept.rows))


def _serves_better(known: Kept, other: Kept) -> bool:
    """Whether what is known of a word is as new as the other, and as much."""
    if known.at.rewordings != other.at.rewordings:
        return known.at.rewordings > other.at.rewordings
    return known.at >= other.at and known.has(len(other.rows) + other.is_all)
