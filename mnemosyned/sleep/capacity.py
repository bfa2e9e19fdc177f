"""The capacity of working memory: memories beyond it are consolidated early, never dropped."""

from __future__ import annotations

import threading

from mnemosyned.domain.consolidation import Selection, Trigger
from mnemosyned.domain.ports.records import RecordStore
from mnemosyned.sleep.context import CycleRequest
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.sleep.triggers import HEADROOM

ROUNDS_MAX = 100


class Capacity:
    """Enforces the capacity of working memory; safe from any thread."""

    def __init__(self, *, memories: RecordStore, cycle: SleepCycle) -> None:
        self._memories = memories
        self._cycle = cycle
        self._enforcing = threading.Lock()
        self._raised: tuple[int, int] | None = None
        """A capacity that could not be enforced, and the size from which on to try again."""

    def exceeded(self, working: int | None = None) -> bool:
        """Return whether working memory holds too much; `working` is its size, if known."""
        if working is None:
            working = self._memories.working_count()
        capacity = self._cycle.policy.wm_max
        if self._raised and self._raised[0] == capacity:
            return working > self._raised[1]
        return working > capacity

    def enforce(self, *, rules_only: bool, wait_s: float = 0.0) -> None:
        """Consolidate the oldest memories until the rest fits.

        A cycle that is running is waited for, `wait_s` at most; `rules_only` asks no model.
        """
        with self._enforcing:
            if wait_s:
                self._cycle.lease.wait_idle(wait_s)
            capacity, self._raised = self._cycle.policy.wm_max, None
            for _ in range(ROUNDS_MAX):  # more may come in meanwhile
                count = self._memories.working_count()
                if count <= capacity:
                    return
                if not self._consolidate(count, capacity, rules_only=rules_only):
                    break
            # Memories that cannot be consolidated (pinned, failed) are not tried at every call.
            left = self._memories.working_count()
            if left > capacity:
                self._raised = (capacity, left + max(1, int(capacity * HEADROOM)))

    def _consolidate(self, count: int, capacity: int, *, rules_only: bool) -> bool:
        """Consolidate the memories beyond the capacity; return whether all could be."""
        excess = count - int(capacity * (1 - HEADROOM))
        report = self._cycle.run(
            CycleRequest(
                trigger=Trigger.CAP,
                selection=Selection(oldest=excess),
                rules_only=rules_only,
            )
        )
        return report.evicted >= excess
