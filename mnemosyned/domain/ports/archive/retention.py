"""Ports of what stays: pruning and restoring, and the undo of consolidation."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from mnemosyned.domain.keeping.retention import Prunable, Removal, Retention, Returned


class RetentionStore(Protocol):
    """Restores memories, and prunes the text of old originals."""

    def restore(self, id: str) -> Removal:
        """Move an original back to working memory, pinned.

        Raises `BatchChanged`, and `WordsPruned` if pruned originals would lose their summary.
        """
        ...

    def prunable(self, retention: Retention, *, now: datetime, limit: int) -> Prunable:
        """Return the originals whose text a retention gives up, oldest first."""
        ...

    def prune(self, ids: Sequence[str], *, now: datetime) -> int:
        """Delete the text of these originals; details, hashes and provenance stay."""
        ...


class UndoStore(Protocol):
    """Takes consolidated episodes apart again."""

    def last_cycle(self) -> str | None:
        """Return the newest cycle of which something can be put back."""
        ...

    def preview(self, episodes: Sequence[str]) -> list[Returned]:
        """Return what an undo of these episodes would put back."""
        ...

    def apply(
        self, episodes: Sequence[str], *, now: datetime, held_until: datetime
    ) -> list[Returned]:
        """Put the originals of these episodes back as they were, and delete the episodes.

        Until `held_until` no cycle takes them again, except one that ignores age.
        """
        ...
