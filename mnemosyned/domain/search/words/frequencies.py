"""Frequencies of words in the index, known from one question to the next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mnemosyned.domain.search.query import Corpus
from mnemosyned.domain.search.words.index import Forms, WordRows
from mnemosyned.domain.text.terms import Terms
from mnemosyned.domain.text.words.compounds import splits

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
        self._found: dict[str, _Known] = {}
        self._missing: dict[str, _Known] = {}
        self._version = ""

    def follow(self, version: str) -> None:
        """Drop the words that were in no memory, if somebody else may have brought them since.

        As many memories as before may be others.
        """
        if version != self._version:
            self._version = version
            self._missing = {}  # other threads may be adding to the former one

    def of(
        self, index: WordRows, terms: Terms, count: int
    ) -> tuple[Corpus, dict[str, Sequence[int]]]:
        """Return the frequency of each word, an estimate where it is common, and its compounds.

        And all rows of those that had to be looked up, where they are not too many. `index` is
        that of all memories.
        """
        frequencies: dict[str, int] = {}
        compounds: dict[str, tuple[str, ...]] = {}
        rows: dict[str, Sequence[int]] = {}
        index.expect(self._unknown(terms, count))
        joins = self._joins(index, terms, count)
        for word in terms.words:
            known = self._held(word.lower(), count)
            if known is None:
                known, found = _looked_up(index, terms, word, count)
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
        self._found.clear()
        self._missing.clear()

    def _unknown(self, terms: Terms, count: int) -> Iterator[tuple[Forms, int]]:
        """Yield what has to be looked up, and up to how many rows of it."""
        for _, joined in terms.joins:
            if self._held(f"+{joined.lower()}", count) is None:
                yield (joined,), 1
        for word in terms.words:
            if self._held(word.lower(), count) is None:
                yield terms.forms(word), SAMPLE

    def _joins(self, index: WordRows, terms: Terms, count: int) -> dict[str, list[str]]:
        """Return the joined forms of a question's neighbors that some memory has, by word."""
        joins: dict[str, list[str]] = {}
        for word, joined in terms.joins:
            known = self._held(f"+{joined.lower()}", count)
            if known is None:
                known = _Known(int(_has(index, joined)), count)
                self._keep(f"+{joined.lower()}", known)
            if known.frequency:
                joins.setdefault(word, []).append(joined)
        return joins

    def _held(self, word: str, count: int) -> _Known | None:
        known = self._found.get(word) or self._missing.get(word)
        return known if known and known.holds(count) else None

    def _keep(self, word: str, known: _Known) -> None:
        if len(self._found) + len(self._missing) >= FREQUENCIES_KEPT_MAX:
            self.clear()
        for words in (self._found, self._missing):
            words.pop(word, None)
        (self._found if known.frequency else self._missing)[word] = known


def _looked_up(
    index: WordRows, terms: Terms, word: str, count: int
) -> tuple[_Known, Sequence[int]]:
    """Return what the index has of a word, and its newest rows."""
    found = index.newest([[terms.forms(word)]], limit=SAMPLE)
    compounds: tuple[str, ...] = ()
    if len(found) <= SPLIT_ROWS_MAX and (parts := splits(word)):
        compounds = _existing(index, parts)
    if compounds:
        others = index.newest([[compounds]], limit=SAMPLE)
        found = sorted({*found, *others}, reverse=True)
    frequency = len(found)
    if frequency >= SAMPLE:
        last = index.last
        frequency = min(count, SAMPLE * last // max(1, last - min(found) + 1))
    return _Known(frequency, count, compounds), found


def _existing(index: WordRows, forms: Forms) -> tuple[str, ...]:
    """Return the forms that some memory has."""
    if not _has(index, *forms):
        return ()
    index.expect(((form,), 1) for form in forms)
    return tuple(form for form in forms if _has(index, form))


def _has(index: WordRows, *forms: str) -> bool:
    return bool(index.newest([[forms]], limit=1))
