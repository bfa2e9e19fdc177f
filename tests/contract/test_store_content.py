"""What every `MemoryStore` promises of tags, exact values, learnings, compactions and histories."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from support.fakes import (
    NOON,
    agent_session,
    consolidate,
    memory,
    promotion,
    remember_batch,
)
from support.stores import TRIO, edit_memory, get_episode, get_memory

from mnemosyned.conversation.learnings.recognize import LateLearning, extract_learnings
from mnemosyned.errors import BatchChanged, IdTaken, InvalidRequest, NotFound
from mnemosyned.memory.exchange import ExportedCompaction
from mnemosyned.memory.forgetting import ForgetFilter, content_hash
from mnemosyned.memory.listing import LearningFilter, Place
from mnemosyned.memory.ports import (
    ArchivedMessage,
    Draft,
    MemoryStore,
    NewCompaction,
    Promotion,
)
from mnemosyned.memory.values import TAGS_MAX, Learning, LearningKind, MemoryRecord
from mnemosyned.storage.common import learnings
from mnemosyned.text.details import Detail, DetailKind


def lesson(id: str, text: str, *, hours_ago: float = 0, **where: Any) -> Learning:  # noqa: ANN401 of a learning
    return Learning(
        id=id,
        kind=LearningKind.LESSON,
        text=text,
        created_at=NOON - timedelta(hours=hours_ago),
        session="default",
        **where,
    )


def said(id: str, text: str, *, hours_ago: float = 0) -> MemoryRecord:
    return memory(id, text, role="user", hours_ago=hours_ago)


def late(
    store: MemoryStore, learning: Learning, read: MemoryRecord | None = None
) -> LateLearning:
    """A learning that was read from its memory as stored, or as `read`."""
    read = read or get_memory(store, learning.memory or "")
    return LateLearning(learning, read, frozenset())


def tell(store: MemoryStore, *memories: MemoryRecord) -> None:
    store.memories.remember(
        [Draft(one, learnings=extract_learnings(one, now=NOON)) for one in memories]
    )


@pytest.fixture
def robert_and_bob(store: MemoryStore) -> list[Learning]:
    tell(store, said("1", "Call me Robert.", hours_ago=3))
    tell(store, said("2", "Call me Bob.", hours_ago=2))
    return store.learnings.find(superseded=True, limit=100)[::-1]


def texts(store: MemoryStore, **which: Any) -> list[str]:  # noqa: ANN401 a filter
    return [one.text for one in store.learnings.find(limit=100, **which)]


def test_learnings_are_stored_once_with_their_memory(store: MemoryStore) -> None:
    for _ in range(2):
        tell(store, said("1", "Hi! Never use emojis. Call me Bob.", hours_ago=1))

    found = store.learnings.find(superseded=True, limit=10)

    assert [(one.text, one.kind, one.memory) for one in found] == [
        ("Call me Bob.", LearningKind.NAME, "1"),
        ("Never use emojis.", LearningKind.INSTRUCTION, "1"),
    ]
    assert found[0].created_at == NOON - timedelta(hours=1)
    names, _ = store.learnings.read_page(
        LearningFilter(kind=LearningKind.NAME), limit=9
    )
    assert [one.text for one in names] == ["Call me Bob."]


def test_a_memory_that_is_refused_teaches_nothing(store: MemoryStore) -> None:
    remember_batch(store, memory("taken", "something else"))

    with pytest.raises(IdTaken):
        tell(store, said("1", "Never use emojis."), said("taken", "Call me Bob."))

    assert store.learnings.find(limit=10) == []


def test_the_newer_takes_the_place_of_the_older_also_after_sleep(
    store: MemoryStore, robert_and_bob: list[Learning]
) -> None:
    robert, bob = robert_and_bob

    assert texts(store) == ["Call me Bob."]
    assert robert.superseded_by == bob.id
    consolidate(store, promotion("e", *store.memories.working(["1", "2"])))
    assert texts(store) == ["Call me Bob."]
    store.deletion.forget(["2"])
    assert texts(store) == ["Call me Robert."]


def test_an_older_learning_supersedes_no_newer_one(store: MemoryStore) -> None:
    tell(store, said("2", "Call me Bob.", hours_ago=1))
    tell(store, said("1", "Call me Robert.", hours_ago=2))

    assert texts(store) == ["Call me Bob."]


def test_each_source_has_its_own(store: MemoryStore) -> None:
    store.learnings.add(lesson("1", "Always use tabs.", source="a", hours_ago=2))
    spaces = lesson("2", "Always use spaces.", source="b", hours_ago=1)
    assert store.learnings.add(spaces)[1] == []
    store.learnings.add(lesson("3", "Taste first."))

    assert texts(store, sources=["a"]) == ["Always use tabs."]
    assert texts(store, sources=["a", None]) == ["Taste first.", "Always use tabs."]
    assert [one.id for one in store.learnings.find(limit=2)] == ["3", "2"]


def test_a_learning_of_one_project_supersedes_none_of_another(
    store: MemoryStore,
) -> None:
    for project in ("tabs", "spaces"):
        store.agents.keep_session(agent_session(f"codex:{project}", f"/w/{project}"))
    rules = {"tabs": "Always use tabs.", "spaces": "Always use spaces."}
    superseded = {
        (project, of): store.learnings.add(
            replace(lesson(f"{project} {of}", text), session=f"codex:{of}")
        )[1]
        for of in rules
        for project, text in rules.items()
    }

    assert superseded == {
        ("tabs", "tabs"): [],
        ("spaces", "tabs"): ["tabs tabs"],
        ("tabs", "spaces"): [],
        ("spaces", "spaces"): ["tabs spaces"],
    }


def test_pages_of_learnings_neither_repeat_nor_hide_one(store: MemoryStore) -> None:
    for number in range(5):  # two of them at one time
        store.learnings.add(
            lesson(str(number), f"Lesson {number}, ok.", hours_ago=number // 2)
        )
    chosen, pages = LearningFilter(), []

    for _ in range(3):
        page, place = store.learnings.read_page(chosen, limit=2)
        pages.append([each.id for each in page])
        chosen = LearningFilter(after=place)
        store.learnings.add(lesson(f"new {pages}", f"New after {pages}."))

    assert pages == [["1", "0"], ["3", "2"], ["4"]]
    assert place is None


def test_learnings_are_found_by_parts_of_their_words(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.learnings.add(lesson("1", "Über Öl spricht man nie.", hours_ago=2))
    store.learnings.add(lesson("2", "移行は火曜日です。", hours_ago=1))
    store.learnings.add(lesson("3", "100%_ is a pattern."))

    def find(*words: str, after: Place | None = None) -> list[str]:
        chosen = LearningFilter(words=words, after=after)
        page, _ = store.learnings.read_page(chosen, limit=9)
        return [each.id for each in page]

    assert find("sprich", "öl") == ["1"]
    assert find("火曜日") == ["2"]
    assert find("%_") == ["3"]
    assert find("oil") == []

    monkeypatch.setattr(learnings, "READ_MAX", 2)
    page, place = store.learnings.read_page(LearningFilter(words=["über"]), limit=9)
    assert page == []
    assert find("über", after=place) == ["1"]


def test_a_learning_is_found_by_its_id_with_those_that_it_superseded(
    store: MemoryStore, robert_and_bob: list[Learning]
) -> None:
    tell(store, said("3", "Never use emojis.", hours_ago=1))

    def find(id: str) -> list[str | None]:
        page, _ = store.learnings.read_page(LearningFilter(ids=[id]), limit=9)
        return [each.memory for each in page]

    robert, bob = robert_and_bob
    assert find(bob.id) == ["2", "1"]
    assert find(robert.id) == ["1"]
    assert find("unknown") == []


CLAUSES = "bitte keine Kommentare, und Namen auf Englisch, auch in Tests"


def test_late_rules_are_stored_once_with_their_memory(store: MemoryStore) -> None:
    remember_batch(store, memory("said", CLAUSES))
    rule = replace(lesson("rule", CLAUSES), memory="said")
    read = [late(store, rule), late(store, rule, memory("no", CLAUSES))]

    assert store.learnings.add_late(read) == 1
    assert store.learnings.add_late([late(store, replace(rule, id="3"))]) == 0
    assert store.learnings.find(limit=9) == [rule]


def test_a_whole_rule_supersedes_its_clause(store: MemoryStore) -> None:
    remember_batch(store, memory("said", CLAUSES))
    whole = replace(lesson("whole", CLAUSES), memory="said")
    part = replace(whole, id="part", text="Keine Kommentare")

    for each in (part, whole):
        store.learnings.add_late([late(store, each)])

    assert store.learnings.find(limit=9) == [whole]


def test_a_rule_of_a_removed_clause_is_not_learned(store: MemoryStore) -> None:
    remember_batch(store, memory("said", CLAUSES))
    whole = late(store, replace(lesson("whole", CLAUSES), memory="said"))

    removed = frozenset({"keine Kommentare"})

    assert store.learnings.add_late([whole._replace(clauses=removed)]) == 0
    assert store.learnings.find(limit=9) == []


def test_a_rule_of_changed_words_is_not_stored(store: MemoryStore) -> None:
    said = [memory("edited", "Use tabs"), memory("gone", "Use spaces")]
    remember_batch(store, *said)
    read = [
        late(store, replace(lesson(each.id, each.content), memory=each.id))
        for each in said
    ]

    edit_memory(store, "edited", "Use four spaces")
    store.memories.remember([Draft(memory("newer"), supersedes="gone")])

    assert store.learnings.add_late(read) == 0
    assert store.learnings.find(superseded=True, limit=9) == []


def test_a_contradicted_late_rule_is_not_counted(store: MemoryStore) -> None:
    remember_batch(store, memory("said", "Never use tabs"))
    store.learnings.add(lesson("newer", "Always use tabs."))
    old = replace(lesson("old", "Never use tabs", hours_ago=2), memory="said")

    assert store.learnings.add_late([late(store, old)]) == 0


def test_an_edit_drops_the_rules_that_it_rewords(store: MemoryStore) -> None:
    prices, signs = "prices end in .50, nothing on credit", "signs in Spanish"
    remember_batch(store, memory("said", f"{prices}; {signs}"))
    rules = [
        replace(lesson(each, each), memory="said") for each in (prices, signs, "x")
    ]
    store.learnings.add_late([late(store, each) for each in rules])

    edit_memory(store, "said", "prices end in .99; signs in Spanish")

    assert set(texts(store)) == {signs, "x"}


def test_a_lesson_stated_again_is_the_one_that_is_there(store: MemoryStore) -> None:
    first, _ = store.learnings.add(lesson("1", "Taste first.", hours_ago=1))

    assert store.learnings.add(lesson("2", "taste first")) == (first, [])
    assert texts(store, superseded=True) == ["Taste first."]


def test_words_said_again_hold_by_the_newer_memory(store: MemoryStore) -> None:
    tell(store, said("1", "Never use emojis.", hours_ago=2))
    tell(store, said("2", "Never use emojis!", hours_ago=1))

    before = [one.memory for one in store.learnings.find(limit=9)]
    store.deletion.forget(["2"])

    assert before == ["2"]
    assert [one.memory for one in store.learnings.find(limit=9)] == ["1"]


def test_a_learning_can_be_given_other_words_and_deleted(store: MemoryStore) -> None:
    store.learnings.add(lesson("1", "Taste first."))

    store.learnings.edit("1", "Taste twice.")
    assert texts(store) == ["Taste twice."]
    store.learnings.remove("1")

    assert texts(store) == []
    with pytest.raises(NotFound, match="learnings"):
        store.learnings.edit("1", "x")
    with pytest.raises(NotFound, match="learnings"):
        store.learnings.remove("1")


# What every `MemoryStore` promises of what compactions took out.


def taken(
    id: str, content: str = "", *, timed: bool = False, hours_ago: float = 0
) -> ArchivedMessage:
    one = memory(id, content, role="user", hours_ago=hours_ago)
    return ArchivedMessage(Draft(one), may_reuse=True, has_timestamp=timed)


def compact(
    store: MemoryStore, id: str, *parts: ArchivedMessage | str, text: str = ""
) -> list[str]:
    """Keep what a compaction took out: messages, and compactions that it goes on from."""
    made = ExportedCompaction(
        id=id,
        session="default",
        policy="facts",
        text_hash=content_hash(text or f"summary {id}"),
        created_at=NOON,
    )
    return list(store.memories.add_compactions([NewCompaction(made, parts)]))


def left(store: MemoryStore, id: str) -> list[str]:
    found = store.memories.compaction(id)
    assert found
    return [one.content for one in found[1]]


def test_a_compaction_keeps_its_messages_in_order(store: MemoryStore) -> None:
    messages = taken("b", hours_ago=1), taken("a", hours_ago=5)

    assert compact(store, "c", *messages) == ["b", "a"]
    assert left(store, "c") == ["note b", "note a"]
    assert store.memories.compaction("other") is None


def test_one_goes_on_from_others_however_deep(store: MemoryStore) -> None:
    compact(store, "c1", taken("a"))
    compact(store, "c2", "c1", "unknown", taken("b"))
    compact(store, "s", taken("a"))
    compact(store, "c3", "c2", "s", taken("c"))
    compact(store, "round", "c3", "round")

    assert left(store, "c1") == ["note a"]
    assert left(store, "c2") == ["note a", "note b"]
    assert left(store, "c3") == left(store, "round") == ["note a", "note b", "note c"]


def test_a_stub_is_called_by_its_own_memory(store: MemoryStore) -> None:
    compact(store, "a", taken("a"))
    compact(store, "c", "a", taken("b"))

    assert left(store, "a") == ["note a"]
    assert left(store, "c") == ["note a", "note b"]


def test_a_known_message_is_not_stored_twice(store: MemoryStore) -> None:
    remember_batch(store, *(said(id, f"note {id}", hours_ago=0.1) for id in "12"))
    for _ in range(2):
        again = compact(store, "c", taken("m-1", "note 1"), taken("m-3"))

    assert again == ["1", "m-3"]
    assert left(store, "c") == ["note 1", "note m-3"]
    assert store.memories.working_count() == 3


def test_the_same_words_at_another_time_are_other_ones(store: MemoryStore) -> None:
    remember_batch(store, said("1", "note 1", hours_ago=0.1))
    near = taken("m-1", "note 1", timed=True, hours_ago=0.5)
    far = taken("m-2", "note 1", timed=True, hours_ago=50)

    assert compact(store, "c", near, far) == ["1", "m-2"]


def test_compactions_leave_out_the_forgotten(store: MemoryStore) -> None:
    compact(store, "c", taken("a"), taken("b"), taken("z"))

    consolidate(store, promotion("e", get_memory(store, "a")))
    store.deletion.forget(["b"])

    found = store.memories.compaction("c")
    assert found
    assert [(one.id, one.episode) for one in found[1]] == [("a", "e"), ("z", None)]


def test_a_summary_is_known_again_by_its_words(store: MemoryStore) -> None:
    compact(store, "c", taken("a"), text="what was said")

    def found(text: str, *, session: str = "default") -> str | None:
        return store.memories.find_compaction(text, session=session, source=None)

    assert found("what was said") == "c"
    assert found("what was not said") is None
    assert found("what was said", session="another") is None


# What every `MemoryStore` promises of the exact values of an episode's originals.


ONE = memory("1", "keep 42 and 42%", hours_ago=3)
TWO = memory("2", "keep 42 at https://a.b/c", hours_ago=2)
DETAILS = (
    Detail(DetailKind.NUMBER, "42", memory="1"),
    Detail(DetailKind.NUMBER, "42%", memory="1"),
    Detail(DetailKind.URL, "https://a.b/ü?q='\"", memory="2"),
    Detail(DetailKind.PASSWORD, "hunter22", sensitive=True, memory="2"),
)


def with_details(promoted: Promotion, *details: Detail) -> Promotion:
    return replace(promoted, episode=replace(promoted.episode, details=details))


def details_of(store: MemoryStore, id: str) -> tuple[Detail, ...]:
    return get_episode(store, id).details


@pytest.fixture
def filled(store: MemoryStore) -> MemoryStore:
    remember_batch(store, ONE, TWO)
    consolidate(store, with_details(promotion("e", ONE, TWO), *DETAILS))
    return store


def test_details_come_back_word_for_word_with_their_memory(filled: MemoryStore) -> None:
    assert set(details_of(filled, "e")) == set(DETAILS)
    assert [detail.memory for detail in details_of(filled, "e")] == ["1", "1", "2", "2"]


def test_the_same_value_in_two_memories_keeps_both_sources(store: MemoryStore) -> None:
    same = tuple(Detail(DetailKind.NUMBER, "42", memory=id) for id in ("1", "2"))
    remember_batch(store, ONE, TWO)

    consolidate(store, with_details(promotion("e", ONE, TWO), *same))

    assert details_of(store, "e") == same


def test_the_secrets_below_an_episode_come_alone(filled: MemoryStore) -> None:
    assert filled.memories.secrets("e") == [DETAILS[3]]
    assert filled.memories.secrets("unknown") == []


def test_each_episode_has_its_own_details(store: MemoryStore) -> None:
    remember_batch(store, ONE, TWO)

    consolidate(store, with_details(promotion("e1", ONE), DETAILS[0]))
    consolidate(store, with_details(promotion("e2", TWO), DETAILS[2]))

    assert details_of(store, "e1") == DETAILS[:1]
    assert details_of(store, "e2") == DETAILS[2:3]


def test_details_of_a_memory_come_by_their_kind(store: MemoryStore) -> None:
    by_kind = (
        Detail(DetailKind.ACCESS_CODE, "4711", sensitive=True, memory="2"),
        Detail(DetailKind.NUMBER, "42", memory="2"),
        Detail(DetailKind.URL, "https://a.b", memory="2"),
    )
    remember_batch(store, ONE, TWO)
    last = replace(by_kind[-1], memory="1")
    consolidate(store, with_details(promotion("e1", ONE), last))  # a kind known before
    consolidate(store, with_details(promotion("e2", TWO), *reversed(by_kind)))

    assert details_of(store, "e2") == by_kind


def test_details_are_forgotten_with_their_memory_alone(filled: MemoryStore) -> None:
    filled.deletion.forget(["2"])

    assert set(details_of(filled, "e")) == set(DETAILS[:2])


def test_a_group_that_fails_leaves_no_details(store: MemoryStore) -> None:
    remember_batch(store, ONE)

    with pytest.raises(BatchChanged):
        consolidate(store, with_details(promotion("e", ONE, TWO), *DETAILS))

    consolidate(store, promotion("e", ONE))
    assert details_of(store, "e") == ()


# What every `MemoryStore` promises of tags.


def test_tags_go_with_a_memory_to_the_archive_and_back(store: MemoryStore) -> None:
    remember_batch(store, *TRIO)
    store.changes.tag(["2"], ["travel"])

    consolidate(store, promotion("e", *TRIO))
    archived = get_memory(store, "2")
    store.retention.restore("2")

    assert (archived.episode, archived.tags) == ("e", ("travel",))
    assert get_memory(store, "2").tags == ("travel",)
    assert store.memories.originals("e")[0].tags == ()


def test_tagging_counts_what_was_not_so_before(store: MemoryStore) -> None:
    remember_batch(store, *TRIO)
    store.changes.tag(["1"], ["a", "b"])

    tagged = store.changes.tag(["1", "2", "never there"], ["a", "b"])
    untagged = store.changes.tag(["1", "3"], ["b", "c"], remove=True)

    assert (tagged, untagged) == (1, 1)
    assert [get_memory(store, id).tags for id in "123"] == [("a",), ("a", "b"), ()]


def test_a_filter_selects_by_any_of_its_tags_in_every_tier(store: MemoryStore) -> None:
    remember_batch(store, *TRIO, memory("4"))
    store.changes.tag(["1", "4"], ["a"])
    store.changes.tag(["2"], ["b"])
    consolidate(store, promotion("e", *TRIO))

    selected = store.deletion.select(ForgetFilter(tags=("a", "b")))
    assert sorted(selected) == ["1", "2", "4"]


def test_forgotten_tags_do_not_come_back_with_the_id(store: MemoryStore) -> None:
    remember_batch(store, memory("1", tags=("secret",)))
    store.deletion.forget(["1"])
    remember_batch(store, memory("1"))

    assert get_memory(store, "1").tags == ()
    assert store.deletion.select(ForgetFilter(tags=("secret",))) == []


def test_a_memory_takes_no_more_tags_than_the_limit(store: MemoryStore) -> None:
    remember_batch(store, memory("1"))
    store.changes.tag(["1"], [f"t{number}" for number in range(TAGS_MAX)])

    with pytest.raises(InvalidRequest, match="at most 100 tags"):
        store.changes.tag(["1"], ["one more"])

    assert "one more" not in get_memory(store, "1").tags


# What every `MemoryStore` promises of memories that superseded others.


def test_a_history_begins_with_the_newest(store: MemoryStore) -> None:
    remember_batch(store, *(memory(name, f"the door is {name}") for name in "abc"))
    newest = memory("d", "the door is d")

    for old in "acb":  # each call of the same memory, in another order
        store.memories.remember([Draft(newest, supersedes=old)])

    assert [older.id for older in store.memories.history("d")] == ["c", "b", "a"]
