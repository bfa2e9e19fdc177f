"""De-duplication: repeats are counted, and of one chain of summaries one level is shown."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from mnemosyned.search.query import Match, RankedResult

COMPARED_PER_RESULT = 8
"""Results compared with the shown ones, for each result of the answer."""
ALIKE_MAX = 3
"""Memories that differ in figures alone and are shown before others step ahead."""
BEGINNING_CHARS = 24
_FIGURES = re.compile(r"\d+")


def best_level_only(
    results: Sequence[RankedResult], above: Mapping[int, int]
) -> list[RankedResult]:
    """Keep the best level only of an episode and its day, week and month.

    A summary above yields to a summary below with exact words, whatever their scores; else the
    better of the two stays. `results` are best first.
    """
    if not above:
        return list(results)
    covered = {
        parent
        for result in results
        if result.lines
        for parent in _rollups_above(result, above)
    }
    kept: list[RankedResult] = []
    shown: set[int | None] = set()
    for result in results:
        chain = _rollups_above(result, above)
        is_new = result.episode not in covered and shown.isdisjoint(chain)
        if result.lines or is_new:
            kept.append(result)
            covered.update(chain)
            shown.add(result.episode)
    return kept


def _rollups_above(result: RankedResult, above: Mapping[int, int]) -> list[int]:
    """Return the row numbers of the roll-ups above a result's episode, at every level."""
    chain: list[int] = []
    parent = above.get(result.episode) if result.episode is not None else None
    while parent is not None and parent not in chain:
        chain.append(parent)
        parent = above.get(parent)
    return chain


def collapse_repeats(
    results: Sequence[RankedResult],
    matches: Mapping[int, Match],
    *,
    limit: int,
    lines_max: int,
) -> list[RankedResult]:
    """Return the first distinct results; repeats are counted on the result that they repeat.

    Results that differ only in figures come last: they are shown only if places are free.
    """
    distinct = _DistinctResults(limit)
    for rank, result in enumerate(results):
        if distinct.is_full and rank >= COMPARED_PER_RESULT * limit:
            break
        positions = [position for position, _ in result.lines]
        if result.memory is not None:
            positions.insert(0, result.memory)
        shown = [matches[position] for position in positions]
        distinct.add(result, [match for match in shown if match.content])
    return distinct.with_repeats(lines_max)


class _DistinctResults:
    """Distinct results, and the results that repeat each of them."""

    def __init__(self, limit: int) -> None:
        self.is_full = limit == 0
        self._limit = limit
        self._shown: list[RankedResult] = []
        self._repeats: dict[int, list[RankedResult]] = defaultdict(list)
        """Repeats by the rank of the result that they repeat."""
        self._yielding: list[tuple[RankedResult, int]] = []
        """Results that differ from shown ones in figures alone, with the rank of a shown one."""
        self._rank_of_text: dict[str, int] = {}
        self._beginnings: set[str] = set()
        """Beginnings of the shown texts, which take less time than whole texts."""
        self._ranks_of_kind: dict[str, list[int]] = defaultdict(list)
        """Ranks of the results by their text without figures."""
        self._is_crowded = False
        """Whether some differ in figures alone, so that further ones are counted on them."""

    def add(self, result: RankedResult, shown: Sequence[Match]) -> None:
        """Add a distinct result, or count it as a repeat; drop it if there is no room."""
        is_closed = self.is_full and not self._is_crowded
        if is_closed and not all(
            _text_beginning(match) in self._beginnings for match in shown
        ):
            return  # most results: no repeat of a shown one begins otherwise
        texts = [
            f"{match.source}\n{match.role}\n{match.content.casefold().strip()}"
            for match in shown
        ]
        if texts and all(text in self._rank_of_text for text in texts):
            self._repeats[self._rank_of_text[texts[0]]].append(result)
            return
        if is_closed:
            return
        kinds = [_FIGURES.sub("0", text) for text in texts]
        ranks_of_kinds = [self._ranks_of_kind[kind] for kind in kinds]
        if texts and all(len(ranks) >= ALIKE_MAX for ranks in ranks_of_kinds):
            self._yielding.append((result, ranks_of_kinds[0][0]))
        elif not self.is_full:
            self._add_shown(result, texts, ranks_of_kinds)
            self._beginnings.update(map(_text_beginning, shown))

    def _add_shown(
        self,
        result: RankedResult,
        texts: Sequence[str],
        ranks_of_kinds: Sequence[list[int]],
    ) -> None:
        """Add a distinct result, and record its texts for comparison with later results."""
        rank = len(self._shown)
        for text, ranks in zip(texts, ranks_of_kinds, strict=True):
            self._rank_of_text.setdefault(text, rank)
            ranks.append(rank)
        if any(len(ranks) >= ALIKE_MAX for ranks in ranks_of_kinds):
            self._is_crowded = True
        self._shown.append(result)
        self.is_full = len(self._shown) == self._limit

    def with_repeats(self, lines_max: int) -> list[RankedResult]:
        """Return the results with the best of their repeats, best first.

        Free places go to results that differ from shown ones in figures alone.
        """
        room = self._limit - len(self._shown)
        for result, rank in self._yielding[room:]:
            self._repeats[rank].append(result)
        results = list(self._shown)
        for rank, repeats in self._repeats.items():
            lines = list(results[rank].lines)
            for repeat in repeats:
                if repeat.memory is not None:
                    lines.append((repeat.memory, repeat.score))
                else:
                    lines += repeat.lines
            most = max(len(results[rank].lines), lines_max)
            results[rank] = results[rank]._replace(
                lines=tuple(lines[:most]), duplicates=len(repeats)
            )
        results += [result for result, _ in self._yielding[:room]]
        return sorted(results, key=lambda result: -result.score)


def _text_beginning(match: Match) -> str:
    """Return the beginning of a match's text, by which repeats are recognized."""
    return match.content.strip()[:BEGINNING_CHARS].casefold()[:BEGINNING_CHARS]


def are_crowded(texts: Sequence[str], limit: int) -> bool:
    """Tell whether texts differ too little, figures aside, to fill an answer."""
    distinct = set(texts)
    if len(distinct) < limit:
        return True
    kinds: set[str] = set()
    for text in distinct:
        kinds.add(_FIGURES.sub("0", text))
        if ALIKE_MAX * len(kinds) > limit:  # most answers: after a few
            return False
    return True
