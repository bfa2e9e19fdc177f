"""What a store holds, for tests that ask any store."""

from fakes import memory

from mnemosyned.domain.memory import Episode, MemoryRecord
from mnemosyned.domain.ports.store import MemoryStore

TRIO = (memory("1", hours_ago=3), memory("2", hours_ago=2), memory("3", hours_ago=1))


def counts(store: MemoryStore) -> dict[str, tuple[int, int]]:
    return {
        tier.value: (total.count, total.characters)
        for tier, total in store.totals().items()
    }


def got(store: MemoryStore, id: str) -> MemoryRecord:
    found = store.get(id)
    assert isinstance(found, MemoryRecord)
    return found


def got_episode(store: MemoryStore, id: str) -> Episode:
    found = store.get(id)
    assert isinstance(found, Episode)
    return found
