"""Consolidation of a cycle's batches: each is summarized, promoted and logged, or left as it was."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from mnemosyned.errors import (
    DatabaseUnreachable,
    MnemosynedError,
    StorageFailed,
    SummarizerFailed,
)
from mnemosyned.fairness import ACTIVE_S
from mnemosyned.ids import new_id
from mnemosyned.instants import calendar_time
from mnemosyned.logs import log_failure, logger
from mnemosyned.memory.consolidation import (
    UNSPOKEN,
    VERBATIM,
    Batch,
    CycleReport,
    CycleStatus,
    GroupReport,
    GroupStatus,
    LogEntry,
    log_preview,
    make_episode,
)
from mnemosyned.memory.endings import remove_ended_sentences
from mnemosyned.memory.engine_ports import Digest, Summary, select_mentionable
from mnemosyned.memory.masking import mask_memories
from mnemosyned.memory.periods import Level, begin_of, key_of
from mnemosyned.memory.ports import Promotion
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.sleep.context import CycleContext
from mnemosyned.summary.statements import add_speaker
from mnemosyned.text.details import Detail


def unfinished_report(batch: Batch, status: GroupStatus) -> GroupReport:
    """Return the report of a batch without episodes; its period is the day of its oldest memory."""
    return GroupReport(
        session=batch.session,
        source=batch.source,
        status=status,
        items=len(batch.members),
        covers_from=batch.covers_from,
        covers_until=batch.covers_until,
        chars_before=batch.chars,
        period=key_of(Level.DAY, begin_of(Level.DAY, calendar_time(batch.covers_from))),
    )


def cycle_report(
    groups: Sequence[GroupReport],
    *,
    context: CycleContext,
    candidates: int,
    problem: str = "",
) -> CycleReport:
    """Return the report of a cycle, summed up from the reports of its groups of memories.

    `candidates` is the number of memories that were due; `problem` says what ended the cycle early,
    or is empty.
    """
    episodes = [group for group in groups if not group.level]
    done = [group for group in episodes if group.status is not GroupStatus.FAILED]
    failed = sum(group.status is GroupStatus.FAILED for group in groups)
    evicted = sum(group.items for group in done)
    remaining = max(0, candidates - evicted)
    if context.stop.asked.is_set():
        status = CycleStatus.STOPPED
    elif failed or problem or remaining:
        status = CycleStatus.PARTIAL
    else:
        status = CycleStatus.DONE if groups else CycleStatus.NOTHING_TO_DO
    return CycleReport(
        cycle=context.id,
        status=status,
        trigger=context.request.trigger,
        dry_run=False,
        candidates=candidates,
        groups=tuple(groups),
        promoted=sum(len(group.episodes) for group in done),
        evicted=evicted,
        failed=failed,
        rolled_up=sum(len(group.episodes) for group in groups if group.level),
        remaining=remaining,
        chars_before=sum(group.chars_before for group in episodes),
        chars_after=sum(group.chars_after for group in episodes),
        duration_s=time.monotonic() - context.meter.started,
        problem=problem,
    )


READ_TOGETHER = 8
"""Batches whose memories are read at once, if no model takes minutes for each and no request comes."""
log = logger()


@dataclass(frozen=True, slots=True)
class BatchWork:
    """A batch to be summarized, with its memories as read from the store."""

    batch: Batch
    originals: Sequence[MemoryRecord]
    in_force: Sequence[MemoryRecord]
    """The originals without the sentences that newer memories ended."""
    details: tuple[Detail, ...] | None
    """The exact values of all originals if a sentence was left out, else None."""
    revision: int
    """The newest edit of any memory before they were read."""
    started: float


@dataclass(frozen=True, slots=True)
class FinishedBatch:
    """A summarized batch to be committed, with its episodes."""

    batch: Batch
    promotions: list[Promotion]
    started: float
    finished: float


class ConsolidationRun:
    """Consolidation of one cycle's batches, in order, with a report of each."""

    def __init__(self, context: CycleContext) -> None:
        """Begin without reports; `context` holds the store, settings and limits of the cycle."""
        self.reports: list[GroupReport] = []
        self.failed: set[str] = set()
        """The memories of groups that failed: they stay, and are not tried again in this cycle."""
        self.items = 0
        """Memories processed so far."""
        self.ended = False
        """Whether the cycle may not continue."""
        self.lost: StorageFailed | None = None
        """Why it may not, where the database went away or takes nothing: no group is tried in vain."""
        self._context = context
        self._store = context.store
        self._summarizer = context.summarizer
        self._pacing = context.pacing
        self._finished: list[FinishedBatch] = []
        self._is_flush_due = False
        """Whether a power failure may still undo what was committed."""
        self._since_checkpoint = 0
        self._computed_s = time.thread_time()
        """Processor time of this thread at the end of the last rest."""
        self._group_s = self._pacing.hold_s / self._pacing.groups_max
        """Estimated time to commit one group, from the recent commits."""

    def consolidate(self, batches: Sequence[Batch]) -> None:
        """Summarize the batches of memories, commit their episodes, and add a report of each batch.

        No transaction is open while a model writes. When the cycle may not continue, the batches in progress
        are finished and the others stay in working memory.
        """
        works = ((work, work.in_force) for work in self._read_batches(batches))
        for work, outcome in self._summarizer.digest_each(works, expected=len(batches)):
            if isinstance(outcome, Exception):
                self._record_failed_batch(work.batch, work.started, outcome)
            elif not outcome.summary.text.strip():
                empty = SummarizerFailed(
                    f"{outcome.summary.summarizer} gave an empty summary"
                )
                self._record_failed_batch(work.batch, work.started, empty)
            else:
                details = outcome.details if work.details is None else work.details
                digest = replace(outcome, details=details)
                self._finish_batch(work, [(work.originals, digest)])
        self.commit(is_last=True)
        if not self._is_flush_due:
            return
        try:
            self._store.maintenance.flush()
        except StorageFailed as error:
            # What is promoted stays promoted, unless power fails before the next flush.
            log.warning("flush_failed", cycle=self._context.id, reason=error.reason)

    def _read_batches(self, batches: Sequence[Batch]) -> Iterator[BatchWork]:
        """Yield the batches that need a summary while the cycle may continue; finish others word for word."""
        for work in self._read_works(batches):
            if self.ended or not self._context.may_continue():
                self.ended = True
                return
            self._context.yield_to_requests()
            lasting = [memory for memory in work.originals if memory.lasting]
            chars = sum(len(memory.content) for memory in lasting)
            if self._context.limits.are_summarized(len(lasting), chars):
                self._context.meter.count_read(lasting)
                yield work
            elif work.originals:  # else all were forgotten or moved since the plan
                self._finish_batch(work, _verbatim_digests(work))

    def _read_works(self, batches: Sequence[Batch]) -> Iterator[BatchWork]:
        """Yield each batch with its memories; record failed reads, and stop if the database is unreachable."""
        gate, first = self._context.gate, 0
        together = 1 if self._context.has_model else READ_TOGETHER
        while first < len(batches):
            count = together if gate.quiet_s > ACTIVE_S else 1
            part, started = batches[first : first + count], time.monotonic()
            try:
                with self._store.search.one_snapshot():
                    revision = self._store.sleep.newest_revision()
                    memories = self._store.memories.working(
                        [id for batch in part for id in batch.ids]
                    )
                    ended = self._store.endings.of([memory.id for memory in memories])
            except DatabaseUnreachable as error:
                self.ended, self.lost = True, error
                return
            except StorageFailed as error:
                if len(part) == 1:
                    self._record_failed_batch(part[0], started, error)
                    first += 1
                together = 1
                continue
            for batch in part:
                first += 1
                planned = {
                    member.id: (member.session, member.source, member.created_at)
                    for member in batch.members
                }
                originals = [
                    memory
                    for memory in memories
                    if planned.get(memory.id)
                    == (memory.session, memory.source, memory.created_at)
                ]
                # A summary of what applies, unless nothing does.
                in_force = remove_ended_sentences(originals, ended) or originals
                details = None
                if in_force != originals:
                    # A secret of an ended sentence is masked in the others, too.
                    _, details = mask_memories(originals)
                    in_force, _ = mask_memories(in_force, known=details)
                begun = time.monotonic()
                yield BatchWork(batch, originals, in_force, details, revision, begun)
                if gate.quiet_s < time.monotonic() - started:
                    break  # A request may have changed the others: read them again.

    def _finish_batch(
        self, work: BatchWork, digests: Iterable[tuple[Sequence[MemoryRecord], Digest]]
    ) -> None:
        """Make the episodes of a batch from its digests (summaries), to be committed; commit if due."""
        promotions = [
            self._make_promotion(work, originals, digest)
            for originals, digest in digests
        ]
        self._finished.append(
            FinishedBatch(work.batch, promotions, work.started, time.monotonic())
        )
        if self._is_commit_due():
            self.commit()

    def _is_commit_due(self) -> bool:
        """Return True if finished batches are many, old or made by a model, or if requests are waiting."""
        newest = self._finished[-1].promotions
        if self._context.has_model and not any(
            promotion.entry.fallback_reason for promotion in newest
        ):
            return True  # a crash costs a model the summary it writes, and none before
        pacing, count = self._pacing, len(self._finished)
        if count >= pacing.groups_max:
            return True
        if self._context.is_contended or (count + 1) * self._group_s > pacing.hold_s:
            return True
        return time.monotonic() - self._finished[0].finished >= pacing.wait_s

    def commit(self, *, is_last: bool = False) -> None:
        """Store the episodes of all finished batches, and move their memories to the archive.

        Each batch is committed completely or not at all, and has a report afterwards. The last commit waits
        until it is on disk. Then run upkeep if it is due, and rest in proportion to the work.
        """
        finished, self._finished = self._finished, []
        self._context.yield_to_requests()
        began = time.monotonic()
        # A `remember` that came next would wait for the disk to take what was not flushed here.
        durable = is_last or self._context.has_model or self._context.is_contended
        outcomes = self._store.sleep.consolidate(
            [group.promotions for group in finished], durable=durable
        )
        if None in outcomes:
            self._is_flush_due = not durable
        if finished:
            each_s = (time.monotonic() - began) / len(finished)
            self._group_s = (self._group_s + each_s) / 2
        for group, error in zip(finished, outcomes, strict=True):
            if isinstance(error, DatabaseUnreachable):
                self.ended, self.lost = True, error
            elif error:
                self._record_failed_batch(group.batch, group.started, error)
            else:
                self.items += len(group.batch.members)
                entries = [promotion.entry for promotion in group.promotions]
                report = replace(
                    unfinished_report(group.batch, entries[0].status),
                    items=sum(entry.items_consolidated for entry in entries),
                    episodes=tuple(each.episode.id for each in group.promotions),
                    chars_before=sum(entry.chars_before for entry in entries),
                    chars_after=sum(entry.chars_after for entry in entries),
                    fallback_reason=entries[0].fallback_reason,
                )
                self.reports.append(report)
        self._since_checkpoint += len(finished) + self._pacing.commit_groups
        if self._since_checkpoint >= self._pacing.checkpoint_groups:
            self._since_checkpoint = self._pacing.checkpoint_groups
            try:
                if self._store.maintenance.run_upkeep():
                    self._since_checkpoint = 0
            except StorageFailed as failure:  # tried again after the next commit
                log.warning(
                    "checkpoint_failed", cycle=self._context.id, reason=failure.reason
                )
        # What was computed since the last rest kept requests waiting, too.
        computed_s = time.thread_time() - self._computed_s
        self._context.rest_after(time.monotonic() - began + computed_s)
        self._computed_s = time.thread_time()

    def _make_promotion(
        self, work: BatchWork, originals: Sequence[MemoryRecord], digest: Digest
    ) -> Promotion:
        """Return the episode of some memories of a batch, with its log entry, ready to be stored."""
        now = self._context.clock.now()
        summary = digest.summary
        episode = make_episode(
            originals,
            id=new_id(now),
            content=summary.text,
            summarizer=summary.summarizer,
            now=now,
            details=digest.details,
        )
        is_verbatim = summary.summarizer == VERBATIM
        entry = LogEntry(
            cycle=self._context.id,
            created_at=now,
            session=episode.session,
            source=episode.source,
            trigger=self._context.request.trigger,
            status=GroupStatus.VERBATIM if is_verbatim else GroupStatus.PROMOTED,
            items_consolidated=len(originals),
            episode=episode.id,
            summarizer=summary.summarizer,
            summary_preview=log_preview(summary.text),
            duration_s=time.monotonic() - work.started,
            chars_before=sum(len(memory.content) for memory in originals),
            chars_after=len(summary.text),
            fallback_reason=summary.fallback_reason or None,
            model_share=summary.model_share or None,
        )
        spoken = frozenset(memory.id for memory in originals if memory.lasting)
        return Promotion(
            episode, entry, spoken, summary.index_terms, revision=work.revision
        )

    def _record_failed_batch(
        self, batch: Batch, started: float, error: Exception
    ) -> None:
        """Log and report a batch that failed; its memories stay for the next cycle.

        If not even the failure can be stored, the cycle ends.
        """
        report = unfinished_report(batch, GroupStatus.FAILED)
        report, lost = record_failure(self._context, report, error, started=started)
        if lost:
            self.ended, self.lost = True, lost
        self.reports.append(report)
        self.failed.update(batch.ids)
        self.items += len(batch.members)


def record_failure(
    context: CycleContext,
    group: GroupReport,
    error: Exception,
    *,
    started: float,
    episode: str | None = None,
) -> tuple[GroupReport, StorageFailed | None]:
    """Log a failed group or period, also in the store; return its report with the code of the error.

    `started` is by the monotonic clock, `episode` the id of a summary that was to be rewritten. A failure of
    the store causes a warning, and is returned, too.
    """
    lost = None
    code = error.code if isinstance(error, MnemosynedError) else type(error).__name__
    log_failure(
        "rollup_failed" if group.level else "group_failed",
        error,
        cycle=context.id,
        **({"period": group.period} if group.level else {}),
        items=group.items,
        error=code,
    )
    entry = LogEntry(
        cycle=context.id,
        created_at=context.clock.now(),
        session=group.session,
        source=group.source,
        trigger=context.request.trigger,
        status=GroupStatus.FAILED,
        items_consolidated=0,
        episode=episode,
        summarizer="",
        summary_preview="",
        error=code,
        duration_s=time.monotonic() - started,
        chars_before=group.chars_before,
        chars_after=0,
        level=group.level,
    )
    try:
        context.store.sleep.record_failure(entry)
    except StorageFailed as failure:
        lost = failure
        log.warning("failure_not_recorded", cycle=context.id, reason=failure.reason)
    return replace(group, error=code), lost


def _verbatim_digests(
    work: BatchWork,
) -> Iterator[tuple[Sequence[MemoryRecord], Digest]]:
    """Yield the memories and the digest of each episode of a batch that is kept word for word.

    Each memory becomes an episode, without ended sentences; memories that no summary may mention share one.
    """
    in_force = {memory.id: memory for memory in work.in_force}
    told = [in_force.get(memory.id, memory) for memory in work.originals]
    lasting, details = select_mentionable(told)
    if work.details is not None:
        details = work.details
    masked = {memory.id: add_speaker(memory) for memory in lasting}
    texts = [
        ([memory], masked[memory.id])
        for memory in work.originals
        if memory.id in masked
    ]
    if unsummarized := [memory for memory in work.originals if not memory.lasting]:
        texts.append((unsummarized, UNSPOKEN))
    for memories, text in texts:
        ids = {memory.id for memory in memories}
        kept = tuple(detail for detail in details if detail.memory in ids)
        yield (
            memories,
            Digest(summary=Summary(text=text, summarizer=VERBATIM), details=kept),
        )
