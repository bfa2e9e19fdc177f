"""Working memory has a cap; what goes beyond it is consolidated early, never dropped."""

import pytest
from support.fakes import memory, remember_batch, trio, working_ids
from support.services import Lab
from support.settings import change

from mnemosyned.config.settings import SettingsInForce
from mnemosyned.memory.consolidation import CycleReport
from mnemosyned.memory.values import Acknowledged, Tier
from mnemosyned.service.service import MemoryService
from mnemosyned.sleep.context import CycleRequest
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.verbs.memories import Remember


@pytest.fixture(autouse=True)
def small_cap(settings: SettingsInForce) -> None:
    change(settings, {"wm_max": 3})


def remember(service: MemoryService, id: str, *, pinned: bool = False) -> Acknowledged:
    return service.call(Remember(f"note {id}", id=id, pinned=pinned))


def everything(store: SqliteStore) -> int:
    totals = store.maintenance.totals()
    return totals[Tier.WORKING].count + totals[Tier.ARCHIVE].count


def test_the_memory_beyond_the_cap_sends_the_oldest_to_sleep(lab: Lab) -> None:
    for id in "1234":
        remember(lab.service, id)

    assert lab.store.memories.working_count() <= 3
    assert "4" in working_ids(lab.store)
    assert everything(lab.store) == 4
    assert {row.trigger for row in lab.store.sleep.log(limit=9)} == {"cap"}


def test_at_the_cap_nothing_happens(lab: Lab) -> None:
    for id in "123":
        remember(lab.service, id)

    assert working_ids(lab.store) == ["1", "2", "3"]
    assert lab.store.sleep.log(limit=9) == []


def test_a_large_batch_loses_nothing(lab: Lab) -> None:
    lab.remember_many([Remember(f"note {at}", id=str(at)) for at in range(100)])

    assert lab.store.memories.working_count() <= 3
    assert everything(lab.store) == 100


def test_pinned_memories_beyond_the_cap_stay_and_are_not_tried_at_every_call(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(lab.settings, {"wm_max": 20})
    tries: list[int] = []
    run = lab.cycle.run

    def counted(request: CycleRequest) -> CycleReport:
        assert request.selection
        tries.append(request.selection.oldest or 0)
        return run(request)

    monkeypatch.setattr(lab.cycle, "run", counted)

    for at in range(30):
        remember(lab.service, str(at), pinned=True)

    assert lab.store.memories.working_count() == 30
    assert 1 <= len(tries) <= 5


def test_when_no_summary_comes_out_everything_stays(lab: Lab) -> None:
    lab.summarizer.fail()

    lab.remember_many([Remember(f"note {at}") for at in range(20)])

    assert lab.store.memories.working_count() == 20
    assert lab.store.sleep.log(limit=1)[0].error == "summarizer_failed"


def test_a_lowered_cap_is_in_force_at_the_next_memory(lab: Lab) -> None:
    for id in "123":
        remember(lab.service, id)
    change(lab.settings, {"wm_max": 1})

    remember(lab.service, "4")

    assert lab.store.memories.working_count() <= 1
    assert everything(lab.store) == 4


def test_a_memory_beyond_the_cap_is_acknowledged_while_a_cycle_runs(lab: Lab) -> None:
    remember_batch(lab.store, *trio("a"))
    acknowledged: list[Acknowledged] = []
    lab.summarizer.meanwhile = lambda _: acknowledged.append(
        remember(lab.service, "new")
    )

    lab.sleep()

    assert [one.stored for one in acknowledged] == [True]
    assert working_ids(lab.store) == ["new"]


def test_a_known_memory_counts_once_toward_the_cap(lab: Lab) -> None:
    remember_batch(lab.store, memory("1", "note 1"))

    for _ in range(10):
        remember(lab.service, "1")

    assert working_ids(lab.store) == ["1"]
    assert lab.store.sleep.log(limit=9) == []
