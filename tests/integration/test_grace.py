"""A grace time: what is forgotten vanishes at once, and can be put back until the time is over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TypeVar

import pytest
from support.fakes import NOON, FakeClock
from support.leftovers import left_of
from support.settings import change
from support.stores import episode_of, get_memory, run_cycle

from mnemosyned.cli.output.retention import forget_text
from mnemosyned.config.settings import SettingsInForce
from mnemosyned.errors import NotFound
from mnemosyned.memory.exchange import ExportedMemory
from mnemosyned.memory.values import Tier
from mnemosyned.service.intake import CHUNK
from mnemosyned.service.service import MemoryService
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.verbs.conversation import Learn, Learnings
from mnemosyned.verbs.listing import ListMemories
from mnemosyned.verbs.memories import EditMemory, Expand, Get, Recall, Remember
from mnemosyned.verbs.retention import Forget, Restore
from mnemosyned.verbs.upkeep import Status

T = TypeVar("T")
WORD = "Zqxjv48213Kwyz"


@pytest.fixture
def service(service: MemoryService, settings: SettingsInForce) -> MemoryService:
    """The service with a grace time of a day, and a memory to be forgotten."""
    change(settings, {"forget.grace_hours": 24})
    service.call(
        Remember(
            f"Always call the code {WORD}",
            id="m",
            role="user",
            session="codes",
            tags=["work"],
            pinned=False,
            importance=0.9,
            metadata={"a": 1},
        )
    )
    service.call(Remember("the kettle is hot", id="other", session="codes"))
    return service


def assert_unseen(service: MemoryService) -> None:
    """No verb knows the memory."""
    with pytest.raises(NotFound):
        service.call(Get("m"))
    assert "m" not in [memory.id for memory in service.call(ListMemories()).memories]
    assert WORD not in str(service.call(Recall(WORD, history=True, reveal=True)))
    assert WORD not in str(service.call(Recall("code work call", tag="work")))
    assert WORD not in str(service.call(Learnings(superseded=True)))
    assert service.call(Forget(query=WORD, dry_run=True)).memories == 0
    assert service.call(Forget(tag="work", dry_run=True)).memories == 0


@pytest.mark.parametrize("asleep", [False, True])
def test_what_is_forgotten_is_seen_by_no_verb_and_comes_back_as_it_was(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle, *, asleep: bool
) -> None:
    service.call(EditMemory("m", text=f"Always call the code {WORD}!"))
    if asleep:
        run_cycle(cycle)
    before = get_memory(store, "m")

    preview = service.call(Forget("m", dry_run=True))
    receipt = service.call(Forget("m"))

    assert (receipt.memories, receipt.complete) == (1, False)
    assert preview.final_at == receipt.final_at == NOON + timedelta(hours=24)
    assert_unseen(service)
    if asleep:
        summary = episode_of(store, "other")
        assert WORD not in str(service.call(Expand(summary.id, reveal=True)))
    assert service.call(Status()).recoverable.memories == 1

    restored = service.call(Restore("m"))

    assert (restored.memories, restored.episode) == (1, "")
    assert get_memory(store, "m") == replace(before, tier=Tier.WORKING, episode=None)
    assert service.call(Recall(WORD)).hits[0].id == "m"
    assert [each.text for each in service.call(Learnings())] == [
        f"Always call the code {WORD}!"
    ]
    assert [
        revision.text for revision in service.call(Get("m", history=True)).revisions
    ] == [f"Always call the code {WORD}"]
    assert service.call(Status()).recoverable.memories == 0


def test_all_that_one_call_forgot_comes_back_together(
    store: SqliteStore, service: MemoryService
) -> None:
    service.call(Learn("Codes are short.", session="codes"))
    receipt = service.call(Forget(session="codes"))

    restored = service.call(Restore(receipt.call))

    assert (receipt.memories, receipt.learnings, restored.memories) == (2, 2, 2)
    assert store.memories.working_count() == 2
    assert len(service.call(Learnings())) == 2


def test_once_the_time_is_over_it_is_gone_from_the_file(
    store: SqliteStore, service: MemoryService, clock: FakeClock
) -> None:
    service.call(Forget("m"))
    clock.advance(hours=23)
    service.look_after_file()
    assert left_of(store, WORD)

    clock.advance(hours=2)
    service.look_after_file()

    assert left_of(store, WORD) == []
    assert store.grace.recoverable().memories == 0
    with pytest.raises(NotFound):
        service.call(Restore("m"))


def test_now_is_final_at_once_also_for_what_was_forgotten_before(
    store: SqliteStore, service: MemoryService
) -> None:
    service.call(Forget("m"))
    with pytest.raises(NotFound, match="is forgotten already"):
        service.call(Forget("m"))

    first = service.call(Forget("m", now=True))
    second = service.call(Forget("other", now=True))

    assert (first.memories, first.complete, first.final_at) == (1, True, None)
    assert (second.memories, second.complete) == (1, True)
    assert left_of(store, WORD, "kettle") == []


def test_a_preview_of_what_was_forgotten_before_leaves_it(
    store: SqliteStore, service: MemoryService
) -> None:
    service.call(Forget("m"))

    preview = service.call(Forget("m", now=True, dry_run=True))

    assert (preview.dry_run, preview.memories, preview.final_at) == (True, 1, None)
    assert store.grace.recoverable().memories == 1
    assert service.call(Restore("m")).memories == 1


def test_now_is_for_all_ids_whether_forgotten_before_or_not(
    store: SqliteStore, service: MemoryService
) -> None:
    service.call(Forget("m"))

    with pytest.raises(NotFound, match="'typo'"):
        service.call(Forget(["m", "other", "typo"], now=True))
    receipt = service.call(Forget(["m", "other"], now=True))

    assert (receipt.memories, receipt.complete) == (2, True)
    assert left_of(store, WORD, "kettle") == []


def test_now_is_for_the_earlier_words_of_an_id_too(
    store: SqliteStore, service: MemoryService
) -> None:
    service.call(Forget("m"))
    service.call(Remember("the samovar", id="m"))

    receipt = service.call(Forget("m", now=True))

    assert receipt.memories == 2
    assert left_of(store, WORD, "samovar") == []


@pytest.mark.parametrize("final", [False, True])
def test_what_many_forgot_is_worked_off_in_short_steps(
    store: SqliteStore,
    service: MemoryService,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
    *,
    final: bool,
) -> None:
    for number in range(CHUNK + 20):
        service.call(Remember(f"ibex {number}", session="many"))
    receipt = service.call(Forget(session="many"))
    grace = store.grace
    sizes: list[int] = []

    def counted(work: Callable[[Sequence[str]], T]) -> Callable[[Sequence[str]], T]:
        def step(keys: Sequence[str]) -> T:
            sizes.append(len(keys))
            return work(keys)

        return step

    monkeypatch.setattr(grace, "finish", counted(grace.finish))
    monkeypatch.setattr(grace, "put_back", counted(grace.put_back))
    if final:
        clock.advance(hours=25)
        service.look_after_file()
    else:
        service.call(Restore(receipt.call))

    assert sizes == [CHUNK, 20]
    assert grace.recoverable().memories == 0
    searched = service.call(Forget(query="ibex", dry_run=True))
    assert searched.memories == (0 if final else CHUNK + 20)


def test_an_id_that_was_remembered_again_is_not_overwritten(
    store: SqliteStore, service: MemoryService
) -> None:
    service.call(Forget("m"))
    service.call(Remember("something else", id="m"))

    receipt = service.call(Forget("other"))
    service.call(Restore(receipt.call))

    assert get_memory(store, "m").content == "something else"
    assert get_memory(store, "other").content == "the kettle is hot"


def test_learnings_forgotten_by_themselves_are_final_in_time(
    store: SqliteStore, service: MemoryService, clock: FakeClock
) -> None:
    service.call(Learn(f"Say {WORD}x.", session="alone"))
    service.call(Forget(session="alone"))

    clock.advance(hours=25)
    service.look_after_file()

    assert left_of(store, f"{WORD}x") == []
    assert store.grace.recoverable().final_at is None


def test_without_a_setting_forgetting_is_final(
    store: SqliteStore, service: MemoryService, settings: SettingsInForce
) -> None:
    change(settings, {"forget.grace_hours": 0})

    receipt = service.call(Forget("m"))

    assert (receipt.complete, receipt.final_at, receipt.call) == (True, None, "")
    assert left_of(store, WORD) == []


def test_a_position_that_was_taken_meanwhile_is_left_to_its_owner(
    store: SqliteStore, service: MemoryService
) -> None:
    service.call(Forget("m"))
    taking = ExportedMemory(
        id="taker", seq=1, session="s", content="the samovar is hot", created_at=NOON
    )
    store.exchange.restore([taking])

    service.call(Restore("m"))

    assert get_memory(store, "m").content == f"Always call the code {WORD}"
    assert get_memory(store, "taker").content == "the samovar is hot"


@pytest.mark.parametrize("slept", [False, True])
def test_what_is_put_back_supersedes_again(
    service: MemoryService, cycle: SleepCycle, store: SqliteStore, *, slept: bool
) -> None:
    service.call(Remember("the office is in Rome", id="rome"))
    if slept:
        run_cycle(cycle)
    service.call(Remember("the office is in Oslo", id="oslo", supersedes="rome"))
    before = get_memory(store, "rome")

    receipt = service.call(Forget("oslo"))
    assert receipt.in_force_again == ["rome"]
    assert get_memory(store, "rome").superseded_at is None
    service.call(Restore("oslo"))

    assert get_memory(store, "rome") == before
    assert before.superseded_by == "oslo"
    if slept:
        assert "Rome" not in episode_of(store, "rome").content


def test_what_is_put_back_holds_where_what_superseded_it_is_gone(
    service: MemoryService, store: SqliteStore
) -> None:
    service.call(Remember("the office is in Rome", id="rome"))
    service.call(Remember("the office is in Oslo", id="oslo", supersedes="rome"))

    both = service.call(Forget(["rome", "oslo"]))
    service.call(Restore(both.call))
    assert get_memory(store, "rome").superseded_by == "oslo"

    service.call(Forget("rome"))
    service.call(Forget("oslo", now=True))
    service.call(Restore("rome"))
    rome = get_memory(store, "rome")
    assert (rome.superseded_at, rome.superseded_by) == (None, None)


def test_the_receipt_says_how_many_can_be_put_back(
    service: MemoryService, cycle: SleepCycle, store: SqliteStore
) -> None:
    run_cycle(cycle)
    pruned = ["m", "other"]
    store.retention.prune(pruned, now=NOON)
    service.call(Remember("the garden is green", id="new"))

    preview = service.call(Forget([*pruned, "new"], dry_run=True))
    receipt = service.call(Forget([*pruned, "new"]))

    assert preview.final_at == receipt.final_at == NOON + timedelta(hours=24)
    assert (preview.memories, preview.recoverable) == (3, 1)
    assert (receipt.memories, receipt.recoverable) == (3, 1)
    assert f"mnem restore {receipt.call} puts 1 of them back" in forget_text(receipt)
    assert "2 pruned originals among them" in forget_text(preview)
    assert not service.call(Status()).purge_due
    assert service.call(Restore(receipt.call)).memories == 1


def test_forgetting_pruned_originals_alone_promises_no_grace_time(
    service: MemoryService, cycle: SleepCycle, store: SqliteStore
) -> None:
    run_cycle(cycle)
    store.retention.prune(["other"], now=NOON)

    preview = service.call(Forget("other", dry_run=True))
    receipt = service.call(Forget("other"))

    assert (preview.final_at, preview.recoverable) == (None, 0)
    assert (receipt.final_at, receipt.call, receipt.complete) == (None, "", True)
