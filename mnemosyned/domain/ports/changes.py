"""Port of changes to memories: edits with their history, tags and pins."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from mnemosyned.domain.memory import Revision
from mnemosyned.domain.revisions import Edition, MemoryEdit


class ChangeStore(Protocol):
    """Changes memories in whatever tier they are; unknown ids are skipped."""

    def edit(
        self, edits: Sequence[MemoryEdit], *, now: datetime, drop_history: bool = False
    ) -> Edition:
        """Change memories, keep what they were, and empty the summaries that are stale then.

        An original that belongs elsewhere now returns to working memory, unless all originals of
        its episode move to the same session and source. With `drop_history` no earlier words are
        kept. Raises `BatchChanged` if a memory is no longer as it was read.
        """
        ...

    def groups(self, ids: Sequence[str], *, size: int) -> list[list[str]]:
        """Part memories into groups of about a size, with the originals of an episode together."""
        ...

    def revisions(self, id: str) -> list[Revision]:
        """Return what a memory was before, the latest first."""
        ...

    def tag(self, ids: Sequence[str], tags: Sequence[str]) -> int:
        """Give memories tags; return how many lacked one. Raises `InvalidRequest` for too many."""
        ...

    def untag(self, ids: Sequence[str], tags: Sequence[str]) -> int:
        """Take tags from memories; return how many had one."""
        ...

    def pin(self, ids: Sequence[str], *, pinned: bool) -> int:
        """Pin or unpin working memories; return how many of these there are."""
        ...
