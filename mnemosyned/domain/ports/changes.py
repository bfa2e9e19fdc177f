"""Port of changes to memories: tags and pins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class ChangeStore(Protocol):
    """Changes memories in whatever tier they are; unknown ids are skipped."""

    def tag(self, ids: Sequence[str], tags: Sequence[str]) -> int:
        """Give memories tags; return how many lacked one. Raises `InvalidRequest` for too many."""
        ...

    def untag(self, ids: Sequence[str], tags: Sequence[str]) -> int:
        """Take tags from memories; return how many had one."""
        ...

    def pin(self, ids: Sequence[str], *, pinned: bool) -> int:
        """Pin or unpin working memories; return how many of these there are."""
        ...
