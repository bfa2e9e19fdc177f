"""Whether a tool has memory: its files, its settings, and what the daemon has seen of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Protocol

from mnemosyned.setup.journal import Journal
from mnemosyned.setup.machine import Machine
from mnemosyned.setup.parts import State
from mnemosyned.setup.target import Site, Target
from mnemosyned.setup.tools import ToolPlan, plan_tool

TRANSCRIPTS_MAX = 5_000
"""Transcripts looked at, so that a check stays quick."""
TRANSCRIPT_LEAD = timedelta(minutes=15)
"""A transcript this much newer than the last memory says that hooks do not run."""

BACKGROUND = "background"
"""The event of what the daemon read by itself, which no hook waited for."""


class Reported(Protocol):
    """What the daemon reports of one client's hooks on one kind of event."""

    @property
    def client(self) -> str: ...
    @property
    def event(self) -> str: ...
    @property
    def calls(self) -> int: ...
    @property
    def stored(self) -> int: ...
    @property
    def characters(self) -> int: ...
    @property
    def failures(self) -> int: ...
    @property
    def mean_ms(self) -> float: ...
    @property
    def slowest_ms(self) -> float: ...
    @property
    def called_at(self) -> datetime: ...
    @property
    def stored_at(self) -> datetime | None: ...
    @property
    def informed_at(self) -> datetime | None: ...
    @property
    def failed_at(self) -> datetime | None: ...
    @property
    def failure(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """What a tool's hooks did, over all kinds of events."""

    calls: int
    stored: int
    """Memories stored."""
    characters: int
    """Characters told to the agent."""
    failures: int
    mean_ms: float
    slowest_ms: float
    called_at: datetime | None
    stored_at: datetime | None
    informed_at: datetime | None
    failed_at: datetime | None
    failure: str

    @classmethod
    def of(cls, reports: Sequence[Reported]) -> Activity:
        called = [report for report in reports if report.event != BACKGROUND]
        calls = sum(report.calls for report in called)
        failed = [report for report in reports if report.failed_at is not None]
        last = max(failed, key=lambda report: str(report.failed_at), default=None)
        return cls(
            calls=calls,
            stored=sum(report.stored for report in reports),
            characters=sum(report.characters for report in reports),
            failures=sum(report.failures for report in reports),
            mean_ms=sum(report.mean_ms * report.calls for report in called)
            / max(calls, 1),
            slowest_ms=max((report.slowest_ms for report in called), default=0),
            called_at=_newest(report.called_at for report in called),
            stored_at=_newest(report.stored_at for report in reports),
            informed_at=_newest(report.informed_at for report in reports),
            failed_at=_newest(report.failed_at for report in reports),
            failure=last.failure if last else "",
        )


def _newest(times: Iterable[datetime | None]) -> datetime | None:
    return max((time for time in times if time is not None), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCheck:
    """The state of a tool."""

    tool: str
    title: str
    found: bool
    set_up: bool
    plugins: list[str]
    """Where our plugin is installed."""
    problems: list[str]
    activity: Activity | None
    """What its hooks did; None if it has none, or no daemon answers."""

    @property
    def verdict(self) -> str:
        if not self.set_up:
            place = "found" if self.found else "not found on this machine"
            return f"{place}, not set up"
        return "set up, but see below" if self.problems else "set up"


def check_tool(
    target: Target, site: Site, journal: Journal, reports: Sequence[Reported] | None
) -> ToolCheck:
    """Check a tool by its files, and by what the daemon reports; None if none answers."""
    plan = plan_tool(target, site, journal)
    plugins = target.plugins(site.machine)
    states = [state for change in plan.changes for _, state in change.states]
    written = any(edit.tool == target.name for edit in journal.edits)
    set_up = bool(plugins) or written or State.CURRENT in states
    activity = None
    labels = [label for change in plan.changes for label, _ in change.states]
    has_hooks = any(label.startswith(("hook", "plugin")) for label in labels)
    if reports is not None and (has_hooks or plugins):
        ours = [report for report in reports if report.client in target.clients]
        activity = Activity.of(ours)
    problems = _problems(plan, site) if set_up and not plugins else []
    if set_up:
        problems += target.switched_off(site.machine)
        problems += _silent(target, site.machine, activity)
    return ToolCheck(
        tool=target.name,
        title=target.title,
        found=plan.found,
        set_up=set_up,
        plugins=plugins,
        problems=problems,
        activity=activity,
    )


def _problems(plan: ToolPlan, site: Site) -> list[str]:
    shown = site.machine.shown
    words = {State.MISSING: "missing", State.STALE: "outdated"}
    problems = list(plan.problems)
    for change in plan.changes:
        for state, word in words.items():
            labels = [label for label, present in change.states if present is state]
            if labels:
                problems.append(f"{shown(change.file)}: {', '.join(labels)}: {word}")
    return problems


def _silent(target: Target, machine: Machine, activity: Activity | None) -> list[str]:
    """A warning if the tool's newest transcript is newer than what was stored of it."""
    newest = newest_transcript(target, machine)
    if activity is None or newest is None:
        return []
    written = f"{newest:%Y-%m-%d %H:%M} UTC"
    if activity.stored_at is None:
        return [f"transcript of {written}, nothing stored of it: do its hooks run?"]
    if newest - activity.stored_at < TRANSCRIPT_LEAD:
        return []
    stored = f"{activity.stored_at:%Y-%m-%d %H:%M}"
    return [f"transcript of {written}, last memory of {stored}: do its hooks run?"]


def newest_transcript(target: Target, machine: Machine) -> datetime | None:
    """When the tool's newest transcript was written."""
    newest = 0.0
    for path in islice(_transcripts(target, machine), TRANSCRIPTS_MAX):
        with suppress(OSError):  # deleted meanwhile
            newest = max(newest, path.stat().st_mtime)
    return datetime.fromtimestamp(newest, UTC) if newest else None


def _transcripts(target: Target, machine: Machine) -> Iterator[Path]:
    for pattern in target.transcripts:
        yield from machine.home.glob(pattern)
