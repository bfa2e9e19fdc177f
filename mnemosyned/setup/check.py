"""Whether a tool has memory: its files, its settings, and what the daemon has seen of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

from mnemosyned.domain.statuses import AgentActivity
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """Activity of a tool's hooks, over all kinds of events."""

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
    def of(cls, reports: Sequence[AgentActivity]) -> Activity:
        called = [report for report in reports if report.event != BACKGROUND]
        calls = sum(report.calls for report in called)
        total_ms = sum(report.mean_ms * report.calls for report in called)
        return cls(
            calls=calls,
            stored=sum(report.stored for report in reports),
            characters=sum(report.characters for report in reports),
            failures=sum(report.failures for report in reports),
            mean_ms=total_ms / max(calls, 1),
            slowest_ms=max((report.slowest_ms for report in called), default=0),
            called_at=_newest(called, lambda report: report.called_at),
            stored_at=_newest(reports, lambda report: report.stored_at),
            informed_at=_newest(reports, lambda report: report.informed_at),
            failed_at=_newest(reports, lambda report: report.failed_at),
            failure=_last_failure(reports),
        )


def _newest(
    reports: Iterable[AgentActivity],
    moment_of: Callable[[AgentActivity], datetime | None],
) -> datetime | None:
    moments = (moment_of(report) for report in reports)
    return max((moment for moment in moments if moment), default=None)


def _last_failure(reports: Iterable[AgentActivity]) -> str:
    failed = [report for report in reports if report.failed_at is not None]
    last = max(failed, key=lambda report: str(report.failed_at), default=None)
    return last.failure if last else ""


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
    target: Target,
    site: Site,
    journal: Journal,
    reports: Sequence[AgentActivity] | None,
) -> ToolCheck:
    """Check a tool by its files, and by what the daemon reports; None if none answers."""
    plan = plan_tool(target, site, journal)
    plugins = target.plugins(site.machine)
    set_up = bool(plugins) or _is_written(plan, target, journal)
    activity = None
    if reports is not None and (plugins or _has_hooks(plan)):
        activity = Activity.of(
            [each for each in reports if each.client in target.clients]
        )
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


def _is_written(plan: ToolPlan, target: Target, journal: Journal) -> bool:
    """Tell whether setup has written something for a tool, or somebody by hand."""
    states = (state for change in plan.changes for _, state in change.states)
    return State.CURRENT in states or any(
        edit.tool == target.name for edit in journal.edits
    )


def _has_hooks(plan: ToolPlan) -> bool:
    labels = (label for change in plan.changes for label, _ in change.states)
    return any(label.startswith(("hook", "plugin")) for label in labels)


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
