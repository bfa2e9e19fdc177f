"""What every `MemoryStore` promises of the exact values of an episode's originals."""

from dataclasses import replace

import pytest
from support.fakes import consolidate, memory, promotion, remember_batch

from mnemosyned.errors import BatchChanged
from mnemosyned.memory.ports import MemoryStore, Promotion
from mnemosyned.memory.values import Episode, MemoryRecord
from mnemosyned.text.details import Detail, DetailKind

ONE = memory("1", "keep 42 and 42%", hours_ago=3)
TWO = memory("2", "keep 42 at https://a.b/c", hours_ago=2)
DETAILS = (
    Detail(DetailKind.NUMBER, "42", memory="1"),
    Detail(DetailKind.NUMBER, "42%", memory="1"),
    Detail(DetailKind.URL, "https://a.b/ü?q='\"", memory="2"),
    Detail(DetailKind.PASSWORD, "hunter22", sensitive=True, memory="2"),
)


def with_details(promoted: Promotion, *details: Detail) -> Promotion:
    return replace(promoted, episode=replace(promoted.episode, details=details))


def details_of(store: MemoryStore, id: str) -> tuple[Detail, ...]:
    found = store.memories.get(id)
    assert isinstance(found, Episode)
    return found.details


def original(store: MemoryStore, id: str) -> MemoryRecord:
    found = store.memories.get(id)
    assert isinstance(found, MemoryRecord)
    return found


@pytest.fixture
def filled(store: MemoryStore) -> MemoryStore:
    remember_batch(store, ONE, TWO)
    consolidate(store, with_details(promotion("e", ONE, TWO), *DETAILS))
    return store


def test_details_come_back_word_for_word_with_their_memory(filled: MemoryStore) -> None:
    assert set(details_of(filled, "e")) == set(DETAILS)
    assert [detail.memory for detail in details_of(filled, "e")] == ["1", "1", "2", "2"]


def test_the_same_value_in_two_memories_keeps_both_sources(store: MemoryStore) -> None:
    same = tuple(Detail(DetailKind.NUMBER, "42", memory=id) for id in ("1", "2"))
    remember_batch(store, ONE, TWO)

    consolidate(store, with_details(promotion("e", ONE, TWO), *same))

    assert details_of(store, "e") == same


def test_each_episode_has_its_own_details(store: MemoryStore) -> None:
    remember_batch(store, ONE, TWO)

    consolidate(store, with_details(promotion("e1", ONE), DETAILS[0]))
    consolidate(store, with_details(promotion("e2", TWO), DETAILS[2]))

    assert details_of(store, "e1") == DETAILS[:1]
    assert details_of(store, "e2") == DETAILS[2:3]


def test_details_of_a_memory_come_by_their_kind_and_not_by_which_was_first(
    store: MemoryStore,
) -> None:
    by_kind = (
        Detail(DetailKind.ACCESS_CODE, "4711", sensitive=True, memory="2"),
        Detail(DetailKind.NUMBER, "42", memory="2"),
        Detail(DetailKind.URL, "https://a.b", memory="2"),
    )
    remember_batch(store, ONE, TWO)
    last = replace(by_kind[-1], memory="1")
    consolidate(store, with_details(promotion("e1", ONE), last))  # a kind known before
    consolidate(store, with_details(promotion("e2", TWO), *reversed(by_kind)))

    assert details_of(store, "e2") == by_kind


def test_details_are_forgotten_with_their_memory_alone(filled: MemoryStore) -> None:
    filled.deletion.forget(["2"])

    assert set(details_of(filled, "e")) == set(DETAILS[:2])


def test_a_group_that_fails_leaves_no_details(store: MemoryStore) -> None:
    remember_batch(store, ONE)

    with pytest.raises(BatchChanged):
        consolidate(store, with_details(promotion("e", ONE, TWO), *DETAILS))

    consolidate(store, promotion("e", ONE))
    assert details_of(store, "e") == ()
