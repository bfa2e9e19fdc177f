"""Values and ports of captured conversations and files: sessions of agents, watched folders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from mnemosyned.memory.values import AgentActivity, Episode, MemoryRecord

CAPTURED_PREFIX = "a-"
"""The beginning of the id of every memory that was captured from an agent's conversation."""
IMPORTED_PREFIX = "import-"
"""The beginning of the id of every memory that was imported and brought no id of its own."""
SESSIONS_MAX = 10_000
"""The sessions that are kept, the last seen ones."""
SHOWN_MAX = 500
"""Ids kept of the memories injected into a session, the last ones."""
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


class AgentStore(Protocol):
    """Keeps the sessions of agents, the newest thousands, and counts their hooks' calls."""

    def session(self, session: str) -> AgentSession | None:
        """Return the stored state of an agent's session; None if its id is unknown."""
        ...

    def keep_session(self, session: AgentSession) -> None:
        """Add a session, or replace its project, directory, transcript and time last seen."""
        ...

    def advance(self, session: str, position: int, file: str) -> None:
        """Save how many bytes of a session's transcript were read.

        `position` is the number of bytes, `file` the device and inode of the transcript.
        """
        ...

    def note_shown(
        self, session: str, ids: Sequence[str], *, informed_at: datetime | None = None
    ) -> None:
        """Add memory ids to those injected into an agent's session.

        `informed_at` is the time of the session's briefing; None leaves the saved time as it is.
        """
        ...

    def latest(self, sessions: Sequence[str], limit: int) -> list[MemoryRecord]:
        """Return up to `limit` of the newest memories of these sessions, from every tier.

        The newest come first.
        """
        ...

    def latest_episode(self, session: str) -> Episode | None:
        """Return the newest episode of a session, without source ids and exact values, or None."""
        ...

    def sessions_of(self, project: str, limit: int) -> list[str]:
        """Return up to `limit` ids of a project's sessions that have memories, the last seen first.

        An empty project name has no sessions.
        """
        ...

    def projects_of(self, sessions: Sequence[str]) -> dict[str, str]:
        """Return the project of each of these sessions by session id.

        Sessions without a known project are left out.
        """
        ...

    def recent(self, limit: int) -> list[AgentSession]:
        """Return up to `limit` sessions that have a transcript, the last seen first."""
        ...

    def unknown(self, ids: Sequence[str]) -> list[str]:
        """Return those of the ids that neither a stored nor a forgotten memory has."""
        ...

    def count(self, call: AgentCall) -> None:
        """Add the numbers of one hook call to the sums for its client and event."""
        ...

    def activity(self) -> list[AgentActivity]:
        """Return the number of hook calls, and sums about them, for each client and event."""
        ...


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


class WatchStore(Protocol):
    """Keeps watched folders and files."""

    def folders(self) -> list[str]:
        """Return the paths of the watched folders, in alphabetical order."""
        ...

    def add_folder(self, path: str, added_at: datetime) -> None:
        """Add a folder to watch; change nothing if it is watched already."""
        ...

    def remove_folder(self, path: str) -> bool:
        """Stop watching a folder, and delete the states of its files.

        Return False if it was not watched.
        """
        ...

    def file(self, path: str) -> WatchedFile | None:
        """Return the stored state of a file by its path; None if it was never read."""
        ...

    def moved_from(self, file: str) -> Sequence[WatchedFile]:
        """Return the stored states of files with this device and inode, whatever their paths."""
        ...

    def keep_file(self, state: WatchedFile) -> None:
        """Save the state of a file that was read, in place of the state saved for its path."""
        ...

    def drop_files(self, paths: Sequence[str]) -> None:
        """Delete the stored states of the files at these paths."""
        ...

    def states(self, folder: str) -> dict[str, tuple[int, int]]:
        """Return size in bytes and modification time in ns of each file below a folder, by path.

        They are those of the last reading.
        """
        ...

    def totals(self, folder: str) -> FolderTotals:
        """Count the files below a folder whose format is known, and the memories stored from them."""
        ...
