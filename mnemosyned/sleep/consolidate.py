"""One cycle under way: a batch is summarized, promoted, evicted and logged, or left as it was."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from mnemosyned.domain.consolidation import (
    UNSPOKEN,
    VERBATIM,
    Batch,
    CycleReport,
    CycleStatus,
    GroupReport,
    GroupStatus,
    LogEntry,
    Trigger,
    make_episode,
    preview,
)
from mnemosyned.domain.errors import MnemosynedError, StorageFailed, SummarizerFailed
from mnemosyned.domain.memory import Detail, MemoryRecord, new_id
from mnemosyned.domain.ports.models import Digest, Summarizer, Summary, spoken_of
from mnemosyned.domain.ports.store import Clock, MemoryStore, Promotion
from mnemosyned.domain.rollup import Level, begin_of, key_of
from mnemosyned.logs import logger
from mnemosyned.sleep.budget import Meter
from mnemosyned.sleep.throttle import Company

GROUPS_PER_COMMIT = 8
COMMIT_AFTER_S = 0.1
"""A finished group waits at most this long, and one more group, for others to share its commit:
with a model each is committed by itself, without one a flush of the disk serves many."""
HOLD_S = 0.05
HOLD_IN_COMPANY_S = 0.003
"""So long a commit should keep others from writing; as many groups share one as past ones tell."""
CHECKPOINT_GROUPS = 75
"""After so many groups, about 4 MB of writing, the log file is folded in beside the writers."""
COMMIT_GROUPS = 4
"""A commit writes as much as its groups and so many more: pages that each touches anew."""

log = logger()


@dataclass(frozen=True, slots=True)
class _Work:
    """A batch with its memories, on its way to the summarizer."""

    batch: Batch
    originals: Sequence[MemoryRecord]
    started: float


@dataclass(frozen=True, slots=True)
class _Finished:
    """A batch with its episodes, not yet on disk."""

    batch: Batch
    promotions: list[Promotion]
    started: float
    finished: float


class CycleRun:
    """Takes the batches of one cycle, in order, and remembers what became of each."""

    def __init__(
        self,
        *,
        cycle: str,
        trigger: Trigger,
        store: MemoryStore,
        summarizer: Summarizer,
        clock: Clock,
        summarize_min: int,
        meter: Meter,
        durable: bool,
        company: Company | None,
    ) -> None:
        self.reports: list[GroupReport] = []
        self.failed: set[str] = set()
        """The memories of groups that failed: they stay, and are not tried again in this cycle."""
        self.items = 0
        """Memories dealt with so far."""
        self.ended = False
        """Whether it was told to go on no longer."""
        self._cycle = cycle
        self._trigger = trigger
        self._store = store
        self._summarizer = summarizer
        self._clock = clock
        self._summarize_min = summarize_min
        self._meter = meter
        self._company = company
        self._durable = durable
        self._finished: list[_Finished] = []
        self._since_checkpoint = 0
        self._group_s = HOLD_S / GROUPS_PER_COMMIT
        """What a group takes to commit, as the last ones tell."""

    def consolidate(
        self, batches: Sequence[Batch], *, go_on: Callable[[], bool]
    ) -> None:
        """Work the batches off, with no transaction open while they are summarized.

        `go_on` is asked before each; when it says no, what is begun is finished and the rest is
        left as it was.
        """
        works = ((work, work.originals) for work in self._works(batches, go_on))
        for work, outcome in self._summarizer.digest_each(works, expected=len(batches)):
            if isinstance(outcome, Exception):
                self._fail(work.batch, work.started, outcome)
            elif not outcome.summary.text.strip():
                empty = SummarizerFailed(
                    f"{outcome.summary.summarizer} gave an empty summary"
                )
                self._fail(work.batch, work.started, empty)
            else:
                self._finish(work, [(work.originals, outcome)])
        self.commit()
        try:
            self._store.settle()
        except (
            StorageFailed
        ) as error:  # what is promoted stays so, unless power fails before
            log.warning("settle_failed", cycle=self._cycle, reason=error.reason)

    def _works(
        self, batches: Sequence[Batch], go_on: Callable[[], bool]
    ) -> Iterator[_Work]:
        """Read the batches; those too small to summarize are finished word for word."""
        for batch in batches:
            if not go_on():
                self.ended = True
                return
            if self._company:
                self._company.give_way()
            started = time.monotonic()
            try:
                originals = self._store.working(batch.ids)
            except StorageFailed as error:
                self._fail(batch, started, error)
                continue
            work = _Work(batch, originals, started)
            lasting = [memory for memory in originals if memory.lasting]
            if len(lasting) >= self._summarize_min:
                self._meter.read(lasting)
                yield work
            elif originals:  # else all were forgotten since the plan was made
                self._finish(work, _word_for_word(work))

    def _finish(
        self, work: _Work, digests: Sequence[tuple[Sequence[MemoryRecord], Digest]]
    ) -> None:
        promotions = [
            self._promotion(work, originals, digest) for originals, digest in digests
        ]
        self._finished.append(
            _Finished(work.batch, promotions, work.started, time.monotonic())
        )
        hold_s = (
            HOLD_IN_COMPANY_S if self._company and self._company.present else HOLD_S
        )
        full = len(self._finished) >= GROUPS_PER_COMMIT
        full = full or (len(self._finished) + 1) * self._group_s > hold_s
        if full or time.monotonic() - self._finished[0].finished >= COMMIT_AFTER_S:
            self.commit()

    def commit(self) -> None:
        """Promote, evict and log what is finished, each group all or nothing."""
        finished, self._finished = self._finished, []
        if self._company:
            self._company.give_way()
        began = time.monotonic()
        # Each flush of the disk would keep waiting whoever remembers something meanwhile.
        outcomes = self._store.consolidate(
            [group.promotions for group in finished], durable=self._durable
        )
        if finished:
            each_s = (time.monotonic() - began) / len(finished)
            self._group_s = (self._group_s + each_s) / 2
        for group, error in zip(finished, outcomes, strict=True):
            if error:
                self._fail(group.batch, group.started, error)
            else:
                self.items += len(group.batch.members)
                self.reports.append(_done(group))
        self._since_checkpoint += len(finished) + COMMIT_GROUPS
        if self._since_checkpoint >= CHECKPOINT_GROUPS:
            self._since_checkpoint = 0 if self._checkpoint() else CHECKPOINT_GROUPS
        if self._company:
            self._company.rest(time.monotonic() - began)

    def _checkpoint(self) -> bool:
        try:
            return self._store.checkpoint()
        except StorageFailed as error:  # tried again after the next commit
            log.warning("checkpoint_failed", cycle=self._cycle, reason=error.reason)
            return False

    def _promotion(
        self, work: _Work, originals: Sequence[MemoryRecord], digest: Digest
    ) -> Promotion:
        now = self._clock.now()
        summary = digest.summary
        content, summarizer = summary.text, summary.summarizer
        episode = make_episode(
            originals,
            id=new_id(now),
            content=content,
            summarizer=summarizer,
            now=now,
            details=digest.details,
        )
        entry = LogEntry(
            cycle=self._cycle,
            created_at=now,
            session=episode.session,
            source=episode.source,
            trigger=self._trigger,
            status=GroupStatus.VERBATIM
            if summarizer == VERBATIM
            else GroupStatus.PROMOTED,
            items_consolidated=len(originals),
            episode=episode.id,
            summarizer=summarizer,
            summary_preview=preview(content),
            duration_s=time.monotonic() - work.started,
            chars_before=sum(len(memory.content) for memory in originals),
            chars_after=len(content),
            fallback_reason=summary.fallback_reason or None,
        )
        spoken = frozenset(memory.id for memory in originals if memory.lasting)
        return Promotion(episode, entry, spoken)

    def _fail(self, batch: Batch, started: float, error: Exception) -> None:
        """Log a group that stays in working memory, for the next cycle to try again."""
        code = (
            error.code if isinstance(error, MnemosynedError) else type(error).__name__
        )
        log.error(
            "group_failed",
            cycle=self._cycle,
            items=len(batch.members),
            error=code,
            exc_info=error,
        )
        record_failure(
            self._store,
            LogEntry(
                cycle=self._cycle,
                created_at=self._clock.now(),
                session=batch.session,
                source=batch.source,
                trigger=self._trigger,
                status=GroupStatus.FAILED,
                items_consolidated=0,
                episode=None,
                summarizer="",  # nobody wrote anything
                summary_preview="",
                error=code,
                duration_s=time.monotonic() - started,
                chars_before=batch.chars,
                chars_after=0,
            ),
        )
        self.failed.update(batch.ids)
        self.items += len(batch.members)
        self.reports.append(unfinished(batch, GroupStatus.FAILED, error=code))


def record_failure(store: MemoryStore, entry: LogEntry) -> None:
    """Write a failure to the log; where the disk takes no more, the report alone has it."""
    try:
        store.record_failure(entry)
    except StorageFailed as error:
        log.warning("failure_not_recorded", cycle=entry.cycle, reason=error.reason)


def _word_for_word(work: _Work) -> list[tuple[Sequence[MemoryRecord], Digest]]:
    """Each memory by itself; those that no summary speaks of together."""
    lasting, details = spoken_of(work.originals)
    masked = {memory.id: memory.content for memory in lasting}
    texts = [
        ([memory], masked[memory.id])
        for memory in work.originals
        if memory.id in masked
    ]
    if passing := [memory for memory in work.originals if not memory.lasting]:
        texts.append((passing, UNSPOKEN))
    return [(memories, _verbatim(memories, text, details)) for memories, text in texts]


def _verbatim(
    memories: Sequence[MemoryRecord], text: str, details: Sequence[Detail]
) -> Digest:
    ids = {memory.id for memory in memories}
    return Digest(
        summary=Summary(text=text, summarizer=VERBATIM),
        details=tuple(detail for detail in details if detail.memory in ids),
    )


def unfinished(
    batch: Batch, status: GroupStatus, *, error: str | None = None
) -> GroupReport:
    """The report of a group that is only planned, or that failed."""
    return GroupReport(
        session=batch.session,
        source=batch.source,
        status=status,
        items=len(batch.members),
        covers_from=batch.covers_from,
        covers_until=batch.covers_until,
        chars_before=batch.chars,
        error=error,
        period=_day(batch),
    )


def _day(batch: Batch) -> str:
    return key_of(Level.DAY, begin_of(Level.DAY, batch.covers_from))


def _done(group: _Finished) -> GroupReport:
    entries = [promotion.entry for promotion in group.promotions]
    return GroupReport(
        session=group.batch.session,
        source=group.batch.source,
        status=entries[0].status,
        items=sum(entry.items_consolidated for entry in entries),
        covers_from=group.batch.covers_from,
        covers_until=group.batch.covers_until,
        episodes=tuple(promotion.episode.id for promotion in group.promotions),
        chars_before=sum(entry.chars_before for entry in entries),
        chars_after=sum(entry.chars_after for entry in entries),
        fallback_reason=entries[0].fallback_reason,
        period=_day(group.batch),
    )


def cycle_report(
    groups: Sequence[GroupReport],
    trigger: Trigger,
    candidates: int,
    started: float,
    *,
    cycle: str = "",
    dry_run: bool = False,
    model_s: float | None = None,
    problem: str = "",
) -> CycleReport:
    """What a cycle did, or would do; `started` by the monotonic clock."""
    episodes = [group for group in groups if not group.level]
    kept = [group for group in episodes if group.status is not GroupStatus.FAILED]
    failed = sum(group.status is GroupStatus.FAILED for group in groups)
    dealt_with = sum(group.items for group in kept)
    if not candidates and not groups:
        status = CycleStatus.NOTHING_TO_DO
    elif failed or problem or dealt_with < candidates:
        status = CycleStatus.PARTIAL
    else:
        status = CycleStatus.DONE
    return CycleReport(
        cycle=cycle,
        status=status,
        trigger=trigger,
        dry_run=dry_run,
        candidates=candidates,
        groups=tuple(groups),
        promoted=sum(len(group.episodes) for group in kept),
        evicted=0 if dry_run else dealt_with,
        failed=failed,
        folded=sum(len(group.episodes) for group in groups if group.level),
        remaining=max(0, candidates - (0 if dry_run else dealt_with)),
        chars_before=sum(group.chars_before for group in episodes),
        chars_after=sum(group.chars_after for group in episodes),
        duration_s=time.monotonic() - started,
        model_s=model_s,
        problem=problem,
    )
