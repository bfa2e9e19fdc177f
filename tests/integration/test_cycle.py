"""The sleep cycle through the real store: what it takes and what it makes of it."""

from datetime import datetime, timedelta

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
from support.settings import change

from mnemosyned.config import SettingsInForce
from mnemosyned.memory.consolidation import (
    VERBATIM,
    CycleReport,
    CycleStatus,
    GroupStatus,
    Selection,
    Trigger,
)
from mnemosyned.memory.values import Episode
from mnemosyned.search.query import Query
from mnemosyned.sleep.context import CycleRequest
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.text.terms import parse_terms


def sleep(cycle: SleepCycle, trigger: Trigger = Trigger.EXPLICIT) -> CycleReport:
    return cycle.run(CycleRequest(trigger=trigger))


def episodes(store: SqliteStore, report: CycleReport) -> list[Episode]:
    found = [store.memories.get(id) for group in report.groups for id in group.episodes]
    return [episode for episode in found if isinstance(episode, Episode)]


# ------------------------------------------------------------ what it takes


def test_only_what_is_strictly_older_than_half_the_ttl_is_taken(
    store: SqliteStore, cycle: SleepCycle
) -> None:
    second = 1 / 3600
    remember_batch(
        store,
        memory("older", hours_ago=12 + second),
        memory("exactly", hours_ago=12),
        memory("younger", hours_ago=12 - second),
    )

    report = sleep(cycle)

    assert report.candidates == 1
    assert working_ids(store) == ["exactly", "younger"]


def test_an_odd_ttl_is_halved_exactly(
    store: SqliteStore, cycle: SleepCycle, settings: SettingsInForce
) -> None:
    change(settings, {"sleep.ttl_hours": 1})
    remember_batch(store, memory("1", hours_ago=0.51), memory("2", hours_ago=0.49))

    sleep(cycle)

    assert working_ids(store) == ["2"]


def test_times_of_other_zones_are_compared_as_instants(
    store: SqliteStore, cycle: SleepCycle
) -> None:
    remember_batch(
        store,
        memory("1", created_at=datetime.fromisoformat("2026-03-17T08:00:00+09:00")),
        memory("2", created_at=datetime.fromisoformat("2026-03-17T10:00:00+09:00")),
    )

    sleep(cycle)

    assert working_ids(store) == ["2"]


def test_nothing_old_enough_leaves_no_trace(
    store: SqliteStore, cycle: SleepCycle
) -> None:
    remember_batch(store, memory("1", hours_ago=1))

    report = sleep(cycle)

    assert report.status is CycleStatus.NOTHING_TO_DO
    assert store.sleep.log(limit=1) == []


def test_force_ignores_the_age(store: SqliteStore, cycle: SleepCycle) -> None:
    remember_batch(store, *trio("a", hours_ago=1))

    report = cycle.run(CycleRequest(trigger=Trigger.EXPLICIT, force=True))

    assert (report.status, report.evicted) == (CycleStatus.DONE, 3)
    assert working_ids(store) == []


@pytest.mark.parametrize("force", [False, True])
def test_a_pinned_memory_never_leaves(
    store: SqliteStore, cycle: SleepCycle, *, force: bool
) -> None:
    remember_batch(store, memory("pinned", hours_ago=99, pinned=True), *trio("a"))

    report = cycle.run(CycleRequest(trigger=Trigger.EXPLICIT, force=force))

    assert report.evicted == 3
    assert store.memories.working(["pinned"])


def test_a_session_sleeps_by_itself(store: SqliteStore, cycle: SleepCycle) -> None:
    remember_batch(store, *trio("a", session="a"), *trio("b", session="b"))

    cycle.run(CycleRequest(trigger=Trigger.EXPLICIT, session="a"))

    assert working_ids(store) == ["b0", "b1", "b2"]


def test_the_oldest_can_be_taken_by_number(
    store: SqliteStore, cycle: SleepCycle
) -> None:
    remember_batch(store, *trio("late", hours_ago=1), *trio("early", hours_ago=2))

    cycle.run(CycleRequest(trigger=Trigger.CAP, selection=Selection(oldest=3)))

    assert working_ids(store) == ["late0", "late1", "late2"]


# ----------------------------------------------------- what it makes of it


def test_each_source_and_session_becomes_an_episode_of_its_own(
    store: SqliteStore, cycle: SleepCycle
) -> None:
    groups = [
        trio("chat", hours_ago=21, source="chat", session="s"),
        trio("tool", hours_ago=20, source="tool", session="s"),
        trio("other", hours_ago=19, source="chat", session="t"),
    ]
    remember_batch(store, *(one for group in groups for one in group))

    report = sleep(cycle)

    made = [(e.session, e.source, e.summary_of) for e in episodes(store, report)]
    assert made == [
        ("s", "chat", ("chat0", "chat1", "chat2")),
        ("s", "tool", ("tool0", "tool1", "tool2")),
        ("t", "chat", ("other0", "other1", "other2")),
    ]
    assert (report.promoted, report.evicted, report.failed) == (3, 9, 0)
    assert store.memories.working_count() == 0


def test_an_episode_holds_the_summary_and_its_originals_stay_word_for_word(
    store: SqliteStore, cycle: SleepCycle
) -> None:
    told = trio("a", source="chat")
    remember_batch(store, *told)

    (episode,) = episodes(store, sleep(cycle))

    assert episode.content == "In short: note a0 / note a1 / note a2"
    assert (episode.summarizer, episode.level) == ("fake", 0)
    assert (episode.covers_from, episode.covers_until) == (
        NOON - timedelta(hours=20),
        NOON - timedelta(hours=19, minutes=58),
    )
    assert [m.content for m in store.memories.originals(episode.id)] == [
        m.content for m in told
    ]


@pytest.mark.parametrize("count", [1, 2])
def test_a_small_group_is_promoted_word_for_word(
    store: SqliteStore, cycle: SleepCycle, summarizer: FakeSummarizer, count: int
) -> None:
    remember_batch(store, *trio("a")[:count])

    report = sleep(cycle)

    assert [e.content for e in episodes(store, report)] == [
        f"note a{at}" for at in range(count)
    ]
    assert [e.item_count for e in episodes(store, report)] == [1] * count
    assert [row.status for row in store.sleep.log(limit=9)] == [
        GroupStatus.VERBATIM
    ] * count
    assert store.sleep.log(limit=1)[0].summarizer == VERBATIM
    assert summarizer.calls == []


def test_what_slept_is_still_found(store: SqliteStore, cycle: SleepCycle) -> None:
    remember_batch(store, *trio("a"), memory("bike", "my bike is blue", hours_ago=19.5))
    sleep(cycle)

    found = store.search.candidates(Query(terms=parse_terms("blue bike"), limit=1))

    assert len(found.memories) == 1
    assert len(found.episodes) == 1


def test_each_group_leaves_a_row_in_the_log(
    store: SqliteStore, cycle: SleepCycle, clock: FakeClock
) -> None:
    remember_batch(
        store,
        *trio("a", session="s", source="chat"),
        *trio("b", session="t", hours_ago=19),
    )
    clock.advance(minutes=1)

    report = sleep(cycle, Trigger.SCHEDULE)

    later, row = store.sleep.log(limit=9)
    assert (row.id, later.id) == (1, 2)
    assert (row.session, row.source, later.session, later.source) == (
        "s",
        "chat",
        "t",
        None,
    )
    assert (row.items_consolidated, row.status, row.error) == (
        3,
        GroupStatus.PROMOTED,
        None,
    )
    assert row.summary_preview == "In short: note a0 / note a1 / note a2"
    assert row.created_at == NOON + timedelta(minutes=1)
    assert (row.cycle, row.trigger, row.summarizer) == (
        report.cycle,
        "schedule",
        "fake",
    )
    assert row.episode == report.groups[0].episodes[0]
    assert (row.chars_before, row.chars_after) == (21, len(row.summary_preview))
    assert 0 <= row.duration_s < 5


def test_a_dry_run_shows_the_plan_and_changes_nothing(
    store: SqliteStore, cycle: SleepCycle, summarizer: FakeSummarizer
) -> None:
    remember_batch(store, *trio("a"), memory("b", hours_ago=30, source="tool"))

    report = cycle.preview(CycleRequest(trigger=Trigger.EXPLICIT))

    assert report.dry_run
    assert [group.items for group in report.groups] == [1, 3]
    assert {group.status for group in report.groups} == {GroupStatus.PLANNED}
    assert (report.candidates, report.evicted, report.promoted) == (4, 0, 0)
    assert summarizer.calls == []
    assert store.sleep.log(limit=1) == []
    assert store.memories.working_count() == 4


def test_the_next_cycle_finds_nothing_left(
    store: SqliteStore, cycle: SleepCycle
) -> None:
    remember_batch(store, *trio("a"))
    sleep(cycle)

    assert sleep(cycle).status is CycleStatus.NOTHING_TO_DO
    assert len(store.sleep.log(limit=9)) == 1
