"""One cycle under way: a batch is summarised, promoted, evicted and logged, or left as it was."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from mnemosyned.domain.consolidation import (
    VERBATIM,
    Batch,
    GroupReport,
    GroupStatus,
    LogEntry,
    Trigger,
    make_episode,
    preview,
)
from mnemosyned.domain.errors import MnemosynedError, SummarizerFailed
from mnemosyned.domain.memory import Memory, new_id
from mnemosyned.domain.ports import Clock, MemoryStore, Promotion, Summarizer
from mnemosyned.logs import logger

GROUPS_PER_COMMIT = 16
COMMIT_AFTER_S = 0.1
"""A finished group waits at most this long, and one more group, for others to share its commit:
with a model each is committed by itself, without one a flush of the disk serves many."""

log = logger()


@dataclass(frozen=True, slots=True)
class _Finished:
    """A batch with its summary, not yet on disk."""

    batch: Batch
    promotions: list[Promotion]
    started: float


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
    ) -> None:
        self.reports: list[GroupReport] = []
        self._cycle = cycle
        self._trigger = trigger
        self._store = store
        self._summarizer = summarizer
        self._clock = clock
        self._summarize_min = summarize_min
        self._finished: list[_Finished] = []

    def consolidate(self, batch: Batch) -> None:
        """Summarise a batch, with no transaction open; `commit` puts it on disk."""
        started = time.monotonic()
        try:
            memories = self._store.working(batch.ids)
            if not memories:  # all forgotten since the plan was made
                return
            promotions = self._promotions(memories, started)
        except Exception as error:  # noqa: BLE001 one group's failure must not end the others'
            self._fail(batch, started, error)
            return
        self._finished.append(_Finished(batch, promotions, started))
        full = len(self._finished) >= GROUPS_PER_COMMIT
        if full or time.monotonic() - self._finished[0].started >= COMMIT_AFTER_S:
            self.commit()

    def commit(self) -> None:
        """Promote, evict and log what is finished, each group all or nothing."""
        finished, self._finished = self._finished, []
        outcomes = self._store.consolidate([group.promotions for group in finished])
        for group, error in zip(finished, outcomes, strict=True):
            if error:
                self._fail(group.batch, group.started, error)
            else:
                self.reports.append(_done(group))

    def _promotions(self, memories: Sequence[Memory], started: float) -> list[Promotion]:
        """One episode of the group, or each memory word for word where it is too small."""
        if len(memories) < self._summarize_min:
            return [
                self._promotion([memory], memory.content, VERBATIM, started) for memory in memories
            ]
        summary = self._summarizer.summarize(memories)
        if not summary.text.strip():
            raise SummarizerFailed(f"{summary.summarizer} gave an empty summary")
        return [self._promotion(memories, summary.text, summary.summarizer, started)]

    def _promotion(
        self, originals: Sequence[Memory], content: str, summarizer: str, started: float
    ) -> Promotion:
        now = self._clock.now()
        episode = make_episode(
            originals, id=new_id(now), content=content, summarizer=summarizer, now=now
        )
        entry = LogEntry(
            cycle=self._cycle,
            created_at=now,
            session=episode.session,
            source=episode.source,
            trigger=self._trigger,
            status=GroupStatus.VERBATIM if summarizer == VERBATIM else GroupStatus.PROMOTED,
            items_consolidated=len(originals),
            episode=episode.id,
            summarizer=summarizer,
            summary_preview=preview(content),
            duration_s=time.monotonic() - started,
            chars_before=sum(len(memory.content) for memory in originals),
            chars_after=len(content),
        )
        return Promotion(episode, entry)

    def _fail(self, batch: Batch, started: float, error: Exception) -> None:
        """Log a group that stays in working memory, for the next cycle to try again."""
        code = error.code if isinstance(error, MnemosynedError) else type(error).__name__
        log.error(
            "group_failed", cycle=self._cycle, items=len(batch.members), error=code, exc_info=error
        )
        self._store.record_failure(
            LogEntry(
                cycle=self._cycle,
                created_at=self._clock.now(),
                session=batch.session,
                source=batch.source,
                trigger=self._trigger,
                status=GroupStatus.FAILED,
                items_consolidated=0,
                episode=None,
                summarizer=self._summarizer.name,
                summary_preview="",
                error=code,
                duration_s=time.monotonic() - started,
                chars_before=batch.chars,
                chars_after=0,
            )
        )
        self.reports.append(unfinished(batch, GroupStatus.FAILED, error=code))


def unfinished(batch: Batch, status: GroupStatus, *, error: str | None = None) -> GroupReport:
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
    )


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
    )
