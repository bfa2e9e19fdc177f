"""`MemoryService`: one short method for each verb."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from mnemosyned import errors, fairness
from mnemosyned.config.settings import SettingsInForce
from mnemosyned.conversation.learnings.relevance import RateTexts
from mnemosyned.conversation.successors import put_successors_first
from mnemosyned.memory import capture, engine_ports, masking, ports, values
from mnemosyned.memory.consolidation import CycleReport, Trigger
from mnemosyned.memory.exchange import RestoreReport
from mnemosyned.search import placement, ranking, scoring
from mnemosyned.search.confidence import (
    ResultJudge,
    format_period_asked,
    split_by_confidence,
)
from mnemosyned.search.query import Query, SearchCandidates
from mnemosyned.service import backups, briefing, forgetting, intake, reading
from mnemosyned.service.changes import ChangeService
from mnemosyned.service.context import WindowService
from mnemosyned.service.endings import EndingFinder, add_endings, mask_ended
from mnemosyned.service.events import EventBus
from mnemosyned.service.exchange import ExchangeService
from mnemosyned.service.undo import UndoService, make_import_action
from mnemosyned.sleep.context import CycleRequest
from mnemosyned.sleep.sleeper import Sleeper
from mnemosyned.text.languages.tables import TimeOrder
from mnemosyned.text.secrets.masking import (
    KnownSecrets,
    mask_metadata,
    mask_secrets,
)
from mnemosyned.text.terms import match_beginnings
from mnemosyned.verbs import facade, listing, memories as verbs, upkeep
from mnemosyned.verbs.conversation import Briefing, Compact, Context, Shortened
from mnemosyned.verbs.exchange import Export
from mnemosyned.verbs.request import Request, check_texts
from mnemosyned.verbs.retention import Forget
from mnemosyned.version import __version__

if TYPE_CHECKING:
    from mnemosyned.assembly.build import WatcherHost
    from mnemosyned.search.vectors.bearing import BearingRater
    from mnemosyned.service.owners import OwnerLimiter
    from mnemosyned.storage.common.records import RecordStore


def add_history(
    memories: RecordStore, hits: Sequence[values.Hit], *, reveal: bool
) -> list[values.Hit]:
    """Return the hits with the memories they superseded; drop hits already shown under another hit.

    Secrets are masked unless `reveal`.
    """
    shown_ids = {hit.id: [line.id for line in hit.lines] or [hit.id] for hit in hits}
    dated = []
    for hit in hits:
        older = {
            memory.id: memory if reveal else masking.mask_memory(memory)
            for id in shown_ids[hit.id]
            for memory in memories.history(id)
        }
        history = tuple(
            values.Line(
                id=memory.id,
                created_at=memory.created_at,
                role=memory.role,
                content=memory.content,
                score=0.0,
                superseded_at=memory.superseded_at,
            )
            for memory in older.values()
        )
        dated.append(replace(hit, history=history))
    superseded = {line.id for hit in dated for line in hit.history}
    return [hit for hit in dated if not superseded.issuperset(shown_ids[hit.id])]


STARTED = time.monotonic()
"""Start of the process: the memory of an owner is opened later, and may be opened again."""
STOP_WAIT_S = 3_000.0
"""Seconds that a request to stop a cycle waits for the current batch, which a model may write."""


R = TypeVar("R")
Groups = Mapping[str, Callable[[], "MemoryService"]]
"""Functions that open the memories of groups, by name."""
NO_GROUPS: Groups = {}
GROUPS_S = 1.0
"""Seconds after which no other group's memory is searched for the same question."""

STOPPING = (
    "the daemon is stopping and takes no more writes; start it and send this again"
)


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Return the machine's present time in UTC."""
        return datetime.now(UTC)


@dataclass(eq=False, kw_only=True)
class MemoryService:
    """The verbs over one store, safe to call from any thread."""

    store: ports.MemoryStore
    sleeper: Sleeper
    retention: forgetting.RetentionService
    settings: SettingsInForce
    keeper: backups.BackupKeeper
    endings: EndingFinder
    lists: reading.ListService
    events: EventBus
    database: str
    """Where the memory is, as it may be shown."""
    schema_version: int
    vectors: engine_ports.MemoryVectors
    rater: BearingRater | None = None
    """Rates learnings and prompts by their meaning; None without a built-in encoder."""
    limits: OwnerLimiter | None = None
    """The limits of owners, in a daemon that serves many."""

    def __post_init__(self) -> None:
        self.rate_texts: RateTexts | None = self.rater.rate if self.rater else None
        """Rates learnings by their meaning; None without a built-in encoder."""
        self.rate_prompt = self.rater.rate_prompt if self.rater else None
        self.watcher: WatcherHost | None = None
        """Follows folders; only in a daemon that serves a socket."""
        self.find_warnings: Callable[[], Sequence[str]] = tuple
        """Returns further warnings for the status, such as those on owners."""
        self._clock = self.sleeper.cycle.clock
        self._stopping = False
        self._window = WindowService(
            store=self.store,
            clock=self._clock,
            settings=self.settings,
            recall=self.recall,
            rate=self.rate_texts,
            lease=self.sleeper.cycle.lease,
            on_archived=self._count_archived,
        )
        self.briefings = briefing.BriefingService(
            store=self.store,
            clock=self._clock,
            settings=self.settings,
            compare=lambda ids: self.vectors.compare(self.vectors.vectors_of(ids)),
            rate_statements=self.rate_statements,
        )
        self._verbs: dict[type[Request[Any]], Callable[..., Any]] = {
            verbs.Recall: self.recall,
            verbs.Remember: self.remember,
            verbs.RememberMany: self.remember_many,
            upkeep.Status: self.status,
        }
        self._exchange = ExchangeService(
            store=self.store.exchange,
            clock=self._clock,
            database=self.database,
            file=self.keeper.file,
            schema_version=self.schema_version,
            postpone_cycles=self.sleeper.postpone,
            on_restored=self._after_restore,
            secrets=lambda: self.settings.config.secrets,
        )

    @cached_property
    def _all_verbs(self) -> dict[type[Request[Any]], Callable[..., Any]]:
        """The functions of all verbs by request type, made when a rare verb is first called."""
        # Loaded here: it needs this module.
        from mnemosyned.service.reminder import Reminder  # noqa: PLC0415

        changes = ChangeService(
            store=self.store,
            sleeper=self.sleeper,
            retention=self.retention,
            endings=self.endings,
            vectors=self.vectors,
        )
        undo = UndoService(
            store=self.store,
            sleeper=self.sleeper,
            retention=self.retention,
            changes=changes,
        )
        functions: dict[str, Callable[..., Any]] = {
            "undo": undo.undo,
            "forget": self.retention.forget,
            "edit": changes.edit,
            "tag": changes.change_tags,
            "untag": changes.change_tags,
            "pin": changes.change_pins,
            "unpin": changes.change_pins,
            "restore": self.retention.restore,
            "prune": self.retention.prune,
            "learn": changes.learn,
            "learnings": changes.learnings,
            "edit_learning": changes.edit_learning,
            "remove_learning": changes.remove_learning,
            "get": self.get,
            "expand": self.expand,
            "list": self.lists.list_memories,
            "sessions": self.lists.sessions,
            "sources": self.lists.sources,
            "projects": lambda request: listing.ProjectList(
                self.store.lists.projects(request.limit)
            ),
            "days": self.lists.days,
            "sleep": self.sleep,
            "backup": self.keeper.back_up,
            "log": self.log,
            "context": self._window.context,
            "compact": self.compact,
            "endings": self.endings.list_endings,
            "undo_ending": self.endings.undo,
            "injections": self.briefings.injections,
            "rate_injection": self.briefings.rate,
            "briefing": Reminder(self).brief,
            "edit_briefing": self.briefings.edit,
            "watch": self.watch,
        }
        return {facade.VERBS[verb]: function for verb, function in functions.items()}

    def call(
        self,
        request: Request[R],
        *,
        background: bool = False,
        groups: Groups = NO_GROUPS,
    ) -> R:
        """Run the verb of a request, publish its event, and return the result.

        Raises a `MnemosynedError`; then nothing is changed, except for `PartlyDone`. Sleep cycles do
        not yield to a call in the `background`, as nobody waits for it. `recall`, `context` and `briefing`
        also search the memories of `groups`.
        """
        if request.writes and self._stopping:
            raise errors.ShuttingDown(STOPPING)
        try:
            check_texts(request)
            if request.writes and self.limits:
                self.limits.admit(self.events.owner, request)
            answer = self._verbs.get(type(request))
            answer = answer or self._all_verbs[type(request)]
            if groups and isinstance(request, verbs.Recall | Context | Briefing):
                answer = partial(answer, groups=groups)
            result: R
            if background or isinstance(
                request, upkeep.Sleep | upkeep.Undo | upkeep.Status | Forget
            ):
                # Cycles do not yield to these.
                result = answer(request)
            else:
                with self.sleeper.cycle.gate:
                    result = answer(request)
        except errors.MnemosynedError as error:
            if self.events.listening:
                self.events.publish_refusal(request, error)
            raise
        if request.writes:
            self.sleeper.changed_at = time.monotonic()
            changes = verbs.Edited | verbs.Tagged | verbs.Pinned
            if self.limits and isinstance(result, changes) and not result.dry_run:
                self.limits.count_write(
                    self.events.owner,
                    memories=0,
                    size=0,
                    writes=max(
                        0, result.memories - 1
                    ),  # one was counted at the request
                )
        if self.events.listening:
            self.events.publish_answer(request, result)
        return result

    def export(self, request: Export) -> Iterator[bytes]:
        """Yield the selected records as lines, some at a time; closing the iterator ends the snapshot."""
        return self._exchange.export(request)

    def restore_lines(
        self, lines: bytes | bytearray, import_id: str | None = None
    ) -> RestoreReport:
        """Store records in lines of an export as they are, undoable by `import_id`; return counts."""
        if self._stopping:
            raise errors.ShuttingDown(STOPPING)
        if self.limits:
            count = lines.count(b"\n")
            self.limits.use_write(self.events.owner, memories=count, size=len(lines))
        with self.sleeper.cycle.gate:
            action = make_import_action(import_id, self._clock.now())
            return self._exchange.restore(lines, action)

    def _after_restore(self) -> None:
        """Queue restored memories for endings and vectors; start a cycle if working memory is too full."""
        self.sleeper.changed_at = time.monotonic()
        self.endings.read_again()
        self.endings.on_found()
        self.vectors.note_new_memories()
        self.sleeper.enforce_cap()

    def stop_writes(self) -> None:
        """Refuse all later requests that change the store, and publish that the daemon stops."""
        self._stopping = True
        self.events.publish(upkeep.EventKind.STOPPING)

    def remember(self, request: verbs.Remember) -> values.Acknowledged:
        """Store one memory; return the id, and whether the memory is new."""
        draft = intake.make_draft(request, self.settings.config, now=self._clock.now())
        return self._store_drafts([draft]).memories[0]

    def remember_many(self, request: verbs.RememberMany) -> verbs.RememberedMany:
        """Store all memories of a request, or none; with `dry_run`, only return what would be learned.

        With an `import_id`, also save the projects of agents' sessions.
        """
        now = self._clock.now()
        drafts = []
        for index, memory in enumerate(request.memories):
            place = f"memories[{index}]."
            config = self.settings.config
            drafts.append(intake.make_draft(memory, config, now=now, place=place))
            fairness.pause_for_other_owners()
        if request.dry_run:
            learnings = [learning for draft in drafts for learning in draft.learnings]
            return verbs.RememberedMany([], would_learn=learnings)
        # For later briefings there, and so that no rule replaces one of another project.
        stored = [draft.memory for draft in drafts] if request.import_id else ()
        last = {each.session: each for each in stored if "cwd" in each.metadata}
        for session, latest in last.items():
            client, _, conversation = session.partition(":")
            project, directory = map(latest.metadata.get, ("project", "cwd"))
            is_known = not project or self.store.agents.session(session)
            if is_known or client != latest.source or not conversation:
                continue
            agent_session = capture.AgentSession(
                session=session,
                client=client,
                conversation=conversation,
                started_at=latest.created_at,
                seen_at=latest.created_at,
                project=str(project),
                directory=str(directory),
            )
            self.store.agents.keep_session(agent_session)
        return self._store_drafts(drafts, make_import_action(request.import_id, now))

    def _store_drafts(
        self, drafts: Sequence[ports.Draft], action: values.Action | None = None
    ) -> verbs.RememberedMany:
        """Store drafts, all or none, queue endings and vectors, start a cycle if due; return their answers."""
        group, member = intake.MEMBER.get()
        if group and group == self.events.owner:
            drafts = [intake.name_member(draft, member) for draft in drafts]
        kept = self.store.memories.remember(drafts, action=action)
        self.endings.note_new_memories()
        self.vectors.note_new_memories()
        if any(draft.supersedes for draft in drafts):
            self.retention.rewrite_stale_or_log()
        self.sleeper.enforce_cap(kept.working)
        memories = [
            replace(answer, secrets=draft.secrets) if draft.secrets else answer
            for answer, draft in zip(kept.acknowledged, drafts, strict=True)
        ]
        return verbs.RememberedMany(memories, kept.learned)

    def recall(
        self, request: verbs.Recall, groups: Groups = NO_GROUPS
    ) -> verbs.Recalled:
        """Return the hits for a question, best first, with secrets masked unless revealed.

        Hits of `groups` are ranked together with this memory's. A group whose search fails, or
        begins after `GROUPS_S` seconds, is left out with a note.
        """
        begin = time.perf_counter()
        self.endings.find_soon()
        query = reading.make_query(request, now=self._clock.now())
        question = self.vectors.ask(query.topic or request.query)
        # A thread that waits for a vector, or for a connection for a group, holds no connection meanwhile.
        if question and not query.terms.are_names_and_codes:
            question.vector()
        with nullcontext() if groups else self.store.search.one_snapshot():
            recalled = self._recall(request, query, question, groups)
        self.lists.count_recall(time.perf_counter() - begin)
        return recalled

    def _recall(
        self,
        request: verbs.Recall,
        query: Query,
        question: engine_ports.PendingVector | None,
        groups: Groups,
    ) -> verbs.Recalled:
        """Return the hits for a question in this memory and `groups`, with notes, for `recall`."""
        found, note = self.search(query, question)
        searched: dict[str | None, MemoryService] = {None: self}
        candidates, notes = [found], [note]
        # From here on: a slow search of one's own memory leaves out no group.
        begin = time.perf_counter()
        for name, open_memory in groups.items():
            note = f"the memory of {name} was left out, for lack of time"
            if time.perf_counter() - begin < GROUPS_S:
                try:
                    memory = open_memory()
                    memory.endings.find_soon()
                    found, note = memory.search(query, question)
                except errors.MnemosynedError as error:
                    note = f"the memory of {name} was left out: {error.message}"
                else:
                    searched[name] = memory
                    candidates.append(found)
            notes.append(note)
        merged = ranking.merge_candidates(candidates)
        reader = scoring.TermReader(query.terms, merged.corpus)
        places = ranking.rank(query, merged, reader)
        if query.order in (None, TimeOrder.CURRENT):
            vectors = [each.vectors.vectors_at for each in searched.values()]
            places = put_successors_first(
                places,
                merged.memories,
                lambda rows: self.vectors.compare(ranking.read_vectors(rows, vectors)),
            )
        if query.topic is not None:
            places = ranking.spread_results(
                places, merged.memories, limit=request.limit, topic=query.topic
            )
        readers = [each.store.search.documents for each in searched.values()]
        places, shown = ranking.read_documents(places, readers)
        if not request.reveal:
            masked = masking.mask_together([*shown.memories.values()])
            shown = replace(
                shown, memories=dict(zip(shown.memories, masked, strict=True))
            )
        judge = ResultJudge(query, merged, reader)
        group, _ = intake.MEMBER.get()
        hits = ranking.make_hits(
            query,
            places,
            shown,
            judge,
            owners=tuple(searched),
            in_group=bool(group) and group == self.events.owner,
        )
        rest: dict[str | None, Iterator[values.Hit]] = {}
        for owner, memory in searched.items():
            own = [hit for hit in hits if hit.owner == owner]
            own = add_endings(memory.store.endings, own, reveal=request.reveal)
            if request.history:
                own = add_history(memory.store.memories, own, reveal=request.reveal)
            rest[owner] = iter(own)
        # In the order of one memory, with the places of the memories as they were.
        answer = [each for hit in hits for each in islice(rest[hit.owner], 1)]
        confidence = max((hit.confidence for hit in answer), default=0.0)
        if query.spans and placement.misses_time(query, places, merged):
            note = f"nothing that matches is from {format_period_asked(query)}"
            others = "; what follows is from other times" if answer else ""
            notes.append(note + others)
        sure, nearest = split_by_confidence(query, answer)
        return verbs.Recalled(
            sure,
            "; ".join(filter(None, dict.fromkeys(notes))),
            match_beginnings(query.terms),
            confidence=confidence,
            nearest=nearest,
        )

    def search(
        self, query: Query, question: engine_ports.PendingVector | None
    ) -> tuple[SearchCandidates, str]:
        """Return the candidates for a question, and a note on missing parts of the search, or ""."""
        with self.store.search.one_snapshot():
            candidates = self.store.search.candidates(query)
            is_listing = query.only_then and not query.subject
            is_found = is_listing or query.terms.are_names_and_codes
            if is_found and candidates.memories:
                return candidates, ""  # meaning would add noise
            return self.vectors.add_similarities(question, query, candidates)

    def rate_statements(self, texts: Mapping[str, str]) -> Mapping[str, float]:
        """Return {memory id: log odds that later sessions need the text}, for `texts` by memory id.

        Memories without a vector are left out. Without a built-in encoder, return none.
        """
        if not self.rater:
            return {}
        return self.rater.rate_statements(texts, self.vectors.vectors_of)

    def get(self, request: verbs.Get) -> verbs.Got:
        """Return one memory or episode in full, with secrets masked unless revealed."""
        record = self.store.memories.get(request.id)
        if isinstance(record, values.MemoryRecord):
            revisions: list[values.Revision] = []
            if request.history:
                revisions = self.store.changes.revisions(record.id)
            ended = list(self.store.endings.of([record.id]).get(record.id, ()))
            if request.reveal:
                return verbs.Got(memory=record, revisions=revisions, ended=ended)
            masked = [
                replace(
                    each,
                    text=each.text and mask_secrets(each.text),
                    fields=mask_metadata(each.fields),
                )
                for each in revisions
            ]
            ended = [mask_ended(each) for each in ended]
            # As in the originals of its summary.
            summary = record.episode
            secrets = self.store.memories.secrets(summary) if summary else ()
            shown = masking.mask_memory(record, KnownSecrets(secrets))
            return verbs.Got(memory=shown, revisions=masked, ended=ended)
        episode = record if request.reveal else masking.mask_episode(record)
        return verbs.Got(episode=masking.without_superseded(episode))

    def expand(self, request: verbs.Expand) -> verbs.Expanded:
        """Return a summary or compaction with its originals, or with `depth` 1 the summaries directly below."""
        if compacted := self._window.expand(request):
            return compacted
        episode = self.store.memories.get(request.id)
        if isinstance(episode, values.MemoryRecord):
            hint = (
                f"; it went into episode {episode.episode}" if episode.episode else ""
            )
            raise errors.InvalidRequest(
                f"{request.id} is an original, not an episode{hint}; `get` shows it",
                field="id",
            )
        below = episode.level > 0 and request.depth == 1
        originals = [] if below else self.store.memories.originals(episode.id)
        if not request.reveal:
            # The details of a roll-up are those of its first episodes alone.
            known = KnownSecrets(
                self.store.memories.secrets(episode.id) if originals else ()
            )
            originals = [masking.mask_memory(memory, known) for memory in originals]
            episode = masking.mask_episode(episode)
        summaries = self.store.memories.summaries(episode.summary_of) if below else []
        return verbs.Expanded(masking.without_superseded(episode), originals, summaries)

    def compact(self, request: Compact) -> Shortened:
        """Shorten a conversation, and start a cycle if working memory is too full."""
        answer = self._window.compact(request)
        self.sleeper.enforce_cap()
        return answer

    def _count_archived(self, sizes: Collection[int]) -> None:
        """Count the messages that a compaction stored, by their bytes, toward the owner's limits."""
        if self.limits and sizes:
            count = len(sizes) - 1  # one was counted at the request
            self.limits.count_write(self.events.owner, memories=count, size=sum(sizes))

    def sleep(self, request: upkeep.Sleep) -> CycleReport:
        """Run, preview, stop or pause sleep cycles, as a request asks."""
        stopper, minutes = self.sleeper.cycle.stopper, request.pause_minutes
        if request.stop:
            if request != upkeep.Sleep(stop=True):
                raise errors.InvalidRequest(
                    "stop ends the running cycle, whatever it was started with; give nothing else",
                    field="stop",
                )
            return stopper.stop(STOP_WAIT_S)
        if minutes is not None:
            if request != upkeep.Sleep(pause_minutes=minutes):
                raise errors.InvalidRequest(
                    "pause_minutes runs no cycle; give nothing else",
                    field="pause_minutes",
                )
            self.sleeper.waits_for = ""  # it may name an earlier pause
            return stopper.pause(timedelta(minutes=minutes))
        asked = CycleRequest(
            trigger=Trigger.EXPLICIT, session=request.session, force=request.force
        )
        if request.dry_run:
            return self.sleeper.cycle.preview(asked)
        self.endings.find_before_sleep()
        return self.sleeper.sleep(asked)

    def status(self, _: upkeep.Status) -> upkeep.Stats:
        """Return the state of the store and the daemon: counts, sizes, cycles and problems."""
        maintenance, embedder = self.store.maintenance, self.vectors.status()
        is_ready = embedder.state is values.EmbedderState.READY
        replaced = [embedder.reason] if is_ready and embedder.reason else []
        size = self.lists.bytes_on_disk()
        limits = [*self.limits.list_uses(self.events.owner)] if self.limits else []
        # What is wrong with a server is for whoever runs it, and not for one of its owners.
        problems = [] if self.limits else maintenance.problems()
        warnings = [] if self.limits else maintenance.warnings()
        warnings += [*self.keeper.warnings(), *replaced, *self.find_warnings()]
        # What uses other connections comes before.
        with self.store.search.one_snapshot():
            return upkeep.Stats(
                version=__version__,
                schema_version=self.schema_version,
                database=self.database,
                bytes_on_disk=size,
                tiers=dict(maintenance.totals()),
                today=self.lists.count_today(),
                wm_max=self.settings.config.wm_max,
                sleep=self.sleeper.status(),
                summarizer=self.sleeper.cycle.lease.status(),
                counter=self.settings.counter.name,
                embedder=embedder,
                pid=os.getpid(),
                uptime_s=round(time.monotonic() - STARTED, 3),
                clock=self.retention.doubt(),
                longest_write_ms=round(maintenance.longest_write_s() * 1_000, 3),
                purge_due=self.store.deletion.purge_due(),
                recoverable=self.store.deletion.recoverable(),
                agents=self.store.agents.activity(),
                injections=self.store.injections.totals(),
                watched=self.watcher.folders() if self.watcher else [],
                backup=self.keeper.status(),
                restart_needed=list(self.settings.restart_needed),
                problems=problems,
                warnings=warnings,
                limits=limits,
            )

    def watch(self, request: upkeep.Watch) -> upkeep.Watching:
        """Add or remove watched folders, and return all. Raises `InvalidRequest` if nothing can watch."""
        if self.watcher:
            return self.watcher.watch(request)
        if request.paths:
            raise errors.InvalidRequest(
                "only the daemon watches folders; start it and ask it over its socket",
                field="paths",
            )
        return upkeep.Watching([])

    def log(self, request: upkeep.Log) -> upkeep.Logged:
        """Return rows of the consolidation log, newest first."""
        return upkeep.Logged(self.store.sleep.log(**msgspec.structs.asdict(request)))

    def look_after_file(self) -> None:
        """Check that the database file is in place, checkpoint it, and end grace periods.

        Call this every few seconds. Raises `StorageFailed`, and `DatabaseReplaced` if nothing
        more can be stored in the file.
        """
        self.store.maintenance.ensure_durable()
        self.store.maintenance.run_idle_upkeep()
        self.retention.finish_forgotten()
