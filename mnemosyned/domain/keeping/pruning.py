"""Pruning: which originals give up their words, as old ones or beyond the size of the archive."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from mnemosyned.domain.keeping.retention import Prunable


class EpisodeWords(NamedTuple):
    """An episode's time, and those of its originals that have words: id, time, characters."""

    begins: datetime
    ends: datetime
    originals: Iterable[tuple[str, datetime, int]]


def choose_prunable(
    episodes: Iterable[EpisodeWords],
    *,
    before: datetime | None,
    excess: int,
    limit: int,
) -> Prunable:
    """Choose originals of whole episodes, given the oldest first, up to about a limit.

    They are over `before` that time, or the first of `excess` characters.
    """
    ids: list[str] = []
    times: list[datetime] = []
    characters = 0
    for begins, ends, originals in episodes:
        too_much = characters < excess
        if len(ids) >= limit or not (too_much or _is_earlier(begins, before)):
            break
        if too_much or _is_earlier(ends, before):
            for id, created_at, size in originals:
                ids.append(id)
                times.append(created_at)
                characters += size
    return Prunable(
        ids=tuple(ids),
        characters=characters,
        oldest=min(times, default=None),
        newest=max(times, default=None),
    )


def _is_earlier(moment: datetime, before: datetime | None) -> bool:
    return before is not None and moment < before
