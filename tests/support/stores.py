"""Shortcuts for stores: open a file, read one record, count the tiers."""

from dataclasses import replace
from functools import partial

from support.blank_database import MIGRATIONS
from support.fakes import NOON, memory

from mnemosyned.memory.edit import MemoryEdit
from mnemosyned.memory.ports import MemoryStore
from mnemosyned.memory.values import Action, Episode, MemoryRecord
from mnemosyned.storage.sqlite import store as stores

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


def edit_memory(
    store: MemoryStore, id: str, text: str, action: Action | None = None
) -> None:
    """Give a memory other words, at the time of the action if there is one."""
    before = get_memory(store, id)
    edits = [MemoryEdit(before=before, after=replace(before, content=text))]
    store.changes.edit(edits, now=action.at if action else NOON, action=action)


def episode_of(store: MemoryStore, id: str) -> Episode:
    """The episode into which a memory was promoted."""
    return get_episode(store, get_memory(store, id).episode or "")
