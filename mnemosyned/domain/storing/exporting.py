"""Export: the order in which all records are read, from one snapshot."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from mnemosyned.domain.exchange import ExportFilter
from mnemosyned.domain.ports.archive.exchange import Record


class Exporting(ABC):
    """The records of one snapshot; each part is read as it is asked for."""

    def __init__(self, chosen: ExportFilter) -> None:
        self._chosen = chosen

    @abstractmethod
    def expected(self) -> dict[str, int]:
        """Count the memories and episodes."""

    @abstractmethod
    def episodes(self) -> Iterator[Record]:
        """Episodes whose originals are all exported, each followed by them."""

    @abstractmethod
    def loose_originals(self) -> Iterator[Record]:
        """Originals whose episode is left out, as a filter leaves others of its originals out."""

    @abstractmethod
    def working(self) -> Iterator[Record]:
        """Working memory, in the order it was stored."""

    @abstractmethod
    def rollups(self) -> Iterator[Record]:
        """Days, weeks and months, after all that they were made of."""

    @abstractmethod
    def supersessions(self) -> Iterator[Record]:
        """Links of superseded memories to newer ones."""

    @abstractmethod
    def learnings(self) -> Iterator[Record]:
        """Learnings, in the order they were learned."""

    @abstractmethod
    def log(self) -> Iterator[Record]:
        """The consolidation log."""

    @abstractmethod
    def compactions(self) -> Iterator[Record]:
        """Compactions, the oldest first."""

    @abstractmethod
    def agent_sessions(self) -> Iterator[Record]:
        """Agents' sessions."""

    @abstractmethod
    def forgotten(self) -> Iterator[Record]:
        """Captured messages that are not to be read again."""

    def records(self) -> Iterator[Record]:
        """Read all records, each as it is asked for."""
        yield from self.episodes()
        if not self._chosen.is_whole:
            yield from self.loose_originals()
        yield from self.working()
        if not self._chosen.is_of_memories:
            yield from self.rollups()
        yield from self.supersessions()
        if not self._chosen.tags:
            yield from self.learnings()
            yield from self.log()
        if self._chosen.is_whole:
            yield from self.compactions()
            yield from self.agent_sessions()
            yield from self.forgotten()
