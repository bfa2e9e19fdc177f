"""Verbs of consolidation: sleep, undo and log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from mnemosyned.domain.sleep.cycles import CycleReport, LogEntry
from mnemosyned.verbs.request import Name, PageSize, Request

R = TypeVar("R")

LAST_CYCLE = "last"
"""The newest cycle that has anything to put back."""
Hours = Annotated[float, Meta(gt=0, le=366 * 24)]
PauseMinutes = Annotated[int, Meta(ge=0, le=24 * 60)]


class Sleep(
    Request[CycleReport], frozen=True, forbid_unknown_fields=True, kw_only=True
):
    """Run a sleep cycle now.

    Old memories are summarized into episodes; the originals move to the archive. `log` shows the
    result, `undo` takes it back. `stop` ends the running cycle after its present batch and
    reports what it did; `pause_minutes` runs none, and keeps others from starting by themselves.

    Raises `SleepInProgress`, and `InvalidRequest` for `stop` or `pause_minutes` with other fields.
    """

    writes = True
    takes_long = True

    session: Annotated[Name | None, Meta(description="only this session")] = None
    force: Annotated[
        bool, Meta(description="also memories that are not old enough")
    ] = False
    dry_run: Annotated[
        bool, Meta(description="show the plan; write nothing, call no model")
    ] = False
    stop: Annotated[
        bool, Meta(description="stop the running cycle after its present batch")
    ] = False
    pause_minutes: Annotated[
        PauseMinutes | None,
        Meta(
            description="start no cycle in the background for so long; 0 ends a pause"
        ),
    ] = None


class _Cycle(Request[R], frozen=True, forbid_unknown_fields=True):
    cycle: Annotated[
        Name, Meta(description="the id of the cycle; default: the last one")
    ] = LAST_CYCLE


class Undo(_Cycle[CycleReport], frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Take back a sleep cycle.

    Its originals return to working memory and its episodes are deleted. Without a cycle, the last
    one that can be taken back is meant.

    Raises `NotFound`, `CannotUndo`, `SleepInProgress` and `PartlyDone`.
    """

    writes = True
    takes_long = True

    dry_run: Annotated[
        bool, Meta(description="show what would return; change nothing")
    ] = False
    keep_hours: Annotated[
        Hours | None,
        Meta(
            description="keep the originals in working memory this long; default: until the next "
            "scheduled cycle"
        ),
    ] = None


class Logged(msgspec.Struct, frozen=True):
    """Rows of the consolidation log, newest first."""

    rows: list[LogEntry]

    def __iter__(self) -> Iterator[LogEntry]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)


class Log(Request[Logged], frozen=True, forbid_unknown_fields=True, kw_only=True):
    """List what was consolidated, newest first.

    The rows of a cycle follow its id; each has the id of the episode that was written.

    Raises `StorageFailed`.
    """

    limit: Annotated[PageSize, Meta(description="maximum number of rows")] = 20
    session: Annotated[Name | None, Meta(description="only this session")] = None
    cycle: Annotated[Name | None, Meta(description="only this sleep cycle")] = None
