"""Summaries whose sources are gone: emptied or deleted, up the hierarchy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple


class Standing(NamedTuple):
    """A summary, and how much is left of what it was made of."""

    id: str
    parent: int | None
    """The position of the summary above it."""
    originals: int
    has_children: bool


def invalidate_upward(
    summaries: Iterable[int],
    *,
    standing_of: Callable[[int], Standing | None],
    blank: Callable[[int, Standing], None],
    delete: Callable[[int, Standing], None],
) -> tuple[frozenset[int], frozenset[int]]:
    """Empty summaries by their positions and all above them; delete those that nothing is left of.

    Answers with the deleted and the emptied. No words of what is gone stay readable, however long
    the rewriting takes and whatever becomes of this process meanwhile.
    """
    deleted: set[int] = set()
    emptied: set[int] = set()
    waiting = set(summaries)
    while waiting:  # ends, as each step goes up a level
        seq = waiting.pop()
        standing = standing_of(seq)
        if standing is None:
            continue
        if standing.originals or standing.has_children:
            blank(seq, standing)
            emptied.add(seq)
        else:
            delete(seq, standing)
            deleted.add(seq)
            emptied.discard(seq)
        if standing.parent is not None:
            waiting.add(standing.parent)
    return frozenset(deleted), frozenset(emptied)
