"""Verbs of the daemon's own work: sleep, undo, log, watch and status, and its live events."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta

from mnemosyned.memory import consolidation, values
from mnemosyned.memory.injections import InjectionTotals
from mnemosyned.verbs.request import Name, PageSize, Request, RowList, doc

R = TypeVar("R")

LAST_ACTION = "last"
"""What was done last."""
Hours = Annotated[float, Meta(gt=0, le=366 * 24)]
PauseMinutes = Annotated[int, Meta(ge=0, le=24 * 60)]
RowNumber = Annotated[int, Meta(ge=0, le=2**53)]


class Sleep(Request[consolidation.CycleReport], frozen=True, kw_only=True):
    """Run a sleep cycle now.

    Old memories are summarized into episodes; the originals move to the archive. `log` shows the
    result, `undo` reverts it. `stop` ends the running cycle after its current batch and
    reports what it did; `pause_minutes` runs no cycle, and pauses background cycles.

    Raises `SleepInProgress`, and `InvalidRequest` for `stop` or `pause_minutes` with other fields.
    """

    writes = True
    takes_long = True

    session: Annotated[Name | None, doc("only this session")] = None
    force: Annotated[bool, doc("also memories that are not old enough")] = False
    dry_run: Annotated[bool, doc("show the plan; write nothing, call no model")] = False
    stop: Annotated[bool, doc("stop the running cycle after its current batch")] = False
    pause_minutes: Annotated[
        PauseMinutes | None,
        doc("start no cycle in the background for so long; 0 ends a pause"),
    ] = None


class Undone(RowList[values.UndoableAction], frozen=True, kw_only=True):
    """An action that was undone; or all that can be undone, the newest first."""

    actions: list[values.UndoableAction]
    is_list: bool = False
    """Whether it lists what can be undone."""
    dry_run: bool = False
    memories: int = 0
    """Number of memories that are as they were before the action; with `dry_run`, would be."""
    left: dict[str, list[str]] = msgspec.field(default_factory=dict)
    """Ids of memories that are left as they are, 1,000 at most, by the reason."""
    note: str = ""
    """What waits or remains."""
    cycle: consolidation.CycleReport | None = None
    """The report on a sleep cycle that was undone; null for other actions."""


class _Action(Request[R], frozen=True):
    action: Annotated[
        Name, doc("the id of an action or sleep cycle; default: the last one")
    ] = LAST_ACTION


class Undo(_Action[Undone], frozen=True, kw_only=True):
    """Undo the last action.

    Actions are edits, tags, pins, forgets, imports and sleep cycles. Memories that have changed
    again since then stay as they are. A forget can be undone in its grace period. An undo of a
    sleep cycle returns the originals to working memory and deletes the episodes. An undo is not an
    action itself: the next one undoes the action before.

    Raises `NotFound`, `CannotUndo`, `SleepInProgress`, `PartlyDone`, and `InvalidRequest` for
    `list` or `keep_hours` with an action that they do not fit.
    """

    writes = True
    deletes = True
    takes_long = True

    list: Annotated[bool, doc("show what can be undone; change nothing")] = False
    dry_run: Annotated[bool, doc("show what would return; change nothing")] = False
    keep_hours: Annotated[
        Hours | None,
        doc(
            "keep the originals of a sleep cycle in working memory this long; default: until "
            "the next scheduled cycle"
        ),
    ] = None


class Logged(RowList[consolidation.LogEntry], frozen=True):
    """Rows of the consolidation log, newest first."""

    rows: list[consolidation.LogEntry]


class Log(Request[Logged], frozen=True, kw_only=True):
    """List consolidated groups of memories, newest first.

    The rows of a cycle follow its id; each has the id of the episode that was written.

    Raises `StorageFailed`.
    """

    limit: Annotated[PageSize, doc("maximum number of rows")] = 20
    session: Annotated[Name | None, doc("only this session")] = None
    cycle: Annotated[Name | None, doc("only this sleep cycle")] = None
    after: Annotated[
        RowNumber | None, doc("continue after a page: the `id` of its last row")
    ] = None


PATHS_MAX = 100
Paths = Annotated[
    list[Annotated[str, Meta(min_length=1, max_length=4_096)]],
    Meta(max_length=PATHS_MAX),
]


class WatchedFolder(msgspec.Struct, frozen=True, kw_only=True):
    """A folder or file that is watched."""

    path: str
    added_by: Literal["command", "settings"]
    files: int = 0
    """Files in a format that can be watched."""
    stored: int = 0
    """Memories stored of them so far."""
    read_at: datetime | None = None
    """When one of them was last read."""
    problem: str = ""
    """Why it is not watched, or not by its events; empty if all is well."""


class Watching(RowList[WatchedFolder], frozen=True):
    """The folders that are watched."""

    folders: list[WatchedFolder]
    waiting: int = 0
    """Files that are still to be read."""


class _Watched(Request[R], frozen=True):
    paths: Annotated[Paths, doc("absolute paths of folders or files to watch")] = (
        msgspec.field(default_factory=list)
    )


class Watch(_Watched[Watching], frozen=True, kw_only=True):
    """Watch folders: import files, and what is added to them.

    The daemon remembers text that is added to their transcripts of agents' tools, notes in
    Markdown, JSON lines and shell histories. An edited note takes the place of its earlier version.
    Only over the Unix socket.

    Raises `InvalidRequest`, `InvalidText` and `NotFound`.
    """

    writes = True
    local_only = True

    remove: Annotated[bool, doc("stop watching these; their memories stay")] = False


class SleepStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The last and the next sleep cycle."""

    auto: bool
    schedule: str
    last_cycle: datetime | None
    next_cycle: datetime | None
    running: bool
    due: int
    """Memories old enough for the next cycle."""
    progress: consolidation.Progress | None = None
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


class LimitUse(msgspec.Struct, frozen=True):
    """A limit of a memory's owner, and how much of it is used as this daemon counts."""

    name: str
    """As in the settings, such as `requests_per_minute`."""
    limit: int
    used: int
    free_in_s: float = 0.0
    """Seconds until some of it is free; 0 if some is."""


class GroupAccess(msgspec.Struct, frozen=True):
    """A group of owners, and a member's scopes on the group's memory."""

    name: str
    scopes: list[str]
    """Of `read`, `write` and `forget`."""


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the store and the daemon."""

    version: str
    schema_version: int
    database: str
    """The path of the database file, or the URL of the server; without it, where many share it."""
    bytes_on_disk: int
    """Bytes of the whole database; 0 where many share it."""
    tiers: dict[values.Tier, values.TierTotals]
    today: int = 0
    """Memories of today, by the daemon's zone, in every tier."""
    wm_max: int
    sleep: SleepStatus
    summarizer: values.SummarizerStatus
    counter: str
    """The counter of the tokens of contexts."""
    embedder: values.EmbedderStatus
    pid: int
    uptime_s: float
    longest_write_ms: float
    """The longest time that one commit has blocked other writers since the start."""
    purge_due: bool = False
    """Whether words of forgotten memories are still to be purged from the file."""
    recoverable: values.Recoverable = values.Recoverable()
    """Forgotten memories that `restore` still puts back, by the setting `forget.grace_hours`."""
    problems: list[str] = msgspec.field(default_factory=list)
    """Present problems, with their remedies. The watchdog restarts a daemon that has some."""
    warnings: list[str] = msgspec.field(default_factory=list)
    """Remarks on the database file for its owner; empty if all is well."""
    agents: list[values.AgentActivity] = msgspec.field(default_factory=list)
    """What the hooks of each agent's tool did, by client and event."""
    injections: InjectionTotals = InjectionTotals()
    """What agents were given, and the share of it that was rated useful."""
    backup: BackupStatus = BackupStatus()
    restart_needed: list[str] = msgspec.field(default_factory=list)
    """Settings that were changed, and are in force only after a restart."""
    watched: list[WatchedFolder] = msgspec.field(default_factory=list)
    """Folders that are watched."""
    groups: list[GroupAccess] = msgspec.field(default_factory=list)
    """Groups that the owner of the request's token is a member of."""
    clock: str = ""
    """Why the clock is not trusted, and nothing is pruned by age; empty where it is."""
    limits: list[LimitUse] = msgspec.field(default_factory=list)
    """The limits of the memory's owner, where a daemon serves many."""

    @property
    def on_server(self) -> bool:
        """Whether the memory is in a database on a server, and in no file of its own."""
        return self.database.startswith("postgres")


class Status(Request[Stats], frozen=True, kw_only=True):
    """Show counts, sizes, cycles and the summarizer.

    Raises `StorageFailed`.
    """

    is_probe = True


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
    """A live event; fields that its kind does not use are left out."""

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
