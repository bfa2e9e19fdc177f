"""Many vectors, in recall and over restarts; no model is run."""

import threading

import pytest
from support.fakes import FakeClock, FakeEmbedder
from support.vector_service import (
    Open,
    contents,
    remember_all,
    wait_until,
    wait_until_embedded,
)

from mnemosyned.search.vectors import indexer as module
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.verbs.memories import Recall
from mnemosyned.verbs.retention import Forget, Restore
from mnemosyned.verbs.upkeep import Sleep, Status, Undo


def test_memories_with_a_common_word_gain_by_their_vectors(
    open_service: Open,
) -> None:
    service = open_service(FakeEmbedder())
    remember_all(
        service, "an old tesla, red", "an old sofa, red", "a new sofa", "a new lamp"
    )
    wait_until_embedded(service, 4)

    found = service.call(Recall(query="red car", explain=True)).hits

    meaning = {
        hit.content: (hit.explanation or {}).get("meaning", 0.0) for hit in found
    }
    assert meaning["an old tesla, red"] > 2 * meaning["an old sofa, red"]


def test_the_oldest_of_many_are_found_in_other_words(
    open_service: Open,
) -> None:
    service = open_service(FakeEmbedder())
    remember_all(
        service, "The tesla came", *(f"note {n}" for n in range(9)), "A new tesla came"
    )
    wait_until_embedded(service, 11)

    assert set(contents(service.call(Recall(query="car")))) == {
        "The tesla came",
        "A new tesla came",
    }
    assert service.call(Status()).embedder.searched == 11


def test_a_forgotten_memory_is_found_by_no_vector(
    open_service: Open, store: SqliteStore
) -> None:
    service = open_service(FakeEmbedder())
    gone, *_ = remember_all(service, "The tesla came", *(f"note {n}" for n in range(9)))
    wait_until_embedded(service, 10)

    service.call(Forget(id=gone))

    assert service.call(Recall(query="car")).hits == []
    wait_until(lambda: service.call(Status()).embedder.searched == 9)
    assert store.vectors.vectors_of(1, [1]) == {}


def test_another_life_finds_all_vectors(
    open_service: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOADED_AT_ONCE", 3)
    monkeypatch.setattr(module, "LOADED_FIRST", 2)
    monkeypatch.setattr(module, "COUNTED_AT_ONCE", 4)
    first = open_service(FakeEmbedder())
    remember_all(first, "The tesla came", *(f"note {n}" for n in range(19)))
    wait_until_embedded(first, 20)

    again = open_service(FakeEmbedder())

    wait_until(lambda: again.call(Status()).embedder.searched == 20)
    assert contents(again.call(Recall(query="car"))) == ["The tesla came"]
    assert again.call(Status()).embedder.embedded == 20


def test_questions_are_answered_and_memories_forgotten_while_the_older_vectors_are_loaded(
    open_service: Open, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = open_service(FakeEmbedder())
    gone, *_ = remember_all(
        first, "The tesla came", *(f"note {n}" for n in range(19)), "A dentist came"
    )
    wait_until_embedded(first, 21)
    plain, go_on = store.vectors.vectors, threading.Event()

    def page(model: int, *, before: int, limit: int) -> dict[int, bytes]:
        """Return one vector again and again, until it may go on."""
        return plain(
            model, before=before if go_on.is_set() else max(before, 10), limit=limit
        )

    monkeypatch.setattr(module, "LOADED_AT_ONCE", 3)
    monkeypatch.setattr(module, "LOADED_FIRST", 2)
    monkeypatch.setattr(store.vectors, "vectors", page)
    again = open_service(FakeEmbedder())
    wait_until(lambda: again.call(Status()).embedder.searched == 15)

    answer = again.call(Recall(query="tooth"))
    again.call(Forget(id=gone))
    go_on.set()

    assert (contents(answer), answer.note) == (["A dentist came"], "")
    wait_until(lambda: again.call(Status()).embedder.searched == 20)
    assert again.call(Recall(query="car")).hits == []


def test_another_models_codes_lead_nowhere(open_service: Open) -> None:
    texts = ["The tesla came", *(f"note {n}" for n in range(9))]
    first = open_service(FakeEmbedder())
    remember_all(first, *texts)
    wait_until_embedded(first, 10)
    other = FakeEmbedder(meanings=[["boat", "tesla"]], name="other")

    again = open_service(other)
    wait_until_embedded(again, 10)

    assert contents(again.call(Recall(query="boat"))) == ["The tesla came"]
    assert again.call(Recall(query="car")).hits == []


def test_after_a_sleep_that_is_undone_and_a_restored_original_the_vectors_still_lead_there(
    open_service: Open, clock: FakeClock
) -> None:
    embedder = FakeEmbedder()
    service = open_service(embedder)
    texts = ["The tesla came", "The plums are ripe", "A tooth hurts"]
    ids = remember_all(service, *texts, session="s")
    remember_all(service, *(f"note {n}" for n in range(9)))
    wait_until_embedded(service, 12)
    clock.advance(hours=48)

    asleep = service.call(Sleep(force=True))
    (hit,) = service.call(Recall(query="car")).hits
    assert [line.id for line in hit.lines] == ids[:1]

    service.call(Undo(asleep.cycle))
    assert [hit.id for hit in service.call(Recall(query="car")).hits] == ids[:1]

    service.call(Sleep(force=True))
    service.call(Restore(id=ids[0]))
    assert [hit.id for hit in service.call(Recall(query="car")).hits] == ids[:1]
    assert sum(map(len, embedder.calls)) == 12
