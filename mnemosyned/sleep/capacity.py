"""Keeps working memory under its cap: what is beyond it is consolidated early, never dropped."""

from __future__ import annotations

import threading

from mnemosyned.domain.consolidation import Selection, Trigger
from mnemosyned.domain.errors import MnemosynedError, SleepInProgress
from mnemosyned.domain.ports.records import RecordStore
from mnemosyned.logs import logger
from mnemosyned.sleep.context import CycleRequest
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.sleep.scheduler import SleepScheduler

WAIT_S = 600.0
"""How long a full working memory waits for the running cycle before it gives up until asked."""
ROUNDS_MAX = 100
HYSTERESIS = 0.1
"""At the cap, this share of it is consolidated at once, so that it is not hit again at once."""

log = logger()


class Cap:
    """The most that working memory holds, safe from any thread."""

    def __init__(
        self,
        *,
        memories: RecordStore,
        cycle: SleepCycle,
        most: int,
        scheduler: SleepScheduler | None,
    ) -> None:
        self._memories = memories
        self._cycle = cycle
        self._relieving = threading.Lock()
        self.scheduler = scheduler
        """Relieves working memory in the background; without one, whoever fills it waits."""
        self.use(most)

    def use(self, most: int) -> None:
        """From now on, let it hold this many memories."""
        self._most = self._relieve_above = most

    def keep(self, working: int | None = None) -> None:
        """Relieve working memory where it holds too much; what was acknowledged stays so.

        `working` is how much it holds, where the caller was told.
        """
        try:
            if working is None:
                working = self._memories.working_count()
            if working <= self._relieve_above:
                return
            if self.scheduler:
                self.scheduler.relieve_soon()
            else:
                self.relieve()
        except SleepInProgress:
            log.debug(
                "relief_skipped", reason="a cycle is running, which relieves it too"
            )
        except MnemosynedError:
            log.exception("relief_failed")

    def relieve(self, *, rules_only: bool = False) -> None:
        """Bring working memory under its cap by consolidating the oldest early.

        `rules_only` asks no model; nor does an embedded memory, whose caller waits.
        """
        with self._relieving:
            if (
                self.scheduler
            ):  # in the background there is time; an embedded caller waits for us
                self._cycle.lease.wait_idle(WAIT_S)
            cap = self._relieve_above = self._most
            for _ in range(ROUNDS_MAX):  # more may have come in meanwhile
                count = self._memories.working_count()
                if count <= cap:
                    return
                excess = count - int(cap * (1 - HYSTERESIS))
                rules_only = rules_only or self.scheduler is None
                report = self._cycle.run(
                    CycleRequest(
                        trigger=Trigger.CAP,
                        selection=Selection(oldest=excess),
                        rules_only=rules_only,
                    )
                )
                if report.evicted < excess:
                    break
            # What could not be consolidated (pinned, failed) is not tried again at every call.
            left = self._memories.working_count()
            self._relieve_above = (
                cap if left <= cap else left + max(1, int(cap * HYSTERESIS))
            )
