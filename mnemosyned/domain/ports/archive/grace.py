"""Port of grace times: what is forgotten and can be put back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from mnemosyned.domain.keeping.retention import Recoverable


class GraceStore(Protocol):
    """Puts forgotten memories back, or deletes them for good."""

    def kept(
        self, ids: Sequence[str] = (), *, before: datetime | None = None
    ) -> list[str]:
        """Return the keys of what can be put back: of these memories and calls, or final by then."""
        ...

    def put_back(self, keys: Sequence[str]) -> list[tuple[str, int]]:
        """Put what was kept under these keys back, memories into working memory.

        Returns ids and positions; those whose id was remembered again stay forgotten.
        """
        ...

    def finish(self, keys: Sequence[str]) -> int:
        """Delete what was kept under these keys for good; return how many of them there were."""
        ...

    def recoverable(self) -> Recoverable:
        """Return what can be put back."""
        ...

    def is_recoverable(self, id: str) -> datetime | None:
        """Return until when this memory, or what this call forgot, can be put back."""
        ...
