"""The verb `status`: what the daemon reports about itself."""

from __future__ import annotations

from datetime import datetime

import msgspec

from mnemosyned.domain.keeping.retention import Recoverable
from mnemosyned.domain.memory import Tier, TierTotals
from mnemosyned.domain.sleep.cycles import Progress
from mnemosyned.domain.statuses import AgentActivity, EmbedderStatus, SummarizerStatus
from mnemosyned.verbs.request import Request
from mnemosyned.verbs.watching import WatchedFolder


class SleepStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The last and the next sleep cycle."""

    auto: bool
    schedule: str
    last_cycle: datetime | None
    next_cycle: datetime | None
    running: bool
    due: int
    """Memories old enough for the next cycle."""
    progress: Progress | None = None
    """Progress of the running cycle; null when none runs."""
    waits_for: str = ""
    """Why the last scheduled cycle was postponed; empty if it was not."""
    paused_until: datetime | None = None
    """Until then no cycle starts in the background, as one was stopped or `sleep` said so."""


class BackupStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The backups with a date in the backup folder."""

    folder: str = ""
    scheduled: bool = False
    count: int = 0
    last: datetime | None = None
    next: datetime | None = None
    """When the next scheduled one is due; null without a schedule."""
    problem: str = ""
    """Why the last scheduled one failed; empty if it did not."""


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the store and the daemon."""

    version: str
    schema_version: int
    database: str
    """The path of the database file, or the URL of the server; without it, where many share it."""
    bytes_on_disk: int
    """Bytes of the whole database; 0 where many share it."""
    tiers: dict[Tier, TierTotals]
    today: int = 0
    """Memories of today, by the daemon's zone, in every tier."""
    wm_max: int
    sleep: SleepStatus
    summarizer: SummarizerStatus
    counter: str
    """The counter of the tokens of contexts."""
    embedder: EmbedderStatus
    pid: int
    uptime_s: float
    longest_write_ms: float
    """The longest time that one commit has blocked other writers since the start."""
    purge_due: bool = False
    """Whether words of forgotten memories are still to be purged from the file."""
    recoverable: Recoverable = Recoverable()
    """Forgotten memories that `restore` still puts back, by the setting `forget.grace_hours`."""
    problems: list[str] = msgspec.field(default_factory=list)
    """Present problems, with their remedies. The watchdog restarts a daemon that has some."""
    warnings: list[str] = msgspec.field(default_factory=list)
    """Remarks on the database file for its owner; empty if all is well."""
    agents: list[AgentActivity] = msgspec.field(default_factory=list)
    """What the hooks of each agent's tool did, by client and event."""
    backup: BackupStatus = BackupStatus()
    restart_needed: list[str] = msgspec.field(default_factory=list)
    """Settings that were changed, and are in force only after a restart."""
    watched: list[WatchedFolder] = msgspec.field(default_factory=list)
    """Folders whose files are followed."""
    clock: str = ""
    """Why the clock is not trusted, and nothing is pruned by age; empty where it is."""

    @property
    def on_server(self) -> bool:
        """Whether the memory is in a database on a server, and in no file of its own."""
        return self.database.startswith("postgres")


class Status(Request[Stats], frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Show counts, sizes, cycles and the summarizer.

    Raises `StorageFailed`.
    """
