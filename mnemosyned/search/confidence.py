"""Confidence: the probability that a hit bears on the question, and why the hit is in the answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from math import exp, log

from mnemosyned.instants import in_zone, shift
from mnemosyned.memory.values import Hit
from mnemosyned.search.query import Match, Query, RankedResult, SearchCandidates
from mnemosyned.search.scoring import TermReader
from mnemosyned.text.dates.formatting import format_period
from mnemosyned.text.languages.tables import TimeOrder
from mnemosyned.text.terms import gram_text, is_code

WORDS_SHOWN_MAX = 4
"""Words of the question that a reason names, the rarest first."""
_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class ConfidenceWeights:
    """Weights of two logistic regressions, with vectors and without: whether a memory answers the question.

    The first was fitted on the tuning halves of `bench-meaning`, on LoCoMo's first conversations and on
    questions in nine languages about things that nobody had said. In cross-validation with five folds, .70 of
    the questions about unsaid things get no hit. The share is .02 for questions with an answer: .11 in other
    words, .07 in other languages, .01 for LoCoMo's. With a lower `confident` it was .50, and .01, .05, .03 and
    .00.
    """

    bias: float = -6.1
    similarity: float = 22.2
    """The cosine of the vectors."""
    shared: float = -8.3
    """The share of the question's keywords: a shared word makes any text nearer."""
    words: float = 8.6
    """Added to the share of keywords at or above `words_min`, where the words alone show an answer."""
    words_min: float = 0.5
    other_name: float = -1.6
    """A name in the question that the text lacks, or that is the only keyword the text has. Does not apply if
    the text's speaker has that name, as speakers need not name themselves."""
    keywords: float = 0.32
    """Each keyword of the question, up to `keywords_max`: one word is near to many texts."""
    keywords_max: int = 5
    unknown_name: float = -2.1
    """A name or a number in an English question that no memory has."""
    foreign: float = 1.7
    """A question in another language than English."""
    long: float = 2.5
    """Logarithm of a text's length relative to `long_chars`, times the question's keywords in it.

    No question is near to all that a long text says. With it `bench-talks` answers .79 of the questions
    within long talks, without it .56; a text without any of the keywords gains nothing.
    """
    long_surest: float = 0.55
    """The most that a text is sure for its length."""
    words_alone_bias: float = -1.0
    words_alone: float = 5.1
    """The share of the keywords, where there are no vectors."""
    words_alone_unknown_name: float = -0.94
    words_alone_foreign: float = 3.44
    """A foreign question with less than `words_alone_foreign_max` of its keywords in a text."""
    words_alone_foreign_max: float = 0.3
    words_alone_long: float = 2.9
    """Logarithm of a text's length relative to `long_chars`: a long text names much in passing."""
    short_bytes: int = 8
    """Length below which a text without any of the keywords, such as "ok", is near to many by chance.

    Its cosine is multiplied by its share of these.
    """
    long_chars: int = 200
    long_max: float = 2.0
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
        reader: TermReader | None = None,
    ) -> None:
        """Judge results found among `candidates`; `reader` reads the question's terms, and is made if None."""
        self._query = query
        self._reader = reader or TermReader(query.terms, candidates.corpus)
        frequencies = candidates.corpus.frequencies
        keyword_idf, words = self._reader.keyword_idf, self._reader.words
        self._codes = {
            term
            for term, word in enumerate(words)
            if is_code(word) and frequencies.get(word)
        }
        self._keywords = {term for term, idf in enumerate(keyword_idf) if idf}
        named = {
            term
            for term in self._keywords
            if words[term][:1].isupper() or any(map(str.isdigit, words[term]))
        }
        self._names = {term for term in named if frequencies.get(words[term], 1)}
        self._has_unknown_name = named != self._names
        self._matches = {match.position: match for match in candidates.memories}
        self._beside = candidates.beside
        self._cosines = candidates.nearness.cosines

    def judge(self, result: RankedResult, text: str) -> tuple[float, str]:
        """Return the confidence (0 to 1) in a result, and the reason.

        `text` is judged if none of the result's memories are among the question's candidates.
        """
        query = self._query
        shown = [
            self._matches[position]
            for position in result.positions
            if position in self._matches
        ] or [Match(-1, 0.0, "", content=text)]
        lines = [self._judge_line(match) for match in shown]
        confidence, share = max(line[:2] for line in lines)
        own = {term for line in lines for term in line[2]}
        nearby = {term for line in lines for term in line[3]} - own
        time = ""
        if result.parts.time and query.spans:
            time = f"time: {format_period_asked(query)}"
        elif result.parts.time and query.order:
            time = f"time: {query.order.value} first"
        cosines = (self._cosines.get(match.position, -1.0) for match in shown)
        reasons = [
            self._name_words("words", own),
            self._name_words("words next to it", nearby),
            "meaning" if max(cosines) >= WEIGHTS.meaning_min else "",
            time,
        ]
        if not any(reasons):
            parts = result.parts
            is_neighbor = parts.neighbors > parts.meaning
            lent = "next to a hit" if is_neighbor else "nearest in meaning"
            reasons.append("characters" if share else lent)
        reason = "; ".join(filter(None, reasons))
        if result.parts.time and (query.only_then or not query.subject):
            return WEIGHTS.placed, reason
        return confidence, reason

    def _judge_line(self, line: Match) -> tuple[float, float, set[int], set[int]]:
        """Return the confidence of a text, its share of keywords, its terms, and terms only in neighbors."""
        reader = self._reader
        in_role = reader.terms_in(line.role)
        own = {*reader.terms_in(line.content), *in_role}
        if line.grams:
            own |= reader.terms_in(gram_text(line.content))
        nearby = self._find_neighbor_terms(line.position) - own
        share = reader.coverage(own, line.content, nearby)
        ratio = max(1.0, len(line.content) / WEIGHTS.long_chars)
        long = min(log(ratio), WEIGHTS.long_max)
        cosine = self._cosines.get(line.position)
        if cosine is None:
            is_foreign = self._query.expected.is_foreign
            logit = WEIGHTS.words_alone_bias + WEIGHTS.words_alone * share
            logit += WEIGHTS.words_alone_unknown_name * self._has_unknown_name
            if is_foreign and share < WEIGHTS.words_alone_foreign_max:
                logit += WEIGHTS.words_alone_foreign
            logit += WEIGHTS.words_alone_long * long
            confidence = 1 / (1 + exp(-logit))
        else:
            if not share:
                cosine *= min(1, len(line.content.encode()) / WEIGHTS.short_bytes)
            is_speaker = not self._names.isdisjoint(in_role)
            about = self._keywords & (own | nearby)
            is_other = bool(self._names) and not is_speaker and not self._names < about
            words = max(0.0, share - WEIGHTS.words_min) / (1 - WEIGHTS.words_min)
            keywords = min(len(self._keywords), WEIGHTS.keywords_max)
            logit = WEIGHTS.bias + WEIGHTS.similarity * cosine
            logit += WEIGHTS.shared * share + WEIGHTS.words * words
            logit += WEIGHTS.keywords * keywords + WEIGHTS.other_name * is_other
            if self._query.expected.is_foreign:
                logit += WEIGHTS.foreign
            else:
                logit += WEIGHTS.unknown_name * self._has_unknown_name
            longer = 1 / (1 + exp(-logit - WEIGHTS.long * long * (share * keywords)))
            confidence = max(1 / (1 + exp(-logit)), min(longer, WEIGHTS.long_surest))
        if share >= WEIGHTS.exact_min or own & self._codes:
            confidence = max(confidence, WEIGHTS.exact)
        return confidence, share, own, nearby

    def _find_neighbor_terms(self, position: int) -> set[int]:
        """Return the question's terms in memories next to the one at this row number."""
        terms: set[int] = set()
        for neighbor, _ in self._beside.get(position, ()):
            if match := self._matches.get(neighbor):
                terms |= self._reader.terms_in(match.content)
        return terms

    def _name_words(self, kind: str, terms: Iterable[int]) -> str:
        """Return the rarest of these terms as "kind: word, word", or an empty string."""
        worth = self._reader.keyword_idf
        rarest = sorted(terms, key=lambda term: (-worth[term], term))
        words = [self._reader.words[term] for term in rarest if worth[term]]
        return f"{kind}: {', '.join(words[:WORDS_SHOWN_MAX])}" if words else ""


def format_period_asked(query: Query) -> str:
    """Return the first date or period that a question names, as text; the question must name one."""
    span = query.spans[0]
    zone = query.now.tzinfo if query.now else None
    last = in_zone(shift(span.until, -_INSTANT), zone)
    return format_period(in_zone(span.since, zone).date(), last.date())


def split_by_confidence(query: Query, hits: list[Hit]) -> tuple[list[Hit], list[Hit]]:
    """Return hits and uncertain hits: all in the first list if one is confident, else in the second.

    All hits of a question for a time, the newest, the oldest or a broad subject are in the first.
    """
    is_sorted = query.order not in (None, TimeOrder.CURRENT)
    is_listing = bool(query.spans) or is_sorted or query.topic is not None
    surest = max((hit.confidence for hit in hits), default=0.0)
    return (hits, []) if is_listing or surest >= WEIGHTS.confident else ([], hits)
