"""Every store keeps which statements newer memories ended, and forgets it with either memory."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from support.fakes import NOON as MORNING, FakeClock

from mnemosyned.conversation.learnings.recognize import LateLearning
from mnemosyned.errors import InvalidRequest, ModelUnavailable
from mnemosyned.memory.endings import EndingRecord
from mnemosyned.memory.fields import MemoryFilter
from mnemosyned.memory.forgetting import Grace
from mnemosyned.memory.ports import Draft, MemoryStore
from mnemosyned.memory.values import (
    EmbedderState,
    Learning,
    LearningKind,
    MemoryRecord,
)
from mnemosyned.service import endings
from mnemosyned.service.endings import EndingFinder
from mnemosyned.sleep.context import ForegroundGate
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
ENDING = EndingRecord(
    older="old",
    newer="new",
    reason="now",
    older_place=1,
    newer_place=0,
    found_at=MORNING + timedelta(days=3),
)


@pytest.fixture
def ended(store: MemoryStore) -> MemoryStore:
    """A store with two memories, of which the newer one ends the older one's statement."""
    store.memories.remember([Draft(OLD), Draft(NEW)])
    store.endings.add([ENDING])
    return store


def test_an_ending_shows_both_sentences_and_its_time(ended: MemoryStore) -> None:
    (statement,) = ended.endings.of(["old", "new", "unknown"])["old"]

    assert statement.sentence == "The staging server listens on port 8080."
    assert statement.successor == "The staging server now listens on port 9090."
    assert (statement.at, statement.by) == (NEW.created_at, "new")
    assert statement.reason == "now"


def test_a_known_ending_is_not_added_again(ended: MemoryStore) -> None:
    assert ended.endings.add([ENDING]) == 0
    assert ended.endings.find(limit=10) == [ENDING]


@pytest.mark.parametrize("edited", ["old", "new"])
def test_an_ending_found_in_a_text_that_was_edited_since_is_not_added(
    store: MemoryStore, edited: str
) -> None:
    store.memories.remember([Draft(OLD), Draft(NEW)])
    texts = {"old": OLD.content, "new": NEW.content}

    assert store.endings.add([ENDING], texts=texts | {edited: "Good morning."}) == 0
    assert store.endings.add([ENDING], texts=texts) == 1


def test_an_ending_of_an_unknown_memory_is_not_added(ended: MemoryStore) -> None:
    unknown = EndingRecord(
        older="old",
        newer="gone",
        reason="now",
        older_place=0,
        newer_place=0,
        found_at=MORNING,
    )

    assert ended.endings.add([unknown]) == 0


def test_an_ending_that_a_later_judgement_does_not_find_is_withdrawn(
    ended: MemoryStore,
) -> None:
    elsewhere = replace(ENDING, older_place=0)

    assert ended.endings.add([], judged=["old"]) == 0
    assert ended.endings.add([elsewhere], judged=["new"]) == 2
    assert ended.endings.find(limit=10) == [elsewhere]
    assert ended.endings.add([elsewhere], judged=["new"]) == 0


def test_an_undone_ending_is_neither_withdrawn_nor_found_at_another_sentence(
    ended: MemoryStore,
) -> None:
    ended.endings.undo("old")

    changed = ended.endings.add([replace(ENDING, older_place=0)], judged=["new"])

    assert changed == 0
    assert ended.endings.find(limit=10) == [replace(ENDING, undone=True)]


def test_an_undone_ending_is_not_in_force_until_it_is_redone(
    ended: MemoryStore,
) -> None:
    assert ended.endings.undo("old") == 1
    assert ended.endings.undo("old") == 0
    assert ended.endings.of(["old"]) == {}
    assert ended.endings.find(limit=10)[0].undone

    assert ended.endings.undo("old", undone=False) == 1
    assert ended.endings.of(["old"])


def test_endings_are_listed_by_page_memory_and_whether_they_were_undone(
    ended: MemoryStore,
) -> None:
    others = [
        replace(NEW, id=f'by"{number}', content=f"It now listens on port {number}.")
        for number in range(4)
    ]
    ended.memories.remember([Draft(each) for each in others])
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


def test_a_list_that_is_asked_for_at_once_leaves_new_memories_to_the_background(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endings, "SOON_MAX", 1)
    store.memories.remember([Draft(OLD), Draft(NEW)])
    service = make_finder(store)

    assert service.list_endings(Endings(at_once=True)).endings == []
    assert [each.by for each in service.list_endings(Endings())] == ["new"]


def test_what_is_no_cursor_is_refused(store: MemoryStore) -> None:
    service = make_finder(store)

    with pytest.raises(InvalidRequest, match="not a cursor"):
        service.list_endings(Endings(after="x"))


@pytest.mark.parametrize("id", ["old", "new"])
def test_forgetting_either_memory_deletes_the_ending(
    ended: MemoryStore, id: str
) -> None:
    ended.deletion.forget([id])

    assert ended.endings.find(limit=10) == []
    assert ended.endings.of(["old"]) == {}


def test_memories_are_read_once_in_the_order_of_arrival(ended: MemoryStore) -> None:
    unread = ended.endings.unread(limit=10)
    assert [memory.id for memory in unread.values()] == ["old", "new"]
    first, last = unread
    assert first < last

    ended.endings.add([], read_up_to=first)
    assert list(ended.endings.unread(limit=10)) == [last]
    ended.endings.add([], read_up_to=last)
    assert ended.endings.unread(limit=10) == {}

    ended.endings.read_again()
    assert list(ended.endings.unread(limit=1)) == [first]


def test_the_first_memory_that_ended_a_statement_is_shown(ended: MemoryStore) -> None:
    later = MemoryRecord(
        id="later",
        content="The staging server now listens on port 9191.",
        created_at=NEW.created_at + timedelta(days=1),
    )
    ended.memories.remember([Draft(later)])
    ended.endings.add(
        [
            EndingRecord(
                older="old",
                newer="later",
                reason="now",
                older_place=1,
                newer_place=0,
                found_at=MORNING,
            )
        ]
    )

    (statement,) = ended.endings.of(["old"])["old"]
    assert statement.by == "new"


def test_endings_are_exported_and_restored_with_their_memories(
    ended: MemoryStore,
) -> None:
    ended.endings.undo("old")
    with ended.exchange.export(MemoryFilter()) as (_, records):
        exported = list(records)
    ended.deletion.forget(["old", "new"])

    ended.exchange.restore(exported)
    assert [each.undone for each in ended.endings.find(limit=10)] == [True]


def make_finder(store: MemoryStore, **given: Any) -> EndingFinder:  # noqa: ANN401 its own
    """A finder of a memory that also reads in the background, unless something else is given."""
    usual = {"clock": FakeClock(), "gate": ForegroundGate(), "in_background": True}
    return EndingFinder(store=store, **{**usual, **given})


def test_an_answer_leaves_reading_to_a_background_that_is_behind(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endings, "CHORE_S", 0.0)
    monkeypatch.setattr(endings, "READ_AT_ONCE", 1)
    store.memories.remember([Draft(OLD), Draft(NEW)])
    finder = make_finder(store)

    finder.find_in_background()  # it reads one of two
    finder.find_soon()
    left = len(store.endings.unread(limit=10))
    for _ in range(2):  # the second one finds that nothing is left
        finder.find_in_background()

    assert left == 1
    assert [each.newer for each in store.endings.find(limit=10)] == ["new"]


def test_few_memories_are_read_before_a_sleep_if_the_background_reads_the_others(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endings, "SLEEP_MAX", 1)
    store.memories.remember([Draft(OLD), Draft(NEW)])

    finder = make_finder(store)

    finder.find_before_sleep()
    first = store.endings.find(limit=10)
    finder.find_before_sleep()

    assert not first
    assert [each.newer for each in store.endings.find(limit=10)] == ["new"]


def test_what_is_read_while_somebody_waits_is_learned_from_in_the_background(
    store: MemoryStore,
) -> None:
    store.memories.remember([Draft(OLD), Draft(NEW)])
    learned: list[str] = []

    def learn(memory: MemoryRecord) -> list[LateLearning]:
        learned.append(memory.id)
        return []

    finder = make_finder(
        store,
        learn=learn,
    )

    finder.find_soon()
    found = [each.newer for each in store.endings.find(limit=10)]
    early = list(learned)
    finder.find_in_background()

    assert found == ["new"]
    assert (early, learned) == ([], ["old", "new"])
    assert not store.endings.unread(limit=10)


@pytest.mark.parametrize("in_background", [True, False])
def test_endings_are_found_while_the_encoder_is_loading_and_rules_learned_after_it(
    store: MemoryStore, *, in_background: bool
) -> None:
    rule = Learning(
        id="rule",
        kind=LearningKind.INSTRUCTION,
        text=NEW.content,
        created_at=MORNING,
        session=NEW.session,
        memory="new",
    )
    state = {"loading": True}
    store.memories.remember([Draft(OLD), Draft(NEW)])
    read = store.memories.get("new")
    assert isinstance(read, MemoryRecord)
    late = LateLearning(rule, read, frozenset())

    def learn(memory: MemoryRecord) -> list[LateLearning] | None:
        if state["loading"]:
            return None
        return [late] if memory.id == "new" else []

    finder = make_finder(
        store,
        in_background=in_background,
        learn=learn,
    )

    finder.find_soon()
    finder.find_before_sleep()
    finder.find()
    early = (store.endings.find(limit=10), store.learnings.find(limit=10))
    state["loading"] = False
    finder.find_in_background()

    assert [each.newer for each in early[0]] == ["new"]
    assert early[1] == []
    assert store.learnings.find(limit=10) == [rule]
    assert not store.learnings.unlearned(limit=10)


class LikeMeanings:
    """Meanings of an encoder to which all sentences say a change and are alike."""

    def rate_changes(self, sentences: Sequence[str]) -> list[float]:
        return [5.0 for _ in sentences]

    def compare(self, newer: str, olders: Sequence[str]) -> list[tuple[float, float]]:
        del newer
        return [(0.8, 3.0) for _ in olders]


def test_an_encoder_that_stays_unavailable_is_not_waited_for(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endings, "AWAIT_S", 0.0)
    store.memories.remember([Draft(OLD), Draft(NEW)])
    finder = make_finder(
        store,
        meanings=LikeMeanings(),
        encoder_state=lambda: EmbedderState.UNAVAILABLE,
    )

    finder.find_in_background()

    assert [each.newer for each in store.endings.find(limit=10)] == ["new"]
    assert not store.endings.unread(limit=10)


class FailingMeanings(LikeMeanings):
    """Meanings of an encoder that is gone."""

    def compare(self, newer: str, olders: Sequence[str]) -> list[tuple[float, float]]:
        del newer, olders
        raise ModelUnavailable("the encoder is gone")


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
    newer = replace(NEW, content="The limit of the pool is 50.", role=changed_by)
    store.memories.remember([Draft(older), Draft(newer)])
    finder = make_finder(
        store, meanings=LikeMeanings(), encoder_state=lambda: EmbedderState.READY
    )

    finder.find()

    assert [each.reason for each in store.endings.find(limit=10)] == ["value"] * ends


@pytest.mark.parametrize("early", [EmbedderState.LOADING, EmbedderState.UNAVAILABLE])
def test_the_background_judges_by_vectors_once_the_encoder_is_ready(
    store: MemoryStore, early: EmbedderState
) -> None:
    renamed = replace(NEW, content="Staging is on port 9090 since today.", role="user")
    store.memories.remember([Draft(OLD), Draft(renamed)])
    state = [early]
    finder = make_finder(
        store,
        meanings=LikeMeanings(),
        encoder_state=lambda: state[-1],
    )

    finder.find_in_background()
    finder.find()
    by_words = (store.endings.find(limit=10), len(store.endings.unread(limit=10)))
    state.append(EmbedderState.READY)
    finder.find_in_background()

    assert by_words == ([], 2)
    assert [each.newer for each in store.endings.find(limit=10)] == ["new"]
    assert not store.endings.unread(limit=10)


def test_a_finder_without_news_does_not_look_at_the_encoder(
    store: MemoryStore,
) -> None:
    asked: list[EmbedderState] = []

    def ask_state() -> EmbedderState:
        asked.append(EmbedderState.READY)
        return asked[-1]

    finder = make_finder(
        store,
        encoder_state=ask_state,
    )
    finder.find_in_background()
    finder.find_soon()
    asked.clear()

    finder.find_soon()

    assert asked == []


@pytest.mark.parametrize("in_background", [True, False])
def test_no_recall_waits_for_vectors(
    store: MemoryStore, *, in_background: bool
) -> None:
    renamed = replace(NEW, content="Staging is on port 9090 since today.", role="user")
    store.memories.remember([Draft(OLD), Draft(renamed)])
    finder = make_finder(
        store,
        in_background=in_background,
        meanings=LikeMeanings(),
        encoder_state=lambda: EmbedderState.READY,
    )

    finder.find_soon()
    early = store.endings.find(limit=10)
    finder.find()

    assert early == []
    assert [each.newer for each in store.endings.find(limit=10)] == ["new"]


def test_requests_wait_for_vectors_no_longer_than_their_limits(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endings, "EDIT_S", 0.0)
    monkeypatch.setattr(endings, "LIST_S", 0.0)
    asked: list[str] = []

    class CountingMeanings(LikeMeanings):
        def rate_changes(self, sentences: Sequence[str]) -> list[float]:
            asked.extend(sentences)
            return [-50.0 for _ in sentences]

    again = replace(NEW, id="again", content="The staging server now listens on 9191.")
    store.memories.remember([Draft(OLD), Draft(NEW), Draft(again)])
    rows = {memory.id: row for row, memory in store.endings.unread(limit=10).items()}
    finder = make_finder(
        store,
        meanings=CountingMeanings(),
        encoder_state=lambda: EmbedderState.READY,
    )

    finder.find_again([rows["new"], rows["again"]])
    edited = list(asked)
    found = [each.newer for each in store.endings.find(limit=10)]
    finder.list_endings(Endings())
    left = [memory.id for memory in store.endings.unread(limit=10).values()]

    assert edited == [NEW.content]
    assert found == ["again"]
    assert left == ["new", "again"]


@pytest.mark.parametrize("seconds", [0.0, 60.0])
def test_an_edit_reads_newer_memories_while_time_is_left(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    monkeypatch.setattr(endings, "EDIT_S", seconds)
    store.memories.remember([Draft(OLD), Draft(NEW)])
    rows = {memory.id: row for row, memory in store.endings.unread(limit=10).items()}
    finder = make_finder(store)

    finder.find_again([rows["old"]], former={})

    found = [each.newer for each in store.endings.find(limit=10)]
    assert found == (["new"] if seconds else [])


def test_the_background_yields_to_requests_before_each_statement(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = replace(NEW, content=f"{NEW.content}\nThe build server moved to Fly.")
    store.memories.remember([Draft(long)])
    yields: list[str] = []
    gate = ForegroundGate()
    monkeypatch.setattr(gate, "yield_to_requests", lambda: yields.append("wait"))
    finder = make_finder(
        store,
        gate=gate,
    )

    finder.find_in_background()

    # Before the memory and its two statements, and before it is learned from.
    assert len(yields) == 4


class RefutingMeanings(LikeMeanings):
    """Meanings of an encoder to which no sentence says a change."""

    def rate_changes(self, sentences: Sequence[str]) -> list[float]:
        return [-50.0 for _ in sentences]


@pytest.mark.parametrize("early", ["waiting", "loading"])
def test_the_background_withdraws_an_ending_of_words_that_vectors_refute(
    store: MemoryStore, early: str
) -> None:
    store.memories.remember([Draft(OLD), Draft(NEW)])
    state = [EmbedderState.LOADING if early == "loading" else EmbedderState.READY]
    rewritten: list[str] = []
    finder = make_finder(
        store,
        meanings=RefutingMeanings(),
        encoder_state=lambda: state[-1],
    )
    finder.find_soon()
    before = [each.newer for each in store.endings.find(limit=10)]
    finder.on_found = lambda: rewritten.append("summaries")

    state.append(EmbedderState.READY)
    finder.find_in_background()

    assert before == ["new"]
    assert store.endings.find(limit=10) == []
    assert rewritten == ["summaries"]


def test_the_background_keeps_an_ending_that_an_edit_makes_while_it_reads(
    store: MemoryStore,
) -> None:
    clock = FakeClock()
    store.memories.remember([Draft(OLD), Draft(NEW)])

    class EditingMeanings(RefutingMeanings):
        def rate_changes(self, sentences: Sequence[str]) -> list[float]:
            clock.advance(seconds=1)
            store.endings.add([replace(ENDING, found_at=clock.now())])
            return super().rate_changes(sentences)

    finder = make_finder(
        store,
        clock=clock,
        meanings=EditingMeanings(),
        encoder_state=lambda: EmbedderState.READY,
    )

    finder.find_in_background()

    assert [each.newer for each in store.endings.find(limit=10)] == ["new"]


def test_an_edited_memory_is_compared_with_few_newer_ones(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endings, "CANDIDATES_MAX", 2)
    newer = [replace(NEW, id=f"new{number}") for number in range(4)]
    store.memories.remember([Draft(OLD), *map(Draft, newer)])
    old, *_ = store.endings.unread(limit=10)

    make_finder(store).find_again([old], former={})

    assert len(store.endings.find(limit=10)) == 2


def test_an_encoder_that_fails_leaves_endings_to_the_words(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    again = replace(NEW, id="again", content="The staging server now listens on 9191.")
    store.memories.remember([Draft(OLD), Draft(NEW), Draft(again)])
    monkeypatch.setattr(
        endings.log, "warning", lambda event, **_: asked.append(event), raising=False
    )
    finder = make_finder(
        store,
        meanings=FailingMeanings(),
        encoder_state=lambda: EmbedderState.READY,
    )

    finder.find_in_background()

    assert {each.newer for each in store.endings.find(limit=10)} == {"new", "again"}
    assert asked == ["endings_without_vectors"]


def test_restored_memories_are_not_learned_from_and_others_still_are(
    ended: MemoryStore,
) -> None:
    with ended.exchange.export(MemoryFilter()) as (_, records):
        exported = list(records)
    ended.deletion.forget(["old", "new"])
    pending = MemoryRecord(id="pending", content="Use tabs.", created_at=MORNING)
    ended.memories.remember([Draft(pending)])
    before = len(ended.learnings.unlearned(limit=10))

    ended.exchange.restore(exported)
    ended.endings.read_again()
    unlearned = ended.learnings.unlearned(limit=10)
    ended.learnings.add_late([], learned_up_to=max(unlearned))
    ended.memories.remember([Draft(replace(pending, id="later"))])
    later = ended.learnings.unlearned(limit=10)

    assert before == 1
    assert [each.id for each in unlearned.values()] == ["pending"]
    assert [each.id for each in later.values()] == ["later"]
    assert len(ended.endings.unread(limit=10)) == 4


def test_a_memory_that_is_put_back_is_not_learned_from_again(
    ended: MemoryStore,
) -> None:
    ended.learnings.add_late([], learned_up_to=max(ended.learnings.unlearned(limit=10)))
    ended.deletion.forget(["new"], grace=Grace("call", MORNING + timedelta(days=1)))
    later = replace(NEW, id="later", content="Use tabs.")
    ended.memories.remember([Draft(later)])

    ended.grace.put_back(["new"])

    assert [each.id for each in ended.learnings.unlearned(limit=10).values()] == [
        "later"
    ]


@pytest.mark.parametrize("forgotten", [["old"], ["new"], ["old", "new"]])
def test_an_ending_that_was_undone_is_put_back_with_its_memories(
    ended: MemoryStore, forgotten: Sequence[str]
) -> None:
    ended.endings.undo("old")
    ended.deletion.forget(forgotten, grace=Grace("call", MORNING + timedelta(days=1)))

    ended.grace.put_back(forgotten)

    assert ended.endings.find(limit=10) == [replace(ENDING, undone=True)]
