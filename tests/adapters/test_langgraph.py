"""`MnemosyneStore` next to a real daemon: LangGraph's own tests, and what they do not ask."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from adapters.conftest import UpstreamTests, run_page
from e2e.daemons import Daemon

from mnemosyned import AsyncClient, Client, ContentTooLarge, InvalidRequest, Memory
from mnemosyned.adapters.langgraph import MnemosyneStore

pytestmark = pytest.mark.adapters

ADA = ("users", "ada")


@pytest.fixture
def client(daemon: Daemon) -> Iterator[Client]:
    with daemon.client() as client:
        yield client


@pytest.fixture
def store(client: Client, daemon: Daemon) -> Iterator[MnemosyneStore]:
    async_client = AsyncClient(daemon.socket)
    yield MnemosyneStore(client, async_client, name=f"store{uuid4().hex[:8]}")
    asyncio.run(async_client.close())


def test_langgraphs_own_tests_pass(upstream: UpstreamTests) -> None:
    outcome = upstream.outcome(
        "langgraph_checkpoint-4.3.2",
        "tests/test_store.py",
        "adapters.upstream_langgraph",
        # The others give the store an index of vectors, which it does not take.
        "-k",
        "not vector and not embed and not non_ascii",
    )

    assert outcome["passed"] >= 70
    assert not outcome.keys() & {"failed", "error", "errors", "skipped"}


@pytest.mark.parametrize(
    "value",
    [
        {"text": "tabs", "nested": {"list": [1, 2.5, None, True], "empty": {}}},
        {"key": "AKIAIOSFODNN7EXAMPLE", "password": "hunter2hunter2"},
        {"text": "🐝 тест 中文", "large": 2**60},
        {},
        {"text": "a large value " * 10_000, "n": 1},
    ],
)
def test_a_value_comes_back_whole(store: MnemosyneStore, value: dict[str, Any]) -> None:
    store.put(ADA, "prefs", value)

    item = store.get(ADA, "prefs")

    assert item is not None
    assert (item.namespace, item.key, item.value) == (ADA, "prefs", value)


def test_an_update_replaces_the_value_alone(store: MnemosyneStore) -> None:
    store.put(ADA, "prefs", {"text": "Ada prefers tabs"})
    first = store.get(ADA, "prefs")
    store.put(ADA, "prefs", {"text": "Ada prefers spaces"})
    second = store.get(ADA, "prefs")

    assert first is not None
    assert second is not None
    assert second.value == {"text": "Ada prefers spaces"}
    assert second.created_at == first.created_at
    assert second.updated_at > first.updated_at
    found = store.search(("users",), query="what does Ada prefer?")
    assert [item.value for item in found] == [second.value]
    assert found[0].score


def test_a_sleep_changes_nothing(store: MnemosyneStore, client: Client) -> None:
    for number in range(3):
        store.put(ADA, "visits", {"text": f"Ada's visit number {number} to the harbor"})
        store.put(ADA, f"note-{number}", {"text": f"note {number}", "n": number})

    client.sleep(force=True)

    visits = store.get(ADA, "visits")
    assert visits is not None
    assert visits.value == {"text": "Ada's visit number 2 to the harbor"}
    assert [item.key for item in store.search(ADA, query="visit harbor")] == ["visits"]
    keys = [item.key for item in store.search(ADA, filter={"n": {"$gte": 1}})]
    assert keys == ["note-1", "note-2"]


def test_items_with_the_same_words_are_all_found(store: MnemosyneStore) -> None:
    for key in ("a", "b", "c"):
        store.put(ADA, key, {"text": "Ada likes the harbor at night"})

    assert {item.key for item in store.search(ADA, query="harbor")} == {"a", "b", "c"}


def test_a_deletion_forgets_all_versions(store: MnemosyneStore, client: Client) -> None:
    store.put(ADA, "prefs", {"text": "Ada collects zeppelins"})
    store.put(ADA, "prefs", {"text": "Ada collects zeppelins and kites"})

    store.delete(ADA, "prefs")
    store.delete(ADA, "never there")

    assert store.get(ADA, "prefs") is None
    assert store.search(()) == []
    assert not client.recall("zeppelins", history=True)


def test_similar_names_are_kept_apart(store: MnemosyneStore) -> None:
    places = [
        (("a",), "b..c"),
        (("a", "b"), "c"),
        (("a",), "b"),
        (("a/b",), "c"),
        (("a",), ".b"),
        (("ab",), ""),
    ]
    for number, (namespace, key) in enumerate(places):
        store.put(namespace, key, {"n": number})

    for number, (namespace, key) in enumerate(places):
        item = store.get(namespace, key)
        assert item is not None
        assert item.value == {"n": number}
    found = {(item.namespace, item.key) for item in store.search((), limit=50)}
    assert found == set(places)


def test_what_is_not_indexed_is_found_by_its_key_alone(store: MnemosyneStore) -> None:
    store.put(ADA, "hidden", {"text": "zeppelin"}, index=False)
    store.put(ADA, "shown", {"title": "kite", "text": "zeppelin"}, index=["title"])

    assert store.search(ADA, query="zeppelin") == []
    assert [item.key for item in store.search(ADA, query="kite")] == ["shown"]
    assert [item.key for item in store.search(ADA, query="hidden")] == ["hidden"]


def test_stores_of_other_names_are_empty(store: MnemosyneStore, client: Client) -> None:
    store.put(ADA, "prefs", {"text": "tabs"})
    other = MnemosyneStore(client, name=f"store{uuid4().hex[:8]}")

    assert other.get(ADA, "prefs") is None
    assert other.search(()) == []
    assert other.list_namespaces() == []


def test_of_writers_at_once_one_is_last(store: MnemosyneStore) -> None:
    async def write_all() -> Any:  # noqa: ANN401 an item
        await asyncio.gather(
            *(store.aput(ADA, "count", {"n": number}) for number in range(30))
        )
        return await store.aget(ADA, "count")

    item = asyncio.run(write_all())

    assert item.value in [{"n": number} for number in range(30)]
    assert len(store.search(ADA)) == 1


def test_what_cannot_be_kept_is_refused_by_name(store: MnemosyneStore) -> None:
    with pytest.raises(ContentTooLarge):
        store.put(ADA, "large", {"text": "x" * 2_000_000})
    with pytest.raises(InvalidRequest, match="200"):
        store.put(("x" * 300,), "key", {})
    with pytest.raises(InvalidRequest):
        store.put(ADA, "bytes", {"data": object()})
    with pytest.raises(NotImplementedError, match="TTL"):
        store.put(ADA, "short", {"text": "x"}, ttl=1)
    store.put(ADA, "x", {"n": 1})
    with pytest.raises(ValueError, match=r"\$near"):
        store.search(ADA, filter={"n": {"$near": 1}})


def test_a_database_without_a_daemon_will_do() -> None:
    with Memory(":memory:") as memory:
        store = MnemosyneStore(memory)
        store.put(ADA, "prefs", {"text": "tabs"})

        assert [item.key for item in store.search(ADA, query="tabs")] == ["prefs"]


def test_the_page_shows_what_its_program_prints() -> None:
    run_page("langgraph")
