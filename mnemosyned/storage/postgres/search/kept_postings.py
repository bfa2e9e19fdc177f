"""What is kept of an owner's indexes from one question to the next: their sizes, and postings."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from mnemosyned.storage.postgres.database.session import Session
from mnemosyned.storage.postgres.search.kept_numbers import KeptNumbers
from mnemosyned.storage.postgres.search.statements import Phrase, Source, size_of

Version = tuple[int, int]
"""The state of an index in a snapshot: another one after each change."""


class IndexSize(NamedTuple):
    """The rows of an index, and the terms of all of them."""

    rows: int
    terms: int


class IndexSizes:
    """How large an owner's indexes are, counted anew when they have changed; for any thread."""

    def __init__(self) -> None:
        self._known: dict[Source, tuple[Version, IndexSize]] = {}

    def of(self, session: Session, source: Source, version: Version) -> IndexSize:
        """The size of an index, whose state in this snapshot is `version`."""
        known = self._known.get(source)
        if known and known[0] == version:
            return known[1]
        size = IndexSize(*size_of(session, source))
        self._known[source] = version, size
        return size


class Postings(NamedTuple):
    """The rows that have a phrase, the newest first, and how much it counts in each."""

    seqs: Sequence[int] = ()
    parts: Sequence[float] = ()
    """BM25 of the phrase, before it is weighed by how telling the phrase is."""


class KeptPostings:
    """Postings of an owner's phrases, each true for one state of its index; for any thread."""

    _all: ClassVar[KeptNumbers[tuple[Version, Postings]]] = KeptNumbers()
    """Of all owners."""

    def of(self, source: Source, phrase: Phrase, version: Version) -> Postings | None:
        found = self._all.get((self, source, phrase))
        return found[1] if found and found[0] == version else None

    def keep(
        self, source: Source, phrase: Phrase, version: Version, postings: Postings
    ) -> None:
        kept = Postings(array("q", postings.seqs), array("d", postings.parts))
        numbers = len(kept.seqs) + len(kept.parts)
        self._all.keep((self, source, phrase), (version, kept), numbers)


class KeptIndexes(NamedTuple):
    """What is kept of an owner's indexes."""

    sizes: IndexSizes
    postings: KeptPostings
