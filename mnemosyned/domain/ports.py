"""What the core asks of the outside: a clock and a summariser (the store follows)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from mnemosyned.domain.memory import Memory


class Clock(Protocol):
    """Tells the time; tests hand in one they can move."""

    def now(self) -> datetime:
        """The present instant, aware, in UTC."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a summariser made of a batch."""

    text: str
    """The episode's content: the summary, then a line of keywords."""
    summarizer: str
    """Name of the implementation that wrote it, for the log."""


class Summarizer(Protocol):
    """Makes one text of the memories of one episode."""

    name: str
    reason: str
    """Why this one is in force, in one sentence a person reads in `status`."""

    def summarize(self, memories: Sequence[Memory]) -> Summary:
        """Summarise the memories, which stand oldest first.

        Raises `SummarizerFailed` when nothing worth keeping came out.
        """
        ...
