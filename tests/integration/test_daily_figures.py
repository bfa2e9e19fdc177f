"""Figures of each day: counted where nobody waits, saved once a minute, shown by `days`."""

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from support.fakes import FakeClock
from support.services import Lab

from mnemosyned import Memory
from mnemosyned.cli.output.show import render
from mnemosyned.errors import StorageFailed
from mnemosyned.service.reading import GROWTH_BYTES, SAVED_EVERY_S, ListService
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.verbs.listing import DayTotals


@dataclass
class Disk:
    """The size of a database, to be set."""

    size: int = 5_000_000

    def bytes_on_disk(self) -> int:
        return self.size


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def figures(store: SqliteStore, clock: FakeClock, disk: Disk) -> ListService:
    return ListService(store=store.lists, clock=clock, bytes_on_disk=disk.bytes_on_disk)


def last_days(lab: Lab, figures: ListService) -> list[DayTotals]:
    """The last three days, as `days` gives them, with these figures."""
    return figures.with_figures(lab.days()).days[-3:]


def test_a_recall_counts_on_its_day_with_the_time_it_took(lab: Lab) -> None:
    lab.remember("We deploy on Tuesdays.", session="work")
    assert lab.days().days[-1].recalls == 0

    for _ in range(3):
        lab.recall("when do we deploy?")

    before, today = lab.days().days[-2:]
    assert (before.recalls, before.recall_p50_ms, before.bytes_on_disk) == (0, None, 0)
    assert today.recalls == 3
    assert 0 < (today.recall_p50_ms or 0) <= (today.recall_p95_ms or 0)
    assert today.bytes_on_disk > 10_000


def test_percentiles_are_right_to_nine_percent(lab: Lab, figures: ListService) -> None:
    for number in range(101):
        figures.count_recall(number / 1_000)

    today = last_days(lab, figures)[-1]

    assert today.recalls == 101
    assert today.recall_p50_ms == pytest.approx(50, rel=0.095)
    assert today.recall_p95_ms == pytest.approx(95, rel=0.095)


def test_figures_outlive_a_restart(lab: Lab, figures: ListService, disk: Disk) -> None:
    for durations_s in ([0.002], [0.002, 0.032]):
        for duration_s in durations_s:
            figures.count_recall(duration_s)
        figures.save_figures()

    disk.size = 6_000_000
    again = ListService(
        store=lab.store.lists, clock=lab.clock, bytes_on_disk=disk.bytes_on_disk
    )
    again.count_recall(0.032)

    today = last_days(lab, again)[-1]
    assert (today.recalls, today.bytes_on_disk) == (4, 6_000_000)
    assert (today.recall_p50_ms, today.recall_p95_ms) == (2.0, 32.0)


def test_a_day_without_news_has_the_size_of_the_day_before(
    lab: Lab, figures: ListService, disk: Disk
) -> None:
    figures.count_recall(0.002)
    figures.save_figures()
    lab.clock.advance(days=2)
    disk.size = 7_000_000

    days = last_days(lab, figures)

    assert [day.bytes_on_disk for day in days] == [5_000_000, 5_000_000, 7_000_000]
    assert [day.recalls for day in days] == [1, 0, 0]
    later = lab.clock.now() + timedelta(days=2, hours=1)
    coming = figures.with_figures(lab.days(since=lab.clock.now(), until=later)).days
    # It is tomorrow already in a zone ahead of this one.
    assert [day.bytes_on_disk for day in coming] == [7_000_000, 7_000_000, 0]
    assert [day.recalls for day in coming] == [0, 0, 0]


def test_recalls_of_hours_and_months_are_unknown_and_not_none(lab: Lab) -> None:
    lab.recall("when do we deploy?")

    for by in ("hour", "month"):
        counted = lab.days(by=by)
        assert {each.recalls for each in counted.days} == {None}
        assert "recalls" not in render(counted)
    assert "recalls" in render(lab.days())


def test_nothing_is_written_while_nothing_changes(
    figures: ListService, disk: Disk, store: SqliteStore
) -> None:
    figures.save_figures()
    disk.size += GROWTH_BYTES - 1
    figures.save_figures()
    assert store.lists.figures() == {}

    disk.size += 1
    figures.save_figures()
    (saved,) = store.lists.figures().values()
    assert saved == (Counter(), disk.size)


def test_figures_are_saved_once_a_minute(
    figures: ListService, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: moments[0])
    figures._next_save = SAVED_EVERY_S  # noqa: SLF001 as if it began at 0
    figures.count_recall(0.002)
    counts = []
    for moments[0] in (59.0, 60.0, 119.0, 120.0):
        figures.save_if_due()
        counts.append(sum(each.total() for each, _ in store.lists.figures().values()))
        figures.count_recall(0.002)

    assert counts == [0, 2, 2, 4]


def test_a_full_disk_loses_no_recall_or_count(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise StorageFailed("the disk is full", reason="full")

    with monkeypatch.context() as full:
        full.setattr(lab.store.lists, "add_figures", fail)
        lab.recall("when do we deploy?")
        lab.service.lists.save_figures()
        lab.recall("when do we deploy?")
    lab.service.lists.save_figures()

    (saved,) = lab.store.lists.figures().values()
    assert saved[0].total() == 2


def test_figures_are_saved_at_the_end_if_there_are_any(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db") as memory:
        memory.remember("We deploy on Tuesdays.")
    with Memory(tmp_path / "m.db") as memory:
        assert memory._caller.store.lists.figures() == {}  # type: ignore[attr-defined]  # noqa: SLF001
        memory.recall("when do we deploy?")
    with Memory(tmp_path / "m.db") as memory:
        assert memory.days().days[-1].recalls == 1
