"""Live events: what the daemon did, as it happens."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec


class EventKind(StrEnum):
    """Kind of an event."""

    REMEMBERED = "remembered"
    RECALLED = "recalled"
    FORGOTTEN = "forgotten"
    CHANGED = "changed"
    """Another verb that writes: `verb` names it."""
    CAPTURED = "captured"
    """A hook of an agent's tool was called: `client` and `hook` name it."""
    CYCLE_BEGUN = "cycle_begun"
    CYCLE_PROGRESS = "cycle_progress"
    CYCLE_ENDED = "cycle_ended"
    REFUSED = "refused"
    """A request failed: `verb`, `code` and `message` say which and why."""
    DROPPED = "dropped"
    """The stream ends: events were not read in time, or the token is valid no more; `message` says
    which."""
    STOPPING = "stopping"
    """The daemon stops; the stream ends."""


class EventMemory(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A new memory, with the beginning of its text; secrets are masked."""

    id: str
    created_at: datetime
    text: str
    session: str = ""
    source: str | None = None
    role: str = ""


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that happened. Fields that say nothing of its kind are left out."""

    id: int
    """Ascending: a client that comes back goes on after the last one. 0: it cannot."""
    kind: EventKind
    at: datetime
    count: int = 0
    """Memories remembered, recalled, forgotten, captured or moved to the archive."""
    session: str = ""
    source: str = ""
    memories: list[EventMemory] = msgspec.field(default_factory=list)
    """The first of the new memories."""
    ids: list[str] = msgspec.field(default_factory=list)
    """Ids that were asked for by name."""
    verb: str = ""
    client: str = ""
    hook: str = ""
    cycle: str = ""
    trigger: str = ""
    status: str = ""
    episodes: int = 0
    """Summaries that a cycle wrote."""
    done: int = 0
    """Memories that the running cycle has dealt with."""
    total: int = 0
    """Memories that it found."""
    duration_s: float = 0.0
    code: str = ""
    message: str = ""


decode_event = msgspec.json.Decoder(Event).decode
"""Made at import, by one thread."""
encode_event = msgspec.json.Encoder().encode
