"""Request, context and early end of a sleep cycle, and the summarizer's lease."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from queue import Empty, SimpleQueue
from threading import Event

from mnemosyned import errors, instants
from mnemosyned.config.settings import SleepConfig
from mnemosyned.fairness import ACTIVE_S, ForegroundGate
from mnemosyned.memory import consolidation, engine_ports, ports, values
from mnemosyned.memory.clock import Clock
from mnemosyned.text.token_counts import CHARS_PER_TOKEN

A_CYCLE = "a sleep cycle"
A_RETELLING = "the summary of a conversation"


class SummarizerLease:
    """Lease of the one summarizer, to one borrower at a time; safe from any thread.

    A summarizer that is replaced while it is lent is closed when it is returned.
    """

    def __init__(
        self,
        summarizer: engine_ports.Summarizer,
        rate_events: engine_ports.RateEvents | None = None,
    ) -> None:
        """Lend `summarizer` until it is replaced; `rate_events` rates statements for roll-ups, if given."""
        self.current = summarizer
        """The summarizer for the next borrower."""
        self.rate_events = rate_events
        self._lent = summarizer
        self._lock = threading.Lock()
        self._interrupted = threading.Event()
        self._purpose = A_CYCLE

    @property
    def has_model(self) -> bool:
        """Whether a language model is configured."""
        return self.status().state is not values.SummarizerState.RULES

    @property
    def is_lent(self) -> bool:
        """Whether a cycle or a caller has borrowed the summarizer."""
        return self._lock.locked()

    @property
    def is_in_cycle(self) -> bool:
        """Whether a cycle has borrowed the summarizer."""
        return self.is_lent and self._purpose == A_CYCLE

    @property
    def is_interrupted(self) -> bool:
        """Whether cycles must end after the group of memories that they work on."""
        return self._interrupted.is_set()

    def status(self) -> values.SummarizerStatus:
        """Return the name and state of the present summarizer, and its counts since the start."""
        return self.current.status()

    @contextmanager
    def exclusive(
        self, *, wait_s: float = 0.0, purpose: str = A_CYCLE
    ) -> Iterator[engine_ports.Summarizer]:
        """Lend the summarizer to the block, once nobody else has it.

        Raises `SleepInProgress` after `wait_s`. Other borrowers get an error that names the `purpose`.
        """
        if not self._lock.acquire(timeout=wait_s):
            raise errors.SleepInProgress(
                f"{self._purpose} is running; ask again when it has finished"
            )
        self._purpose = purpose
        summarizer = self._lent = self.current
        try:
            yield summarizer
        finally:
            self._return_summarizer(summarizer)

    def summarize(
        self, memories: Sequence[values.MemoryRecord], *, time_limit_s: float
    ) -> engine_ports.Summary:
        """Return the summary of memories, for a caller who waits up to `time_limit_s`.

        Raises `SleepInProgress` while the summarizer is lent, and `SummarizerFailed` if it fails or the time
        is up. The model may go on after that, up to its own limits; until it ends, it stays lent.
        """
        if not self._lock.acquire(blocking=False):
            raise errors.SleepInProgress(
                f"{self._purpose} has the model; ask again when it has finished"
            )
        self._purpose = A_RETELLING
        summarizer = self._lent = self.current
        answers: SimpleQueue[engine_ports.Summary | Exception] = SimpleQueue()

        def work() -> None:
            """Summarize the memories, hand over summary or error, and return the summarizer."""
            try:
                answers.put(summarizer.summarize_or_error(memories))
            finally:
                self._return_summarizer(summarizer)

        threading.Thread(target=work, name="retelling", daemon=True).start()
        try:
            outcome = answers.get(timeout=time_limit_s)
        except Empty:
            raise errors.SummarizerFailed(
                f"{summarizer.name} took longer than its limit of {time_limit_s:g} s"
            ) from None
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def replace(self, summarizer: engine_ports.Summarizer) -> None:
        """Lend `summarizer` from now on, and close the former one as soon as nobody uses it."""
        former, self.current = self.current, summarizer
        if self._lock.acquire(blocking=False):
            self._lock.release()
            former.close()

    def interrupt(self) -> None:
        """Cancel the model's answer, and end the running cycle after its present group of memories.

        The extractive summarizer finishes that group. Until the summarizer is resumed, later cycles consolidate
        nothing, except a program's final cycle, which then uses no model.
        """
        self._interrupted.set()
        self.current.interrupt()
        if self._lent is not self.current:
            self._lent.interrupt()

    def wait_idle(self, timeout_s: float) -> None:
        """Return once nobody has borrowed the summarizer, or after `timeout_s`."""
        if self._lock.acquire(timeout=timeout_s):
            self._lock.release()

    def close(self) -> None:
        """End the processes of the present summarizer."""
        self.current.close()

    def _return_summarizer(self, summarizer: engine_ports.Summarizer) -> None:
        """Return the borrowed summarizer to the lease; close it if it was replaced."""
        self._lock.release()
        if summarizer is not self.current:
            summarizer.close()


HOLD = timedelta(minutes=15)
"""Time after a stop in which no background cycle starts, as a trigger would start one at once."""


@dataclass(slots=True)
class CycleStop:
    """Request to end one cycle early, with which others wait for its end. Safe from any thread."""

    asked: Event = field(default_factory=Event)
    """Set to let the cycle end after the groups of memories it works on."""
    over: Event = field(default_factory=Event)
    """Set when the cycle has ended, for whatever reason."""
    report: consolidation.CycleReport | None = None
    """The report of the cycle; None until it is over, and where it failed."""


_NO_CYCLE = CycleStop()
"""Stop request of a cycle that is over, for a `CycleStopper` before its first cycle."""
_NO_CYCLE.over.set()


EMPTY_REPORT = consolidation.CycleReport(
    cycle="",
    status=consolidation.CycleStatus.NOT_RUNNING,
    trigger=consolidation.Trigger.EXPLICIT,
    dry_run=False,
    candidates=0,
    groups=(),
    duration_s=0.0,
    promoted=0,
    evicted=0,
    failed=0,
    chars_before=0,
    chars_after=0,
)
"""The report of a cycle that did not run."""


class CycleStopper:
    """Stops the running cycle, and holds back background cycles for a while."""

    def __init__(self, clock: Clock) -> None:
        """Begin with no running cycle; `clock` says when a hold ends."""
        self._clock = clock
        self._current = _NO_CYCLE
        self._held_from: datetime | None = None
        self._hold = HOLD

    def begin(self) -> CycleStop:
        """Return a new stop request for a cycle that begins; `stop` then acts on that cycle."""
        self._current = CycleStop()
        return self._current

    def stop(self, timeout_s: float) -> consolidation.CycleReport:
        """Stop the running cycle after the present groups, wait for the end, and return the report.

        Background cycles are held back for `HOLD`. Without a running cycle, or if it fails, return an empty
        report. Raises `SleepInProgress` if the groups take longer than `timeout_s`; the cycle still ends then.
        """
        current = self._current
        if current.over.is_set():
            return EMPTY_REPORT
        self._hold_at_least(HOLD)
        current.asked.set()
        if not current.over.wait(timeout_s):
            raise errors.SleepInProgress(
                "the sleep cycle still works on its current batch; it ends after that"
            )
        return current.report or replace(
            EMPTY_REPORT, problem="it failed; mnem log says why"
        )

    def pause(self, hold: timedelta) -> consolidation.CycleReport:
        """Hold back background cycles for `hold`, or end a pause if it is 0; return a report with the end."""
        self._held_from = None
        if hold:
            self._hold_at_least(hold)
        until = self.held_until()
        return replace(
            EMPTY_REPORT, status=consolidation.CycleStatus.PAUSED, held_until=until
        )

    def _hold_at_least(self, hold: timedelta) -> None:
        """Hold back background cycles for `hold` from now, or longer if the present hold ends later."""
        now, until = self._clock.now(), self.held_until()
        self._hold = max(hold, until - now) if until else hold
        self._held_from = now

    def held_until(self) -> datetime | None:
        """Return the time until which no background cycle starts, or None if one may start."""
        if self._held_from is None:
            return None
        until = instants.shift(self._held_from, self._hold)
        return until if self._held_from <= self._clock.now() < until else None


CANDIDATES_MAX = 200_000
"""Number of memories that one cycle looks at; the others wait for the next cycle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleRequest:
    """Request for one cycle: the memories to consolidate, and the time it may take.

    Without `selection` it takes the memories of `session`, or of all, that are old enough.
    """

    trigger: consolidation.Trigger
    session: str | None = None
    force: bool = False
    """Take memories of any age, and those that an undo holds back."""
    selection: consolidation.Selection | None = None
    """Take exactly these."""
    rules_only: bool = False
    """Ask no model, because a caller waits."""
    deadline_s: float | None = None
    """End the cycle between two groups after this time."""
    keep_going: Callable[[], bool] = lambda: True
    """Asked before each group; the cycle ends when it returns False."""

    @property
    def final(self) -> bool:
        """Whether the program ends after this cycle, which then ignores budgets and interrupts."""
        return self.trigger is consolidation.Trigger.SHUTDOWN

    def select(self, *, cutoff: datetime, now: datetime) -> consolidation.Selection:
        """Return the request's selection; without one, the memories before `cutoff`, of its session if named.

        Memories that an undo holds back beyond `now` are left out. With `force`, memories of any age are
        selected, and also those held back.
        """
        before = None if self.force else cutoff
        selection = self.selection or consolidation.Selection(
            before=before, session=self.session
        )
        return replace(selection, now=None if self.force else now)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitPacing:
    """Limits on how many groups share a commit, so that disk and writers are used fairly."""

    groups_max: int = 8
    wait_s: float = 0.1
    """A finished group waits at most this long, and one more group, for others to share its
    commit, so that a flush serves many. What a model wrote does not wait."""
    hold_s: float = 0.05
    """Target time for a commit to hold the writer; the number of groups adapts to it. While requests
    are in flight, each group has a commit of its own."""
    checkpoint_groups: int = 75
    """Groups between two checkpoints of the write-ahead log: about 4 MB of writing."""
    commit_groups: int = 4
    """A commit counts as this many groups, as it rewrites pages that every group touches."""


class Meter:
    """Meter of a cycle's time and of the characters given to a model, against its budget."""

    def __init__(
        self,
        *,
        minutes: float | None,
        tokens: int | None,
        deadline_s: float | None,
        model: bool,
    ) -> None:
        """Limit a cycle to minutes, seconds, and tokens if a `model` reads; None is no limit."""
        time_s = math.inf if minutes is None else minutes * 60
        deadline_s = math.inf if deadline_s is None else deadline_s
        self.started = time.monotonic()
        self._ends = self.started + min(time_s, deadline_s)
        self.chars_max = math.inf
        """Characters that a model may read."""
        if model and tokens is not None:
            self.chars_max = tokens * CHARS_PER_TOKEN
        self._chars = 0

    def count_read(self, memories: Sequence[values.MemoryRecord]) -> None:
        """Add the characters of these memories to the number read in the cycle."""
        self._chars += sum(len(memory.content) for memory in memories)

    @property
    def has_budget(self) -> bool:
        """Whether time and characters are left for another group."""
        return time.monotonic() < self._ends and self._chars < self.chars_max


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleContext:
    """Everything that the steps of a running cycle need."""

    id: str
    request: CycleRequest
    selection: consolidation.Selection
    store: ports.MemoryStore
    summarizer: engine_ports.Summarizer
    """The lent summarizer, or its rules."""
    has_model: bool
    """Whether the summarizer may ask a model."""
    lease: SummarizerLease
    clock: Clock
    sleep: SleepConfig
    """Settings of sleep, as they were when the cycle began."""
    limits: consolidation.GroupLimits
    pacing: CommitPacing
    plan_size: int
    """Memories planned at a time: a longer backlog takes no more memory than this."""
    gate: ForegroundGate
    meter: Meter
    stop: CycleStop

    @property
    def candidates_max(self) -> int:
        """Number of memories that the cycle may consolidate."""
        oldest = self.selection.oldest
        return CANDIDATES_MAX if oldest is None else min(oldest, CANDIDATES_MAX)

    @property
    def rolls_up(self) -> bool:
        """Whether the cycle also rolls up days, weeks and months that are over."""
        return self.selection.everywhere and self.yields

    @property
    def yields(self) -> bool:
        """Whether the cycle lets requests go first."""
        asked = self.request
        urgent = asked.final or asked.trigger is consolidation.Trigger.CAP
        return not urgent and not asked.rules_only

    @property
    def is_contended(self) -> bool:
        """Whether the cycle lets requests go first, and one is in flight or ended just now."""
        return self.yields and self.gate.quiet_s < ACTIVE_S

    def may_continue(self) -> bool:
        """Return True if the cycle may begin another group: it was not stopped, and has budget left."""
        ended = self.lease.is_interrupted or self.stop.asked.is_set()
        if ended and not self.request.final:
            return False
        return self.meter.has_budget and self.request.keep_going()

    def yield_to_requests(self) -> None:
        """Wait a moment while requests are in flight, if the cycle lets them go first."""
        if self.yields:
            self.gate.yield_to_requests()

    def rest_after(self, worked_s: float) -> None:
        """Pause in proportion to `worked_s` seconds of work, if requests are active and go first."""
        if self.yields:
            self.gate.rest_after(worked_s)
