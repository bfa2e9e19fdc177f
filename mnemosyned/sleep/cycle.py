"""The sleep cycle: pending, plan, summarise, promote and evict, log; group by group."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from mnemosyned.domain.consolidation import (
    VERBATIM,
    Batch,
    CycleReport,
    CycleStatus,
    GroupLimits,
    GroupReport,
    GroupStatus,
    LogEntry,
    Pending,
    Trigger,
    make_episode,
    plan,
    preview,
)
from mnemosyned.domain.errors import MnemosynedError, SleepInProgress, SummarizerFailed
from mnemosyned.domain.memory import Episode, Memory, new_id
from mnemosyned.domain.ports import Clock, MemoryStore, Promotion, Summarizer
from mnemosyned.logs import logger

CANDIDATES_MAX = 200_000
"""What one cycle looks at; the rest waits for the next."""

log = logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class SleepPolicy:
    """What the cycle takes, and how it parts it."""

    ttl: timedelta = timedelta(hours=24)
    groups: GroupLimits = field(default_factory=GroupLimits)

    def cutoff(self, now: datetime) -> datetime:
        """What was created strictly before this is old enough. Source: the sleep seed, TTL/2."""
        return now - self.ttl / 2


class SleepCycle:
    """Runs one cycle at a time; whatever interrupts it, each group is whole or untouched."""

    def __init__(
        self, *, store: MemoryStore, summarizer: Summarizer, clock: Clock, policy: SleepPolicy
    ) -> None:
        self.policy = policy
        self.summarizer = summarizer
        self.last_finished: datetime | None = None
        self._store = store
        self._clock = clock
        self._running = threading.Lock()
        self._interrupted = threading.Event()

    @property
    def running(self) -> bool:
        """Whether a cycle is under way."""
        return self._running.locked()

    def interrupt(self) -> None:
        """Let the running cycle end after its present group, and no other start but the last."""
        self._interrupted.set()

    def run(
        self,
        *,
        trigger: Trigger,
        session: str | None = None,
        force: bool = False,
        dry_run: bool = False,
        oldest: int | None = None,
        deadline_s: float | None = None,
        go_on: Callable[[], bool] | None = None,
    ) -> CycleReport:
        """Consolidate what is old enough; with `force` everything, with `oldest` so many.

        `deadline_s` ends the cycle between two groups, and so does `go_on`, asked after each,
        when it says no. Raises `SleepInProgress`, at shutdown only after waiting for the running
        cycle until the deadline.
        """
        started = time.monotonic()
        ends = None if deadline_s is None else started + deadline_s
        now = self._clock.now()
        before = None if force or oldest is not None else self.policy.cutoff(now)
        if dry_run:
            pending = self._pending(before, session, oldest)
            groups = [_planned(batch) for batch in plan(pending, limits=self.policy.groups)]
            return _report(groups, trigger, pending, started, dry_run=True)
        wait_s = deadline_s if trigger is Trigger.SHUTDOWN else None
        with self._alone(wait_s):
            pending = self._pending(before, session, oldest)
            cycle = new_id(now)
            groups = []
            for batch in plan(pending, limits=self.policy.groups):
                late = ends is not None and time.monotonic() >= ends
                if late or (self._interrupted.is_set() and trigger is not Trigger.SHUTDOWN):
                    break
                if group := self._consolidate(batch, cycle, trigger):
                    groups.append(group)
                if go_on and not go_on():
                    break
            self.last_finished = self._clock.now()
            report = _report(groups, trigger, pending, started, cycle=cycle)
        log.info(
            "cycle_finished",
            cycle=cycle,
            trigger=trigger.value,
            status=report.status.value,
            promoted=report.promoted,
            evicted=report.evicted,
            failed=report.failed,
            duration_s=round(report.duration_s, 3),
        )
        return report

    def resummarize(self, episode: Episode, remaining: Sequence[Memory]) -> Episode:
        """The episode as it reads without what was forgotten."""
        summary = self.summarizer.summarize(remaining)
        return make_episode(
            remaining,
            id=episode.id,
            content=summary.text,
            summarizer=summary.summarizer,
            now=episode.created_at,
        )

    @contextmanager
    def _alone(self, wait_s: float | None) -> Iterator[None]:
        acquired = (
            self._running.acquire(timeout=wait_s)
            if wait_s is not None
            else self._running.acquire(blocking=False)
        )
        if not acquired:
            raise SleepInProgress("a sleep cycle is running; ask again when it has finished")
        try:
            yield
        finally:
            self._running.release()

    def _pending(
        self, before: datetime | None, session: str | None, oldest: int | None
    ) -> list[Pending]:
        limit = CANDIDATES_MAX if oldest is None else min(oldest, CANDIDATES_MAX)
        return self._store.pending(before=before, session=session, limit=limit)

    def _consolidate(self, batch: Batch, cycle: str, trigger: Trigger) -> GroupReport | None:
        started = time.monotonic()
        try:
            memories = self._store.working(batch.ids)
            if not memories:  # all forgotten since the plan was made
                return None
            promotions = self._promotions(memories, cycle, trigger, started)
            self._store.consolidate(promotions)
        except Exception as error:  # noqa: BLE001 one group's failure must not end the others'
            return self._failed(batch, cycle, trigger, started, error)
        entries = [promotion.entry for promotion in promotions]
        return GroupReport(
            session=batch.session,
            source=batch.source,
            status=entries[0].status,
            items=len(memories),
            covers_from=batch.covers_from,
            covers_until=batch.covers_until,
            episodes=tuple(promotion.episode.id for promotion in promotions),
            chars_before=sum(entry.chars_before for entry in entries),
            chars_after=sum(entry.chars_after for entry in entries),
        )

    def _promotions(
        self, memories: Sequence[Memory], cycle: str, trigger: Trigger, started: float
    ) -> list[Promotion]:
        """One episode of the group, or each memory word for word where it is too small."""
        if len(memories) < self.policy.groups.summarize_min:
            texts = [([memory], memory.content, VERBATIM) for memory in memories]
        else:
            summary = self.summarizer.summarize(memories)
            if not summary.text.strip():
                raise SummarizerFailed(f"{summary.summarizer} gave an empty summary")
            texts = [(list(memories), summary.text, summary.summarizer)]
        now = self._clock.now()
        return [
            self._promotion(
                make_episode(
                    originals, id=new_id(now), content=text, summarizer=summarizer, now=now
                ),
                originals,
                cycle=cycle,
                trigger=trigger,
                duration_s=time.monotonic() - started,
            )
            for originals, text, summarizer in texts
        ]

    @staticmethod
    def _promotion(
        episode: Episode,
        originals: Sequence[Memory],
        *,
        cycle: str,
        trigger: Trigger,
        duration_s: float,
    ) -> Promotion:
        verbatim = episode.summarizer == VERBATIM
        entry = LogEntry(
            cycle=cycle,
            created_at=episode.created_at,
            session=episode.session,
            source=episode.source,
            trigger=trigger,
            status=GroupStatus.VERBATIM if verbatim else GroupStatus.PROMOTED,
            items_consolidated=len(originals),
            episode=episode.id,
            summarizer=episode.summarizer,
            summary_preview=preview(episode.content),
            duration_s=duration_s,
            chars_before=sum(len(memory.content) for memory in originals),
            chars_after=len(episode.content),
        )
        return Promotion(episode, entry)

    def _failed(
        self, batch: Batch, cycle: str, trigger: Trigger, started: float, error: Exception
    ) -> GroupReport:
        code = error.code if isinstance(error, MnemosynedError) else type(error).__name__
        log.error("group_failed", cycle=cycle, items=len(batch.members), error=code, exc_info=error)
        self._store.record_failure(
            LogEntry(
                cycle=cycle,
                created_at=self._clock.now(),
                session=batch.session,
                source=batch.source,
                trigger=trigger,
                status=GroupStatus.FAILED,
                items_consolidated=0,
                episode=None,
                summarizer=self.summarizer.name,
                summary_preview="",
                error=code,
                duration_s=time.monotonic() - started,
                chars_before=batch.chars,
                chars_after=0,
            )
        )
        return _planned(batch, status=GroupStatus.FAILED, error=code)


def _planned(
    batch: Batch, *, status: GroupStatus = GroupStatus.PLANNED, error: str | None = None
) -> GroupReport:
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


def _report(
    groups: Sequence[GroupReport],
    trigger: Trigger,
    pending: Sequence[Pending],
    started: float,
    *,
    cycle: str = "",
    dry_run: bool = False,
) -> CycleReport:
    kept = [group for group in groups if group.status is not GroupStatus.FAILED]
    evicted = 0 if dry_run else sum(group.items for group in kept)
    failed = len(groups) - len(kept)
    if not pending:
        status = CycleStatus.NOTHING_TO_DO
    elif failed or sum(group.items for group in groups) < len(pending):
        status = CycleStatus.PARTIAL
    else:
        status = CycleStatus.DONE
    return CycleReport(
        cycle=cycle,
        status=status,
        trigger=trigger,
        dry_run=dry_run,
        candidates=len(pending),
        groups=tuple(groups),
        promoted=sum(len(group.episodes) for group in kept),
        evicted=evicted,
        failed=failed,
        chars_before=sum(group.chars_before for group in groups),
        chars_after=sum(group.chars_after for group in groups),
        duration_s=time.monotonic() - started,
    )
