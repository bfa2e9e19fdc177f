"""What every `MemoryStore` promises of what was learned for good."""

from datetime import timedelta

import pytest
from support.fakes import NOON, consolidate, memory, promotion, remember_batch

from mnemosyned.conversation.learnings.recognize import extract_learnings
from mnemosyned.errors import IdTaken, NotFound
from mnemosyned.memory.ports import Draft, MemoryStore
from mnemosyned.memory.values import Learning, LearningKind, MemoryRecord


def lesson(
    id: str, text: str, *, hours_ago: float = 0, source: str | None = None
) -> Learning:
    return Learning(
        id=id,
        kind=LearningKind.LESSON,
        text=text,
        created_at=NOON - timedelta(hours=hours_ago),
        session="default",
        source=source,
    )


def said(id: str, text: str, *, hours_ago: float = 0) -> MemoryRecord:
    return memory(id, text, role="user", hours_ago=hours_ago)


def tell(store: MemoryStore, *memories: MemoryRecord) -> None:
    store.memories.remember(
        [Draft(one, learnings=extract_learnings(one, now=NOON)) for one in memories]
    )


def texts(store: MemoryStore) -> list[str]:
    return [one.text for one in store.learnings.find(limit=100)]


def test_a_memory_and_its_learnings_are_stored_together(store: MemoryStore) -> None:
    tell(store, said("1", "Hi! Never use emojis. Call me Bob.", hours_ago=1))

    found = store.learnings.find(limit=10)

    assert [(one.text, one.kind, one.memory) for one in found] == [
        ("Call me Bob.", LearningKind.NAME, "1"),
        ("Never use emojis.", LearningKind.INSTRUCTION, "1"),
    ]
    assert found[0].created_at == NOON - timedelta(hours=1)


def test_a_memory_that_is_refused_teaches_nothing(store: MemoryStore) -> None:
    remember_batch(store, memory("taken", "something else"))

    with pytest.raises(IdTaken):
        tell(store, said("1", "Never use emojis."), said("taken", "Call me Bob."))

    assert store.learnings.find(limit=10) == []


def test_a_memory_handed_in_twice_teaches_once(store: MemoryStore) -> None:
    for _ in range(2):
        tell(store, said("1", "Never use emojis."))

    assert len(store.learnings.find(superseded=True, limit=100)) == 1


def test_the_newer_takes_the_place_of_the_older(store: MemoryStore) -> None:
    tell(store, said("1", "Call me Robert.", hours_ago=2))
    tell(store, said("2", "Call me Bob.", hours_ago=1))

    bob, robert = store.learnings.find(superseded=True, limit=100)

    assert texts(store) == ["Call me Bob."]
    assert robert.superseded_by == bob.id


def test_a_late_older_learning_does_not_supersede_a_newer_one(
    store: MemoryStore,
) -> None:
    tell(store, said("2", "Call me Bob.", hours_ago=1))
    tell(store, said("1", "Call me Robert.", hours_ago=2))

    assert texts(store) == ["Call me Bob."]


def test_each_source_has_its_own(store: MemoryStore) -> None:
    store.learnings.add(lesson("1", "Always use tabs.", source="a", hours_ago=2))
    _, superseded = store.learnings.add(
        lesson("2", "Always use spaces.", source="b", hours_ago=1)
    )
    store.learnings.add(lesson("3", "Taste first."))

    assert superseded == []
    assert [one.id for one in store.learnings.find(sources=["a"], limit=9)] == ["1"]
    assert [one.id for one in store.learnings.find(sources=["a", None], limit=9)] == [
        "3",
        "1",
    ]
    assert [one.id for one in store.learnings.find(limit=2)] == ["3", "2"]


def test_a_lesson_stated_again_is_the_one_that_is_there(store: MemoryStore) -> None:
    first, _ = store.learnings.add(lesson("1", "Taste first.", hours_ago=1))

    again, superseded = store.learnings.add(lesson("2", "taste first"))

    assert (again, superseded) == (first, [])
    assert len(store.learnings.find(superseded=True, limit=100)) == 1


def test_words_said_again_hold_by_the_newer_memory(store: MemoryStore) -> None:
    tell(store, said("1", "Never use emojis.", hours_ago=2))
    tell(store, said("2", "Never use emojis!", hours_ago=1))

    before = [one.memory for one in store.learnings.find(limit=9)]
    store.deletion.forget(["2"])

    assert before == ["2"]
    assert [one.memory for one in store.learnings.find(limit=9)] == ["1"]


def test_forgetting_a_learning_restores_the_one_it_superseded(
    store: MemoryStore,
) -> None:
    robert, bob = (
        said("1", "Call me Robert.", hours_ago=3),
        said("2", "Call me Bob.", hours_ago=2),
    )
    tell(store, robert, bob, said("3", "It rains."))
    consolidate(store, promotion("e", robert, bob))

    store.deletion.forget(["2"])

    assert texts(store) == ["Call me Robert."]


def test_learnings_outlive_sleep(store: MemoryStore) -> None:
    one = said("1", "Never use emojis.", hours_ago=3)
    tell(store, one)

    consolidate(store, promotion("e", one))

    assert texts(store) == ["Never use emojis."]


def test_a_learning_can_be_given_other_words_and_deleted(store: MemoryStore) -> None:
    store.learnings.add(lesson("1", "Taste first."))

    store.learnings.edit("1", "Taste twice.")
    edited = texts(store)
    store.learnings.remove("1")

    assert (edited, texts(store)) == (["Taste twice."], [])
    with pytest.raises(NotFound, match="learnings"):
        store.learnings.edit("1", "x")
    with pytest.raises(NotFound, match="learnings"):
        store.learnings.remove("1")


def test_learnings_are_listed_by_kind(store: MemoryStore) -> None:
    tell(store, said("1", "Never use emojis. Call me Bob."))

    assert [
        one.text for one in store.learnings.find(kind=LearningKind.NAME, limit=9)
    ] == ["Call me Bob."]
