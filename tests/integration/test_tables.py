"""Answers as people read them at 60, 80 and 200 columns, in English, German and Japanese.

Each answer has a file in `tests/data/tables`; `make tables` writes them again.
"""

import io
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
from support.answers import CYCLE, ENTRY, activity, sleep_status, stats

from mnemosyned.cli.commands.look import PeriodPart, PeriodView
from mnemosyned.cli.commands.now import Glance, event_lines
from mnemosyned.cli.output.show import show
from mnemosyned.cli.output.terminal import say
from mnemosyned.memory.consolidation import CycleStatus, GroupReport, GroupStatus
from mnemosyned.memory.listing import SessionTotals, SourceTotals
from mnemosyned.memory.values import Episode, Hit, Line, MemoryRecord, Tier, TierTotals
from mnemosyned.text.display import cell_count
from mnemosyned.verbs.conversation import Shortened
from mnemosyned.verbs.listing import Listed, SessionList, SourceList
from mnemosyned.verbs.memories import Got, Recalled
from mnemosyned.verbs.upkeep import Event, EventKind, EventMemory, Logged

FOLDER = Path(__file__).parents[1] / "data" / "tables"
WIDTHS = (60, 80, 200)
SENTENCES = ("cycles", "compacted", "summaries-found")
"""Answers that are sentences, which a terminal wraps."""
NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)
ENGLISH = "Deploys happen on Tuesdays after stand-up; Ada checks the dashboards and Grace writes the note."
GERMAN = (
    "Der Heizungsmonteur kommt am Donnerstag um 9:30 Uhr; bitte vorher den Kellerschlüssel bei "
    "Frau Müller-Lüdenscheidt abholen."
)
JAPANESE = "明日の会議は十時からです。資料を忘れないでください。場所は東京駅の近くの第三会議室です。"
CODE = "def stew(minutes: int) -> None:\n    stir(minutes)  # 95 °C\n\n    serve()"


def memory(number: int, content: str, session: str, source: str) -> MemoryRecord:
    return MemoryRecord(
        id=f"01M2B9QWA4XZJ8Q1P3V5R7T{number:03}",
        content=content,
        created_at=NOON - timedelta(hours=11 * number),
        session=session,
        source=source,
        role=("user", "assistant", "佐藤")[number % 3],
    )


MEMORIES = [
    replace(memory(0, ENGLISH, "release", "claude-code"), pinned=True),
    memory(1, CODE, "release", "claude-code"),
    memory(2, GERMAN, "Haushalt", "notizen"),
    memory(3, JAPANESE, "仕事", "メモ"),
    replace(memory(4, "", "Haushalt", "notizen"), tier=Tier.ARCHIVE, pruned_at=NOON),
]
EPISODE = Episode(
    id="01M2B9QWA4XZJ8Q1P3V5R7TAAA",
    content=f"{ENGLISH}\n{GERMAN}\n{JAPANESE}\nFirst line of four.\nAnd one more.",
    created_at=NOON,
    session="(all)",
    source=None,
    level=1,
    item_count=14,
    covers_from=NOON - timedelta(days=1, hours=3),
    covers_until=NOON - timedelta(days=1),
    summarizer="aaak",
    period_from=datetime(2026, 11, 17, tzinfo=UTC),
)
WEEK = replace(
    EPISODE, level=2, item_count=40, period_from=datetime(2026, 11, 16, tzinfo=UTC)
)
SESSIONS = SessionList(
    [
        SessionTotals(
            session=session,
            sources=tuple(sources.split()),
            count=count,
            first=NOON - timedelta(days=400),
            last=NOON,
            project="~/src/stew" if ":" in session else "",
        )
        for session, sources, count in [
            ("claude-code:0199a7c3-7d1e-7b2f-9f31-1a2b3c4d5e6f", "claude-code", 1234),
            ("Haushaltsbesprechung mit Frau Müller-Lüdenscheidt", "notizen mail", 7),
            ("仕事の打ち合わせと東京駅の近くの会議室の予約", "メモ", 1),
        ]
    ],
    57,
)
SOURCES = SourceList(
    [
        SourceTotals(source=source, count=count, sessions=3, first=NOON, last=NOON)
        for source, count in [("claude-code", 12_345), (None, 1), ("メモ", 20)]
    ],
    3,
)
STATUS = stats(
    tiers={tier: TierTotals(1204, 99_000, NOON) for tier in Tier},
    sleep=sleep_status(
        schedule="every night at 03:00, in this machine's zone",
        last_cycle=NOON,
        next_cycle=NOON + timedelta(hours=15),
    ),
    agents=[
        activity(
            "codex",
            event="stop",
            calls=3,
            stored=20,
            failures=1,
            mean_ms=3.0,
            slowest_ms=9.0,
            called_at=NOON,
            failed_at=NOON,
            failure="TranscriptRefused",
        )
    ],
    warnings=[
        "the last backup is 9 days old: mnem backup makes one, and backup.dir one each day"
    ],
)
HITS = Recalled(
    [
        Hit(
            id=MEMORIES[3].id,
            tier=Tier.WORKING,
            score=1.0,
            snippet=JAPANESE,
            content=JAPANESE,
            created_at=NOON,
            session="仕事",
            source="メモ",
            role="佐藤",
        ),
        Hit(
            id=EPISODE.id,
            tier=Tier.EPISODIC,
            score=0.5,
            snippet=GERMAN,
            content=EPISODE.content,
            created_at=NOON,
            session="Haushalt",
            source="notizen",
            summary_of=("1", "2"),
            lines=(
                Line(id="1", created_at=NOON, role="Ada", content=GERMAN, score=0.5),
            ),
        ),
    ]
)
PERIOD = PeriodView(
    "week",
    date(2026, 11, 16),
    date(2026, 11, 22),
    WEEK,
    [
        PeriodPart(date(2026, 11, 17), date(2026, 11, 17), EPISODE),
        PeriodPart(
            date(2026, 11, 18), date(2026, 11, 18), None, MEMORIES[:2], more=True
        ),
    ],
)
HAPPENED: list[tuple[EventKind, dict[str, Any]]] = [
    (
        EventKind.REMEMBERED,
        {
            "count": 3,
            "memories": [
                EventMemory(
                    id="1", created_at=NOON, text=text, session=session, source="メモ"
                )
                for text, session in [(JAPANESE, "仕事"), (GERMAN, "Haushalt")]
            ],
        },
    ),
    (EventKind.RECALLED, {"count": 3, "session": "Haushalt"}),
    (EventKind.CYCLE_BEGUN, {"trigger": "schedule"}),
    (EventKind.CYCLE_ENDED, {"status": "done", "count": 40, "episodes": 3}),
    (EventKind.REFUSED, {"verb": "get", "message": "there is no memory 'x'"}),
]


def group(
    status: GroupStatus, *, level: int = 0, error: str | None = None
) -> GroupReport:
    return GroupReport(
        session="" if level else "Haushalt",
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
        period="2026-11-18",
    )


PROMOTED = group(GroupStatus.PROMOTED)
DONE = replace(
    CYCLE, groups=(PROMOTED, group(GroupStatus.PROMOTED, level=1)), rolled_up=1
)
UNDONE = replace(CYCLE, status=CycleStatus.UNDONE, evicted=0)
PARTIAL = replace(UNDONE, status=CycleStatus.PARTIAL)
GONE = "1 original was forgotten or restored before"
CYCLES = [
    DONE,
    replace(DONE, groups=(group(GroupStatus.PROMOTED, level=2),), evicted=0),
    replace(
        DONE,
        cycle="",
        dry_run=True,
        evicted=0,
        groups=(group(GroupStatus.PLANNED), group(GroupStatus.PLANNED, level=1)),
    ),
    replace(UNDONE, groups=(group(GroupStatus.UNDONE),), restored=3, held_until=NOON),
    replace(
        PARTIAL, groups=(group(GroupStatus.KEPT, error="the words of 3 were pruned"),)
    ),
    replace(
        PARTIAL, dry_run=True, groups=(group(GroupStatus.PLANNED, error=GONE),) * 3
    ),
]
LOGGED = replace(
    ENTRY,
    cycle="second",
    created_at=NOON,
    episode="episode-of-second",
    summarizer="llama:tiny",
    summary_preview="Tea at four.",
    model_share=0.32,
)
LOG = [
    replace(LOGGED, level=1, session="", model_share=1.0),
    LOGGED,
    replace(LOGGED, cycle="first", summary_preview="", summarizer="aaak"),
    replace(LOGGED, cycle="undone", summary_preview="", undone_at=NOON),
]
SHORTENED = Shortened(
    changed=True,
    messages=[],
    policy="facts",
    counter="estimate",
    tokens_before=100,
    tokens_after=50,
    limit=80,
    over_budget=False,
    archived=["m"],
)


def summary_hit(lines: int) -> Hit:
    """A summary that matches by itself, of so many lines."""
    return replace(
        HITS.hits[1],
        lines=(),
        snippet="…the part that matches…",
        content="\n".join(f"Line {number}." for number in range(lines)),
    )


def print_cycles() -> None:
    for each in CYCLES:
        show(each)


def print_events() -> None:
    for number, (kind, fields) in enumerate(HAPPENED, start=1):
        for line in event_lines(Event(id=number, kind=kind, at=NOON, **fields)):
            say(line, styled=True)


SHARED = msgspec.structs.replace(STATUS, database="postgresql", bytes_on_disk=0)
"""An owner's, in a database that many share."""

ANSWERS: dict[str, Callable[[], None]] = {
    "list": lambda: show(Listed(MEMORIES, ended={MEMORIES[3].id: NOON})),
    "summaries": lambda: show(Listed([], [WEEK, EPISODE])),
    "memory": lambda: show(Got(memory=MEMORIES[1])),
    "recall": lambda: show(HITS),
    "summaries-found": lambda: show(
        Recalled([summary_hit(lines) for lines in (1, 2, 13, 14)])
    ),
    "cycles": print_cycles,
    "log": lambda: show(Logged(LOG)),
    "compacted": lambda: show(SHORTENED),
    "sessions": lambda: show(SESSIONS),
    "sources": lambda: show(SOURCES),
    "week": lambda: show(PERIOD),
    "glance": lambda: show(Glance(STATUS, MEMORIES[0])),
    "status": lambda: show(STATUS),
    "owner-glance": lambda: show(Glance(SHARED, MEMORIES[0])),
    "owner-status": lambda: show(SHARED),
    "events": print_events,
}


@pytest.fixture(autouse=True)
def in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("MNEM_FORMAT", "table")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def printed(
    monkeypatch: pytest.MonkeyPatch,
    answer: Callable[[], None],
    *,
    encoding: str = "utf-8",
) -> str:
    """What an answer prints on a stream with these characters."""
    data = io.BytesIO()
    stream = io.TextIOWrapper(data, encoding=encoding)
    monkeypatch.setattr(sys, "stdout", stream)
    answer()
    stream.flush()
    monkeypatch.setattr(sys, "stdout", sys.__stdout__)
    return data.getvalue().decode(encoding)


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_fits_every_width(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    pages = []
    for columns in WIDTHS[-1:] if name in SENTENCES else WIDTHS:
        monkeypatch.setenv("COLUMNS", str(columns))
        text = printed(monkeypatch, ANSWERS[name])
        assert [line for line in text.splitlines() if cell_count(line) > columns] == []
        pages.append(f"==== {columns} columns\n{text}")
    file = FOLDER / f"{name}.txt"
    if os.environ.get("TABLES") == "write":
        FOLDER.mkdir(exist_ok=True)
        file.write_text("".join(pages), encoding="utf-8")

    assert "".join(pages) == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_is_plain_where_a_terminal_knows_no_styles_and_no_letters(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("FORCE_COLOR", "1")
    styled = printed(monkeypatch, ANSWERS[name])
    assert "\x1b[" in styled or name in ("sessions", "sources", *SENTENCES)

    for variable, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        with monkeypatch.context() as patch:
            patch.setenv(variable, value)
            assert printed(patch, ANSWERS[name]) == click.unstyle(styled)
    ascii_text = printed(monkeypatch, ANSWERS[name], encoding="ascii")
    assert len(ascii_text.splitlines()) >= len(styled.splitlines()) - 2
