"""The messages that compactions took out of conversations: those that a compaction leads to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

ABOUT = timedelta(hours=1)
"""So far apart an agent's own clock and ours may put the same words."""


def leaves(below: Mapping[str, Sequence[str]], id: str) -> Iterator[str]:
    """Yield the memories of a compaction, in order; an id that is its own part is a memory's."""
    opened = {id}
    waiting = list(reversed(below.get(id, [])))
    while waiting:
        part = waiting.pop()
        if part in opened or part not in below:
            yield part
        if part in below and part not in opened:
            opened.add(part)
            waiting += reversed(below[part])
