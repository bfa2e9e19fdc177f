"""Every store keeps which statements newer memories ended, and forgets it with either memory."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support.fakes import NOON as MORNING, FakeClock, remember_batch

from mnemosyned.assembly.stores import open_store
from mnemosyned.config.settings import DatabaseLocation
from mnemosyned.conversation.learnings.recognize import LateLearning
from mnemosyned.errors import InvalidRequest, ModelUnavailable
from mnemosyned.fairness import ForegroundGate
from mnemosyned.memory.edit import MemoryEdit
from mnemosyned.memory.endings import EndingRecord
from mnemosyned.memory.engine_ports import MemoryVectors
from mnemosyned.memory.forgetting import Grace
from mnemosyned.memory.ports import MemoryStore
from mnemosyned.memory.values import (
    EmbedderState,
    Learning,
    LearningKind,
    MemoryFilter,
    MemoryRecord,
)
from mnemosyned.service import endings
from mnemosyned.service.endings import EndingFinder
from mnemosyned.verbs.conversation import Endings

OLD = MemoryRecord(
    id="old",
    content="Hello. The staging server listens on port 8080.",
    created_at=MORNING,
)
NEW = MemoryRecord(
    id="new",
    content="The staging server now listens on port 9090.",
    created_at=MORNING + timedelta(days=2),
)
HELLO = replace(OLD, content=f"Hello, Ben. {OLD.content[7:]}")
AGAIN = replace(NEW, id="again", content="The staging server now listens on 9191.")
GONE = replace(NEW, content="The staging server no longer listens on port 8080.")
RENAMED = replace(NEW, content="Staging moved to port 9090.", role="user")
ENDING = EndingRecord(
    older="old",
    newer="new",
    reason="now",
    older_place=1,
    newer_place=0,
    found_at=MORNING + timedelta(days=3),
)
GRACE = Grace("call", MORNING + timedelta(days=1))
READY = EmbedderState.READY


def newer(store: MemoryStore) -> list[str]:
    """The memories that end a statement."""
    return [each.newer for each in store.endings.find(limit=10)]


@pytest.fixture(autouse=True)
def _time_for_edits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine leaves nothing of an edit for later; tests about that have a time of their own."""
    monkeypatch.setattr(endings, "EDIT_S", 60.0)


def unread(store: MemoryStore) -> dict[str, int]:
    """The rows of the memories that are still to be read."""
    return {each.id: row for row, each in store.endings.unread(limit=10).items()}


def reword(store: MemoryStore, memory: MemoryRecord) -> None:
    """Edit a stored memory to the text of `memory`, which it does not have."""
    before = store.memories.get(memory.id)
    assert isinstance(before, MemoryRecord)
    after = replace(before, content=memory.content)
    store.changes.edit([MemoryEdit(before=before, after=after)], now=MORNING)


def unlearned(store: MemoryStore) -> list[str]:
    return [each.id for each in store.learnings.unlearned(limit=10).values()]


@pytest.fixture
def two(store: MemoryStore) -> MemoryStore:
    remember_batch(store, OLD, NEW)
    return store


@pytest.fixture
def ended(two: MemoryStore) -> MemoryStore:
    """A store with two memories, of which the newer one ends the older one's statement."""
    two.endings.add([ENDING])
    return two


def test_an_ending_shows_both_sentences_and_its_time(ended: MemoryStore) -> None:
    (statement,) = ended.endings.of(["old", "new", "unknown"])["old"]

    assert statement.sentence == "The staging server listens on port 8080."
    assert statement.successor == NEW.content
    assert (statement.at, statement.by) == (NEW.created_at, "new")
    assert statement.reason == "now"


TWO_FACTS = "The worker listens on 7070, and Priya owns the retries."
WORKER = replace(ENDING, older_place=0, older_start=0, older_end=26)
RETRIES = replace(WORKER, newer="again", older_start=32, older_end=54)


@pytest.fixture
def half_ended(store: MemoryStore) -> MemoryStore:
    """A store with a sentence of two facts, of which a newer memory ended one."""
    worker = replace(NEW, content="The worker listens on 7071 now.")
    retries = replace(AGAIN, content="Ben owns the retries now.")
    remember_batch(store, replace(OLD, content=TWO_FACTS), worker, retries)
    store.endings.add([WORKER])
    return store


def test_an_ending_may_be_of_one_clause(half_ended: MemoryStore) -> None:
    (statement,) = half_ended.endings.of(["old"])["old"]

    assert half_ended.endings.find(limit=10) == [WORKER]
    assert statement.sentence == TWO_FACTS
    assert statement.clause == statement.words == "The worker listens on 7070"
    assert statement.note.startswith("“The worker listens on 7070” until ")


@pytest.mark.parametrize("newer", ["new", "again"])
def test_two_endings_of_two_clauses_end_their_sentence(
    half_ended: MemoryStore, newer: str
) -> None:
    half_ended.endings.add([replace(RETRIES, newer=newer)])

    statements = half_ended.endings.of(["old"])["old"]

    assert {each.by for each in statements} == {"new", newer}
    assert [each.words for each in statements] == [TWO_FACTS, TWO_FACTS]


def test_an_ending_of_the_sentence_has_those_of_its_clauses(
    half_ended: MemoryStore,
) -> None:
    half_ended.endings.add([replace(WORKER, newer="again", older_end=0)])

    (statement,) = half_ended.endings.of(["old"])["old"]

    assert (statement.by, statement.words) == ("again", TWO_FACTS)


def test_an_ending_of_a_clause_takes_the_place_of_one_of_the_sentence(
    half_ended: MemoryStore,
) -> None:
    whole = replace(WORKER, older_end=0)

    assert half_ended.endings.add([whole], judged=["new"]) == 2
    assert half_ended.endings.add([WORKER], judged=["new"]) == 2
    assert half_ended.endings.find(limit=10) == [WORKER]


def test_an_ending_of_a_clause_that_is_lost_ends_nothing(
    half_ended: MemoryStore,
) -> None:
    half_ended.endings.add([replace(RETRIES, older_end=90)])

    assert len(half_ended.endings.find(limit=10)) == 2
    assert [each.by for each in half_ended.endings.of(["old"])["old"]] == ["new"]


def test_an_ending_of_a_clause_is_undone_with_the_others(
    half_ended: MemoryStore,
) -> None:
    half_ended.endings.add([RETRIES])

    assert half_ended.endings.undo("old") == 2
    assert half_ended.endings.of(["old"]) == {}


def test_a_statement_applies_until_the_time_that_its_successor_names(
    store: MemoryStore,
) -> None:
    later = replace(NEW, content="From the 1st of December it listens on port 9090.")
    remember_batch(store, OLD, later)
    store.endings.add([ENDING])

    (statement,) = store.endings.of(["old"])["old"]

    assert f"{statement.at.astimezone():%d %m}" == "01 12"
    assert statement.at > later.created_at


@pytest.mark.parametrize(
    "ending", [ENDING, replace(ENDING, newer="gone")], ids=["known", "of no memory"]
)
def test_an_ending_is_not_added(ended: MemoryStore, ending: EndingRecord) -> None:
    assert ended.endings.add([ending]) == 0
    assert ended.endings.find(limit=10) == [ENDING]


@pytest.mark.parametrize("edited", ["old", "new"])
def test_an_ending_of_edited_words_is_not_added(two: MemoryStore, edited: str) -> None:
    texts = {"old": OLD.content, "new": NEW.content}

    assert two.endings.add([ENDING], texts=texts | {edited: "Good morning."}) == 0
    assert two.endings.add([ENDING], texts=texts) == 1


def test_an_ending_not_found_again_is_withdrawn(ended: MemoryStore) -> None:
    elsewhere = replace(ENDING, older_place=0)

    assert ended.endings.add([], judged=["old"]) == 0
    assert ended.endings.add([elsewhere], judged=["new"]) == 2
    assert ended.endings.find(limit=10) == [elsewhere]
    assert ended.endings.add([elsewhere], judged=["new"]) == 0


def test_an_undone_ending_is_not_withdrawn(ended: MemoryStore) -> None:
    ended.endings.undo("old")

    assert ended.endings.add([replace(ENDING, older_place=0)], judged=["new"]) == 0
    assert ended.endings.find(limit=10) == [replace(ENDING, undone=True)]


def test_an_undone_ending_is_not_in_force(ended: MemoryStore) -> None:
    assert [ended.endings.undo("old") for _ in range(2)] == [1, 0]
    assert ended.endings.of(["old"]) == {}

    assert ended.endings.undo("old", undone=False) == 1
    assert ended.endings.of(["old"])


def test_endings_are_listed_by_page_and_filter(ended: MemoryStore) -> None:
    others = [replace(NEW, id=f'by"{n}', content=f"It is on {n}.") for n in range(4)]
    remember_batch(ended, *others)
    ended.endings.add(
        [replace(ENDING, older="new", newer=each.id, older_place=0) for each in others]
    )
    ended.endings.undo("old")
    ended.endings.add([], read_up_to=max(ended.endings.unread(limit=10)))
    service = make_finder(ended)

    def list_newer(**given: Any) -> list[str]:  # noqa: ANN401 fields of the request
        found, after = list[str](), None
        while page := service.list_endings(Endings(limit=2, after=after, **given)):
            found += [each.by for each in page]
            after = page.next
            if not after:
                break
        return found

    found = list_newer(id="new")
    assert sorted(found) == sorted([*(each.id for each in others), "new"])
    assert list_newer() == found
    assert list_newer(id="old") == ["new"]
    assert list_newer(undone=True) == ["new"]
    assert list_newer(undone=False, id='by"2') == ['by"2']
    with pytest.raises(InvalidRequest, match="not a cursor"):
        service.list_endings(Endings(after="x"))


def test_a_list_that_is_asked_for_at_once_leaves_new_memories_to_the_background(
    two: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endings, "SOON_MAX", 1)
    service = make_finder(two)

    assert service.list_endings(Endings(at_once=True)).endings == []
    assert [each.by for each in service.list_endings(Endings())] == ["new"]


@pytest.mark.parametrize("id", ["old", "new"])
def test_forgetting_deletes_endings_with_it(ended: MemoryStore, id: str) -> None:
    ended.deletion.forget([id])

    assert ended.endings.find(limit=10) == []
    assert ended.endings.of(["old"]) == {}


def test_memories_are_read_once_in_the_order_of_arrival(ended: MemoryStore) -> None:
    assert list(unread(ended)) == ["old", "new"]
    first, last = ended.endings.unread(limit=10)
    assert first < last

    ended.endings.add([], read_up_to=first)
    assert list(unread(ended)) == ["new"]
    ended.endings.add([], read_up_to=last)
    assert unread(ended) == {}

    ended.endings.mark_all_unread()
    assert list(ended.endings.unread(limit=1)) == [first]


def test_the_first_memory_that_ended_a_statement_is_shown(ended: MemoryStore) -> None:
    remember_batch(ended, replace(AGAIN, created_at=NEW.created_at + timedelta(days=1)))
    ended.endings.add([replace(ENDING, newer="again", found_at=MORNING)])

    (statement,) = ended.endings.of(["old"])["old"]
    assert statement.by == "new"


def test_endings_are_restored_with_their_memories(ended: MemoryStore) -> None:
    ended.endings.undo("old")
    with ended.exchange.export(MemoryFilter()) as (_, records):
        exported = list(records)
    ended.deletion.forget(["old", "new"])

    ended.exchange.restore(exported)
    assert [each.undone for each in ended.endings.find(limit=10)] == [True]


@pytest.mark.parametrize("undone", [False, True])
@pytest.mark.parametrize("forgotten", [["old"], ["new"], ["old", "new"]])
def test_an_ending_is_put_back_with_its_memories(
    ended: MemoryStore, forgotten: Sequence[str], *, undone: bool
) -> None:
    ended.endings.undo("old", undone=undone)
    ended.deletion.forget(forgotten, grace=GRACE)
    ended.deletion.put_back(forgotten)
    for id in forgotten:
        ended.deletion.forget([id], grace=GRACE)
    for id in forgotten:
        ended.deletion.put_back([id])

    assert ended.endings.find(limit=10) == [replace(ENDING, undone=undone)]


def test_only_what_was_stored_or_edited_since_is_read_for_what_is_put_back(
    two: MemoryStore,
) -> None:
    make_finder(two).find()
    two.deletion.forget(["old"], grace=GRACE)
    remember_batch(two, AGAIN)
    make_finder(two).find()
    two.deletion.put_back(["old"])
    assert (newer(two), list(unread(two))) == (["new"], ["again"])

    make_finder(two).find()
    two.deletion.forget(["old"], grace=GRACE)
    edit = MemoryEdit(before=NEW, after=replace(NEW, content="Good morning."))
    two.changes.edit([edit], now=MORNING)
    two.deletion.put_back(["old"])
    assert (newer(two), list(unread(two))) == (["again"], ["old", "new", "again"])


def test_an_ending_that_was_undone_is_moved_with_its_forgotten_memory(
    ended: MemoryStore, tmp_path: Path
) -> None:
    ended.endings.undo("old")
    ended.deletion.forget(["old", "new"], grace=GRACE)

    with (
        open_store(DatabaseLocation(tmp_path / "target.db")) as target,
        ended.exchange.everything() as (_, records),
    ):
        target.exchange.restore(list(records))
        target.deletion.put_back(["old", "new"])

        assert target.endings.find(limit=10) == [replace(ENDING, undone=True)]


def test_restored_memories_are_not_learned_from(ended: MemoryStore) -> None:
    with ended.exchange.export(MemoryFilter()) as (_, records):
        exported = list(records)
    ended.deletion.forget(["old", "new"])
    pending = MemoryRecord(id="pending", content="Use tabs.", created_at=MORNING)
    remember_batch(ended, pending)
    assert unlearned(ended) == ["pending"]

    ended.exchange.restore(exported)
    ended.endings.mark_all_unread()
    assert unlearned(ended) == ["pending"]
    ended.learnings.add_late([], learned_up_to=max(ended.learnings.unlearned(limit=10)))
    remember_batch(ended, replace(pending, id="later"))

    assert unlearned(ended) == ["later"]
    assert len(unread(ended)) == 4


def test_a_memory_put_back_is_not_learned_again(ended: MemoryStore) -> None:
    ended.learnings.add_late([], learned_up_to=max(ended.learnings.unlearned(limit=10)))
    ended.deletion.forget(["new"], grace=GRACE)
    remember_batch(ended, replace(NEW, id="later", content="Use tabs."))

    ended.deletion.put_back(["new"])

    assert unlearned(ended) == ["later"]


# Who finds endings: each answer reads what little it may, and the background the rest.


def make_finder(store: MemoryStore, **given: Any) -> EndingFinder:  # noqa: ANN401 its own
    """A finder of a memory that also reads in the background, unless something else is given."""
    usual = {"clock": FakeClock(), "gate": ForegroundGate(), "in_background": True}
    return EndingFinder(store=store, **{**usual, **given})


class LikeMeanings:
    """Meanings of an encoder to which all sentences say a change and are alike."""

    change = 5.0

    def __init__(self) -> None:
        self.asked: list[str] = []

    def rate_changes(self, sentences: Sequence[str]) -> list[float]:
        self.asked += sentences
        return [self.change for _ in sentences]

    def compare(self, newer: str, olders: Sequence[str]) -> list[tuple[float, float]]:
        del newer
        return [(0.8, 3.0) for _ in olders]


class RefutingMeanings(LikeMeanings):
    """Meanings of an encoder to which no sentence says a change."""

    change = -50.0


class FailingMeanings(LikeMeanings):
    """Meanings of an encoder that is gone."""

    def compare(self, newer: str, olders: Sequence[str]) -> list[tuple[float, float]]:
        del newer, olders
        raise ModelUnavailable("the encoder is gone")


class StatedVectors(MemoryVectors):
    """Vectors of an encoder whose state a test returns."""

    def __init__(self, ask_state: Callable[[], EmbedderState]) -> None:
        self._ask_state = ask_state

    @property
    def state(self) -> EmbedderState:
        return self._ask_state()


def with_encoder(
    store: MemoryStore,
    meanings: LikeMeanings,
    *states: EmbedderState,
    **given: Any,  # noqa: ANN401 passed on to `make_finder`
) -> EndingFinder:
    """A finder with an encoder; its state is the last of a list that the caller may add to."""
    state = given.pop("state", [*states] or [READY])
    vectors = StatedVectors(lambda: state[-1])
    return make_finder(store, meanings=meanings, vectors=vectors, **given)


def test_an_answer_leaves_reading_to_a_background_that_is_behind(
    two: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endings, "CHORE_S", 0.0)
    monkeypatch.setattr(endings, "READ_AT_ONCE", 1)
    finder = make_finder(two)

    finder.find_in_background()  # it reads one of two
    finder.find_soon()
    assert len(unread(two)) == 1
    for _ in range(2):  # the second one finds that nothing is left
        finder.find_in_background()

    assert newer(two) == ["new"]


@pytest.mark.parametrize("in_background", [True, False])
def test_an_answer_reads_the_newest_of_many_unread_memories(
    two: MemoryStore, monkeypatch: pytest.MonkeyPatch, *, in_background: bool
) -> None:
    monkeypatch.setattr(endings, "AHEAD_MAX", 1)
    monkeypatch.setattr(endings, "SOON_MAX", 1)

    make_finder(two, in_background=in_background).find_soon()

    assert newer(two) == ["new"]
    assert len(unread(two)) == 2  # the background or a sleep reads both


def test_few_memories_are_read_before_a_sleep_if_the_background_reads_the_others(
    two: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endings, "SLEEP_MAX", 1)
    finder = make_finder(two)

    found = []
    for _ in range(2):
        finder.find_before_sleep()
        found.append(newer(two))

    assert found == [[], ["new"]]


def test_learning_waits_for_the_background(two: MemoryStore) -> None:
    learned: list[str] = []

    def learn(memory: MemoryRecord) -> list[LateLearning]:
        learned.append(memory.id)
        return []

    finder = make_finder(two, learn=learn)

    finder.find_soon()
    assert (newer(two), learned) == (["new"], [])
    finder.find_in_background()

    assert learned == ["old", "new"]
    assert not unread(two)


@pytest.mark.parametrize("in_background", [True, False])
def test_endings_are_found_while_the_encoder_is_loading_and_rules_learned_after_it(
    two: MemoryStore, *, in_background: bool
) -> None:
    rule = Learning(
        id="rule",
        kind=LearningKind.INSTRUCTION,
        text=NEW.content,
        created_at=MORNING,
        session=NEW.session,
        memory="new",
    )
    read = two.memories.get("new")
    assert isinstance(read, MemoryRecord)
    learned: list[LateLearning] | None = None

    def learn(memory: MemoryRecord) -> list[LateLearning] | None:
        return learned if memory.id == "new" or learned is None else []

    finder = make_finder(two, in_background=in_background, learn=learn)

    finder.find_soon()
    finder.find_before_sleep()
    finder.find()
    assert newer(two) == ["new"]
    assert two.learnings.find(limit=10) == []
    learned = [LateLearning(rule, read, frozenset())]
    finder.find_in_background()

    assert two.learnings.find(limit=10) == [rule]
    assert not two.learnings.unlearned(limit=10)


def test_an_encoder_that_stays_unavailable_is_not_waited_for(
    two: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endings, "AWAIT_S", 0.0)

    with_encoder(two, LikeMeanings(), EmbedderState.UNAVAILABLE).find_in_background()

    assert newer(two) == ["new"]
    assert not unread(two)


@pytest.mark.parametrize(
    ("stated_by", "changed_by", "ends"),
    [
        ("user", "user", True),
        ("assistant", "user", True),
        ("assistant", "assistant", True),
        ("user", "assistant", False),
        ("user", "", False),
    ],
)
def test_an_agents_figure_ends_no_figure_of_a_person_without_a_word_of_change(
    store: MemoryStore, stated_by: str, changed_by: str, *, ends: bool
) -> None:
    older = replace(OLD, content="The limit of the pool is 30.", role=stated_by)
    changed = replace(NEW, content="The limit of the pool is 50.", role=changed_by)
    remember_batch(store, older, changed)

    with_encoder(store, LikeMeanings()).find()

    assert [each.reason for each in store.endings.find(limit=10)] == ["value"] * ends


@pytest.mark.parametrize(
    ("early", "in_background"),
    [
        (EmbedderState.LOADING, True),
        (EmbedderState.UNAVAILABLE, True),
        (EmbedderState.LOADING, False),
    ],
)
def test_vectors_judge_once_ready(
    store: MemoryStore, early: EmbedderState, *, in_background: bool
) -> None:
    remember_batch(store, OLD, RENAMED)
    state = [early]
    finder = with_encoder(
        store, LikeMeanings(), state=state, in_background=in_background
    )

    finder.find_in_background()
    finder.find()
    assert (newer(store), len(unread(store))) == ([], 2)
    state.append(READY)
    finder.find_in_background()

    assert newer(store) == ["new"]
    assert not unread(store)


def test_a_finder_without_news_does_not_look_at_the_encoder(store: MemoryStore) -> None:
    asked: list[EmbedderState] = []

    def ask_state() -> EmbedderState:
        asked.append(READY)
        return READY

    vectors = StatedVectors(ask_state)
    finder = make_finder(store, meanings=LikeMeanings(), vectors=vectors)
    finder.find_in_background()
    finder.find_soon()
    asked.clear()

    finder.find_soon()

    assert asked == []


@pytest.mark.parametrize("in_background", [True, False])
def test_no_recall_waits_for_vectors(
    store: MemoryStore, *, in_background: bool
) -> None:
    remember_batch(store, OLD, RENAMED)
    finder = with_encoder(store, LikeMeanings(), in_background=in_background)

    finder.find_soon()
    assert newer(store) == []
    finder.find()

    assert newer(store) == ["new"]


def test_requests_wait_for_vectors_no_longer_than_their_limits(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endings, "EDIT_S", 0.0)
    monkeypatch.setattr(endings, "LIST_S", 0.0)
    remember_batch(store, OLD, GONE, AGAIN)
    meanings = RefutingMeanings()
    finder = with_encoder(store, meanings)

    finder.find_again([unread(store)["new"], unread(store)["again"]], {})
    assert meanings.asked == [GONE.content]
    assert newer(store) == ["again"]
    finder.list_endings(Endings())

    assert list(unread(store)) == ["new", "again"]


@pytest.mark.parametrize("seconds", [0.0, 60.0])
def test_an_edit_reads_newer_memories_while_time_is_left(
    two: MemoryStore, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    monkeypatch.setattr(endings, "EDIT_S", seconds)

    make_finder(two).find_again([unread(two)["old"]], {})

    assert newer(two) == (["new"] if seconds else [])


def test_the_background_reads_the_newer_memories_for_which_an_edit_had_no_time(
    two: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endings, "EDIT_S", 0.0)
    rows = unread(two)
    two.endings.add([], read_up_to=max(rows.values()))
    finder = make_finder(two)
    finder.find_in_background()
    reword(two, HELLO)

    finder.find_again([rows["old"]], {})
    assert newer(two) == []
    finder.find_in_background()

    assert newer(two) == ["new"]
    assert two.endings.edited() == {}


def test_an_edit_that_a_killed_daemon_did_not_read_is_read_at_the_next_start(
    two: MemoryStore,
) -> None:
    two.endings.add([], read_up_to=max(unread(two).values()))
    reword(two, HELLO)
    reword(two, OLD)
    assert len(two.endings.edited()) == 2

    make_finder(two).find_in_background()

    assert newer(two) == ["new"]
    assert two.endings.edited() == {}


def test_an_edit_while_its_memory_is_read_is_read_again(two: MemoryStore) -> None:
    reword(two, HELLO)
    marks = two.endings.edited()
    reword(two, OLD)

    two.endings.add([], read_again=[*marks])

    assert [*two.endings.edited().values()] == [*marks.values()]


def test_a_rule_of_an_edited_memory_is_learned_once_the_encoder_is_loaded(
    two: MemoryStore,
) -> None:
    reword(two, HELLO)
    row = unread(two)["old"]
    answers: list[list[LateLearning] | None] = [None, []]
    finder = make_finder(two, learn=lambda _: answers.pop(0))

    finder.find_again([row], {})
    assert two.endings.edited()
    finder.find_again([row], {})

    assert two.endings.edited() == {}


def test_an_edit_reads_the_likeliest_newer_memory_first(store: MemoryStore) -> None:
    other = replace(NEW, id="other", content="The mail server now has a second disk.")
    remember_batch(store, OLD, other, NEW)
    meanings = RefutingMeanings()

    with_encoder(store, meanings).find_again([unread(store)["old"]], {})

    newer = [each for each in meanings.asked if each in (NEW.content, other.content)]
    assert newer == [NEW.content, other.content]


def test_the_background_yields_to_requests_before_each_statement(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember_batch(
        store, replace(NEW, content=f"{NEW.content}\nThe build server moved to Fly.")
    )
    yields: list[str] = []
    gate = ForegroundGate()
    monkeypatch.setattr(gate, "yield_to_requests", lambda: yields.append("wait"))

    make_finder(store, gate=gate).find_in_background()

    # Before the memory and its two statements, and before it is learned from.
    assert len(yields) == 4


@pytest.mark.parametrize("early", [READY, EmbedderState.LOADING])
def test_vectors_withdraw_what_they_refute(
    store: MemoryStore, early: EmbedderState
) -> None:
    remember_batch(store, OLD, GONE)
    state = [early]
    rewritten: list[str] = []
    finder = with_encoder(store, RefutingMeanings(), state=state)
    finder.find_soon()
    assert newer(store) == ["new"]
    finder.on_found = lambda: rewritten.append("summaries")

    state.append(READY)
    finder.find_in_background()

    assert newer(store) == []
    assert rewritten == ["summaries"]


def test_later_memories_with_the_same_words_withdraw_nothing(two: MemoryStore) -> None:
    finder = with_encoder(two, LikeMeanings())
    finder.find()
    assert newer(two) == ["new"]
    later = [
        replace(
            OLD,
            id=f"later{number}",
            content="Does the staging server now listen on port 8080?",
            created_at=NEW.created_at + timedelta(days=1, minutes=number),
        )
        for number in range(3 * endings.CANDIDATES_MAX + 10)
    ]
    remember_batch(two, *later)

    finder.read_again()
    finder.find()
    assert newer(two) == ["new"]


def test_the_background_keeps_an_ending_of_an_edit(two: MemoryStore) -> None:
    clock = FakeClock()

    class EditingMeanings(RefutingMeanings):
        def rate_changes(self, sentences: Sequence[str]) -> list[float]:
            clock.advance(seconds=1)
            two.endings.add([replace(ENDING, found_at=clock.now())])
            return super().rate_changes(sentences)

    with_encoder(two, EditingMeanings(), clock=clock).find_in_background()

    assert newer(two) == ["new"]


def test_an_edited_memory_is_compared_with_few_newer_ones(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endings, "CANDIDATES_MAX", 2)
    remember_batch(
        store, OLD, *(replace(NEW, id=f"new{number}") for number in range(4))
    )

    make_finder(store).find_again([unread(store)["old"]], {})

    assert len(newer(store)) == 2


def test_an_encoder_that_fails_leaves_endings_to_the_words(
    two: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    warned: list[str] = []
    remember_batch(two, AGAIN)
    monkeypatch.setattr(
        endings.log, "warning", lambda event, **_: warned.append(event), raising=False
    )

    with_encoder(two, FailingMeanings()).find_in_background()

    assert set(newer(two)) == {"new", "again"}
    assert warned == ["endings_without_vectors"]
