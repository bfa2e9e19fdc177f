"""The tokens of each part of a context, and where memory goes in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MemoryPlace = Literal["system", "message"]
"""Place of recalled memory: in the system prompt, or just before the new message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    """Tokens of each part of an assembled context."""

    counter: str
    """Name of the token counter."""
    system: int
    memory: int
    learnings: int
    summaries: int
    history: int
    new_message: int
    tools: int
    """Tokens of the tool definitions, at least their reserve."""
    history_budget: int
    """Limit for summaries, history and the new message."""
    budget: int
    """Limit for all parts together."""

    @property
    def conversation(self) -> int:
        """Tokens that count toward the history's budget."""
        return self.summaries + self.history + self.new_message

    @property
    def total(self) -> int:
        return (
            self.system + self.memory + self.learnings + self.conversation + self.tools
        )
