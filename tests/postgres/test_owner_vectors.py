"""One embedding model for many owners: found by meaning, each in its own memory alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
import pytest
from postgres.served import open_memories
from support.fakes import FakeClock, FakeEmbedder
from support.vector_service import (
    WAIT_S,
    contents,
    remember_all,
    wait_until,
    wait_until_embedded,
)

from mnemosyned.assembly.owners import OwnerMemories
from mnemosyned.errors import EmbedderFailed, ModelUnavailable
from mnemosyned.memory.values import EmbedderState
from mnemosyned.search.vectors import owners as module
from mnemosyned.search.vectors.index import CODE_ROWS_MIN
from mnemosyned.service.service import MemoryService
from mnemosyned.storage.postgres.store import OwnedStores
from mnemosyned.verbs.memories import EditMemory, Recall, Remember
from mnemosyned.verbs.retention import Forget
from mnemosyned.verbs.upkeep import Status

pytestmark = pytest.mark.postgres


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is waited for."""
    monkeypatch.setattr(module, "GATHER_S", 0.01)
    monkeypatch.setattr(module, "ROUND_S", 0.1)


@dataclass(frozen=True, slots=True)
class Daemon:
    """The memories of owners as one daemon has them open."""

    memories: OwnerMemories
    stores: OwnedStores

    def owner(self, name: str) -> MemoryService:
        known = {each.name: each.number for each in self.stores.owners.owners()}
        number = known.get(name) or self.stores.owners.add(name).number
        return self.memories.get(number).service


@contextmanager
def serving(
    dsn: str, embedder: FakeEmbedder, *, wait_ms: int = 10_000, embeds: bool = True
) -> Iterator[Daemon]:
    settings = {
        "limits.content_bytes_max": 10_000,
        "embedding.similarity_min": 0.6,
        "embedding.wait_ms": wait_ms,
    }
    with open_memories(
        dsn, FakeClock(), settings, embedder=embedder, embeds=embeds
    ) as (stores, memories):
        yield Daemon(memories, stores)


def ready(service: MemoryService) -> None:
    wait_until(lambda: service.call(Status()).embedder.state is EmbedderState.READY)


@pytest.mark.parametrize(
    ("embeds", "in_process"),
    [(True, False), (False, False), (False, True)],
    ids=["pgvector", "daemon", "codes"],
)
def test_each_owner_finds_by_meaning_in_its_own_memory(
    dsn: str, *, embeds: bool, in_process: bool
) -> None:
    embedder = FakeEmbedder(in_process=in_process)
    with serving(dsn, embedder, embeds=embeds) as daemon:
        anna, bert = daemon.owner("anna"), daemon.owner("bert")
        gone, _ = remember_all(anna, "The tesla came on Tuesday", "The plums are ripe")
        remember_all(bert, "Another tesla came", "A tooth hurts")
        for service in (anna, bert):
            ready(service)
            wait_until_embedded(service, 2)
            assert service.call(Status()).embedder.searched == 2

        answer = anna.call(Recall(query="her new car"))
        assert (contents(answer), answer.note) == (["The tesla came on Tuesday"], "")
        assert contents(bert.call(Recall(query="car"))) == ["Another tesla came"]
        assert anna.call(Recall(query="dentist")).hits == []

        anna.call(Forget(id=gone))
        assert anna.call(Recall(query="car")).hits == []
        assert contents(bert.call(Recall(query="car"))) == ["Another tesla came"]
        assert anna.call(Status()).embedder.embedded == 1


def test_codes_follow_other_daemons(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "READ_WHILE_LOADING", 0)
    monkeypatch.setattr(module, "CODES_MAX", CODE_ROWS_MIN)
    monkeypatch.setattr(module, "LOAD_AGAIN_S", 0.0)
    embedder = FakeEmbedder(in_process=True)
    with serving(dsn, embedder, embeds=False) as daemon:
        anna, bert = daemon.owner("anna"), daemon.owner("bert")

        def finds(service: MemoryService, *expected: str) -> bool:
            found = contents(service.call(Recall(query="car")))
            return sorted(found) == sorted(expected)

        with serving(dsn, FakeEmbedder(in_process=True), embeds=False) as other:
            gone, _ = remember_all(anna, "A tesla came", "The plums are ripe")
            remember_all(bert, "Another tesla came")
            wait_until(lambda: finds(anna, "A tesla came"))
            wait_until(lambda: finds(bert, "Another tesla came"))
            wait_until(lambda: finds(anna, "A tesla came"))  # once more: it made room

            remember_all(other.owner("anna"), "One more tesla")
            wait_until(lambda: finds(anna, "A tesla came", "One more tesla"))
            other.owner("anna").call(Forget(id=gone))
            assert finds(anna, "One more tesla")
            wait_until(lambda: finds(anna, "One more tesla"))


def test_owners_without_vectors_are_found_by_a_round_and_only_once(dsn: str) -> None:
    first = FakeEmbedder()
    with serving(dsn, first) as daemon:
        names = [f"owner{number}" for number in range(5)]
        for name in names:
            remember_all(daemon.owner(name), *(f"{name} {n}" for n in range(40)))
        for name in names:
            wait_until_embedded(daemon.owner(name), 40)
    assert sum(map(len, first.calls)) == 200

    other = FakeEmbedder(name="other")
    with serving(dsn, other) as daemon:
        # Nobody asks for these: their memories are not open.
        wait_until(lambda: sum(map(len, other.calls)) == 200)
        for name in names:
            wait_until_embedded(daemon.owner(name), 40)
    again = FakeEmbedder(name="other")
    with serving(dsn, again) as daemon:
        ready(daemon.owner(names[0]))
        remember_all(daemon.owner(names[0]), "one more")
        wait_until_embedded(daemon.owner(names[0]), 41)
    assert again.calls == [("one more",)]
    with serving(dsn, FakeEmbedder()) as daemon:
        remember_all(daemon.owner(names[0]), "from the first model on")
        wait_until_embedded(daemon.owner(names[0]), 42)


def test_a_backlog_delays_no_other(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Else the other's turn comes only once more of his memories may have followed.
    monkeypatch.setattr(module, "GATHER_S", 0.0)
    go_on = threading.Event()
    embedder = FakeEmbedder(meanwhile=lambda _: go_on.wait(WAIT_S))
    with serving(dsn, embedder) as daemon:
        anna, bert = daemon.owner("anna"), daemon.owner("bert")
        remember_all(anna, *(f"anna {n}" for n in range(3 * module.BATCH)))
        wait_until(lambda: bool(embedder.calls))
        remember_all(bert, "bert")
        asked = threading.Thread(target=lambda: bert.call(Recall(query="car")))
        asked.start()
        go_on.set()
        asked.join(WAIT_S)
        wait_until_embedded(bert, 1)
        wait_until_embedded(anna, 3 * module.BATCH)

    texts = [text for call in embedder.calls for text in call]
    assert texts.index("bert") <= 2 * module.BATCH


def test_questions_go_before_memories(dsn: str) -> None:
    before: list[object] = []
    working, asked = threading.Event(), threading.Event()

    def work(texts: object) -> None:
        if not asked.is_set():
            before.append(texts)
        working.set()
        asked.wait(0.5)

    embedder = FakeEmbedder()
    with serving(dsn, embedder) as daemon:
        anna, bert = daemon.owner("anna"), daemon.owner("bert")
        ready(bert)
        embedder.meanwhile = work
        embedder.asked = lambda _: asked.set()
        remember_all(anna, *(f"anna {n}" for n in range(20)))
        assert working.wait(WAIT_S)

        assert bert.call(Recall(query="car")).note == ""

        assert len(before) == 1  # the piece that was being made
        wait_until_embedded(anna, 20)


def test_a_recall_waits_no_longer_than_it_may(dsn: str) -> None:
    go_on = threading.Event()
    embedder = FakeEmbedder()
    with serving(dsn, embedder, wait_ms=50) as daemon:
        anna = daemon.owner("anna")
        ready(anna)
        embedder.meanwhile = lambda _: go_on.wait(WAIT_S)
        remember_all(anna, "a red car")
        wait_until(lambda: bool(embedder.calls))

        answer = anna.call(Recall(query="car"))

        assert contents(answer) == ["a red car"]
        assert "words alone" in answer.note
        assert anna.call(Status()).embedder.missed == 1
        go_on.set()
        wait_until_embedded(anna, 1)


@pytest.mark.usefixtures("pgvector")
def test_a_recall_waits_for_no_slow_comparison(dsn: str) -> None:
    with serving(dsn, FakeEmbedder(), wait_ms=500) as daemon:
        anna = daemon.owner("anna")
        remember_all(anna, "a red car")
        ready(anna)
        wait_until_embedded(anna, 1)
        with psycopg.connect(dsn) as other:
            other.execute("LOCK TABLE embedding IN ACCESS EXCLUSIVE MODE")
            answer = anna.call(Recall(query="car"))

        assert contents(answer) == ["a red car"]
        assert "the database did not compare the vectors in time" in answer.note
        assert anna.call(Status()).embedder.missed == 1


def test_new_words_are_embedded_also_where_old_ones_were_being_made(dsn: str) -> None:
    embedder, edits = FakeEmbedder(), list[str]()
    with serving(dsn, embedder) as daemon:
        anna = daemon.owner("anna")

        def edit(_: object) -> None:
            if not edits:
                edits.append("m")
                anna.call(EditMemory("m", text="A tooth hurts"))

        embedder.meanwhile = edit
        anna.call(Remember("The tesla came", id="m"))
        wait_until(lambda: bool(anna.call(Recall(query="dentist")).hits))
        assert anna.call(Recall(query="her new car")).hits == []

        anna.call(EditMemory("m", text="Lisbon it is"))
        wait_until(lambda: bool(anna.call(Recall(query="trip")).hits))
        assert anna.call(Recall(query="dentist")).hits == []
        assert anna.call(Status()).embedder.embedded == 1


def refusing(error: Exception, word: str) -> Callable[[object], None]:
    def refuse(texts: object) -> None:
        if word in str(texts):
            raise error

    return refuse


def test_a_text_the_model_cannot_read_takes_no_other_along(dsn: str) -> None:
    refuse = refusing(EmbedderFailed("no direction"), "poison")
    with serving(dsn, FakeEmbedder(meanwhile=refuse)) as daemon:
        anna, bert = daemon.owner("anna"), daemon.owner("bert")
        remember_all(anna, "The tesla came", "poison", "The plums are ripe")
        remember_all(bert, "A tooth hurts")

        wait_until_embedded(anna, 2)
        wait_until_embedded(bert, 1)
        wait_until(lambda: anna.call(Status()).embedder.failed == 1)
        assert contents(anna.call(Recall(query="car"))) == ["The tesla came"]
        assert bert.call(Status()).embedder.failed == 0


def test_a_model_that_cannot_be_run_leaves_words_and_is_tried_again(dsn: str) -> None:
    broken = ModelUnavailable("the file is damaged")
    embedder = FakeEmbedder(asked=refusing(broken, "ready"))
    with serving(dsn, embedder) as daemon:
        anna = daemon.owner("anna")
        remember_all(anna, "The tesla came")
        wait_until(
            lambda: anna.call(Status()).embedder.state is EmbedderState.UNAVAILABLE
        )
        answer = anna.call(Recall(query="tesla"))
        assert contents(answer) == ["The tesla came"]
        assert answer.note == "found by words alone: the embedding model is unavailable"


def test_two_daemons_embed_each_memory_once(dsn: str) -> None:
    one, two = FakeEmbedder(), FakeEmbedder()
    with serving(dsn, one) as first, serving(dsn, two) as second:
        names = [f"owner{number}" for number in range(4)]
        for name in names:
            remember_all(first.owner(name), *(f"{name} {n}" for n in range(60)))
        for name in names:
            wait_until_embedded(second.owner(name), 60)

    texts = [text for call in (*one.calls, *two.calls) for text in call]
    assert len(texts) == len(set(texts)) == 240


def test_a_removed_owner_stops_nobody(dsn: str) -> None:
    with serving(dsn, FakeEmbedder()) as daemon:
        remember_all(daemon.owner("anna"), "The tesla came")
        daemon.stores.owners.remove("anna")
        bert = daemon.owner("bert")
        remember_all(bert, "Another tesla came")

        wait_until_embedded(bert, 1)

        assert contents(bert.call(Recall(query="car"))) == ["Another tesla came"]
