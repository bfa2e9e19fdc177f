"""A service over a real store, with what a test moves in it: the clock, settings and models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from support.fakes import FakeClock, FakeSummarizer, remember_batch
from support.settings import change
from support.stores import episode_of, get_memory

from mnemosyned.memory.consolidation import CycleReport, Trigger
from mnemosyned.memory.values import Acknowledged, Episode, MemoryRecord
from mnemosyned.service.service import MemoryService
from mnemosyned.sleep.context import CycleRequest
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.verbs.request import Request

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class World:
    """The parts of a service that a test uses, and short ways to use them."""

    service: MemoryService
    store: SqliteStore
    clock: FakeClock
    summarizer: FakeSummarizer

    @property
    def cycle(self) -> SleepCycle:
        return self.service.sleeper.cycle

    def call(self, request: Request[Answer]) -> Answer:
        return self.service.call(request)

    def do(self, *requests: Request[Any]) -> None:
        """Call verbs, one a minute."""
        for request in requests:
            self.call(request)
            self.clock.advance(minutes=1)

    def remember(self, *memories: MemoryRecord) -> list[Acknowledged]:
        """Store records as they are, in one batch."""
        return remember_batch(self.store, *memories)

    def memory(self, id: str) -> MemoryRecord:
        return get_memory(self.store, id)

    def episode_of(self, id: str) -> Episode:
        """The episode into which a memory was promoted."""
        return episode_of(self.store, id)

    def sleep(
        self, trigger: Trigger = Trigger.EXPLICIT, *, force: bool = False
    ) -> CycleReport:
        """Run a cycle, which a test asked for."""
        return self.cycle.run(CycleRequest(trigger=trigger, force=force))

    def change(self, values: dict[str, object]) -> None:
        """Put other values of settings in force, by their dotted keys."""
        change(self.service.settings, values)
