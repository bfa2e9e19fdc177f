"""`MemoryService`: how each verb is done, one short method for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from mnemosyned.domain.errors import InvalidRequest, MnemosynedError, ShuttingDown
from mnemosyned.domain.exchange import Restored
from mnemosyned.domain.memory import Acknowledged, MemoryRecord, Revision
from mnemosyned.domain.ports.records import Draft
from mnemosyned.domain.revisions import mask_revision
from mnemosyned.domain.search.hits import hits
from mnemosyned.domain.search.placement import misses_time, with_summary
from mnemosyned.domain.search.ranking import rank
from mnemosyned.domain.secrets.exact_values import (
    mask_documents,
    mask_episode,
    without_superseded,
)
from mnemosyned.domain.secrets.masking import mask_memory
from mnemosyned.domain.sleep.cycles import CycleReport, Trigger
from mnemosyned.domain.text.snippets import beginnings
from mnemosyned.fairness import give_way
from mnemosyned.service.changing.verbs import change_verbs
from mnemosyned.service.conversation.compact import CompactService
from mnemosyned.service.conversation.compactions import CompactionArchive
from mnemosyned.service.conversation.context import ContextService
from mnemosyned.service.events import EventBus
from mnemosyned.service.exchange.service import CyclesMeanwhile, ExchangeService
from mnemosyned.service.history import with_history
from mnemosyned.service.holding import hold_sleep
from mnemosyned.service.intake import check_text, check_texts
from mnemosyned.service.listing import ListService
from mnemosyned.service.parts import ServiceParts
from mnemosyned.service.questions import missing_time_note, query_of
from mnemosyned.service.status import StatusService
from mnemosyned.sleep.context import CycleRequest
from mnemosyned.verbs.conversation import Compact, Context, Shortened
from mnemosyned.verbs.listing import ListMemories, Sessions, Sources
from mnemosyned.verbs.memories import (
    Expand,
    Expanded,
    Get,
    Got,
    Recall,
    Recalled,
    Remember,
    RememberedMany,
    RememberMany,
)
from mnemosyned.verbs.request import Request
from mnemosyned.verbs.retention import (
    BackedUp,
    Backup,
    Forget,
)
from mnemosyned.verbs.sleep import Log, Logged, Sleep, Undo
from mnemosyned.verbs.status import Status
from mnemosyned.verbs.streams.events import EventKind
from mnemosyned.verbs.streams.exchange import Export
from mnemosyned.verbs.watching import Watch, WatchedFolder, Watching

R = TypeVar("R")


def _watch_nothing(request: Watch) -> Watching:
    """Refuse to follow folders. Raises `InvalidRequest`."""
    if request.paths:
        raise InvalidRequest(
            "only the daemon follows folders; start it and ask it over its socket",
            field="paths",
        )
    return Watching([])


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)


class MemoryService:
    """The verbs over one store, safe to call from any thread."""

    def __init__(self, parts: ServiceParts, *, events: EventBus | None = None) -> None:
        self._parts = parts
        self._store = parts.store
        self._keeper = parts.keeper
        self.sleeper = parts.sleeper
        self._retention = parts.retention
        self._policies = parts.policies
        self._vectors = parts.vectors
        self._clock = parts.sleeper.cycle.clock
        self.events = events or EventBus(clock=self._clock)
        self._stopping = False
        self._archive = CompactionArchive(
            store=self._store, clock=self._clock, policies=self._policies
        )
        self._verbs = self._make_verbs()
        self._exchange = ExchangeService(
            store=self._store.archive.exchange,
            clock=self._clock,
            about=parts.about,
            cycles=CyclesMeanwhile(
                postpone=self.sleeper.postpone, on_restored=self._after_restoring
            ),
            secrets=lambda: self._policies.intake.secrets,
        )
        self.watched: Callable[[], list[WatchedFolder]] = list
        """Describes the folders that are followed."""

    def _make_verbs(self) -> dict[type[Request[Any]], Callable[[Any], Any]]:
        """Return the implementation of each verb."""
        self._compact = CompactService(
            lease=self.sleeper.cycle.lease,
            clock=self._clock,
            archive=self._archive,
            policies=self._policies,
        )
        context = ContextService(
            store=self._store,
            clock=self._clock,
            recaller=self,
            policies=self._policies,
        )
        lists = ListService(store=self._store.lists, clock=self._clock)
        status = StatusService(
            self._parts,
            count_today=lists.count_today,
            watched=lambda: self.watched(),  # noqa: PLW0108 it is set later
        )
        changes = change_verbs(
            store=self._store,
            sleeper=self.sleeper,
            retention=self._retention,
            policies=self._policies,
            vectors=self._vectors,
        )
        return changes | {
            Remember: self.remember,
            RememberMany: self.remember_many,
            Recall: self.recall,
            Get: self.get,
            Expand: self.expand,
            ListMemories: lists.list_memories,
            Sessions: lists.sessions,
            Sources: lists.sources,
            Sleep: self.sleep,
            Backup: self.backup,
            Status: status.status,
            Log: self.log,
            Context: context.context,
            Compact: self.compact,
            Watch: _watch_nothing,
        }

    def provide(self, verb: type[Request[R]], answer: Callable[[Any], R]) -> None:
        """Have another part do a verb, which only some memories have."""
        self._verbs[verb] = answer

    def call(self, request: Request[R], *, background: bool = False) -> R:
        """Run one verb. Raises an error of the domain, never half of the work.

        Nobody waits for one in the background, so that cycles do not yield to it.
        """
        if request.writes:
            self._check_running()
        try:
            result = self._answer(request, background=background)
        except MnemosynedError as error:
            if self.events.listening:
                self.events.refused(request, error)
            raise
        if self.events.listening:
            self.events.answered(request, result)
        return result

    def _answer(self, request: Request[R], *, background: bool) -> R:
        check_texts(request)
        answer = self._verbs[type(request)]
        result: R
        if background or isinstance(request, Sleep | Undo | Status | Forget):
            # Cycles do not yield to these.
            result = answer(request)
        else:
            with self.sleeper.cycle.gate:
                result = answer(request)
        return result

    def _check_running(self) -> None:
        if self._stopping:
            raise ShuttingDown(
                "the daemon is stopping and takes no more writes; start it and send this again"
            )

    # ------------------------------------------------------------- exchange

    def export(self, request: Export) -> Iterator[bytes]:
        """Return everything that is kept, as lines in chunks; closing it ends the snapshot."""
        return self._exchange.export(request)

    def restore_lines(self, lines: bytes | bytearray) -> Restored:
        """Store lines of an export exactly."""
        self._check_running()
        with self.sleeper.cycle.gate:
            return self._exchange.restore(lines)

    def _after_restoring(self) -> None:
        if self._vectors:
            self._vectors.remembered()
        self.sleeper.enforce_cap()

    # ----------------------------------------------------------------- ends

    def release(self) -> None:
        """Free what is cached in memory; later requests read it again."""
        self._store.maintenance.release_memory()

    def stop_writes(self) -> None:
        """From now on, refuse every verb that changes the store."""
        self._stopping = True
        self.events.publish(EventKind.STOPPING)

    # ------------------------------------------------------------- remember

    def remember(self, request: Remember) -> Acknowledged:
        draft = self._policies.intake.draft(request, now=self._clock.now())
        return self._keep([draft]).memories[0]

    def remember_many(self, request: RememberMany) -> RememberedMany:
        now = self._clock.now()
        drafts = []
        for index, memory in enumerate(request.memories):
            place = f"memories[{index}]."
            drafts.append(self._policies.intake.draft(memory, now=now, place=place))
            give_way()
        if request.dry_run:
            learnings = [learning for draft in drafts for learning in draft.learnings]
            return RememberedMany([], would_learn=learnings)
        return self._keep(drafts)

    def _keep(self, drafts: Sequence[Draft]) -> RememberedMany:
        kept = self._store.memories.remember(drafts)
        if self._vectors:
            self._vectors.remembered()
        if any(draft.supersedes for draft in drafts):
            self._retention.rewrite_stale_or_log()
        self.sleeper.enforce_cap(kept.working)
        memories = [
            replace(answer, secrets=draft.secrets) if draft.secrets else answer
            for answer, draft in zip(kept.acknowledged, drafts, strict=True)
        ]
        return RememberedMany(memories, kept.learned)

    # --------------------------------------------------------------- recall

    def recall(self, request: Recall) -> Recalled:
        check_text(request.query, field="query")
        query = query_of(request, now=self._clock.now())
        question = self._vectors.ask(request.query) if self._vectors else None
        candidates = self._store.search.candidates(query)
        note = ""
        if self._vectors:
            candidates, note = self._vectors.near(question, query, candidates)
        results = rank(query, candidates)
        places = with_summary(results, candidates, limit=query.limit)
        shown = self._store.search.documents(places)
        answer = hits(query, places, shown if request.reveal else mask_documents(shown))
        if request.history:
            answer = with_history(self._store.memories, answer, reveal=request.reveal)
        if misses_time(query, places, candidates):
            missing = missing_time_note(query, has_hits=bool(answer))
            note = f"{note}; {missing}" if note else missing
        return Recalled(answer, note, beginnings(query.terms))

    def get(self, request: Get) -> Got:
        record = self._store.memories.get(request.id)
        if isinstance(record, MemoryRecord):
            revisions: list[Revision] = []
            if request.history:
                revisions = self._store.changes.revisions(record.id)
            if request.reveal:
                return Got(memory=record, revisions=revisions)
            masked = [mask_revision(revision) for revision in revisions]
            return Got(memory=mask_memory(record), revisions=masked)
        episode = record if request.reveal else mask_episode(record)
        return Got(episode=without_superseded(episode))

    def expand(self, request: Expand) -> Expanded:
        if compacted := self._archive.expanded(request):
            return compacted
        episode = self._store.memories.get(request.id)
        if isinstance(episode, MemoryRecord):
            hint = (
                f"; it went into episode {episode.episode}" if episode.episode else ""
            )
            raise InvalidRequest(
                f"{request.id} is an original, not an episode{hint}; `get` shows it",
                field="id",
            )
        below = episode.level > 0 and request.depth == 1
        originals = [] if below else self._store.memories.originals(episode.id)
        if not request.reveal:
            originals = [mask_memory(memory, episode.details) for memory in originals]
            episode = mask_episode(episode)
        summaries = self._store.memories.summaries(episode.summary_of) if below else []
        return Expanded(without_superseded(episode), originals, summaries)

    def compact(self, request: Compact) -> Shortened:
        answer = self._compact.compact(request)
        self.sleeper.enforce_cap()
        return answer

    # ---------------------------------------------------------------- sleep

    def sleep(self, request: Sleep) -> CycleReport:
        if request.stop or request.pause_minutes is not None:
            return hold_sleep(request, self.sleeper.cycle.stopper)
        asked = CycleRequest(
            trigger=Trigger.EXPLICIT, session=request.session, force=request.force
        )
        if request.dry_run:
            return self.sleeper.cycle.preview(asked)
        return self.sleeper.sleep(asked)

    def log(self, request: Log) -> Logged:
        return Logged(
            self._store.sleep.log(
                limit=request.limit, session=request.session, cycle=request.cycle
            )
        )

    # ----------------------------------------------------------------- file

    def backup(self, request: Backup) -> BackedUp:
        return self._keeper.back_up(request)

    def look_after_file(self) -> None:
        """Check every few seconds that the file is in place, and checkpoint its log.

        Raises `DatabaseReplaced` when nothing more can be stored in it, and `StorageFailed`.
        """
        self._store.maintenance.ensure_durable()
        self._store.maintenance.run_idle_upkeep()
        self._retention.finish_forgotten()
