"""Keeps new learnings: those they supersede are marked, and what is said again is said once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from mnemosyned.domain.learnings.conflicts import ActiveLearnings
from mnemosyned.domain.learnings.learning import Learning

COMPARED_MAX = 300
"""A new learning is held against this many of its source, the newest."""


class LearningKeeper(ABC):
    """Inserts the learnings of one transaction, reading those in force once."""

    def __init__(self) -> None:
        self._holding: dict[str | None, ActiveLearnings] = {}
        self._kept: set[str] = set()

    @abstractmethod
    def read(self, source: str | None, *, limit: int) -> Sequence[Learning]:
        """Return the learnings of a source that are in force, the newest first."""

    @abstractmethod
    def insert(self, learning: Learning, *, gone: Sequence[str]) -> None:
        """Insert a learning, and mark others as superseded by it."""

    @property
    def learned(self) -> int:
        """How many of the learnings that it inserted are in force."""
        return len(self._kept)

    def keep(self, learning: Learning) -> tuple[Learning, list[str]]:
        """Insert a learning and mark those it supersedes; returns their ids.

        A statement repeated by an agent in the same words is the existing learning. A learning that
        comes in late, as from an import, may itself be superseded by a newer one.
        """
        holding = self._holding_of(learning.source)
        stated = _stated_before(learning, holding)
        if stated is not None:
            return stated, []
        older: list[Learning] = []
        newer: list[Learning] = []
        for other in holding.find_conflicts(learning):
            (newer if other.created_at > learning.created_at else older).append(other)
        if newer:
            newest = max(newer, key=lambda other: other.created_at)
            learning = replace(learning, superseded_by=newest.id)
        else:
            learning = replace(learning, superseded_by=None)
        superseded = [other.id for other in older]
        self.insert(learning, gone=superseded)
        for other in older:
            holding.remove(other)
            self._kept.discard(other.id)
        if not newer:
            holding.add(learning)
            self._kept.add(learning.id)
        return learning, superseded

    def _holding_of(self, source: str | None) -> ActiveLearnings:
        if source not in self._holding:
            newest = reversed(self.read(source, limit=COMPARED_MAX))
            self._holding[source] = ActiveLearnings(newest, limit=COMPARED_MAX)
        return self._holding[source]


def _stated_before(learning: Learning, holding: ActiveLearnings) -> Learning | None:
    """Return the learning that an agent already stated in the same words, if any."""
    if learning.memory is not None:
        return None
    for other in holding.same_wording(learning):
        if other.memory is None and other.kind is learning.kind:
            return other
    return None
