"""What every `MemoryStore` promises of memories that superseded others."""

from support.fakes import memory, remember_batch

from mnemosyned.memory.ports import Draft, MemoryStore


def test_history_of_a_memory_that_took_the_place_of_several_begins_with_the_newest(
    store: MemoryStore,
) -> None:
    remember_batch(store, *(memory(name, f"the door is {name}") for name in "abc"))
    newest = memory("d", "the door is d")

    for old in "acb":  # each call of the same memory, in another order
        store.memories.remember([Draft(newest, supersedes=old)])

    assert [older.id for older in store.memories.history("d")] == ["c", "b", "a"]
