"""Vectors in the background and in recall, by an embedder that a test made: no model is run."""

import itertools
import threading
import time
from collections.abc import Sequence

import pytest
from support.fakes import FakeClock, FakeEmbedder, memory
from support.settings import change
from support.vector_service import (
    WAIT_S,
    Open,
    contents,
    remember_all,
    wait_until,
    wait_until_embedded,
)

from mnemosyned import fairness
from mnemosyned.config.settings import SettingsInForce
from mnemosyned.errors import DatabaseUnreachable, EmbedderFailed, ModelUnavailable
from mnemosyned.fairness import ForegroundGate
from mnemosyned.memory.ports import Draft
from mnemosyned.memory.values import EmbedderState
from mnemosyned.search.vectors import embedding, indexer as module
from mnemosyned.service.service import MemoryService
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.verbs.memories import EditMemory, Recall, Remember
from mnemosyned.verbs.retention import Forget, Prune, Restore
from mnemosyned.verbs.upkeep import Sleep, Status, Undo


def remember_embedded(service: MemoryService, *texts: str, **where: str) -> list[str]:
    """Remember these texts; wait until all memories have their vectors."""
    ids = remember_all(service, *texts, **where)
    status = service.call(Status())
    wait_until_embedded(service, sum(tier.count for tier in status.tiers.values()))
    return ids


@pytest.fixture
def embedder() -> FakeEmbedder:
    return FakeEmbedder()


@pytest.fixture
def service(open_service: Open, embedder: FakeEmbedder) -> MemoryService:
    opened = open_service(embedder)
    wait_until(lambda: opened.call(Status()).embedder.state is EmbedderState.READY)
    return opened


class Pause:
    """What a model does while it embeds: it waits until a test lets it go on."""

    def __init__(self) -> None:
        self._working, self._may_go_on = threading.Event(), threading.Event()
        self.go_on = self._may_go_on.set

    def __call__(self, _: Sequence[object]) -> None:
        self._working.set()
        self._may_go_on.wait(WAIT_S)

    def wait_until_working(self) -> None:
        assert self._working.wait(WAIT_S)


def car(service: MemoryService) -> list[str]:
    """What is found by the meaning of a question."""
    return contents(service.call(Recall(query="her new car")))


def test_a_memory_is_found_by_meaning_in_other_words(service: MemoryService) -> None:
    remember_embedded(service, "The tesla came on Tuesday", "The plums are ripe")

    answer = service.call(Recall(query="her new car", explain=True))

    assert contents(answer) == ["The tesla came on Tuesday"]
    assert answer.note == ""
    explained = answer.hits[0].explanation
    assert explained
    assert list(explained) == ["meaning"]
    assert service.call(Recall(query="zxqv blorp")).hits == []


def test_names_and_a_code_that_words_find_are_not_searched_by_meaning(
    service: MemoryService,
) -> None:
    texts = ["Zoë's tesla-2042 is paid", "The car came"]
    remember_embedded(service, *texts)

    def found(question: str) -> list[str]:
        return contents(service.call(Recall(query=question)))

    assert found("What is tesla-2042?") == found("Zoe TESLA-2042") == texts[:1]
    assert set(found("car-2042")) == set(found("due tesla-2042")) == set(texts)


def test_a_question_for_nothing_but_a_time_finds_others_by_meaning_only_where_that_time_has_none(
    open_service: Open, clock: FakeClock
) -> None:
    service = open_service(FakeEmbedder(meanings=[("happened", "works", "tesla")]))
    remember_embedded(service, "The tesla came")
    clock.advance(hours=24)
    question = Recall(query="what happened today?")

    other = service.call(question)
    remember_embedded(service, "The plums are ripe")
    todays = service.call(question)

    assert contents(other) == ["The tesla came"]
    assert "what follows is from other times" in other.note
    assert contents(todays) == ["The plums are ripe"]
    # "Works" is a word of its own, to be compared in meaning.
    work = service.call(Recall(query="who works today?"))
    assert "The tesla came" in contents(work)


def test_a_question_that_the_model_refuses_is_asked_once() -> None:
    asked: list[Sequence[str]] = []

    def refuse(texts: Sequence[str]) -> None:
        asked.append(texts)
        raise EmbedderFailed("no vector for that")

    question = embedding.DirectQuestion("a red car", FakeEmbedder(asked=refuse))

    assert [question.vector(), question.vector()] == [None, None]
    assert asked == [["a red car"]]


def test_memories_with_a_common_word_gain_by_vectors(service: MemoryService) -> None:
    remember_embedded(
        service, "an old tesla, red", "an old sofa, red", "a new sofa", "a new lamp"
    )

    found = service.call(Recall(query="red car", explain=True)).hits

    meaning = {
        hit.content: (hit.explanation or {}).get("meaning", 0.0) for hit in found
    }
    assert meaning["an old tesla, red"] > 2 * meaning["an old sofa, red"]


def test_after_a_sleep_that_is_undone_and_a_restored_original_the_vectors_still_lead_there(
    service: MemoryService, embedder: FakeEmbedder, clock: FakeClock
) -> None:
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


def test_neither_writes_nor_questions_wait_for_a_busy_model(open_service: Open) -> None:
    pause = Pause()
    service = open_service(FakeEmbedder(meanwhile=pause), wait_s=0.05)
    wait_until(lambda: service.call(Status()).embedder.state is EmbedderState.READY)
    remember_all(service, "a red car")
    pause.wait_until_working()

    remember_all(service, "second", "third")
    answer = service.call(Recall(query="car"))

    assert service.call(Status()).embedder.embedded == 0
    assert contents(answer) == ["a red car"]
    assert "words alone" in answer.note
    assert service.call(Status()).embedder.missed == 1
    pause.go_on()
    wait_until_embedded(service, 3)


@pytest.mark.parametrize("gather_s", [0.3])
def test_what_comes_in_one_by_one_is_embedded_together(
    service: MemoryService, embedder: FakeEmbedder
) -> None:
    remember_all(service, "the first")  # begins what is gathered
    wait_until_embedded(service, 1)
    embedder.calls.clear()

    remember_all(service, *(f"note {n}" for n in range(4)))

    assert service.call(Recall(query="note")).note == ""
    wait_until_embedded(service, 5)
    assert embedder.calls == [("note 3", "note 2", "note 1", "note 0")]


@pytest.mark.parametrize("gather_s", [WAIT_S])
def test_a_prompt_waits_for_the_vectors_of_what_was_just_said(
    open_service: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SOON_S", WAIT_S)
    service = open_service(FakeEmbedder(in_process=True))
    remember_all(service, "the first")
    wait_until_embedded(service, 1)

    ids = remember_all(service, "a red tesla", "the dentist")

    assert service.vectors.similarities("car", ids).keys() == {*ids}


def test_a_prompt_ends_the_pause_of_the_thread_whose_vectors_it_waits_for(
    open_service: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SOON_S", WAIT_S)
    monkeypatch.setattr(fairness, "QUIET_WAIT_MAX_S", 2 * WAIT_S)
    gate = ForegroundGate()
    service = open_service(FakeEmbedder(in_process=True), pause=gate.wait_until_quiet)
    remember_all(service, "the first")
    wait_until_embedded(service, 1)

    with gate:  # the prompt's own request, which the thread would let go first
        ids = remember_all(service, "a red tesla")
        time.sleep(2 * fairness.QUIET_POLL_S)  # it pauses by now

        assert service.vectors.similarities("car", ids).keys() == {*ids}


def test_a_prompt_waits_for_what_was_said_before_it_and_not_for_what_follows(
    open_service: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SOON_S", WAIT_S)
    more = itertools.count()
    ids: list[str] = []

    def talk_on(_: Sequence[object]) -> None:
        if ids:
            remember_all(opened, f"and {next(more)}")

    opened = open_service(FakeEmbedder(in_process=True, meanwhile=talk_on))
    remember_all(opened, "the first")
    wait_until_embedded(opened, 1)
    ids += remember_all(opened, "a red tesla")
    began = time.monotonic()

    assert opened.vectors.similarities("car", ids).keys() == {*ids}
    assert time.monotonic() - began < WAIT_S / 2


def test_questions_go_before_memories(open_service: Open) -> None:
    asked, go_on = threading.Event(), threading.Event()
    before: list[object] = []

    def work(_: Sequence[object]) -> None:
        go_on.wait(WAIT_S)
        if not asked.is_set():
            before.append(_)

    embedder = FakeEmbedder(meanwhile=work)
    service = open_service(embedder)
    remember_all(service, *(f"note {n} tesla" for n in range(60)))
    wait_until(lambda: bool(embedder.calls))
    embedder.asked = lambda _: asked.set()
    threading.Timer(0.2, go_on.set).start()

    assert service.call(Recall(query="car")).note == ""

    assert len(before) == 1  # what it was working on
    wait_until_embedded(service, 60)


def test_another_life_embeds_only_what_lacks_a_vector(
    open_service: Open, service: MemoryService, store: SqliteStore
) -> None:
    remember_embedded(service, "The tesla came", "The plums are ripe")
    later = FakeEmbedder()
    store.memories.remember([Draft(memory("3", "unseen"))])

    again = open_service(later)
    wait_until_embedded(again, 3)

    assert later.calls == [("unseen",)]
    assert car(again) == ["The tesla came"]


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
    assert car(again) == ["The tesla came"]
    assert again.call(Status()).embedder.embedded == 20


def test_the_first_question_waits_for_a_model_in_this_process_and_the_newest_vectors(
    open_service: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "START_AFTER_S", WAIT_S)
    monkeypatch.setattr(module, "LOADING_S", WAIT_S)
    first = open_service(FakeEmbedder(in_process=True))
    remember_all(first, "The tesla came")

    assert car(first) == ["The tesla came"]
    assert car(open_service(FakeEmbedder(in_process=True))) == ["The tesla came"]


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
    assert car(again) == []


def test_an_edit_during_an_outage_of_the_database_is_embedded_right_after_it(
    service: MemoryService, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    (id,) = remember_embedded(service, "The tesla came")
    monkeypatch.setattr(embedding, "RETRY_S", 10 * WAIT_S)
    monkeypatch.setattr(embedding, "STORAGE_RETRY_S", 0.01)
    drop_vectors = store.vectors.drop_vectors
    outage = [DatabaseUnreachable("nothing was kept: it is gone", reason="it is gone")]

    def drop_or_fail(positions: Sequence[int]) -> None:
        if outage:
            raise outage.pop()
        drop_vectors(positions)

    monkeypatch.setattr(store.vectors, "drop_vectors", drop_or_fail)
    service.call(EditMemory(id, text="The plums are ripe"))

    wait_until(lambda: not outage)
    wait_until(lambda: service.call(Status()).embedder.state is EmbedderState.READY)
    wait_until(lambda: car(service) == [])
    wait_until_embedded(service, 1)


def test_another_model_embeds_everything_anew_while_words_still_find_it(
    open_service: Open, service: MemoryService
) -> None:
    remember_all(service, *(f"note {n} about a tesla" for n in range(40)))
    wait_until_embedded(service, 40)
    pause = Pause()
    other = FakeEmbedder([["boat", "tesla"]], name="other", meanwhile=pause)

    again = open_service(other, wait_s=0.05)
    wait_until(lambda: bool(other.calls))

    status = again.call(Status()).embedder
    assert (status.name, status.embedded) == ("other", 0)
    assert contents(again.call(Recall(query="tesla", limit=1)))
    pause.go_on()
    wait_until_embedded(again, 40)
    assert sum(map(len, other.calls)) == 40
    assert contents(again.call(Recall(query="boat", limit=1)))
    assert car(again) == []


def test_a_text_the_model_cannot_read_takes_no_other_along(open_service: Open) -> None:
    def refuse(texts: Sequence[object]) -> None:
        if "poison" in texts:
            raise EmbedderFailed("no direction")

    service = open_service(FakeEmbedder(meanwhile=refuse))
    remember_all(service, "The tesla came", "poison", "The plums are ripe")

    wait_until_embedded(service, 2)
    wait_until(lambda: service.call(Status()).embedder.failed > 0)
    assert car(service) == ["The tesla came"]
    assert contents(service.call(Recall(query="poison"))) == ["poison"]


def test_a_model_that_cannot_run_leaves_words_until_it_can(open_service: Open) -> None:
    embedder = FakeEmbedder()
    broken = threading.Event()
    broken.set()

    def work(_: Sequence[object]) -> None:
        if broken.is_set():
            raise ModelUnavailable("the file is damaged; name another")

    embedder.asked = work
    service = open_service(embedder)
    remember_all(service, "The tesla came")
    wait_until(
        lambda: service.call(Status()).embedder.state is EmbedderState.UNAVAILABLE
    )

    answer = service.call(Recall(query="tesla"))

    assert contents(answer) == ["The tesla came"]
    assert answer.note == "found by words alone: the embedding model is unavailable"
    assert service.call(Status()).embedder.reason == "the file is damaged; name another"
    broken.clear()
    wait_until_embedded(service, 1)
    assert car(service) == ["The tesla came"]


def test_what_is_forgotten_is_found_by_no_vector(
    service: MemoryService, store: SqliteStore
) -> None:
    gone, _ = remember_embedded(service, "The tesla came", "The plums are ripe")

    service.call(Forget(id=gone))

    assert car(service) == []
    wait_until(lambda: service.call(Status()).embedder.searched == 1)
    assert store.vectors.embedded_positions(1, after=0, limit=10) == [2]


@pytest.mark.parametrize("by_hand", [True, False])
def test_what_is_pruned_is_found_by_no_vector(
    service: MemoryService,
    clock: FakeClock,
    settings: SettingsInForce,
    *,
    by_hand: bool,
) -> None:
    remember_embedded(service, "The tesla came", "The plums are ripe")
    clock.advance(days=30)
    service.call(Sleep(force=True))
    (hit,) = service.call(Recall(query="car", limit=1)).hits
    assert hit.lines

    if by_hand:
        service.call(Prune(keep_days=1))
    else:
        change(settings, {"archive.keep_days": 1})
        service.call(Sleep())

    assert car(service) == []
    wait_until(lambda: service.call(Status()).embedder.searched == 0)


def test_what_is_forgotten_while_it_is_embedded_gets_no_vector(
    open_service: Open, store: SqliteStore
) -> None:
    def forget(_: Sequence[object]) -> None:
        store.deletion.forget(["1"])

    embedder = FakeEmbedder(meanwhile=forget)
    service = open_service(embedder)
    service.call(Remember(content="The tesla came", id="1"))
    wait_until(lambda: bool(embedder.calls))
    embedder.meanwhile = lambda _: None
    service.call(Remember(content="The plums are ripe"))

    wait_until_embedded(service, 1)

    assert store.vectors.embedded_positions(1, after=0, limit=10) == [2]


def test_an_edited_memory_is_found_by_its_new_meaning(service: MemoryService) -> None:
    (id,) = remember_embedded(service, "The tesla came on Tuesday")

    service.call(EditMemory(id, text="The plums are ripe, says the tooth fairy"))
    wait_until(lambda: bool(service.call(Recall(query="dentist")).hits))

    assert car(service) == []
    assert service.call(Status()).embedder.embedded == 1


def test_a_vector_of_earlier_words_made_during_an_edit_is_made_again(
    open_service: Open, embedder: FakeEmbedder
) -> None:
    service = open_service(embedder)
    wait_until(lambda: service.call(Status()).embedder.state is EmbedderState.READY)
    edits: list[str] = []

    def edit(texts: Sequence[str]) -> None:
        if not edits:
            edits.extend(texts)
            service.call(EditMemory("m", text="A tooth hurts"))

    embedder.meanwhile = edit
    service.call(Remember("The tesla came", id="m"))
    wait_until(lambda: bool(service.call(Recall(query="dentist")).hits))

    assert car(service) == []


def test_what_is_found_by_meaning_obeys_the_filters(service: MemoryService) -> None:
    remember_embedded(service, "The tesla came", session="one")
    remember_embedded(service, "Another tesla came", session="two")

    answer = service.call(Recall(query="car", session="two"))

    assert contents(answer) == ["Another tesla came"]
