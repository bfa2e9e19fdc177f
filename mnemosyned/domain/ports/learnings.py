"""Port of learnings: standing instructions and facts recognized or stated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mnemosyned.domain.learnings.learning import Learning, LearningKind


class LearningStore(Protocol):
    """Keeps learnings, newer ones superseding those they contradict."""

    def add(self, learning: Learning) -> tuple[Learning, list[str]]:
        """Store a learning, or find an equal one; with the ids of those it supersedes."""
        ...

    def find(
        self,
        *,
        sources: Sequence[str | None] = (),
        kind: LearningKind | None = None,
        superseded: bool = False,
        limit: int,
    ) -> list[Learning]:
        """Return learnings of these sources or of all, newest first; None is no source."""
        ...

    def edit(self, id: str, text: str) -> None:
        """Replace the text of a learning. Raises `NotFound`."""
        ...

    def remove(self, id: str) -> None:
        """Delete a learning; those it superseded apply again. Raises `NotFound`."""
        ...
