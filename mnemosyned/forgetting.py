"""`Forgetting`: how forgetting, pinning, restoring, pruning and undoing are done."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial, reduce
from operator import or_
from pathlib import Path

from mnemosyned.admission import check_text, utc
from mnemosyned.backups import backups_beside, file_bytes
from mnemosyned.domain.consolidation import (
    CycleReport,
    CycleStatus,
    GroupStatus,
    LogEntry,
    Trigger,
)
from mnemosyned.domain.errors import (
    CannotUndo,
    InvalidRequest,
    NotFound,
    StorageFailed,
    WordsPruned,
)
from mnemosyned.domain.forgetting import (
    Choice,
    Foreseen,
    Prunable,
    Removal,
    Retention,
    Returned,
    undone_group,
)
from mnemosyned.domain.memory import Episode, Memory
from mnemosyned.domain.ports import Clock, MemoryStore
from mnemosyned.domain.recall import Hit, Line
from mnemosyned.domain.sensitive import masked_memory
from mnemosyned.domain.snippets import snippet
from mnemosyned.domain.terms import Terms, terms
from mnemosyned.logs import logger
from mnemosyned.purging import WORDS_REMAIN, Purge
from mnemosyned.requests import names
from mnemosyned.sleep.cycle import CANDIDATES_MAX, SleepCycle
from mnemosyned.sleep.mending import mend
from mnemosyned.steps import chunks, in_steps
from mnemosyned.verbs import Sleep
from mnemosyned.verbs_keeping import (
    Forget,
    Forgotten,
    Pin,
    Pinned,
    Prune,
    Pruned,
    Restore,
    Restored,
)

CHUNK = 100
"""So many memories go in one transaction; `remember` waits for no more."""
UNDO_CHUNK = 8
"""So many episodes, each of up to `sleep.group_entries_max` memories."""
LAST = "last"
"""As an undo's cycle: the newest of which something can be put back."""
PREVIEW_LINES = 10
SNIPPET_CHARS = 100
PRUNED_MAX = 200_000
"""What one call of prune takes; the rest waits for the next."""

log = logger()


class Forgetting:
    """What takes memories away and brings them back, in short steps that can be repeated."""

    def __init__(
        self,
        *,
        store: MemoryStore,
        cycle: SleepCycle,
        clock: Clock,
        database: Path,
        retention: Retention = Retention(),  # noqa: B008 frozen
    ) -> None:
        self.retention = retention
        self._store = store
        self._cycle = cycle
        self._clock = clock
        self._database = database
        self._mending = threading.RLock()
        self._purge = Purge(store)

    def mend_later(self) -> str:
        """Rewrite summaries after a change that is on disk; why they are not all rewritten.

        The change stands whatever becomes of this: a summary that waits is empty, and the next
        cycle or start rewrites it.
        """
        try:
            self.mend()
        except StorageFailed as error:
            log.exception("mending_put_off")
            return f"summaries wait to be rewritten until the next cycle: {error.reason}"
        return ""

    def mend(self) -> int:
        """Rewrite the summaries that were emptied, those an interrupted call left among them."""
        levels = self._cycle.policy.levels
        return mend(self._store, self._cycle.summarizer, levels=levels, alone=self._mending)

    def tidy(self) -> None:
        """After a cycle: prune by the settings, and press out what could not be yet.

        What the disk does not allow now waits for the next: the cycle is done all the same.
        """
        try:
            if self.retention != Retention():
                pruned = self._pruned(self.retention)
                if pruned.memories:
                    log.info("archive_pruned", count=pruned.memories, characters=pruned.characters)
            self.mend()
            self._purge.run_due()
        except StorageFailed:
            log.exception("tidying_put_off")

    # --------------------------------------------------------------- forget

    def forget(self, request: Forget) -> Forgotten:
        """Delete what is meant chunk by chunk, then rewrite what was made of it.

        Each chunk leaves everything whole: a summary made of what it took is empty until it is
        rewritten, at the latest when the memory is opened again.
        """
        try:
            ids, learned = self._meant(request)
        except NotFound as error:
            self._purge.finish_earlier(error)
            raise
        if request.dry_run:
            removal = self._store.foreseen(ids, learned=learned)
            return self._receipt(removal, dry_run=True, lines=self._preview(ids))
        removal = self._removed(ids, learned)
        problem = self.mend_later()
        # Where nothing went nobody need wait while the file is written anew.
        purged, unpurged = self._purge.attempt(due=removal != Removal())
        complete = purged and not problem
        log.info("forgotten", count=removal.working + removal.archived, complete=complete)
        reason = "; ".join(part for part in (unpurged, problem) if part)
        return self._receipt(removal, complete=complete, reason=reason)

    def _removed(self, ids: Sequence[str], learned: Sequence[str]) -> Removal:
        """Delete chunk by chunk. Raises `PartlyDone` where a later one fails."""

        def forgotten(removals: Sequence[Removal]) -> str:
            gone = sum(removal.working + removal.archived for removal in removals)
            return f"{gone:,} of {len(ids):,} memories are forgotten, though {WORDS_REMAIN}"

        # The learnings beside them go last, as one more chunk.
        works: list[Callable[[], Removal]] = [
            partial(self._store.forget, chunk) for chunk in chunks(ids, CHUNK)
        ]
        works.append(partial(self._store.unlearn, learned))
        removals = in_steps(works, 1, lambda work: work[0](), done=forgotten)
        return reduce(or_, removals, Removal())

    def _meant(self, request: Forget) -> tuple[list[str], list[str]]:
        """The ids of the memories that are meant, and of the learnings beside theirs."""
        narrowing = (
            request.query,
            request.session,
            request.source,
            request.since,
            request.until,
            request.person,
        )
        if request.id is not None:
            if any(narrowing):
                raise InvalidRequest(
                    "an id says which memory it is; say nothing else beside it", field="id"
                )
            found = self._store.get(request.id)
            below = self._store.below(found.id) if isinstance(found, Episode) else [found.id]
            return below, []
        if not any(narrowing):
            raise InvalidRequest(
                "say what to forget: an id, query, session, source, since, until or person",
                field="id",
            )
        choice = _choice(request)
        return self._store.chosen(choice), self._store.chosen_learnings(choice)

    def _preview(self, ids: Sequence[str]) -> list[Foreseen]:
        shown = [self._store.get(id) for id in ids[:PREVIEW_LINES]]
        return [_foreseen(memory) for memory in shown if isinstance(memory, Memory)]

    def _receipt(
        self,
        removal: Removal,
        *,
        dry_run: bool = False,
        complete: bool = True,
        reason: str = "",
        lines: Sequence[Foreseen] = (),
    ) -> Forgotten:
        return Forgotten(
            dry_run=dry_run,
            memories=removal.working + removal.archived,
            working=removal.working,
            archived=removal.archived,
            details=removal.details,
            learnings=removal.learnings,
            episodes_removed=len(removal.removed),
            episodes_rewritten=len(removal.emptied),
            lines=list(lines),
            untold=removal.untold,
            file_bytes=file_bytes(self._database) if dry_run else 0,
            complete=complete,
            reason=reason,
            backups=backups_beside(self._database),
        )

    # ------------------------------------------------------ pin and restore

    def pin(self, request: Pin) -> Pinned:
        if not self._store.pin(request.id, pinned=not request.off):
            found = self._store.get(request.id)
            if isinstance(found, Episode) or found.episode:
                hint = "" if isinstance(found, Episode) else "; `restore` brings it back, pinned"
                raise InvalidRequest(
                    f"{request.id} is not in working memory, where pins hold{hint}", field="id"
                )
        return Pinned(request.id, not request.off)

    def restore(self, request: Restore) -> Restored:
        found = self._store.get(request.id)
        if isinstance(found, Episode):
            raise InvalidRequest(
                f"{found.id} is an episode; `expand` shows its originals, restore those", field="id"
            )
        if found.episode is None:
            raise InvalidRequest(f"{found.id} is in working memory already", field="id")
        if found.pruned_at:
            raise WordsPruned(
                f"the words of {found.id} were pruned on {found.pruned_at:%Y-%m-%d}; "
                f"episode {found.episode} tells of them",
                field="id",
            )
        removal = self._store.restore(found.id)
        self.mend_later()
        return Restored(id=found.id, episode=found.episode, episode_removed=bool(removal.removed))

    # ---------------------------------------------------------------- prune

    def prune(self, request: Prune) -> Pruned:
        if request.keep_days is None and request.characters_max is None:
            retention = self.retention
        else:
            keep = None if request.keep_days is None else timedelta(days=request.keep_days)
            retention = Retention(keep=keep, characters_max=request.characters_max)
        if request.dry_run:
            return _pruned(self._prunable(retention), dry_run=True)
        return self._pruned(retention)

    def _pruned(self, retention: Retention) -> Pruned:
        prunable = self._prunable(retention)
        now = self._clock.now()
        in_steps(
            prunable.ids,
            CHUNK,
            lambda chunk: self._store.prune(chunk, now=now),
            done=lambda counts: f"{sum(counts):,} of {len(prunable.ids):,} originals were pruned",
        )
        return _pruned(prunable)

    def _prunable(self, retention: Retention) -> Prunable:
        return self._store.prunable(retention, now=self._clock.now(), limit=PRUNED_MAX)

    # ----------------------------------------------------------------- undo

    def undo(self, request: Sleep) -> CycleReport:
        """Put the originals of one cycle back; what cannot be put back stays and is named."""
        if request.session or request.force:
            raise InvalidRequest("undo takes a whole cycle; leave session and force out")
        check_text(request.undo, field="undo")
        started = time.monotonic()
        with self._cycle.held():
            cycle = self._to_undo(request.undo or "")
            entries = self._entries(cycle)
            returned = self._returned(entries, dry_run=request.dry_run)
        groups = [
            undone_group(entry, returned[entry.episode], dry_run=request.dry_run)
            for entry in entries
            if entry.episode
        ]
        whole = all(group.status is not GroupStatus.KEPT and not group.error for group in groups)
        restored = 0 if request.dry_run else sum(one.restored for one in returned.values())
        if not request.dry_run:
            log.info("cycle_undone", cycle=cycle, restored=restored, whole=whole)
        return CycleReport(
            cycle=cycle,
            status=CycleStatus.UNDONE if whole else CycleStatus.PARTIAL,
            trigger=Trigger.EXPLICIT,
            dry_run=request.dry_run,
            candidates=sum(entry.items_consolidated for entry in entries),
            groups=tuple(groups),
            duration_s=time.monotonic() - started,
            promoted=0,
            evicted=0,
            failed=sum(group.status is GroupStatus.KEPT for group in groups),
            chars_before=sum(group.chars_before for group in groups),
            chars_after=0,
            restored=restored,
        )

    def _to_undo(self, cycle: str) -> str:
        """The id of the cycle that is meant. Raises `CannotUndo` where `last` means none."""
        if cycle != LAST:
            return cycle
        last = self._store.last_cycle()
        if last is None:
            raise CannotUndo("there is no cycle of which something could be put back", field="undo")
        return last

    def _returned(self, entries: Sequence[LogEntry], *, dry_run: bool) -> dict[str, Returned]:
        """By episode what is put back, or would be."""
        ids = [entry.episode for entry in entries if entry.episode]
        if dry_run:
            return {one.episode: one for one in self._store.returning(ids)}
        now = self._clock.now()
        try:
            each = in_steps(
                ids,
                UNDO_CHUNK,
                lambda chunk: self._store.undo(chunk, now=now),
                done=lambda done: f"{sum(map(len, done)):,} of {len(ids):,} episodes were undone",
            )
        finally:
            self.mend_later()
        return {one.episode: one for returned in each for one in returned}

    def _entries(self, cycle: str) -> list[LogEntry]:
        """The groups of a cycle that were promoted and not undone. Raises where there are none."""
        entries = self._store.log(limit=CANDIDATES_MAX, cycle=cycle)
        if not entries:
            raise NotFound(f"no cycle has the id {cycle!r}; `log` shows them", field="undo")
        moved = [entry for entry in entries if entry.episode and not entry.level]
        left = [entry for entry in moved if entry.undone_at is None]
        if not left:
            undone = bool(moved)
            raise CannotUndo(
                f"cycle {cycle} was undone already" if undone else f"cycle {cycle} moved nothing",
                field="undo",
            )
        return left

    # -------------------------------------------------------------- history

    def with_history(self, hits: Sequence[Hit], *, reveal: bool) -> list[Hit]:
        """Each hit with what it superseded; what stands under another has no place of its own."""
        told = [replace(hit, history=self._history(hit, reveal=reveal)) for hit in hits]
        older = {line.id for hit in told for line in hit.history}
        return [hit for hit in told if not older.issuperset(_shown(hit))]

    def _history(self, hit: Hit, *, reveal: bool) -> tuple[Line, ...]:
        found = {memory.id: memory for id in _shown(hit) for memory in self._store.history(id)}
        return tuple(
            Line(
                id=memory.id,
                created_at=memory.created_at,
                role=memory.role,
                content=memory.content if reveal else masked_memory(memory).content,
                score=0.0,
                superseded_at=memory.superseded_at,
            )
            for memory in found.values()
        )


def _shown(hit: Hit) -> list[str]:
    """The ids of the memories that a hit shows: an episode's lines, or itself."""
    return [line.id for line in hit.lines] or [hit.id]


def _choice(request: Forget) -> Choice:
    for name in ("query", "person"):
        check_text(getattr(request, name), field=name)
    words = terms(request.query) if request.query else None
    if request.query and not words:
        raise InvalidRequest("there is no word in the query to look for", field="query")
    if request.person is not None and not request.person.strip():
        raise InvalidRequest("there is no name in person", field="person")
    return Choice(
        terms=words,
        sessions=names(request.session),
        sources=names(request.source),
        since=utc(request.since, field="since") if request.since else None,
        until=utc(request.until, field="until") if request.until else None,
        person=request.person,
    )


def _foreseen(memory: Memory) -> Foreseen:
    text = " ".join(masked_memory(memory).content.split())
    return Foreseen(
        id=memory.id,
        tier=memory.tier,
        created_at=memory.created_at,
        session=memory.session,
        role=memory.role,
        snippet=snippet(text, Terms((), ()), width=SNIPPET_CHARS),
    )


def _pruned(prunable: Prunable, *, dry_run: bool = False) -> Pruned:
    return Pruned(
        dry_run=dry_run,
        memories=len(prunable.ids),
        characters=prunable.characters,
        oldest=prunable.oldest,
        newest=prunable.newest,
        more=len(prunable.ids) >= PRUNED_MAX,
    )
