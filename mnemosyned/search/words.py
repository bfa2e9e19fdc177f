"""Word search: rows and frequencies of words in the index, and the candidates of a question.

To score a row takes some 2 µs, and ranking reads the candidates anyway. Therefore the index only names
the rows of each word, the rarest first, and a row counts by the words it has. If even so there
would be too many rows, they are looked up in steps, the rarest combinations of words first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice
from typing import NamedTuple, Protocol

from mnemosyned.search.query import Corpus, Query
from mnemosyned.text.terms import Terms, split_compound

Forms = Sequence[str]
"""Ways to write one word or code; a row with any of them has the word."""
Having = Sequence[Sequence[Forms]]
"""Words that a row must have: any word of each inner sequence, in any of its forms."""


class WordRows(Protocol):
    """The rows of words, among the memories that pass a question's filters."""

    is_filtered: bool
    """Whether some memories may not pass."""
    rows_if_few: Sequence[int] | None
    """All rows that pass the filters, if few and known, else None."""

    @property
    def last(self) -> int:
        """The highest row number of all memories, 0 in an empty store."""
        ...

    def newest(self, having: Having, *, limit: int) -> Sequence[int]:
        """Return up to `limit` of the newest rows with a word of each part of `having`, newest first."""
        ...

    def rows_that_pass(self, rows: Sequence[int]) -> Collection[int]:
        """Return the row numbers among `rows` whose memories pass the question's filters."""
        ...

    def prefetch(self, asked: Iterable[tuple[Forms, int]]) -> None:
        """Prepare for coming calls of `newest` with these pairs of words and limit.

        The results stay the same, but an index on a server can then read the rows of all pairs at once.
        """
        ...


# ------------------------------------------------------------------ frequencies

SAMPLE = 5_000
"""Number of rows up to which a term's frequency is counted; above it is estimated."""
FREQUENCIES_KEPT_MAX = 5_000
SPLIT_ROWS_MAX = 100
"""A joined word in more memories than this is a word of its own, not two words written together."""
GROWTH = 1.2
"""Growth of the table, as a factor, after which a frequency is looked up again."""


class _KnownWord(NamedTuple):
    """Frequency and compounds of a word, at some version and number of memories."""

    frequency: int
    memories: int
    """Number of all memories at the time of the look-up."""
    version: str
    """Version of the memories at that time."""
    compounds: tuple[str, ...] = ()


class Frequencies:
    """Cache of the number of memories that have each word. Safe from any thread."""

    def __init__(self) -> None:
        """Begin with no known word."""
        self._known: dict[str, _KnownWord] = {}

    def look_up(
        self, index: WordRows, terms: Terms, count: int, *, version: str = ""
    ) -> tuple[Corpus, dict[str, Sequence[int]]]:
        """Return how many memories have each word, with the words' compounds, and {rare word: row numbers}.

        `index` covers all memories, and `count` is their number. A word is rare in fewer than `SAMPLE`
        memories; otherwise the number is an estimate. Row numbers are omitted for words known from earlier
        calls and for words with a joined form in memory. A word that was not found is looked up again
        once the `version` changes.
        """
        joins = {f"+{join.lower()}": join for _, join in terms.joins}
        words = {word.lower(): word for word in terms.words}
        known: dict[str, _KnownWord] = {}
        for key in (*joins, *words):
            kept = self._known.get(key)
            # After any change, a word that was missing may exist.
            if (
                kept
                and (kept.frequency or kept.version == version)
                and kept.memories <= count <= kept.memories * GROWTH
            ):
                known[key] = kept
        index.prefetch(
            [((join,), 1) for key, join in joins.items() if key not in known]
            + [
                (terms.forms(word), SAMPLE)
                for key, word in words.items()
                # The search needs the rows of rare words soon.
                if key not in known or 0 < known[key].frequency <= SPLIT_ROWS_MAX
            ]
        )
        rows: dict[str, Sequence[int]] = {}
        for key, join in joins.items():
            if key not in known:
                exists = bool(index.newest([[(join,)]], limit=1))
                known[key] = self._keep_word(
                    key, _KnownWord(int(exists), count, version)
                )
        unknown = {key: word for key, word in words.items() if key not in known}
        newest = {
            key: index.newest([[terms.forms(word)]], limit=SAMPLE)
            for key, word in unknown.items()
        }
        parts = {
            key: split_compound(word)
            for key, word in unknown.items()
            if len(newest[key]) <= SPLIT_ROWS_MAX
        }
        index.prefetch((halves, SAMPLE) for halves in parts.values() if halves)
        for key, word in unknown.items():
            looked_up, found = _look_up(
                index, newest[key], parts.get(key, ()), count, version
            )
            known[key] = self._keep_word(key, looked_up)
            if len(found) < SAMPLE:
                rows[word] = found
        compounds = {
            word: known[key].compounds
            for key, word in words.items()
            if known[key].compounds
        }
        for word, join in terms.joins:
            if known[f"+{join.lower()}"].frequency:
                compounds[word] = (*compounds.get(word, ()), join)
                rows.pop(word, None)  # those with the joined form are missing
        frequencies = {
            word: max(known[key].frequency, 1 if word in compounds else 0)
            for key, word in words.items()
        }
        return Corpus(frequencies=frequencies, compounds=compounds), rows

    def clear(self) -> None:
        """Drop all known frequencies: after memories are deleted, a word may no longer occur."""
        self._known.clear()

    def _keep_word(self, word: str, known: _KnownWord) -> _KnownWord:
        """Save a word's frequency for later questions, and return the frequency."""
        if len(self._known) >= FREQUENCIES_KEPT_MAX:
            self.clear()
        self._known[word] = known
        return known


def _look_up(
    index: WordRows, found: Sequence[int], parts: Forms, count: int, version: str
) -> tuple[_KnownWord, Sequence[int]]:
    """Return a word's frequency and compounds, and up to `SAMPLE` of its newest row numbers.

    `found` are the newest rows of the word itself, `parts` its spellings as two words. From `SAMPLE` rows
    on, the frequency is estimated from these rows and `count`, the number of all memories.
    """
    compounds: tuple[str, ...] = ()
    if parts and index.newest([[parts]], limit=1):
        index.prefetch(((part,), 1) for part in parts)
        compounds = tuple(part for part in parts if index.newest([[(part,)]], limit=1))
        others = index.newest([[compounds]], limit=SAMPLE)
        found = sorted({*found, *others}, reverse=True)
    frequency = len(found)
    if frequency >= SAMPLE:
        last = index.last
        frequency = min(count, SAMPLE * last // max(1, last - min(found) + 1))
    return _KnownWord(frequency, count, version, compounds), found


# ------------------------------------------------------------------ limits

ROUNDING = 1e-9
"""Relative difference of sums of the same numbers that were added in another order."""


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
    """Factor by which more are read if most of them repeat each other."""
    per_time_span: int = 60
    """Further candidates for each time that the question mentions."""
    common_share: float = 0.10
    """Share of all memories above which a word of a long question finds no candidates."""
    keywords_min: int = 6
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
    def for_question(cls, query: Query) -> CandidateLimits:
        """Return the usual limits for a question, by its numbers of words and of results."""
        is_long = len(query.terms.words) >= WEIGHTS.long_words
        share = WEIGHTS.long_share if is_long else 1.0
        total = max(WEIGHTS.min_total, WEIGHTS.per_result * query.limit)
        return cls(
            round(share * total), WEIGHTS.kept_per_result * query.limit, query.limit
        )

    def widen(self) -> CandidateLimits:
        """Return higher limits without minimum scores, for a store with many repeated memories."""
        total = self.total * WEIGHTS.widening
        return CandidateLimits(total, total, total)

    def for_time_span(self) -> CandidateLimits:
        """Return the limits for matches within a time that the question mentions."""
        return replace(self, total=min(self.total, WEIGHTS.per_time_span))


def strongest_matches(
    scores: Mapping[int, float], limits: CandidateLimits, *, possible: float
) -> dict[int, float]:
    """Return {row number: score} of the strongest matches, best first, then newest first.

    The first `limits.certain` matches need no minimum score. Up to `limits.kept`, a match needs the
    share `WEIGHTS.weakest` of the best score, and up to `limits.total` the share `WEIGHTS.weak`.
    `possible` is the score of a match with every word of the question. If the best match has it,
    `limits.kept` is multiplied by `WEIGHTS.complete_match_share`, down to `limits.certain`.
    """
    if not scores:
        return {}
    if len(scores) <= min(limits.certain, limits.total):
        ranked = sorted(
            ((score, position) for position, score in scores.items()), reverse=True
        )
        return {position: score for score, position in ranked}
    best = max(scores.values())
    kept = limits.kept
    if best >= possible * (1 - ROUNDING):
        kept = max(limits.certain, round(WEIGHTS.complete_match_share * kept))
    weak, weakest = WEIGHTS.weak * best, WEIGHTS.weakest * best
    # Few matches are worth sorting: none below this one is kept at any rank.
    at_kept, at_certain, at_total = _scores_at_ranks(
        scores, (kept, limits.certain, limits.total)
    )
    least = max(at_total, min(weak, max(weakest, at_kept), at_certain))
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
    """Return True if no further row, of at most the score `remaining`, can be among the strongest matches."""
    if len(scores) < limits.certain:
        return False
    ranks = (1, limits.kept, limits.certain)
    best, at_kept, at_certain = _scores_at_ranks(scores, ranks)
    return at_kept > remaining or (
        WEIGHTS.weakest * best > remaining and at_certain > remaining
    )


def _scores_at_ranks(scores: Mapping[int, float], ranks: Sequence[int]) -> list[float]:
    """Return the score at each rank (1 is the best), or 0 if there are fewer matches."""
    counts = sorted(Counter(scores.values()).items(), reverse=True)
    found: list[float] = []
    for rank in ranks:
        total = 0
        for score, count in counts:
            total += count
            if total >= rank:
                found.append(score)
                break
        else:
            found.append(0.0)
    return found


# ------------------------------------------------------------------ search

WALKED_MAX = 8_000
"""Rows up to which a question's words are searched exactly, and maximum rows of one word read at once."""
READ_WHOLE_SHARE = 1.5
"""Rows of a word that can be read in the time of looking up one row by its number."""
TESTED_AT_ONCE = 300
"""Rows of an earlier search that one statement tests against a filter."""
STEP_ROWS_MAX = 2_000
"""Maximum rows, the newest, that one step of a search finds."""
STEPS_MAX = 12
RAREST = 4
PAIR = 2


@dataclass(slots=True)
class LookedUpRows:
    """Rows that a question's first lookup read in all memories, reused by its later searches."""

    rows: dict[str, Sequence[int]]
    """All rows of some words."""
    found: dict[int, float] | None = None
    """All rows with any word and the sum of its words' idf, if all were read."""


def top_candidates(
    index: WordRows,
    terms: Terms,
    corpus: Corpus,
    *,
    limits: CandidateLimits,
    looked_up: LookedUpRows,
) -> tuple[dict[int, float], bool]:
    """Return {row number: sum of its words' idf} of the best rows, and whether more rows may match.

    `looked_up` contains the rows read in all memories so far, and gains the rows that are read now.
    The result is best first, and empty if no memory has any word.
    """
    frequencies = corpus.frequencies
    words = sorted(
        (word for word in terms.words if frequencies[word]), key=frequencies.__getitem__
    )
    if not words or (index.rows_if_few is not None and not index.rows_if_few):
        return {}, False
    # A long question leaves out its most common words; they count when candidates are read.
    common = WEIGHTS.common_share * corpus.count
    keywords = [word for word in words if frequencies[word] <= common]
    if len(keywords) >= WEIGHTS.keywords_min:
        words = keywords
    rows = {} if index.is_filtered else looked_up.rows
    search = _TermRows(index, words, terms=terms, corpus=corpus, rows=rows)
    if index.is_filtered and index.rows_if_few is None and looked_up.found is not None:
        found: dict[int, float] = {}
        ranked = sorted(looked_up.found, key=looked_up.found.__getitem__, reverse=True)
        for begin in range(0, len(ranked), TESTED_AT_ONCE):
            tested = index.rows_that_pass(ranked[begin : begin + TESTED_AT_ONCE])
            found.update((seq, looked_up.found[seq]) for seq in tested)
            if len(found) >= limits.total:
                break
    else:
        walked = sum(frequencies[word] for word in words)
        if index.rows_if_few is not None or walked <= WALKED_MAX:
            found = search.find_exactly(limits, words)
        else:
            found = search.find_in_steps(limits)
        if not index.is_filtered and not search.partial:
            looked_up.found = found
    possible = sum(map(corpus.idf, terms.words))
    strong = strongest_matches(found, limits, possible=possible)
    return strong, search.partial or len(strong) < len(found)


class _TermRows:
    """The words of a question, rarest first, and their rows."""

    def __init__(
        self,
        index: WordRows,
        words: Sequence[str],
        *,
        terms: Terms,
        corpus: Corpus,
        rows: dict[str, Sequence[int]],
    ) -> None:
        """Search `index` for the words, given the rarest first."""
        self.partial = False
        """Whether rows with some of the words were left out."""
        self._rows = rows
        """All rows of the words looked up so far."""
        self._index = index
        self._words = words
        self._frequencies = corpus.frequencies
        self._forms: dict[str, Forms] = {
            word: corpus.forms(terms, word) for word in words
        }
        self._idf = {word: corpus.idf(word) for word in words}

    def find_exactly(
        self, limits: CandidateLimits, words: Sequence[str]
    ) -> dict[int, float]:
        """Return {row number: sum of idf} of rows with any of `words` that may be within `limits`.

        Once new rows would score too low, the remaining words are looked up only among the found
        rows, as an index intersects two lists much faster than it reads one.
        """
        found: dict[int, float] = {}
        searched: list[Forms] = []
        remaining = sum(self._idf[word] for word in words)
        self._index.prefetch(
            (self._forms[word], WALKED_MAX) for word in words if word not in self._rows
        )
        for word in words:
            forms, idf = self._forms[word], self._idf[word]
            rows = self._rows.get(word)
            is_frequent = self._frequencies[word] > READ_WHOLE_SHARE * len(found)
            if rows is None and is_frequent and is_settled(found, limits, remaining):
                self.partial = True
                rows = self._index.newest([[forms], searched], limit=WALKED_MAX)
            elif rows is None:
                rows = self._index.newest([[forms]], limit=WALKED_MAX)
                if len(rows) < WALKED_MAX:
                    self._rows[word] = rows
            if found:
                sum_of = found.get
                for seq in rows:
                    found[seq] = sum_of(seq, 0.0) + idf
            else:
                found = dict.fromkeys(rows, idf)
            remaining -= idf
            searched.append(forms)
        return found

    def find_in_steps(self, limits: CandidateLimits) -> dict[int, float]:
        """Return {row number: sum of idf} of the best rows for words with too many rows to read.

        Each step reads the newest rows of a rare combination of words; a row keeps its best sum.
        """
        self.partial = True
        found: dict[int, float] = {}
        is_cut = len(self._words) <= PAIR
        steps = search_steps(self._words, self._frequencies, rows_max=WALKED_MAX)
        for words, needs_all in islice(steps, STEPS_MAX):
            if len(found) >= limits.kept:
                break
            if needs_all or len(words) == 1:
                if len(words) == len(self._words) and not is_cut:
                    continue  # rows with all words were found by most of the rarest
                having = [[self._forms[word]] for word in words]
                newest = self._index.newest(having, limit=STEP_ROWS_MAX)
                rows = dict.fromkeys(newest, sum(self._idf[word] for word in words))
                is_cut = is_cut or len(rows) == STEP_ROWS_MAX
            else:
                rows = self.find_exactly(limits, words)
            for seq, score in rows.items():
                found[seq] = max(score, found.get(seq, 0.0))
        return found


def search_steps(
    words: Sequence[str], frequencies: Mapping[str, int], *, rows_max: int
) -> Iterator[tuple[Sequence[str], bool]]:
    """Yield words to search for together, with True if a match needs all of them, False for any.

    First come all but one of the `RAREST` words, with each of them left out in turn. Then come all words, then
    any rare word (of at most `rows_max` rows together), then all pairs. `words` begin with the rarest.
    """
    rarest = words[:RAREST]
    if len(words) > PAIR:
        for most in combinations(rarest, len(rarest) - 1):
            yield most, True
    if len(words) > 1:
        yield words, True
    rows = 0
    rare: list[str] = []
    for word in words:
        rows += frequencies[word]
        if rows > rows_max:
            break
        rare.append(word)
    yield rare or words[:1], False
    if len(words) > PAIR:
        for pair in combinations(words, PAIR):
            yield pair, True
