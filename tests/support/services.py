"""A service over a store, put together as `open_memory` does, without background threads."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from support.fakes import FakeClock, FakeSummarizer, remember_batch
from support.settings import change
from support.stores import episode_of, get_memory

from mnemosyned.config.settings import SettingsInForce
from mnemosyned.memory.consolidation import CycleReport, Trigger
from mnemosyned.memory.engine_ports import MemoryVectors
from mnemosyned.memory.ports import MemoryStore
from mnemosyned.memory.values import Episode, MemoryRecord
from mnemosyned.search.vectors.indexer import VectorIndexer
from mnemosyned.service.backups import BackupKeeper
from mnemosyned.service.endings import EndingFinder
from mnemosyned.service.events import EventBus
from mnemosyned.service.forgetting import RetentionService
from mnemosyned.service.reading import ListService
from mnemosyned.service.service import MemoryService
from mnemosyned.sleep.context import CycleRequest
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.sleep.sleeper import Sleeper
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.verbs.facade import Verbs
from mnemosyned.verbs.request import Request
from mnemosyned.verbs.upkeep import Undo

R = TypeVar("R")


@dataclass
class Lab(Verbs):
    """A memory whose verbs are methods, with the parts that a test looks at or changes."""

    service: MemoryService
    store: SqliteStore
    cycle: SleepCycle
    summarizer: FakeSummarizer
    clock: FakeClock
    settings: SettingsInForce

    def call(self, request: Request[R]) -> R:
        return self.service.call(request)

    def do(self, *requests: Request[Any]) -> None:
        """Call verbs, one a minute."""
        for request in requests:
            self.call(request)
            self.clock.advance(minutes=1)

    def put(self, *memories: MemoryRecord) -> None:
        """Store records as they are, in one batch."""
        remember_batch(self.store, *memories)

    def found(self, query: str, **fields: Any) -> set[str]:  # noqa: ANN401
        """The ids of the memories that a search finds, also those that a summary shows."""
        hits = self.recall(query, **fields).hits
        lines = {line.id for hit in hits for line in hit.lines}
        return lines | {hit.id for hit in hits if not hit.summary_of}

    def memory(self, id: str) -> MemoryRecord:
        return get_memory(self.store, id)

    def episode_of(self, id: str) -> Episode:
        """The episode into which a memory was promoted."""
        return episode_of(self.store, id)

    def run_cycle(
        self,
        trigger: Trigger = Trigger.EXPLICIT,
        **fields: Any,  # noqa: ANN401
    ) -> CycleReport:
        """Run a cycle by itself, without what the verb does after it."""
        return self.cycle.run(CycleRequest(trigger=trigger, **fields))

    def undo_cycle(self, cycle: str, **options: Any) -> CycleReport:  # noqa: ANN401
        """Undo a sleep cycle, and return the report on it."""
        undone = self.call(Undo(cycle, **options)).cycle
        assert undone
        return undone

    def change(self, values: dict[str, Any]) -> None:
        """Put other values of settings in force, by their dotted keys."""
        change(self.settings, values)


def database_file(store: MemoryStore) -> Path | None:
    return getattr(store, "database", None)


def make_keeper(
    store: MemoryStore, cycle: SleepCycle, settings: SettingsInForce
) -> BackupKeeper:
    return BackupKeeper(
        store=store.maintenance,
        settings=settings,
        file=database_file(store),
        clock=cycle.clock,
        lease=cycle.lease,
    )


def make_service(
    store: MemoryStore,
    cycle: SleepCycle,
    retention: RetentionService,
    settings: SettingsInForce,
    *,
    vectors: VectorIndexer | None = None,
    in_background: bool = False,
) -> MemoryService:
    """A service; with `in_background` its schedule starts with its `sleeper`."""
    sleeper = Sleeper(
        store=store,
        cycle=cycle,
        after_cycle=retention.after_cycle,
        in_background=in_background,
    )
    return MemoryService(
        store=store,
        sleeper=sleeper,
        retention=retention,
        settings=settings,
        database=str(getattr(store, "database", "a server")),
        schema_version=store.schema_version,
        keeper=make_keeper(store, cycle, settings),
        endings=EndingFinder(
            store=store, clock=cycle.clock, gate=cycle.gate, in_background=False
        ),
        lists=ListService(
            store=store.lists,
            clock=cycle.clock,
            bytes_on_disk=store.maintenance.bytes_on_disk,
        ),
        events=EventBus(clock=cycle.clock),
        vectors=vectors or MemoryVectors(),
    )
