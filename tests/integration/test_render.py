"""What people read of a sleep cycle: what to call next, and an undo that is told as one."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import click
import pytest

from mnemosyned.cli.output.show import render
from mnemosyned.cli.output.terminal import count_of, local_time
from mnemosyned.memory.consolidation import (
    CycleReport,
    CycleStatus,
    GroupReport,
    GroupStatus,
    LogEntry,
    Trigger,
)
from mnemosyned.verbs.upkeep import Logged

NOON = datetime(2026, 3, 9, 12, tzinfo=UTC)


def group(
    status: GroupStatus, *, level: int = 0, error: str | None = None
) -> GroupReport:
    return GroupReport(
        session="" if level else "home",
        source=None,
        status=status,
        items=3,
        covers_from=NOON,
        covers_until=NOON,
        episodes=() if status is GroupStatus.PLANNED else ("an-episode",),
        chars_before=300,
        chars_after=100,
        error=error,
        level=level,
        period="2026-03-09",
    )


def report(
    status: CycleStatus, *groups: GroupReport, dry_run: bool = False, evicted: int = 0
) -> CycleReport:
    return CycleReport(
        cycle="" if dry_run else "the-cycle",
        status=status,
        trigger=Trigger.EXPLICIT,
        dry_run=dry_run,
        candidates=3,
        groups=groups,
        duration_s=0.1,
        promoted=1,
        evicted=evicted,
        failed=0,
        rolled_up=sum(bool(group.level) for group in groups),
        chars_before=300,
        chars_after=100,
    )


def entry(cycle: str, *, level: int = 0) -> LogEntry:
    return LogEntry(
        cycle=cycle,
        created_at=NOON,
        session="" if level else "home",
        source=None,
        trigger="schedule",
        status=GroupStatus.PROMOTED,
        items_consolidated=3,
        episode=f"episode-of-{cycle}-{level}",
        summarizer="aaak",
        summary_preview="Tea at four.",
        duration_s=0.1,
        chars_before=300,
        chars_after=100,
        level=level,
    )


def test_a_cycle_says_how_it_is_looked_at_and_taken_back() -> None:
    groups = (group(GroupStatus.PROMOTED), group(GroupStatus.PROMOTED, level=1))

    shown = render(report(CycleStatus.DONE, *groups, evicted=3))

    assert "3 memories became 1 episode," in shown
    assert "; 1 day written" in shown
    assert "mnem log --cycle the-cycle --limit 2" in shown
    assert "mnem undo the-cycle" in shown


def test_a_cycle_that_moved_nothing_offers_no_undo() -> None:
    shown = render(report(CycleStatus.DONE, group(GroupStatus.PROMOTED, level=2)))

    assert "1 week written" in shown
    assert "mnem undo" not in shown


def test_a_plan_shows_no_outcome() -> None:
    groups = (group(GroupStatus.PLANNED), group(GroupStatus.PLANNED, level=1))

    shown = render(report(CycleStatus.DONE, *groups, dry_run=True))

    assert shown.startswith("would consolidate 3 memories in 1 group and write 1 day\n")
    assert not any(
        word in shown for word in ("planned", "after", "mnem log", "mnem undo")
    )


def test_an_undo_that_puts_nothing_back_is_still_told_as_an_undo() -> None:
    kept = group(GroupStatus.KEPT, error="the words of 3 originals were pruned")

    shown = render(report(CycleStatus.PARTIAL, kept))

    assert shown.splitlines() == [
        "cycle the-cycle undone: 0 memories back in working memory; 1 group left as it was",
        "   home, -: the words of 3 originals were pruned",
    ]


def test_the_plan_of_an_undo_is_told_as_one_and_the_same_reason_once() -> None:
    error = "1 original was forgotten or restored before"
    groups = [group(GroupStatus.PLANNED, error=error) for _ in range(3)]

    plan = replace(
        report(CycleStatus.PARTIAL, *groups, dry_run=True), cycle="the-cycle"
    )

    assert render(plan).splitlines() == [
        "cycle the-cycle: would put back 9 memories of 3 groups, 900 characters",
        f"   home, -: {error} (3 groups)",
    ]


def test_an_undo_says_that_what_is_back_is_as_old_as_before() -> None:
    undone = report(CycleStatus.UNDONE, group(GroupStatus.UNDONE))
    undone = replace(undone, restored=3, held_until=NOON)

    shown = render(undone)

    assert (
        f"they stay until {local_time(NOON)}, then a cycle takes what is old enough"
        in shown
    )


def test_a_row_whose_episode_is_gone_says_so() -> None:
    rows = [replace(entry("one"), summary_preview="")]

    assert "(forgotten or restored since)" in render(Logged(rows))
    assert "since)" not in render(Logged([replace(rows[0], undone_at=NOON)]))


def test_the_log_names_each_cycle_once_and_every_episode() -> None:
    rows = [entry("second", level=1), entry("second"), entry("first")]

    lines = click.unstyle(render(Logged(rows))).splitlines()

    assert [" ".join(line.split()[:2]) for line in lines[2:]] == [
        "cycle second",
        "1 episode-of-second-1",
        "2 episode-of-second-0",
        "cycle first",
        "3 episode-of-first-0",
    ]
    assert lines[2].startswith("cycle second  ")
    assert lines[5].endswith("schedule")


@pytest.mark.parametrize(
    ("number", "noun", "words"),
    [
        (1, "memory", "1 memory"),
        (0, "memory", "0 memories"),
        (1200, "memory", "1,200 memories"),
        (2, "day", "2 days"),
    ],
)
def test_things_are_counted_as_people_count_them(
    number: int, noun: str, words: str
) -> None:
    assert count_of(number, noun) == words


def test_the_log_shows_the_share_that_a_model_wrote_beside_the_rules() -> None:
    by_model = [
        replace(entry("c"), summarizer="llama:tiny", model_share=share)
        for share in (0.32, 1.0, None)
    ]

    lines = render(Logged(by_model)).splitlines()

    assert [line.count("llama:tiny (32%)") for line in lines if "llama" in line] == [
        1, 0, 0,
    ]  # fmt: skip
