"""Promotion: an episode takes the place of its originals, unless one of them changed meanwhile."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence

from mnemosyned.domain.errors import BatchChanged
from mnemosyned.domain.memory import Detail
from mnemosyned.domain.ports.sleep import Promotion
from mnemosyned.domain.sleep.cycles import LogEntry


class Promoting(ABC):
    """The promotions of one transaction."""

    @abstractmethod
    def insert(self, promotion: Promotion) -> int:
        """Insert an episode; returns its position."""

    @abstractmethod
    def any_superseded(self, ids: Collection[str]) -> bool:
        """Whether one of these working memories was superseded."""

    @abstractmethod
    def any_edited(self, ids: Sequence[str], *, since: int) -> bool:
        """Whether one of these working memories was edited since a revision."""

    @abstractmethod
    def evict(self, ids: Sequence[str], episode: int, details: Sequence[Detail]) -> int:
        """Move those of these memories to the archive that are not pinned; returns how many.

        Their exact values are kept with them.
        """

    @abstractmethod
    def insert_log(self, entry: LogEntry) -> None:
        """Write a row of the consolidation log."""

    def promote(self, promotions: Iterable[Promotion]) -> None:
        """Promote, evict and log. Raises `BatchChanged`."""
        for promotion in promotions:
            originals = promotion.episode.summary_of
            episode = self.insert(promotion)
            if self.any_superseded(promotion.spoken):
                raise _changed("superseded concurrently")
            since = promotion.revision
            if since is not None and self.any_edited(originals, since=since):
                raise _changed("edited meanwhile")
            evicted = self.evict(originals, episode, promotion.episode.details)
            if evicted != len(originals):
                raise _changed("changed concurrently")
            self.insert_log(promotion.entry)


def _changed(how: str) -> BatchChanged:
    return BatchChanged(f"a memory of this group was {how}; the next cycle retries it")
