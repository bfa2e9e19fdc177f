"""Token budget of a context window: the shares of its parts, and the tokens that each part takes."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Literal

from mnemosyned.errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """Limits of a context in tokens: its total, reserves, and shares of memory and learnings.

    Shares apply to the tokens that the two reserves leave, floored; the conversation gets the
    remainder. Raises `InvalidRequest` for values out of range.
    """

    total: int = 30_000
    system_reserve: int = 2_000
    tool_definitions_reserve: int = 2_000
    memory_fraction: float = 0.15
    learnings_fraction: float = 0.05
    fresh_tail_count: int = 16
    """Number of newest messages that are always kept."""

    def __post_init__(self) -> None:
        """Check all values. Raises `InvalidRequest` if one is out of range."""
        for name in (
            "total",
            "system_reserve",
            "tool_definitions_reserve",
            "fresh_tail_count",
        ):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise InvalidRequest(
                    f"{name} must be a whole number, 0 or more", field=name
                )
        for name in ("memory_fraction", "learnings_fraction"):
            value = getattr(self, name)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not 0 <= value <= 1:
                raise InvalidRequest(f"{name} must be between 0 and 1", field=name)
        fractions = (self.memory_fraction, self.learnings_fraction)
        if sum(map(make_exact_fraction, fractions)) > 1:
            raise InvalidRequest(
                "memory_fraction and learnings_fraction add up to more than 1; lower one of them",
                field="learnings_fraction",
            )
        if self.system_reserve + self.tool_definitions_reserve > self.total:
            raise InvalidRequest(
                f"the reserves for the system prompt ({self.system_reserve:,}) and for tools "
                f"({self.tool_definitions_reserve:,}) exceed total ({self.total:,}); raise total, "
                "or lower the reserves",
                field="total",
            )

    @property
    def available(self) -> int:
        """Tokens of the total that the two reserves leave."""
        return self.total - self.system_reserve - self.tool_definitions_reserve

    @property
    def memory(self) -> int:
        """Maximum tokens for recalled memory."""
        return compute_share(self.available, self.memory_fraction)

    @property
    def learnings(self) -> int:
        """Maximum tokens for past learnings."""
        return compute_share(self.available, self.learnings_fraction)

    @property
    def history(self) -> int:
        """Maximum tokens for summaries, the conversation and the new message."""
        return self.available - self.memory - self.learnings


def make_exact_fraction(fraction: float) -> Fraction:
    """Return a float as the exact fraction of its decimal digits: 0.07 of 100 is 7, not 7.000000000000001."""
    return Fraction(str(fraction))


def compute_share(tokens: int, fraction: float) -> int:
    """Return this fraction of a number of tokens, rounded down."""
    return floor(tokens * make_exact_fraction(fraction))


MemoryPlace = Literal["system", "message"]
"""Place of recalled memory: in the system prompt, or just before the new message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    """Number of tokens in each part of an assembled context."""

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
        """Tokens of summaries, earlier messages and the new message together."""
        return self.summaries + self.history + self.new_message

    @property
    def total(self) -> int:
        """Tokens of all parts together."""
        return (
            self.system + self.memory + self.learnings + self.conversation + self.tools
        )
