"""Pinned, valid for a time, superseded: what is recalled, what is summarized, what stays."""

from __future__ import annotations

from datetime import timedelta

import pytest
from support.fakes import (
    NOON,
    FakeClock,
    FakeSummarizer,
    memory,
    remember_batch,
    trio,
    working_ids,
)

from mnemosyned.cli.output.retention import forget_text
from mnemosyned.errors import NotFound
from mnemosyned.memory.consolidation import UNSPOKEN, Selection, Trigger
from mnemosyned.memory.values import Episode, MemoryRecord, Tier
from mnemosyned.service.service import MemoryService
from mnemosyned.sleep.context import CycleRequest
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.verbs.memories import Expand, Get, Pin, Recall, Remember, RememberMany
from mnemosyned.verbs.retention import Forget

ROME, PARIS, OSLO = (
    "the office is in Rome",
    "the office is in Paris",
    "the office is in Oslo",
)


def found(service: MemoryService, query: str, *, history: bool = False) -> list[str]:
    return [hit.id for hit in service.call(Recall(query, history=history)).hits]


def got(service: MemoryService, id: str) -> MemoryRecord:
    memory = service.call(Get(id)).memory
    assert memory
    return memory


def episode_of(store: SqliteStore, id: str) -> Episode:
    memory = store.memories.get(id)
    assert isinstance(memory, MemoryRecord)
    episode = store.memories.get(memory.episode or "")
    assert isinstance(episode, Episode)
    return episode


# ----------------------------------------------------------------------- pin


@pytest.mark.parametrize("trigger", [Trigger.EXPLICIT, Trigger.CAP, Trigger.SHUTDOWN])
def test_what_is_pinned_later_stays_whatever_starts_a_cycle(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle, trigger: Trigger
) -> None:
    remember_batch(store, *trio("a", hours_ago=500))

    service.call(Pin("a1"))
    cycle.run(
        CycleRequest(
            trigger=trigger,
            force=trigger is Trigger.EXPLICIT,
            selection=Selection(oldest=99) if trigger is Trigger.CAP else None,
            deadline_s=60,
        )
    )

    assert got(service, "a1").tier is Tier.WORKING
    assert got(service, "a0").tier is Tier.ARCHIVE


def test_a_pin_that_comes_while_its_group_is_summarized_holds(
    store: SqliteStore,
    service: MemoryService,
    cycle: SleepCycle,
    summarizer: FakeSummarizer,
) -> None:
    remember_batch(store, *trio("a"))
    summarizer.meanwhile = lambda _: service.call(Pin("a1"))

    cycle.run(CycleRequest(trigger=Trigger.EXPLICIT))
    cycle.run(CycleRequest(trigger=Trigger.EXPLICIT))

    assert got(service, "a1").tier is Tier.WORKING
    assert "a1" not in episode_of(store, "a0").content


def test_pinning_what_is_not_there_is_refused(service: MemoryService) -> None:
    with pytest.raises(NotFound):
        service.call(Pin("nobody"))


# -------------------------------------------------------------------- expiry


def test_what_has_expired_is_not_recalled_and_not_lost(
    service: MemoryService, clock: FakeClock
) -> None:
    service.call(
        Remember("the lift is broken", id="1", valid_until=NOON + timedelta(hours=2))
    )
    assert found(service, "lift") == ["1"]

    clock.advance(hours=2)

    assert found(service, "lift") == []
    assert found(service, "lift", history=True) == []
    assert got(service, "1").content == "the lift is broken"


def test_no_summary_speaks_of_what_will_expire_and_it_is_found_until_then(
    service: MemoryService, store: SqliteStore, cycle: SleepCycle, clock: FakeClock
) -> None:
    remember_batch(store, *trio("a"))
    until = NOON + timedelta(hours=40)
    service.call(
        Remember(
            "the lift is broken",
            id="1",
            created_at=NOON - timedelta(hours=20),
            valid_until=until,
        )
    )

    cycle.run(CycleRequest(trigger=Trigger.EXPLICIT))

    episode = episode_of(store, "1")
    assert set(episode.summary_of) == {"a0", "a1", "a2", "1"}
    assert "lift" not in episode.content
    (hit,) = service.call(Recall("lift")).hits
    assert [line.id for line in hit.lines] == ["1"]
    clock.moment = until
    assert found(service, "lift") == []
    assert "1" in {one.id for one in service.call(Expand(episode.id)).originals}


def test_a_group_of_which_nothing_lasts_is_archived_without_a_summary(
    service: MemoryService,
    store: SqliteStore,
    cycle: SleepCycle,
    summarizer: FakeSummarizer,
) -> None:
    for at in range(4):
        service.call(
            Remember(
                f"build {at} runs",
                id=f"b{at}",
                created_at=NOON - timedelta(hours=20, minutes=-at),
                valid_until=NOON,
            )
        )

    cycle.run(CycleRequest(trigger=Trigger.EXPLICIT))

    assert summarizer.calls == []
    assert store.memories.working_count() == 0
    assert episode_of(store, "b0").content == UNSPOKEN
    assert len(episode_of(store, "b0").summary_of) == 4


def test_many_expired_notes_do_not_hide_the_one_in_force(
    service: MemoryService, clock: FakeClock
) -> None:
    soon = NOON + timedelta(minutes=1)
    notes = [Remember(f"build {at} is red", valid_until=soon) for at in range(400)]
    service.call(RememberMany(notes))
    service.call(
        Remember("of all that is red here, the build among them, this is all", id="now")
    )
    clock.advance(minutes=2)

    assert found(service, "build red") == ["now"]


# ---------------------------------------------------------------- supersede


def test_recall_shows_the_current_fact_and_its_history_on_request(
    service: MemoryService,
) -> None:
    service.call(Remember(ROME, id="rome"))
    service.call(Remember(PARIS, id="paris", supersedes="rome"))
    service.call(Remember(OSLO, id="oslo", supersedes="rome"))

    assert found(service, "office") == ["oslo"]
    (hit,) = service.call(Recall("office", history=True)).hits
    assert [line.content for line in hit.history] == [PARIS, ROME]
    assert got(service, "rome").superseded_by == "paris"
    assert got(service, "paris").superseded_by == "oslo"
    (old,) = service.call(Recall("Rome", history=True)).hits
    assert (old.id, old.superseded_at) == ("rome", NOON)


def test_after_a_sleep_too_what_was_superseded_stands_under_what_took_its_place(
    service: MemoryService, cycle: SleepCycle
) -> None:
    service.call(Remember(ROME, id="rome"))
    service.call(Remember(PARIS, id="paris", supersedes="rome"))
    cycle.run(CycleRequest(trigger=Trigger.EXPLICIT, force=True))

    (hit,) = service.call(Recall("office", history=True)).hits

    assert [line.content for line in hit.lines] == [PARIS]
    assert [line.content for line in hit.history] == [ROME]


def test_a_later_summary_speaks_of_the_current_fact_alone(
    service: MemoryService, store: SqliteStore, cycle: SleepCycle
) -> None:
    old = NOON - timedelta(hours=20)
    remember_batch(store, *trio("a"))
    service.call(Remember("call 030 4471 in Rome", id="rome", created_at=old))
    service.call(
        Remember("call 030 5582 in Oslo", id="oslo", created_at=old, supersedes="rome")
    )

    cycle.run(CycleRequest(trigger=Trigger.EXPLICIT))

    episode = service.call(Get(got(service, "oslo").episode or "")).episode
    assert episode
    assert "Oslo" in episode.content
    assert "Rome" not in episode.content
    assert {detail.value for detail in episode.details} >= {"5582"}
    assert "4471" not in str(episode.details)
    assert got(service, "rome").content == "call 030 4471 in Rome"


def test_an_earlier_summary_is_rewritten_without_the_superseded_fact(
    service: MemoryService, store: SqliteStore, cycle: SleepCycle
) -> None:
    remember_batch(store, *trio("a"), memory("rome", ROME, hours_ago=20))
    cycle.run(CycleRequest(trigger=Trigger.EXPLICIT))
    assert "Rome" in episode_of(store, "rome").content

    service.call(Remember(OSLO, id="oslo", supersedes="rome"))

    assert "Rome" not in episode_of(store, "rome").content
    assert "rome" in episode_of(store, "rome").summary_of
    assert found(service, "Rome office") == ["oslo"]


def test_a_memory_superseded_during_its_summary_is_not_promoted_as_current(
    service: MemoryService,
    store: SqliteStore,
    cycle: SleepCycle,
    summarizer: FakeSummarizer,
) -> None:
    remember_batch(store, *trio("a"))

    def supersede(_: object) -> None:
        service.call(Remember(OSLO, id="oslo", supersedes="a1"))

    summarizer.meanwhile = supersede

    first = cycle.run(CycleRequest(trigger=Trigger.EXPLICIT))
    again = cycle.run(CycleRequest(trigger=Trigger.EXPLICIT))

    assert (first.failed, again.failed) == (1, 0)
    assert all("a1" not in episode_of(store, id).content for id in ("a0", "a1", "a2"))
    assert working_ids(store) == ["oslo"]


def test_a_fact_holds_again_once_its_last_successor_is_forgotten(
    service: MemoryService,
) -> None:
    service.call(Remember(ROME, id="rome"))
    service.call(Remember(PARIS, id="paris", supersedes="rome"))
    service.call(Remember(OSLO, id="oslo", supersedes="paris"))

    service.call(Forget("paris"))
    assert got(service, "rome").superseded_by == "oslo"
    preview = service.call(Forget("oslo", dry_run=True))
    assert got(service, "rome").superseded_at == NOON
    receipt = service.call(Forget("oslo"))

    assert found(service, "office") == ["rome"]
    assert got(service, "rome").superseded_by is None
    assert got(service, "rome").superseded_at is None
    assert preview.in_force_again == receipt.in_force_again == ["rome"]
    assert "what it superseded would hold again: rome" in forget_text(preview)
    assert "what it superseded holds again: rome" in forget_text(receipt)


def test_what_is_forgotten_with_its_successors_does_not_hold_again(
    service: MemoryService,
) -> None:
    service.call(Remember(ROME, id="rome"))
    service.call(Remember(PARIS, id="paris", supersedes="rome"))
    service.call(Remember(OSLO, id="oslo", supersedes="paris"))

    preview = service.call(Forget(["oslo", "paris"], dry_run=True))
    assert preview.in_force_again == ["rome"]
    receipt = service.call(Forget(["rome", "oslo"]))

    assert receipt.in_force_again == ["paris"]
    assert found(service, "office") == ["paris"]


def test_a_summary_states_the_fact_that_holds_again(
    service: MemoryService, cycle: SleepCycle, store: SqliteStore
) -> None:
    service.call(Remember(ROME, id="rome"))
    cycle.run(CycleRequest(trigger=Trigger.EXPLICIT, force=True))
    service.call(Remember(OSLO, id="oslo", supersedes="rome"))
    cycle.run(CycleRequest(trigger=Trigger.EXPLICIT, force=True))
    assert "Rome" not in episode_of(store, "rome").content

    preview = service.call(Forget("oslo", dry_run=True))
    receipt = service.call(Forget("oslo"))

    assert "Rome" in episode_of(store, "rome").content
    assert preview.episodes_rewritten == receipt.episodes_rewritten


def test_superseding_is_kept_with_the_memory_or_not_at_all(
    service: MemoryService, store: SqliteStore
) -> None:
    with pytest.raises(NotFound) as refused:
        service.call(Remember(OSLO, id="oslo", supersedes="nobody"))

    assert refused.value.field == "supersedes"
    assert store.memories.working_count() == 0


def test_the_same_call_again_changes_nothing(service: MemoryService) -> None:
    service.call(Remember(ROME, id="rome"))
    for _ in range(3):
        service.call(Remember(OSLO, id="oslo", supersedes="rome"))

    assert found(service, "office") == ["oslo"]
    assert got(service, "oslo").superseded_at is None


def test_a_fact_that_holds_again_is_kept_anew_and_found(service: MemoryService) -> None:
    service.call(Remember(ROME, id="rome"))
    service.call(Remember(OSLO, id="oslo", supersedes="rome"))

    again = service.call(Remember(ROME, dedupe=True, supersedes="oslo"))

    assert again.stored
    assert found(service, "office") == [again.id]
