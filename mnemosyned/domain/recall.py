"""What a question is and what a memory is worth to it: pure ranking, no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from mnemosyned.domain.memory import Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """An original that matched, shown under its episode."""

    id: str
    created_at: datetime
    role: str
    content: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One place in the answer: a memory, or an episode with the originals that matched."""

    id: str
    tier: Tier
    score: float
    """Higher is better; comparable within one answer only."""
    snippet: str
    content: str
    created_at: datetime
    session: str
    source: str | None
    role: str = ""
    summary_of: tuple[str, ...] = ()
    """Provenance: the ids of all originals of an episode, oldest first."""
    lines: tuple[Line, ...] = ()
    """The originals that matched, best first, at most three."""
