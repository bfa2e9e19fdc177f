"""Frequencies of words in the index, known from one question to the next."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from mnemosyned.domain.search.query import Corpus
from mnemosyned.domain.text.terms import Terms
from mnemosyned.domain.text.words.compounds import splits
from mnemosyned.storage.sqlite.search.expressions import any_of

SAMPLE = 5_000
"""A term's frequency is counted up to here, and estimated beyond."""
FREQUENCIES_KEPT_MAX = 5_000
SPLIT_ROWS_MAX = 100
"""A word in more memories than this is no other way to write two."""
GROWTH = 1.2
"""A frequency is looked up anew when the table has grown by this factor."""


class _Known(NamedTuple):
    """Rows and frequency found for a word."""

    frequency: int
    memories: int
    """All memories there were then."""
    compounds: tuple[str, ...] = ()

    def holds(self, count: int) -> bool:
        """Tell whether it is still true: a word that was not found may be in the next memory."""
        if not self.frequency:
            return count == self.memories
        return self.memories <= count <= self.memories * GROWTH


class Frequencies:
    """In how many memories a word stands, kept for the next question, from any thread."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}

    def of(
        self, connection: sqlite3.Connection, terms: Terms, count: int
    ) -> tuple[Corpus, dict[str, list[int]]]:
        """Return the frequency of each word, an estimate where it is common, and its compounds.

        And all rows of those that had to be looked up, where they are not too many.
        """
        frequencies: dict[str, int] = {}
        compounds: dict[str, tuple[str, ...]] = {}
        rows: dict[str, list[int]] = {}
        joins = self._joins(connection, terms, count)
        for word in terms.words:
            known = self._known.get(word.lower())
            if known is None or not known.holds(count):
                known, found = _looked_up(connection, terms, word, count)
                self._keep(word.lower(), known)
                if len(found) < SAMPLE and word not in joins:
                    rows[word] = found
            frequencies[word] = known.frequency
            if forms := (*known.compounds, *joins.get(word, ())):
                compounds[word] = forms
                frequencies[word] = max(1, known.frequency)
        return Corpus(frequencies=frequencies, compounds=compounds), rows

    def clear(self) -> None:
        """Drop all words: one of them may have been forgotten."""
        self._known.clear()

    def _joins(
        self, connection: sqlite3.Connection, terms: Terms, count: int
    ) -> dict[str, list[str]]:
        """Return the joined forms of a question's neighbors that some memory has, by word."""
        joins: dict[str, list[str]] = {}
        for word, joined in terms.joins:
            known = self._known.get(f"+{joined.lower()}")
            if known is None or not known.holds(count):
                known = _Known(int(_has(connection, joined)), count)
                self._keep(f"+{joined.lower()}", known)
            if known.frequency:
                joins.setdefault(word, []).append(joined)
        return joins

    def _keep(self, word: str, known: _Known) -> None:
        if len(self._known) >= FREQUENCIES_KEPT_MAX:
            self._known.clear()
        self._known[word] = known


def _looked_up(
    connection: sqlite3.Connection, terms: Terms, word: str, count: int
) -> tuple[_Known, list[int]]:
    """Return what the index has of a word, and its newest rows."""
    found = _rows(connection, any_of(terms.forms(word)), limit=SAMPLE)
    compounds: tuple[str, ...] = ()
    if len(found) <= SPLIT_ROWS_MAX and (parts := splits(word)):
        compounds = _existing(connection, parts)
    if compounds:
        others = _rows(connection, any_of(compounds), limit=SAMPLE)
        found = sorted({*found, *others}, reverse=True)
    frequency = len(found)
    if frequency >= SAMPLE:
        (newest,) = connection.execute(
            "SELECT max(rowid) FROM memory_fts_docsize"
        ).fetchone()
        frequency = min(count, SAMPLE * newest // max(1, newest - min(found) + 1))
    return _Known(frequency, count, compounds), found


def _existing(connection: sqlite3.Connection, forms: Sequence[str]) -> tuple[str, ...]:
    """Return the forms that some memory has."""
    if not _has(connection, *forms):
        return ()
    return tuple(form for form in forms if _has(connection, form))


def _has(connection: sqlite3.Connection, *forms: str) -> bool:
    return bool(_rows(connection, any_of(forms), limit=1))


def _rows(connection: sqlite3.Connection, match: str, *, limit: int) -> list[int]:
    """The newest memories for an expression, the newest first."""
    rows = connection.execute(
        "SELECT rowid FROM memory_fts WHERE memory_fts MATCH ? ORDER BY rowid DESC LIMIT ?",
        (match, limit),
    )
    return [seq for (seq,) in rows.fetchall()]
