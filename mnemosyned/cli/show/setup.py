"""Plans, diffs and checks of `mnem setup`, as people read them."""

from __future__ import annotations

import textwrap

import click

from mnemosyned.cli.answers.table import table
from mnemosyned.cli.answers.visible import seen
from mnemosyned.setup.check import Activity, ToolCheck
from mnemosyned.setup.plan import FileChange
from mnemosyned.setup.tools import ToolPlan, summary
from mnemosyned.terminal import (
    TAB_CELLS,
    counted,
    cut,
    cut_line,
    prose_width,
    when,
    width,
)

INDENT = "  "
DIFF_LINES_MAX = 60


def show_plan(plan: ToolPlan, *, whole: bool) -> str:
    """Show the planned changes for a tool as a diff."""
    shown = plan.site.machine.shown
    lines = [click.style(plan.target.title, bold=True)]
    if not plan.found:
        lines.append(_paragraph("it was not found on this machine"))
    for change in plan.changes:
        if not change.problem:
            lines.append(_paragraph(f"{shown(change.file)}: {summary(change)}"))
        if change.entry is not None and change.changed:
            lines.append(_paragraph(f"written by `{' '.join(change.entry.add[:3])}`"))
    if not plan.problems:
        lines += [
            show_diff(change, shown(change.file), whole=whole)
            for change in plan.changed
        ]
        if not plan.changed:
            lines.append(_paragraph("no change"))
    return "\n".join(lines)


def show_diff(change: FileChange, name: str, *, whole: bool = False) -> str:
    """The change of a file, a line of it on a line here; cut, unless the whole is asked for."""
    room = width()
    lines = change.diff(name).splitlines()
    limit = len(lines) if whole else DIFF_LINES_MAX
    shown = [
        _colored(cut_line(seen(line.expandtabs(TAB_CELLS)), room))
        for line in lines[:limit]
    ]
    if len(lines) > limit:
        shown.append(
            f"… {counted(len(lines) - limit, 'more line')}, shown by --dry-run"
        )
    return "\n".join(shown)


def _colored(line: str) -> str:
    if line.startswith("-") and not line.startswith("---"):
        return click.style(line, fg="red")
    return click.style(line, bold=True) if line.startswith("+") else line


def next_steps(plan: ToolPlan, confirmed: str) -> str:
    """Show the written files, the steps left to the user, and the doubts."""
    shown = plan.site.machine.shown
    written = ", ".join(shown(change.file) for change in plan.changed)
    target = plan.target
    lines = [f"written: {written}"]
    lines += [confirmed] if confirmed else []
    lines += [f"next: {step}" for step in target.steps]
    lines += [f"note: {note}" for note in target.notes]
    lines += [f"not confirmed: {doubt}" for doubt in target.unconfirmed]
    lines.append(f"undo: mnem setup --undo {target.name}")
    return "\n".join(map(_paragraph, lines))


def _paragraph(line: str, indent: str = INDENT) -> str:
    return textwrap.fill(
        seen(line),
        prose_width(),
        initial_indent=indent,
        subsequent_indent=indent + INDENT,
        break_on_hyphens=False,
        break_long_words=False,
    )


def tools_table(plans: list[ToolPlan]) -> str:
    """The tools that were found, and what each would get."""
    room = width() - 2 - max(len(plan.target.title) for plan in plans)
    rows = [(plan.target.title, cut(_would_get(plan), room)) for plan in plans]
    return table(("found", "would get"), rows)


def _would_get(plan: ToolPlan) -> str:
    if plan.problems:
        return seen(plan.problems[0])
    if not plan.changed:
        return "nothing: it has memory already"
    return "; ".join(summary(change).replace(": new", "") for change in plan.changed)


def as_data(plan: ToolPlan, failures: list[str], *, written: bool) -> dict[str, object]:
    """A plan as JSON."""
    target = plan.target
    return {
        "tool": target.name,
        "found": plan.found,
        "written": written and not failures,
        "problems": failures,
        "files": [
            {
                "file": str(change.file),
                "changed": change.changed,
                "parts": {label: str(state) for label, state in change.states},
                "diff": change.diff(str(change.file)),
            }
            for change in plan.changes
        ],
        "next": [*target.steps],
        "notes": [*target.notes],
        "unconfirmed": [*target.unconfirmed],
    }


def show_daemon(state: str) -> str:
    """The state of the daemon, in a paragraph."""
    return _paragraph(f"daemon: {state}", indent="")


def show_check(checks: list[ToolCheck], *, daemon: str) -> str:
    """Each tool with its state, and below it what was seen of it."""
    lines = [show_daemon(daemon)]
    for check in checks:
        lines.append(f"{click.style(check.title, bold=True)}: {check.verdict}")
        lines += [_paragraph(f"our plugin: {plugin}") for plugin in check.plugins]
        lines += map(_paragraph, check.problems)
        if check.set_up and check.activity is not None:
            lines += map(_paragraph, _activity(check.activity))
    if not checks:
        lines.append("none of the tools was found on this machine")
    return "\n".join(lines)


def _activity(activity: Activity) -> list[str]:
    """Return the activity of its hooks, in lines."""
    if not activity.calls:
        return ["its hooks have not run yet"]
    times = {
        "last called": activity.called_at,
        "last stored": activity.stored_at,
        "last told the agent": activity.informed_at,
    }
    moments = [f"{what} {when(time)}" for what, time in times.items() if time]
    counts = (
        f"{counted(activity.calls, 'call')} of {activity.mean_ms:.0f} ms, "
        f"the slowest {activity.slowest_ms:.0f} ms; "
        f"{counted(activity.stored, 'memory')} stored, "
        f"{counted(activity.characters, 'character')} told"
    )
    failures = counted(activity.failures, "failure")
    failed = f"{failures}, the last {when(activity.failed_at)}: {activity.failure}"
    return ["; ".join(moments), counts, *([failed] if activity.failures else [])]
