"""Which memories the index names for a question, without scoring every row that shares a word.

To score a row takes some 2 µs, and reading scores the candidates anyway. So the index only names
the rows of each word, the rarest first, and a row counts by the words it has. What even so would
be too many rows is asked for in steps, the most telling combinations first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from mnemosyned.domain.search.candidates import (
    PAIR,
    CandidateLimits,
    is_settled,
    search_steps,
    strongest,
    telling_words,
)
from mnemosyned.domain.search.query import Corpus
from mnemosyned.domain.search.words.index import Forms, WordRows
from mnemosyned.domain.text.terms import Terms

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
class LookedUp:
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
    if not words or (index.few is not None and not index.few):
        return {}, False
    words = list(telling_words(words, frequencies, corpus.count))
    search = _Words(index, words, terms=terms, corpus=corpus)
    if index.is_filtered and index.few is None and looked_up.found is not None:
        found = _passing(index, looked_up.found, enough=limits.total)
    elif index.is_filtered:
        found = search.find(limits)
    else:
        found = search.find_in_all(limits, looked_up)
    possible = sum(map(corpus.idf, terms.words))
    strong = strongest(found, limits, possible=possible)
    return strong, search.partial or len(strong) < len(found)


def _passing(
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


class _Words:
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
