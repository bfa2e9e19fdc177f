"""Verbs that forget, restore and prune memories, the grace period, and purging of the file."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial, reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Self

import msgspec

from mnemosyned import errors, process_memory
from mnemosyned.config.settings import Config, SettingsInForce
from mnemosyned.ids import new_id
from mnemosyned.instants import in_zone, shift
from mnemosyned.logs import log_failure, logger
from mnemosyned.memory import clock, ports, values
from mnemosyned.memory.forgetting import Grace, Removal, Retention
from mnemosyned.memory.periods import Level
from mnemosyned.service import backups, reading
from mnemosyned.service.intake import CHUNK, run_in_chunks, split_into_chunks
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.sleep.rollup import rewrite_stale
from mnemosyned.sleep.triggers import ClockGuard
from mnemosyned.text.word_cache import clear_word_caches
from mnemosyned.verbs import retention as verbs
from mnemosyned.verbs.request import names

if TYPE_CHECKING:
    from mnemosyned.service.audit import AuditedForgets


REST_TIMES = 24
"""Rest between purges, as a multiple of the last one's time, while requests are served. A purge reads and
writes the whole file, so that this limits purges to 4% of the time."""
REST_FREE_S = 0.05
"""Purges that take fewer seconds, as those of a small file, need no rest."""
REST_MAX_S = 600.0
WAIT_MAX_S = 1.0
"""Maximum seconds that a caller waits for a purge; if the rest is longer, the purge comes later."""
LOOK_S = 0.5
"""Seconds between checks whether requests are still being served."""
RETRY_S = 60.0
"""Seconds until a purge that another program or the disk prevented is tried again; doubled each time, up to
`REST_MAX_S`."""
START_S = 2.0
"""Seconds after the start until the text that an earlier process left is purged."""
CLOSE_S = 20.0
"""A purge is run at the close only if the last one took fewer seconds."""
HOST_S = 60.0
"""Seconds within which a host usually purges for one of many memories."""

WORDS_REMAIN = (
    "the words of what is forgotten can still be read in the file until they are purged"
)


@dataclass(eq=False, kw_only=True)
class Purger:
    """Thread that purges deleted text from the database files. Safe from any thread."""

    due: Callable[[], bool]
    """Returns whether deleted text waits for a purge."""
    work: Callable[[], bool]
    """Deletes forgotten text from the files; returns True if all of it was purged."""
    busy: Callable[[], bool]
    """Returns whether requests are being served."""
    background: bool = False
    """Whether a purge may wait for these, in a thread, until the close."""

    def __post_init__(self) -> None:
        self._turn = threading.Lock()
        self._wake = threading.Condition()
        self._thread: threading.Thread | None = None
        self._planned: float | None = None
        self._rested = 0.0
        self._took_s = 0.0
        self._refused = 0

    def start(self) -> None:
        """Plan the purge that an earlier process left undone."""
        try:
            is_due = self.due()
        except errors.StorageFailed as error:
            log.warning("purge_put_off", reason=error.reason)
            is_due = True
        if is_due:
            self._plan_purge(START_S)

    def purge(self) -> bool:
        """Purge the text deleted before this call, or plan a purge; return whether all is purged now.

        A purge is put off if requests are being served soon after the last purge, or if another
        program reads the file; `wait_s` then returns the wait. Raises `StorageFailed`.
        """
        with self._turn:
            if not self.due():
                return True
            rest_s = self._rested - time.monotonic()
            if rest_s > 0 and self.background and self.busy():
                if rest_s > WAIT_MAX_S:
                    self._plan_purge(rest_s)
                    return False
                time.sleep(rest_s)
            return self._run_purge()

    def try_purge(self) -> tuple[bool, str]:
        """Purge after a deletion; return whether all is purged, and why the purge failed, or ""."""
        try:
            return self.purge(), ""
        except errors.StorageFailed as error:
            log.warning("purge_put_off", reason=error.reason)
            return False, f"{WORDS_REMAIN}: {error.reason}"

    def finish_earlier(self, unknown: errors.NotFound) -> None:
        """Purge the text that an earlier call deleted, after a repeated call failed with `unknown`.

        Raises `NotPurged`, which quotes `unknown`, if the purge fails or another program reads the
        database. Returns if all is purged, or the purge waits because requests are being served.
        """
        complete, problem = self.try_purge()
        if not complete and (problem or self._refused):
            problem = problem or (
                f"{WORDS_REMAIN}: another program reads the database: let it end, then try again"
            )
            raise errors.NotPurged(
                f"{unknown.message}. If it was forgotten before: {problem}",
                field=unknown.field,
            ) from unknown

    def wait_s(self) -> float | None:
        """Return the seconds until the planned purge; None if none is planned."""
        with self._wake:
            planned = self._planned
        return None if planned is None else max(0.0, planned - time.monotonic())

    def close(self) -> None:
        """Stop the thread, and run a due purge; if purges are slow, leave the purge to the next start."""
        with self._wake:
            self.background = False
            self._wake.notify()
        if self._thread:
            self._thread.join()
        with self._turn:
            if self._took_s < CLOSE_S:
                self._run_due_or_log()

    def run_due(self) -> bool:
        """Run a purge if one is due, and log a failure; return True if no deleted text is left."""
        with self._turn:
            return self._run_due_or_log()

    def _run_purge(self) -> bool:
        """Purge the files; return True if no deleted text is left, else plan an attempt and return False."""
        began = time.monotonic()
        clean = False
        try:
            clean = self.work()
        finally:
            now = time.monotonic()
            self._took_s = now - began
            self._refused = 0 if clean else self._refused + 1
            rest_s = REST_TIMES * max(0.0, self._took_s - REST_FREE_S)
            self._rested = now + min(REST_MAX_S, rest_s)
            if clean:
                with self._wake:
                    self._planned = None
            else:
                retry_s = RETRY_S * 2 ** min(10, self._refused - 1)
                self._plan_purge(min(REST_MAX_S, max(rest_s, retry_s)))
        return clean

    def _plan_purge(self, wait_s: float) -> None:
        """Plan a purge within `wait_s` seconds, and start its thread; without `background` do nothing."""
        with self._wake:
            if not self.background:
                return
            due = time.monotonic() + wait_s
            self._planned = due if self._planned is None else min(self._planned, due)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run_planned, name="purge", daemon=True
                )
                self._thread.start()
            self._wake.notify()

    def _run_planned(self) -> None:
        """Run planned purges at their times, or earlier if no request is served, until the purger closes."""
        while True:
            with self._wake:
                while self.background:
                    # At its time, or once nobody would notice it.
                    if self._planned is not None and (
                        time.monotonic() >= self._planned
                        or not (self._refused or self.busy())
                    ):
                        break
                    self._wake.wait(None if self._planned is None else LOOK_S)
                if not self.background:
                    return
                self._planned = None
            with self._turn:
                self._run_due_or_log()

    def _run_due_or_log(self) -> bool:
        """Run a due purge, log a failure; return True if no deleted text is left. The caller holds `_turn`."""
        complete = False
        try:
            if not self.due():
                return True
            complete = self._run_purge()
        except (errors.StorageFailed, errors.MemoryBusy) as error:
            log.warning("purge_put_off", reason=error.reason)
            if isinstance(error, errors.DatabaseUnreachable):
                self._plan_purge(RETRY_S)
        except errors.MnemosynedError:
            log.exception("purge_failed")
        else:
            log.info("purged", complete=complete, duration_s=round(self._took_s, 3))
        return complete


@dataclass(eq=False, kw_only=True)
class HostedPurger(Purger):
    """Purger that leaves purges to a host, which purges the tables shared by many memories."""

    busy: Callable[[], bool] = lambda: False
    soon: Callable[[], None]
    """Asks the host for `run_due`, within `HOST_S` seconds at best. Raises `StorageFailed` if it may not."""

    def start(self) -> None:
        """Ask the host to run the purge that an earlier process left undone."""
        self.try_purge()

    def purge(self) -> bool:
        """If a purge is due, ask the host for it and return False; else return True. Raises `StorageFailed`."""
        if not self.due():
            return True
        self.soon()
        return False

    def finish_earlier(self, unknown: errors.NotFound) -> None:
        """Do nothing: the host purges, and a group's memory may have the id that is unknown here."""

    def wait_s(self) -> float | None:
        """Return the seconds within which the host purges."""
        return HOST_S

    def close(self) -> None:
        """Do nothing: the host purges the text left in its next round."""


log = logger()


def retention_of(config: Config) -> Retention:
    """Return the limits of age and size beyond which the settings prune the text of originals."""
    days = config.archive.keep_days
    return Retention(
        keep=None if days is None else timedelta(days=days),
        characters_max=config.archive.characters_max,
    )


PRUNED_MAX = 200_000
"""Maximum originals that one call prunes; the others wait for the next call."""
EXPIRY_EVERY = timedelta(hours=1)
"""How often the records of old actions are deleted."""
IN_FORCE_MAX = 1_000
"""Maximum ids, in a result, of memories that apply again."""


@dataclass(eq=False, kw_only=True)
class RetentionService:
    """The verbs that forget, restore and prune memories, in short steps that can be repeated."""

    store: ports.MemoryStore
    cycle: SleepCycle
    """Its summarizer rewrites summaries."""
    settings: SettingsInForce
    file: Path | None
    in_background: bool = False
    guard: ClockGuard | None = None
    """Trusts the clock; without one it is always trusted, as in tests."""
    purge_soon: Callable[[], None] | None = None
    """Asks the host of many owners to run `purger.run_due`."""
    forgotten: AuditedForgets | None = None
    """Notes what is forgotten; None for a list beside the backups."""

    def __post_init__(self) -> None:
        self.on_removal: Callable[[], None] = lambda: None
        """Called after text was deleted, for caches that hold copies of it."""
        due = self.store.deletion.purge_due
        self.purger = (
            HostedPurger(due=due, work=self._purge_words, soon=self.purge_soon)
            if self.purge_soon
            else Purger(
                due=due,
                work=self._purge_words,
                busy=lambda: self.cycle.gate.busy,
                background=self.in_background,
            )
        )
        self._forgotten = self.forgotten or backups.ForgottenList(
            lambda: (
                self.file
                and backups.backup_folder(self.file, self.settings.config.backup_folder)
            ),
            now=self.cycle.clock.now,
        )
        self.on_put_back: Callable[[Sequence[int]], None] = lambda _: None
        """Called with the row numbers of forgotten memories that were put back."""
        self._clock: clock.Clock = self.guard or self.cycle.clock
        """Must not jump ahead, as forgetting becomes final by its time."""
        self._rewriting = threading.RLock()
        self._actions_expired_at: datetime | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.purger.close()

    def start(self) -> None:
        """Finish earlier work: rewrite stale summaries, end grace periods, and plan a due purge."""
        self.rewrite_stale_or_log()
        self.finish_forgotten()
        self.purger.start()

    def rewrite_stale_or_log(self, *, highest: Level = Level.MONTH) -> str:
        """Rewrite stale summaries up to `highest`; return why it failed, or an empty text.

        The change that made them stale applies in any case: a stale summary is empty until the next
        cycle or start rewrites it.
        """
        try:
            self.rewrite_stale(highest=highest)
        except errors.StorageFailed as error:
            log_failure("rewriting_put_off", error)
            return (
                f"summaries wait to be rewritten until the next cycle: {error.reason}"
            )
        return ""

    def rewrite_stale(self, *, highest: Level = Level.MONTH) -> int:
        """Rewrite summaries, up to the level `highest`, of forgotten or changed memories; return how many."""
        return rewrite_stale(
            self.store,
            self.cycle.lease,
            minimum=self.cycle.settings.config.sleep.rollup_min_items,
            exclusive=self._rewriting,
            highest=highest,
        )

    def after_cycle(self) -> None:
        """After a cycle prune originals, end grace periods, rewrite stale summaries and purge; log failures."""
        try:
            retention = retention_of(self.settings.config)
            if retention != Retention():
                pruned = self._prune_archive(retention, now=self._clock.now())
                if count := pruned.memories:
                    characters = pruned.characters
                    log.info("archive_pruned", count=count, characters=characters)
            # Most cycles leave nothing to do, which one snapshot shows.
            with self.store.search.one_snapshot():
                is_idle = not (
                    self._due_keys()
                    or self.store.rollups.next_stale()
                    or self.purger.due()
                )
            if is_idle:
                return
            self.finish_due()
            self.rewrite_stale()
            self.purger.try_purge()
        except errors.StorageFailed as error:
            log_failure("upkeep_put_off", error)

    def finish_forgotten(self) -> None:
        """Delete for good the memories whose grace period is over, and purge their text.

        Once an hour delete the records of actions that can no longer be undone. A storage failure
        is logged.
        """
        try:
            if self.finish_due():
                self.purger.try_purge()
            now, last = self.cycle.clock.now(), self._actions_expired_at
            before = shift(now, -values.ACTIONS_KEPT)
            if last is None or now >= shift(last, EXPIRY_EVERY):
                self._actions_expired_at = now
                if self.store.undo.has_expired(before):
                    self.store.undo.expire(before)
        except errors.StorageFailed as error:
            log_failure("upkeep_put_off", error)

    def _begin_grace(self) -> Grace | None:
        """Return a grace period that begins now, with an id for a call; None if the settings give none."""
        hours = self.settings.config.forget.grace_hours
        if not hours:
            return None
        now = self._clock.now()
        return Grace(new_id(now), shift(now, timedelta(hours=hours)))

    def put_back(self, id: str) -> int:
        """Restore a forgotten memory, or all of a forget call; return how many. Raises `PartlyDone`."""
        keys = self.store.deletion.recoverable_keys([id])

        def put_back_chunk(chunk: Sequence[str]) -> int:
            """Restore the memories with these keys; return how many."""
            self._forgotten.withdraw(chunk)
            returned = self.store.deletion.put_back(chunk)
            if returned:
                self.on_put_back([position for _, position in returned])
            return len(returned)

        count = sum(run_in_chunks(keys, CHUNK, put_back_chunk, report="are put back"))
        if count:
            log.info("put_back", count=count)
        return count

    def _delete_for_good(self, keys: Sequence[str]) -> int:
        """Delete recoverable memories for good, chunk by chunk; return how many. Raises `PartlyDone`."""
        report = "are forgotten for good"
        return sum(run_in_chunks(keys, CHUNK, self.store.deletion.erase, report=report))

    def _due_keys(self) -> list[str]:
        """Return the store's keys of memories whose grace period is over."""
        return self.store.deletion.recoverable_keys(before=self._clock.now())

    def finish_due(self) -> int:
        """Delete for good all memories whose grace period is over; return how many."""
        due = self._due_keys()
        if not due:
            return 0
        count = self._delete_for_good(due)
        log.info("forgotten_for_good", count=count)
        return count

    def prune(self, request: verbs.Prune) -> verbs.Pruned:
        """Delete the text of old originals as a request says; with `dry_run`, only preview that.

        Without limits in the request, the settings' limits apply. Raises `ClockJumped` for a limit
        of age if the clock is not trusted; `believe_clock` makes it trusted from now on.
        """
        retention = retention_of(self.settings.config)
        days, characters_max = request.keep_days, request.characters_max
        if days is not None or characters_max is not None:
            keep = None if days is None else timedelta(days=days)
            retention = Retention(keep=keep, characters_max=characters_max)
        if request.believe_clock and self.guard and not request.dry_run:
            self.guard.confirm()
        doubt = self.doubt(retention)
        now = self.cycle.clock.now()
        if doubt and not request.dry_run:
            raise errors.ClockJumped(
                f"nothing was pruned: {doubt} Check the date; if it is right, add --believe-clock",
                field="believe_clock",
            )
        receipt = self._prune_archive(retention, now=now, dry_run=request.dry_run)
        return msgspec.structs.replace(receipt, doubt=doubt)

    def doubt(self, retention: Retention | None = None) -> str:
        """Return why pruning by the age limit of `retention`, by default the settings', must wait; or ""."""
        keep = (retention or retention_of(self.settings.config)).keep
        if self.guard is None or keep is None:
            return ""
        return self.guard.doubt()

    def _prune_archive(
        self, retention: Retention, *, now: datetime, dry_run: bool = False
    ) -> verbs.Pruned:
        """Prune originals beyond a retention, or with `dry_run` count them. Raises `PartlyDone`."""
        prunable = self.store.retention.prunable(retention, now=now, limit=PRUNED_MAX)

        def prune_chunk(chunk: Sequence[str]) -> int:
            """Delete the text of these originals; return how many."""
            count = self.store.retention.prune(chunk, now=now)
            self.on_removal()
            return count

        ids = prunable.ids
        if not dry_run:
            run_in_chunks(ids, CHUNK, prune_chunk, report="originals were pruned")
        return verbs.Pruned(
            dry_run=dry_run,
            memories=len(ids),
            characters=prunable.characters,
            oldest=prunable.oldest,
            newest=prunable.newest,
            more=len(ids) >= PRUNED_MAX,
        )

    def forget(self, request: verbs.Forget) -> verbs.Forgotten:
        """Forget the selected memories chunk by chunk, then rewrite their summaries; return counts.

        Unless `now` is given, they can be restored during the grace period of the settings. A
        summary of deleted memories is empty until it is rewritten: an episode at once, the days,
        weeks and months above it with the purge or the next start. With `dry_run`, only preview.
        """
        ids = names(request.id) if request.now else ()
        kept = self.store.deletion.recoverable_keys(ids) if ids else []
        try:
            selected = self._select_memories(request, kept)
        except errors.NotFound as error:
            for id in () if request.now else names(request.id):
                if final_at := self.store.deletion.recoverable_until(id):
                    raise errors.NotFound(
                        f"{id} is forgotten already; until {final_at:%Y-%m-%d %H:%M} UTC "
                        "`mnem restore` puts it back, and `mnem forget --now` deletes it for good",
                        field="id",
                    ) from error
            self.purger.finish_earlier(error)
            raise
        grace = None if request.now else self._begin_grace()
        if request.dry_run:
            deletion = self.store.deletion
            removal = deletion.preview(selected.ids, learned=selected.learned)
            removal |= Removal(working=len(kept))
            lines, further = reading.preview_lines(
                self.store, selected.ids, after=request.after
            )
            return msgspec.structs.replace(
                self._make_forget_receipt(removal, dry_run=True, grace=grace),
                lines=lines,
                further=further,
                mark=selected.mark,
                call="",
            )
        now = self.cycle.clock.now()
        call = grace.call if grace else new_id(now)
        action = values.Action(call, values.ActionKind.FORGET, now)
        return self._forget_selected(selected, kept, grace, action=action)

    def forget_import(self, ids: Sequence[str], import_id: str) -> verbs.Forgotten:
        """Forget an import's memories that were not changed since; another import can store them again."""
        grace = self._begin_grace()
        selected = reading.SelectedMemories(ids=ids)
        forgotten = self._forget_selected(selected, (), grace, import_id=import_id)
        for chunk in split_into_chunks(ids, CHUNK):
            if left := self.store.memories.existing(chunk):
                self._forgotten.withdraw([memory.id for memory in left])
        return forgotten

    def _forget_selected(
        self,
        selected: reading.SelectedMemories,
        kept: Sequence[str],
        grace: Grace | None,
        *,
        import_id: str | None = None,
        action: values.Action | None = None,
    ) -> verbs.Forgotten:
        """Forget the selected memories; delete recoverable ones with keys `kept` for good; return counts.

        Without `grace`, none can be restored. With `import_id`, keep memories changed since the import.
        Then rewrite summaries, and purge text that cannot be restored.
        """
        began = time.monotonic()
        removal = Removal(working=self._delete_for_good(kept))
        removal |= self._forget_in_chunks(
            selected, grace, import_id=import_id, action=action
        )
        problem = self.rewrite_stale_or_log(highest=Level.EPISODE)
        self.cycle.gate.rest_after(time.monotonic() - began)
        removal = replace(removal, in_force=removal.in_force - set(selected.ids))
        recoverable = removal.working + removal.archived - removal.pruned
        if grace and (recoverable or removal.learnings):
            # Exact values of pruned ones, and earlier copies, are deleted for good.
            unpurged = self.purger.try_purge()[1]
            problem = problem or self.rewrite_stale_or_log()
            reason = "; ".join(filter(None, (unpurged, problem)))
            return self._make_forget_receipt(
                removal, complete=False, reason=reason, grace=grace
            )
        purged, unpurged = self.purger.try_purge()
        if purged:  # also what a purge for others did not see
            problem = self.rewrite_stale_or_log()
        complete = purged and not problem
        count = removal.working + removal.archived
        log.info("forgotten", count=count, complete=complete)
        reason = "; ".join(filter(None, (unpurged, problem)))
        return self._make_forget_receipt(removal, complete=complete, reason=reason)

    def _select_memories(
        self, request: verbs.Forget, kept: Sequence[str]
    ) -> reading.SelectedMemories:
        """Return the memories to forget; with `kept`, leave out ids of memories that are forgotten already."""
        if kept:
            asked = names(request.id)
            stored = {memory.id for memory in self.store.memories.existing(asked)}
            ids = [
                id
                for id in asked
                if id in stored or not self.store.deletion.recoverable_keys([id])
            ]
            if not ids:
                return reading.SelectedMemories(ids=())
            request = msgspec.structs.replace(request, id=ids)
        return reading.select_memories(self.store, request)

    def _purge_words(self) -> bool:
        """Delete forgotten text from log, files, summaries and caches; return whether the files are clean."""
        self.rewrite_stale()
        self.store.deletion.forget_orphaned_names()
        complete = self.store.deletion.purge_deleted()
        clear_word_caches()
        self.store.maintenance.release_memory(words=True)
        if self.in_background:  # an embedding program collects its own garbage
            process_memory.trim_heap()
        return complete

    def _forget_in_chunks(
        self,
        selected: reading.SelectedMemories,
        grace: Grace | None,
        *,
        import_id: str | None,
        action: values.Action | None,
    ) -> Removal:
        """Forget memories chunk by chunk as `_forget_selected` says, then learnings. Raises `PartlyDone`."""
        ids, learned = selected.ids, selected.learned

        def forget_noted(ids: Sequence[str], delete: Callable[..., Removal]) -> Removal:
            """Note ids as forgotten for old backups, then delete them by `delete`; return the counts."""
            self._forgotten.note(ids)
            try:
                removal = delete(ids, grace=grace, action=action)
            except BaseException:
                self._forgotten.withdraw(ids)
                raise
            self.on_removal()
            return removal

        deletion = self.store.deletion
        forget = partial(deletion.forget, import_id=import_id)
        # The learnings beside the memories go last, as one more chunk.
        works = [
            partial(forget_noted, chunk, forget)
            for chunk in split_into_chunks(ids, CHUNK)
        ]
        if learned:
            works.append(partial(forget_noted, learned, deletion.forget_learnings))
        removals = run_in_chunks(
            works,
            1,
            lambda work: work[0](),
            report=f"memories are forgotten, though {WORDS_REMAIN}",
            count=lambda removal: removal.working + removal.archived,
            total=len(ids),
        )
        return reduce(or_, removals, Removal())

    def _make_forget_receipt(
        self,
        removal: Removal,
        *,
        dry_run: bool = False,
        complete: bool = True,
        reason: str = "",
        grace: Grace | None = None,
    ) -> verbs.Forgotten:
        """Return the result of a forget or its preview; set `complete` to False while text is in the files."""
        memories = removal.working + removal.archived
        recoverable = memories - removal.pruned if grace else 0
        if not (recoverable or removal.learnings):
            grace = None
        file, folder = self.file, self.settings.config.backup_folder
        copies = [
            *self.store.deletion.places_beyond_purge(),
            *(backups.find_possible_copies(file, folder) if file else ()),
        ]
        return verbs.Forgotten(
            dry_run=dry_run,
            memories=memories,
            working=removal.working,
            archived=removal.archived,
            details=removal.details,
            learnings=removal.learnings,
            episodes_removed=len(removal.removed),
            episodes_rewritten=len(removal.emptied),
            pruned_losing_summary=removal.pruned_losing_summary,
            file_bytes=backups.file_bytes(file) if file and dry_run else 0,
            complete=complete,
            purge_in_s=None if complete or reason or grace else self.purger.wait_s(),
            reason=reason,
            in_force_again=sorted(removal.in_force)[:IN_FORCE_MAX],
            final_at=grace.final_at if grace else None,
            recoverable=recoverable,
            call=grace.call if grace else "",
            backups=copies,
        )

    def restore(self, request: verbs.Restore) -> verbs.Restored:
        """Move an archived original back to working memory, pinned, or restore forgotten memories.

        The id is a memory's or a forget call's. Raises `NotFound`, `InvalidRequest` and `WordsPruned`.
        """
        try:
            memory = self.store.memories.get(request.id)
        except errors.NotFound:
            count = self.put_back(request.id)
            if not count:
                raise
            self.rewrite_stale_or_log()
            return verbs.Restored(id=request.id, memories=count)
        if isinstance(memory, values.Episode):
            raise errors.InvalidRequest(
                f"{memory.id} is an episode; `expand` shows its originals, restore those",
                field="id",
            )
        if memory.episode is None:
            raise errors.InvalidRequest(
                f"{memory.id} is in working memory already", field="id"
            )
        if memory.pruned_at:
            raise errors.WordsPruned(
                f"the words of {memory.id} were pruned on {in_zone(memory.pruned_at, None).date()}; "
                f"episode {memory.episode} summarizes them",
                field="id",
            )
        removal = self.store.retention.restore(memory.id)
        self.rewrite_stale_or_log()
        return verbs.Restored(
            id=memory.id, episode=memory.episode, episode_removed=bool(removal.removed)
        )
