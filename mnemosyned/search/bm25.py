"""BM25 scores of a text for each term of a question, and the positions of the words."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from mnemosyned.search.query import Corpus
from mnemosyned.search.weights import BM25_WEIGHTS, Bm25Weights
from mnemosyned.text.stems import WORD, fold_case, other_forms, stem, stem_prefix
from mnemosyned.text.terms import Terms, with_words_apart

READ_CHARS_MAX = 4_000
"""As much of a text is read; the engine's score speaks for the rest."""
PLACES_MAX = 100
"""So often a word is looked for in a text: one that repeats it more is a list of it."""
PASSAGES_MAX = 50
"""Passages of a text that are compared."""


class TermScores(NamedTuple):
    """Scores of a text for a question."""

    scores: tuple[float, ...]
    """For each term, its BM25."""
    phrase: float
    """What neighboring terms of the question are worth that stand close here too."""


class _Form(NamedTuple):
    """One way in which a term may stand in a text."""

    term: int
    tokens: tuple[str, ...]
    """As typed and folded."""
    stems: tuple[str, ...]
    other: float
    """What it is worth in another form than typed."""


class TermReader:
    """Reads texts for the terms of one question.

    A text is searched for the beginnings of the terms rather than parted into words: a fifth of
    the time.
    """

    def __init__(
        self, terms: Terms, corpus: Corpus, weights: Bm25Weights = BM25_WEIGHTS
    ) -> None:
        self._weights = weights
        self.words = terms.words
        self.idf = tuple(corpus.idf(word) for word in terms.words)
        self.nothing = (0.0,) * len(terms.words)
        """What a text says that says nothing."""
        self.unread = (*self.nothing, 0.0)
        """The same with a place for the engine's part."""
        self._silent = TermScores(self.nothing, 0.0)
        self._average = max(1.0, corpus.average_chars)
        self._stretch = max(self._weights.passage_chars_min, round(self._average))
        self._stretch_saturation = self._saturation(self._stretch)
        self._most = tuple(idf * (self._weights.k1 + 1) for idf in self.idf)
        forms: dict[str, list[_Form]] = {}
        for number, word in enumerate(terms.words):
            for form in _forms_of(
                number, word, corpus.compounds.get(word, ()), weights
            ):
                forms.setdefault(stem_prefix(form.stems[0]), []).append(form)
        self._forms = [(start, _FormMatcher(among)) for start, among in forms.items()]
        self._speakers: dict[str, float] = {}

    def read(self, text: str) -> TermScores:
        """Score the beginning of a text for each term."""
        folded = fold_case(with_words_apart(text[:READ_CHARS_MAX]))
        counts, where = self._found(folded)
        if not where:
            return self._silent
        scores = list(self.nothing)
        length = self._saturation(len(text))
        for term, count in counts.items():
            scores[term] = self._most[term] * count / (count + length)
        if len(text) > self._stretch:
            best = self._passage(where)
            for term in counts:
                part = self._alone(term, best.get(term, 0))
                scores[term] += self._weights.passage * (part - scores[term])
        phrase = (
            _phrase_score(folded, scores, where, self._weights)
            if len(where) > 1
            else 0.0
        )
        return TermScores(tuple(scores), phrase)

    def beyond(self, scores: Sequence[float], worth: float) -> float:
        """Return the score of words beyond the part that is read, as of any in so long a text.

        `worth` is what all the words are worth that the text has, read or not.
        """
        read = sum(idf for idf, score in zip(self.idf, scores, strict=True) if score)
        return (
            max(0.0, worth - read)
            * (self._weights.k1 + 1)
            / (1 + self._saturation(READ_CHARS_MAX))
        )

    def _saturation(self, chars: float) -> float:
        """How often a term must stand in a text of this length to be worth half of the most."""
        return self._weights.k1 * (
            1 - self._weights.b + self._weights.b * chars / self._average
        )

    def _alone(self, term: int, count: int) -> float:
        """The score of a term in a stretch that stood alone."""
        count = min(count, self._weights.repeats_max)
        return self._most[term] * count / (count + self._stretch_saturation)

    def _passage(self, where: Mapping[int, Sequence[int]]) -> Mapping[int, int]:
        """How often each term stands in the best stretch of a long text."""
        if (
            max(map(max, where.values()))
            < min(map(min, where.values())) + self._stretch
        ):
            return {term: len(found) for term, found in where.items()}
        places = sorted([(at, term) for term, found in where.items() for at in found])
        counts = dict.fromkeys(where, 0)
        gains, repeats_max = self._gains, self._weights.repeats_max
        best: Mapping[int, int] = {}
        score, most, end = 0.0, 0.0, 0
        for start, first in places[:PASSAGES_MAX]:
            while end < len(places) and places[end][0] < start + self._stretch:
                term = places[end][1]
                count = counts[term] = counts[term] + 1
                if count <= repeats_max:
                    score += gains[term][count]
                end += 1
            if score > most:
                best, most = counts.copy(), score
            count = counts[first]
            if count <= repeats_max:
                score -= gains[first][count]
            counts[first] = count - 1
        return best

    @cached_property
    def _gains(self) -> list[list[float]]:
        """By term, what each further place of it adds to the score of a stretch."""
        counts = range(1, self._weights.repeats_max + 1)
        return [
            [0.0, *(self._alone(term, n) - self._alone(term, n - 1) for n in counts)]
            for term in range(len(self.words))
        ]

    def spoken_by(self, role: str) -> float:
        """How telling all terms together are as who said it."""
        known = self._speakers.get(role)
        if known is None:
            known = self._speakers[role] = sum(self.role(role))
        return known

    def role(self, role: str) -> tuple[float, ...]:
        """For each term, how telling it is as who said it."""
        counts, _ = self._found(fold_case(with_words_apart(role)))
        return tuple(idf if at in counts else 0.0 for at, idf in enumerate(self.idf))

    def present(self, text: str) -> set[int]:
        """Return the terms that the beginning of a text has, in any form; cheaper than reading."""
        folded = fold_case(with_words_apart(text[:READ_CHARS_MAX]))
        terms: set[int] = set()
        for start, known in self._forms:
            at, left = folded.find(start), PLACES_MAX
            while at >= 0 and left:
                if at == 0 or not folded[at - 1].isalnum():
                    left -= 1
                    here = known.at(folded, at)
                    if here:
                        terms.update(term for term, _ in here)
                        break
                at = folded.find(start, at + len(start))
        return terms

    def _found(self, text: str) -> tuple[dict[int, float], dict[int, list[int]]]:
        """How often each term stands in a folded text, other forms counting less, and where."""
        counts: dict[int, float] = {}
        where: dict[int, list[int]] = {}
        for start, known in self._forms:
            at, left = text.find(start), PLACES_MAX
            while at >= 0 and left:
                if at == 0 or not text[at - 1].isalnum():
                    left -= 1
                    for term, worth in known.at(text, at):
                        if term in counts:
                            counts[term] += worth
                            where[term].append(at)
                        else:
                            counts[term] = worth
                            where[term] = [at]
                at = text.find(start, at + len(start))
        return counts, where


def _forms_of(
    number: int, word: str, compounds: Sequence[str], weights: Bm25Weights
) -> list[_Form]:
    tokens = tuple(WORD.findall(fold_case(word)))
    if not tokens:
        return []
    coded = any(char.isdigit() for char in word)
    other = weights.other_form_of_code if coded else weights.other_form
    forms = [_Form(number, tokens, tuple(map(stem, tokens)), other)]
    if len(tokens) == 1:
        forms += [
            _Form(number, (kin,), (stem(kin),), other) for kin in other_forms(tokens[0])
        ]
    for compound in compounds:
        parts = tuple(WORD.findall(fold_case(compound)))
        forms.append(_Form(number, parts, tuple(map(stem, parts)), other))
    return forms


class _FormMatcher:
    """The forms of one beginning, and what the words are worth that were met with it."""

    def __init__(self, forms: Sequence[_Form]) -> None:
        self._forms = forms
        self._length = max(len(form.tokens) for form in forms)
        self._met: dict[tuple[str, ...] | str, list[tuple[int, float]]] = {}

    def at(self, text: str, at: int) -> list[tuple[int, float]]:
        """The terms that stand in a folded text where a word begins, and what each is worth."""
        key: tuple[str, ...] | str
        if self._length == 1:
            key = WORD.match(text, at)[0]  # type: ignore[index]  # the form begins here
        else:
            key = tuple(
                token[0] for token in islice(WORD.finditer(text, at), self._length)
            )
        met = self._met.get(key)
        if met is None:
            tokens = (key,) if isinstance(key, str) else key
            worths = [(form.term, _form_weight(form, tokens)) for form in self._forms]
            met = self._met[key] = [(term, worth) for term, worth in worths if worth]
        return met


def _form_weight(form: _Form, tokens: tuple[str, ...]) -> float:
    """Return the weight of a form for words that begin with it."""
    tokens = tokens[: len(form.tokens)]
    if tokens == form.tokens:
        return 1.0
    return form.other if tuple(map(stem, tokens)) == form.stems else 0.0


def _phrase_score(
    text: str,
    scores: Sequence[float],
    where: Mapping[int, Sequence[int]],
    weights: Bm25Weights,
) -> float:
    """The lesser score of each pair of neighboring terms that stand within a few words."""
    total = 0.0
    for number, places in where.items():
        following = where.get(number + 1)
        if following and _stand_close(text, places, following, weights):
            total += min(scores[number], scores[number + 1])
    return total


def _stand_close(
    text: str, places: Sequence[int], following: Sequence[int], weights: Bm25Weights
) -> bool:
    """Whether one of these places has one of the others within a few words after it."""
    if len(following) > 1:
        # A term has other forms, which are looked for by themselves.
        following = sorted(following)
    for place in places:
        after = bisect_right(following, place)
        if after < len(following) and _close_pairs(
            text, place, following[after], weights
        ):
            return True
    return False


def _close_pairs(text: str, start: int, end: int, weights: Bm25Weights) -> bool:
    return (
        end - start <= weights.close_chars
        and len(WORD.findall(text, start, end)) <= weights.close_tokens
    )
