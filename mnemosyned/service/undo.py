"""`UndoService`: reverses edits, tags, pins, forgets, imports and sleep cycles, for a limited time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import TypeVar

from mnemosyned.errors import CannotUndo, InvalidRequest, NotFound
from mnemosyned.instants import shift
from mnemosyned.logs import logger
from mnemosyned.memory.consolidation import (
    CycleReport,
    CycleStatus,
    GroupStatus,
    LogEntry,
)
from mnemosyned.memory.forgetting import UndoneEpisode, undone_group
from mnemosyned.memory.ports import MemoryStore
from mnemosyned.memory.values import (
    ACTIONS_KEPT,
    ACTIONS_LISTED_MAX,
    Action,
    ActionKind,
    ActionStep,
    MemoryRecord,
    UndoableAction,
)
from mnemosyned.service.changes import CHANGED_SINCE, ChangeService
from mnemosyned.service.forgetting import RetentionService
from mnemosyned.service.intake import CHUNK, run_in_chunks
from mnemosyned.service.reading import preview_lines
from mnemosyned.sleep.context import CANDIDATES_MAX, EMPTY_REPORT
from mnemosyned.sleep.sleeper import Sleeper
from mnemosyned.verbs.upkeep import LAST_ACTION, Undo, Undone

UNDO_CHUNK = 8
"""Episodes undone in one transaction, each of up to `sleep.group_entries_max` memories."""
HELD_MIN = timedelta(hours=1)
"""Minimum time for which restored memories stay in working memory, however soon the next cycle is."""
LEFT_MAX = 1_000
"""Maximum ids, in a result, of memories that an undo left unchanged."""

R = TypeVar("R")
log = logger()

Left = dict[str, list[str]]
"""Ids of memories that an undo leaves as they are, by the reason."""
Outcome = tuple[int, Left, str]
"""The number of memories that an undo changed, those it left, and a note."""


def make_import_action(import_id: str | None, now: datetime) -> Action | None:
    """Return a new action named `import_id`, None without an id. Raises `InvalidRequest` for a reserved id."""
    if import_id == LAST_ACTION:
        raise InvalidRequest(
            f"{import_id} means the last action; give the import another id",
            field="import_id",
        )
    return Action(import_id, ActionKind.IMPORT, now) if import_id else None


@dataclass(eq=False, kw_only=True)
class UndoService:
    """Undoes recorded actions and sleep cycles, in short steps that can be repeated."""

    store: MemoryStore
    sleeper: Sleeper
    retention: RetentionService
    changes: ChangeService

    def undo(self, request: Undo) -> Undone:
        """Undo an action, or list what can be undone; with `dry_run`, only preview the undo.

        Raises `NotFound`, `CannotUndo`, `SleepInProgress` and `InvalidRequest`.
        """
        if request.list:
            if request != Undo(list=True):
                raise InvalidRequest(
                    "list shows what can be undone; give nothing else", field="list"
                )
            return Undone(actions=self._list_actions(), is_list=True)
        while True:
            recorded = self._find_action(request.action)
            if recorded is None or recorded.kind is ActionKind.SLEEP:
                cycle = recorded.id if recorded else request.action
                return self._undo_cycle(request, cycle)
            if request.keep_hours is not None:
                raise InvalidRequest(
                    "keep_hours is for a sleep cycle", field="keep_hours"
                )
            described = self._add_details(recorded)
            undo = {
                ActionKind.EDIT: lambda action, request: self.changes.undo_edit(
                    action.id, action.at, dry_run=request.dry_run
                ),
                ActionKind.FORGET: self._undo_forget,
                ActionKind.IMPORT: self._undo_import,
                ActionKind.PIN: self._undo_pins,
                ActionKind.UNPIN: self._undo_pins,
            }.get(recorded.kind, self._undo_tags)
            memories, left, note = undo(recorded, request)
            left = {reason: ids[:LEFT_MAX] for reason, ids in left.items() if ids}
            if memories or left or request.action != LAST_ACTION:
                break
            # An undo that was interrupted has undone it: the action before it is the last one.
            self.store.undo.delete(recorded.id)
        if not memories:
            reasons = ", ".join(left) or "nothing of it is left"
            raise CannotUndo(
                f"the {recorded.kind.value} {recorded.id} cannot be undone: {reasons}. "
                "`mnem undo --list` shows other actions",
                field="action",
            )
        if not request.dry_run:
            self.store.undo.delete(recorded.id)
            log.info("action_undone", kind=recorded.kind.value, count=memories)
            described = replace(described, sample="")  # a token may lack the scope read
        return Undone(
            actions=[described],
            dry_run=request.dry_run,
            memories=memories,
            left=left,
            note=note,
        )

    def _find_action(self, id: str) -> UndoableAction | None:
        """Return the recorded action with this id; None if there is none, as for the id of a cycle.

        For `LAST_ACTION`, return the newest action or cycle. Raises `CannotUndo` if there is neither.
        """
        since = shift(self.sleeper.cycle.clock.now(), -ACTIONS_KEPT)
        if id != LAST_ACTION:
            return next(iter(self.store.undo.actions(since=since, id=id)), None)
        newest = [
            *self.store.undo.actions(since=since),
            *self.store.undo.cycles(),
        ]
        if not newest:
            raise CannotUndo(
                "nothing to undo: no edit, tag, pin, forget or import is recorded, and no sleep "
                "cycle has originals that could return to working memory",
                field="action",
            )
        return max(newest, key=attrgetter("at"))

    def _list_actions(self) -> list[UndoableAction]:
        """Return the actions and sleep cycles that can be undone, the newest first."""
        now = self.sleeper.cycle.clock.now()
        recorded = self.store.undo.actions(
            since=shift(now, -ACTIONS_KEPT), limit=ACTIONS_LISTED_MAX
        )
        actions = [self._add_details(action) for action in recorded]
        actions = [
            action
            for action in actions
            if action.memories and action.until and action.until > now
        ]
        actions += self.store.undo.cycles(limit=ACTIONS_LISTED_MAX)
        return sorted(actions, key=attrgetter("at"), reverse=True)[:ACTIONS_LISTED_MAX]

    def _add_details(self, action: UndoableAction) -> UndoableAction:
        """Return an action with the time until which undo works, and a sample text or a forget's count."""
        if action.kind is ActionKind.FORGET:
            keys = self.store.deletion.recoverable_keys([action.id])
            until = self.store.deletion.recoverable_until(action.id)
            return replace(action, memories=len(keys), until=until)
        steps = self.store.undo.steps(action.id, limit=1)
        ids = [step.memory for step in steps]
        lines, _ = preview_lines(self.store, ids, after=None)
        sample = lines[0].snippet if lines else ""
        return replace(action, until=shift(action.at, ACTIONS_KEPT), sample=sample)

    def _undo_tags(self, action: UndoableAction, request: Undo) -> Outcome:
        """Remove the tags that an action added, or add back the removed tags; with `dry_run`, only count."""
        steps, left = self._split_steps(action)
        removes = action.kind is ActionKind.TAG
        memories = self._read_memories(steps)
        by_tag: dict[str, list[str]] = {}
        for id, tag in ((step.memory, step.tag) for step in steps):
            if id in memories and (tag in memories[id].tags) is removes:
                by_tag.setdefault(tag, []).append(id)
        changed = set(chain.from_iterable(by_tag.values()))
        changes = self.store.changes
        for tag, ids in by_tag.items() if not request.dry_run else ():
            _run_chunks(ids, partial(changes.tag, tags=[tag], remove=removes))
        return len(changed), left, ""

    def _undo_pins(self, action: UndoableAction, request: Undo) -> Outcome:
        """Unpin the memories that an action pinned, or pin the unpinned ones; with `dry_run`, only count."""
        steps, left = self._split_steps(action)
        was_pinned = action.kind is ActionKind.UNPIN
        memories = self._read_memories(steps)
        archived = [id for id, memory in memories.items() if memory.episode]
        ids = [
            id
            for id, memory in memories.items()
            if not memory.episode and memory.pinned is not was_pinned
        ]
        if not request.dry_run:
            _run_chunks(ids, partial(self.store.changes.pin, pinned=was_pinned))
        return len(ids), left | {"archived since": archived}, ""

    def _undo_forget(self, action: UndoableAction, request: Undo) -> Outcome:
        """Put back forgotten memories, or with `dry_run` count them. Raises `CannotUndo` if none are left."""
        keys = self.store.deletion.recoverable_keys([action.id])
        if not keys:
            raise CannotUndo(
                f"the forget of {action.at:%Y-%m-%d %H:%M} UTC was final, or its grace period is "
                "over (see forget.grace_hours). `mnem undo --list` shows what else can "
                "be undone, by its id",
                field="action",
            )
        if request.dry_run:
            return len(keys), {}, ""
        self.retention.put_back(action.id)
        note = self.retention.rewrite_stale_or_log()
        left = self.store.deletion.recoverable_keys([action.id])
        return len(keys) - len(left), {"its id was used again since": left}, note

    def _undo_import(self, action: UndoableAction, request: Undo) -> Outcome:
        """Forget the memories of an import that were not changed since; with `dry_run`, only count."""
        steps, left = self._split_steps(action)
        ids = [step.memory for step in steps]
        if request.dry_run or not ids:
            return len(ids), left, ""
        receipt = self.retention.forget_import(ids, action.id)
        steps = self.store.undo.steps(action.id)
        note = receipt.reason
        if receipt.final_at:
            note = f"restore {receipt.call} puts them back until {receipt.final_at:%Y-%m-%d %H:%M} UTC"
        return receipt.memories, {CHANGED_SINCE: [step.memory for step in steps]}, note

    def _split_steps(self, action: UndoableAction) -> tuple[list[ActionStep], Left]:
        """Return (an action's steps not changed by later actions, memories of the other steps by reason)."""
        steps = self.store.undo.steps(action.id)
        later = self.store.undo.changed_after(action.id)
        changed = dict.fromkeys(
            step.memory for step in steps if (step.seq, step.tag) in later
        )
        unchanged = [step for step in steps if (step.seq, step.tag) not in later]
        return unchanged, {CHANGED_SINCE: list(changed)}

    def _read_memories(self, steps: Iterable[ActionStep]) -> dict[str, MemoryRecord]:
        """Return {id: memory} of the stored memories that these steps changed."""
        ids = list(dict.fromkeys(step.memory for step in steps))
        found = _run_chunks(ids, self.store.memories.existing)
        return {memory.id: memory for chunk in found for memory in chunk}

    def _undo_cycle(self, request: Undo, cycle: str) -> Undone:
        """Move the originals of a cycle back to working memory; with `dry_run`, only preview that.

        The report has the originals that could not be moved. No cycle takes them again before the
        next scheduled one, or for as long as requested. Raises `NotFound` and `CannotUndo`.
        """
        started = time.monotonic()
        with self.sleeper.cycle.lease.exclusive(purpose="an undo"):
            entries = self._find_undoable_entries(cycle)
            now = self.sleeper.cycle.now()
            if request.keep_hours is None:
                held_until = max(shift(now, HELD_MIN), self.sleeper.next_cycle or now)
            else:
                held_until = shift(now, timedelta(hours=request.keep_hours))
            returned = self._put_back(
                entries, dry_run=request.dry_run, held_until=held_until
            )
        report = _make_cycle_report(
            entries, returned, dry_run=request.dry_run, held_until=held_until
        )
        report = replace(report, duration_s=time.monotonic() - started)
        if not report.dry_run:
            log.info(
                "cycle_undone",
                cycle=cycle,
                restored=report.restored,
                whole=report.status is CycleStatus.UNDONE,
            )
        action = UndoableAction(
            id=cycle,
            kind=ActionKind.SLEEP,
            at=entries[0].created_at,
            memories=report.candidates,
            trigger=entries[0].trigger,
            sample=entries[0].summary_preview if request.dry_run else "",
        )
        return Undone(
            actions=[action],
            dry_run=request.dry_run,
            memories=sum(episode.restored for episode in returned.values()),
            cycle=report,
        )

    def _put_back(
        self, entries: Sequence[LogEntry], *, dry_run: bool, held_until: datetime
    ) -> dict[str, UndoneEpisode]:
        """Move originals to working memory, held until a time, unless `dry_run`; return outcomes by episode."""
        ids = [entry.episode for entry in entries if entry.episode]
        if dry_run:
            preview = self.store.undo.preview(ids)
            return {returned.episode: returned for returned in preview}
        now = self.sleeper.cycle.clock.now()
        try:
            step = partial(
                self.store.undo.undo_episodes, now=now, held_until=held_until
            )
            report = "episodes were undone"
            undone = run_in_chunks(ids, UNDO_CHUNK, step, report=report, count=len)
        finally:
            self.retention.rewrite_stale_or_log()
        return {returned.episode: returned for step in undone for returned in step}

    def _find_undoable_entries(self, cycle: str) -> list[LogEntry]:
        """Return a cycle's log entries that moved memories into an episode and were not undone.

        Raises `NotFound` for an unknown cycle, and `CannotUndo` if no such entry is left.
        """
        entries = self.store.sleep.log(limit=CANDIDATES_MAX, cycle=cycle)
        if not entries:
            raise NotFound(
                f"there is no action and no sleep cycle {cycle!r} to undo; `mnem undo --list` "
                "shows them",
                field="action",
            )
        moved = [entry for entry in entries if entry.episode and not entry.level]
        left = [entry for entry in moved if entry.undone_at is None]
        if not left:
            reason = "was undone already" if moved else "moved nothing"
            raise CannotUndo(f"cycle {cycle} {reason}", field="action")
        return left


def _make_cycle_report(
    entries: Sequence[LogEntry],
    returned: Mapping[str, UndoneEpisode],
    *,
    dry_run: bool,
    held_until: datetime,
) -> CycleReport:
    """Return the report on an undo of a cycle, or on its preview with `dry_run`."""
    groups = tuple(
        undone_group(entry, returned[entry.episode], dry_run=dry_run)
        for entry in entries
        if entry.episode
    )
    is_partial = any(
        group.error or group.status is GroupStatus.KEPT for group in groups
    )
    restorable = sum(episode.restored for episode in returned.values())
    return replace(
        EMPTY_REPORT,
        cycle=entries[0].cycle,
        status=CycleStatus.PARTIAL if is_partial else CycleStatus.UNDONE,
        dry_run=dry_run,
        candidates=sum(entry.items_consolidated for entry in entries),
        groups=groups,
        failed=sum(group.status is GroupStatus.KEPT for group in groups),
        chars_before=sum(group.chars_before for group in groups),
        restored=0 if dry_run else restorable,
        held_until=held_until if restorable else None,
    )


def _run_chunks(ids: Sequence[str], step: Callable[[Sequence[str]], R]) -> list[R]:
    """Call `step` with each chunk of ids; return the results. Raises `PartlyDone`."""
    return run_in_chunks(ids, CHUNK, step, report="memories are as before")
