"""Vectors that are read for each question: the newest are compared, exactly."""

import random

import pytest
from support.fakes import memory, remember_batch
from support.vectors import ROUNDING, WIDTH, cosine, nearest, pack

from mnemosyned.search.vectors import index as module
from mnemosyned.search.vectors.index import NewestVectors
from mnemosyned.storage.sqlite.store import SqliteStore

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
    model = store.vectors.use_model("made", "digest")
    store.vectors.keep_vectors(model, vectors)
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
    model = store.vectors.use_model("made", "digest")
    search = NewestVectors(store.vectors, model)

    assert search.nearest(pack([1.0, 0.0, 0.0]), 6, least=-1.0) == {}
    assert search.cosines(pack([1.0, 0.0, 0.0]), [1]) == {}
