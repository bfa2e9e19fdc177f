"""Days of memories, slept on, and the summaries of a level."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from support.fakes import FakeClock, memory, remember_batch

from mnemosyned.memory.consolidation import CycleReport, Trigger
from mnemosyned.memory.values import Episode, MemoryRecord
from mnemosyned.sleep.context import CycleRequest
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.storage.sqlite.store import SqliteStore

MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)
HOUR = timedelta(hours=1)


def said(at: datetime, name: str, **where: object) -> list[MemoryRecord]:
    """Three memories of one episode."""
    return [
        replace(memory(f"{name}{i}"), created_at=at + timedelta(minutes=i), **where)  # type: ignore[arg-type]
        for i in range(3)
    ]


def a_day(store: SqliteStore, day: int, *, episodes: int = 3) -> None:
    """Episodes three hours apart in sources of their own, from the morning on."""
    for at in range(episodes):
        moment = MONDAY + timedelta(days=day, hours=at)
        remember_batch(store, *said(moment, f"d{day}e{at}x", source=f"s{at}"))


def sleep(cycle: SleepCycle, clock: FakeClock, *, day: int) -> CycleReport:
    """Sleep on the morning after the day after that one, when it is over and rolled up."""
    clock.moment = MONDAY + timedelta(days=day + 1, hours=11)
    return cycle.run(CycleRequest(trigger=Trigger.SCHEDULE))


def level(store: SqliteStore, number: int) -> list[Episode]:
    """All summaries of a level, oldest first."""
    ids = [
        row.episode
        for row in store.sleep.log(limit=1_000)
        if row.level == number and row.episode
    ]
    return store.memories.summaries(sorted(set(ids)))


def keys(report: CycleReport) -> list[str]:
    return [group.period for group in report.groups if group.level]


def get(store: SqliteStore, id: str) -> Episode:
    found = store.memories.get(id)
    assert isinstance(found, Episode)
    return found
