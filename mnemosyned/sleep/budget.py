"""What one cycle may use: time, and tokens that a model is given to read."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from mnemosyned.domain.memory import MemoryRecord

CHARS_PER_TOKEN = 4
"""An estimate, as not every model counts: right for English, too low for other scripts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The limits of a cycle; what is left over then waits for the next."""

    time: timedelta | None = None
    tokens: int | None = None


class Meter:
    """Tells whether there is something left of a cycle's budget."""

    def __init__(
        self, budget: Budget, *, deadline_s: float | None, model: bool
    ) -> None:
        limits = [deadline_s, budget.time.total_seconds() if budget.time else None]
        given = [limit for limit in limits if limit is not None]
        self.started = time.monotonic()
        self._ends = self.started + min(given) if given else None
        self._tokens = budget.tokens if model else None
        self._chars = 0

    def read(self, memories: Sequence[MemoryRecord]) -> None:
        """Take note of what the summarizer is given to read."""
        self._chars += sum(len(memory.content) for memory in memories)

    @property
    def left(self) -> bool:
        """Whether another group may begin."""
        if self._ends is not None and time.monotonic() >= self._ends:
            return False
        return self._tokens is None or self._chars < self._tokens * CHARS_PER_TOKEN
