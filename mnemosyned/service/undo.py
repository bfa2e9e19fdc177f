"""`CycleUndo`: puts the originals of a sleep cycle back into working memory, for a while."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime, timedelta

from mnemosyned.errors import CannotUndo, NotFound
from mnemosyned.instants import shift
from mnemosyned.logs import logger
from mnemosyned.memory.consolidation import (
    CycleReport,
    CycleStatus,
    GroupStatus,
    LogEntry,
    Trigger,
)
from mnemosyned.memory.forgetting import UndoneEpisode, undone_group
from mnemosyned.memory.ports import MemoryStore
from mnemosyned.service.forgetting import RetentionService
from mnemosyned.service.intake import run_in_chunks
from mnemosyned.sleep.context import CANDIDATES_MAX
from mnemosyned.sleep.sleeper import Sleeper
from mnemosyned.verbs.upkeep import LAST_CYCLE, Undo

UNDO_CHUNK = 8
"""Episodes undone in one transaction, each of up to `sleep.group_entries_max` memories."""
HELD_MIN = timedelta(hours=1)
"""Memories put back stay at least this long, however soon the next cycle is."""

log = logger()


class CycleUndo:
    """Undoes sleep cycles, in short steps that can be repeated."""

    def __init__(
        self,
        *,
        store: MemoryStore,
        sleeper: Sleeper,
        retention: RetentionService,
    ) -> None:
        """Undo cycles of `sleeper` in `store`; `retention` rewrites the summaries above them."""
        self._store = store
        self._sleeper = sleeper
        self._cycle = sleeper.cycle
        self._clock = sleeper.cycle.clock
        self._retention = retention

    def undo(self, request: Undo) -> CycleReport:
        """Move the originals of a cycle back to working memory; with `dry_run`, only preview that.

        The report has the originals that could not be moved. No cycle takes them again before the
        next scheduled one, or for as long as requested. Raises `NotFound` and `CannotUndo`.
        """
        started = time.monotonic()
        with self._cycle.lease.exclusive(purpose="an undo"):
            cycle = request.cycle
            if cycle == LAST_CYCLE:
                cycle = self._store.undo.last_cycle() or ""
            if not cycle:
                raise CannotUndo(
                    "nothing to undo: no sleep cycle has originals that could return to working "
                    "memory; `get` with `history` shows what an edit changed",
                    field="cycle",
                )
            entries = self._find_undoable_entries(cycle)
            now = self._cycle.now()
            if request.keep_hours is None:
                held_until = max(shift(now, HELD_MIN), self._sleeper.next_cycle or now)
            else:
                held_until = shift(now, timedelta(hours=request.keep_hours))
            returned = self._put_back(
                entries, dry_run=request.dry_run, held_until=held_until
            )
        groups = tuple(
            undone_group(entry, returned[entry.episode], dry_run=request.dry_run)
            for entry in entries
            if entry.episode
        )
        is_partial = any(
            group.error or group.status is GroupStatus.KEPT for group in groups
        )
        restorable = sum(episode.restored for episode in returned.values())
        report = CycleReport(
            cycle=cycle,
            status=CycleStatus.PARTIAL if is_partial else CycleStatus.UNDONE,
            trigger=Trigger.EXPLICIT,
            dry_run=request.dry_run,
            candidates=sum(entry.items_consolidated for entry in entries),
            groups=groups,
            duration_s=time.monotonic() - started,
            promoted=0,
            evicted=0,
            failed=sum(group.status is GroupStatus.KEPT for group in groups),
            chars_before=sum(group.chars_before for group in groups),
            chars_after=0,
            restored=0 if request.dry_run else restorable,
            held_until=held_until if restorable else None,
        )
        if not report.dry_run:
            log.info(
                "cycle_undone",
                cycle=cycle,
                restored=report.restored,
                whole=report.status is CycleStatus.UNDONE,
            )
        return report

    def _put_back(
        self, entries: Sequence[LogEntry], *, dry_run: bool, held_until: datetime
    ) -> dict[str, UndoneEpisode]:
        """Move the originals of log entries back to working memory; return {episode id: outcome}.

        With `dry_run`, only preview that. Cycles leave the originals alone until `held_until`.
        Raises `PartlyDone`.
        """
        ids = [entry.episode for entry in entries if entry.episode]
        if dry_run:
            preview = self._store.undo.preview(ids)
            return {returned.episode: returned for returned in preview}
        now = self._clock.now()
        try:
            undone = run_in_chunks(
                ids,
                UNDO_CHUNK,
                lambda chunk: self._store.undo.apply(
                    chunk, now=now, held_until=held_until
                ),
                report="episodes were undone",
                count=len,
            )
        finally:
            self._retention.rewrite_stale_or_log()
        return {returned.episode: returned for step in undone for returned in step}

    def _find_undoable_entries(self, cycle: str) -> list[LogEntry]:
        """Return the log entries of a cycle's episodes that were not undone before.

        Raises `NotFound` for an unknown cycle, and `CannotUndo` if there are none.
        """
        entries = self._store.sleep.log(limit=CANDIDATES_MAX, cycle=cycle)
        if not entries:
            raise NotFound(
                f"no cycle has the id {cycle!r}; `log` shows them", field="cycle"
            )
        moved = [entry for entry in entries if entry.episode and not entry.level]
        left = [entry for entry in moved if entry.undone_at is None]
        if not left:
            reason = "was undone already" if moved else "moved nothing"
            raise CannotUndo(f"cycle {cycle} {reason}", field="cycle")
        return left
