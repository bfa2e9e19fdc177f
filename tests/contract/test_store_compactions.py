"""What every `MemoryStore` promises of what compactions took out."""

from datetime import timedelta

from support.fakes import NOON, consolidate, memory, promotion, remember_batch

from mnemosyned.memory.ports import (
    ArchivedMessage,
    CompactionRecord,
    Draft,
    MemoryStore,
    NewCompaction,
)
from mnemosyned.memory.values import MemoryRecord


def taken(
    id: str, content: str = "", *, timed: bool = False, hours_ago: float = 0
) -> ArchivedMessage:
    one = memory(id, content, role="user", hours_ago=hours_ago)
    return ArchivedMessage(Draft(one), may_reuse=True, has_timestamp=timed)


def compacting(id: str, *parts: ArchivedMessage | str, text: str = "") -> NewCompaction:
    made = CompactionRecord(
        id=id, session="default", source=None, policy="facts", created_at=NOON
    )
    return NewCompaction(made, text or f"summary {id}", parts)


def left(store: MemoryStore, id: str) -> list[str]:
    found = store.compactions.get(id)
    assert found
    return [one.content for one in found[1]]


def test_a_compaction_brings_its_messages_back_in_their_order(
    store: MemoryStore,
) -> None:
    ids = store.compactions.add(
        [compacting("c", taken("b", hours_ago=1), taken("a", hours_ago=5))]
    )

    assert ids == ["b", "a"]
    assert left(store, "c") == ["note b", "note a"]
    assert store.compactions.get("other") is None


def test_one_goes_on_from_others_however_deep(store: MemoryStore) -> None:
    store.compactions.add([compacting("c1", taken("a"))])
    store.compactions.add(
        [compacting("c2", "c1", "unknown", taken("b")), compacting("s", taken("a"))]
    )
    store.compactions.add(
        [compacting("c3", "c2", "s", taken("c")), compacting("round", "c3", "round")]
    )

    assert left(store, "c3") == ["note a", "note b", "note c"]
    assert left(store, "round") == ["note a", "note b", "note c"]


def test_a_stub_is_called_by_its_own_memory(store: MemoryStore) -> None:
    store.compactions.add([compacting("a", taken("a"))])
    store.compactions.add([compacting("c", "a", taken("b"))])

    assert left(store, "a") == ["note a"]
    assert left(store, "c") == ["note a", "note b"]


def test_a_known_message_is_not_stored_twice(store: MemoryStore) -> None:
    remember_batch(store, *said("1", "2"))
    store.compactions.add([compacting("c", taken("m-1", "note 1"), taken("m-3"))])
    again = store.compactions.add(
        [compacting("c", taken("m-1", "note 1"), taken("m-3"))]
    )

    assert again == ["1", "m-3"]
    assert left(store, "c") == ["note 1", "note m-3"]
    assert store.memories.working_count() == 3


def test_the_same_words_at_another_time_are_other_ones(store: MemoryStore) -> None:
    remember_batch(store, *said("1"))
    near = taken("m-1", "note 1", timed=True, hours_ago=0.5)
    far = taken("m-2", "note 1", timed=True, hours_ago=50)

    assert store.compactions.add([compacting("c", near, far)]) == ["1", "m-2"]


def test_compacted_messages_name_their_episode_and_leave_out_the_forgotten(
    store: MemoryStore,
) -> None:
    store.compactions.add([compacting("c", taken("a"), taken("b"), taken("z"))])
    (a,) = store.memories.working(["a"])

    consolidate(store, promotion("e", a))
    store.deletion.forget(["b"])

    found = store.compactions.get("c")
    assert found
    assert [(one.id, one.episode) for one in found[1]] == [("a", "e"), ("z", None)]


def test_a_summary_is_known_again_by_its_words(store: MemoryStore) -> None:
    store.compactions.add([compacting("c", taken("a"), text="what was said")])

    def found(text: str, *, session: str = "default") -> str | None:
        return store.compactions.find_by_summary(text, session=session, source=None)

    assert found("what was said") == "c"
    assert found("what was not said") is None
    assert found("what was said", session="another") is None


def said(*ids: str) -> list[MemoryRecord]:
    return [
        memory(id, role="user", created_at=NOON - timedelta(minutes=5)) for id in ids
    ]
