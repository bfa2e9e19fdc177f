"""Memories of the first and the last days of the calendar live as all others do."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from support.calendar_limits import FIRST, LAST, TIME_PHRASES, ZONES
from support.fakes import NOON, FakeClock
from support.services import undo_cycle

from mnemosyned.cli.output.show import render
from mnemosyned.memory.consolidation import CycleReport
from mnemosyned.memory.values import Episode, MemoryRecord, Tier
from mnemosyned.service.service import MemoryService
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.summary.extract import ExtractiveSummarizer
from mnemosyned.verbs.conversation import Compact, Context
from mnemosyned.verbs.memories import Expand, Get, Recall, Remember, RememberMany
from mnemosyned.verbs.retention import Forget, Prune, Restore
from mnemosyned.verbs.upkeep import Sleep

pytestmark = pytest.mark.thorough

DAYS, PER_DAY = 4, 9
DAY = timedelta(days=1)
ENDS = {"first": (FIRST, NOON), "last": (LAST - DAYS * DAY, LAST)}
"""The first instant that something is said at, and the time of the clock by then."""


@pytest.fixture(
    params=[
        "America/New_York",
        pytest.param("Pacific/Kiritimati", marks=pytest.mark.thorough),
    ]
)
def service_there(
    request: pytest.FixtureRequest, cycle: SleepCycle, service: MemoryService
) -> MemoryService:
    """A service whose days begin at one edge of the map."""
    cycle.lease.replace(ExtractiveSummarizer(zone=ZoneInfo(request.param)))
    return service


def fill(service: MemoryService, first: datetime) -> None:
    """A summary's worth on each of four days, with every time that texts speak of."""
    memories = [
        Remember(
            f"Ada signed lease {day * PER_DAY + at} {TIME_PHRASES[day * PER_DAY + at]}. "
            f"The meadow has {at} gates, and {TIME_PHRASES[-at]} it had none.",
            id=f"m{day}-{at}",
            created_at=first + day * DAY + timedelta(minutes=at),
        )
        for day in range(DAYS)
        for at in range(PER_DAY)
    ]
    service.call(RememberMany(memories))


def sleep(
    service: MemoryService, *, force: bool = False, dry_run: bool = False
) -> CycleReport:
    report = service.call(Sleep(force=force, dry_run=dry_run))
    assert report.failed == 0, [group.error for group in report.groups]
    assert render(report)
    return report


@pytest.mark.parametrize("end", ENDS)
def test_they_are_slept_on_rolled_up_undone_forgotten_and_pruned(
    end: str, service_there: MemoryService, store: SqliteStore, clock: FakeClock
) -> None:
    service = service_there
    first, clock.moment = ENDS[end]
    fill(service, first)
    ids = [f"m{day}-{at}" for day in range(DAYS) for at in range(PER_DAY)]

    sleep(service, dry_run=True)
    report = sleep(service, force=True)
    sleep(service, force=True)

    assert report.evicted == DAYS * PER_DAY
    assert store.maintenance.totals()[Tier.WORKING].count == 0
    for id in ids:
        original = store.memories.get(id)
        assert isinstance(original, MemoryRecord)
        assert render(service.call(Get(id)))
        above = original.episode
        while above:
            assert render(service.call(Expand(above)))
            episode = store.memories.get(above)
            assert isinstance(episode, Episode)
            above = episode.parent

    undone = undo_cycle(service, report.cycle)
    assert (undone.restored, render(undone) != "") == (DAYS * PER_DAY, True)
    sleep(service, force=True)
    assert render(service.call(Restore(ids[0])))
    assert service.call(Forget(since=first, until=first + DAY / 2)).memories == PER_DAY
    assert service.call(Prune(characters_max=0)).memories == (DAYS - 1) * PER_DAY
    sleep(service, force=True)


@pytest.mark.parametrize("end", ENDS)
def test_they_are_old_enough_by_themselves(
    end: str, service_there: MemoryService, clock: FakeClock
) -> None:
    first, clock.moment = ENDS[end]
    fill(service_there, first)

    report = sleep(service_there)

    assert report.evicted == DAYS * PER_DAY
    assert report.rolled_up >= DAYS - 1  # the last day is never over


@pytest.mark.parametrize("zone", ZONES[1:3], ids=str)
def test_questions_and_conversations_reach_them(
    service: MemoryService, zone: object
) -> None:
    fill(service, FIRST)
    edges = [datetime.min.replace(tzinfo=zone), datetime.max.replace(tzinfo=zone)]  # type: ignore[arg-type]

    for said in TIME_PHRASES[::3]:
        for asked in edges:
            answer = service.call(
                Recall(f"which lease {said}", asked_at=asked, explain=True)
            )
            assert render(answer)
            assert "lease" in answer.hits[0].snippet
        message = {"role": "user", "content": f"which lease {said}"}
        talk = [
            {**message, "timestamp": when, "content": f"{'word ' * 100}{said}"}
            for when in (
                "0001-01-01T00:00:00Z",
                "0001-01-01T00:00:00+14:00",
                edges[1].isoformat(),
            )
            for _ in range(3)
        ]
        context = service.call(
            Context(f"which lease {said}", messages=talk, total=20_000)
        )
        assert "lease" in context.system
    shorter = service.call(Compact(talk, force=True, max_tokens=500))
    assert shorter.expand
    assert sleep(service, force=True).evicted
