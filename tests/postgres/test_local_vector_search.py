"""The local memory's vectors where the server compares them: a daemon holds none of them."""

from __future__ import annotations

import sys

import numpy as np
import psycopg
import pytest
from support.fakes import FakeEmbedder, memory, remember_batch
from support.postgres import open_store
from support.vector_service import wait_until

from mnemosyned.memory.values import EmbedderState
from mnemosyned.search.query import Query
from mnemosyned.search.vectors import indexer
from mnemosyned.search.vectors.index import cosines
from mnemosyned.search.vectors.indexer import VectorIndexer
from mnemosyned.search.vectors.packing import pack_four_bits, pack_half
from mnemosyned.storage.postgres.store import PostgresStore
from mnemosyned.text.terms import parse_terms

pytestmark = [pytest.mark.postgres, pytest.mark.usefixtures("pgvector")]


def found(store: PostgresStore, vectors: VectorIndexer, text: str) -> list[int]:
    query = Query(terms=parse_terms(text), limit=10)
    candidates = store.search.candidates(query)
    near, note = vectors.near(vectors.ask(text), query, candidates)
    assert note == ""
    return [match.position for match in near.memories]


def test_a_question_waits_for_no_slow_comparison(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexer, "START_AFTER_S", 0.0)
    with (
        open_store(dsn, embeds=True) as store,
        VectorIndexer(
            store=store.vectors,
            embedder=FakeEmbedder(),
            wait_s=0.5,
            similarity_min=0.6,
        ) as vectors,
        psycopg.connect(dsn) as other,
    ):
        remember_batch(store, memory("a", "The tesla came"))
        vectors.note_new_memories()
        wait_until(lambda: vectors.status().embedded == 1)
        query = Query(terms=parse_terms("tesla"), limit=10)
        candidates = store.search.candidates(query)
        other.execute("LOCK TABLE embedding IN ACCESS EXCLUSIVE MODE")

        near, note = vectors.near(vectors.ask("tesla"), query, candidates)

        assert near == candidates
        assert "did not compare the vectors in time" in note
        assert vectors.status().missed == 1
        other.rollback()


def test_a_daemon_finds_what_it_and_others_embedded_without_holding_it(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexer, "START_AFTER_S", 0.0)
    monkeypatch.setattr(indexer, "GATHER_S", 0.0)
    embedder = FakeEmbedder()
    with open_store(dsn) as before:
        remember_batch(before, memory("a", "The tesla came"))
        model = before.vectors.use_model(embedder.name, embedder.identity())
        before.vectors.keep_vectors(model, {1: embedder.vector("The tesla came")})
    monkeypatch.setitem(sys.modules, "numpy", None)  # nothing here asks for it
    with (
        open_store(dsn, embeds=True) as store,
        open_store(dsn, embeds=True) as other,
        VectorIndexer(
            store=store.vectors,
            embedder=embedder,
            wait_s=5,
            similarity_min=0.6,
        ) as vectors,
    ):
        wait_until(lambda: vectors.status().state is EmbedderState.READY)
        assert found(store, vectors, "car") == [1]

        remember_batch(store, memory("b", "A tooth hurts"))
        vectors.note_new_memories()
        wait_until(lambda: vectors.status().embedded == 2)
        assert vectors.status().searched == 2  # what was there before counts once
        assert found(store, vectors, "dentist") == [2]

        remember_batch(other, memory("c", "Another tesla"))
        other.vectors.keep_vectors(model, {3: embedder.vector("Another tesla")})
        assert sorted(found(store, vectors, "car")) == [1, 3]
        other.deletion.forget(["a"])
        assert found(store, vectors, "car") == [3]
    assert embedder.calls == [("A tooth hurts",)]


def test_the_server_compares_vectors_of_four_bits_a_number(dsn: str) -> None:
    chance = np.random.default_rng(3)
    made = chance.normal(size=(3, 64)).astype(np.float32)
    packed = dict(enumerate(pack_four_bits(made), 1))
    question = pack_half(made[1:2] / np.linalg.norm(made[1]))[0]
    with open_store(dsn, embeds=True) as store:
        remember_batch(store, *(memory(name, f"Note {name}") for name in "abc"))
        model = store.vectors.use_model("four", "four")
        store.vectors.keep_vectors(model, packed)
        search = store.vectors.search(model)
        assert search

        found = search.nearest(question, 3, least=-1.0)

    assert next(iter(found)) == 2
    assert found == pytest.approx(cosines(packed, question), abs=0.001)
