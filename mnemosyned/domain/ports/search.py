"""Port of search: candidates for a question, and the records that an answer shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mnemosyned.domain.search.query import (
    Documents,
    Query,
    RankedResult,
    SearchCandidates,
)


class SearchStore(Protocol):
    """Finds candidates; ranking them is the domain's."""

    def candidates(self, query: Query) -> SearchCandidates:
        """Return all candidates for a question."""
        ...

    def documents(self, results: Sequence[RankedResult]) -> Documents:
        """Return the memories and episodes that ranked results refer to."""
        ...
