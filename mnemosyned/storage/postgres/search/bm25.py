"""Scores of the rows of an index: BM25 as SQLite's FTS5 computes it, so that both rank alike.

Every phrase of a question is a term of its own, also one that another has the same terms as. A
text is as long as it has terms; the average is that of all rows of the index.

The server counts how often a word stands in a row, and sends that with the row's number and length.
To send the terms themselves took twenty times as long as SQLite: 200 ms for the 4,800 of 5,400
summaries that have one of seven words. So it takes 19, where no more than to name the rows takes 6;
and to count in the whole array of terms, in place of those that a row repeats, took 75. Of summaries
the daemon keeps what it was sent, until one comes or changes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from heapq import nlargest
from math import log

from mnemosyned.domain.search.finding import SCORED_MAX
from mnemosyned.storage.postgres.database.session import Session
from mnemosyned.storage.postgres.fulltext.terms import COLUMN_END
from mnemosyned.storage.postgres.search.filters import SqlFilter
from mnemosyned.storage.postgres.search.kept_postings import (
    IndexSize,
    KeptIndexes,
    Postings,
    Version,
)
from mnemosyned.storage.postgres.search.statements import (
    AnyOf,
    Occurrences,
    Phrase,
    Source,
    counts_of_each,
    occurrences_of_each,
    texts_with_any,
)

K1, B = 1.2, 0.75
LEAST = 1e-6
"""What a phrase is worth that most rows have."""
EPISODES_SCORED_MAX = 100_000


class IndexSearch:
    """A search of one index: its best rows for phrases."""

    def __init__(
        self,
        session: Session,
        source: Source,
        narrow: SqlFilter,
        *,
        kept: KeptIndexes,
        version: Version,
    ) -> None:
        """`version` is that of the index in this snapshot."""
        self._session = session
        self._source = source
        self._narrow = narrow
        self._kept = kept
        self._version = version
        self._is_second = source[1] == "grams"
        self._most = SCORED_MAX if self._is_second else EPISODES_SCORED_MAX
        # Each new memory makes another version of its indexes.
        self._is_kept = source[0] == "episode" and not narrow.where

    def best(self, phrases: Sequence[Phrase], *, limit: int) -> list[tuple[int, float]]:
        """The best rows with their BM25; of equals the newest first, or the oldest.

        `limit` is how many. SQLite's second index is read from its newest rows on, the other one
        from its oldest.
        """
        found = self._postings(list(dict.fromkeys(phrases)))
        if not any(postings.seqs for postings in found.values()):
            return []
        all_postings = [found[phrase] for phrase in phrases]
        is_all = sum(len(each.seqs) for each in found.values()) < self._most
        if not is_all:
            all_postings, is_all = _newest(all_postings, self._most)
        if is_all and not self._narrow.where:
            hits = [len(postings.seqs) for postings in all_postings]
        else:
            hits = counts_of_each(self._session, self._source, phrases)
        weights = [weight(self._size.rows, count) for count in hits]
        return _best(all_postings, weights, limit=limit, newest=self._is_second)

    @cached_property
    def _size(self) -> IndexSize:
        return self._kept.sizes.of(self._session, self._source, self._version)

    @cached_property
    def _norms(self) -> _Norms:
        return _Norms(self._size.terms / self._size.rows)

    def _postings(self, phrases: Sequence[Phrase]) -> dict[Phrase, Postings]:
        """The newest rows of each phrase, as many as may be scored."""
        found = dict(self._known(phrases))
        missing = [phrase for phrase in phrases if phrase not in found]
        for phrase, occurrences in self._occurrences(missing).items():
            found[phrase] = postings = self._counted(occurrences)
            if self._is_kept and len(phrase) == 1:
                self._kept.postings.keep(self._source, phrase, self._version, postings)
        return found

    def _known(self, phrases: Iterable[Phrase]) -> Iterator[tuple[Phrase, Postings]]:
        if self._is_kept:
            for phrase in phrases:
                kept = self._kept.postings.of(self._source, phrase, self._version)
                if kept is not None:
                    yield phrase, kept

    def _occurrences(self, phrases: Sequence[Phrase]) -> dict[Phrase, Occurrences]:
        session, source, narrow = self._session, self._source, self._narrow
        words = [phrase for phrase in phrases if len(phrase) == 1]
        longer = [phrase for phrase in phrases if len(phrase) > 1]
        terms = [term for (term,) in words]
        rows = occurrences_of_each(session, source, terms, narrow, limit=self._most)
        found: dict[Phrase, Occurrences] = dict(zip(words, rows, strict=True))
        if longer:
            any_of = AnyOf.of(longer)
            texts = texts_with_any(session, source, any_of, narrow, limit=self._most)
            found |= {phrase: _occurrences_in(texts, phrase) for phrase in longer}
        return found

    def _counted(self, occurrences: Occurrences) -> Postings:
        if not occurrences.seqs:
            return Postings()
        norms = self._norms
        parts = [
            (times * (K1 + 1.0)) / (times + norms[length])
            for length, times in zip(
                occurrences.lengths, occurrences.times, strict=True
            )
        ]
        return Postings(occurrences.seqs, parts)


def _newest(found: Sequence[Postings], most: int) -> tuple[list[Postings], bool]:
    """The postings of the newest rows of all, and whether these are all."""
    every = {seq for postings in found for seq in postings.seqs}
    if len(every) < most:
        return list(found), True
    oldest = nlargest(most, every)[-1]
    newest: list[Postings] = []
    for seqs, parts in found:
        end = sum(seq >= oldest for seq in seqs)
        newest.append(Postings(seqs[:end], parts[:end]))
    return newest, False


def _best(
    found: Iterable[Postings], weights: Iterable[float], *, limit: int, newest: bool
) -> list[tuple[int, float]]:
    scores: dict[int, float] = defaultdict(float)
    for postings, idf in zip(found, weights, strict=True):
        for seq, part in zip(postings.seqs, postings.parts, strict=True):
            scores[seq] += idf * part
    sign = 1 if newest else -1
    least = nlargest(limit, scores.values())[-1]
    best = [(score, sign * seq) for seq, score in scores.items() if score >= least]
    best.sort(reverse=True)
    return [(sign * seq, score) for score, seq in best[:limit]]


def _occurrences_in(
    texts: Iterable[tuple[int, Sequence[int]]], phrase: Phrase
) -> Occurrences:
    """The rows that have a phrase."""
    found = Occurrences([], [], [])
    for seq, terms in texts:
        if times := occurrences(terms, phrase):
            found.seqs.append(seq)
            found.lengths.append(length_of(terms))
            found.times.append(times)
    return found


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
