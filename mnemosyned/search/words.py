"""Word search: the rows of each word in the index, word frequencies, and the candidates that they name.

To score a row takes some 2 µs, and ranking reads the candidates anyway. So the index only names
the rows of each word, the rarest first, and a row counts by the words it has. Where even so there
would be too many rows, they are looked up in steps, the rarest combinations of words first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple, Protocol

from mnemosyned.search.candidates import (
    PAIR,
    CandidateLimits,
    candidate_words,
    is_settled,
    search_steps,
    strongest_matches,
)
from mnemosyned.search.query import Corpus
from mnemosyned.text.terms import Terms, split_compound

Forms = Sequence[str]
"""Ways to write one word or code; a row has it that has any of them."""
Having = Sequence[Sequence[Forms]]
"""All of these must be in a row, and of each of them any word, in any of its forms."""


class WordRows(Protocol):
    """The rows of words, among the memories that pass a question's filters."""

    @property
    def is_filtered(self) -> bool:
        """Whether some memories may not pass."""
        ...

    @property
    def few(self) -> Sequence[int] | None:
        """All rows that pass, where they are few and known; None where they are not."""
        ...

    @property
    def last(self) -> int:
        """The last row of all, whatever its words."""
        ...

    def newest(self, having: Having, *, limit: int) -> Sequence[int]:
        """Return the newest rows with these words, the newest first."""
        ...

    def passing(self, rows: Sequence[int]) -> Collection[int]:
        """Return those of these rows that pass the filters."""
        ...

    def expect(self, asked: Iterable[tuple[Forms, int]]) -> None:
        """Take note of words that are asked for next, and up to how many rows of each.

        It changes no answer: an index that is far away can read them all at once.
        """
        ...


SAMPLE = 5_000
"""A term's frequency is counted up to here, and estimated beyond."""
FREQUENCIES_KEPT_MAX = 5_000
SPLIT_ROWS_MAX = 100
"""A word in more memories than this is no other way to write two."""
GROWTH = 1.2
"""A frequency is looked up anew when the table has grown by this factor."""


class _KnownWord(NamedTuple):
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
        self._found: dict[str, _KnownWord] = {}
        self._missing: dict[str, _KnownWord] = {}
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
                known, found = _look_up(index, terms, word, count)
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
                known = _KnownWord(int(_has_rows(index, joined)), count)
                self._keep(f"+{joined.lower()}", known)
            if known.frequency:
                joins.setdefault(word, []).append(joined)
        return joins

    def _held(self, word: str, count: int) -> _KnownWord | None:
        known = self._found.get(word) or self._missing.get(word)
        return known if known and known.holds(count) else None

    def _keep(self, word: str, known: _KnownWord) -> None:
        if len(self._found) + len(self._missing) >= FREQUENCIES_KEPT_MAX:
            self.clear()
        for words in (self._found, self._missing):
            words.pop(word, None)
        (self._found if known.frequency else self._missing)[word] = known


def _look_up(
    index: WordRows, terms: Terms, word: str, count: int
) -> tuple[_KnownWord, Sequence[int]]:
    """Return what the index has of a word, and its newest rows."""
    found = index.newest([[terms.forms(word)]], limit=SAMPLE)
    compounds: tuple[str, ...] = ()
    if len(found) <= SPLIT_ROWS_MAX and (parts := split_compound(word)):
        compounds = _existing_forms(index, parts)
    if compounds:
        others = index.newest([[compounds]], limit=SAMPLE)
        found = sorted({*found, *others}, reverse=True)
    frequency = len(found)
    if frequency >= SAMPLE:
        last = index.last
        frequency = min(count, SAMPLE * last // max(1, last - min(found) + 1))
    return _KnownWord(frequency, count, compounds), found


def _existing_forms(index: WordRows, forms: Forms) -> tuple[str, ...]:
    """Return the forms that some memory has."""
    if not _has_rows(index, *forms):
        return ()
    index.expect(((form,), 1) for form in forms)
    return tuple(form for form in forms if _has_rows(index, form))


def _has_rows(index: WordRows, *forms: str) -> bool:
    return bool(index.newest([[forms]], limit=1))


WALKED_MAX = 8_000
"""So many rows a question may have in all to be found exactly, and one of its words at once."""
READ_WHOLE_SHARE = 1.5
"""Rows of a word, for each row found, that take less time to read than to look for among those."""
TESTED_AT_ONCE = 300
"""Rows found before that are held to a filter at once."""
STEP_ROWS_MAX = 2_000
"""So many rows one step of a larger question finds, the newest."""
STEPS_MAX = 12


@dataclass(slots=True)
class LookedUpRows:
    """Rows looked up for a question in all memories, for its further searches."""

    rows: dict[str, Sequence[int]]
    """All rows of some words."""
    found: dict[int, float] | None = None
    """Each row with any word and the worth of its words, where all were read."""


def top_candidates(
    index: WordRows,
    terms: Terms,
    corpus: Corpus,
    *,
    limits: CandidateLimits,
    looked_up: LookedUpRows,
) -> tuple[dict[int, float], bool]:
    """Candidates for any of the words with what those that they have are worth, the most first.

    And whether there may be more, for which there is no room. `looked_up` is what is known of the
    question in all memories; it gains what is looked up here.
    """
    frequencies = corpus.frequencies
    words = sorted(
        (word for word in terms.words if frequencies[word]), key=frequencies.__getitem__
    )
    if not words or (index.few is not None and not index.few):
        return {}, False
    words = list(candidate_words(words, frequencies, corpus.count))
    search = _TermRows(index, words, terms=terms, corpus=corpus)
    if index.is_filtered and index.few is None and looked_up.found is not None:
        found = _passing_rows(index, looked_up.found, enough=limits.total)
    elif index.is_filtered:
        found = search.find(limits)
    else:
        found = search.find_in_all(limits, looked_up)
    possible = sum(map(corpus.idf, terms.words))
    strong = strongest_matches(found, limits, possible=possible)
    return strong, search.partial or len(strong) < len(found)


def _passing_rows(
    index: WordRows, found: Mapping[int, float], *, enough: int
) -> dict[int, float]:
    """Return the rows that pass a filter, the worthiest first, until they are enough."""
    ranked = sorted(found, key=found.__getitem__, reverse=True)
    passing: dict[int, float] = {}
    for begin in range(0, len(ranked), TESTED_AT_ONCE):
        tested = ranked[begin : begin + TESTED_AT_ONCE]
        passing.update((seq, found[seq]) for seq in index.passing(tested))
        if len(passing) >= enough:
            break
    return passing


class _TermRows:
    """The words of a question, rarest first, and the rows that have them."""

    def __init__(
        self, index: WordRows, words: Sequence[str], *, terms: Terms, corpus: Corpus
    ) -> None:
        self.partial = False
        """Whether rows were left out that have some of the words."""
        self.rows: dict[str, Sequence[int]] = {}
        """All rows of the words looked up so far."""
        self._index = index
        self._words = words
        self._frequencies = corpus.frequencies
        self._forms: dict[str, Forms] = {
            word: corpus.forms(terms, word) for word in words
        }
        self._worth = {word: corpus.idf(word) for word in words}

    def find_in_all(
        self, limits: CandidateLimits, looked_up: LookedUpRows
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
        if self._index.few is not None or walked <= WALKED_MAX:
            return self.counted(limits)
        return self.stepped(limits)

    def counted(
        self, limits: CandidateLimits, words: Sequence[str] = ()
    ) -> dict[int, float]:
        """The rows that have some of the words; all that there can be room for.

        Once a row with none of the words so far would be worth too little, only those found are
        looked for by the other words: an index holds two lists against each other much faster
        than it names the rows of one.
        """
        words = words or self._words
        held: dict[int, float] = {}
        before: list[Forms] = []
        rest = sum(self._worth[word] for word in words)
        self._index.expect(
            (self._forms[word], WALKED_MAX) for word in words if word not in self.rows
        )
        for word in words:
            forms, worth = self._forms[word], self._worth[word]
            frequent = self._frequencies[word] > READ_WHOLE_SHARE * len(held)
            if frequent and word not in self.rows and is_settled(held, limits, rest):
                self.partial = True
                rows = self._index.newest([[forms], before], limit=WALKED_MAX)
            else:
                rows = self._all_rows(word)
            for seq in rows:
                held[seq] = held.get(seq, 0.0) + worth
            rest -= worth
            before.append(forms)
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
        having = [[self._forms[word]] for word in words]
        worth = sum(self._worth[word] for word in words)
        return dict.fromkeys(self._index.newest(having, limit=STEP_ROWS_MAX), worth)

    def _all_rows(self, word: str) -> Sequence[int]:
        """Return the rows of a word, the newest where they are too many; each word is read once."""
        rows = self.rows.get(word)
        if rows is None:
            rows = self._index.newest([[self._forms[word]]], limit=WALKED_MAX)
            if len(rows) < WALKED_MAX:
                self.rows[word] = rows
        return rows
