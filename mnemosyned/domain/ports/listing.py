"""Port of lists: records in the order of time, and the sessions and sources they belong to."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from mnemosyned.domain.listing import (
    ListFilter,
    ListPage,
    SessionTotals,
    SourceTotals,
)


class ListStore(Protocol):
    """Lists what is kept, without a question."""

    def page(self, wanted: ListFilter) -> ListPage:
        """Return one page of memories, summaries or both."""
        ...

    def sessions(self) -> list[SessionTotals]:
        """Return every session, the one with the newest memory first."""
        ...

    def sources(self) -> list[SourceTotals]:
        """Return every source, the one with the newest memory first."""
        ...

    def count_since(self, moment: datetime) -> int:
        """Count the memories of this time and later, in every tier."""
        ...
