"""Values and ports of captured conversations and files: sessions of agents, watched folders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

CAPTURED_PREFIX = "a-"
"""Beginning of the id of every memory captured from an agent's conversation."""
IMPORTED_PREFIX = "import-"
"""Beginning of the id of every imported memory that had no id of its own."""
SESSIONS_MAX = 10_000
"""Number of agents' sessions that are kept, those seen last."""
SHOWN_MAX = 500
"""Number of injected memories whose ids are kept for a session, the last ones."""
CLIENTS_MAX = 200
"""The rows of activity that are kept."""
FAILURE_CHARS_MAX = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSession:
    """One conversation with an agent."""

    session: str
    """The session of its memories: client and conversation, as in "codex:0199"."""
    client: str
    conversation: str
    started_at: datetime
    seen_at: datetime
    project: str = ""
    directory: str = ""
    transcript: str = ""
    file: str = ""
    """Device and inode of the transcript when it was last read."""
    position: int = 0
    """Bytes of the transcript that were read."""
    informed_at: datetime | None = None
    """When the briefing of the conversation was injected."""
    shown: tuple[str, ...] = ()
    """Ids of the memories injected into it, the oldest first."""


BACKGROUND = "background"
"""Event under which captures by the daemon's own thread are counted, as no hook waits for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCall:
    """One call of a hook, or one of several from the same client."""

    client: str
    event: str
    called_at: datetime
    duration_ms: float
    stored: int = 0
    """Memories stored."""
    characters: int = 0
    """Characters injected into the agent's context."""
    failure: str = ""


FOLDERS_MAX = 1_000
FILES_MAX = 200_000
"""Files of a folder whose state is read; `watch.files_max` allows no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedFile:
    """A file as it was when it was last read."""

    path: str
    file: str
    """Device and inode."""
    size: int
    modified_ns: int
    read_at: datetime
    format: str = ""
    """Empty where it has none that is followed."""
    position: str = ""
    """Where the format goes on."""
    memories: Mapping[str, str] = field(default_factory=dict)
    """The parts of a note by the hash of their words, and the memory each was stored as."""
    stored: int = 0
    """Memories stored of it so far."""


@dataclass(frozen=True, slots=True)
class FolderTotals:
    """Counts of the files below a folder."""

    files: int
    stored: int
    read_at: datetime | None
