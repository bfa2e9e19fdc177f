"""How much a text says of each term of a question: BM25 by term, with where the words stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mnemosyned.domain.inflections import other_forms
from mnemosyned.domain.recall import Corpus
from mnemosyned.domain.stemming import WORD, fold, stem
from mnemosyned.domain.terms import Terms

K1, B = 1.2, 0.75
"""As FTS5's bm25 has them: others gained on one kind of record what they lost on another."""
STEM_ONLY = 0.9
"""What another form of a word is worth beside the word as typed."""
CODE_STEM_ONLY = 0.25
"""The same for what has a digit in it, where the ending may be the point."""
CLOSE_TOKENS = 3
PASSAGE_TOKENS_MIN = 20
"""The least a stretch has: a longer text is also read as its best stretch of the average length,
as a page that answers in one sentence must not lose to a line that has half of the words (hit@10
.99 on records of mixed length, .90 without)."""
TOKEN_CHARS = 5.5
PASSAGE_SHARE = 0.8
PASSAGES_MAX = 50
READ_CHARS_MAX = 4_000
"""As much of a text is read; the engine's score speaks for the rest."""


class Reading(NamedTuple):
    """What a text says of a question."""

    scores: tuple[float, ...]
    """For each term, its BM25."""
    phrase: float
    """What neighbouring terms of the question are worth that stand close here too."""


class _Form(NamedTuple):
    """One way in which a term may stand in a text."""

    term: int
    tokens: tuple[str, ...]
    """As typed and folded."""
    stems: tuple[str, ...]
    other: float
    """What it is worth in another form than typed."""


class Reader:
    """Reads texts for the terms of one question."""

    def __init__(self, terms: Terms, corpus: Corpus) -> None:
        self.words = terms.words
        self.idf = tuple(corpus.idf(word) for word in terms.words)
        self._average = max(1.0, corpus.average_chars)
        self._stretch = max(PASSAGE_TOKENS_MIN, round(self._average / TOKEN_CHARS))
        self._by_stem: dict[str, list[_Form]] = {}
        for number, word in enumerate(terms.words):
            for form in _forms(number, word):
                self._by_stem.setdefault(form.stems[0], []).append(form)
        self._starts = {start[:2] for start in self._by_stem}
        self._roles: dict[str, tuple[float, ...]] = {}

    def read(self, text: str) -> Reading:
        """What the beginning of a text says of each term."""
        tokens = WORD.findall(fold(text[:READ_CHARS_MAX]))
        counts, first = self._found(tokens)
        if not first:
            return Reading((0.0,) * len(self.words), 0.0)
        scores = self._scores(counts, len(text))
        if len(tokens) > self._stretch:
            passage = self._passage(first, len(text) / len(tokens))
            scores = tuple(
                PASSAGE_SHARE * best + (1 - PASSAGE_SHARE) * whole
                for best, whole in zip(passage, scores, strict=True)
            )
        return Reading(scores, _phrase(scores, first))

    def _scores(self, counts: Sequence[float], chars: float) -> tuple[float, ...]:
        length = K1 * (1 - B + B * chars / self._average)
        return tuple(
            idf * count * (K1 + 1) / (count + length) if count else 0.0
            for idf, count in zip(self.idf, counts, strict=True)
        )

    def _passage(self, where: Mapping[int, Sequence[int]], token_chars: float) -> tuple[float, ...]:
        """The scores of the best stretch of a long text, as if it stood alone."""
        places = sorted((at, term) for term, found in where.items() for at in found)
        best: tuple[float, ...] = ()
        for start, _ in places[:PASSAGES_MAX]:
            counts = [0.0] * len(self.words)
            for at, term in places:
                if start <= at < start + self._stretch:
                    counts[term] += 1.0
            scores = self._scores(counts, self._stretch * token_chars)
            if sum(scores) > sum(best):
                best = scores
        return best

    def role(self, role: str) -> tuple[float, ...]:
        """For each term, how telling it is as who said it."""
        known = self._roles.get(role)
        if known is None:
            counts, _ = self._found(WORD.findall(fold(role)))
            known = tuple(
                idf if count else 0.0 for idf, count in zip(self.idf, counts, strict=True)
            )
            self._roles[role] = known
        return known

    def _found(self, tokens: Sequence[str]) -> tuple[list[float], dict[int, list[int]]]:
        """How often each term stands there, other forms counting less, and where."""
        starts, by_stem = self._starts, self._by_stem
        counts = [0.0] * len(self.words)
        where: dict[int, list[int]] = {}
        for at, token in enumerate(tokens):
            if token[:2] not in starts:
                continue
            for form in by_stem.get(stem(token), ()):
                worth = _worth(form, tokens[at : at + len(form.stems)])
                if worth:
                    counts[form.term] += worth
                    where.setdefault(form.term, []).append(at)
        return counts, where


def _forms(number: int, word: str) -> list[_Form]:
    tokens = tuple(WORD.findall(fold(word)))
    if not tokens:
        return []
    coded = any(char.isdigit() for char in word)
    other = CODE_STEM_ONLY if coded else STEM_ONLY
    forms = [_Form(number, tokens, tuple(map(stem, tokens)), other)]
    if len(tokens) == 1:
        forms += [_Form(number, (kin,), (stem(kin),), other) for kin in other_forms(tokens[0])]
    return forms


def _worth(form: _Form, tokens: Sequence[str]) -> float:
    if tuple(tokens) == form.tokens:
        return 1.0
    return form.other if tuple(map(stem, tokens)) == form.stems else 0.0


def _phrase(scores: Sequence[float], where: Mapping[int, Sequence[int]]) -> float:
    """The lesser score of each pair of neighbouring terms that stand within a few words."""
    total = 0.0
    for number, places in where.items():
        following = where.get(number + 1)
        if following and any(0 < b - a <= CLOSE_TOKENS for a in places for b in following):
            total += min(scores[number], scores[number + 1])
    return total
