"""Vectors compared by the server, with pgvector: what looking at each of an owner's would find."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psycopg
import pytest
from support.fakes import memory, remember_batch
from support.postgres import open_store
from support.vectors import ROUNDING, cosine, nearest, pack

from mnemosyned.memory.engine_ports import ComparisonTooSlow
from mnemosyned.storage.postgres.roles import request_role
from mnemosyned.storage.postgres.schema import prepare_search
from mnemosyned.storage.postgres.session import PostgresSession
from mnemosyned.storage.postgres.store import PostgresStore

pytestmark = [pytest.mark.postgres, pytest.mark.usefixtures("pgvector")]
OWN, OTHER = 7, 8
COUNT, WIDTH = 300, 24


@contextmanager
def opened(
    dsn: str, owner: int = OWN, *, embeds: bool = True
) -> Iterator[PostgresStore]:
    with open_store(dsn, owner=owner, guarded=True, embeds=embeds) as store:
        yield store


def made(seed: int, count: int = COUNT) -> dict[int, bytes]:
    """Vectors of the memories at so many positions."""
    chance = random.Random(seed)
    return {
        position: pack([chance.gauss(0, 1) for _ in range(WIDTH)])
        for position in range(1, count + 1)
    }


def keep(store: PostgresStore, vectors: dict[int, bytes]) -> int:
    """Store memories with these vectors; the number of their model."""
    many = (memory(f"m{position}", f"note {position}") for position in vectors)
    remember_batch(store, *many)
    model = store.vectors.use_model("made", "digest")
    assert store.vectors.keep_vectors(model, vectors) == list(vectors)
    return model


def found(
    store: PostgresStore, model: int, question: bytes, count: int = 20
) -> dict[int, float]:
    search = store.vectors.search(model)
    assert search
    return search.nearest(question, count, least=-1.0)


def test_the_nearest_are_those_that_looking_at_each_finds(dsn: str) -> None:
    vectors, (question, *_) = made(1), made(2, 3).values()
    with opened(dsn) as store:
        model = keep(store, vectors)

        near = found(store, model, question)

        assert list(near) == nearest(question, vectors, 20)
        for position, similarity in near.items():
            exact = cosine(question, vectors[position])
            assert similarity == pytest.approx(exact, abs=ROUNDING)
        search = store.vectors.search(model)
        assert search
        least = sorted(near.values())[10]
        above = search.nearest(question, 20, least=least)
        assert above == {seq: near[seq] for seq in near if near[seq] >= least}
        some = search.cosines(question, [3, 5, COUNT + 1])
        assert some == {
            seq: pytest.approx(cosine(question, vectors[seq]), abs=ROUNDING)
            for seq in (3, 5)
        }


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


def test_the_database_holds_the_column_to_its_owner(dsn: str) -> None:
    with opened(dsn, OTHER) as store:
        keep(store, made(1, 3))
    with psycopg.connect(dsn) as connection:
        role = request_role(PostgresSession(connection, 0))
        connection.execute(f'SET LOCAL ROLE "{role}"'.encode())
        connection.execute(f"SET LOCAL mnemosyned.owner = {OWN}")
        rows = connection.execute("SELECT near FROM embedding").fetchall()

    assert rows == []


def test_what_is_forgotten_or_of_another_model_is_found_no_more(dsn: str) -> None:
    vectors = made(1, 10)
    with opened(dsn) as store:
        model = keep(store, vectors)
        store.deletion.forget(["m3"])
        other = store.vectors.use_model("other", "other digest")
        store.vectors.keep_vectors(other, {4: pack([1.0] * 3)})
        store.vectors.drop_vectors([5])

        assert sorted(found(store, model, vectors[3])) == [1, 2, 6, 7, 8, 9, 10]
        assert list(found(store, other, pack([1.0] * 3))) == [4]


def test_a_comparison_ends_after_its_time(dsn: str) -> None:
    vectors = made(1, 3)
    with opened(dsn) as store, psycopg.connect(dsn) as other:
        model = keep(store, vectors)
        search = store.vectors.search(model, limit_s=0.05)
        assert search
        other.execute("LOCK TABLE embedding IN ACCESS EXCLUSIVE MODE")

        with pytest.raises(ComparisonTooSlow):
            search.nearest(vectors[1], 3, least=-1.0)
        with pytest.raises(ComparisonTooSlow):
            search.cosines(vectors[1], [1])
        other.rollback()

        assert len(search.nearest(vectors[1], 3, least=-1.0)) == 3


def unsearched(store: PostgresStore, dsn: str) -> int:
    with psycopg.connect(dsn) as connection:
        row = connection.execute(
            "SELECT count(*) FROM embedding WHERE owner = %s AND near IS NULL",
            (store.owner,),
        ).fetchone()
    assert row
    return int(row[0])


def test_vectors_kept_before_pgvector_was_there_are_searched_after_a_preparation(
    dsn: str,
) -> None:
    vectors, (question, *_) = made(1), made(2, 3).values()
    with opened(dsn, embeds=False) as store:
        model = keep(store, vectors)
        assert store.vectors.search(model) is None
    with psycopg.connect(dsn) as connection:  # none that pgvector could hold
        connection.execute(
            "UPDATE embedding SET vector = 'odd' WHERE memory_seq = %s", (COUNT,)
        )
    with opened(dsn) as store:
        search = store.vectors.search(model)
        assert search
        assert found(store, model, question) == {}

        prepared: list[int] = []
        while count := search.prepare(limit=128):
            prepared.append(count)

        assert prepared == [128, 128, COUNT - 256]
        assert unsearched(store, dsn) == 1
        del vectors[COUNT]
        assert list(found(store, model, question)) == nearest(question, vectors, 20)


def test_vectors_are_the_same_bytes_with_pgvector_and_without(dsn: str) -> None:
    vectors = made(1, 5)
    with opened(dsn) as store:
        model = keep(store, vectors)
        assert store.vectors.vectors_of(model, list(vectors)) == vectors
    with opened(dsn, embeds=False) as store:
        assert store.vectors.vectors(model, before=9, limit=9) == vectors


def answers(dsn: str, statements: Sequence[str]) -> bool:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())
    return prepare_search(dsn)


def test_a_user_who_may_not_create_the_extension_goes_without(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE ROLE plain_user LOGIN")
        tables = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace "
            "AND relkind = 'r'"
        ).fetchall()
        for (table,) in tables:
            connection.execute(f'ALTER TABLE "{table}" OWNER TO plain_user'.encode())
        connection.execute("GRANT CREATE ON SCHEMA public TO plain_user")
    monkeypatch.setenv("PGUSER", "plain_user")
    plain = dsn.replace("postgres@", "plain_user@")
    assert plain != dsn

    try:
        assert not prepare_search(plain)
        assert answers(dsn, ["CREATE EXTENSION vector"])
        assert prepare_search(plain)
    finally:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("REASSIGN OWNED BY plain_user TO postgres")
            connection.execute("DROP OWNED BY plain_user")
            connection.execute("DROP ROLE plain_user")


def test_an_extension_that_is_taken_away_takes_no_vector_along(dsn: str) -> None:
    vectors = made(1, 5)
    with opened(dsn) as store:
        model = keep(store, vectors)
    with psycopg.connect(dsn) as connection:
        connection.execute("DROP EXTENSION vector CASCADE")

    with opened(dsn, embeds=False) as store:
        assert store.vectors.vectors(model, before=9, limit=9) == vectors
    with opened(dsn) as store:
        search = store.vectors.search(model)
        assert search
        assert search.prepare(limit=9) == 5
        assert len(found(store, model, vectors[1])) == 5
