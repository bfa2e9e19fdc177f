"""What every `MemoryStore` promises of forgetting, at once and with a grace time."""

from dataclasses import replace
from datetime import timedelta

import pytest
from support.fakes import (
    NOON,
    consolidate,
    memory,
    promotion,
    remember_batch,
    working_ids,
)
from support.stores import TRIO, count_by_tier, edit_memory, get_episode

from mnemosyned.errors import BatchChanged, NotFound
from mnemosyned.memory.exchange import ExportedMemory, RecoverableRecord
from mnemosyned.memory.forgetting import Grace
from mnemosyned.memory.ports import Draft, MemoryStore
from mnemosyned.memory.values import (
    ACTIONS_KEPT,
    Action,
    ActionKind,
    Learning,
    LearningKind,
    Tier,
    UndoableAction,
)
from mnemosyned.storage.common import undo


def test_forgetting_deletes_from_every_tier(store: MemoryStore) -> None:
    remember_batch(store, *TRIO, memory("4"))
    consolidate(store, promotion("e", *TRIO))

    removal = store.deletion.forget(["4", "2", "never there"])

    assert (removal.working, removal.archived) == (1, 1)
    assert count_by_tier(store)["archive"][0] == 2
    assert working_ids(store) == []


def test_forgetting_all_originals_takes_their_episode_along(store: MemoryStore) -> None:
    remember_batch(store, *TRIO)
    consolidate(store, promotion("e", *TRIO))

    store.deletion.forget(["1", "2", "3"])

    with pytest.raises(NotFound):
        store.memories.get("e")
    assert count_by_tier(store) == {tier.value: (0, 0) for tier in Tier}
    assert store.sleep.log(limit=1)[0].summary_preview == ""


def test_a_summary_is_empty_until_it_is_rewritten(store: MemoryStore) -> None:
    remember_batch(store, *TRIO)
    consolidate(store, promotion("e", *TRIO))

    store.deletion.forget(["2"])

    episode = get_episode(store, "e")
    assert (episode.content, episode.item_count) == ("", 2)
    assert store.sleep.log(limit=1)[0].summary_preview == ""
    emptied = store.rollups.next_stale()
    assert emptied
    assert [memory.id for memory in emptied.originals] == ["1", "3"]

    store.rollups.rewrite(
        emptied.token, replace(emptied.episode, content="what is left")
    )

    assert get_episode(store, "e").content == "what is left"
    assert get_episode(store, "e").summary_of == ("1", "3")
    assert store.sleep.log(limit=1)[0].summary_preview == "what is left"
    assert store.rollups.next_stale() is None


def test_a_rewriting_that_knows_too_much_is_refused(store: MemoryStore) -> None:
    remember_batch(store, *TRIO)
    consolidate(store, promotion("e", *TRIO))
    store.deletion.forget(["2"])
    early = store.rollups.next_stale()
    assert early

    store.deletion.forget(["3"])

    with pytest.raises(BatchChanged):
        store.rollups.rewrite(early.token, replace(early.episode, content="1 and 3"))
    assert get_episode(store, "e").content == ""


def test_forgotten_words_leave_the_index_terms_of_a_summary(store: MemoryStore) -> None:
    remember_batch(store, *TRIO)
    consolidate(store, promotion("e", *TRIO, index_terms="Xylander\nPX-4471"))
    before = store.rollups.index_terms(["e"])

    store.deletion.forget(["2"])

    assert before == {"e": "Xylander\nPX-4471"}
    assert store.rollups.index_terms(["e"]) == {"e": ""}
    emptied = store.rollups.next_stale()
    assert emptied
    store.rollups.rewrite(emptied.token, emptied.episode, index_terms="PX-4471")
    assert store.rollups.index_terms(["e"]) == {"e": "PX-4471"}


# What every `MemoryStore` promises of what is forgotten with a grace time.


def told(name: str, text: str, *, minutes: int) -> Draft:
    learning = Learning(
        id=f"l-{name}",
        kind=LearningKind.NAME,
        text=text,
        session="default",
        source=None,
        memory=name,
        created_at=NOON + timedelta(minutes=minutes),
    )
    return Draft(memory(name, text), learnings=(learning,))


def test_what_is_forgotten_is_kept_as_it_was(store: MemoryStore) -> None:
    store.memories.remember([told("older", "Call me Robert.", minutes=0)])
    store.memories.remember([told("newer", "Call me Bob.", minutes=1)])
    grace = Grace("call", NOON + timedelta(days=3))

    store.deletion.forget(["newer", "older"], grace=grace)

    with store.exchange.everything() as (_, records):
        kept = [each for each in records if isinstance(each, RecoverableRecord)]
    links = {
        learning.id: learning.superseded_by
        for record in kept
        for learning in record.data.learnings
    }
    assert links == {"l-older": "l-newer", "l-newer": None}


# The records of actions that can be undone.


def action(id: str, kind: ActionKind = ActionKind.TAG, *, days: float = 0) -> Action:
    return Action(id, kind, NOON + timedelta(days=days))


def steps(store: MemoryStore, id: str) -> list[tuple[str, str]]:
    return [(step.memory, step.tag) for step in store.undo.steps(id)]


def listed(store: MemoryStore, id: str | None = None) -> list[UndoableAction]:
    return store.undo.actions(since=NOON - ACTIONS_KEPT, id=id, limit=10)


def test_only_what_was_not_so_before_is_recorded(store: MemoryStore) -> None:
    remember_batch(store, memory("1", tags=("a",)), memory("2"))

    store.changes.tag(["1", "2"], ["a", "b"], action=action("t"))
    store.changes.tag(
        ["1"], ["c"], remove=True, action=action("none", ActionKind.UNTAG)
    )
    store.changes.pin(["2"], pinned=True, action=action("p", ActionKind.PIN))
    store.changes.pin(["2"], pinned=True, action=action("again", ActionKind.PIN))

    assert sorted(steps(store, "t")) == [("1", "b"), ("2", "a"), ("2", "b")]
    assert steps(store, "p") == [("2", "")]
    recorded = listed(store)
    assert [(each.id, each.kind, each.memories) for each in recorded] == [
        ("p", ActionKind.PIN, 1),
        ("t", ActionKind.TAG, 2),
    ]


def test_edits_and_new_memories_are_recorded(store: MemoryStore) -> None:
    brought = action("i", ActionKind.IMPORT)
    store.memories.remember([Draft(memory("1"))], action=brought)
    store.memories.remember([Draft(memory("1")), Draft(memory("2"))], action=brought)
    exported = ExportedMemory(id="3", seq=9, session="s", content="x", created_at=NOON)
    store.exchange.restore([exported], action=brought)
    edit_memory(store, "2", "other words", action("e", ActionKind.EDIT))
    edit_memory(store, "1", "other words")

    assert steps(store, "i") == [("1", ""), ("2", ""), ("3", "")]
    assert steps(store, "e") == [("2", "")]
    edited = {(each.seq, "") for each in store.undo.steps("e")}
    assert store.undo.changed_after("i") == edited
    assert store.undo.changed_after("e") == set()


def test_nothing_is_left_of_an_action_that_was_deleted(store: MemoryStore) -> None:
    remember_batch(store, memory("1"))
    store.changes.tag(["1"], ["a"], action=action("t"))
    store.changes.tag(["1"], ["b"], action=action("u"))

    store.undo.delete("t")

    assert (steps(store, "t"), steps(store, "u")) == ([], [("1", "b")])
    assert listed(store, "t") == []


def test_old_actions_and_those_beyond_the_limit_expire(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember_batch(store, memory("1"))
    store.changes.tag(["1"], ["a"], action=action("old"))
    store.deletion.forget(["2"], action=action("young", ActionKind.FORGET, days=1))
    store.changes.tag(["1"], ["b"], action=action("new", days=2))
    assert not store.undo.has_expired(NOON - timedelta(days=1))

    store.undo.expire(NOON)

    assert [each.id for each in listed(store)] == ["new", "young"]
    assert steps(store, "old") == []
    assert not store.undo.has_expired(NOON)
    monkeypatch.setattr(undo, "ACTIONS_MAX", 1)
    assert store.undo.has_expired(NOON)
    store.undo.expire(NOON)
    assert [each.id for each in listed(store)] == ["new"]


def test_forgotten_memories_leave_no_tag_behind(store: MemoryStore) -> None:
    remember_batch(store, memory("1"), memory("2"))
    store.changes.tag(["1", "2"], ["a"], action=action("t"))

    store.deletion.forget(["1"])
    store.deletion.forget(["2"], grace=Grace("call", NOON))
    back = store.deletion.put_back(["2"])

    assert [id for id, _ in back] == ["2"]
    assert steps(store, "t") == [("2", "a")]

    store.deletion.forget(["2"], grace=Grace("call", NOON))
    store.deletion.erase(["2"])

    (left,) = listed(store, "t")
    assert left.memories == 0


def test_no_action_is_of_a_reused_number(store: MemoryStore) -> None:
    remember_batch(store, memory("1"))
    store.changes.tag(["1"], ["a"], action=action("t"))
    (step,) = store.undo.steps("t")
    store.deletion.forget(["1"], grace=Grace("call", NOON))

    taker = ExportedMemory(
        id="taker", seq=step.seq, session="s", content="x", created_at=NOON
    )
    store.exchange.restore([taker])

    assert steps(store, "t") == []
