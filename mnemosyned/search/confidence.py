"""Confidence: the probability that a hit bears on the question, and why the hit is in the answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from math import exp, log

from mnemosyned.instants import in_zone, shift
from mnemosyned.memory.values import Hit
from mnemosyned.search.bm25 import TermReader
from mnemosyned.search.query import Query, RankedResult, SearchCandidates
from mnemosyned.text.dates.formatting import format_period
from mnemosyned.text.terms import gram_text, is_code

WORDS_SHOWN_MAX = 4
"""Words of the question that a reason names, the rarest first."""
_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class ConfidenceWeights:
    """Weights of two logistic regressions, with vectors and without, of memories that answer.

    They were fitted on the tuning halves of `bench-meaning` and LoCoMo and on technical talks.
    """

    bias: float = -4.1
    similarity: float = 12.9
    """The cosine of the vectors."""
    shared: float = -4.66
    """What shared words add to a cosine, from the share `shared_min` of the keywords to all."""
    shared_min: float = 0.3
    words: float = 5.67
    """The share of the keywords, from `words_min` to all: the words alone tell it then."""
    words_min: float = 0.6
    long: float = 2.9
    """Logarithm of a text's length relative to `long_chars`: a long text is near to no question."""
    long_chars: int = 200
    long_max: float = 2.0
    unknown_name: float = -0.94
    """A name or a number in the question that no memory has."""
    foreign: float = 3.44
    """A question in another language than most, whose missing words say little."""
    foreign_similarity: float = 12.75
    words_alone_bias: float = -1.0
    words_alone: float = 5.1
    """The share of the keywords, where there are no vectors."""
    exact: float = 0.6
    """Least confidence of a text with a code of the question, or with the share `exact_min`."""
    exact_min: float = 0.85
    placed: float = 0.9
    """Confidence of a memory of the time or order that the question asks for and nothing else."""
    meaning_min: float = 0.35
    """Cosine from which the reason names the meaning."""
    confident: float = 0.4
    """Confidence of the best hit below which an answer has no hits."""


WEIGHTS = ConfidenceWeights()


class ResultJudge:
    """Judge of the results of one question: their confidence and the reason for each."""

    def __init__(
        self,
        query: Query,
        candidates: SearchCandidates,
        weights: ConfidenceWeights = WEIGHTS,
    ) -> None:
        """Prepare to judge results found among `candidates`."""
        self._query = query
        self._weights = weights
        self._reader = TermReader(query.terms, candidates.corpus)
        self._codes = {
            term
            for term, word in enumerate(self._reader.words)
            if is_code(word) and candidates.corpus.frequencies.get(word)
        }
        self._names_unknown = any(
            (word[:1].isupper() or any(map(str.isdigit, word)))
            and idf
            and not candidates.corpus.frequencies.get(word, 1)
            for word, idf in zip(
                self._reader.words, self._reader.keyword_idf, strict=True
            )
        )
        self._matches = {match.position: match for match in candidates.memories}
        self._beside = candidates.beside
        self._cosines = candidates.nearness.cosines

    def judge(self, result: RankedResult, text: str) -> tuple[float, str]:
        """Return a result's confidence, from 0 to 1, and the reason why it is in the answer.

        `text` is the text of its memory or summary.
        """
        weights, query, reader = self._weights, self._query, self._reader
        shown = [
            self._matches[position]
            for position in result.positions
            if position in self._matches
        ]
        share, chars, own, nearby = 0.0, len(text), set[int](), set[int]()
        for match in shown:
            parts = gram_text(match.content) if match.grams else ""
            words = reader.terms_in(f"{match.role}\n{match.content}\n{parts}")
            beside = self._terms_beside(match.position) - words
            covered = reader.coverage(words, match.content, beside)
            if covered >= share:
                share, chars = covered, len(match.content)
                own, nearby = words, beside
        if not shown:
            own = reader.terms_in(text)
            share = reader.coverage(own, text)
        cosine = max(
            (
                self._cosines[match.position]
                for match in shown
                if match.position in self._cosines
            ),
            default=None,
        )
        reasons = [
            self._name_words("words", own),
            self._name_words("words next to it", nearby),
            "meaning" if cosine and cosine >= weights.meaning_min else "",
            self._name_time() if result.parts.time else "",
        ]
        if not any(reasons):
            reasons.append("characters" if share else "nearest in meaning")
        reason = "; ".join(filter(None, reasons))
        if query.only_then or (result.parts.time and not query.subject):
            return weights.placed, reason
        confidence = self._estimate(share, cosine, chars)
        if share >= weights.exact_min or own & self._codes:
            confidence = max(confidence, weights.exact)
        return confidence, reason

    def _estimate(self, share: float, cosine: float | None, chars: int) -> float:
        """Return the confidence of a text of so many characters, from 0 to 1.

        `share` is that of the question's keywords in the text, `cosine` its similarity, or None if
        it has no vector.
        """
        weights = self._weights
        is_foreign = self._query.expected.is_foreign and share < weights.shared_min
        if cosine is None:
            logit = weights.words_alone_bias + weights.words_alone * share
        else:
            shared = max(0.0, share - weights.shared_min) / (1 - weights.shared_min)
            words = max(0.0, share - weights.words_min) / (1 - weights.words_min)
            logit = weights.bias + weights.similarity * cosine
            logit += weights.shared * shared + weights.words * words
            logit += weights.foreign_similarity * cosine * is_foreign
        logit += weights.foreign * is_foreign
        logit += weights.unknown_name * self._names_unknown
        long = log(max(1.0, chars / weights.long_chars))
        logit += weights.long * min(long, weights.long_max)
        return 1 / (1 + exp(-logit))

    def _terms_beside(self, position: int) -> set[int]:
        """Return the terms in the neighbors of a memory."""
        neighbors = (
            self._matches.get(neighbor)
            for neighbor, _ in self._beside.get(position, ())
        )
        texts = (match.content for match in neighbors if match)
        return set().union(*map(self._reader.terms_in, texts))

    def _name_words(self, kind: str, terms: Iterable[int]) -> str:
        """Return the rarest of these terms as "kind: word, word", or an empty string."""
        worth = self._reader.keyword_idf
        rarest = sorted(terms, key=lambda term: (-worth[term], term))
        words = [self._reader.words[term] for term in rarest if worth[term]]
        return f"{kind}: {', '.join(words[:WORDS_SHOWN_MAX])}" if words else ""

    def _name_time(self) -> str:
        """Return the time or order for which a result was placed before others."""
        if not self._query.spans:
            return f"time: {self._query.order.value} first" if self._query.order else ""
        span = self._query.spans[0]
        zone = self._query.now.tzinfo if self._query.now else None
        last = in_zone(shift(span.until, -_INSTANT), zone)
        return f"time: {format_period(in_zone(span.since, zone).date(), last.date())}"


def split_by_confidence(
    query: Query, hits: list[Hit], weights: ConfidenceWeights = WEIGHTS
) -> tuple[list[Hit], list[Hit]]:
    """Return the hits, and what is only nearest: one of the two lists is empty.

    Hits for a time, for an order in time or for a broad question always count as hits.
    """
    is_listing = bool(query.spans or query.order) or query.topic is not None
    surest = max((hit.confidence for hit in hits), default=0.0)
    return (hits, []) if is_listing or surest >= weights.confident else ([], hits)
