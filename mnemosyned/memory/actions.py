"""Actions that `undo` can take back: edits, tags, pins, forgets, imports and sleep cycles."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

KEPT = timedelta(days=30)
"""How long an action can be undone; a forget as long as its grace period, a sleep cycle always."""
ACTIONS_MAX = 10_000
"""Actions that stay recorded, the newest."""
LISTED_MAX = 1_000
"""Actions in a list."""


class ActionKind(StrEnum):
    """Kind of an action."""

    EDIT = "edit"
    TAG = "tag"
    UNTAG = "untag"
    PIN = "pin"
    UNPIN = "unpin"
    FORGET = "forget"
    IMPORT = "import"
    SLEEP = "sleep"


@dataclass(frozen=True, slots=True)
class Action:
    """An action, as the rows that it changed refer to it."""

    id: str
    kind: ActionKind
    at: datetime


@dataclass(frozen=True, slots=True)
class ActionStep:
    """A memory that an action changed, and the tag that was added or removed, if any."""

    seq: int
    memory: str
    tag: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoableAction:
    """An action that can be undone."""

    id: str
    kind: ActionKind
    at: datetime
    memories: int
    """Number of memories that it changed."""
    until: datetime | None = None
    """Until then it can be undone; null for a sleep cycle, which has no limit of time."""
    trigger: str = ""
    """What started the sleep cycle; empty for other kinds."""
    sample: str = ""
    """The beginning of one of the memories, with secrets masked; empty for a forget."""
