"""Vectors on a server: compared there with pgvector, and shared by the daemons of a memory."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import numpy as np
import psycopg
import pytest
from support.fakes import FakeEmbedder, memory, remember_batch
from support.postgres import number_of, open_store, rows, run
from support.vector_service import wait_until
from support.vectors import ROUNDING, cosine, nearest, pack

from mnemosyned.memory.engine_ports import ComparisonTooSlow, VectorNews
from mnemosyned.memory.values import EmbedderState
from mnemosyned.search.query import Query
from mnemosyned.search.vectors import indexer
from mnemosyned.search.vectors.index import cosines
from mnemosyned.search.vectors.indexer import VectorIndexer
from mnemosyned.search.vectors.packing import pack_four_bits, pack_half
from mnemosyned.storage.common.session import Result
from mnemosyned.storage.postgres.roles import request_role
from mnemosyned.storage.postgres.schema import prepare_search
from mnemosyned.storage.postgres.session import PostgresSession
from mnemosyned.storage.postgres.store import PostgresStore
from mnemosyned.storage.postgres.vectors import PostgresVectorSearch
from mnemosyned.text.terms import parse_terms

pytestmark = pytest.mark.postgres
needs_pgvector = pytest.mark.usefixtures("pgvector")
OWN, OTHER = 7, 8
COUNT, WIDTH = 300, 24
LOCKED = "LOCK TABLE embedding IN ACCESS EXCLUSIVE MODE"


@contextmanager
def opened(
    dsn: str, owner: int = OWN, *, embeds: bool = True
) -> Iterator[PostgresStore]:
    with open_store(dsn, owner=owner, guarded=True, embeds=embeds) as store:
        yield store


def made(seed: int, count: int = COUNT) -> dict[int, bytes]:
    chance = random.Random(seed)
    return {
        position: pack([chance.gauss(0, 1) for _ in range(WIDTH)])
        for position in range(1, count + 1)
    }


def keep(store: PostgresStore, vectors: dict[int, bytes]) -> int:
    """Store memories with these vectors; the number of their model."""
    remember_batch(store, *(memory(f"m{at}", f"note {at}") for at in vectors))
    model = store.vectors.register_model("made", "digest")
    assert store.vectors.store_vectors(model, vectors) == list(vectors)
    return model


def search_of(store: PostgresStore, model: int, **how: float) -> PostgresVectorSearch:
    search = store.vectors.search(model, **how)
    assert search
    return search


def found(
    store: PostgresStore, model: int, question: bytes, count: int = 20
) -> dict[int, float]:
    return search_of(store, model).nearest(question, count, least=-1.0)


@needs_pgvector
def test_the_nearest_are_those_that_looking_at_each_finds(dsn: str) -> None:
    vectors, (question, *_) = made(1), made(2, 3).values()
    exact = {at: cosine(question, vector) for at, vector in vectors.items()}
    with opened(dsn) as store:
        model = keep(store, vectors)

        near = found(store, model, question)

        assert list(near) == nearest(question, vectors, 20)
        close = {at: pytest.approx(exact[at], abs=ROUNDING) for at in exact}
        assert near == {at: close[at] for at in near}
        search, least = search_of(store, model), sorted(near.values())[10]
        above = search.nearest(question, 20, least=least)
        assert above == {at: near[at] for at in near if near[at] >= least}
        some = search.cosines(question, [3, 5, COUNT + 1])
        assert some == {at: close[at] for at in (3, 5)}


@needs_pgvector
def test_another_owners_vectors_are_found_by_no_question(dsn: str) -> None:
    own, other = made(1), made(2)
    with opened(dsn, OTHER) as store:
        keep(store, other)
    with opened(dsn) as store:
        model = keep(store, own)
        for question in list(other.values())[:20]:
            near = found(store, model, question, COUNT)
            assert sorted(near) == sorted(own)
            exact = cosine(question, own[1])
            assert near[1] == pytest.approx(exact, abs=ROUNDING)
    with psycopg.connect(dsn) as connection:
        role = request_role(PostgresSession(connection, 0))
        connection.execute(f'SET LOCAL ROLE "{role}"'.encode())
        connection.execute("SET LOCAL mnemosyned.owner = 9")
        assert connection.execute("SELECT near FROM embedding").fetchall() == []


@needs_pgvector
def test_what_is_forgotten_or_of_another_model_is_found_no_more(dsn: str) -> None:
    vectors = made(1, 10)
    with opened(dsn) as store:
        model = keep(store, vectors)
        store.deletion.forget(["m3"])
        other = store.vectors.register_model("other", "other digest")
        store.vectors.store_vectors(other, {4: pack([1.0] * 3)})
        store.vectors.drop_vectors([5])

        assert sorted(found(store, model, vectors[3])) == [1, 2, 6, 7, 8, 9, 10]
        assert list(found(store, other, pack([1.0] * 3))) == [4]


def test_a_vector_that_is_dropped_while_others_are_made_is_made_again(dsn: str) -> None:
    with opened(dsn, embeds=False) as store:
        model = keep(store, made(1, 3))
        vectors = store.vectors
        claim = partial(vectors.claim, "made", "digest", claimant=1, seconds=300.0)
        progress = claim()
        assert progress

        vectors.drop_vectors([2])

        assert not vectors.finish(progress)
        progress = claim()
        assert progress
        left = vectors.without_vector(model, after=progress.done, before=9, limit=9)
        assert [each.position for each in left] == [2]
        assert vectors.finish(progress)


@needs_pgvector
def test_a_comparison_ends_after_its_time(dsn: str) -> None:
    vectors = made(1, 3)
    with opened(dsn) as store, psycopg.connect(dsn) as other:
        search = search_of(store, keep(store, vectors), limit_s=0.05)
        other.execute(LOCKED)

        with pytest.raises(ComparisonTooSlow):
            search.nearest(vectors[1], 3, least=-1.0)
        with pytest.raises(ComparisonTooSlow):
            search.cosines(vectors[1], [1])
        other.rollback()

        assert len(search.nearest(vectors[1], 3, least=-1.0)) == 3


@needs_pgvector
def test_vectors_from_before_pgvector_are_prepared_first(dsn: str) -> None:
    vectors, (question, *_) = made(1), made(2, 3).values()
    with opened(dsn, embeds=False) as store:
        model = keep(store, vectors)
        assert store.vectors.search(model) is None
    # None that pgvector could hold.
    run(dsn, f"UPDATE embedding SET vector = 'odd' WHERE memory_seq = {COUNT}")
    with opened(dsn) as store:
        search = search_of(store, model)
        assert found(store, model, question) == {}

        prepared: list[int] = []
        while count := search.prepare(limit=128):
            prepared.append(count)

        assert prepared == [128, 128, COUNT - 256]
        left = "SELECT count(*) FROM embedding WHERE near IS NULL"
        assert number_of(dsn, left) == 1
        del vectors[COUNT]
        assert list(found(store, model, question)) == nearest(question, vectors, 20)


@needs_pgvector
def test_an_extension_that_is_taken_away_takes_no_vector_along(dsn: str) -> None:
    vectors = made(1, 5)
    with opened(dsn) as store:
        model = keep(store, vectors)
        assert store.vectors.vectors_of(model, list(vectors)) == vectors
    for statement in ("SELECT 1", "DROP EXTENSION vector CASCADE"):
        run(dsn, statement)
        with opened(dsn, embeds=False) as store:
            assert store.vectors.vectors(model, before=9, limit=9) == vectors
    with opened(dsn) as store:
        assert search_of(store, model).prepare(limit=9) == 5
        assert len(found(store, model, vectors[1])) == 5


@needs_pgvector
def test_a_plain_user_goes_without(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = rows(
        dsn,
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace "
        "AND relkind = 'r'",
    )
    given = (f'ALTER TABLE "{table}" OWNER TO plain_user' for (table,) in tables)
    run(dsn, "CREATE ROLE plain_user LOGIN", *given)
    run(dsn, "GRANT CREATE ON SCHEMA public TO plain_user")
    monkeypatch.setenv("PGUSER", "plain_user")
    plain = dsn.replace("postgres@", "plain_user@")

    try:
        assert not prepare_search(plain)
        run(dsn, "CREATE EXTENSION vector")
        assert prepare_search(dsn)
        assert prepare_search(plain)
    finally:
        run(dsn, "REASSIGN OWNED BY plain_user TO postgres")
        run(dsn, "DROP OWNED BY plain_user", "DROP ROLE plain_user")


@needs_pgvector
def test_the_server_compares_vectors_of_four_bits_a_number(dsn: str) -> None:
    chance = np.random.default_rng(3)
    numbers = chance.normal(size=(3, 64)).astype(np.float32)
    packed = dict(enumerate(pack_four_bits(numbers), 1))
    question = pack_half(numbers[1:2] / np.linalg.norm(numbers[1]))[0]
    with opened(dsn) as store:
        near = found(store, keep(store, packed), question, 3)

    assert next(iter(near)) == 2
    assert near == pytest.approx(cosines(packed, question), abs=0.001)


# Several daemons of one memory: each finds what the others embed, and forgets what they forget.


@pytest.fixture
def stores(dsn: str) -> Iterator[list[PostgresStore]]:
    with open_store(dsn) as first, open_store(dsn) as second:
        yield [first, second]


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The indexer waits for no more memories before it begins."""
    monkeypatch.setattr(indexer, "START_AFTER_S", 0.0)
    monkeypatch.setattr(indexer, "GATHER_S", 0.0)


def indexing(
    store: PostgresStore, embedder: FakeEmbedder, *, wait_s: float = 5
) -> VectorIndexer:
    return VectorIndexer(
        store=store.vectors, embedder=embedder, wait_s=wait_s, similarity_min=0.6
    )


def near_to(
    store: PostgresStore, vectors: VectorIndexer, text: str
) -> tuple[list[int], str]:
    """The positions of what is found by meaning, and the note on it."""
    query = Query(terms=parse_terms(text), limit=10)
    candidates = store.search.candidates(query)
    near, note = vectors.add_similarities(vectors.ask(text), query, candidates)
    return sorted(match.position for match in near.memories), note


@needs_pgvector
@pytest.mark.usefixtures("at_once")
def test_a_daemon_holds_no_vector(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = FakeEmbedder()
    with open_store(dsn) as before:
        remember_batch(before, memory("a", "The tesla came"))
        model = before.vectors.register_model(embedder.name, embedder.identity())
        before.vectors.store_vectors(model, {1: embedder.vector("The tesla came")})
    monkeypatch.setitem(sys.modules, "numpy", None)  # nothing here asks for it
    with (
        open_store(dsn, embeds=True) as store,
        open_store(dsn, embeds=True) as other,
        indexing(store, embedder) as vectors,
    ):
        wait_until(lambda: vectors.status().state is EmbedderState.READY)
        assert near_to(store, vectors, "car") == ([1], "")

        remember_batch(store, memory("b", "A tooth hurts"))
        vectors.note_new_memories()
        wait_until(lambda: vectors.status().embedded == 2)
        assert vectors.status().searched == 2  # what was there before counts once
        assert near_to(store, vectors, "dentist") == ([2], "")

        remember_batch(other, memory("c", "Another tesla"))
        other.vectors.store_vectors(model, {3: embedder.vector("Another tesla")})
        assert near_to(store, vectors, "car") == ([1, 3], "")
        other.deletion.forget(["a"])
        assert near_to(store, vectors, "car") == ([3], "")
    assert embedder.calls == [("A tooth hurts",)]


def news(
    store: PostgresStore, model: int, since: int | None, limit: int = 9
) -> VectorNews:
    found = store.vectors.news(model, since=since, limit=limit)
    assert found
    return found


def test_vectors_of_others_come_part_by_part(stores: list[PostgresStore]) -> None:
    here, there = stores
    remember_batch(here, *map(memory, "abc"))
    model = here.vectors.register_model("fake", "digest")
    here.vectors.store_vectors(model, {1: b"a"})
    begin = news(there, model, None)
    assert begin.vectors == {}
    assert news(there, model, begin.version) == begin

    here.vectors.store_vectors(model, {3: b"c", 2: b"b"})
    here.vectors.store_vectors(model, {1: b"A"})
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
    model = here.vectors.register_model("fake", "digest")
    here.vectors.store_vectors(model, {1: b"a"})
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

    here.vectors.store_vectors(model, {2: b"b"})
    assert ask(begin.version).vectors == {2: b"b"}
    begin = ask(begin.version + 1)
    here.deletion.forget(["a"])
    assert ask(begin.version).removals != begin.removals


@pytest.mark.usefixtures("at_once")
def test_an_index_follows_what_others_embed(
    stores: list[PostgresStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexer, "LOOK_S", 0.05)
    here, there = stores
    remember_batch(here, memory("a", "the tesla is red"))
    with ExitStack() as stack:
        first, second = (
            stack.enter_context(indexing(store, FakeEmbedder())) for store in stores
        )

        def searched(count: int) -> bool:
            return first.status().searched == second.status().searched == count

        wait_until(lambda: searched(1))
        remember_batch(here, *(memory(id, f"note {id}") for id in "bcd"))
        first.note_new_memories()
        wait_until(lambda: second.status().searched == 4)

        there.deletion.forget(["b", "c"])
        second.note_deletions()
        wait_until(lambda: searched(2))

    assert first.status().embedded == second.status().embedded == 2


@pytest.mark.usefixtures("at_once")
def test_a_daemon_says_that_another_model_has_replaced_its_vectors(
    stores: list[PostgresStore],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(indexer, "LOOK_S", 0.05)
    here, there = stores
    remember_batch(here, memory("a", "the tesla is red"))
    with indexing(here, FakeEmbedder()) as earlier:
        wait_until(lambda: earlier.status().embedded == 1)
    with indexing(here, FakeEmbedder()) as first:  # knows of the vector from its start
        wait_until(lambda: first.status().embedded == 1)
        with indexing(there, FakeEmbedder(name="other")):
            wait_until(lambda: "vectors are of other, not of " in first.status().reason)

    assert first.status().embedded == 0
    assert caplog.text.count("embedding_replaced") == 2, "once for each daemon"
