"""Hits: the answer of recall, with the lines under each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from mnemosyned.memory.values import Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A matching original under its episode, or a repeat under its memory."""

    id: str
    created_at: datetime
    role: str
    content: str
    score: float
    superseded_at: datetime | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A memory in the answer, or an episode with its matching originals."""

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
    """Matching originals of an episode, or repeats of a memory, best first."""
    duplicates: int = 0
    """Number of further places that repeat this one, or differ in figures alone."""
    explanation: Mapping[str, float] | None = None
    """Parts that add up to the score; only on request."""
    superseded_at: datetime | None = None
    """Time at which a newer memory superseded it; only on request."""
    history: tuple[Line, ...] = ()
    """Memories superseded by it or its lines, the newest first; only on request."""
    tags: tuple[str, ...] = ()
