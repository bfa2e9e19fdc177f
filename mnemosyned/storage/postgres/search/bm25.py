"""Scores of the rows of an index: BM25 as SQLite's FTS5 computes it, so that both rank alike.

Every phrase of a question is a term of its own, also one that another has the same terms as. A
text is as long as it has terms; the average is that of all rows of the index.

The server counts how often a word stands in a row, and sends that with the row's number and length.
To send the terms themselves took twenty times as long as SQLite: 200 ms for the 4,800 of 5,400
summaries that have one of seven words. So it takes 19, where no more than to name the rows takes 6;
and to count in the whole array of terms, in place of those that a row repeats, took 75.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from heapq import nlargest
from math import log
from typing import NamedTuple

from mnemosyned.domain.search.finding import SCORED_MAX
from mnemosyned.storage.postgres.database.session import Session
from mnemosyned.storage.postgres.fulltext.terms import COLUMN_END
from mnemosyned.storage.postgres.search.filters import SqlFilter
from mnemosyned.storage.postgres.search.statements import (
    AnyOf,
    Occurrence,
    Phrase,
    Source,
    counts_of_each,
    occurrences_of_each,
    size_of,
    texts_with_any,
)

K1, B = 1.2, 0.75
LEAST = 1e-6
"""What a phrase is worth that most rows have."""
EPISODES_SCORED_MAX = 100_000


class IndexSize(NamedTuple):
    """The rows of an index, and the terms of all of them."""

    rows: int
    terms: int


class IndexSizes:
    """How large an owner's indexes are, counted anew when they have changed; for any thread."""

    def __init__(self) -> None:
        self._known: dict[Source, tuple[object, IndexSize]] = {}

    def of(self, session: Session, source: Source, version: object) -> IndexSize:
        """The size of an index; `version` is another one after each change of it."""
        known = self._known.get(source)
        if known and known[0] == version:
            return known[1]
        size = IndexSize(*size_of(session, source))
        self._known[source] = version, size
        return size


class Found(NamedTuple):
    """The rows of each phrase of a question."""

    rows: list[list[Occurrence]]
    is_all: bool
    """Whether no row has any of the phrases beside these."""


def rows_found(
    session: Session, source: Source, phrases: Sequence[Phrase], narrow: SqlFilter
) -> Found:
    """The newest rows that have any of the phrases, as many as may be scored."""
    most = SCORED_MAX if source[1] == "grams" else EPISODES_SCORED_MAX
    distinct = list(dict.fromkeys(phrases))
    found = _rows_with(session, source, distinct, narrow, limit=most)
    rows = [found[phrase] for phrase in phrases]
    every: set[int] = set()
    if sum(map(len, found.values())) >= most:
        every = {row[0] for each in rows for row in each}
    if len(every) < most:
        return Found(rows, is_all=True)
    oldest = nlargest(most, every)[-1]
    newest = [[row for row in each if row[0] >= oldest] for each in rows]
    return Found(newest, is_all=False)


def _rows_with(
    session: Session,
    source: Source,
    phrases: Sequence[Phrase],
    narrow: SqlFilter,
    *,
    limit: int,
) -> dict[Phrase, list[Occurrence]]:
    """The newest rows that have any of the phrases, for each phrase."""
    words = [phrase for phrase in phrases if len(phrase) == 1]
    longer = [phrase for phrase in phrases if len(phrase) > 1]
    terms = [term for (term,) in words]
    rows = occurrences_of_each(session, source, terms, narrow, limit=limit)
    found: dict[Phrase, list[Occurrence]] = dict(zip(words, rows, strict=True))
    if longer:
        texts = texts_with_any(session, source, AnyOf.of(longer), narrow, limit=limit)
        found |= {phrase: _counted(texts, phrase) for phrase in longer}
    return found


def hits_of(
    session: Session,
    source: Source,
    phrases: Sequence[Phrase],
    found: Found,
    *,
    is_narrowed: bool,
) -> list[int]:
    """How many rows of the index have each phrase: counted where not all of them were found."""
    if found.is_all and not is_narrowed:
        return [len(rows) for rows in found.rows]
    return counts_of_each(session, source, phrases)


def best_of(
    found: Found, hits: Sequence[int], size: IndexSize, *, limit: int, newest: bool
) -> list[tuple[int, float]]:
    """The best of these rows with their BM25; of equals the newest first, or the oldest.

    `hits` are the rows of the whole index that have each phrase.
    """
    scores: dict[int, float] = defaultdict(float)
    norms = _Norms(size.terms / size.rows)
    for rows, count in zip(found.rows, hits, strict=True):
        idf = weight(size.rows, count)
        for seq, length, times in rows:
            scores[seq] += idf * ((times * (K1 + 1.0)) / (times + norms[length]))
    sign = 1 if newest else -1
    return nlargest(limit, scores.items(), key=lambda item: (item[1], sign * item[0]))


def _counted(
    texts: Iterable[tuple[int, Sequence[int]]], phrase: Phrase
) -> list[Occurrence]:
    """The rows that have a phrase."""
    return [
        (seq, length_of(terms), times)
        for seq, terms in texts
        if (times := occurrences(terms, phrase))
    ]


class _Norms(dict[int, float]):
    """The amount that a length adds to how often a term must stand in a row to count as much."""

    def __init__(self, average: float) -> None:
        super().__init__()
        self._average = average

    def __missing__(self, length: int) -> float:
        self[length] = norm = K1 * (1 - B + B * length / self._average)
        return norm


def occurrences(terms: Sequence[int], phrase: Phrase) -> int:
    """How often a phrase stands among the terms of a text."""
    first, size = phrase[0], len(phrase)
    return sum(
        tuple(terms[at : at + size]) == phrase
        for at, term in enumerate(terms)
        if term == first
    )


def length_of(terms: Sequence[int]) -> int:
    """How many terms a row has in all of its texts."""
    return len(terms) - terms.count(COLUMN_END)


def weight(rows: int, hits: int) -> float:
    """How telling a phrase is that so many of the rows have."""
    telling = log((rows - hits + 0.5) / (hits + 0.5))
    return telling if telling > 0 else LEAST
