"""Records that a move carries besides those of an export: a machine's own, and what is forgotten."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from mnemosyned.domain.exchange import ExportedMemory
from mnemosyned.domain.learnings.learning import Learning
from mnemosyned.domain.ports.surroundings.watching import WatchedFile
from mnemosyned.domain.timekeeping import Sighting


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoverableRecord:
    """A memory or a learning that was forgotten with a grace time."""

    id: str
    """The key under which it is kept."""
    call: str
    final_at: datetime
    memory: ExportedMemory | None = None
    """None where learnings were forgotten by themselves."""
    superseded_by: int | None = None
    """The position of the newer memory."""
    supersedes: tuple[int, ...] = ()
    """The positions of the memories that it had replaced."""
    learnings: tuple[Learning, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedFolder:
    """A folder that is followed."""

    path: str
    added_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class HookActivity:
    """Sums of what the hooks of one client did on one kind of event."""

    client: str
    event: str
    calls: int
    stored: int
    characters: int
    failures: int
    total_ms: float
    slowest_ms: float
    called_at: datetime
    stored_at: datetime | None = None
    informed_at: datetime | None = None
    failed_at: datetime | None = None
    failure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptVector:
    """The vector of a memory."""

    memory: str
    model: str
    """The name of the model that made it."""
    digest: str
    """The identity of that model."""
    vector: bytes


MovedRecord = (
    RecoverableRecord
    | FollowedFolder
    | WatchedFile
    | HookActivity
    | KeptVector
    | Sighting
)
"""Anything that a move carries and an export leaves out."""
