"""BM25 scores of a text for each term of a question, and the positions of the words."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from mnemosyned.search.query import Corpus
from mnemosyned.search.weights import BM25_WEIGHTS, Bm25Weights
from mnemosyned.text.stems import WORD, fold_case, irregular_forms, stem, stem_prefix
from mnemosyned.text.terms import Terms, is_vague, with_words_apart

READ_CHARS_MAX = 4_000
"""Characters read of a text; the engine's score stands for the rest."""
GRAM_IDF = 2.0
"""The idf of a pair of characters: the index has none at hand."""
KEYWORD_MEMORIES_MIN = 1_000
"""Memories from which the worth of a keyword is taken, though there are fewer."""
NEARBY_SHARE = 0.5
"""Worth of a keyword that only a neighbor has: an answer need not repeat its question."""
PLACES_MAX = 100
"""Places of a term that are counted: a text with more of them is a list."""
PASSAGES_MAX = 50
"""Passages of a text that are compared."""


class TermScores(NamedTuple):
    """Scores of a text for a question."""

    scores: tuple[float, ...]
    """BM25 of each term."""
    phrase: float
    """Score of neighboring terms of the question that stand close together in the text, too."""


class _Form(NamedTuple):
    """One way to write a term."""

    term: int
    tokens: tuple[str, ...]
    """As typed and folded."""
    stems: tuple[str, ...]
    other: float
    """Weight of the form if it is written otherwise than typed."""


class TermReader:
    """Reader of texts for the terms of one question.

    A text is searched for the beginnings of the terms rather than split into words: a fifth of
    the time.
    """

    def __init__(
        self, terms: Terms, corpus: Corpus, weights: Bm25Weights = BM25_WEIGHTS
    ) -> None:
        """Prepare to find the terms in texts; `corpus` has their idf, `weights` those of BM25."""
        self._weights = weights
        self.words = terms.words
        self.idf = tuple(corpus.idf(word) for word in terms.words)
        # In a small memory a word that one memory has would be worth nothing against one of none.
        usual = replace(corpus, count=max(corpus.count, KEYWORD_MEMORIES_MIN))
        self.keyword_idf = tuple(
            0.0 if is_vague(fold_case(word)) else usual.idf(word) for word in self.words
        )
        """The idf of each term, 0 for vague words unless the question has no others."""
        if not any(self.keyword_idf):
            self.keyword_idf = tuple(map(usual.idf, self.words))
        self._grams = terms.grams
        self.possible = sum(self.idf) + GRAM_IDF * len(terms.grams)
        """Score of a text with every term once: what a text that covers the question is worth."""
        self._keywords_sum = sum(self.keyword_idf) + GRAM_IDF * len(terms.grams)
        self.no_scores = (0.0,) * len(terms.words)
        """Scores of a text without any term."""
        self._average = max(1.0, corpus.average_chars)
        self._passage_chars = max(weights.passage_chars_min, round(self._average))
        self._passage_saturation = self._saturation(self._passage_chars)
        self._score_max = tuple(idf * (weights.k1 + 1) for idf in self.idf)
        forms: dict[str, list[_Form]] = {}
        for number, word in enumerate(terms.words):
            for form in _forms_of(
                number, word, corpus.compounds.get(word, ()), weights
            ):
                forms.setdefault(stem_prefix(form.stems[0]), []).append(form)
        self._matchers = [
            (beginning, _FormMatcher(among, max(len(form.tokens) for form in among)))
            for beginning, among in forms.items()
        ]

    def read(self, text: str) -> TermScores:
        """Return the BM25 score of each term, and the score of neighboring terms, for a text.

        Only the first `READ_CHARS_MAX` characters are searched, but the length counts in full.
        """
        folded = fold_case(with_words_apart(text[:READ_CHARS_MAX]))
        counts, places = self._find_terms(folded)
        if not places:
            return TermScores(self.no_scores, 0.0)
        scores = list(self.no_scores)
        saturation = self._saturation(len(text))
        for term, count in counts.items():
            scores[term] = self._score_max[term] * count / (count + saturation)
        if len(text) > self._passage_chars:
            best = self._best_passage(places)
            for term in counts:
                passage = self._passage_score(term, best.get(term, 0))
                scores[term] += self._weights.passage * (passage - scores[term])
        phrase = 0.0
        if len(places) > 1:
            phrase = _phrase_score(folded, scores, places, self._weights)
        return TermScores(tuple(scores), phrase)

    def unread_score(self, scores: Sequence[float], idf_sum: float) -> float:
        """Estimate the score of a text's words beyond its first `READ_CHARS_MAX` characters.

        `scores` are those of the part that was read, by term; `idf_sum` is the sum of the idf of
        all the question's words that the whole text has.
        """
        read = sum(idf for idf, score in zip(self.idf, scores, strict=True) if score)
        return (
            max(0.0, idf_sum - read)
            * (self._weights.k1 + 1)
            / (1 + self._saturation(READ_CHARS_MAX))
        )

    def name_scores(self, role: str) -> tuple[float, ...]:
        """Return the idf of each term that the speaker's name contains, 0 for other terms."""
        counts, _ = self._find_terms(fold_case(with_words_apart(role)))
        return tuple(idf if at in counts else 0.0 for at, idf in enumerate(self.idf))

    def coverage(
        self, terms: Iterable[int], text: str, nearby: Iterable[int] = ()
    ) -> float:
        """Return the idf-weighted share, 0 to 1, of the question's keywords that a memory has.

        `terms` are the numbers of the terms in its `text` or its speaker's name, `nearby` those of
        its neighbors, which count for `NEARBY_SHARE`. Character pairs are looked for in `text`.
        """
        own = set(terms)
        share = sum(self.keyword_idf[term] for term in own)
        share += NEARBY_SHARE * sum(
            self.keyword_idf[term] for term in set(nearby) - own
        )
        if self._grams:
            share += GRAM_IDF * sum(gram in text for gram in self._grams)
        return min(1.0, share / self._keywords_sum) if self._keywords_sum else 0.0

    def terms_in(self, text: str) -> set[int]:
        """Return the numbers of the terms in the beginning of a text; cheaper than `read`."""
        folded = fold_case(with_words_apart(text[:READ_CHARS_MAX]))
        terms: set[int] = set()
        for beginning, matcher in self._matchers:
            at, left = folded.find(beginning), PLACES_MAX
            while at >= 0 and left:
                if at == 0 or not folded[at - 1].isalnum():
                    left -= 1
                    found = matcher.weights_at(folded, at)
                    if found:
                        terms.update(term for term, _ in found)
                        break
                at = folded.find(beginning, at + len(beginning))
        return terms

    def _find_terms(self, text: str) -> tuple[dict[int, float], dict[int, list[int]]]:
        """Count the terms in a folded text, and collect their positions; both by the term's number.

        A form other than the typed one counts less than 1.
        """
        counts: dict[int, float] = {}
        places: dict[int, list[int]] = {}
        for beginning, matcher in self._matchers:
            at, left = text.find(beginning), PLACES_MAX
            while at >= 0 and left:
                if at == 0 or not text[at - 1].isalnum():
                    left -= 1
                    for term, weight in matcher.weights_at(text, at):
                        if term in counts:
                            counts[term] += weight
                            places[term].append(at)
                        else:
                            counts[term] = weight
                            places[term] = [at]
                at = text.find(beginning, at + len(beginning))
        return counts, places

    def _saturation(self, chars: float) -> float:
        """Return the count at which a term has half of its highest score in a text of `chars`."""
        return self._weights.k1 * (
            1 - self._weights.b + self._weights.b * chars / self._average
        )

    def _passage_score(self, term: int, count: int) -> float:
        """Score a term that occurs `count` times in a passage, as if the passage was a whole text."""
        count = min(count, self._weights.repeats_max)
        return self._score_max[term] * count / (count + self._passage_saturation)

    def _best_passage(self, places: Mapping[int, Sequence[int]]) -> Mapping[int, int]:
        """Return {term number: count} in the best-scoring passage of a long text.

        `places` has the positions of each term in the text, in characters.
        """
        first = min(map(min, places.values()))
        if max(map(max, places.values())) < first + self._passage_chars:
            return {term: len(found) for term, found in places.items()}
        ordered = sorted([(at, term) for term, found in places.items() for at in found])
        counts = dict.fromkeys(places, 0)
        gains, repeats_max = self._passage_gains, self._weights.repeats_max
        best: Mapping[int, int] = {}
        score, most, end = 0.0, 0.0, 0
        for start, first_term in ordered[:PASSAGES_MAX]:
            while end < len(ordered) and ordered[end][0] < start + self._passage_chars:
                term = ordered[end][1]
                count = counts[term] = counts[term] + 1
                if count <= repeats_max:
                    score += gains[term][count]
                end += 1
            if score > most:
                best, most = counts.copy(), score
            count = counts[first_term]
            if count <= repeats_max:
                score -= gains[first_term][count]
            counts[first_term] = count - 1
        return best

    @cached_property
    def _passage_gains(self) -> list[list[float]]:
        """Gains in a passage's score, by term number and then by number of occurrences.

        The gain at index 0 is 0, at 1 that of the first occurrence, at 2 that of the second.
        """
        counts = range(1, self._weights.repeats_max + 1)
        score = self._passage_score
        return [
            [0.0, *(score(term, count) - score(term, count - 1) for count in counts)]
            for term in range(len(self.words))
        ]


def _forms_of(
    number: int, word: str, compounds: Sequence[str], weights: Bm25Weights
) -> list[_Form]:
    """Return the forms in which the term `number` matches: as typed, irregular, joined or split.

    `compounds` are joined or split spellings of the word; the list is empty for a word without
    letters or digits.
    """
    tokens = tuple(WORD.findall(fold_case(word)))
    if not tokens:
        return []
    is_code = any(char.isdigit() for char in word)
    other = weights.other_form_of_code if is_code else weights.other_form
    forms = [_Form(number, tokens, tuple(map(stem, tokens)), other)]
    if len(tokens) == 1:
        forms += [
            _Form(number, (kin,), (stem(kin),), other)
            for kin in irregular_forms(tokens[0])
        ]
    for compound in compounds:
        parts = tuple(WORD.findall(fold_case(compound)))
        forms.append(_Form(number, parts, tuple(map(stem, parts)), other))
    return forms


@dataclass(slots=True)
class _FormMatcher:
    """Forms with one beginning, and the weights of the words that were read so far."""

    _forms: Sequence[_Form]
    _tokens_max: int
    _weights: dict[tuple[str, ...] | str, list[tuple[int, float]]] = field(
        default_factory=dict
    )

    def weights_at(self, text: str, at: int) -> list[tuple[int, float]]:
        """Return (term number, weight) for each term matched by the word at `at` in a folded text.

        The weight is 1 for the term as typed, and less for another form.
        """
        key: tuple[str, ...] | str
        if self._tokens_max == 1:
            key = WORD.match(text, at)[0]  # type: ignore[index]  # the form begins here
        else:
            key = tuple(
                token[0] for token in islice(WORD.finditer(text, at), self._tokens_max)
            )
        weights = self._weights.get(key)
        if weights is None:
            tokens = (key,) if isinstance(key, str) else key
            weights = self._weights[key] = []
            for form in self._forms:
                written = tokens[: len(form.tokens)]
                if written == form.tokens:
                    weights.append((form.term, 1.0))
                elif tuple(map(stem, written)) == form.stems:
                    weights.append((form.term, form.other))
        return weights


def _phrase_score(
    text: str,
    scores: Sequence[float],
    places: Mapping[int, Sequence[int]],
    weights: Bm25Weights,
) -> float:
    """Return the score for pairs of successive terms of the question that are close in the text.

    Each pair that occurs in order, within `close_chars` and `close_tokens` of `weights`, adds the
    lesser of its two scores. `scores` are by term number, `places` are the positions of each term
    number in `text`, in characters.
    """
    total = 0.0
    for term, found in places.items():
        following = places.get(term + 1, ())
        if len(following) > 1:
            following = sorted(following)  # the forms of a term are found one by one
        for start in found if following else ():
            after = bisect_right(following, start)
            if after == len(following):
                continue
            end = following[after]
            is_near = end - start <= weights.close_chars
            if is_near and len(WORD.findall(text, start, end)) <= weights.close_tokens:
                total += min(scores[term], scores[term + 1])
                break
    return total
