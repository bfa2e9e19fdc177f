"""Sleep of many owners: in rounds by the schedule, by triggers, and at once where it is asked."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from typing import Protocol

from mnemosyned.assembly.parts import SharedParts
from mnemosyned.domain.errors import (
    DatabaseUnreachable,
    MemoryBusy,
    NotFound,
    SleepInProgress,
)
from mnemosyned.domain.ports.servers.owners import LOCAL_OWNER, OwnerStore
from mnemosyned.domain.sleep.cycles import Trigger
from mnemosyned.domain.sleep.rollup import Level, closed_before
from mnemosyned.logs import logger
from mnemosyned.service.forgetting.purging import RETRY_S
from mnemosyned.service.forgetting.retention import RetentionService
from mnemosyned.sleep.sleeper import Sleeper
from mnemosyned.sleep.starts.scheduler import SleepScheduler

PAGE = 200
"""Owners of a round that are listed at once."""
ASKED_MAX = 100_000
"""Owners that may wait for the background; others are found by the next round."""

log = logger()


class SleepingMemory(Protocol):
    """An owner's memory, as a round needs it."""

    @property
    def owner(self) -> int:
        """The owner's number."""
        ...

    @property
    def sleeper(self) -> Sleeper:
        """The runner of its cycles."""
        ...

    @property
    def retention(self) -> RetentionService:
        """The service that forgets and purges."""
        ...


class OwnerRounds:
    """Cycles of all owners. Each daemon of a database makes its own rounds.

    What one daemon has claimed another passes by, and what one has consolidated is nobody's work.
    """

    def __init__(
        self,
        *,
        memory_of: Callable[[int], SleepingMemory],
        opened: Callable[[], Sequence[SleepingMemory]],
        owners: OwnerStore,
        shared: SharedParts,
    ) -> None:
        """`memory_of` opens a memory for a moment, and `opened` lists those that are in use."""
        self._memory_of = memory_of
        self._opened = opened
        self._owners = owners
        self._shared = shared
        self._asked: set[int] = set()
        self._purge_not_before = 0.0
        self._is_started = False
        self._stopped = threading.Event()
        workers = len(shared.turns.models) if shared.turns else 1
        self._workers = ThreadPoolExecutor(workers, "owners")
        self._scheduler = SleepScheduler(
            sleep=self.run,
            enforce_cap=self._see_to_asked,
            check_triggers=self._check_triggers,
            tick_s=shared.policies.sleep.schedule.tick_s,
        )

    @property
    def description(self) -> str:
        """The schedule in words."""
        return self._scheduler.description

    @property
    def next_round(self) -> datetime | None:
        """When the next round begins; None without a schedule."""
        return self._scheduler.next_cycle

    def start(self) -> None:
        """Start the rounds and the triggers. Raises `ConfigInvalid`."""
        self.reschedule()
        self._scheduler.start()
        self._is_started = True

    def reschedule(self) -> None:
        """Follow the schedule of the policy in force. Raises `ConfigInvalid`."""
        self._scheduler.set_schedule(self._shared.policies.sleep.schedule)

    def wake(self) -> None:
        """Read the wall clock again after it jumped, as after suspend."""
        if self._is_started:
            self._scheduler.wake()

    def stop(self) -> None:
        """End all of it, each cycle after its present group."""
        self._stopped.set()
        if self._is_started:
            self._scheduler.stop()
        self._workers.shutdown()

    def ask(self, owner: int) -> None:
        """Enforce an owner's capacity and purge what it forgot, in the background."""
        if len(self._asked) < ASKED_MAX:
            self._asked.add(owner)
            self._scheduler.enforce_cap_soon()

    def ask_purge(self, owner: int) -> None:
        """Do the same for a purge, unless one was refused a moment ago: owners have the same tables."""
        if time.monotonic() >= self._purge_not_before:
            self.ask(owner)

    def _see_to_asked(self) -> None:
        while self._asked and not self._stopped.is_set():
            self._guarded(self._asked.pop(), self._look_after)

    def _look_after(self, memory: SleepingMemory) -> None:
        is_time = time.monotonic() >= self._purge_not_before
        if is_time and not memory.retention.purger.run_due():
            self._purge_not_before = time.monotonic() + RETRY_S
        memory.sleeper.enforce_cap_in_background()

    def _check_triggers(self) -> None:
        """Check the triggers of those that are open: the others wait for the next round."""
        for memory in self._opened():
            if self._stopped.is_set():
                return
            self._guarded(memory.owner, lambda known: known.sleeper.check_triggers())

    def run(self, trigger: Trigger) -> None:
        """Run a cycle of each owner that has something to consolidate."""

        def sleep(owner: int) -> None:
            self._guarded(
                owner, lambda memory: memory.sleeper.sleep_in_background(trigger)
            )

        done = 0
        for page in self._pages():
            for _ in self._workers.map(sleep, page):
                done += 1
        if done:
            log.info("round_finished", owners=done)

    def _pages(self) -> Iterator[Sequence[int]]:
        """Yield the owners with work, but for the local one, which has a schedule of its own."""
        policy, now = self._shared.policies.sleep, self._shared.age_clock.now()
        over = policy.rollup_cutoff(now)
        listed = partial(
            self._owners.with_work,
            before=policy.cutoff(now),
            archived=self._shared.policies.retention.prunes,
            closed={level: closed_before(level, over) for level in Level if level},
            limit=PAGE,
        )
        page = listed(after=LOCAL_OWNER)
        while page and not self._stopped.is_set():  # ends, as numbers ascend
            yield page
            page = listed(after=page[-1])

    def _guarded(self, owner: int, work: Callable[[SleepingMemory], object]) -> None:
        """Work for one owner; what fails for it fails for no other.

        Raises `DatabaseUnreachable`, which concerns all.
        """
        if self._stopped.is_set():
            return
        try:
            work(self._memory_of(owner))
        except (SleepInProgress, MemoryBusy):
            log.debug("owner_passed_by", owner=owner)
        except NotFound:
            log.info("owner_removed", owner=owner)
        except DatabaseUnreachable:
            raise
        except Exception:
            log.exception("owner_failed", owner=owner)


class OwnerHost:
    """The `SleepHost` of one owner."""

    def __init__(self, rounds: OwnerRounds, owner: int) -> None:
        self._rounds = rounds
        self._owner = owner

    @property
    def description(self) -> str:
        return self._rounds.description

    @property
    def next_cycle(self) -> datetime | None:
        return self._rounds.next_round

    def enforce_cap_soon(self) -> None:
        self._rounds.ask(self._owner)
