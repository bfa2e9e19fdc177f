"""A dry run shows the groups, the periods and their members that the cycle then makes."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from operator import attrgetter

import pytest
from support.cases import thorough
from support.fakes import FakeClock, memory, remember_batch
from support.services import Lab

from mnemosyned.cli.output.show import render
from mnemosyned.memory.consolidation import CycleReport, GroupStatus
from mnemosyned.memory.ports import Draft
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.storage.sqlite.store import SqliteStore

MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)


@pytest.fixture(autouse=True)
def weeks_later(clock: FakeClock) -> None:
    clock.moment = MONDAY + timedelta(days=40)


def at(
    id: str, *, days: float = 0, hours: float = 0, **changes: object
) -> MemoryRecord:
    moment = MONDAY + timedelta(days=days, hours=hours)
    return replace(memory(id), created_at=moment, **changes)  # type: ignore[arg-type]


def weeks(store: SqliteStore) -> None:
    """Days of one, two and four memories a source; every third ends over midnight."""
    for day in range(20):
        for source in range(1 + day % 3):
            for one in range((1, 2, 4)[(day + source) % 3]):
                when = {"days": day, "hours": 13 + one if day % 3 else one}
                id = f"d{day}s{source}n{one}"
                remember_batch(store, at(id, **when, source=f"s{source}"))


def shape(report: CycleReport) -> Counter[tuple[object, ...]]:
    """What is to be exact: all but the characters that summaries will have."""
    exact = attrgetter(
        *("level", "session", "source", "period", "items"),
        *("covers_from", "covers_until"),
    )
    return Counter(
        (*exact(group), None if group.level else group.chars_before)
        for group in report.groups
    )


def compared(lab: Lab) -> CycleReport:
    """What the cycle did, held against the dry run before it, which changed nothing."""
    before = (lab.store.maintenance.totals(), lab.store.sleep.log(limit=1))
    calls = len(lab.summarizer.calls)
    planned = lab.sleep(dry_run=True)
    assert planned.dry_run
    assert (planned.evicted, planned.promoted) == (0, 0)
    assert {group.status for group in planned.groups} == {GroupStatus.PLANNED}
    after = (lab.store.maintenance.totals(), lab.store.sleep.log(limit=1))
    assert (after, len(lab.summarizer.calls)) == (before, calls)

    done = lab.sleep()
    assert shape(planned) == shape(done)
    assert planned.candidates == done.evicted
    return done


def test_a_late_arrival_has_its_day_and_all_above_written_again(lab: Lab) -> None:
    weeks(lab.store)
    lab.sleep()
    lab.put(at("late", days=1, hours=5))

    done = compared(lab)

    written = [(group.level, group.period) for group in done.groups if group.level]
    assert written == [(1, "2026-03-03"), (2, "2026-W10"), (3, "2026-03")]
    assert next(group.items for group in done.groups if group.level == 1) > 1


@pytest.mark.parametrize("step", [3, 10_000, *thorough(1, 10, 37)])
def test_a_backlog_is_parted_as_the_cycle_parts_it(lab: Lab, step: int) -> None:
    lab.cycle.plan_size = step
    weeks(lab.store)

    done = compared(lab)

    assert {group.level for group in done.groups} == {0, 1, 2, 3}


def test_a_week_that_is_not_over_gets_a_day_more(lab: Lab) -> None:
    weeks(lab.store)
    lab.clock.moment = MONDAY + timedelta(days=16)
    lab.sleep()
    lab.clock.moment = MONDAY + timedelta(days=18)

    done = compared(lab)

    assert {group.level for group in done.groups} == {0, 1}


def test_what_no_summary_speaks_of_shares_one_place(lab: Lab) -> None:
    ends = lab.clock.moment + timedelta(days=9)
    lab.put(
        at("a"),
        at("b", hours=1, valid_until=ends),
        at("c", hours=2, valid_until=ends),
    )
    lab.put(*(at(f"e{one}", days=3, hours=one) for one in range(4)))
    lab.store.memories.remember([Draft(at("f", days=4), supersedes="e1")])

    done = compared(lab)

    days = [(group.period, group.items) for group in done.groups if group.level == 1]
    assert days == [("2026-03-02", 2), ("2026-03-05", 1), ("2026-03-06", 1)]


def test_characters_of_what_is_not_written_yet_are_called_an_estimate(lab: Lab) -> None:
    lab.put(*(at(f"n{one}", hours=one) for one in range(4)))

    shown = render(lab.sleep(dry_run=True))

    day = next(line for line in shown.splitlines() if line.startswith("(all)"))
    assert "about" in day
    assert "about" not in shown.splitlines()[3]
