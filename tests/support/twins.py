"""One memory twice, on SQLite and on PostgreSQL: told the same, asked the same."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, cast

from support.engines import POSTGRES, SQLITE, postgres_store
from support.fakes import FakeClock
from support.services import database_file, make_service
from support.settings import settings_in_force
from support.stores import open_store

from mnemosyned.memory.ports import MemoryStore
from mnemosyned.memory.values import Hit, Line, Tier
from mnemosyned.service.forgetting import RetentionService
from mnemosyned.service.service import MemoryService
from mnemosyned.sleep.context import SummarizerLease
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.summary.extract import ExtractiveSummarizer
from mnemosyned.verbs.conversation import Endings
from mnemosyned.verbs.memories import BATCH_MAX, Recall, Remember, RememberMany
from mnemosyned.verbs.upkeep import Sleep

CYCLES_MAX = 50
CALLS_MAX = 100
"""Calls of `endings`, each of which reads for some seconds."""
SILENT_MAX = 0.5
"""Share of questions that may have no answer in a comparison."""
RANDOM_ID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
Shown = tuple[Any, ...]
"""What is told of a hit, without the ids of summaries: these are random."""


@dataclass(frozen=True, slots=True)
class Twins:
    """The same memory on both engines, with one clock."""

    services: Mapping[str, MemoryService]
    stores: Mapping[str, MemoryStore]
    clock: FakeClock

    def remember(self, *told: Remember) -> None:
        """Tell both the same, in batches."""
        for engine, service in self.services.items():
            for start in range(0, len(told), BATCH_MAX):
                batch = told[start : start + BATCH_MAX]
                service.remember_many(RememberMany(memories=list(batch)))
            # Otherwise it depends on the time how many are read before a sleep.
            for _ in range(CALLS_MAX):
                service.call(Endings())
                if not self.stores[engine].endings.unread(limit=1):
                    break

    def sleep(self) -> None:
        """Let both sleep until nothing is left to do."""
        for service in self.services.values():
            sleep_all(service)

    def ask(self, request: Recall) -> dict[str, list[Shown]]:
        """Ask both; what each answers."""
        return {
            engine: [shown(hit) for hit in service.recall(request).hits]
            for engine, service in self.services.items()
        }

    def differing_around_sleep(self, requests: Sequence[Recall]) -> list[str]:
        """Ask both every other request, let them sleep, and ask the rest; what they answer otherwise."""
        before = self.differing(requests[::2])
        self.sleep()
        return before + self.differing(requests[1::2])

    def differing(self, requests: Sequence[Recall]) -> list[str]:
        """Ask both; the questions that they answer otherwise. Most must have an answer."""
        answers = [(request.query, self.ask(request)) for request in requests]
        silent = sum(not given[SQLITE] for _, given in answers)
        assert silent < SILENT_MAX * len(answers)
        return [text for text, given in answers if given[SQLITE] != given[POSTGRES]]


def sleep_all(service: MemoryService) -> None:
    """Let a memory sleep until nothing is left to do."""
    for _ in range(CYCLES_MAX):
        report = service.sleep(Sleep(force=True))
        if not (report.promoted or report.rolled_up or report.remaining):
            return


def shown(hit: Hit | Line) -> Shown:
    """All that a hit tells, scores to the last digit."""
    names = [field.name for field in fields(hit)]
    if isinstance(hit, Line):
        return tuple(getattr(hit, name) for name in names)
    if hit.tier is Tier.EPISODIC:
        names.remove("id")
    told = {name: getattr(hit, name) for name in names}
    told["summary_of"] = tuple(RANDOM_ID.sub("", made_of) for made_of in hit.summary_of)
    told |= {name: tuple(map(shown, told[name])) for name in ("lines", "history")}
    return tuple(told.values())


@contextmanager
def twins(folder: Path, clock: FakeClock, *, grace_hours: float = 0) -> Iterator[Twins]:
    """Both engines, empty."""
    with ExitStack() as opened:
        stores = {
            SQLITE: opened.enter_context(open_store(folder / "memory.db")),
            POSTGRES: cast("MemoryStore", opened.enter_context(postgres_store())),
        }
        services = {
            engine: service_over(store, clock, grace_hours)
            for engine, store in stores.items()
        }
        yield Twins(services, stores, clock)


def service_over(
    store: MemoryStore, clock: FakeClock, grace_hours: float
) -> MemoryService:
    settings = settings_in_force(
        {
            "limits.content_bytes_max": 1_000_000,
            "wm_max": 10**6,
            "forget.grace_hours": grace_hours,
        }
    )
    cycle = SleepCycle(
        store=store,
        lease=SummarizerLease(ExtractiveSummarizer()),
        clock=clock,
        settings=settings,
    )
    retention = RetentionService(
        store=store, cycle=cycle, settings=settings, file=database_file(store)
    )
    return make_service(store, cycle, retention, settings)
