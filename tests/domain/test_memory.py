"""Ids, hashes and tags of memories."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import pairwise

import pytest
from support.cases import each_case
from support.fakes import NOON

from mnemosyned.errors import InvalidRequest
from mnemosyned.ids import CROCKFORD, IdFactory, made_at
from mnemosyned.memory.forgetting import Removal, content_hash
from mnemosyned.memory.values import tag_name, tag_names


def test_an_id_is_a_ulid_that_tells_when_it_was_made() -> None:
    id = IdFactory()(NOON)

    assert made_at(id) == NOON
    assert {made_at(id) for id in ("", "mine", "8" + 25 * "0", 26 * "7")} == {None}
    assert len(id) == 26
    assert set(id) <= set(CROCKFORD)
    millis = 0
    for char in id[:10]:
        millis = millis * 32 + CROCKFORD.index(char)
    assert millis == NOON.timestamp() * 1000
    assert id < IdFactory()(NOON + timedelta(milliseconds=1))  # of another process


def test_ids_ascend_over_instants_within_them_and_when_the_clock_is_set_back() -> None:
    new_id = IdFactory()

    ids = [new_id(NOON + timedelta(milliseconds=at // 7)) for at in range(7_000)]
    ids.append(new_id(NOON - timedelta(days=1)))

    assert all(earlier < later for earlier, later in pairwise(ids))


def test_threads_never_get_the_same_id() -> None:
    new_id = IdFactory()

    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(lambda _: new_id(NOON), range(4_000)))

    assert len(set(ids)) == 4_000


def test_the_hash_fits_a_signed_integer_of_sqlite() -> None:
    hashes = [content_hash(f"text {at}") for at in range(200)]

    assert all(-(1 << 63) <= value < 1 << 63 for value in hashes)
    assert len(set(hashes)) == 200
    assert content_hash("text 0") == hashes[0]


# -------------------------------------------------------------------- tags


@each_case(("given", "kept"), [
    ("Travel", "travel"),
    ("  #Work ", "work"),
    ("two \t words", "two words"),
    ("Cafe\u0301", "caf\u00e9"),
    ("旅行", "旅行"),
    ("ÜBER", "über"),
])  # fmt: skip
def test_a_tag_is_kept_in_one_form(given: str, kept: str) -> None:
    assert tag_name(given) == kept
    assert tag_name(kept) == kept


@each_case("given", ["", " # ", "a,b", "a\u202eb", "x" * 101])
def test_what_is_no_tag_is_refused(given: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        tag_name(given, field="tags")

    assert refused.value.field == "tags"


def test_tags_are_sorted_and_each_is_there_once() -> None:
    assert tag_names(["b", "A", "a"]) == ("a", "b")


def test_an_episode_that_one_of_two_removals_deleted_is_not_emptied() -> None:
    emptied = Removal(working=1, emptied=frozenset({1, 2}))
    removed = Removal(working=2, removed=frozenset({1}))

    both = Removal(working=3, removed=frozenset({1}), emptied=frozenset({2}))
    assert emptied | removed == removed | emptied == both
