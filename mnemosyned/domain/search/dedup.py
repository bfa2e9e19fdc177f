"""De-duplication: repeats are counted, and of one chain of summaries one level is shown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from mnemosyned.domain.search.query import LINES_MAX, Match, RankedResult

FOLDED_PER_PLACE = 8
"""For each place of the answer, so many of the best are compared with what is shown."""
ALIKE_MAX = 3
"""So many memories that differ in figures alone are shown before the rest is folded."""
_FIGURES = re.compile(r"\d+")


def one_of_each_line(
    places: Sequence[RankedResult], above: Mapping[int, int]
) -> list[RankedResult]:
    """One place for what an episode, its day, week and month all tell: the best that answers.

    A summary above gives way to one below it with exact words, whatever their scores; else the
    better of the two stays. `places` stand best first.
    """
    if not above:
        return list(places)
    told = {up for place in places if place.lines for up in _line(place, above)}
    kept: list[RankedResult] = []
    telling: set[int | None] = set()
    for place in places:
        line = _line(place, above)
        if place.lines or (place.episode not in told and telling.isdisjoint(line)):
            kept.append(place)
            told.update(line)
            telling.add(place.episode)
    return kept


def _line(place: RankedResult, above: Mapping[int, int]) -> list[int]:
    """Return the roll-ups above the episode of a result, at every level."""
    line: list[int] = []
    at = above.get(place.episode) if place.episode is not None else None
    while at is not None and at not in line:
        line.append(at)
        at = above.get(at)
    return line


def folded(
    places: Sequence[RankedResult], matches: Mapping[int, Match], *, limit: int
) -> list[RankedResult]:
    """The first places that say something new; what repeats one is counted on it.

    What differs in figures alone steps back for others, and is shown where there are none.
    """
    shown: list[RankedResult] = []
    spare: list[tuple[RankedResult, int]] = []
    repeats: dict[int, list[RankedResult]] = {}
    first: dict[str, int] = {}
    alike: dict[str, list[int]] = {}
    crowded = False
    for at, place in enumerate(places):
        full = len(shown) == limit
        if full and at >= FOLDED_PER_PLACE * limit:
            break
        texts = _texts(place, matches)
        if texts and all(map(first.__contains__, texts)):
            repeats.setdefault(first[texts[0]], []).append(place)
            continue
        if full and not crowded:
            continue
        kinds = [_FIGURES.sub("0", text) for text in texts]
        if texts and all(len(alike.get(kind, ())) >= ALIKE_MAX for kind in kinds):
            spare.append((place, alike[kinds[0]][0]))
        elif not full:
            for text, kind in zip(texts, kinds, strict=True):
                first.setdefault(text, len(shown))
                alike.setdefault(kind, []).append(len(shown))
                crowded = crowded or len(alike[kind]) >= ALIKE_MAX
            shown.append(place)
    room = limit - len(shown)
    for place, known in spare[room:]:
        repeats.setdefault(known, []).append(place)
    answer = [_repeated(place, repeats.get(at, ())) for at, place in enumerate(shown)]
    answer += [place for place, _ in spare[:room]]
    return sorted(answer, key=lambda place: -place.score)


def crowded(texts: Sequence[str], limit: int) -> bool:
    """Whether these say too little that differs for so many places, figures aside."""
    distinct = set(texts)
    if len(distinct) < limit:
        return True
    kinds: set[str] = set()
    for text in distinct:
        kinds.add(_FIGURES.sub("0", text))
        if ALIKE_MAX * len(kinds) > limit:  # most answers: after a few
            return False
    return True


def _repeated(place: RankedResult, repeats: Sequence[RankedResult]) -> RankedResult:
    """Return a result with the best of its repeats under it."""
    if not repeats:
        return place
    lines = list(place.lines)
    for repeat in repeats:
        lines += (
            [(repeat.memory, repeat.score)]
            if repeat.memory is not None
            else repeat.lines
        )
    shown = max(len(place.lines), LINES_MAX)
    return place._replace(lines=tuple(lines[:shown]), duplicates=len(repeats))


def _texts(place: RankedResult, matches: Mapping[int, Match]) -> list[str]:
    """Who said what: what two places that say the same have in common."""
    shown = [matches[position] for position, _ in place.lines]
    if place.memory is not None:
        shown.insert(0, matches[place.memory])
    return [
        f"{match.source}\n{match.role}\n{match.content.casefold().strip()}"
        for match in shown
        if match.content
    ]
