"""Candidates of several memories as those of one: a question over one's own memory and one's groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

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
ReadDocuments = Callable[[Sequence[RankedResult]], Documents]


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
    memories: list[Match] = []
    episodes: dict[int, float] = {}
    beside: dict[int, Sequence[tuple[int, int]]] = {}
    above: dict[int, int] = {}
    mentioning: set[int] = set()
    cosines: dict[int, float] = {}
    summaries: list[int] = []
    for index, each in enumerate(found):
        by = index << ROW_BITS
        memories += [_shift_match(match, by) for match in each.memories]
        episodes |= {row + by: score for row, score in each.episodes.items()}
        for row, pairs in each.beside.items():
            beside[row + by] = [(other + by, distance) for other, distance in pairs]
        above |= {row + by: parent + by for row, parent in each.above.items()}
        mentioning |= {row + by for row in each.mentioning}
        cosines |= {row + by: near for row, near in each.nearness.cosines.items()}
        summaries += [] if each.summary is None else [each.summary + by]
    least = min(each.nearness.vector_only_min for each in found)
    return SearchCandidates(
        memories=memories,
        episodes=episodes,
        beside=beside,
        corpus=_merge_corpora([each.corpus for each in found]),
        above=above,
        mentioning=mentioning,
        summary=next(iter(summaries), None),
        nearness=Nearness(cosines, least),
    )


def _shift_match(match: Match, by: int) -> Match:
    """Return a match with its row numbers raised by `by`.

    The session's name is extended: equal names in two memories are two conversations.
    """
    is_shared = not by or match.session == DEFAULT_SESSION
    return match._replace(
        position=match.position + by,
        episode=None if match.episode is None else match.episode + by,
        session=match.session if is_shared else f"{by}\0{match.session}",
    )


def _merge_corpora(corpora: Sequence[Corpus]) -> Corpus:
    """Return the statistics of several memories as if they were one."""
    count = sum(each.count for each in corpora)
    chars = sum(each.count * each.average_chars for each in corpora)
    frequencies: Counter[str] = Counter()
    compounds: dict[str, tuple[str, ...]] = {}
    for each in corpora:
        frequencies.update(each.frequencies)
        for word, forms in each.compounds.items():
            known = compounds.get(word, ())
            compounds[word] = tuple(dict.fromkeys((*known, *forms)))
    return Corpus(
        count=count,
        average_chars=chars / count if count else corpora[0].average_chars,
        frequencies=frequencies,
        compounds=compounds,
    )


def read_documents(
    results: Sequence[RankedResult], readers: Sequence[ReadDocuments]
) -> tuple[list[RankedResult], Documents]:
    """Return ranked results, each with lines of its own memory alone, and the documents.

    `readers` read the documents of one memory each, by the memory's row numbers. A line of another
    memory repeats one of the result's own, and has been counted.
    """
    own = [
        result._replace(
            lines=tuple(
                line
                for line in result.lines
                if index_of(line[0]) == index_of(result.place)
            )
        )
        for result in results
    ]
    memories: dict[int, MemoryRecord] = {}
    episodes: dict[int, Episode] = {}
    for index, read in enumerate(readers):
        by = index << ROW_BITS
        part = [
            result._replace(
                memory=None if result.memory is None else result.memory - by,
                episode=None if result.episode is None else result.episode - by,
                lines=tuple((row - by, score) for row, score in result.lines),
            )
            for result in own
            if index_of(result.place) == index
        ]
        found = read(part) if part else Documents({}, {})
        memories |= {row + by: memory for row, memory in found.memories.items()}
        episodes |= {row + by: episode for row, episode in found.episodes.items()}
    return own, Documents(memories, episodes)
