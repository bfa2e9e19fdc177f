"""The sleep cycle: what is pending, planned and consolidated group by group, one at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from mnemosyned.domain.consolidation import (
    VERBATIM,
    CycleReport,
    CycleStatus,
    GroupLimits,
    GroupReport,
    GroupStatus,
    Pending,
    Trigger,
    make_episode,
    plan,
)
from mnemosyned.domain.details import without_secrets
from mnemosyned.domain.errors import SleepInProgress, SummarizerFailed
from mnemosyned.domain.memory import Episode, Memory, new_id
from mnemosyned.domain.ports import (
    Clock,
    MemoryStore,
    Standing,
    Summarizer,
    SummarizerState,
    Summary,
)
from mnemosyned.logs import logger
from mnemosyned.sleep.run import CycleRun, unfinished

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
        self._at_work = summarizer
        self.last_finished: datetime | None = None
        self._store = store
        self._clock = clock
        self._running = threading.Lock()
        self._interrupted = threading.Event()

    @property
    def running(self) -> bool:
        """Whether a cycle is under way."""
        return self._running.locked()

    def use_summarizer(self, summarizer: Summarizer) -> None:
        """From the next cycle on, use this one; the former ends with the cycle that has it."""
        former, self.summarizer = self.summarizer, summarizer
        if self._running.acquire(blocking=False):
            self._running.release()
            former.close()

    def close(self) -> None:
        """End what runs for the summariser in force."""
        self.summarizer.close()

    def wait_idle(self, timeout_s: float) -> None:
        """Wait until no cycle runs, at most so long."""
        if self._running.acquire(timeout=timeout_s):
            self._running.release()

    def interrupt(self) -> None:
        """Let the running cycle end after its present group, and no other start but the last.

        That group waits for no model, and none is asked from here on.
        """
        self._interrupted.set()
        for summarizer in {id(one): one for one in (self.summarizer, self._at_work)}.values():
            summarizer.interrupt()

    def run(
        self,
        *,
        trigger: Trigger,
        session: str | None = None,
        force: bool = False,
        dry_run: bool = False,
        oldest: int | None = None,
        quick: bool = False,
        deadline_s: float | None = None,
        go_on: Callable[[], bool] | None = None,
    ) -> CycleReport:
        """Consolidate what is old enough; with `force` everything, with `oldest` so many.

        `quick` asks no model, as somebody waits; `deadline_s` ends the cycle between two groups,
        and so does `go_on`, asked before each, when it says no. Raises `SleepInProgress`, at
        shutdown only after waiting for the running cycle until the deadline.
        """
        started = time.monotonic()
        ends = None if deadline_s is None else started + deadline_s
        now = self._clock.now()
        before = None if force or oldest is not None else self.policy.cutoff(now)
        if dry_run:
            pending = self._pending(before, session, oldest)
            groups = [
                unfinished(batch, GroupStatus.PLANNED)
                for batch in plan(pending, limits=self.policy.groups)
            ]
            return _report(groups, trigger, pending, started, dry_run=True)
        wait_s = deadline_s if trigger is Trigger.SHUTDOWN else None
        with self._alone(wait_s):
            summarizer = self._at_work = self.summarizer
            before_it = summarizer.standing()
            pending = self._pending(before, session, oldest)
            cycle = new_id(now)
            run = CycleRun(
                cycle=cycle,
                trigger=trigger,
                store=self._store,
                summarizer=summarizer.quick() if quick else summarizer,
                clock=self._clock,
                summarize_min=self.policy.groups.summarize_min,
            )
            last = trigger is Trigger.SHUTDOWN

            def may_go_on() -> bool:
                late = ends is not None and time.monotonic() >= ends
                return (
                    not late
                    and (last or not self._interrupted.is_set())
                    and (go_on is None or go_on())
                )

            run.consolidate(plan(pending, limits=self.policy.groups), go_on=may_go_on)
            self.last_finished = self._clock.now()
            report = _report(run.reports, trigger, pending, started, cycle=cycle)
        if summarizer is not self.summarizer:  # the settings changed meanwhile
            summarizer.close()
        log.info(
            "cycle_finished",
            cycle=cycle,
            trigger=trigger.value,
            status=report.status.value,
            promoted=report.promoted,
            evicted=report.evicted,
            failed=report.failed,
            duration_s=round(report.duration_s, 3),
            **_model_counts(before_it, summarizer.standing()),
        )
        return report

    def resummarize(self, episode: Episode, remaining: Sequence[Memory]) -> Episode:
        """The episode as it reads without what was forgotten.

        Forgetting waits for no model, and must not fail for want of a summary: without one, the
        rest stands word for word.
        """
        readable, _ = without_secrets(remaining, known=episode.details)
        words = "\n".join(memory.content for memory in readable)
        try:
            summary = self.summarizer.quick().summarize(readable)
        except SummarizerFailed:
            summary = Summary(text=words, summarizer=VERBATIM)
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


def _model_counts(before: Standing, after: Standing) -> dict[str, int]:
    """What became of a model's work in between; nothing where there is no model."""
    if after.state is SummarizerState.RULES:
        return {}
    return {
        "accepted": after.accepted - before.accepted,
        "retried": after.retried - before.retried,
        "rejected": after.rejected - before.rejected,
        "fallbacks": after.fallbacks - before.fallbacks,
    }


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
