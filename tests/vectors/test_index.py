"""Vectors found by their codes, held against looking at each."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, strategies as st
from support.vectors import ROUNDING, angles, cosine, nearby, pack

from mnemosyned.search.vectors import index as module
from mnemosyned.search.vectors.index import VectorIndex

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
    index = VectorIndex(read=table.vectors_of)
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


def test_no_more_vectors_are_read_than_may_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "READ", 20)
    chance = random.Random(1)
    table = Table({n: pack(nearby([0.0] * 70, 1, chance)) for n in range(1, 301)})
    index = filled(table)

    found = index.nearest(table[5], 10, least=-2.0)

    assert table.read == 20
    assert next(iter(found)) == 5


def test_an_empty_one_finds_nothing() -> None:
    index = filled(Table())

    assert index.nearest(pack((1.0, 0.0, 0.0)), 5, least=0.0) == {}
    assert index.cosines(pack((1.0, 0.0, 0.0)), [1]) == {}


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
