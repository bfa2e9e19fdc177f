"""Setup of the tools: what is planned, applied, taken out again and checked."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain, islice
from pathlib import Path

import msgspec

from mnemosyned.agents.setup import files
from mnemosyned.agents.setup.documents import Document, NotEditable, Unreadable
from mnemosyned.agents.setup.files import (
    ABSENT,
    Edit,
    FileRefused,
    SetupJournal,
    digest,
)
from mnemosyned.agents.setup.parts import (
    NAME,
    Machine,
    OwnFile,
    SettingsEntry,
    SetupPart,
    Site,
    State,
    Target,
)
from mnemosyned.agents.setup.plan import FileChange, plan_files, plan_undo, recognized
from mnemosyned.memory.values import AgentActivity

PROGRAM_TIME_LIMIT_S = 60


def apply(change: FileChange, *, tool: str, scope: str, journal: SetupJournal) -> None:
    """Write a planned change and keep it in the journal. Raises `FileRefused`."""
    with journal.locked():
        if files.read_settings_file(change.file) != change.before:
            raise FileRefused("it was changed meanwhile; run this again")
        old = journal.of(tool, change.file)
        folders = _folders(change.file, journal)
        edit = _edit(change, old, folders, tool=tool, scope=scope)
        if change.written and edit != old:
            journal.add(edit, change.baseline)
        if not change.changed:
            return
        try:
            _write(change)
        except FileRefused:
            if old is None:
                journal.remove(edit)
            raise
        written = files.read_settings_file(change.file)
        if digest(written) != edit.after:
            edit = msgspec.structs.replace(edit, after=digest(written))
            journal.add(edit, change.baseline)


def _folders(file: Path, journal: SetupJournal) -> list[str]:
    """The directories above a file that setup makes now or has made, the outermost first."""
    above = {*map(str, file.resolve().parents)}
    made = {folder for edit in journal.edits for folder in edit.folders}
    return sorted((above & made) | {*map(str, files.missing_folders(file))}, key=len)


def _edit(
    change: FileChange, old: Edit | None, folders: list[str], *, tool: str, scope: str
) -> Edit:
    entry = change.entry
    return Edit(
        tool=tool,
        scope=scope,
        file=str(change.file),
        before=ABSENT if change.baseline is None else digest(change.baseline),
        after=digest(change.after),
        parts=change.written,
        folders=folders,
        made=change.made,
        take_out=[*entry.take_out] if entry else (old.take_out if old else []),
    )


def _write(change: FileChange) -> None:
    if change.entry is not None and _by_program(change.entry, change.before):
        return
    files.replace(change.file, change.after or b"")


def _by_program(entry: SettingsEntry, before: bytes | None) -> bool:
    """Have the tool's own program write its entry; False if it did not."""
    if before is not None and _state(entry) is State.STALE:
        _run(entry.take_out, entry.file)
    _run(entry.add, entry.file)
    if _state(entry) is State.CURRENT:
        return True
    if files.read_settings_file(entry.file) != before:
        raise FileRefused(f"{entry.add[0]} changed it otherwise; run this again")
    return False


def _state(entry: SettingsEntry) -> State:
    try:
        text = files.text_of(files.read_settings_file(entry.file)) or ""
        return entry.state(Document(entry.file, text))
    except (Unreadable, NotEditable):
        return State.FOREIGN


def _run(command: tuple[str, ...], file: Path) -> bool:
    """Run a tool's own program; whether it succeeded."""
    try:
        done = subprocess.run(  # noqa: S603 the program was found on the user's PATH
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROGRAM_TIME_LIMIT_S,
            check=False,
            cwd=file.parent,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def undo(edit: Edit, change: FileChange, journal: SetupJournal) -> None:
    """Take an edit out of its file and of the journal. Raises `FileRefused`."""
    with journal.locked():
        if files.read_settings_file(change.file) != change.before:
            raise FileRefused("it was changed meanwhile; run this again")
        if change.changed and not _undone_by_program(edit, change):
            if change.after is None:
                files.delete(change.file)
            else:
                files.replace(change.file, change.after)
        journal.remove(edit)
    files.delete_empty([Path(folder) for folder in edit.folders])


def _undone_by_program(edit: Edit, change: FileChange) -> bool:
    """Have the tool's own program take its entry out, where the file was changed since."""
    if not edit.take_out or digest(change.before) == edit.after:
        return False
    if not _run(tuple(edit.take_out), change.file):
        return False
    entries = (part for part in edit.parts if part.kind == "entry")
    return all(
        _state(SettingsEntry(change.file, tuple(part.path), {})) is State.MISSING
        for part in entries
    )


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


def plan_tool(target: Target, site: Site, journal: SetupJournal) -> ToolPlan:
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


def set_up(plan: ToolPlan, journal: SetupJournal) -> list[str]:
    """Write what was planned; what failed, by file. Nothing is written if there are problems."""
    if plan.problems:
        return plan.problems
    failures = []
    for change in plan.changes:
        try:
            apply(change, tool=plan.target.name, scope=plan.scope, journal=journal)
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
    journal: SetupJournal, tools: tuple[str, ...], project: Path | None
) -> list[Edit]:
    """The edits of these tools, or of all; in one project, or everywhere."""
    return [
        edit
        for edit in reversed(journal.edits)
        if (not tools or edit.tool in tools)
        and (project is None or edit.scope == scope_name(project))
    ]


def recognized_edits(
    targets: Iterable[Target], site: Site, journal: SetupJournal
) -> list[Edit]:
    """The parts of ours in tools of which the journal knows nothing, as edits.

    Two tools may read one file. A tool counts only with a file that no other has.
    """
    scope = scope_name(site.project)
    known = {edit.tool for edit in journal.edits if edit.scope == scope}
    found: dict[str, list[Edit]] = {}
    for target in targets:
        make = target.parts if site.project is None else target.project_parts
        by_file: dict[Path, list[SetupPart | OwnFile]] = {}
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
    edits: list[Edit], journal: SetupJournal, machine: Machine
) -> Iterator[tuple[Edit, FileChange, str]]:
    """Undo edits one after the other; each with its change, and what failed."""
    for edit in edits:
        change = plan_undo(edit, journal)
        problem = change.problem
        if not problem:
            try:
                undo(edit, change, journal)
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
    journal: SetupJournal,
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


def _is_written(plan: ToolPlan, target: Target, journal: SetupJournal) -> bool:
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
