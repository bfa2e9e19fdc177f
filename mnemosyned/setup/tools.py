"""The steps of `mnem setup` for a tool: plan, write, confirm, undo."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from mnemosyned.setup import apply as carry_out
from mnemosyned.setup.files import FileRefused
from mnemosyned.setup.journal import Edit, Journal
from mnemosyned.setup.machine import Machine
from mnemosyned.setup.parts import NAME, OwnFile, Part, State
from mnemosyned.setup.plan import FileChange, plan_files, plan_undo, recognized
from mnemosyned.setup.target import Site, Target

USER_SCOPE = "user"
LISTING_TIME_LIMIT_S = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPlan:
    """The planned changes for a tool, and what is in the way."""

    target: Target
    site: Site
    found: bool
    changes: list[FileChange]
    refusals: list[str]

    @property
    def scope(self) -> str:
        return scope_name(self.site.project)

    @property
    def problems(self) -> list[str]:
        """Everything that keeps it from being set up; then nothing at all is written."""
        shown = self.site.machine.shown
        in_files = [
            f"{shown(change.file)}: {change.problem}"
            for change in self.changes
            if change.problem
        ]
        return self.refusals + in_files

    @property
    def changed(self) -> list[FileChange]:
        return [change for change in self.changes if change.changed]


def scope_name(project: Path | None) -> str:
    """The scope of an edit, as the journal names it."""
    return USER_SCOPE if project is None else f"project {project}"


def plan_tool(target: Target, site: Site, journal: Journal) -> ToolPlan:
    """Plan a tool's setup; nothing is written."""
    refusals = [
        f"our plugin is installed ({plugin}): remove it first, or leave it at that"
        for plugin in target.plugins(site.machine)
    ]
    make = target.parts if site.project is None else target.project_parts
    if make is None:
        refusals.append(f"{target.title} has no settings of a project")
    parts = make(site) if make and not refusals else []
    return ToolPlan(
        target=target,
        site=site,
        found=target.found(site.machine),
        changes=plan_files(parts, tool=target.name, journal=journal),
        refusals=refusals,
    )


def set_up(plan: ToolPlan, journal: Journal) -> list[str]:
    """Write what was planned; what failed, by file. Nothing is written if there are problems."""
    if plan.problems:
        return plan.problems
    failures = []
    for change in plan.changes:
        try:
            carry_out.apply(
                change, tool=plan.target.name, scope=plan.scope, journal=journal
            )
        except FileRefused as error:
            failures.append(f"{plan.site.machine.shown(change.file)}: {error}")
            break
    return failures


def confirmed_by(target: Target, site: Site) -> str:
    """Ask the tool's own program about the server; empty if it cannot be asked."""
    program = site.machine.program(*target.programs) if target.listing else None
    if program is None or site.project is not None:
        return ""
    asked = f"{program.name} {' '.join(target.listing)}"
    try:
        done = subprocess.run(  # noqa: S603 the program was found on the user's PATH
            [program, *target.listing],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=LISTING_TIME_LIMIT_S,
            check=False,
            cwd=site.machine.home,
        )
    except (OSError, subprocess.TimeoutExpired):
        return f"`{asked}` did not answer"
    if NAME in done.stdout.decode(errors="replace"):
        return f"confirmed by `{asked}`"
    return f"`{asked}` does not show it"


def edits_to_undo(
    journal: Journal, tools: tuple[str, ...], project: Path | None
) -> list[Edit]:
    """The edits of these tools, or of all; in one project, or everywhere."""
    return [
        edit
        for edit in reversed(journal.edits)
        if (not tools or edit.tool in tools)
        and (project is None or edit.scope == scope_name(project))
    ]


def recognized_edits(
    targets: Iterable[Target], site: Site, journal: Journal
) -> list[Edit]:
    """The parts of ours in tools of which the journal knows nothing, as edits.

    Two tools may read one file. A tool counts only with a file that no other has.
    """
    scope = scope_name(site.project)
    known = {edit.tool for edit in journal.edits if edit.scope == scope}
    found: dict[str, list[Edit]] = {}
    for target in targets:
        make = target.parts if site.project is None else target.project_parts
        by_file: dict[Path, list[Part | OwnFile]] = {}
        for part in make(site) if make and target.name not in known else ():
            by_file.setdefault(part.file, []).append(part)
        found[target.name] = [
            edit
            for file, parts in by_file.items()
            if (edit := recognized(file, parts, tool=target.name, scope=scope))
        ]
    for tool, edits in found.items():
        others = chain(journal.edits, *(found[name] for name in found if name != tool))
        if {edit.file for edit in edits} <= {edit.file for edit in others}:
            found[tool] = []
    return [edit for edits in found.values() for edit in edits]


def undo_all(
    edits: list[Edit], journal: Journal, machine: Machine
) -> Iterator[tuple[Edit, FileChange, str]]:
    """Undo edits one after the other; each with its change, and what failed."""
    for edit in edits:
        change = plan_undo(edit, journal)
        problem = change.problem
        if not problem:
            try:
                carry_out.undo(edit, change, journal)
            except FileRefused as error:
                problem = str(error)
        shown = f"{machine.shown(change.file)}: {problem}" if problem else ""
        yield edit, change, shown


def summary(change: FileChange) -> str:
    """The parts of a file in a few words: `MCP server: new`."""
    words = {
        State.MISSING: "new",
        State.STALE: "outdated, to be renewed",
        State.CURRENT: "there",
        State.FOREIGN: "another's",
    }
    by_state: dict[State, list[str]] = {}
    for label, state in change.states:
        by_state.setdefault(state, []).append(label)
    return "; ".join(
        f"{_joined(labels)}: {words[state]}" for state, labels in by_state.items()
    )


def _joined(labels: list[str]) -> str:
    hooks = [label for label in labels if label.startswith("hook ")]
    others = [label for label in labels if label not in hooks and label != "version"]
    if len(hooks) > 1:
        others.append(f"{len(hooks)} hooks")
    elif hooks:
        others += hooks
    return ", ".join(others) or "version"
