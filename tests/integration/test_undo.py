"""Undo of what was done last: edits, tags, pins, forgets, imports and sleep cycles."""

from collections.abc import Iterable
from typing import Any

import pytest
from support.cases import each_case
from support.fakes import raising, trio
from support.leftovers import left_of
from support.services import Lab

from mnemosyned.errors import CannotUndo, InvalidRequest, NotFound, StorageFailed
from mnemosyned.memory.values import ACTIONS_KEPT, ActionStep
from mnemosyned.verbs.memories import EditMemory, Pin, Remember, Tag, Unpin, Untag
from mnemosyned.verbs.request import Request
from mnemosyned.verbs.retention import Forget, Restore
from mnemosyned.verbs.upkeep import LAST_ACTION, Undo

WORD = "Zqxjv48213Kwyz"


@pytest.fixture
def lab(lab: Lab) -> Lab:
    """A service with a memory of a tag, and one that is pinned."""
    lab.remember("the kettle is hot", id="kettle", session="k", tags=["tea"])
    lab.remember("the pan is cold", id="pan", session="k", pinned=True)
    lab.clock.advance(minutes=1)
    return lab


def everything(lab: Lab) -> list[Any]:
    listed = lab.list(limit=1_000, reveal=True).memories
    return sorted(
        [
            (each.id, each.content, each.session, each.tags, each.pinned)
            for each in listed
        ],
        key=lambda each: each[0],
    )


def list_kinds(lab: Lab) -> list[str]:
    return [action.kind.value for action in lab.undo(list=True)]


CHANGES: dict[str, Request[Any]] = {
    "edit": EditMemory("kettle", text="the kettle is cold", importance=0.9, tags=["x"]),
    "edit many": EditMemory(of_session="k", session="other", tags=["x", "y"]),
    "tag": Tag(["kettle", "pan"], tags=["tea", "metal"]),
    "untag": Untag(["kettle", "pan"], tags=["tea", "metal"]),
    "pin": Pin(["kettle", "pan"]),
    "unpin": Unpin(["kettle", "pan"]),
}


@each_case("name", CHANGES)
def test_an_undo_sets_everything_as_it_was(lab: Lab, name: str) -> None:
    before = everything(lab)
    lab.do(CHANGES[name])
    assert everything(lab) != before

    preview = lab.undo(dry_run=True)
    undone = lab.undo()

    assert everything(lab) == before
    kind = name.partition(" ")[0]
    assert [each.actions[0].kind for each in (preview, undone)] == [kind, kind]
    assert preview.memories == undone.memories > 0
    assert preview.actions[0].sample in (
        "the kettle is hot",
        "the kettle is cold",
        "the pan is cold",
    )
    assert undone.left == {}
    assert list_kinds(lab) == []


def test_undo_goes_back_step_by_step(lab: Lab) -> None:
    before = everything(lab)
    lab.do(*CHANGES.values())

    kinds = [lab.undo().actions[0].kind.value for _ in CHANGES]

    assert everything(lab) == before
    assert kinds == [name.partition(" ")[0] for name in reversed(CHANGES)]
    with pytest.raises(CannotUndo, match="nothing to undo"):
        lab.undo()


def test_an_earlier_edit_is_undone_by_id_unless_its_field_changed(lab: Lab) -> None:
    lab.do(
        EditMemory("kettle", importance=0.9),
        EditMemory("kettle", text="the kettle boils"),
        EditMemory("kettle", text="the kettle whistles"),
    )
    whistles, boils, weight = lab.undo(list=True)

    lab.undo(weight.id)
    with pytest.raises(CannotUndo, match="changed since"):
        lab.undo(boils.id)

    assert lab.memory("kettle").content == "the kettle whistles"
    assert lab.memory("kettle").importance == 0.5
    lab.undo(whistles.id)
    lab.undo(boils.id)
    assert lab.memory("kettle").content == "the kettle is hot"


@pytest.mark.parametrize(
    ("done", "taken_back"),
    [
        (Pin("kettle"), Unpin("kettle")),
        (Tag("kettle", tags=["metal"]), Untag("kettle", tags=["metal"])),
    ],
)
def test_what_was_done_again_stays(
    lab: Lab, done: Request[Any], taken_back: Request[Any]
) -> None:
    lab.do(done, taken_back, done, EditMemory("kettle", importance=0.9))
    after = lab.memory("kettle")
    *_, first = lab.undo(list=True)

    with pytest.raises(CannotUndo, match="changed since"):
        lab.undo(first.id)

    assert lab.memory("kettle") == after


def test_an_edit_that_drops_the_history_stays_and_takes_tags_along(lab: Lab) -> None:
    lab.do(Tag("kettle", tags=[WORD]), Untag("kettle", tags=[WORD]))
    assert left_of(lab.store, WORD.lower())

    lab.do(EditMemory("kettle", text="it boils", drop_history=True))

    assert left_of(lab.store, WORD.lower()) == []
    with pytest.raises(CannotUndo, match="changed since"):
        lab.undo()


def test_an_edit_of_an_archived_memory_is_undone_with_its_summary(lab: Lab) -> None:
    lab.put(*trio("a", hours_ago=200))
    lab.run_cycle(force=True)
    lab.clock.advance(minutes=1)
    lab.do(EditMemory("a1", text=f"the word is {WORD}"))
    assert lab.recall(WORD).hits

    lab.undo()

    assert not lab.recall(WORD).hits
    assert lab.memory("a1").content != f"the word is {WORD}"


def test_a_pin_of_a_memory_that_was_archived_since_is_left(lab: Lab) -> None:
    lab.do(Unpin(["pan"]), Remember("a third", id="third", session="k"))
    lab.clock.advance(hours=200)
    lab.run_cycle(force=True)

    (unpin,) = [each for each in lab.undo(list=True) if each.kind == "unpin"]
    with pytest.raises(CannotUndo, match="archived since"):
        lab.undo(unpin.id)


def test_a_forget_is_undone_in_its_grace_time_then_earlier_actions(lab: Lab) -> None:
    lab.change({"forget.grace_hours": 1})
    before = everything(lab)
    lab.do(CHANGES["tag"], Forget(session="k"))
    preview = lab.undo(dry_run=True)

    assert lab.undo().memories == 2
    assert (preview.actions[0].kind, preview.actions[0].sample) == ("forget", "")
    assert lab.undo().actions[0].kind == "tag"
    assert [each[:4] for each in everything(lab)] == [each[:4] for each in before]


@each_case("ids", [["kettle", "pan"], ["a forget call"]])
def test_a_forget_that_was_restored_is_passed_over(lab: Lab, ids: list[str]) -> None:
    lab.change({"forget.grace_hours": 1})
    lab.do(CHANGES["tag"])
    call = lab.forget(["kettle", "pan"]).call
    assert list_kinds(lab) == ["forget", "tag"]

    lab.do(*(Restore(call if " " in id else id) for id in ids))

    assert list_kinds(lab) == ["tag"]
    assert lab.undo().actions[0].kind == "tag"


def test_a_final_forget_is_not_passed_over(lab: Lab) -> None:
    lab.do(CHANGES["tag"], Forget("pan"))

    with pytest.raises(CannotUndo, match="grace_hours"):
        lab.undo()

    assert list_kinds(lab) == ["tag"]
    (tag,) = lab.undo(list=True)
    assert lab.undo(tag.id).memories == 1


def test_after_the_grace_time_no_tag_is_left(lab: Lab) -> None:
    lab.change({"forget.grace_hours": 1})
    lab.do(Tag("kettle", tags=[WORD]), Untag("kettle", tags=[WORD]))
    lab.do(EditMemory("kettle", text=WORD), Forget("kettle"))
    assert left_of(lab.store, WORD.lower())

    lab.clock.advance(hours=2)
    lab.service.look_after_file()

    assert left_of(lab.store, WORD) == left_of(lab.store, WORD.lower()) == []
    assert list_kinds(lab) == []


def bring(lab: Lab, ids: Iterable[str], import_id: str) -> None:
    memories = [
        Remember(f"brought {id}", id=f"m-{id}", session="brought") for id in ids
    ]
    lab.remember_many(memories, import_id=import_id)


@pytest.mark.parametrize("hours", [0, 24])
def test_an_import_is_undone_but_for_changes_and_repeated(lab: Lab, hours: int) -> None:
    lab.change({"forget.grace_hours": hours})
    before = everything(lab)
    bring(lab, "ab", "one")
    bring(lab, "bc", "one")
    lab.clock.advance(minutes=1)
    lab.do(EditMemory("m-b", text="mine now"), Tag("m-c", tags=["x"]))
    assert lab.undo().actions[0].kind == "tag"

    preview = lab.undo("one", dry_run=True)
    undone = lab.undo("one")

    assert (preview.memories, undone.memories) == (2, 2)
    assert preview.left == undone.left == {"changed since": ["m-b"]}
    assert ("restore" in undone.note) == bool(hours)
    assert everything(lab) == sorted(
        [*before, ("m-b", "mine now", "brought", (), False)]
    )
    bring(lab, "ac", "two")
    assert {each[0] for each in everything(lab)} >= {"m-a", "m-c"}
    assert list_kinds(lab) == ["import", "edit"]


def test_a_memory_that_is_edited_while_its_import_is_undone_stays(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    bring(lab, "ab", "one")
    lab.clock.advance(minutes=1)
    read = lab.store.undo.changed_after

    def edit_after(id: str) -> set[tuple[int, str]]:
        changed = read(id)
        lab.edit("m-a", text="mine now")
        return changed

    monkeypatch.setattr(lab.store.undo, "changed_after", edit_after)
    undone = lab.undo("one")

    assert (undone.memories, undone.left) == (1, {"changed since": ["m-a"]})
    assert lab.memory("m-a").content == "mine now"


def test_an_import_cannot_have_the_id_of_another_action(lab: Lab) -> None:
    lab.do(CHANGES["tag"])
    before = everything(lab)
    (tag,) = lab.undo(list=True)

    for id in (tag.id, LAST_ACTION):
        with pytest.raises(InvalidRequest, match="give the import another"):
            bring(lab, "a", id)

    assert everything(lab) == before
    assert lab.undo(list=True).actions == [tag]


def test_the_last_of_actions_and_sleep_cycles_is_undone(lab: Lab) -> None:
    lab.do(CHANGES["tag"])
    lab.put(*trio("a", hours_ago=200))
    slept = lab.run_cycle(force=True).cycle
    lab.clock.advance(minutes=1)
    lab.do(CHANGES["edit"])

    assert list_kinds(lab) == ["edit", "sleep", "tag"]
    undone = [lab.undo() for _ in range(3)]

    assert [each.actions[0].kind for each in undone] == ["edit", "sleep", "tag"]
    assert undone[1].actions[0].id == slept
    assert undone[1].cycle
    assert undone[1].memories == undone[1].cycle.restored == 4


def test_what_is_listed_can_be_undone_until_then(lab: Lab) -> None:
    lab.do(CHANGES["tag"])
    (action,) = lab.undo(list=True)
    assert action.until == action.at + ACTIONS_KEPT

    lab.clock.advance(days=ACTIONS_KEPT.days)

    assert list_kinds(lab) == []
    with pytest.raises(CannotUndo, match="nothing to undo"):
        lab.undo()
    with pytest.raises(NotFound):
        lab.undo(action.id)
    assert lab.store.undo.has_expired(lab.clock.now())
    lab.service.look_after_file()
    assert not lab.store.undo.has_expired(lab.clock.now())


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
    lab: Lab, request: Undo, error: type[Exception], says: str
) -> None:
    lab.do(CHANGES["tag"])

    with pytest.raises(error, match=says):
        lab.call(request)


@each_case("name", CHANGES)
def test_an_undo_that_was_interrupted_blocks_no_earlier_action(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    before = everything(lab)
    lab.do(EditMemory("pan", importance=0.9), CHANGES[name])

    with monkeypatch.context() as broken:
        broken.setattr(lab.store.undo, "delete", raising(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            lab.undo()
    undone = lab.undo()

    assert undone.actions[0].kind == "edit"
    assert lab.memory("pan").importance == 0.5
    assert everything(lab) == before
    assert list_kinds(lab) == []


def test_a_forget_that_failed_blocks_no_earlier_action(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.do(EditMemory("pan", importance=0.9))

    with monkeypatch.context() as full:
        full.setattr(
            lab.store.deletion, "_find", raising(StorageFailed("the disk is full"))
        )
        with pytest.raises(StorageFailed):
            lab.forget("kettle", now=True)
    undone = lab.undo()

    assert undone.actions[0].kind == "edit"
    assert lab.memory("pan").importance == 0.5


def test_an_undo_leaves_out_what_is_forgotten_at_the_same_time(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.do(Tag(["kettle", "pan"], tags=["x"]))
    read = lab.store.undo.steps

    def forget_after(id: str, *, limit: int = 1_000) -> list[ActionStep]:
        steps = read(id, limit=limit)
        if limit > 1:
            lab.store.deletion.forget(["pan"])
        return steps

    monkeypatch.setattr(lab.store.undo, "steps", forget_after)

    assert lab.undo().memories == 1
    assert lab.memory("kettle").tags == ("tea",)
