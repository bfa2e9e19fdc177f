"""`RetentionService`: implementation of forget, pin, unpin and restore."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial, reduce
from operator import or_
from typing import Self

from mnemosyned import process_memory
from mnemosyned.domain.errors import (
    InvalidRequest,
    NotFound,
    StorageFailed,
    WordsPruned,
)
from mnemosyned.domain.forget_preview import ForgetPreview
from mnemosyned.domain.memory import Episode, MemoryRecord
from mnemosyned.domain.ports.store import MemoryStore
from mnemosyned.domain.retention import ForgetFilter, Removal
from mnemosyned.domain.rollup import Level
from mnemosyned.domain.secrets.masking import mask_memory
from mnemosyned.domain.text.snippets import snippet
from mnemosyned.domain.text.terms import Terms, terms
from mnemosyned.domain.text.word_cache import clear_word_caches
from mnemosyned.logs import logger
from mnemosyned.service.backups import file_bytes, known_backups
from mnemosyned.service.clock_guard import ClockGuard
from mnemosyned.service.forgetting.pruning import Pruner
from mnemosyned.service.forgetting.purging import WORDS_REMAIN, Purger
from mnemosyned.service.intake import check_text, to_utc
from mnemosyned.service.policies import About, PolicyHolder
from mnemosyned.service.steps import CHUNK, chunks, in_steps
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.sleep.rewrite import rewrite_stale
from mnemosyned.verbs.request import names
from mnemosyned.verbs.retention import (
    Forget,
    Forgotten,
    Pin,
    Pinned,
    Restore,
    Restored,
    Unpin,
)

LISTED_MAX = 10_000
"""So many memories a preview lists at once, in some 0.4 s and 3 MB; `after` lists the rest."""
SNIPPET_CHARS = 100

log = logger()


class RetentionService:
    """Deletes memories and brings them back, in short steps that can be repeated."""

    def __init__(
        self,
        *,
        store: MemoryStore,
        cycle: SleepCycle,
        policies: PolicyHolder,
        about: About,
        guard: ClockGuard | None = None,
        on_removal: Callable[[], None] | None = None,
    ) -> None:
        """Call `on_removal` after text was deleted, for caches that hold copies of it.

        Without a `guard` the clock is always believed, as one that tests move is.
        """
        self._about = about
        self._policies = policies
        self.on_removal = on_removal or (lambda: None)
        self.purger = Purger(
            due=store.deletion.purge_due,
            work=self._purge,
            busy=lambda: cycle.gate.busy,
            background=about.in_background,
        )
        self.pruner = Pruner(
            store=store.retention,
            policies=policies,
            clock=cycle.clock,
            guard=guard,
            on_removal=self._announce_removal,
        )
        self._store = store
        self._cycle = cycle
        self._rewriting = threading.RLock()

    def __enter__(self) -> Self:
        """Finish what an interrupted process left: stale summaries at once, the purge later."""
        self.rewrite_stale_or_log()
        self.purger.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.purger.close()

    def _announce_removal(self) -> None:
        self.on_removal()

    def rewrite_stale_or_log(self, *, highest: Level = Level.MONTH) -> str:
        """Rewrite stale summaries after a committed change; return why some are left, if any.

        The change is kept in any case: a stale summary is empty until the next cycle or start
        rewrites it.
        """
        try:
            self.rewrite_stale(highest=highest)
        except StorageFailed as error:
            log.exception("rewriting_put_off")
            return (
                f"summaries wait to be rewritten until the next cycle: {error.reason}"
            )
        return ""

    def rewrite_stale(self, *, highest: Level = Level.MONTH) -> int:
        """Rewrite the stale summaries up to a level, and return how many."""
        return rewrite_stale(
            self._store,
            self._cycle.lease,
            policy=self._cycle.policy.rollup,
            exclusive=self._rewriting,
            highest=highest,
        )

    def after_cycle(self) -> None:
        """Prune by the settings, rewrite stale summaries, and purge what is due.

        A storage failure is logged, and the next cycle tries again.
        """
        try:
            self.pruner.prune_by_settings()
            self.rewrite_stale()
            self.purger.purge()
        except StorageFailed:
            log.exception("upkeep_put_off")

    # --------------------------------------------------------------- forget

    def forget(self, request: Forget) -> Forgotten:
        """Delete what is meant chunk by chunk, then rewrite what was made of it.

        Each chunk leaves everything whole: a summary made of what it took is empty until it is
        rewritten, at the latest when the memory is opened again. An episode is rewritten at once;
        the days, weeks and months above it, which many memories have in common, with the purge.
        """
        if request.after is not None and not request.dry_run:
            raise InvalidRequest(
                "after needs dry_run: it lists the rest of a preview", field="after"
            )
        try:
            ids, learned = self._meant(request)
        except NotFound as error:
            self.purger.finish_earlier(error)
            raise
        if request.dry_run:
            removal = self._store.deletion.preview(ids, learned=learned)
            left = _after(ids, request.after)
            lines = self._preview(left[:LISTED_MAX])
            further = max(0, len(left) - LISTED_MAX)
            return self._receipt(removal, dry_run=True, lines=lines, further=further)
        began = time.monotonic()
        removal = self._removed(ids, learned)
        problem = self.rewrite_stale_or_log(highest=Level.EPISODE)
        self._cycle.gate.rest_after(time.monotonic() - began)
        purged, unpurged = self.purger.attempt()
        if purged:  # also what a purge for others did not see
            problem = self.rewrite_stale_or_log()
        complete = purged and not problem
        log.info(
            "forgotten", count=removal.working + removal.archived, complete=complete
        )
        reason = "; ".join(filter(None, (unpurged, problem)))
        return self._receipt(removal, complete=complete, reason=reason)

    def _purge(self) -> bool:
        """Take what was forgotten out of the log's columns and every file of the database."""
        self.rewrite_stale()
        sessions, sources = self._store.deletion.orphaned_log_names()
        if sessions or sources:
            self._store.deletion.forget_names(sessions=sessions, sources=sources)
        complete = self._store.deletion.purge_deleted()
        clear_word_caches()
        self._store.maintenance.release_memory()
        if self._about.in_background:  # an embedding program collects its own garbage
            process_memory.trim(collect=True)
        return complete

    def _removed(self, ids: Sequence[str], learned: Sequence[str]) -> Removal:
        """Delete chunk by chunk. Raises `PartlyDone` where a later one fails."""

        def forgotten(removals: Sequence[Removal]) -> str:
            gone = sum(removal.working + removal.archived for removal in removals)
            return f"{gone:,} of {len(ids):,} memories are forgotten, though {WORDS_REMAIN}"

        def forget(chunk: Sequence[str]) -> Removal:
            removal = self._store.deletion.forget(chunk)
            self._announce_removal()
            return removal

        # The learnings beside them go last, as one more chunk.
        works: list[Callable[[], Removal]] = [
            partial(forget, chunk) for chunk in chunks(ids, CHUNK)
        ]
        works.append(partial(self._store.deletion.forget_learnings, learned))
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
                    "give either an id or filters, not both",
                    field="id",
                )
            memory = self._store.memories.get(request.id)
            if isinstance(memory, Episode):
                return self._store.deletion.ids_under(memory.id), []
            return [memory.id], []
        if not any(narrowing):
            raise InvalidRequest(
                "name what to forget: give an id or a filter (query, session, source, since, until, person)",
                field="id",
            )
        choice = _choice(request)
        deletion = self._store.deletion
        return deletion.select(choice), deletion.select_learnings(choice)

    def _preview(self, ids: Sequence[str]) -> list[ForgetPreview]:
        lines = []
        for id in ids:
            with suppress(NotFound):  # forgotten by somebody else meanwhile
                memory = self._store.memories.get(id)
                if isinstance(memory, MemoryRecord):
                    lines.append(_foreseen(memory))
        return lines

    def _receipt(
        self,
        removal: Removal,
        *,
        dry_run: bool = False,
        complete: bool = True,
        reason: str = "",
        lines: Sequence[ForgetPreview] = (),
        further: int = 0,
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
            further=further,
            untold=removal.pruned_losing_summary,
            file_bytes=file_bytes(self._about.database) if dry_run else 0,
            complete=complete,
            purge_in_s=None if complete or reason else self.purger.wait_s(),
            reason=reason,
            backups=known_backups(self._about.database, self._policies.backup.folder),
        )

    # ------------------------------------------------------ pin and restore

    def pin(self, request: Pin) -> Pinned:
        return self._set_pinned(request.id, pinned=True)

    def unpin(self, request: Unpin) -> Pinned:
        return self._set_pinned(request.id, pinned=False)

    def _set_pinned(self, id: str, *, pinned: bool) -> Pinned:
        if not self._store.retention.pin(id, pinned=pinned):
            memory = self._store.memories.get(id)
            if isinstance(memory, Episode):
                raise InvalidRequest(
                    f"only working memories can be pinned; {id} is an episode",
                    field="id",
                )
            if memory.episode:
                raise InvalidRequest(
                    f"only working memories can be pinned; {id} is archived. `restore` brings it "
                    "back, pinned",
                    field="id",
                )
        return Pinned(id, pinned)

    def restore(self, request: Restore) -> Restored:
        memory = self._store.memories.get(request.id)
        if isinstance(memory, Episode):
            raise InvalidRequest(
                f"{memory.id} is an episode; `expand` shows its originals, restore those",
                field="id",
            )
        if memory.episode is None:
            raise InvalidRequest(
                f"{memory.id} is in working memory already", field="id"
            )
        if memory.pruned_at:
            raise WordsPruned(
                f"the words of {memory.id} were pruned on {memory.pruned_at.date()}; "
                f"episode {memory.episode} tells of them",
                field="id",
            )
        removal = self._store.retention.restore(memory.id)
        self.rewrite_stale_or_log()
        return Restored(
            id=memory.id, episode=memory.episode, episode_removed=bool(removal.removed)
        )


def _choice(request: Forget) -> ForgetFilter:
    for name in ("query", "person"):
        check_text(getattr(request, name), field=name)
    words = terms(request.query) if request.query else None
    if words is not None and not words:
        raise InvalidRequest("query has no word to search for", field="query")
    if request.person is not None and not request.person.strip():
        raise InvalidRequest("person is empty", field="person")
    return ForgetFilter(
        terms=words,
        sessions=names(request.session),
        sources=names(request.source),
        since=to_utc(request.since, field="since") if request.since else None,
        until=to_utc(request.until, field="until") if request.until else None,
        person=request.person,
    )


def _after(ids: list[str], id: str | None) -> list[str]:
    """The ids that come after one of them; all without one."""
    if id is None:
        return ids
    if id not in ids:
        raise InvalidRequest(
            f"none of the memories that would go has the id {id!r}; leave after out to list them "
            "from the beginning",
            field="after",
        )
    return ids[ids.index(id) + 1 :]


def _foreseen(memory: MemoryRecord) -> ForgetPreview:
    text = " ".join(mask_memory(memory).content.split())
    return ForgetPreview(
        id=memory.id,
        tier=memory.tier,
        created_at=memory.created_at,
        session=memory.session,
        role=memory.role,
        snippet=snippet(text, Terms((), ()), width=SNIPPET_CHARS),
    )
