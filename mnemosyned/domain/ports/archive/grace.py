"""Port of grace times: what is forgotten and can be put back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from mnemosyned.domain.keeping.retention import Recoverable


class GraceStore(Protocol):
    """Puts forgotten memories back, or deletes them for good."""

    def put_back(self, id: str) -> list[tuple[str, int]]:
        """Put a forgotten memory back into working memory, or all that one call forgot.

        Returns ids and positions; those whose id was remembered again stay forgotten.
        """
        ...

    def finish(self, *, before: datetime | None = None, ids: Sequence[str] = ()) -> int:
        """Delete what was kept for good: all final by then, or these memories or calls."""
        ...

    def recoverable(self) -> Recoverable:
        """Return what can be put back."""
        ...

    def is_recoverable(self, id: str) -> datetime | None:
        """Return until when this memory, or what this call forgot, can be put back."""
        ...
