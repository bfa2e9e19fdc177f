"""The verbs that forget, pin, restore, prune and back up: their requests, results and help."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from mnemosyned.domain.retention import Foreseen
from mnemosyned.verbs.request import Instant, Name, Names, Question, Request

Days = Annotated[float, Meta(gt=0, le=366_000)]
Characters = Annotated[int, Meta(ge=0)]


# -------------------------------------------------------------------- forget


class Forgotten(msgspec.Struct, frozen=True, kw_only=True):
    """The receipt: how much is gone. It holds no content; a preview has a line for each memory."""

    dry_run: bool
    memories: int
    working: int
    archived: int
    details: int
    """Exact values that went with them."""
    learnings: int
    """What was learned from them, or says itself what is to be forgotten."""
    episodes_removed: int
    episodes_rewritten: int
    """Summaries of every level, rewritten from what remains."""
    lines: list[Foreseen]
    """With `dry_run`, the memories that would go, 10,000 at most."""
    further: int = 0
    """With `dry_run`, how many come after those: `after`, with the id of the last, lists them."""
    untold: int
    """With `dry_run`, pruned originals that stay, but lose what their summary says of them."""
    file_bytes: int
    """With `dry_run`, the size of the file, which is written anew: 100 MB take about a second."""
    complete: bool
    """Whether the words are in no file of the database any more. False where the purge follows:
    while others are served, or while another program reads the file."""
    purge_in_s: float | None = None
    """Seconds until the purge, where it waits because others are served; null otherwise."""
    reason: str = ""
    """Why it failed to be complete; empty where the purge waits its turn, or for another program
    that reads the file."""
    backups: list[str]
    """Files beside the database that look like copies of it: nothing was forgotten in them."""


class Forget(Request[Forgotten], frozen=True, forbid_unknown_fields=True):
    """Delete memories, and what was learned of them, from every tier, index, summary and log.

    Name one by its id (an episode's takes its originals along), or say which: those for which
    everything said holds. The shell shows what would go and asks first, or needs --yes.
    """

    writes = True

    id: Annotated[Name | None, Meta(description="the id of a memory or an episode")] = (
        None
    )
    query: Annotated[
        Question | None, Meta(description="those with all of these words")
    ] = None
    session: Annotated[Names, Meta(description="those of this session, or these")] = (
        None
    )
    source: Annotated[Names, Meta(description="those of this source, or these")] = None
    since: Annotated[
        Instant | None, Meta(description="those that happened at or after")
    ] = None
    until: Annotated[Instant | None, Meta(description="those that happened before")] = (
        None
    )
    person: Annotated[
        Name | None,
        Meta(description="those that mention this name, or were said by that person"),
    ] = None
    dry_run: Annotated[bool, Meta(description="show what would go; forget nothing")] = (
        False
    )
    after: Annotated[
        Name | None, Meta(description="with dry_run: list what comes after this memory")
    ] = None


# ---------------------------------------------------------- keeping and pruning


class Pinned(msgspec.Struct, frozen=True):
    """A working memory that stays, or may go again."""

    id: str
    pinned: bool


class Pin(Request[Pinned], frozen=True, forbid_unknown_fields=True):
    """Keep a memory in working memory, whatever its age."""

    writes = True

    id: Annotated[Name, Meta(description="the id of a working memory")]
    off: Annotated[bool, Meta(description="let it go again")] = False


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """An original that is back in working memory, pinned."""

    id: str
    episode: str
    episode_removed: bool
    """True where nothing was left of the episode; else it was rewritten without this one."""


class Restore(Request[Restored], frozen=True, forbid_unknown_fields=True):
    """Bring an original back to working memory, pinned.

    Its episode is rewritten without it. `mnem pin --off` lets sleep take it again.
    """

    writes = True

    id: Annotated[Name, Meta(description="the id of an original")]


class Pruned(msgspec.Struct, frozen=True, kw_only=True):
    """What the archive's retention gave up, or would."""

    dry_run: bool
    memories: int
    characters: int
    oldest: datetime | None
    newest: datetime | None
    more: bool
    """Whether there is more than one call takes."""
    doubt: str = ""
    """Why the clock by which originals are old is not believed; empty where it is."""


class Prune(Request[Pruned], frozen=True, forbid_unknown_fields=True):
    """Delete the words of old originals.

    Which ones, the settings or the options say; by default the archive keeps everything. An
    episode's originals go together. Summaries, exact details and provenance stay.
    """

    writes = True

    keep_days: Annotated[
        Days | None,
        Meta(description="originals older than so many days lose their words"),
    ] = None
    characters_max: Annotated[
        Characters | None,
        Meta(description="beyond so many characters in all, the oldest do"),
    ] = None
    dry_run: Annotated[bool, Meta(description="show what would go; prune nothing")] = (
        False
    )
    believe_clock: Annotated[
        bool, Meta(description="the date is right, though the clock jumped ahead")
    ] = False


# -------------------------------------------------------------------- backup


class BackedUp(msgspec.Struct, frozen=True, kw_only=True):
    """A whole copy of the memory, on disk."""

    file: str
    bytes: int


class Backup(Request[BackedUp], frozen=True, forbid_unknown_fields=True):
    """Write a whole copy of the memory to a file, while everything goes on.

    An earlier backup of that name is replaced once the new one is whole. Copying the database
    itself while it is in use gives no backup: what was written last is not in that file yet.
    """

    writes = (
        True  # another file, but once the daemon is stopping there is no time for it
    )

    file: Annotated[
        str,
        Meta(
            description="the path of the copy, absolute", min_length=1, max_length=4_096
        ),
    ]
