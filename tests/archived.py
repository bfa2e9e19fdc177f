"""Memories that a cycle has put into the archive, and their episodes."""

from __future__ import annotations

from mnemosyned.domain.consolidation import Trigger
from mnemosyned.domain.memory import Episode, MemoryRecord
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.storage.sqlite import SqliteStore


def slept(cycle: SleepCycle) -> str:
    """A cycle over everything; its id."""
    return cycle.run(trigger=Trigger.EXPLICIT, force=True).cycle


def original(store: SqliteStore, id: str) -> MemoryRecord:
    found = store.get(id)
    assert isinstance(found, MemoryRecord)
    return found


def episode_of(store: SqliteStore, id: str) -> Episode:
    found = store.get(original(store, id).episode or "")
    assert isinstance(found, Episode)
    return found
