"""Exact search in memory, with numpy, which llama.cpp's package brings."""

import pytest
from hypothesis import given, strategies as st
from support.vectors import ROUNDING, angles, cosine, pack

from mnemosyned.search.vectors.index import ExactVectors, cosines


@given(
    st.dictionaries(st.integers(1, 3_000), angles, max_size=40),
    angles,
    st.integers(1, 10),
)
def test_the_nearest_are_those_that_looking_at_each_would_find(
    given: dict[int, tuple[float, ...]], asked: tuple[float, ...], count: int
) -> None:
    vectors = {position: pack(numbers) for position, numbers in given.items()}
    question = pack(asked)
    matrix = ExactVectors(rows_max=100)

    matrix.put(vectors)

    each = {position: cosine(question, vector) for position, vector in vectors.items()}
    found = matrix.nearest(question, count, least=-2.0)
    nearest = sorted(each.values(), reverse=True)[:count]
    assert list(found.values()) == pytest.approx(nearest, abs=ROUNDING)
    assert found == pytest.approx(
        {position: each[position] for position in found}, abs=ROUNDING
    )
    assert matrix.cosines(question, each) == pytest.approx(each, abs=ROUNDING)
    assert cosines(vectors, question) == pytest.approx(each, abs=ROUNDING)


@given(st.lists(st.sets(st.integers(1, 50), max_size=20), max_size=6), st.data())
def test_the_newest_stay_where_there_is_no_room_for_all(
    arrivals: list[set[int]], data: st.DataObject
) -> None:
    matrix = ExactVectors(rows_max=10)
    held: set[int] = set()
    floor = 0

    for arrived in arrivals:
        newer = {position for position in arrived if position > floor}
        taken = matrix.put(
            {position: pack((1.0, position, 0.0)) for position in arrived}
        )
        floor = max([floor, *sorted(held | newer)[:-10]])
        held = {position for position in held | newer if position > floor}
        assert taken == bool(newer & held)
        kept = data.draw(st.sets(st.sampled_from(sorted(held)))) if held else set()
        after, until = sorted(
            (data.draw(st.integers(0, 50)), data.draw(st.integers(0, 50)))
        )
        matrix.keep_only(sorted(kept), after=after, until=until)
        held -= {position for position in held - kept if after < position <= until}

    found = matrix.nearest(pack((1.0, 0.0, 0.0)), 50, least=-2.0)
    assert found.keys() == held
    assert (len(matrix), matrix.floor) == (len(held), floor)
    question = pack((1.0, 2.0, 0.0))
    each = {position: cosine(question, pack((1.0, position, 0.0))) for position in held}
    assert matrix.cosines(question, range(60)) == pytest.approx(each, abs=1e-3)


def test_what_is_not_near_enough_is_not_found() -> None:
    matrix = ExactVectors(rows_max=10)
    matrix.put({1: pack((1.0, 0.0, 0.0)), 2: pack((0.0, 1.0, 0.0))})

    assert list(matrix.nearest(pack((1.0, 0.1, 0.0)), 5, least=0.4)) == [1]


def test_an_empty_one_finds_nothing() -> None:
    matrix = ExactVectors(rows_max=10)

    assert matrix.nearest(pack((1.0, 0.0, 0.0)), 5, least=0.0) == {}
    assert matrix.cosines(pack((1.0, 0.0, 0.0)), [1]) == {}
