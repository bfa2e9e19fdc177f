"""Candidates: limits, cuts of weak matches, and the order of search steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

from mnemosyned.search.dedup import are_crowded
from mnemosyned.search.query import Match, Query

if TYPE_CHECKING:
    from mnemosyned.text.dates.spans import TimeSpan


ROUNDING = 1e-9
"""Sums of the same numbers in another order differ by less than this share."""


@dataclass(frozen=True, slots=True)
class CandidateWeights:
    """Shares of the best score at which candidates are cut, and how many are kept."""

    weak: float = 0.5
    """Candidates below this share of the best have less room."""
    weakest: float = 0.25
    """Candidates below this share of the best only fill up the first results."""
    complete_match_share: float = 0.5
    """Share of the room for weak candidates that is left when the best has every word."""
    per_result: int = 10
    long_words: int = 10
    """Words from which a question is long: they tell its candidates apart by themselves."""
    long_share: float = 0.4
    """Share of the candidates that a long question needs."""
    min_total: int = 100
    """Candidates are more than results, as the best share results and lift each other."""
    kept_per_result: int = 4
    widening: int = 10
    """Factor by which more are read if most of them say the same."""
    per_time_span: int = 60
    """Further candidates for each time that the question mentions."""
    common_share: float = 0.10
    """Share of all memories above which a word of a long question finds no candidates."""
    telling_min: int = 6
    """Rarer words that a question must have for its common ones to find none."""
    gram: float = 0.6
    """Weight of a character pair relative to a word."""


WEIGHTS = CandidateWeights()


@dataclass(frozen=True, slots=True)
class CandidateLimits:
    """The number of candidates to keep."""

    total: int
    kept: int
    """Candidates kept although some score below `weak` of the best."""
    certain: int
    """Candidates kept whatever they score."""

    @classmethod
    def of(cls, query: Query) -> CandidateLimits:
        """Return the usual limits for a question."""
        is_long = len(query.terms.words) >= WEIGHTS.long_words
        share = WEIGHTS.long_share if is_long else 1.0
        total = max(WEIGHTS.min_total, WEIGHTS.per_result * query.limit)
        return cls(
            round(share * total),
            WEIGHTS.kept_per_result * query.limit,
            query.limit,
        )

    def widened(self) -> CandidateLimits:
        """Return limits for a store in which most matches say the same; none are cut."""
        total = self.total * WEIGHTS.widening
        return CandidateLimits(total, total, total)

    def for_time_span(self) -> CandidateLimits:
        """Return the limits for matches within a time that the question mentions."""
        return replace(self, total=min(self.total, WEIGHTS.per_time_span))


def needs_more(matches: Sequence[Match], query: Query) -> bool:
    """Tell whether matches repeat each other too much to fill the answer."""
    return are_crowded([match.content for match in matches], query.limit)


def strongest_matches(
    scores: Mapping[int, float], limits: CandidateLimits, *, possible: float
) -> dict[int, float]:
    """Return the best matches within the limits, the newest first among equals.

    `possible` is the score of a match with every word of the question.
    """
    if not scores:
        return {}
    counts = _score_counts(scores)
    best = counts[0][0]
    kept = limits.kept
    if best >= possible * (1 - ROUNDING):
        kept = max(limits.certain, round(WEIGHTS.complete_match_share * kept))
    weak, weakest = WEIGHTS.weak * best, WEIGHTS.weakest * best
    # Few matches are worth sorting: none below this one is kept at any rank.
    least = min(
        weak, max(weakest, _nth_best(counts, kept)), _nth_best(counts, limits.certain)
    )
    least = max(least, _nth_best(counts, limits.total))
    ranked = sorted(
        [(score, position) for position, score in scores.items() if score >= least],
        reverse=True,
    )
    return {
        position: score
        for rank, (score, position) in enumerate(ranked[: limits.total])
        if rank < limits.certain or score >= weak or (rank < kept and score >= weakest)
    }


def is_settled(
    scores: Mapping[int, float], limits: CandidateLimits, remaining: float
) -> bool:
    """Tell whether a match of only the remaining words could no longer be kept.

    `remaining` is the score of all words that were not searched yet.
    """
    if len(scores) < limits.certain:
        return False
    counts = _score_counts(scores)
    return _nth_best(counts, limits.kept) > remaining or (
        WEIGHTS.weakest * counts[0][0] > remaining
        and _nth_best(counts, limits.certain) > remaining
    )


def _score_counts(scores: Mapping[int, float]) -> list[tuple[float, int]]:
    """Return how many matches have each score, the best first.

    There are as few different sums as the words have combinations.
    """
    return sorted(Counter(scores.values()).items(), reverse=True)


def _nth_best(counts: Sequence[tuple[float, int]], number: int) -> float:
    """Return the score at a rank, or 0 if there are fewer matches."""
    for score, count in counts:
        number -= count
        if number <= 0:
            return score
    return 0.0


@dataclass(frozen=True, slots=True)
class SearchStep:
    """Words to search for together."""

    words: Sequence[str]
    all_of_them: bool
    """Whether a match needs all of the words, or any."""


RAREST = 4
PAIR = 2


def search_steps(
    words: Sequence[str], frequencies: Mapping[str, int], *, rows_max: int
) -> Iterator[SearchStep]:
    """Return what to search for in turn: most of the rarest words, all words, rare ones, pairs.

    For questions whose words, rarest first, have too many rows to look at each. A match with all
    words but one has three of the rarest four: four short conjunctions cost less than one for each
    word left out. The rare words are those with at most `rows_max` rows together.
    """
    rarest = words[:RAREST]
    if len(words) > PAIR:
        for most in combinations(rarest, len(rarest) - 1):
            yield SearchStep(most, all_of_them=True)
    if len(words) > 1:
        yield SearchStep(words, all_of_them=True)
    rows = 0
    rare: list[str] = []
    for word in words:
        rows += frequencies[word]
        if rows > rows_max:
            break
        rare.append(word)
    yield SearchStep(rare or words[:1], all_of_them=False)
    if len(words) > PAIR:
        for pair in combinations(words, PAIR):
            yield SearchStep(pair, all_of_them=True)


def candidate_words(
    words: Sequence[str], frequencies: Mapping[str, int], count: int
) -> Sequence[str]:
    """Return the words to find candidates by, of words given rarest first.

    A long question leaves out its most common words, which tell little; they count when the
    candidates are read.
    """
    common = WEIGHTS.common_share * count
    telling = [word for word in words if frequencies[word] <= common]
    return telling if len(telling) >= WEIGHTS.telling_min else words


def within_span(query: Query, span: TimeSpan) -> Query:
    """Return the question restricted to a time that it mentions, or roughly to it."""
    span = overlapping_span(query, span if query.only_then else span.with_margin())
    return replace(query, since=span.since, until=span.until)


def overlapping_span(query: Query, span: TimeSpan) -> TimeSpan:
    """Return the part of a time that the question's own limits allow."""
    return replace(
        span,
        since=max(query.since, span.since) if query.since else span.since,
        until=min(query.until, span.until) if query.until else span.until,
    )


def may_list_by_time(query: Query) -> bool:
    """Tell whether a list of a time's memories can answer, if no word matches.

    Not if the question has a name or a number: where nothing has that, a list is no answer.
    """
    return not any(
        char.isupper() or char.isdigit() for word in query.terms.words for char in word
    )
