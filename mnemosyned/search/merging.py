"""Candidates of several memories as those of one: a question over one's own memory and one's groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TypeVar

from mnemosyned.memory.values import DEFAULT_SESSION, Episode, MemoryRecord
from mnemosyned.search.query import (
    Corpus,
    Documents,
    Match,
    Nearness,
    RankedResult,
    SearchCandidates,
)

ROW_BITS = 48
"""The row numbers of the memory at index n begin at n times two to the power of this."""
V = TypeVar("V")


def index_of(position: int) -> int:
    """Return the index of the memory that a row number among merged candidates belongs to."""
    return position >> ROW_BITS


def merge_candidates(found: Sequence[SearchCandidates]) -> SearchCandidates:
    """Return the candidates of several memories with row numbers of their own for each.

    Words are as common as in all memories together, so that scores and confidence are those of one
    memory with everything in it. Candidates of a single memory are returned as they are.
    """
    if len(found) == 1:
        return found[0]
    parts = [_shift(each, index << ROW_BITS) for index, each in enumerate(found)]
    least = [each.nearness.vector_only_min for each in parts if each.nearness.cosines]
    return SearchCandidates(
        memories=[match for each in parts for match in each.memories],
        episodes=_union(each.episodes for each in parts),
        beside=_union(each.beside for each in parts),
        corpus=_merge_corpora([each.corpus for each in parts]),
        above=_union(each.above for each in parts),
        mentioning=frozenset().union(*(each.mentioning for each in parts)),
        summary=next(
            (each.summary for each in parts if each.summary is not None), None
        ),
        nearness=Nearness(
            _union(each.nearness.cosines for each in parts), min(least, default=1.0)
        ),
    )


def _union(tables: Iterable[Mapping[int, V]]) -> dict[int, V]:
    """Return one mapping with the entries of all tables, which share no key."""
    return dict(chain.from_iterable(table.items() for table in tables))


def _shift(found: SearchCandidates, by: int) -> SearchCandidates:
    """Return the candidates of a memory with all row numbers raised by `by`."""

    def shift_match(match: Match) -> Match:
        """Return a match whose conversation is no other memory's, whatever its name."""
        is_shared = not by or match.session == DEFAULT_SESSION
        return match._replace(
            position=match.position + by,
            episode=None if match.episode is None else match.episode + by,
            session=match.session if is_shared else f"{by}\0{match.session}",
        )

    return replace(
        found,
        memories=list(map(shift_match, found.memories)),
        episodes={row + by: score for row, score in found.episodes.items()},
        beside={
            row + by: [(neighbor + by, distance) for neighbor, distance in pairs]
            for row, pairs in found.beside.items()
        },
        above={row + by: parent + by for row, parent in found.above.items()},
        mentioning=frozenset(row + by for row in found.mentioning),
        summary=None if found.summary is None else found.summary + by,
        nearness=replace(
            found.nearness,
            cosines={row + by: near for row, near in found.nearness.cosines.items()},
        ),
    )


def _merge_corpora(corpora: Sequence[Corpus]) -> Corpus:
    """Return the statistics of several memories as if they were one."""
    count = sum(each.count for each in corpora)
    frequencies: dict[str, int] = {}
    compounds: dict[str, tuple[str, ...]] = {}
    for each in corpora:
        for word, frequency in each.frequencies.items():
            frequencies[word] = frequencies.get(word, 0) + frequency
        for word, forms in each.compounds.items():
            known = compounds.get(word, ())
            compounds[word] = tuple(dict.fromkeys((*known, *forms)))
    chars = sum(each.count * each.average_chars for each in corpora)
    return Corpus(
        count=count,
        average_chars=chars / count if count else corpora[0].average_chars,
        frequencies=frequencies,
        compounds=compounds,
    )


def split_results(
    results: Sequence[RankedResult], count: int
) -> tuple[list[RankedResult], list[list[RankedResult]]]:
    """Return ranked results without lines of other memories, and those of each of `count` memories.

    These have the row numbers of their memory. A line of another memory is a repeat, which is counted
    anyway.
    """
    own: list[RankedResult] = []
    parts: list[list[RankedResult]] = [[] for _ in range(count)]
    for result in results:
        index = index_of(result.place)
        by = index << ROW_BITS
        lines = tuple(line for line in result.lines if index_of(line[0]) == index)
        own.append(result._replace(lines=lines))
        part = result._replace(
            memory=None if result.memory is None else result.memory - by,
            episode=None if result.episode is None else result.episode - by,
            lines=tuple((row - by, score) for row, score in lines),
        )
        parts[index].append(part)
    return own, parts


def merge_documents(parts: Sequence[Documents]) -> Documents:
    """Return the documents of several memories with the row numbers of merged candidates."""
    memories: dict[int, MemoryRecord] = {}
    episodes: dict[int, Episode] = {}
    for index, part in enumerate(parts):
        by = index << ROW_BITS
        memories.update((row + by, memory) for row, memory in part.memories.items())
        episodes.update((row + by, episode) for row, episode in part.episodes.items())
    return Documents(memories, episodes)
