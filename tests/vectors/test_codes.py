"""Sign codes of vectors, compared with an exhaustive search."""

import random

import pytest
from hypothesis import given, strategies as st
from support.vectors import angles, nearby, nearest, pack, sign_differences

from mnemosyned.search.vectors import index as module
from mnemosyned.search.vectors.index import VectorCodes

ROWS_MAX = 40
END = 10_000
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


@given(st.dictionaries(positions, angles, max_size=5))
def test_an_empty_one_leads_nowhere(forgotten: dict[int, tuple[float, ...]]) -> None:
    codes = VectorCodes()
    codes.put({position: pack(numbers) for position, numbers in forgotten.items()})
    codes.keep_only([], after=0, until=END)

    assert codes.likely_nearest(pack((1.0, 0.0, 0.0)), 5) == []
    assert len(codes) == 0
