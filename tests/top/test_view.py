"""What the live view says, as lines of text."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import click
from support.answers import ENTRY, activity, sleep_status, stats
from support.cases import each_case
from support.fakes import NOON

from mnemosyned.cli.commands import top_view
from mnemosyned.cli.commands.top_view import RequestRow
from mnemosyned.memory.consolidation import GroupStatus, Progress
from mnemosyned.memory.values import Tier, TierTotals
from mnemosyned.verbs.upkeep import Event, EventKind

LINE_COLUMNS = 80


def words(*lines: str) -> str:
    return click.unstyle("\n".join(lines))


def styles(*lines: str) -> set[str]:
    codes = {"1": "bold", "2": "dim", "31": "red", "32": "green", "33": "yellow"}
    return {codes[code] for code in re.findall("\x1b\\[([1-9]\\d*)m", "".join(lines))}


TIERS = {
    Tier.WORKING: TierTotals(3_214, 400_000, NOON),
    Tier.EPISODIC: TierTotals(1, 1_200, NOON),
    Tier.ARCHIVE: TierTotals(20_000, 3_200_000, NOON),
}


def test_the_heading_tells_health_age_and_sizes() -> None:
    line = top_view.heading_line(stats(), 72_400_000)

    assert words(line) == (
        "mnem top  healthy  up 3 h 12 min  72 MB in memory  4.2 MB on disk"
    )
    assert "green" in styles(line)
    shared = top_view.heading_line(stats(bytes_on_disk=0), 0)
    assert words(shared) == "mnem top  healthy  up 3 h 12 min"


@each_case(
    ("changes", "word", "style"),
    [
        ({"problems": ["the index does not answer"]}, "bad", "red"),
        ({"warnings": ["the disk is nearly full"]}, "warning", "yellow"),
        ({"clock": "the clock jumped"}, "warning", "yellow"),
    ],
)
def test_problems_are_in_the_heading_and_in_words(
    changes: dict[str, Any], word: str, style: str
) -> None:
    sick = stats(**changes)
    (said,) = changes.values()

    assert f"  {word}  " in words(top_view.heading_line(sick, 0))
    assert style in styles(top_view.heading_line(sick, 0))
    assert words(*top_view.problem_lines(sick)) == (
        said if isinstance(said, str) else said[0]
    )
    assert styles(*top_view.problem_lines(sick)) == {style}


def test_many_problems_are_counted() -> None:
    many = top_view.problem_lines(
        stats(warnings=[f"warning {number}" for number in range(9)])
    )

    assert words(*many).splitlines()[-1] == "and 5 more: mnem status"
    assert words(*top_view.problem_lines(stats())) == "no problems"


def test_the_tiers_have_a_line_each() -> None:
    filled = stats(tiers=TIERS, sleep=sleep_status(due=120))

    lines = words(*top_view.tier_lines(filled, 12.04)).splitlines()

    assert lines[0].startswith("working       3,214 of 10,000 ████████░░░░")
    assert lines[0].endswith("  120 due  +12.0 a second")
    assert lines[1].startswith("episodic          1 summary, 1,200 characters")
    assert lines[2].startswith("archive      20,000 originals, 3,200,000 characters")
    assert max(map(len, lines)) <= LINE_COLUMNS


@each_case(("share", "filled"), [(-1, 0), (0, 0), (0.5, 12), (1, 24), (7, 24)])
def test_a_bar_has_always_the_same_length(share: float, filled: int) -> None:
    assert top_view.filled_bar(share) == "█" * filled + "░" * (24 - filled)


def test_requests_have_rates_and_times() -> None:
    lines = top_view.request_lines(
        [
            RequestRow("recall", 3.14, 0.0021, 1.26, 1_203, 0),
            RequestRow("hooks", 0.0, None, None, 0, 4),
        ]
    )

    assert words(*lines).splitlines() == [
        "           a second       p50       p95      in all   failed",
        "recall          3.1    2.1 ms     1.3 s       1,203        0",
        "hooks           0.0         -         -           0        4",
    ]
    assert "red" in styles(lines[2])
    assert "red" not in styles(lines[1])


def test_a_running_cycle_has_a_bar_and_the_time_left() -> None:
    running = sleep_status(running=True, progress=Progress(done=30, total=40))

    line = words(top_view.sleep_line(running, 90.0))

    assert line.startswith("sleeping  30 of 40 ██████████████████░░░░░░ 75%")
    assert line.endswith(", 0 min 30 s left")


@each_case(
    ("changes", "line"),
    [
        ({"running": True}, "sleeping  the cycle has just begun"),
        ({"next_cycle": None}, "next cycle none: auto_sleep is off"),
        ({"waits_for": "the load is high"}, "; waits: the load is high"),
        ({"running": True, "progress": Progress(0, 0)}, "0 of 0"),
        ({"paused_until": NOON}, "; p resumes"),
    ],
)
def test_sleep_has_one_line(changes: dict[str, Any], line: str) -> None:
    assert line in words(top_view.sleep_line(sleep_status(**changes), 0.0))


def test_cycles_tell_who_wrote_their_summaries() -> None:
    entries = [
        replace(ENTRY, cycle="new", model_share=0.9),
        replace(ENTRY, cycle="new", model_share=0.4),
        replace(ENTRY, cycle="new", fallback_reason="it took too long"),
        replace(ENTRY, cycle="new", status=GroupStatus.VERBATIM, summarizer="verbatim"),
        replace(ENTRY, cycle="new", status=GroupStatus.FAILED, items_consolidated=0),
        replace(ENTRY, cycle="old", undone_at=NOON, level=1, items_consolidated=0),
    ]

    new, old = top_view.cycle_lines(entries, 5)

    assert words(new).partition("schedule ")[2] == (
        "12 memories; 2 summaries by the model; 1 summary without the model, which failed; "
        "1 kept word for word; 1 group failed"
    )
    assert words(old).endswith("0 memories, undone; 1 summary without a model")
    assert top_view.cycle_lines(entries, 1) == [new]
    assert words(*top_view.cycle_lines([], 3)) == "no cycle yet"


def test_hooks_are_summed_by_tool_the_last_used_first() -> None:
    later = NOON + timedelta(minutes=5)
    told: Any = {"stored": 2, "characters": 500}
    agents = [
        activity("codex", **told),
        activity("claude-code", **told, called_at=later, failures=1),
        activity("claude-code", event="stop", stored=5),
        *(activity(f"tool-{number}", **told) for number in range(4)),
    ]

    lines = words(
        *top_view.hook_lines(agents, later + timedelta(seconds=9))
    ).splitlines()

    assert lines[0] == (
        "claude-code   7 stored, 500 characters shown, 0 min 9 s ago, 1 failed"
    )
    assert lines[1].endswith("5 min 9 s ago")
    assert lines[3:] == ["and 3 more"]
    assert "mnem setup" in words(*top_view.hook_lines([], later))


def happened(kind: EventKind, second: int, **fields: Any) -> Event:  # noqa: ANN401
    return Event(id=second, kind=kind, at=NOON + timedelta(seconds=second), **fields)


def test_the_last_events_are_shown_and_a_failure_stays() -> None:
    past = [
        happened(
            EventKind.REFUSED, 1, verb="get", code="not_found", message="no such id"
        ),
        *(happened(EventKind.RECALLED, second, count=3) for second in range(2, 9)),
        happened(EventKind.CYCLE_PROGRESS, 9, done=1, total=2),
        happened(EventKind.REMEMBERED, 10, count=1, session="kitchen"),
    ]

    failure, newest = top_view.event_lines(past, 2)

    assert words(failure).endswith("get refused: no such id")
    assert styles(failure) == {"dim", "red"}
    assert words(newest).endswith("remembered 1 memory  kitchen")
    assert words(*top_view.event_lines([], 2)) == "no events yet"
    assert len(top_view.event_lines(past, 6)) == 6


@each_case("kind", EventKind)
def test_each_kind_of_event_has_words(kind: EventKind) -> None:
    lines = top_view.event_lines([happened(kind, 1, session="\x1b[2J")], 2)

    assert "\x1b" not in words(*lines)
    assert len(words(*lines)) > len("12:00:01")


def test_a_memory_is_one_line_that_steers_no_terminal() -> None:
    line = top_view.record_line(
        datetime(2026, 3, 9, 12, tzinfo=UTC), "a\x1b[2Jb", "two\nlines \x1b]0;x\x07"
    )

    assert "\x1b" not in words(line)
    assert "\n" not in words(line)
    assert "two lines" in words(line)
    assert "-" in words(top_view.record_line(NOON, None, "text"))
