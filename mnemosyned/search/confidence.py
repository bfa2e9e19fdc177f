"""Confidence: the probability that a hit bears on the question, and why the hit is in the answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from math import exp

from mnemosyned.instants import in_zone, shift
from mnemosyned.search.bm25 import TermReader
from mnemosyned.search.query import Query, RankedResult, SearchCandidates
from mnemosyned.text.dates.formatting import format_period
from mnemosyned.text.stems import fold_case
from mnemosyned.text.terms import has_unspaced_script, is_vague

WORDS_SHOWN_MAX = 4
"""Words of the question that a reason names, the rarest first."""
_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class ConfidenceWeights:
    """Weights of a logistic regression, fitted on questions with and without an answer."""

    bias: float = -3.0
    share: float = 5.0
    """The idf-weighted share of the question's keywords in the text or said by its speaker."""
    nearby: float = 0.5
    """Share of a keyword that only a neighboring memory has."""
    similarity: float = 7.0
    """The cosine of the vectors, above `similarity_min`."""
    similarity_min: float = 0.15
    meaning_min: float = 0.35
    """Cosine from which the reason names the meaning."""
    placed: float = 0.9
    """Confidence of a memory of the time or order that the question asks for and nothing else."""


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
        words = self._reader.words
        self._worth = [
            0.0 if is_vague(fold_case(word)) else idf
            for word, idf in zip(words, self._reader.idf, strict=True)
        ]
        if not any(self._worth):
            self._worth = list(self._reader.idf)
        self._matches = {match.position: match for match in candidates.memories}
        self._beside = candidates.beside
        self._cosines = candidates.nearness.cosines

    def judge(self, result: RankedResult, text: str) -> tuple[float, str]:
        """Return a result's confidence, from 0 to 1, and the reason why it is in the answer.

        `text` is the text of its memory or summary.
        """
        weights, reader = self._weights, self._reader
        positions = result.positions
        own = reader.terms_in(text)
        nearby: set[int] = set()
        for position in positions:
            if match := self._matches.get(position):
                own |= reader.terms_in(f"{match.role}\n{match.content}")
            for neighbor, _ in self._beside.get(position, ()):
                if other := self._matches.get(neighbor):
                    nearby |= reader.terms_in(other.content)
        nearby -= own
        cosine = max((self._cosines.get(seq, 0.0) for seq in positions), default=0.0)
        reasons = [
            self._name_words("words", own),
            self._name_words("words next to it", nearby),
        ]
        if not any(own) and result.parts.words and self._query.terms.grams:
            reasons.append("characters")
        if cosine >= weights.meaning_min:
            reasons.append("meaning")
        if result.parts.time:
            reasons.append(self._name_time())
        reason = "; ".join(filter(None, reasons)) or "nearest in meaning" * bool(cosine)
        if self._query.only_then or (
            result.parts.time and not (self._query.subject or any(self._worth))
        ):
            return weights.placed, reason
        total = sum(self._worth) or 1.0
        share = sum(self._worth[term] for term in own)
        share += weights.nearby * sum(self._worth[term] for term in nearby)
        if self._query.terms.grams and result.parts.words:
            share = max(share, total * has_unspaced_script(text))
        logit = weights.bias + weights.share * share / total
        logit += weights.similarity * max(0.0, cosine - weights.similarity_min)
        return 1 / (1 + exp(-logit)), reason

    def _name_words(self, kind: str, terms: Iterable[int]) -> str:
        """Return the rarest of these terms as "kind: word, word", or an empty string."""
        rarest = sorted(terms, key=lambda term: -self._worth[term])
        words = [self._reader.words[term] for term in rarest if self._worth[term]]
        return f"{kind}: {', '.join(words[:WORDS_SHOWN_MAX])}" if words else ""

    def _name_time(self) -> str:
        """Return the time or order for which a result was placed before others."""
        if not self._query.spans:
            return f"time: {self._query.order.value} first" if self._query.order else ""
        span = self._query.spans[0]
        zone = self._query.now.tzinfo if self._query.now else None
        last = in_zone(shift(span.until, -_INSTANT), zone)
        return f"time: {format_period(in_zone(span.since, zone).date(), last.date())}"
