"""Whether a tool has memory: its files, its settings, and what the daemon has seen of it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from mnemosyned.setup.journal import Journal
from mnemosyned.setup.machine import Machine
from mnemosyned.setup.parts import State
from mnemosyned.setup.target import Site, Target
from mnemosyned.setup.tools import ToolPlan, plan_tool

TRANSCRIPTS_MAX = 5_000
"""Transcripts looked at, so that a check stays quick."""
TRANSCRIPT_LEAD = timedelta(minutes=15)
"""A transcript this much newer than the last memory says that hooks do not run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCheck:
    """The state of a tool."""

    tool: str
    title: str
    found: bool
    set_up: bool
    problems: list[str]
    seen: list[str]

    @property
    def verdict(self) -> str:
        if not self.set_up:
            place = "found" if self.found else "not found on this machine"
            return f"{place}, not set up"
        return "set up, but see below" if self.problems else "set up"

    def as_data(self) -> dict[str, object]:
        """The state as JSON."""
        return {
            "tool": self.tool,
            "found": self.found,
            "set_up": self.set_up,
            "problems": self.problems,
            "seen": self.seen,
        }


def check_tool(
    target: Target, site: Site, journal: Journal, status: object
) -> ToolCheck:
    """Check a tool by its files and by the daemon's status, None if no daemon answers."""
    plan = plan_tool(target, site, journal)
    plugins = target.plugins(site.machine)
    states = [state for change in plan.changes for _, state in change.states]
    written = any(edit.tool == target.name for edit in journal.edits)
    set_up = bool(plugins) or written or State.CURRENT in states
    activity = _activity(status, target)
    problems = _problems(plan, site) if set_up and not plugins else []
    if set_up:
        problems += target.switched_off(site.machine)
        problems += _silent(target, site.machine, activity)
    return ToolCheck(
        tool=target.name,
        title=target.title,
        found=plan.found,
        set_up=set_up,
        problems=problems,
        seen=[f"our plugin: {plugin}" for plugin in plugins]
        + [_activity_line(name, facts) for name, facts in activity.items()],
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


def _activity(status: object, target: Target) -> dict[str, Mapping[str, Any]]:
    """What the daemon reports of the tool's clients, where it does."""
    agents = getattr(status, "agents", None)
    facts = agents if isinstance(agents, Mapping) else {}
    return {
        name: facts[name]
        for name in target.clients
        if isinstance(facts.get(name), Mapping)
    }


def _activity_line(name: str, facts: Mapping[str, Any]) -> str:
    shown = [f"{key.replace('_', ' ')} {value}" for key, value in facts.items()]
    return f"{name}: {', '.join(shown)}"


def _silent(
    target: Target, machine: Machine, activity: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """A warning if the tool's newest transcript is newer than what was stored of it."""
    stored = [
        moment
        for facts in activity.values()
        if isinstance(moment := facts.get("last_stored"), datetime)
    ]
    newest = newest_transcript(target, machine)
    if not stored or newest is None or newest - max(stored) < TRANSCRIPT_LEAD:
        return []
    written, remembered = (f"{time:%Y-%m-%d %H:%M}" for time in (newest, max(stored)))
    return [
        f"transcript of {written} UTC, last memory of {remembered}: do its hooks run?"
    ]


def newest_transcript(target: Target, machine: Machine) -> datetime | None:
    """When the tool's newest transcript was written."""
    times = [
        os.stat(path).st_mtime  # noqa: PTH116 a path is made for the newest ones alone
        for path in islice(_transcripts(target, machine), TRANSCRIPTS_MAX)
    ]
    return datetime.fromtimestamp(max(times), UTC) if times else None


def _transcripts(target: Target, machine: Machine) -> Iterator[Path]:
    for pattern in target.transcripts:
        yield from machine.home.glob(pattern)
