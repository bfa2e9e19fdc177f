"""Vectors that another daemon stores: told as news, and taken into the index at the next look."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from support.fakes import FakeEmbedder, memory, remember_batch
from support.postgres import open_store
from support.vector_service import wait_until

from mnemosyned.memory.engine_ports import VectorNews
from mnemosyned.search.query import Query
from mnemosyned.search.vectors import indexer
from mnemosyned.search.vectors.indexer import VectorIndexer
from mnemosyned.storage.common.session import Result
from mnemosyned.storage.postgres.session import PostgresSession
from mnemosyned.storage.postgres.store import PostgresStore
from mnemosyned.text.terms import parse_terms

pytestmark = pytest.mark.postgres


@pytest.fixture
def stores(dsn: str) -> Iterator[list[PostgresStore]]:
    """The stores of two daemons."""
    with ExitStack() as stack:
        yield [stack.enter_context(open_store(dsn)) for _ in range(2)]


def news(
    store: PostgresStore, model: int, since: int | None, limit: int = 9
) -> VectorNews:
    found = store.vectors.news(model, since=since, limit=limit)
    assert found
    return found


def test_vectors_that_one_stores_are_news_to_the_other_part_by_part(
    stores: list[PostgresStore],
) -> None:
    here, there = stores
    remember_batch(here, *map(memory, "abc"))
    model = here.vectors.use_model("fake", "digest")
    here.vectors.keep_vectors(model, {1: b"a"})
    begin = news(there, model, None)
    assert begin.vectors == {}
    assert news(there, model, begin.version) == begin

    here.vectors.keep_vectors(model, {3: b"c", 2: b"b"})
    here.vectors.keep_vectors(model, {1: b"A"})
    first = news(there, model, begin.version, limit=2)
    rest = news(there, model, first.version)

    assert first.vectors == {3: b"c", 2: b"b"}
    assert rest.vectors == {1: b"A"}
    assert news(there, model, rest.version).vectors == {}
    assert rest.removals == begin.removals


def test_no_news_is_looked_for_while_nobody_writes(
    stores: list[PostgresStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = stores
    remember_batch(here, *map(memory, "ab"))
    model = here.vectors.use_model("fake", "digest")
    here.vectors.keep_vectors(model, {1: b"a"})
    sent: list[str] = []
    execute = PostgresSession.execute

    def count(session: PostgresSession, sql: str, /, **values: object) -> Result:
        sent.append(sql)
        return execute(session, sql, **values)

    def ask(since: int | None) -> VectorNews:
        with there.search.one_snapshot():
            there.search.candidates(Query(terms=parse_terms("lunch"), limit=9))
            sent.clear()
            return news(there, model, since)

    begin = ask(None)
    monkeypatch.setattr(PostgresSession, "execute", count)
    assert (ask(begin.version), len(sent)) == (begin, 0)

    here.vectors.keep_vectors(model, {2: b"b"})
    assert ask(begin.version).vectors == {2: b"b"}
    begin = ask(begin.version + 1)
    here.deletion.forget(["a"])
    assert ask(begin.version).removals != begin.removals


def test_the_index_of_one_follows_what_the_other_embeds_and_forgets(
    stores: list[PostgresStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexer, "START_AFTER_S", 0.0)
    monkeypatch.setattr(indexer, "GATHER_S", 0.0)
    monkeypatch.setattr(indexer, "LOOK_S", 0.05)
    here, there = stores
    remember_batch(here, memory("a", "the tesla is red"))
    embedders = [FakeEmbedder(), FakeEmbedder()]
    with ExitStack() as stack:
        first, second = (
            stack.enter_context(
                VectorIndexer(
                    store=store.vectors,
                    embedder=embedder,
                    wait_s=5,
                    similarity_min=0.6,
                )
            )
            for store, embedder in zip(stores, embedders, strict=True)
        )
        wait_until(lambda: first.status().searched == second.status().searched == 1)
        remember_batch(here, *(memory(id, f"note {id}") for id in "bcd"))
        first.note_new_memories()
        wait_until(lambda: second.status().searched == 4)

        there.deletion.forget(["b", "c"])
        second.note_deletions()
        wait_until(lambda: first.status().searched == second.status().searched == 2)

    assert first.status().embedded == second.status().embedded == 2
