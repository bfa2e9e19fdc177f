"""What every `VectorStore` promises: vectors live and die with their memories."""

from dataclasses import replace

import pytest
from support.fakes import NOON, consolidate, memory, promotion, remember_batch

from mnemosyned.search.query import Query
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.text.terms import parse_terms

TRIO = tuple(
    memory(str(n), f"note {n}", role="user", source="chat") for n in range(1, 4)
)


@pytest.fixture
def model(store: SqliteStore) -> int:
    return store.vectors.register_model("one", "digest-1")


def embed(store: SqliteStore, model: int, *positions: int) -> list[int]:
    return store.vectors.store_vectors(
        model, {seq: f"v{seq}".encode() for seq in positions}
    )


def lacking(store: SqliteStore, model: int, *, limit: int = 10) -> list[int]:
    found = store.vectors.without_vector(model, after=0, before=1_000, limit=limit)
    return [spoken.position for spoken in found]


def embedded(store: SqliteStore, model: int) -> list[int]:
    return list(store.vectors.embedded_positions(model, after=0, limit=10))


def test_a_model_keeps_its_number(store: SqliteStore, model: int) -> None:
    assert store.vectors.register_model("renamed", "digest-1") == model
    assert store.vectors.register_model("one", "digest-2") != model


def test_those_without_a_vector_are_listed(store: SqliteStore, model: int) -> None:
    remember_batch(store, *TRIO)

    found = store.vectors.without_vector(model, after=1, before=4, limit=10)

    assert [tuple(spoken) for spoken in found] == [
        (3, "user", "note 3"),
        (2, "user", "note 2"),
    ]
    assert store.vectors.newest_position() == 3


def test_vectors_come_back_newest_first(store: SqliteStore, model: int) -> None:
    remember_batch(store, *TRIO)

    assert embed(store, model, 1, 2, 3) == [1, 2, 3]

    assert store.vectors.vectors(model, before=4, limit=2) == {3: b"v3", 2: b"v2"}
    assert store.vectors.vectors(model, before=2, limit=2) == {1: b"v1"}
    assert store.vectors.vectors_of(model, [1, 99]) == {1: b"v1"}
    assert lacking(store, model) == []


def test_another_models_vectors_do_not_count(store: SqliteStore, model: int) -> None:
    remember_batch(store, *TRIO)
    embed(store, model, 1, 2, 3)
    other = store.vectors.register_model("two", "digest-2")

    assert lacking(store, other) == [3, 2, 1]
    embed(store, other, 3)

    assert (embedded(store, other), embedded(store, model)) == ([3], [1, 2])


def test_a_vector_goes_along_to_the_archive(store: SqliteStore, model: int) -> None:
    remember_batch(store, *TRIO)
    embed(store, model, 1, 2, 3)

    consolidate(store, promotion("e", *TRIO))

    assert embedded(store, model) == [1, 2, 3]
    assert lacking(store, store.vectors.register_model("two", "digest-2")) == [3, 2, 1]


@pytest.mark.parametrize("slept", [False, True])
def test_a_forgotten_memory_loses_its_vector_for_good(
    store: SqliteStore, model: int, *, slept: bool
) -> None:
    remember_batch(store, *TRIO)
    embed(store, model, 1, 2, 3)
    if slept:
        consolidate(store, promotion("e", *TRIO))

    store.deletion.forget([one.id for one in TRIO])

    assert embedded(store, model) == []
    assert embed(store, model, 1, 2) == []
    assert embedded(store, model) == []


def test_a_pruned_memory_has_no_vector(store: SqliteStore, model: int) -> None:
    remember_batch(store, *TRIO)
    embed(store, model, 1, 2, 3)
    consolidate(store, promotion("e", *TRIO))

    store.retention.prune([TRIO[0].id], now=NOON)

    query = Query(terms=parse_terms("anything"), limit=10)
    found = store.vectors.candidates(query, [1, 2])
    assert [match.position for match in found] == [2]
    assert embed(store, model, 1) == []
    assert embedded(store, model) == [2, 3]


def test_candidates_are_held_to_the_filters(store: SqliteStore) -> None:
    remember_batch(store, *TRIO, replace(TRIO[0], id="4", source="mail"))
    consolidate(store, promotion("e", *TRIO))
    query = Query(terms=parse_terms("anything"), limit=10)

    def positions(query: Query) -> list[int]:
        found = store.vectors.candidates(query, [1, 2, 4, 99])
        assert all(match.score == 0 for match in found)
        return sorted(match.position for match in found)

    assert positions(query) == [1, 2, 4]
    assert positions(replace(query, sources=("chat",))) == [1, 2]
    assert positions(replace(query, until=NOON)) == []
