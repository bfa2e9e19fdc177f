"""Vectors found by their codes, by their index and among the newest, compared with looking at each."""

import math
import random
from collections.abc import Sequence

import pytest
from hypothesis import given, strategies as st
from support.fakes import memory, remember_batch
from support.vectors import ROUNDING, WIDTH, cosine, nearby, nearest, pack, unpack

from mnemosyned.search.vectors import index as module
from mnemosyned.search.vectors.index import NewestVectors, VectorCodes, VectorIndex
from mnemosyned.storage.sqlite.store import SqliteStore

angles = st.tuples(*[st.floats(-1, 1)] * WIDTH).filter(
    lambda numbers: math.hypot(*numbers) > 0.1
)


def sign_differences(one: bytes, other: bytes) -> int:
    """How many numbers differ in sign."""
    pairs = zip(unpack(one), unpack(other), strict=True)
    return sum((a > 0) != (b > 0) for a, b in pairs)


END = 10_000


class Table(dict[int, bytes]):
    """Vectors as the store has them; it counts those that are read."""

    read = 0

    def vectors_of(self, positions: Sequence[int]) -> dict[int, bytes]:
        self.read += len(positions)
        return {position: self[position] for position in positions if position in self}


def filled(table: Table) -> VectorIndex:
    index = VectorIndex(read=table.vectors_of)
    index.put(table)
    return index


arrivals = st.lists(
    st.dictionaries(st.integers(1, 60), angles, max_size=20), max_size=5
)


@given(arrivals, angles, st.integers(1, 10), st.data())
def test_the_index_agrees_with_an_exhaustive_search_and_finds_nothing_forgotten(
    arrivals: list[dict[int, tuple[float, ...]]],
    asked: tuple[float, ...],
    count: int,
    data: st.DataObject,
) -> None:
    table = Table()
    kept_max = data.draw(st.sampled_from([0, 30, 100]))
    index = VectorIndex(read=table.vectors_of, kept_max=kept_max)
    question = pack(asked)

    for arrived in arrivals:
        vectors = {position: pack(numbers) for position, numbers in arrived.items()}
        table |= vectors
        index.put(vectors)
        gone = data.draw(st.sets(st.sampled_from(sorted(table)))) if table else set()
        for position in gone:
            del table[position]
        middle = data.draw(st.integers(1, 60))
        for after, until in ((0, middle), (middle, END)):
            known = [
                position for position in sorted(table) if after < position <= until
            ]
            index.keep_only(known, after=after, until=until)

        each = {
            position: cosine(question, vector) for position, vector in table.items()
        }
        found = index.nearest(question, count, least=-2.0)
        best = sorted(each.values(), reverse=True)[:count]
        assert list(found.values()) == pytest.approx(best, abs=ROUNDING)
        assert found == pytest.approx({seq: each[seq] for seq in found}, abs=ROUNDING)
        assert index.cosines(question, range(70)) == pytest.approx(each, abs=ROUNDING)
        assert set(index.nearest_of(question, range(70), 70)) == set(table)
        assert len(index) == len(table)


def test_what_is_forgotten_is_not_found_before_its_code_is_dropped() -> None:
    table = Table({n: pack((1.0, n, 0.0)) for n in range(1, 6)})
    index = filled(table)

    del table[3]

    assert index.nearest(pack((1.0, 3.0, 0.0)), 5, least=0.0).keys() == {1, 2, 4, 5}


def test_no_more_vectors_are_read_than_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "READ", 20)
    chance = random.Random(1)
    table = Table({n: pack(nearby([0.0] * 70, 1, chance)) for n in range(1, 301)})
    index = filled(table)

    found = index.nearest(table[5], 10, least=-2.0)

    assert table.read == 20
    assert next(iter(found)) == 5


def test_what_is_not_near_enough_is_not_found() -> None:
    table = Table(
        {1: pack((1.0, 0.0, 0.0)), 2: pack((0.0, 1.0, 0.0)), 3: pack((0, 0, 1.0))}
    )
    index = filled(table)

    assert list(index.nearest(pack((1.0, 0.1, 0.0)), 5, least=0.4)) == [1]


def test_few_vectors_are_held_and_not_read_until_some_were_changed() -> None:
    table = Table({n: pack((1.0, n, 0.0)) for n in range(1, 6)})
    index = VectorIndex(read=table.vectors_of, kept_max=6)
    index.put(table)
    question = pack((1.0, 3.0, 0.0))

    found = index.nearest(question, 5, least=0.0)
    assert set(index.cosines(question, [1, 2])) == {1, 2}
    assert table.read == 0

    del table[3]
    index.drop_vectors()
    index.put({6: pack((0.0, 1.0, 0.0))})
    assert index.kept == {}
    assert found.keys() - index.nearest(question, 5, least=0.0).keys() == {3}


def test_vectors_beyond_the_limit_are_read() -> None:
    table = Table({n: pack((1.0, n, 0.0)) for n in range(1, 6)})
    index = VectorIndex(read=table.vectors_of, kept_max=4)
    index.put(table)

    assert index.cosines(pack((1.0, 3.0, 0.0)), [1, 2]).keys() == {1, 2}
    assert table.read == 2


# Sign codes of vectors.

ROWS_MAX = 40
positions = st.integers(1, 3 * ROWS_MAX)


@given(
    st.lists(st.tuples(st.sets(positions, max_size=30), st.booleans()), max_size=8),
    st.data(),
)
def test_the_codes_are_the_newest_of_the_span_without_the_forgotten(
    arrivals: list[tuple[set[int], bool]], data: st.DataObject
) -> None:
    codes = VectorCodes(rows_max=ROWS_MAX)
    places: dict[int, int] = {}
    newest = 0

    for arrived, forgets in arrivals:
        newest = max(newest, *arrived) if arrived else newest
        within = {position for position in arrived if position > newest - ROWS_MAX}
        taken = codes.put({position: pack((1, position, -1)) for position in arrived})
        places |= {position % ROWS_MAX: position for position in within}
        assert taken == bool(within)
        if forgets:
            after, until = sorted((data.draw(positions), data.draw(positions)))
            kept = sorted(data.draw(st.sets(positions)))
            codes.keep_only(kept, after=after, until=until)
            places = {
                place: position
                for place, position in places.items()
                if position in kept or not after < position <= until
            }

    held = set(places.values())
    assert set(codes.likely_nearest(pack((1, 1, 1)), END)) == held
    assert len(codes) == len(held)


@pytest.mark.parametrize("width", [3, 64, 67])
def test_the_fewest_differing_signs_are_selected(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SIFTED_MAX", 50)
    monkeypatch.setattr(module, "CODES_AT_ONCE", 64)
    chance = random.Random(width)
    vectors = {n: pack(nearby([0.1] * width, 1, chance)) for n in range(1, 501)}
    question = pack(nearby([0.1] * width, 1, chance))
    codes = VectorCodes()
    for low in range(401, 0, -100):  # as they are loaded: the newest first
        codes.put({n: vectors[n] for n in range(low, low + 100)})

    found = codes.likely_nearest(question, END)

    differ = sorted(sign_differences(question, vector) for vector in vectors.values())
    assert (
        sorted(sign_differences(question, vectors[position]) for position in found)
        == differ[:50]
    )


def test_equal_sign_distances_are_decided_by_similarity_to_the_question() -> None:
    large, small = pack((-0.9, 0.1, 0.4)), pack((0.9, -0.1, 0.4))
    codes = VectorCodes()
    codes.put({1: large, 2: small})

    assert codes.likely_nearest(pack((0.9, 0.1, 0.4)), 1) == [2]


@pytest.mark.thorough
def test_a_few_of_many_hold_nearly_all_of_the_nearest() -> None:
    chance = random.Random(7)
    topics = [nearby([0.0] * 96, 1, chance) for _ in range(40)]
    vectors = {
        n: pack(nearby(chance.choice(topics), 1, chance)) for n in range(1, 2_001)
    }
    codes = VectorCodes()
    codes.put(vectors)
    questions = [pack(nearby(topic, 1, chance)) for topic in topics[:5]]

    found = [set(codes.likely_nearest(question, 100)) for question in questions]

    right = [set(nearest(question, vectors, 10)) for question in questions]
    shares = [len(some & ten) / 10 for some, ten in zip(found, right, strict=True)]
    assert sum(shares) / len(shares) >= 0.95


def test_what_is_forgotten_is_overwritten() -> None:
    codes = VectorCodes()
    codes.put({1: pack((1, 1, 1)), 2: pack((-1, 1, 1))})

    codes.keep_only([], after=0, until=END)

    assert not codes._codes.any()  # noqa: SLF001 nothing public could show it


# Vectors that are read for each question: the newest are compared, exactly.

COUNT = 25


@pytest.fixture
def vectors() -> dict[int, bytes]:
    chance = random.Random(4)
    return {
        position: pack([chance.gauss(0, 1) for _ in range(WIDTH)])
        for position in range(1, COUNT + 1)
    }


@pytest.mark.parametrize("rows_max", [COUNT, 100, 10])
def test_the_nearest_of_the_newest_are_found_over_all_pages(
    store: SqliteStore,
    vectors: dict[int, bytes],
    monkeypatch: pytest.MonkeyPatch,
    rows_max: int,
) -> None:
    monkeypatch.setattr(module, "READ_AT_ONCE", 4)
    remember_batch(store, *(memory(str(seq), f"note {seq}") for seq in vectors))
    model = store.vectors.register_model("made", "digest")
    store.vectors.store_vectors(model, vectors)
    question = pack([1.0, 0.5, -0.5])
    newest = {seq: vectors[seq] for seq in sorted(vectors)[-rows_max:]}
    right = nearest(question, newest, 6)

    search = NewestVectors(store.vectors, model, rows_max=rows_max)

    near = search.nearest(question, 6, least=-1.0)
    assert list(near) == right
    assert near[right[0]] == pytest.approx(
        cosine(question, vectors[right[0]]), abs=ROUNDING
    )
    least = sorted(near.values())[3]
    assert list(search.nearest(question, 6, least=least)) == right[:3]
    assert set(search.nearest_of(question, sorted(vectors), 6)) == set(right)
    some = search.cosines(question, [1, 2, COUNT + 1])
    assert sorted(some) == [1, 2]  # the oldest are read, too, where words found them


def test_without_a_vector_there_is_nothing_near(store: SqliteStore) -> None:
    model = store.vectors.register_model("made", "digest")
    search = NewestVectors(store.vectors, model)

    assert search.nearest(pack([1.0, 0.0, 0.0]), 6, least=-1.0) == {}
    assert search.cosines(pack([1.0, 0.0, 0.0]), [1]) == {}
