"""What rows of an index are worth: BM25 as SQLite's FTS5 computes it, so that both rank alike.

Every phrase of a question is a term of its own, also one that another has the same terms as. A
text is as long as it has terms; the average is that of all rows of the index.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import log
from typing import NamedTuple

from mnemosyned.domain.search.finding import SCORED_MAX
from mnemosyned.storage.postgres.database.session import Session
from mnemosyned.storage.postgres.fulltext.terms import COLUMN_END
from mnemosyned.storage.postgres.search.filters import SqlFilter
from mnemosyned.storage.postgres.search.statements import (
    AnyOf,
    Column,
    Phrase,
    Table,
    counts_of_each,
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


def best_of(
    session: Session,
    source: tuple[Table, Column],
    phrases: Sequence[Phrase],
    narrow: SqlFilter,
    *,
    limit: int,
) -> list[tuple[int, float]]:
    """The best rows of an index for any of the phrases, with their BM25.

    In the second index only the newest rows are scored; equals are the newest first there, and
    the oldest first in that of words.
    """
    phrases = [phrase for phrase in phrases if phrase]
    if not phrases:
        return []
    most = SCORED_MAX if source[1] == "grams" else EPISODES_SCORED_MAX
    texts = texts_with_any(session, source, AnyOf.of(phrases), narrow, limit=most)
    if not texts:
        return []
    counts = [[occurrences(terms, phrase) for phrase in phrases] for _, terms in texts]
    if narrow.where or len(texts) == most:
        hits = counts_of_each(session, source, phrases)
    else:
        hits = [sum(map(bool, column)) for column in zip(*counts, strict=True)]
    size = IndexSize(*size_of(session, source))
    weights = [weight(size.rows, count) for count in hits]
    scores = [
        (seq, score(weights, found, length_of(terms), size.terms / size.rows))
        for (seq, terms), found in zip(texts, counts, strict=True)
    ]
    if source[1] == "words":
        scores.reverse()
    return sorted(scores, key=lambda item: -item[1])[:limit]


def occurrences(terms: Sequence[int], phrase: Phrase) -> int:
    """How often a phrase stands among the terms of a text."""
    first, *rest = phrase
    if not rest:
        return terms.count(first)
    size = len(phrase)
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


def score(
    weights: Sequence[float], counts: Iterable[int], length: int, average: float
) -> float:
    """The BM25 of a row that has each phrase so often."""
    total = 0.0
    for idf, count in zip(weights, counts, strict=True):
        total += idf * (
            (count * (K1 + 1.0)) / (count + K1 * (1 - B + B * length / average))
        )
    return total
