"""Undo of what was done last: edits, tags, pins, forgets, imports and sleep cycles."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from support.cases import each_case
from support.fakes import trio
from support.leftovers import left_of
from support.worlds import World

from mnemosyned.errors import CannotUndo, InvalidRequest, NotFound
from mnemosyned.memory.values import ACTIONS_KEPT, ActionStep
from mnemosyned.verbs.listing import ListMemories
from mnemosyned.verbs.memories import (
    EditMemory,
    Pin,
    Recall,
    Remember,
    RememberMany,
    Tag,
    Unpin,
    Untag,
)
from mnemosyned.verbs.request import Request
from mnemosyned.verbs.retention import Forget, Restore
from mnemosyned.verbs.upkeep import LAST_ACTION, Undo

WORD = "Zqxjv48213Kwyz"


@pytest.fixture
def world(world: World) -> World:
    """A service with a memory of a tag, and one that is pinned."""
    world.call(Remember("the kettle is hot", id="kettle", session="k", tags=["tea"]))
    world.call(Remember("the pan is cold", id="pan", session="k", pinned=True))
    world.clock.advance(minutes=1)
    return world


def everything(world: World) -> list[Any]:
    listed = world.call(ListMemories(limit=1_000, reveal=True)).memories
    return sorted(
        [
            (each.id, each.content, each.session, each.tags, each.pinned)
            for each in listed
        ],
        key=lambda each: each[0],
    )


def list_kinds(world: World) -> list[str]:
    return [action.kind.value for action in world.call(Undo(list=True))]


CHANGES: dict[str, Request[Any]] = {
    "edit": EditMemory("kettle", text="the kettle is cold", importance=0.9, tags=["x"]),
    "edit many": EditMemory(of_session="k", session="other", tags=["x", "y"]),
    "tag": Tag(["kettle", "pan"], tags=["tea", "metal"]),
    "untag": Untag(["kettle", "pan"], tags=["tea", "metal"]),
    "pin": Pin(["kettle", "pan"]),
    "unpin": Unpin(["kettle", "pan"]),
}


@each_case("name", CHANGES)
def test_an_undo_sets_everything_as_it_was(world: World, name: str) -> None:
    before = everything(world)
    world.do(CHANGES[name])
    assert everything(world) != before

    preview = world.call(Undo(dry_run=True))
    undone = world.call(Undo())

    assert everything(world) == before
    kind = name.partition(" ")[0]
    assert [each.actions[0].kind for each in (preview, undone)] == [kind, kind]
    assert preview.memories == undone.memories > 0
    assert preview.actions[0].sample in (
        "the kettle is hot",
        "the kettle is cold",
        "the pan is cold",
    )
    assert undone.left == {}
    assert list_kinds(world) == []


def test_undo_goes_back_step_by_step(world: World) -> None:
    before = everything(world)
    world.do(*CHANGES.values())

    kinds = [world.call(Undo()).actions[0].kind.value for _ in CHANGES]

    assert everything(world) == before
    assert kinds == [name.partition(" ")[0] for name in reversed(CHANGES)]
    with pytest.raises(CannotUndo, match="nothing to undo"):
        world.call(Undo())


def test_an_earlier_edit_is_undone_by_its_id_unless_its_field_changed_again(
    world: World,
) -> None:
    world.do(
        EditMemory("kettle", importance=0.9),
        EditMemory("kettle", text="the kettle boils"),
        EditMemory("kettle", text="the kettle whistles"),
    )
    whistles, boils, weight = world.call(Undo(list=True))

    world.call(Undo(weight.id))
    with pytest.raises(CannotUndo, match="changed since"):
        world.call(Undo(boils.id))

    assert world.memory("kettle").content == "the kettle whistles"
    assert world.memory("kettle").importance == 0.5
    world.call(Undo(whistles.id))
    world.call(Undo(boils.id))
    assert world.memory("kettle").content == "the kettle is hot"


def test_an_edit_that_drops_the_history_stays_and_takes_old_tags_along(
    world: World,
) -> None:
    world.do(Tag("kettle", tags=[WORD]), Untag("kettle", tags=[WORD]))
    assert left_of(world.store, WORD.lower())

    world.do(EditMemory("kettle", text="it boils", drop_history=True))

    assert left_of(world.store, WORD.lower()) == []
    with pytest.raises(CannotUndo, match="changed since"):
        world.call(Undo())


def test_an_edit_of_an_archived_memory_is_undone_with_its_summary(world: World) -> None:
    world.remember(*trio("a", hours_ago=200))
    world.sleep(force=True)
    world.clock.advance(minutes=1)
    world.do(EditMemory("a1", text=f"the word is {WORD}"))
    assert world.call(Recall(WORD)).hits

    world.call(Undo())

    assert not world.call(Recall(WORD)).hits
    assert world.memory("a1").content != f"the word is {WORD}"


def test_a_pin_of_a_memory_that_was_archived_since_is_left(world: World) -> None:
    world.do(Unpin(["pan"]), Remember("a third", id="third", session="k"))
    world.clock.advance(hours=200)
    world.sleep(force=True)

    (unpin,) = [each for each in world.call(Undo(list=True)) if each.kind == "unpin"]
    with pytest.raises(CannotUndo, match="archived since"):
        world.call(Undo(unpin.id))


# --------------------------------------------------------------------- forget


def test_a_forget_is_undone_in_its_grace_time_and_then_what_was_before_it(
    world: World,
) -> None:
    world.change({"forget.grace_hours": 1})
    before = everything(world)
    world.do(CHANGES["tag"], Forget(session="k"))
    preview = world.call(Undo(dry_run=True))

    assert world.call(Undo()).memories == 2
    assert (preview.actions[0].kind, preview.actions[0].sample) == ("forget", "")
    assert world.call(Undo()).actions[0].kind == "tag"
    assert [each[:4] for each in everything(world)] == [each[:4] for each in before]


@each_case("ids", [["kettle", "pan"], ["a forget call"]])
def test_a_forget_that_was_restored_is_passed_over(
    world: World, ids: list[str]
) -> None:
    world.change({"forget.grace_hours": 1})
    world.do(CHANGES["tag"])
    call = world.call(Forget(["kettle", "pan"])).call
    assert list_kinds(world) == ["forget", "tag"]

    world.do(*(Restore(call if " " in id else id) for id in ids))

    assert list_kinds(world) == ["tag"]
    assert world.call(Undo()).actions[0].kind == "tag"


def test_a_final_forget_is_not_passed_over(world: World) -> None:
    world.do(CHANGES["tag"], Forget("pan"))

    with pytest.raises(CannotUndo, match="grace_hours"):
        world.call(Undo())

    assert list_kinds(world) == ["tag"]
    (tag,) = world.call(Undo(list=True))
    assert world.call(Undo(tag.id)).memories == 1


def test_after_the_grace_time_no_tag_is_left(world: World) -> None:
    world.change({"forget.grace_hours": 1})
    world.do(Tag("kettle", tags=[WORD]), Untag("kettle", tags=[WORD]))
    world.do(EditMemory("kettle", text=WORD), Forget("kettle"))
    assert left_of(world.store, WORD.lower())

    world.clock.advance(hours=2)
    world.service.look_after_file()

    assert left_of(world.store, WORD) == left_of(world.store, WORD.lower()) == []
    assert list_kinds(world) == []


# --------------------------------------------------------------------- import


def bring(world: World, ids: Iterable[str], import_id: str) -> None:
    memories = [
        Remember(f"brought {id}", id=f"m-{id}", session="brought") for id in ids
    ]
    world.call(RememberMany(memories, import_id=import_id))


@pytest.mark.parametrize("hours", [0, 24])
def test_an_import_is_undone_but_for_what_was_changed_and_can_be_repeated(
    world: World, hours: int
) -> None:
    world.change({"forget.grace_hours": hours})
    before = everything(world)
    bring(world, "ab", "one")
    bring(world, "bc", "one")
    world.clock.advance(minutes=1)
    world.do(EditMemory("m-b", text="mine now"), Tag("m-c", tags=["x"]))
    assert world.call(Undo()).actions[0].kind == "tag"

    preview = world.call(Undo("one", dry_run=True))
    undone = world.call(Undo("one"))

    assert (preview.memories, undone.memories) == (2, 2)
    assert preview.left == undone.left == {"changed since": ["m-b"]}
    assert ("restore" in undone.note) == bool(hours)
    assert everything(world) == sorted(
        [*before, ("m-b", "mine now", "brought", (), False)]
    )
    bring(world, "ac", "two")
    assert {each[0] for each in everything(world)} >= {"m-a", "m-c"}
    assert list_kinds(world) == ["import", "edit"]


def test_a_memory_that_is_edited_while_its_import_is_undone_stays(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    bring(world, "ab", "one")
    world.clock.advance(minutes=1)
    read = world.store.actions.changed_after

    def edit_after(id: str) -> set[int]:
        changed = read(id)
        world.call(EditMemory("m-a", text="mine now"))
        return changed

    monkeypatch.setattr(world.store.actions, "changed_after", edit_after)
    undone = world.call(Undo("one"))

    assert (undone.memories, undone.left) == (1, {"changed since": ["m-a"]})
    assert world.memory("m-a").content == "mine now"


def test_an_import_cannot_have_the_id_of_another_action(world: World) -> None:
    world.do(CHANGES["tag"])
    before = everything(world)
    (tag,) = world.call(Undo(list=True))

    for id in (tag.id, LAST_ACTION):
        with pytest.raises(InvalidRequest, match="give the import another"):
            bring(world, "a", id)

    assert everything(world) == before
    assert world.call(Undo(list=True)).actions == [tag]


# ---------------------------------------------------------------------- sleep


def test_the_last_of_actions_and_sleep_cycles_is_undone(world: World) -> None:
    world.do(CHANGES["tag"])
    world.remember(*trio("a", hours_ago=200))
    slept = world.sleep(force=True).cycle
    world.clock.advance(minutes=1)
    world.do(CHANGES["edit"])

    assert list_kinds(world) == ["edit", "sleep", "tag"]
    undone = [world.call(Undo()) for _ in range(3)]

    assert [each.actions[0].kind for each in undone] == ["edit", "sleep", "tag"]
    assert undone[1].actions[0].id == slept
    assert undone[1].cycle
    assert undone[1].memories == undone[1].cycle.restored == 4


# ----------------------------------------------------------------- the rest


def test_what_is_listed_can_be_undone_until_then_and_is_kept_no_longer(
    world: World,
) -> None:
    world.do(CHANGES["tag"])
    (action,) = world.call(Undo(list=True))
    assert action.until == action.at + ACTIONS_KEPT

    world.clock.advance(days=ACTIONS_KEPT.days)

    assert list_kinds(world) == []
    with pytest.raises(CannotUndo, match="nothing to undo"):
        world.call(Undo())
    with pytest.raises(NotFound):
        world.call(Undo(action.id))
    assert world.store.actions.are_expired(world.clock.now())
    world.service.look_after_file()
    assert not world.store.actions.are_expired(world.clock.now())


@each_case(
    ("request", "error", "says"),
    [
        (Undo(list=True, dry_run=True), InvalidRequest, "list"),
        (Undo(keep_hours=3), InvalidRequest, "keep_hours"),
        (Undo("kettle", list=True), InvalidRequest, "list"),
        (Undo("nobody"), NotFound, "no action and no sleep cycle 'nobody'"),
    ],
)
def test_a_request_that_does_not_fit_is_refused(
    world: World, request: Undo, error: type[Exception], says: str
) -> None:
    world.do(CHANGES["tag"])

    with pytest.raises(error, match=says):
        world.call(request)


@each_case("name", CHANGES)
def test_an_undo_that_was_interrupted_blocks_no_earlier_action(
    world: World, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    before = everything(world)
    world.do(EditMemory("pan", importance=0.9), CHANGES[name])

    def fail(_: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(world.store.actions, "delete", fail)
        with pytest.raises(KeyboardInterrupt):
            world.call(Undo())
    undone = world.call(Undo())

    assert undone.actions[0].kind == "edit"
    assert world.memory("pan").importance == 0.5
    assert everything(world) == before
    assert list_kinds(world) == []


def test_an_undo_leaves_out_what_is_forgotten_at_the_same_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.do(Tag(["kettle", "pan"], tags=["x"]))
    read = world.store.actions.steps

    def forget_after(id: str, *, limit: int = 1_000) -> list[ActionStep]:
        steps = read(id, limit=limit)
        if limit > 1:
            world.store.deletion.forget(["pan"])
        return steps

    monkeypatch.setattr(world.store.actions, "steps", forget_after)

    assert world.call(Undo()).memories == 1
    assert world.memory("kettle").tags == ("tea",)
