"""Undo of what was done last: edits, tags, pins, forgets, imports and sleep cycles."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from support.cases import each_case
from support.fakes import FakeClock, remember_batch, trio
from support.leftovers import left_of
from support.settings import change
from support.stores import get_memory, run_cycle

from mnemosyned.config.settings import SettingsInForce
from mnemosyned.errors import CannotUndo, InvalidRequest, NotFound
from mnemosyned.memory.edit import KEPT, ActionStep
from mnemosyned.service.service import MemoryService
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.storage.sqlite.store import SqliteStore
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
from mnemosyned.verbs.upkeep import LAST_ACTION, Undo, Undone

WORD = "Zqxjv48213Kwyz"


@pytest.fixture
def service(service: MemoryService, clock: FakeClock) -> MemoryService:
    """The service with a memory of a tag, and one that is pinned."""
    service.call(Remember("the kettle is hot", id="kettle", session="k", tags=["tea"]))
    service.call(Remember("the pan is cold", id="pan", session="k", pinned=True))
    clock.advance(minutes=1)
    return service


def everything(service: MemoryService) -> list[Any]:
    listed = service.call(ListMemories(limit=1_000, reveal=True)).memories
    return sorted(
        [
            (each.id, each.content, each.session, each.tags, each.pinned)
            for each in listed
        ],
        key=lambda each: each[0],
    )


def list_kinds(service: MemoryService) -> list[str]:
    return [action.kind.value for action in service.call(Undo(list=True))]


def do(service: MemoryService, clock: FakeClock, *requests: Request[Any]) -> None:
    for request in requests:
        service.call(request)
        clock.advance(minutes=1)


CHANGES: dict[str, Request[Any]] = {
    "edit": EditMemory("kettle", text="the kettle is cold", importance=0.9, tags=["x"]),
    "edit many": EditMemory(of_session="k", session="other", tags=["x", "y"]),
    "tag": Tag(["kettle", "pan"], tags=["tea", "metal"]),
    "untag": Untag(["kettle", "pan"], tags=["tea", "metal"]),
    "pin": Pin(["kettle", "pan"]),
    "unpin": Unpin(["kettle", "pan"]),
}


@each_case("name", CHANGES)
def test_an_undo_sets_everything_as_it_was(
    service: MemoryService, clock: FakeClock, name: str
) -> None:
    before = everything(service)
    do(service, clock, CHANGES[name])
    assert everything(service) != before

    preview = service.call(Undo(dry_run=True))
    undone = service.call(Undo())

    assert everything(service) == before
    kind = name.partition(" ")[0]
    assert [each.actions[0].kind for each in (preview, undone)] == [kind, kind]
    assert preview.memories == undone.memories > 0
    assert preview.actions[0].sample in (
        "the kettle is hot",
        "the kettle is cold",
        "the pan is cold",
    )
    assert undone.left == {}
    assert list_kinds(service) == []


def test_undo_goes_back_step_by_step(service: MemoryService, clock: FakeClock) -> None:
    before = everything(service)
    do(service, clock, *CHANGES.values())

    kinds = [service.call(Undo()).actions[0].kind.value for _ in CHANGES]

    assert everything(service) == before
    assert kinds == [name.partition(" ")[0] for name in reversed(CHANGES)]
    with pytest.raises(CannotUndo, match="nothing to undo"):
        service.call(Undo())


def test_an_earlier_edit_is_undone_by_its_id_unless_its_field_changed_again(
    store: SqliteStore, service: MemoryService, clock: FakeClock
) -> None:
    do(
        service,
        clock,
        EditMemory("kettle", importance=0.9),
        EditMemory("kettle", text="the kettle boils"),
        EditMemory("kettle", text="the kettle whistles"),
    )
    whistles, boils, weight = service.call(Undo(list=True))

    service.call(Undo(weight.id))
    with pytest.raises(CannotUndo, match="changed since"):
        service.call(Undo(boils.id))

    assert get_memory(store, "kettle").content == "the kettle whistles"
    assert get_memory(store, "kettle").importance == 0.5
    service.call(Undo(whistles.id))
    service.call(Undo(boils.id))
    assert get_memory(store, "kettle").content == "the kettle is hot"


def test_an_edit_whose_earlier_words_were_dropped_stays(
    service: MemoryService, clock: FakeClock
) -> None:
    do(service, clock, EditMemory("kettle", text="it boils", drop_history=True))

    with pytest.raises(CannotUndo, match="changed since"):
        service.call(Undo())


def test_a_tag_that_was_taken_is_dropped_with_the_history(
    store: SqliteStore, service: MemoryService, clock: FakeClock
) -> None:
    do(service, clock, Tag("kettle", tags=[WORD]), Untag("kettle", tags=[WORD]))
    assert left_of(store, WORD.lower())

    do(service, clock, EditMemory("kettle", text="it boils", drop_history=True))

    assert left_of(store, WORD.lower()) == []


def test_an_edit_of_an_archived_memory_is_undone_with_its_summary(
    service: MemoryService, store: SqliteStore, cycle: SleepCycle, clock: FakeClock
) -> None:
    remember_batch(store, *trio("a", hours_ago=200))
    run_cycle(cycle)
    clock.advance(minutes=1)
    do(service, clock, EditMemory("a1", text=f"the word is {WORD}"))
    assert service.call(Recall(WORD)).hits

    service.call(Undo())

    assert not service.call(Recall(WORD)).hits
    assert get_memory(store, "a1").content != f"the word is {WORD}"


def test_a_pin_of_a_memory_that_was_archived_since_is_left(
    service: MemoryService, clock: FakeClock, cycle: SleepCycle
) -> None:
    do(service, clock, Unpin(["pan"]), Remember("a third", id="third", session="k"))
    clock.advance(hours=200)
    run_cycle(cycle)

    (unpin,) = [each for each in service.call(Undo(list=True)) if each.kind == "unpin"]
    with pytest.raises(CannotUndo, match="archived since"):
        service.call(Undo(unpin.id))


# --------------------------------------------------------------------- forget


def test_a_forget_is_undone_in_its_grace_time_and_then_what_was_before_it(
    service: MemoryService, clock: FakeClock, settings: SettingsInForce
) -> None:
    change(settings, {"forget.grace_hours": 1})
    before = everything(service)
    do(service, clock, CHANGES["tag"], Forget(session="k"))
    preview = service.call(Undo(dry_run=True))

    assert service.call(Undo()).memories == 2
    assert (preview.actions[0].kind, preview.actions[0].sample) == ("forget", "")
    assert service.call(Undo()).actions[0].kind == "tag"
    assert [each[:4] for each in everything(service)] == [each[:4] for each in before]


@each_case("ids", [["kettle", "pan"], ["a forget call"]])
def test_a_forget_that_was_restored_is_passed_over(
    service: MemoryService, clock: FakeClock, settings: SettingsInForce, ids: list[str]
) -> None:
    change(settings, {"forget.grace_hours": 1})
    do(service, clock, CHANGES["tag"])
    call = service.call(Forget(["kettle", "pan"])).call
    assert list_kinds(service) == ["forget", "tag"]

    do(service, clock, *(Restore(call if " " in id else id) for id in ids))

    assert list_kinds(service) == ["tag"]
    assert service.call(Undo()).actions[0].kind == "tag"


def test_a_final_forget_is_not_passed_over(
    service: MemoryService, clock: FakeClock
) -> None:
    do(service, clock, CHANGES["tag"], Forget("pan"))

    with pytest.raises(CannotUndo, match="grace_hours"):
        service.call(Undo())

    assert list_kinds(service) == ["tag"]
    (tag,) = service.call(Undo(list=True))
    assert service.call(Undo(tag.id)).memories == 1


def test_after_the_grace_time_no_tag_is_left(
    store: SqliteStore,
    service: MemoryService,
    clock: FakeClock,
    settings: SettingsInForce,
) -> None:
    change(settings, {"forget.grace_hours": 1})
    do(service, clock, Tag("kettle", tags=[WORD]), Untag("kettle", tags=[WORD]))
    do(service, clock, EditMemory("kettle", text=WORD), Forget("kettle"))
    assert left_of(store, WORD.lower())

    clock.advance(hours=2)
    service.look_after_file()

    assert left_of(store, WORD) == left_of(store, WORD.lower()) == []
    assert list_kinds(service) == []


# --------------------------------------------------------------------- import


def bring(service: MemoryService, ids: Iterable[str], import_id: str) -> None:
    memories = [
        Remember(f"brought {id}", id=f"m-{id}", session="brought") for id in ids
    ]
    service.call(RememberMany(memories, import_id=import_id))


@pytest.mark.parametrize("hours", [0, 24])
def test_an_import_is_undone_but_for_what_was_changed_and_can_be_repeated(
    service: MemoryService, clock: FakeClock, settings: SettingsInForce, hours: int
) -> None:
    change(settings, {"forget.grace_hours": hours})
    before = everything(service)
    bring(service, "ab", "one")
    bring(service, "bc", "one")
    clock.advance(minutes=1)
    do(service, clock, EditMemory("m-b", text="mine now"), Tag("m-c", tags=["x"]))
    assert service.call(Undo()).actions[0].kind == "tag"

    preview = service.call(Undo("one", dry_run=True))
    undone = service.call(Undo("one"))

    assert (preview.memories, undone.memories) == (2, 2)
    assert preview.left == undone.left == {"changed since": ["m-b"]}
    assert ("restore" in undone.note) == bool(hours)
    assert everything(service) == sorted(
        [*before, ("m-b", "mine now", "brought", (), False)]
    )
    bring(service, "ac", "two")
    assert {each[0] for each in everything(service)} >= {"m-a", "m-c"}
    assert list_kinds(service) == ["import", "edit"]


def test_a_memory_that_is_edited_while_its_import_is_undone_stays(
    store: SqliteStore,
    service: MemoryService,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bring(service, "ab", "one")
    clock.advance(minutes=1)
    read = store.actions.changed_after

    def edit_after(id: str) -> set[int]:
        changed = read(id)
        service.call(EditMemory("m-a", text="mine now"))
        return changed

    monkeypatch.setattr(store.actions, "changed_after", edit_after)
    undone = service.call(Undo("one"))

    assert (undone.memories, undone.left) == (1, {"changed since": ["m-a"]})
    assert get_memory(store, "m-a").content == "mine now"


def test_an_import_cannot_have_the_id_of_another_action(
    service: MemoryService, clock: FakeClock
) -> None:
    do(service, clock, CHANGES["tag"])
    before = everything(service)
    (tag,) = service.call(Undo(list=True))

    for id in (tag.id, LAST_ACTION):
        with pytest.raises(InvalidRequest, match="give the import another"):
            bring(service, "a", id)

    assert everything(service) == before
    assert service.call(Undo(list=True)).actions == [tag]


# ---------------------------------------------------------------------- sleep


def test_the_last_of_actions_and_sleep_cycles_is_undone(
    service: MemoryService, store: SqliteStore, cycle: SleepCycle, clock: FakeClock
) -> None:
    do(service, clock, CHANGES["tag"])
    remember_batch(store, *trio("a", hours_ago=200))
    slept = run_cycle(cycle)
    clock.advance(minutes=1)
    do(service, clock, CHANGES["edit"])

    assert list_kinds(service) == ["edit", "sleep", "tag"]
    undone = [service.call(Undo()) for _ in range(3)]

    assert [each.actions[0].kind for each in undone] == ["edit", "sleep", "tag"]
    assert undone[1].actions[0].id == slept
    assert undone[1].cycle
    assert undone[1].memories == undone[1].cycle.restored == 4


# ----------------------------------------------------------------- the rest


def test_what_is_listed_can_be_undone_until_then(
    service: MemoryService, clock: FakeClock
) -> None:
    do(service, clock, CHANGES["tag"])
    (action,) = service.call(Undo(list=True))
    assert action.until == action.at + KEPT

    clock.advance(days=KEPT.days)

    assert list_kinds(service) == []
    with pytest.raises(CannotUndo, match="nothing to undo"):
        service.call(Undo())
    with pytest.raises(NotFound):
        service.call(Undo(action.id))


def test_of_what_can_no_longer_be_undone_nothing_is_kept(
    store: SqliteStore, service: MemoryService, clock: FakeClock
) -> None:
    do(service, clock, Tag("kettle", tags=[WORD]), Untag("kettle", tags=[WORD]))
    clock.advance(days=KEPT.days)

    service.look_after_file()

    assert not store.actions.are_expired(clock.now())


@each_case(
    "request",
    [Undo(list=True, dry_run=True), Undo(keep_hours=3), Undo("kettle", list=True)],
)
def test_a_request_that_does_not_fit_is_refused(
    service: MemoryService, clock: FakeClock, request: Undo
) -> None:
    do(service, clock, CHANGES["tag"])

    with pytest.raises(InvalidRequest):
        service.call(request)


def test_an_unknown_id_is_said_to_be_one(service: MemoryService) -> None:
    with pytest.raises(NotFound, match="no action and no sleep cycle 'nobody'"):
        service.call(Undo("nobody"))


def test_an_undo_is_no_action_itself(service: MemoryService, clock: FakeClock) -> None:
    do(service, clock, CHANGES["edit"], CHANGES["tag"])

    undone: list[Undone] = [service.call(Undo()) for _ in range(2)]

    assert [each.actions[0].kind for each in undone] == ["tag", "edit"]
    assert list_kinds(service) == []


@each_case("name", CHANGES)
def test_an_undo_that_was_interrupted_blocks_no_earlier_action(
    store: SqliteStore,
    service: MemoryService,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    before = everything(service)
    do(service, clock, EditMemory("pan", importance=0.9), CHANGES[name])

    def fail(_: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(store.actions, "delete", fail)
        with pytest.raises(KeyboardInterrupt):
            service.call(Undo())
    undone = service.call(Undo())

    assert undone.actions[0].kind == "edit"
    assert get_memory(store, "pan").importance == 0.5
    assert everything(service) == before
    assert list_kinds(service) == []


def test_an_undo_leaves_out_what_is_forgotten_at_the_same_time(
    store: SqliteStore,
    service: MemoryService,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    do(service, clock, Tag(["kettle", "pan"], tags=["x"]))
    read = store.actions.steps

    def forget_after(id: str, *, limit: int = 1_000) -> list[ActionStep]:
        steps = read(id, limit=limit)
        if limit > 1:
            store.deletion.forget(["pan"])
        return steps

    monkeypatch.setattr(store.actions, "steps", forget_after)

    assert service.call(Undo()).memories == 1
    assert get_memory(store, "kettle").tags == ("tea",)
