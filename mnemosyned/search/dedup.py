"""De-duplication: repeats are counted, and of one chain of summaries one level is shown."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from mnemosyned.search.query import Match, RankedResult

COMPARED_PER_RESULT = 8
"""For each result of the answer, so many of the best are compared with those shown."""
ALIKE_MAX = 3
"""So many memories that differ in figures alone are shown before others step ahead."""
BEGINNING_CHARS = 24
_FIGURES = re.compile(r"\d+")


def best_level_only(
    results: Sequence[RankedResult], above: Mapping[int, int]
) -> list[RankedResult]:
    """Keep one of an episode, its day, its week and its month: the best that answers.

    A summary above gives way to one below it with exact words, whatever their scores; else the
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
    """Return the roll-ups above the episode of a result, at every level."""
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
    """Return the first results that say something new; what repeats one is counted on it.

    Results that differ in figures alone yield to others, and are shown where there is room.
    """
    answer = _DistinctResults(limit)
    for rank, result in enumerate(results):
        if answer.is_full and rank >= COMPARED_PER_RESULT * limit:
            break
        answer.add(result, _shown_memories(result, matches))
    return answer.results(lines_max)


class _DistinctResults:
    """The results that say something new, and where each repeat belongs."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._shown: list[RankedResult] = []
        self._repeats: dict[int, list[RankedResult]] = defaultdict(list)
        """Repeats by the rank of the result that they repeat."""
        self._yielding: list[tuple[RankedResult, int]] = []
        """Results that differ from shown ones in figures alone, with the rank of one of them."""
        self._rank_of_text: dict[str, int] = {}
        self._beginnings: set[str] = set()
        """Beginnings of what is shown, which take less time than whole texts."""
        self._ranks_of_kind: dict[str, list[int]] = defaultdict(list)
        """By text without its figures, the ranks of the results that say it."""
        self._is_crowded = False
        """Whether some differ in figures alone, so that further ones are counted on them."""

    @property
    def is_full(self) -> bool:
        return len(self._shown) == self._limit

    def add(self, result: RankedResult, shown: Sequence[Match]) -> None:
        """Show a result, count it as a repeat, or leave it out if there is no room."""
        is_closed = self.is_full and not self._is_crowded
        if is_closed and not self._may_repeat(shown):
            return
        texts = list(map(_speaker_and_words, shown))
        if texts and all(text in self._rank_of_text for text in texts):
            self._repeats[self._rank_of_text[texts[0]]].append(result)
            return
        if is_closed:
            return
        kinds = [_FIGURES.sub("0", text) for text in texts]
        if texts and all(map(self._is_common, kinds)):
            self._yielding.append((result, self._ranks_of_kind[kinds[0]][0]))
        elif not self.is_full:
            self._show(result, texts, kinds)
            self._beginnings.update(_speaker_and_beginning(match) for match in shown)

    def _may_repeat(self, shown: Iterable[Match]) -> bool:
        """Tell whether memories may be repeats, by their beginnings; most are not."""
        return all(_speaker_and_beginning(match) in self._beginnings for match in shown)

    def _is_common(self, kind: str) -> bool:
        return len(self._ranks_of_kind[kind]) >= ALIKE_MAX

    def _show(
        self, result: RankedResult, texts: Sequence[str], kinds: Sequence[str]
    ) -> None:
        rank = len(self._shown)
        for text, kind in zip(texts, kinds, strict=True):
            self._rank_of_text.setdefault(text, rank)
            self._ranks_of_kind[kind].append(rank)
        self._is_crowded = self._is_crowded or any(map(self._is_common, kinds))
        self._shown.append(result)

    def results(self, lines_max: int) -> list[RankedResult]:
        """Return what is shown with its repeats, filled up with what yielded, best first."""
        room = self._limit - len(self._shown)
        for result, rank in self._yielding[room:]:
            self._repeats[rank].append(result)
        answer = [
            _add_repeats(result, self._repeats.get(rank, ()), lines_max)
            for rank, result in enumerate(self._shown)
        ]
        answer += [result for result, _ in self._yielding[:room]]
        return sorted(answer, key=lambda result: -result.score)


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


def _add_repeats(
    result: RankedResult, repeats: Sequence[RankedResult], lines_max: int
) -> RankedResult:
    """Return a result with the best of its repeats under it."""
    if not repeats:
        return result
    lines = list(result.lines)
    for repeat in repeats:
        if repeat.memory is not None:
            lines.append((repeat.memory, repeat.score))
        else:
            lines += repeat.lines
    shown = max(len(result.lines), lines_max)
    return result._replace(lines=tuple(lines[:shown]), duplicates=len(repeats))


def _shown_memories(result: RankedResult, matches: Mapping[int, Match]) -> list[Match]:
    """Return the memories that a result shows, if they have words."""
    positions = [position for position, _ in result.lines]
    if result.memory is not None:
        positions.insert(0, result.memory)
    shown = [matches[position] for position in positions]
    return [match for match in shown if match.content]


def _speaker_and_words(match: Match) -> str:
    """Return who said what: the same for two memories that say the same."""
    return f"{match.source}\n{match.role}\n{match.content.casefold().strip()}"


def _speaker_and_beginning(match: Match) -> str:
    """Return the beginning of what is said, the same for two memories that say the same."""
    return match.content.strip()[:BEGINNING_CHARS].casefold()[:BEGINNING_CHARS]
