"""Rows of a question's words, and their BM25 scores as SQLite's FTS5 computes them.

Every phrase of a question is a term of its own, also one that another has the same terms as. A
text is as long as it has terms; the average is that of all rows of the index.

The server counts how often a word is in a row, and sends that with the row's number and length.
To send the terms themselves took twenty times as long as SQLite: 200 ms for the 4,800 of 5,400
summaries that have one of seven words. Therefore it takes 19, where no more than to name the rows takes 6;
and to count in the whole array of terms, in place of those that a row repeats, took 75. Counts of
summaries are cached until a summary comes or changes.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from functools import cache, cached_property, partial
from heapq import nlargest
from itertools import chain
from math import log
from typing import NamedTuple

from mnemosyned.search.finding import SCORED_MAX
from mnemosyned.search.words import Forms, Having, WordRows
from mnemosyned.storage.common.listing import Filter
from mnemosyned.storage.postgres.fulltext import COLUMN_END
from mnemosyned.storage.postgres.postings import (
    SINCE_MAX,
    AnyOf,
    Asked,
    IndexCache,
    IndexSize,
    Moment,
    Phrase,
    Postings,
    RowCache,
    Source,
    TermOccurrences,
    Version,
    counts_of_each,
    occurrences_of_each,
    rows_of_each,
    rows_with_all,
    texts_with_any,
)
from mnemosyned.storage.postgres.session import PostgresSession

BOUNDED_FROM = 10
"""A word with so many rows for each that is asked for is looked for among the newest alone."""
BOUND_SHARE = 1.5
"""So much further back than by the word's density."""
WIDENING = 8
"""By how much further, if these were too few."""
LOOKS_MAX = 8


class _WordRows(NamedTuple):
    """The newest rows of a word, newest first, as many as a look-up limit allowed."""

    newest: Sequence[int]
    limit: int

    @property
    def is_all(self) -> bool:
        """Whether the rows are all rows that have the word."""
        return len(self.newest) < self.limit


class PostgresWords(WordRows):
    """The rows of words among an owner's memories, within the filters of a question."""

    def __init__(
        self,
        session: PostgresSession,
        narrow: Filter,
        everything: PostgresWords | None = None,
    ) -> None:
        """Look up words within the filter `narrow`; `everything`, if given, knows rows in all memories."""
        self._session = session
        self._narrow = narrow
        if narrow.only is not None:
            self._narrow = narrow._replace(
                text=" AND m.seq = ANY(%(few)s)", values={"few": list(narrow.only)}
            )
        self.is_filtered = bool(self._narrow.text)
        self.rows_if_few = narrow.only
        self._everything = everything
        self._known_rows: dict[Forms, _WordRows] = {}
        self._expected: dict[Forms, int] = {}
        self._any_of = cache(partial(AnyOf.from_forms, session.owner))
        """Returns the look-up of a word's forms: each word is asked for several times."""
        self._kept: RowCache | None = None
        self._moment = Moment(0, 0)

    def use_cache(self, kept: RowCache, moment: Moment) -> None:
        """Use and fill the cache `kept` of rows; `moment` is the state of words in this snapshot."""
        self._kept, self._moment = kept, moment

    @cached_property
    def last(self) -> int:
        row: int | None = self._session.scalar(
            "SELECT seq FROM memory WHERE owner = %(owner)s AND content != '' "
            "ORDER BY seq DESC LIMIT 1"
        )
        return row or 0

    def prefetch(self, asked: Iterable[tuple[Forms, int]]) -> None:
        for word, limit in asked:
            forms = tuple(word)
            if self._newest_known(forms, limit) is None:
                self._expected[forms] = max(limit, self._expected.get(forms, 0))

    def newest(self, having: Having, *, limit: int) -> Sequence[int]:
        if len(having) == 1 and len(having[0]) == 1:
            forms = tuple(having[0][0])
            newest = self._newest_known(forms, limit)
            if newest is None:
                self._expected[forms] = max(limit, self._expected.get(forms, 0))
                self._look_up_expected()
                newest = self._known_rows[forms].newest
            return newest[:limit]
        known = [
            [self._known_rows.get(tuple(forms)) for forms in words] for words in having
        ]
        if all(rows and rows.is_all for words in known for rows in words):
            every = [
                {seq for rows in words if rows for seq in rows.newest}
                for words in known
            ]
            return sorted(set.intersection(*every), reverse=True)[:limit]
        parts = [
            AnyOf.from_forms(self._session.owner, chain.from_iterable(words))
            for words in having
        ]
        return newest_with_all(self._session, parts, self._narrow, limit=limit)

    def rows_that_pass(self, rows: Sequence[int]) -> Collection[int]:
        found = self._session.execute(
            "SELECT m.seq FROM memory AS m WHERE m.owner = %(owner)s "
            f"AND m.seq = ANY(%(rows)s){self._narrow.text}",
            rows=list(rows),
            **self._narrow.values,
        )
        return [seq for (seq,) in found.fetchall()]

    def _newest_known(self, forms: Forms, limit: int) -> Sequence[int] | None:
        """Return a word's known rows, newest first, or None if some of its newest `limit` are unknown."""
        known = self._known_rows.get(forms)
        if known and (known.is_all or known.limit >= limit):
            return known.newest
        found = self._cached_rows(forms, limit) or self._rows_among_few(forms)
        if found is None:
            return None
        self._known_rows[forms] = found
        return found.newest

    def _cached_rows(self, forms: Forms, limit: int) -> _WordRows | None:
        """Return a word's cached rows and newer ones; None if some of the newest `limit` are unknown."""
        if self._kept is None:
            return None
        word = self._any_of(forms)
        kept = self._kept.find(word, self._moment)
        if kept is None or not kept.has_newest(limit):
            return None
        rows, is_all = kept.rows, kept.is_all
        if kept.at != self._moment:
            since = Asked(word, SINCE_MAX, above=kept.at.last)
            (parts,) = rows_of_each(self._session, [since], self._narrow, newest=True)
            most = sys.maxsize if is_all else len(rows)
            rows = [*_merge_newest(parts, SINCE_MAX), *rows][:most]
            self._kept.keep(word, rows, self._moment, is_all=is_all)
        return _WordRows(rows, len(rows) + is_all)

    def _rows_among_few(self, forms: Forms) -> _WordRows | None:
        """Return the rows of a word among the few rows that pass the filter.

        None if the filter passes many rows, or not all rows of the word in the whole memory are
        known.
        """
        if self.rows_if_few is None or self._everything is None:
            return None
        everywhere = self._everything._known_rows.get(forms)  # noqa: SLF001 of this class
        if everywhere is None or not everywhere.is_all:
            return None
        few = frozenset(self.rows_if_few)
        rows = [seq for seq in everywhere.newest if seq in few]
        return _WordRows(rows, len(rows) + 1)

    def _look_up_expected(self) -> None:
        """Look up the rows of all queued words in one statement, and common words in more steps."""
        expected, self._expected = self._expected, {}
        asked = {
            forms: Asked(self._any_of(forms), limit)
            for forms, limit in expected.items()
        }
        found = rows_of_each(
            self._session, list(asked.values()), self._narrow, newest=False
        )
        common: dict[Forms, Asked] = {}
        for (forms, what), parts in zip(asked.items(), found, strict=True):
            if any(len(rows) >= what.most for rows in parts):
                common[forms] = what._replace(
                    above=self._first_row_needed(parts, what.most)
                )
            else:
                self._store_newest(forms, what, _merge_newest(parts, what.most))
        for _ in range(LOOKS_MAX):
            # Apart: one with no bound would have the others' statement read the whole table.
            unbounded = {key: what for key, what in common.items() if not what.above}
            bounded = {key: what for key, what in common.items() if what.above}
            newest = [
                *self._read_newest_of_each(unbounded),
                *self._read_newest_of_each(bounded),
            ]
            common = {}  # those with too few rows are looked up further back
            for forms, what, rows in newest:
                if len(rows) < what.most and what.above:
                    further = self.last - WIDENING * (self.last - what.above)
                    common[forms] = what._replace(above=max(0, further))
                else:
                    self._store_newest(forms, what, rows)
            if not common:
                break

    def _read_newest_of_each(
        self, asked: dict[Forms, Asked]
    ) -> list[tuple[Forms, Asked, Sequence[int]]]:
        """Look up words; return (word, request, newest row numbers, newest first) of every word."""
        if not asked:
            return []
        found = rows_of_each(
            self._session, list(asked.values()), self._narrow, newest=True
        )
        return [
            (forms, what, _merge_newest(parts, what.most))
            for (forms, what), parts in zip(asked.items(), found, strict=True)
        ]

    def _store_newest(self, forms: Forms, asked: Asked, newest: Sequence[int]) -> None:
        """Save the newest rows of a word for this snapshot, and in the cache if one is used."""
        rows = self._known_rows[forms] = _WordRows(newest, asked.most)
        if self._kept:
            self._kept.keep(asked.any_of, newest, self._moment, is_all=rows.is_all)

    def _first_row_needed(self, parts: Sequence[Sequence[int]], most: int) -> int:
        """Return an estimated row number above which a common word has its `most` newest rows.

        The estimate uses the density of the rows in `parts`. Return 0, for no bound, if most memories would
        be above.
        """
        span = min(max(rows) - min(rows) for rows in parts if len(rows) >= most) + 1
        if self.last <= BOUNDED_FROM * span:
            return 0
        return max(0, self.last - round(BOUND_SHARE * span))


def newest_with_all(
    session: PostgresSession,
    having: Sequence[AnyOf],
    narrow: Filter,
    *,
    limit: int,
) -> list[int]:
    """Return the newest `limit` rows within `narrow` with any form of each word, newest first."""
    rows = rows_with_all(session, having, narrow, limit=limit, order="")
    if len(rows) >= limit:
        return rows_with_all(session, having, narrow, limit=limit, order="DESC")
    return sorted(rows, reverse=True)


def _merge_newest(parts: Sequence[Sequence[int]], most: int) -> list[int]:
    """Return the newest `most` row numbers in all lists, newest first, without repetitions."""
    return sorted({seq for rows in parts for seq in rows}, reverse=True)[:most]


K1, B = 1.2, 0.75
LEAST = 1e-6
"""What a phrase is worth that most rows have."""
EPISODES_SCORED_MAX = 100_000


class IndexSearch:
    """A search of one index: its best rows for phrases."""

    def __init__(
        self,
        session: PostgresSession,
        source: Source,
        narrow: Filter,
        *,
        kept: IndexCache,
        version: Version,
    ) -> None:
        """Search an index within a filter; `version` is the index's version in this snapshot."""
        self._session = session
        self._source = source
        self._narrow = narrow
        self._kept = kept
        self._version = version
        self._is_second = source[1] == "grams"
        self._most = SCORED_MAX if self._is_second else EPISODES_SCORED_MAX
        # Each new memory makes another version of its indexes.
        self._is_kept = source[0] == "episode" and not narrow.text

    def best(self, phrases: Sequence[Phrase], *, limit: int) -> list[tuple[int, float]]:
        """Return (row number, BM25 score) of the best `limit` rows with any of the phrases, best first.

        If scores are equal, the newest row comes first in the index of grams, the oldest in the index of words.
        """
        found = self._find_postings(list(dict.fromkeys(phrases)))
        if not any(postings.seqs for postings in found.values()):
            return []
        all_postings = [found[phrase] for phrase in phrases]
        is_all = sum(len(each.seqs) for each in found.values()) < self._most
        if not is_all:
            every = {seq for postings in all_postings for seq in postings.seqs}
            is_all = len(every) < self._most
        if not is_all:
            oldest = nlargest(self._most, every)[-1]
            ends = [sum(seq >= oldest for seq in seqs) for seqs, _ in all_postings]
            all_postings = [
                Postings(seqs[:end], parts[:end])
                for (seqs, parts), end in zip(all_postings, ends, strict=True)
            ]
        if is_all and not self._narrow.text:
            hits = [len(postings.seqs) for postings in all_postings]
        else:
            hits = counts_of_each(self._session, self._source, phrases)
        weights = [phrase_idf(self._size.rows, count) for count in hits]
        scores: dict[int, float] = defaultdict(float)
        for postings, idf in zip(all_postings, weights, strict=True):
            for seq, part in zip(postings.seqs, postings.parts, strict=True):
                scores[seq] += idf * part
        sign = 1 if self._is_second else -1
        least = nlargest(limit, scores.values())[-1]
        best = [(score, sign * seq) for seq, score in scores.items() if score >= least]
        best.sort(reverse=True)
        return [(sign * seq, score) for score, seq in best[:limit]]

    @cached_property
    def _size(self) -> IndexSize:
        """The number of rows in the index, and the number of terms in all of these rows."""
        return self._kept.size(self._session, self._source, self._version)

    def _find_postings(self, phrases: Sequence[Phrase]) -> dict[Phrase, Postings]:
        """Return the newest rows of each phrase, cached or looked up, with BM25 except for the idf."""
        source, version = self._source, self._version
        found: dict[Phrase, Postings] = {}
        for phrase in phrases if self._is_kept else ():
            kept = self._kept.find(source, phrase, version)
            if kept is not None:
                found[phrase] = kept
        missing = [phrase for phrase in phrases if phrase not in found]
        if not missing:
            return found
        norms: _Norms | None = None
        for phrase, occurrences in self._find_occurrences(missing).items():
            postings = Postings()
            if occurrences.seqs:
                if norms is None:
                    norms = _Norms(self._size.terms / self._size.rows)
                parts = [
                    (times * (K1 + 1.0)) / (times + norms[length])
                    for length, times in zip(
                        occurrences.lengths, occurrences.times, strict=True
                    )
                ]
                postings = Postings(occurrences.seqs, parts)
            found[phrase] = postings
            if self._is_kept and len(phrase) == 1:
                self._kept.keep(source, phrase, version, postings)
        return found

    def _find_occurrences(
        self, phrases: Sequence[Phrase]
    ) -> dict[Phrase, TermOccurrences]:
        """Return {phrase: the newest rows with it, their lengths and numbers of occurrences}."""
        session, source, narrow = self._session, self._source, self._narrow
        words = [phrase for phrase in phrases if len(phrase) == 1]
        longer = [phrase for phrase in phrases if len(phrase) > 1]
        terms = [term for (term,) in words]
        rows = occurrences_of_each(session, source, terms, narrow, limit=self._most)
        found: dict[Phrase, TermOccurrences] = dict(zip(words, rows, strict=True))
        if longer:
            any_of = AnyOf.from_phrases(longer)
            texts = texts_with_any(session, source, any_of, narrow, limit=self._most)
            for phrase in longer:
                found[phrase] = holders = TermOccurrences([], [], [])
                for seq, held in texts:
                    times = sum(
                        tuple(held[at : at + len(phrase)]) == phrase
                        for at, term in enumerate(held)
                        if term == phrase[0]
                    )
                    if times:
                        holders.seqs.append(seq)
                        # The marks between texts of a row are no terms.
                        holders.lengths.append(len(held) - held.count(COLUMN_END))
                        holders.times.append(times)
        return found


class _Norms(dict[int, float]):
    """BM25's length norm, k1·(1 − b + b·length/average), by the length of a text."""

    def __init__(self, average: float) -> None:
        super().__init__()
        self._average = average

    def __missing__(self, length: int) -> float:
        self[length] = norm = K1 * (1 - B + B * length / self._average)
        return norm


def phrase_idf(rows: int, hits: int) -> float:
    """Return the idf of a phrase that `hits` of `rows` rows have; `LEAST` if it is not positive."""
    telling = log((rows - hits + 0.5) / (hits + 0.5))
    return telling if telling > 0 else LEAST
