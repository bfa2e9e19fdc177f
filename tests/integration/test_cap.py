"""Working memory has a cap; what goes beyond it is consolidated early, never dropped."""

import pytest
from support.fakes import FakeSummarizer, memory, remember_batch, trio, working_ids
from support.settings import change

from mnemosyned.config.settings import SettingsInForce
from mnemosyned.memory.consolidation import CycleReport
from mnemosyned.memory.values import Acknowledged, Tier
from mnemosyned.service.service import MemoryService
from mnemosyned.sleep.context import CycleRequest
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.verbs.memories import Remember, RememberMany
from mnemosyned.verbs.upkeep import Sleep


@pytest.fixture(autouse=True)
def small_cap(settings: SettingsInForce) -> None:
    change(settings, {"wm_max": 3})


def remember(service: MemoryService, id: str, *, pinned: bool = False) -> Acknowledged:
    return service.call(Remember(f"note {id}", id=id, pinned=pinned))


def everything(store: SqliteStore) -> int:
    totals = store.maintenance.totals()
    return totals[Tier.WORKING].count + totals[Tier.ARCHIVE].count


def test_the_memory_beyond_the_cap_sends_the_oldest_to_sleep(
    service: MemoryService, store: SqliteStore
) -> None:
    for id in "1234":
        remember(service, id)

    assert store.memories.working_count() <= 3
    assert "4" in working_ids(store)
    assert everything(store) == 4
    assert {row.trigger for row in store.sleep.log(limit=9)} == {"cap"}


def test_at_the_cap_nothing_happens(service: MemoryService, store: SqliteStore) -> None:
    for id in "123":
        remember(service, id)

    assert working_ids(store) == ["1", "2", "3"]
    assert store.sleep.log(limit=9) == []


def test_a_large_batch_loses_nothing(
    service: MemoryService, store: SqliteStore
) -> None:
    service.call(
        RememberMany([Remember(f"note {at}", id=str(at)) for at in range(100)])
    )

    assert store.memories.working_count() <= 3
    assert everything(store) == 100


def test_pinned_memories_beyond_the_cap_stay_and_are_not_tried_at_every_call(
    service: MemoryService,
    store: SqliteStore,
    cycle: SleepCycle,
    monkeypatch: pytest.MonkeyPatch,
    settings: SettingsInForce,
) -> None:
    change(settings, {"wm_max": 20})
    tries: list[int] = []
    run = cycle.run

    def counted(request: CycleRequest) -> CycleReport:
        assert request.selection
        tries.append(request.selection.oldest or 0)
        return run(request)

    monkeypatch.setattr(cycle, "run", counted)

    for at in range(30):
        remember(service, str(at), pinned=True)

    assert store.memories.working_count() == 30
    assert 1 <= len(tries) <= 5


def test_when_no_summary_comes_out_everything_stays(
    service: MemoryService, store: SqliteStore, summarizer: FakeSummarizer
) -> None:
    summarizer.fail()

    service.call(RememberMany([Remember(f"note {at}") for at in range(20)]))

    assert store.memories.working_count() == 20
    assert store.sleep.log(limit=1)[0].error == "summarizer_failed"


def test_a_lowered_cap_is_in_force_at_the_next_memory(
    service: MemoryService, store: SqliteStore, settings: SettingsInForce
) -> None:
    for id in "123":
        remember(service, id)
    change(settings, {"wm_max": 1})

    remember(service, "4")

    assert store.memories.working_count() <= 1
    assert everything(store) == 4


def test_a_memory_beyond_the_cap_is_acknowledged_while_a_cycle_runs(
    service: MemoryService, store: SqliteStore, summarizer: FakeSummarizer
) -> None:
    remember_batch(store, *trio("a"))
    acknowledged: list[Acknowledged] = []
    summarizer.meanwhile = lambda _: acknowledged.append(remember(service, "new"))

    service.call(Sleep())

    assert [one.stored for one in acknowledged] == [True]
    assert working_ids(store) == ["new"]


def test_a_known_memory_counts_once_toward_the_cap(
    service: MemoryService, store: SqliteStore
) -> None:
    remember_batch(store, memory("1", "note 1"))

    for _ in range(10):
        remember(service, "1")

    assert working_ids(store) == ["1"]
    assert store.sleep.log(limit=9) == []
