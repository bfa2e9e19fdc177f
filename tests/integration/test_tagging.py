"""Tags through the service: remembered, searched by, changed by filters."""

import pytest
from support.fakes import consolidate, memory, promotion, remember_batch
from support.stores import TRIO, get_memory, run_cycle

from mnemosyned.errors import BatchChanged, InvalidRequest, PartlyDone
from mnemosyned.service.service import MemoryService
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.verbs.listing import ListMemories
from mnemosyned.verbs.memories import Pin, Recall, Remember, Tag, Untag
from mnemosyned.verbs.retention import Forget


def found(service: MemoryService, query: str, **fields: object) -> set[str]:
    """Ids of hits that are memories, and of lines under the others."""
    hits = service.call(Recall(query, **fields)).hits  # type: ignore[arg-type]
    return {hit.id for hit in hits if not hit.summary_of} | {
        line.id for hit in hits for line in hit.lines
    }


@pytest.mark.parametrize("asleep", [False, True])
def test_recall_finds_only_what_has_one_of_the_tags(
    service: MemoryService, cycle: SleepCycle, *, asleep: bool
) -> None:
    for number, tags in enumerate((["Sea"], ["hills"], [], ["sea", "hills"])):
        service.call(Remember(f"an ibex {number}", id=f"m{number}", tags=tags))
    if asleep:
        run_cycle(cycle)

    assert found(service, "ibex", tag="SEA") == {"m0", "m3"}
    assert found(service, "ibex", tag=["sea", "hills"]) == {"m0", "m1", "m3"}
    assert found(service, "ibex", tag="desert") == set()
    assert found(service, "In short", tag="sea") == set()
    assert found(service, "ibex") == {"m0", "m1", "m2", "m3"}


def test_hits_and_lines_show_tags(service: MemoryService, cycle: SleepCycle) -> None:
    service.call(Remember("an ibex", id="m", tags=["hills"]))
    fresh = service.call(Recall("ibex")).hits[0]
    run_cycle(cycle)
    slept = service.call(Recall("ibex")).hits[0]

    assert fresh.tags == ("hills",)
    assert [line.tags for line in slept.lines] == [("hills",)]


def test_an_episode_stands_for_its_originals(
    store: SqliteStore, service: MemoryService
) -> None:
    remember_batch(store, *TRIO)
    consolidate(store, promotion("e", *TRIO))

    tagged = service.call(Tag(id="e", tags=["zoo"]))

    assert (tagged.memories, tagged.changed, tagged.tags) == (3, 3, ["zoo"])
    assert get_memory(store, "2").tags == ("zoo",)


def test_what_was_previewed_is_what_changes(
    store: SqliteStore, service: MemoryService
) -> None:
    remember_batch(store, memory("1", "ibex one"), memory("2", "ibex two"))
    preview = service.call(Tag(query="ibex", tags=["a"], dry_run=True))
    remember_batch(store, memory("3", "ibex three"))

    tagged = service.call(Tag(query="ibex", tags=["a"], mark=preview.mark))

    assert [line.id for line in preview.lines] == ["1", "2"]
    assert (preview.memories, tagged.memories, tagged.changed) == (2, 2, 2)
    assert get_memory(store, "3").tags == ()


def test_a_selection_that_changed_otherwise_is_refused(
    store: SqliteStore, service: MemoryService
) -> None:
    remember_batch(store, *(memory(str(at), f"ibex {at}") for at in range(3)))
    service.call(Tag(id=["0", "1"], tags=["old"]))
    preview = service.call(Forget(tag="old", dry_run=True))
    service.call(Tag(id="2", tags=["old"]))  # known before, but not seen

    with pytest.raises(BatchChanged, match="nothing was done"):
        service.call(Forget(tag="old", mark=preview.mark))

    assert store.memories.working_count() == 3


def test_pinning_by_a_filter_leaves_the_archive(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle
) -> None:
    remember_batch(store, memory("1", "ibex one"))
    run_cycle(cycle)
    remember_batch(store, memory("2", "ibex two"))

    pinned = service.call(Pin(query="ibex"))

    assert (pinned.memories, pinned.archived) == (1, 1)
    assert get_memory(store, "2").pinned
    assert not get_memory(store, "1").pinned


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (Tag(tags=["a"]), "say which memories"),
        (Untag(id="1", session="s", tags=["a"]), "either an id or filters"),
        (Tag(id="1", tags=["a,b"]), "comma"),
        (Tag(query="ibex", tags=["a"], mark="x"), "not the mark"),
        (Tag(query="ibex", tags=["a"], after="1"), "after needs dry_run"),
    ],
)
def test_a_selection_that_says_too_little_or_too_much_is_refused(
    store: SqliteStore, service: MemoryService, request_: Tag | Untag, message: str
) -> None:
    remember_batch(store, memory("1", "ibex"))

    with pytest.raises(InvalidRequest, match=message):
        service.call(request_)


@pytest.mark.parametrize("asleep", [False, True])
def test_a_list_shows_only_what_has_one_of_the_tags(
    service: MemoryService, cycle: SleepCycle, *, asleep: bool
) -> None:
    for number, tags in enumerate((["sea"], ["hills"], [])):
        service.call(Remember(f"an ibex {number}", id=f"m{number}", tags=tags))
    if asleep:
        run_cycle(cycle)

    listed = service.call(ListMemories(tag=["Sea", "desert"]))
    prefixed = service.call(ListMemories(tag="hills", id_prefix="m"))

    assert [memory.id for memory in listed.memories] == ["m0"]
    assert [memory.id for memory in prefixed.memories] == ["m1"]


def test_a_memory_with_too_many_tags_is_named_with_what_was_done(
    service: MemoryService,
) -> None:
    for number in range(150):
        service.call(Remember(f"kettle {number}", id=f"{number}", session="s"))
    service.call(Tag("120", tags=[f"tag {number}" for number in range(100)]))

    with pytest.raises(PartlyDone, match=r"100 of 150 memories are tagged.*120 would"):
        service.call(Tag(session="s", tags=["further"]))
