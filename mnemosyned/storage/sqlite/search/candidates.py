"""Which memories the index holds for a question, without scoring every row that shares a word.

bm25 takes some 2 µs for each row that matches, and reading scores the candidates anyway. So the
index only names the rows of each word, the rarest first, and a row counts by the words it has.
What even so would be too many rows is asked for in steps, the most telling combinations first.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import islice
from typing import Any

from mnemosyned.domain.search.candidates import (
    PAIR,
    CandidateLimits,
    is_settled,
    search_steps,
    strongest,
    telling_words,
)
from mnemosyned.domain.search.query import Corpus
from mnemosyned.domain.text.terms import Terms
from mnemosyned.storage.sqlite.search.expressions import any_of
from mnemosyned.storage.sqlite.search.filters import SqlFilter

WALKED_MAX = 8_000
"""So many rows a question may have in all to be found exactly, and one of its words at once."""
READ_WHOLE_SHARE = 1.5
"""Rows of a word, for each row found, that take less time to read than to look for among those."""
TESTED_AT_ONCE = 300
"""Rows found before that are held to a filter at once."""
STEP_ROWS_MAX = 2_000
"""So many rows one step of a larger question finds, the newest."""
SCORED_MAX = 8_000
"""So many rows bm25 may score in the second index."""
STEPS_MAX = 12
STRETCHES_MAX, GAP_MIN = 16, 1_000
"""To begin a stretch costs as much as a common word's rows in one of a thousand."""


def scored(
    connection: sqlite3.Connection,
    table: str,
    match: str,
    narrow: SqlFilter,
    *,
    limit: int,
) -> dict[int, float]:
    """The best rows of an index for an expression, with their bm25, higher is better."""
    rows = connection.execute(
        f"SELECT f.rowid, -bm25({table}) AS score FROM {table} AS f {narrow.joins} "
        f"WHERE {table} MATCH ? {narrow.where} ORDER BY score DESC LIMIT ?",
        (match, *narrow.values, limit),
    )
    return dict(rows.fetchall())


@dataclass(slots=True)
class LookedUp:
    """Rows looked up for a question in all memories, for its further searches."""

    rows: dict[str, list[int]]
    """All rows of some words."""
    found: dict[int, float] | None = None
    """Each row with any word and the worth of its words, where all were read."""


def top_candidates(
    connection: sqlite3.Connection,
    terms: Terms,
    corpus: Corpus,
    narrow: SqlFilter,
    *,
    limits: CandidateLimits,
    looked_up: LookedUp,
) -> tuple[dict[int, float], bool]:
    """Candidates for any of the words with what those that they have are worth, the most first.

    And whether there may be more, for which there is no room. `looked_up` is what is known of the
    question in all memories; it gains what is looked up here.
    """
    frequencies = corpus.frequencies
    words = sorted(
        (word for word in terms.words if frequencies[word]), key=frequencies.__getitem__
    )
    if not words or narrow.only == []:
        return {}, False
    words = list(telling_words(words, frequencies, corpus.count))
    search = _Words(connection, narrow, words, terms=terms, corpus=corpus)
    is_filtered = bool(narrow.joins or narrow.where)
    if is_filtered and narrow.only is None and looked_up.found is not None:
        found = _passing(connection, narrow, looked_up.found, enough=limits.total)
    elif is_filtered:
        found = search.find(limits)
    else:
        found = search.find_in_all(limits, looked_up)
    possible = sum(map(corpus.idf, terms.words))
    strong = strongest(found, limits, possible=possible)
    return strong, search.partial or len(strong) < len(found)


def _passing(
    connection: sqlite3.Connection,
    narrow: SqlFilter,
    found: Mapping[int, float],
    *,
    enough: int,
) -> dict[int, float]:
    """Return the rows that pass a filter, the worthiest first, until they are enough."""
    select = (
        f"SELECT f.rowid FROM (SELECT value AS rowid FROM json_each(?)) AS f {narrow.joins} "
        f"WHERE 1 {narrow.where}"
    )
    ranked = sorted(found, key=found.__getitem__, reverse=True)
    passing: dict[int, float] = {}
    for begin in range(0, len(ranked), TESTED_AT_ONCE):
        tested = json.dumps(ranked[begin : begin + TESTED_AT_ONCE])
        rows = connection.execute(select, (tested, *narrow.values)).fetchall()
        passing.update((seq, found[seq]) for (seq,) in rows)
        if len(passing) >= enough:
            break
    return passing


_AROUND = (
    "SELECT f.rowid FROM json_each(?2) AS stretch CROSS JOIN memory_fts AS f "
    "WHERE f.memory_fts MATCH ?1 AND f.rowid BETWEEN stretch.value ->> 0 AND stretch.value ->> 1 "
    "AND +f.rowid IN (SELECT value FROM json_each(?3)) ORDER BY f.rowid DESC LIMIT ?4"
)


def stretches(rows: Sequence[int]) -> list[tuple[int, int]]:
    """First and last row of the few stretches in which all these rows lie; they are ascending."""
    gaps = [at for at in range(1, len(rows)) if rows[at] - rows[at - 1] >= GAP_MIN]
    widest = nlargest(STRETCHES_MAX - 1, gaps, key=lambda at: rows[at] - rows[at - 1])
    begins = [0, *sorted(widest)]
    ends = [*begins[1:], len(rows)]
    return [
        (rows[begin], rows[end - 1]) for begin, end in zip(begins, ends, strict=True)
    ]


class _Words:
    """The words of a question, rarest first, and the rows that have them."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        narrow: SqlFilter,
        words: Sequence[str],
        *,
        terms: Terms,
        corpus: Corpus,
    ) -> None:
        self.partial = False
        """Whether rows were left out that have some of the words."""
        self.rows: dict[str, list[int]] = {}
        """All rows of the words looked up so far."""
        self._connection = connection
        self._words = words
        self._frequencies = corpus.frequencies
        self._asked = {word: f"({any_of(corpus.forms(terms, word))})" for word in words}
        self._worth = {word: corpus.idf(word) for word in words}
        self._select = (
            f"SELECT f.rowid FROM memory_fts AS f {narrow.joins} "
            f"WHERE memory_fts MATCH ? {narrow.where} ORDER BY f.rowid DESC LIMIT ?"
        )
        self._values: tuple[Any, ...] = tuple(narrow.values)
        self._is_around = narrow.only is not None
        if narrow.only is not None:
            self._select = _AROUND
            self._values = (json.dumps(stretches(narrow.only)), json.dumps(narrow.only))

    def find_in_all(
        self, limits: CandidateLimits, looked_up: LookedUp
    ) -> dict[int, float]:
        """Return rows of all memories; `looked_up` gains what further searches can use."""
        self.rows = looked_up.rows
        found = self.find(limits)
        if not self.partial:
            looked_up.found = found
        return found

    def find(self, limits: CandidateLimits) -> dict[int, float]:
        """Return the rows that have some of the words, with what those words are worth."""
        walked = sum(self._frequencies[word] for word in self._words)
        if self._is_around or walked <= WALKED_MAX:
            return self.counted(limits)
        return self.stepped(limits)

    def counted(
        self, limits: CandidateLimits, words: Sequence[str] = ()
    ) -> dict[int, float]:
        """The rows that have some of the words; all that there can be room for.

        Once a row with none of the words so far would be worth too little, only those found are
        looked for by the other words: the index holds two lists against each other much faster
        than it names the rows of one.
        """
        words = words or self._words
        held: dict[int, float] = {}
        before: list[str] = []
        rest = sum(self._worth[word] for word in words)
        for word in words:
            asked, worth = self._asked[word], self._worth[word]
            frequent = self._frequencies[word] > READ_WHOLE_SHARE * len(held)
            if frequent and word not in self.rows and is_settled(held, limits, rest):
                self.partial = True
                rows = self._rows(f"{asked} AND ({' OR '.join(before)})")
            else:
                rows = self._all_rows(word)
            for seq in rows:
                held[seq] = held.get(seq, 0.0) + worth
            rest -= worth
            before.append(asked)
        return held

    def stepped(self, limits: CandidateLimits) -> dict[int, float]:
        """Return rows for words so common that not all of their rows can be read.

        The newest rows of the most telling combinations; a row keeps its best step's worth.
        """
        self.partial = True
        found: dict[int, float] = {}
        cut = len(self._words) <= PAIR
        steps = search_steps(self._words, self._frequencies, rows_max=WALKED_MAX)
        for step in islice(steps, STEPS_MAX):
            if len(found) >= limits.kept:
                break
            words = step.words
            if step.all_of_them or len(words) == 1:
                if len(words) == len(self._words) and not cut:
                    continue  # what has all words has been found by most of the rarest
                rows = self._rows_with_all(words)
                cut = cut or len(rows) == STEP_ROWS_MAX
            else:
                rows = self.counted(limits, words)
            for seq, worth in rows.items():
                found[seq] = max(worth, found.get(seq, 0.0))
        return found

    def _rows_with_all(self, words: Sequence[str]) -> dict[int, float]:
        """Return the newest rows that have all of some words, with what these are worth."""
        match = " AND ".join(self._asked[word] for word in words)
        worth = sum(self._worth[word] for word in words)
        return dict.fromkeys(self._rows(match, limit=STEP_ROWS_MAX), worth)

    def _all_rows(self, word: str) -> list[int]:
        """Return the rows of a word, the newest where they are too many; each word is read once."""
        rows = self.rows.get(word)
        if rows is None:
            rows = self._rows(self._asked[word])
            if len(rows) < WALKED_MAX:
                self.rows[word] = rows
        return rows

    def _rows(self, match: str, *, limit: int = WALKED_MAX) -> list[int]:
        """The newest rows for an expression, the newest first."""
        rows = self._connection.execute(self._select, (match, *self._values, limit))
        return [seq for (seq,) in rows.fetchall()]


def newest(
    connection: sqlite3.Connection,
    table: str,
    match: str,
    narrow: SqlFilter,
    *,
    limit: int,
) -> list[tuple[int, float]]:
    """The best of the newest rows of an index for an expression."""
    return connection.execute(
        "SELECT seq, score FROM ("
        f"SELECT f.rowid AS seq, -bm25({table}) AS score "
        f"FROM {table} AS f {narrow.joins} WHERE {table} MATCH ? {narrow.where} "
        "ORDER BY f.rowid DESC LIMIT ?) ORDER BY score DESC LIMIT ?",
        (match, *narrow.values, SCORED_MAX, limit),
    ).fetchall()
