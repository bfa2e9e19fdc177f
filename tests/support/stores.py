"""Shortcuts for stores: open a file, read one record, count the tiers."""

from functools import partial

from support.fakes import memory

from mnemosyned.memory.ports import MemoryStore
from mnemosyned.memory.values import Episode, MemoryRecord
from mnemosyned.paths import shipped
from mnemosyned.storage.sqlite import store as stores

MIGRATIONS = shipped("migrations")
open_store = partial(stores.open_store, migrations=MIGRATIONS)
TRIO = (memory("1", hours_ago=3), memory("2", hours_ago=2), memory("3", hours_ago=1))


def count_by_tier(store: MemoryStore) -> dict[str, tuple[int, int]]:
    """Entries and characters of each tier."""
    return {
        tier.value: (total.count, total.characters)
        for tier, total in store.maintenance.totals().items()
    }


def get_memory(store: MemoryStore, id: str) -> MemoryRecord:
    record = store.memories.get(id)
    assert isinstance(record, MemoryRecord)
    return record


def get_episode(store: MemoryStore, id: str) -> Episode:
    record = store.memories.get(id)
    assert isinstance(record, Episode)
    return record


def episode_of(store: MemoryStore, id: str) -> Episode:
    """The episode into which a memory was promoted."""
    return get_episode(store, get_memory(store, id).episode or "")
