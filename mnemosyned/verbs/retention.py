"""Verbs that delete, restore, prune and back up memories."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from mnemosyned.verbs.memories import Selecting, SelectionPreview
from mnemosyned.verbs.request import ById, Request, doc

Days = Annotated[float, Meta(gt=0, le=366_000)]
BackupFile = Annotated[str, Meta(min_length=1, max_length=4_096)]
Characters = Annotated[int, Meta(ge=0)]


class Forgotten(SelectionPreview, frozen=True, kw_only=True):
    """The receipt, in numbers; only a preview has a line for each memory."""

    working: int
    archived: int
    details: int
    """Exact values deleted with them."""
    learnings: int
    """Learnings from these memories, or that match the filters themselves."""
    episodes_removed: int
    episodes_rewritten: int
    """Summaries of every level, rewritten from what remains."""
    pruned_losing_summary: int
    """Pruned originals that stay, but lose their part of the summary; only with `dry_run`."""
    file_bytes: int
    """Size of the file, which is rewritten at 100 MB a second; only with `dry_run`."""
    complete: bool
    """Whether the words have left every file of the database, but for what `backups` names. False
    while the purge waits for other requests, or for another program that reads the database."""
    purge_in_s: float | None = None
    """Seconds until the purge, while it waits for other requests; null otherwise."""
    reason: str = ""
    """Why the purge failed; empty where it is complete or only waits."""
    in_force_again: list[str] = msgspec.field(default_factory=list)
    """Ids of older memories that hold again, 1,000 at most: what superseded them is forgotten."""
    final_at: datetime | None = None
    """Until then the `recoverable` ones can be put back, by the setting `forget.grace_hours`; null
    where none can."""
    recoverable: int = 0
    """Memories that can be put back until `final_at`. The others were pruned: nothing is kept of
    them, and they are deleted at once."""
    call: str = ""
    """The id that restores all memories of this call; empty without a grace period."""
    backups: list[str]
    """Files next to the database that look like copies of it, and what a database server keeps by
    itself: nothing was deleted from them."""


class Forget(Selecting[Forgotten], frozen=True, kw_only=True):
    """Delete memories and all that was made from them.

    Select them by ids (an episode includes its originals) or by filters, which all must match.
    Memories, learnings, index entries, summaries and log rows are deleted. The shell shows a
    preview and asks first, or needs --yes.

    Raises `NotFound`, `InvalidText`, `InvalidTime`, `BatchChanged`, `NotPurged` and `PartlyDone`.
    """

    deletes = True

    now: Annotated[
        bool, doc("delete at once, without the grace period of the settings")
    ] = False


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """An original that is back in working memory, pinned; or memories that were forgotten."""

    id: str
    episode: str = ""
    """The episode it was in; empty for what was forgotten."""
    episode_removed: bool = False
    """True if it was the episode's last original; otherwise the episode was rewritten."""
    memories: int = 1
    """Number of memories that are back in working memory."""


class Restore(ById[Restored], frozen=True):
    """Bring an original back to working memory, pinned.

    Its episode is rewritten without it. `unpin` lets sleep consolidate it again. During the grace
    period of `forget`, a forgotten memory, or all that one call forgot, is put back as it was.

    Raises `NotFound`, `WordsPruned`, `BatchChanged`, and `InvalidRequest` for an id that is not
    an archived original's.
    """

    writes = True
    takes_long = True


class Pruned(msgspec.Struct, frozen=True, kw_only=True):
    """Originals whose words the archive's retention deleted, or would delete."""

    dry_run: bool
    memories: int
    characters: int
    oldest: datetime | None
    newest: datetime | None
    more: bool
    """Whether there is more than one call prunes."""
    doubt: str = ""
    """Why the clock that tells the age of originals is not trusted; empty where it is."""


class Prune(Request[Pruned], frozen=True, kw_only=True):
    """Delete the text of old originals.

    The settings or the options say how old; by default the archive keeps everything. All
    originals of an episode are pruned together. Summaries, exact values and provenance stay.

    Raises `ClockJumped` and `PartlyDone`.
    """

    writes = True
    deletes = True
    takes_long = True

    keep_days: Annotated[
        Days | None, doc("prune originals older than this many days")
    ] = None
    characters_max: Annotated[
        Characters | None, doc("prune the oldest until this many characters remain")
    ] = None
    dry_run: Annotated[bool, doc("show the preview; prune nothing")] = False
    believe_clock: Annotated[
        bool, doc("trust the date, although the clock jumped ahead")
    ] = False


class BackedUp(msgspec.Struct, frozen=True, kw_only=True):
    """A complete copy of the database, on disk and read through."""

    file: str
    bytes: int
    memories: int = 0
    episodes: int = 0
    problems: list[str] = msgspec.field(default_factory=list)
    """Faults that the database itself has, and the copy with it."""


class Backup(Request[BackedUp], frozen=True):
    """Write a complete copy of the database to a file.

    Without a file it gets a name with its date in the backup folder. Other requests continue. The
    copy is checked before it gets its name. An earlier backup of that name is replaced once the new
    one is complete. A plain copy of the database file is not a backup: its newest entries are in
    the write-ahead log.

    Raises `InvalidRequest` for a path that cannot be used, and `StorageFailed`.
    """

    # It writes another file, but a daemon that is stopping has no time for it.
    writes = True
    takes_long = True

    file: Annotated[
        BackupFile | None,
        doc(
            "the absolute path of the copy, or of a folder for it; default: "
            "a dated name in the backup folder"
        ),
    ] = None
