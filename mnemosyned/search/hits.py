"""Hits: the answer of recall, with the lines under each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from mnemosyned.memory.values import Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """An original that matched, shown under its episode, or a repeat under its memory."""

    id: str
    created_at: datetime
    role: str
    content: str
    score: float
    superseded_at: datetime | None = None
    tags: tuple[str, ...] = ()


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
    """An episode's originals that matched, or a memory's repeats, best first."""
    duplicates: int = 0
    """How many further places would say the same, or differ in figures alone."""
    explanation: Mapping[str, float] | None = None
    """On request the parts that add up to the score."""
    superseded_at: datetime | None = None
    """When a newer memory took its place; only where that was asked for."""
    history: tuple[Line, ...] = ()
    """What it, or a line of it, took the place of, the newest first; only where asked for."""
    tags: tuple[str, ...] = ()
