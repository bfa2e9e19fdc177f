"""What every `MemoryStore` promises of tags."""

import pytest
from support.fakes import consolidate, memory, promotion, remember_batch
from support.stores import TRIO, get_memory

from mnemosyned.errors import InvalidRequest
from mnemosyned.memory.forgetting import ForgetFilter
from mnemosyned.memory.ports import MemoryStore
from mnemosyned.memory.values import TAGS_MAX


def test_a_memory_is_stored_with_its_tags(store: MemoryStore) -> None:
    remember_batch(store, memory("1", tags=("home", "travel")))

    assert get_memory(store, "1").tags == ("home", "travel")


def test_tags_go_with_a_memory_to_the_archive_and_back(store: MemoryStore) -> None:
    remember_batch(store, *TRIO)
    store.changes.tag(["2"], ["travel"])

    consolidate(store, promotion("e", *TRIO))
    archived = get_memory(store, "2")
    store.retention.restore("2")

    assert (archived.episode, archived.tags) == ("e", ("travel",))
    assert get_memory(store, "2").tags == ("travel",)
    assert store.memories.originals("e")[0].tags == ()


def test_tagging_counts_what_was_not_so_before(store: MemoryStore) -> None:
    remember_batch(store, *TRIO)
    store.changes.tag(["1"], ["a", "b"])

    tagged = store.changes.tag(["1", "2", "never there"], ["a", "b"])
    untagged = store.changes.untag(["1", "3"], ["b", "c"])

    assert (tagged, untagged) == (1, 1)
    assert [get_memory(store, id).tags for id in "123"] == [("a",), ("a", "b"), ()]


def test_a_filter_selects_by_any_of_its_tags_in_every_tier(store: MemoryStore) -> None:
    remember_batch(store, *TRIO, memory("4"))
    store.changes.tag(["1", "4"], ["a"])
    store.changes.tag(["2"], ["b"])
    consolidate(store, promotion("e", *TRIO))

    assert sorted(store.deletion.select(ForgetFilter(tags=("a", "b")))) == [
        "1",
        "2",
        "4",
    ]


def test_forgotten_tags_do_not_come_back_with_the_id(store: MemoryStore) -> None:
    remember_batch(store, memory("1", tags=("secret",)))
    store.deletion.forget(["1"])
    remember_batch(store, memory("1"))

    assert get_memory(store, "1").tags == ()
    assert store.deletion.select(ForgetFilter(tags=("secret",))) == []


def test_a_memory_takes_no_more_tags_than_the_limit(store: MemoryStore) -> None:
    remember_batch(store, memory("1"))
    store.changes.tag(["1"], [f"t{number}" for number in range(TAGS_MAX)])

    with pytest.raises(InvalidRequest, match="at most 100 tags"):
        store.changes.tag(["1"], ["one more"])

    assert "one more" not in get_memory(store, "1").tags
