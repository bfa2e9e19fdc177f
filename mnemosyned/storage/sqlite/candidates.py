"""Which memories the index holds for a question, without scoring every row that shares a word.

bm25 scores each row that matches, some 3 µs each: a question of common words would score half of
a large database. So the terms' frequencies are estimated first, and what would score too many
rows is asked for in steps, the most telling words and combinations first.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from mnemosyned.domain.terms import Terms

SCORED_MAX = 8_000
"""So many rows bm25 may score for a question at once; a smaller database never has more."""
STEP_SCORED_MAX = 2_000
"""The same for one step of a larger question, newest first."""
STEPS_MAX = 12
TELLING, PAIR = 4, 2
WEAK = 0.35
"""What scores less than this share of the best is left out, beyond the first."""
WHOLE_WORDS_MIN, WHOLE_WORDS_MAX = 3, 5
WHOLE_KEPT = 40
"""So many texts that have nearly all the words are candidates, however long they are."""
UNSCORED = 1e-9
"""The score of what was not scored: it matches, and reading tells how well."""
SAMPLE = 5_000
"""A term's frequency is counted up to here, and estimated beyond."""
FREQUENCIES_KEPT_MAX = 5_000
GROWTH = 1.2
"""A frequency is looked up anew when the table has grown by this factor."""


class Narrow(NamedTuple):
    """What narrows a search: joins for its columns, conditions and their values."""

    joins: str
    where: str
    values: Sequence[Any]


class Index(NamedTuple):
    """One full-text table and the weights of its columns, as bm25 takes them."""

    table: str
    weights: str = ""


def quoted(term: str) -> str:
    """A term as an FTS5 string, none of it read as syntax."""
    return '"' + term.replace('"', '""') + '"'


def any_of(terms: Iterable[str]) -> str:
    """An FTS5 expression for any of the terms."""
    return " OR ".join(map(quoted, terms))


class Frequencies:
    """In how many memories a word stands, kept for the next question, from any thread."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, int]] = {}

    def of(self, connection: sqlite3.Connection, terms: Terms, count: int) -> dict[str, int]:
        """The frequency of each word, an estimate where it is common."""
        return {word: self._one(connection, terms, word, count) for word in terms.words}

    def _one(self, connection: sqlite3.Connection, terms: Terms, word: str, count: int) -> int:
        key = word.lower()
        known = self._known.get(key)
        if known and known[1] <= count <= known[1] * GROWTH:
            return known[0]
        found, oldest = connection.execute(
            "SELECT count(*), min(seq) FROM (SELECT rowid AS seq FROM memory_fts "
            "WHERE memory_fts MATCH ? ORDER BY rowid DESC LIMIT ?)",
            (any_of(terms.forms(word)), SAMPLE),
        ).fetchone()
        if found == SAMPLE:
            (newest,) = connection.execute("SELECT max(rowid) FROM memory_fts_docsize").fetchone()
            found = min(count, found * newest // max(1, newest - oldest + 1))
        if len(self._known) >= FREQUENCIES_KEPT_MAX:
            self._known.clear()
        self._known[key] = (found, count)
        return int(found)


def scored(
    connection: sqlite3.Connection, index: Index, match: str, narrow: Narrow, *, limit: int
) -> dict[int, float]:
    """The best rows of an index for an expression, with their bm25, higher is better."""
    table = index.table
    rows = connection.execute(
        f"SELECT f.rowid, -bm25({table}{index.weights}) AS score FROM {table} AS f {narrow.joins} "
        f"WHERE {table} MATCH ? {narrow.where} ORDER BY score DESC LIMIT ?",
        (match, *narrow.values, limit),
    )
    return dict(rows.fetchall())


def best(
    connection: sqlite3.Connection,
    index: Index,
    terms: Terms,
    frequencies: Mapping[str, int],
    narrow: Narrow,
    *,
    limit: int,
    kept: int,
) -> dict[int, float]:
    """Candidates for any of the words, the best so far as the limits on work allow.

    The first `kept` stay however weak they are; there are `limit` at most, and those that have
    nearly all of the words.
    """
    words = sorted((word for word in terms.words if frequencies[word]), key=frequencies.__getitem__)
    if not words:
        return {}
    asked = {word: any_of(terms.forms(word)) for word in words}
    if sum(frequencies[word] for word in words) <= SCORED_MAX:
        found = scored(connection, index, " OR ".join(asked.values()), narrow, limit=limit)
        whole = _whole(connection, index, words, asked, narrow)
        return {**whole, **_strong(found, kept)}
    found = {}
    for step, group in enumerate(_steps(words, frequencies)):
        if len(found) >= kept or step == STEPS_MAX:
            break
        rows = newest(
            connection,
            index,
            _expression(group, asked),
            narrow,
            limit=limit,
            scored_max=SCORED_MAX if group[0] == "OR" else STEP_SCORED_MAX,
        )
        for seq, score in rows:
            found[seq] = max(score, found.get(seq, 0.0))
    return found


def _strong(found: Mapping[int, float], kept: int) -> dict[int, float]:
    """The best, and of the rest what is not weak beside them."""
    ordered = list(found.items())
    bar = WEAK * ordered[0][1] if ordered else 0.0
    return dict(ordered[:kept] + [item for item in ordered[kept:] if item[1] >= bar])


def _whole(
    connection: sqlite3.Connection,
    index: Index,
    words: Sequence[str],
    asked: Mapping[str, str],
    narrow: Narrow,
) -> dict[int, float]:
    """What has all the words but one at most: bm25 alone passes long texts over for short ones."""
    if len(words) < WHOLE_WORDS_MIN:
        return {}
    telling = words[:WHOLE_WORDS_MAX]
    groups = combinations(telling, max(2, len(telling) - 1))
    match = " OR ".join(f"({_expression(('AND', group), asked)})" for group in groups)
    rows = connection.execute(
        f"SELECT f.rowid FROM {index.table} AS f {narrow.joins} "
        f"WHERE {index.table} MATCH ? {narrow.where} ORDER BY f.rowid DESC LIMIT ?",
        (match, *narrow.values, WHOLE_KEPT),
    )
    return {seq: UNSCORED for (seq,) in rows}


def _steps(
    words: Sequence[str], frequencies: Mapping[str, int]
) -> Iterator[tuple[str, Sequence[str]]]:
    """What is asked for in turn: all words; then most of the rarest; the rare ones; pairs.

    What has all words but one has three of the rarest four: four short conjunctions cost less
    than one for each word left out.
    """
    if len(words) > 1:
        yield "AND", words
    telling = words[:TELLING]
    if len(words) > PAIR:
        yield from (("AND", few) for few in combinations(telling, len(telling) - 1))
    scored_rows = 0
    rare: list[str] = []
    for word in words:
        scored_rows += frequencies[word]
        if scored_rows > SCORED_MAX:
            break
        rare.append(word)
    yield "OR", rare or words[:1]
    if len(words) > PAIR:
        yield from (("AND", pair) for pair in combinations(words, PAIR))


def _expression(group: tuple[str, Sequence[str]], asked: Mapping[str, str]) -> str:
    operator, words = group
    return f" {operator} ".join(f"({asked[word]})" for word in words)


def newest(
    connection: sqlite3.Connection,
    index: Index,
    match: str,
    narrow: Narrow,
    *,
    limit: int,
    scored_max: int = SCORED_MAX,
) -> list[tuple[int, float]]:
    """The best of the newest rows for an expression."""
    table = index.table
    return connection.execute(
        "SELECT seq, score FROM ("
        f"SELECT f.rowid AS seq, -bm25({table}{index.weights}) AS score "
        f"FROM {table} AS f {narrow.joins} WHERE {table} MATCH ? {narrow.where} "
        "ORDER BY f.rowid DESC LIMIT ?) ORDER BY score DESC LIMIT ?",
        (match, *narrow.values, scored_max, limit),
    ).fetchall()
