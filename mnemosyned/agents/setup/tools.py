"""Setup of the tools: plans of the changes of each file, applied, undone and checked."""

from __future__ import annotations

import difflib
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import chain, islice
from pathlib import Path

import msgspec

from mnemosyned.agents.setup import documents, files, parts
from mnemosyned.agents.setup.targets import SetupTarget
from mnemosyned.memory.capture import BACKGROUND
from mnemosyned.memory.values import AgentActivity

_TO_WRITE = (parts.PartState.MISSING, parts.PartState.STALE)
_KINDS = {
    parts.EntryPart: "entry",
    parts.HookPart: "hook",
    parts.HeadingPart: "heading",
}
_CLASSES = {kind: part for part, kind in _KINDS.items()}
_WHOLE_FILE = files.WrittenPart(kind="file", path=[], kept=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """The present and the planned content of a file."""

    file: Path
    before: bytes | None
    after: bytes | None
    baseline: bytes | None = None
    """Content that an undo restores."""
    made: bool = False
    """Whether setup makes the file."""
    states: Sequence[tuple[str, parts.PartState]] = ()
    """Label and present state of each part."""
    written: list[files.WrittenPart] = field(default_factory=list)
    entry: parts.EntryPart | None = None
    """The entry to be written by the tool's own program."""
    problem: str = ""

    @property
    def changes(self) -> bool:
        """Whether the planned content differs from the present one; False if there is a problem."""
        return not self.problem and self.before != self.after

    def diff(self, name: str) -> str:
        """Return the change as a unified diff, with `name` as the file's name in its head."""
        changes = difflib.unified_diff(
            (self.before or b"").decode(errors="replace").splitlines(),
            (self.after or b"").decode(errors="replace").splitlines(),
            name if self.before is not None else "/dev/null",
            name if self.after is not None else "/dev/null",
            n=1,
            lineterm="",
        )
        return "\n".join(changes)


def group_by_file(setting_parts: parts.Parts) -> dict[Path, parts.Parts]:
    """Return {file: parts of the file}, with parts in the given order."""
    by_file: dict[Path, parts.Parts] = {}
    for part in setting_parts:
        by_file.setdefault(part.file, []).append(part)
    return by_file


def plan_file(
    file: Path, setting_parts: parts.Parts, *, tool: str, journal: files.SetupJournal
) -> FileChange:
    """Return the planned change of one file, with the parts of a tool written into it.

    If the file cannot be changed, its content stays and the change contains the problem.
    """
    content: bytes | None = None
    try:
        content = files.read_file(file)
        own = setting_parts[0]
        if isinstance(own, parts.OwnFile):
            change = _plan_own_file(own, content, journal.edit_of(tool, file))
        else:
            members = [
                part for part in setting_parts if isinstance(part, parts.SettingsPart)
            ]
            change = _plan_settings(file, content, members, tool=tool, journal=journal)
        if change.changes:
            files.check_writable(file)
    except documents.Unreadable as error:
        problem = f"it cannot be read: {error}"
    except UnicodeEncodeError:
        problem = "the path of our program is not UTF-8"
    except files.FileRefused as error:
        problem = str(error)
    else:
        return change
    return FileChange(file=file, before=content, after=content, problem=problem)


def _plan_own_file(
    part: parts.OwnFile, content: bytes | None, edit: files.FileEdit | None
) -> FileChange:
    """Return the planned change of a whole file of ours. Raises `FileRefused` if a foreign file is there."""
    state = part.state_of(files.decode_text(content))
    if state is parts.PartState.FOREIGN:
        raise files.FileRefused("another file of this name is there; rename it first")
    is_written = edit is not None or state in _TO_WRITE
    return FileChange(
        file=part.file,
        before=content,
        after=part.content.encode(),
        made=True,
        states=[(part.label, state)],
        written=[_WHOLE_FILE] if is_written else [],
    )


def _plan_settings(
    file: Path,
    content: bytes | None,
    setting_parts: list[parts.SettingsPart],
    *,
    tool: str,
    journal: files.SetupJournal,
) -> FileChange:
    """Return the change that writes our missing and outdated parts into a file.

    Raises `FileRefused`, also if a value that is not ours is at the path of a part.
    """
    document = _parse_document(file, content)
    states = [(part, part.state(document)) for part in setting_parts]
    for part, state in states:
        if state is parts.PartState.FOREIGN:
            raise files.FileRefused(parts.describe_foreign_value(part, document))
    # The file as it was before setup: by the journal, or else without outdated parts of ours.
    edit = journal.edit_of(tool, file) or next(iter(journal.edits_of_file(file)), None)
    if edit is None:
        original = _parse_document(file, content)
        for part, state in states:
            if state is parts.PartState.STALE:
                part.remove(original)
        baseline = None if content is None else original.text.encode()
        made = content is None
    else:
        baseline, made = _restore_content(edit, file, content, journal=journal)
        original = _parse_document(file, baseline)
    known = {tuple(part.path) for part in edit.parts} if edit else set()
    to_write = [part for part, state in states if state in _TO_WRITE]
    for part in to_write:
        part.write(document)
    entries = [part for part in to_write if isinstance(part, parts.EntryPart)]
    return FileChange(
        file=file,
        before=content,
        after=document.text.encode() if to_write else content,
        baseline=baseline,
        made=made,
        states=[(part.label, state) for part, state in states],
        written=[
            _make_written_part(
                part, len(documents.values_along(original.data, part.path)) - 1
            )
            for part in setting_parts
            if part in to_write or tuple(map(str, part.path)) in known
        ],
        entry=next((entry for entry in entries if entry.add), None),
    )


def _parse_document(file: Path, content: bytes | None) -> documents.Document:
    """Return the content of `file` as a document, empty for None. Raises as `decode_text` and `Document` do."""
    return documents.Document(file, files.decode_text(content) or "")


def _make_written_part(part: parts.SettingsPart, kept: int) -> files.WrittenPart:
    """Return the journal's record of a part; `kept` is how many steps of its path existed before."""
    return files.WrittenPart(
        kind=_KINDS[type(part)], path=[*map(str, part.path)], kept=kept
    )


def _restore_content(
    edit: files.FileEdit,
    file: Path,
    content: bytes | None,
    *,
    journal: files.SetupJournal,
) -> tuple[bytes | None, bool]:
    """Return a file's content without an edit, and True if an undo deletes the file.

    If the file did not change since the edit, the old content is returned byte for byte; else the edit's
    parts are removed. For a file that setup made, with nothing else in it, returns (None, True).
    """
    if files.digest(content) == edit.after:
        if edit.before == files.ABSENT:
            return None, True
        if (before := journal.content_before(edit)) is not None:
            return before, False
    if content is None or files.digest(content) == edit.before:
        return content, False
    document = _parse_document(file, content)
    # Headings last: they stay if hooks of the user remain.
    for written in sorted(edit.parts, key=lambda part: part.kind == "heading"):
        part = _CLASSES[written.kind](file, tuple(written.path), {})
        is_heading = isinstance(part, parts.HeadingPart)
        if is_heading and edit.made and document.data.get("hooks"):
            continue
        part.remove(document)
        for length in range(len(part.path), written.kept, -1):  # empty now
            *_, inner = values = documents.values_along(
                document.data, part.path[:length]
            )
            if len(values) > length and inner in ({}, []):
                document.remove(part.path[:length])
    if edit.made and document.text.strip() in ("", "{}"):
        return None, True
    return document.text.encode(), False


# ------------------------------------------------------------------------ undo


def plan_undo(edit: files.FileEdit, journal: files.SetupJournal) -> FileChange:
    """Return the planned change that undoes an edit, keeping parts that other tools need.

    If the undo is impossible, the change contains the problem.
    """
    file = Path(edit.file)
    content: bytes | None = None
    try:
        content = files.read_file(file)
        after = _remove_edit_content(edit, file, content, journal)
        if after != content:
            files.check_writable(file)
    except files.FileRefused as error:
        return FileChange(file=file, before=content, after=content, problem=str(error))
    return FileChange(file=file, before=content, after=after)


def _remove_edit_content(
    edit: files.FileEdit, file: Path, content: bytes | None, journal: files.SetupJournal
) -> bytes | None:
    """Return the content without an edit's parts, except parts that other tools need; None to delete the file.

    Raises `FileRefused` if a whole file of ours was changed since the edit.
    """
    if any(part.kind == "file" for part in edit.parts):
        if content is None or files.digest(content) == edit.after:
            return None
        raise files.FileRefused("it has changed since the setup; delete it yourself")
    others = [other for other in journal.edits_of_file(file) if other.tool != edit.tool]
    if others:
        needed = {tuple(part.path) for other in others for part in other.parts}
        setting_parts = [part for part in edit.parts if tuple(part.path) not in needed]
        if not setting_parts:
            return content
        # With some of its parts needed, the others can only be edited out.
        edit = msgspec.structs.replace(edit, before="", after="", parts=setting_parts)
    return _restore_content(edit, file, content, journal=journal)[0]


def recognize_edit(
    file: Path, setting_parts: parts.Parts, *, tool: str, scope: str
) -> files.FileEdit | None:
    """Return an edit that would have made our parts in a file; None if the file has none.

    With it, a setup that is not in the journal can be undone.
    """
    try:
        content = files.read_file(file)
        own = setting_parts[0]
        written: list[files.WrittenPart] = []
        is_whole = False
        if isinstance(own, parts.OwnFile):
            text = files.decode_text(content)
            if own.state_of(text) in parts.OURS:
                written = [_WHOLE_FILE]
            is_whole = text == own.content
        else:
            members = [
                part for part in setting_parts if isinstance(part, parts.SettingsPart)
            ]
            written = _find_our_parts(_parse_document(file, content), members)
    except files.FileRefused:
        return None
    if not written:
        return None
    entries = [part for part in setting_parts if isinstance(part, parts.EntryPart)]
    return files.FileEdit(
        tool=tool,
        scope=scope,
        file=str(file),
        before="",
        after=files.digest(content) if is_whole else "",
        parts=written,
        folders=[],
        made=True,
        take_out=[word for entry in entries for word in entry.take_out],
    )


def _find_our_parts(
    document: documents.Document, setting_parts: Iterable[parts.SettingsPart]
) -> list[files.WrittenPart]:
    """Return records of our parts in a document, also of hooks for events that setup no longer uses."""
    sought = {part.path: part for part in setting_parts}
    headings = [part for part in sought.values() if isinstance(part, parts.HeadingPart)]
    for hook in [part for part in sought.values() if isinstance(part, parts.HookPart)]:
        events = documents.value_at(document.data, hook.path[:-1])
        for event in events if isinstance(events, dict) else {}:
            path = (*hook.path[:-1], event)
            sought.setdefault(path, parts.HookPart(hook.file, path, hook.value))
    ours = [
        part
        for part in sought.values()
        if not isinstance(part, parts.HeadingPart)
        and part.state(document) in parts.OURS
    ]
    return [
        _make_written_part(part, 0) for part in (*ours, *(headings if ours else ()))
    ]


PROGRAM_TIME_LIMIT_S = 60
_CHANGED_MEANWHILE = "it was changed meanwhile; run this again"
_LACKING = {parts.PartState.MISSING: "missing", parts.PartState.STALE: "outdated"}

# ------------------------------------------------------------------ one file


def apply_change(
    change: FileChange, *, tool: str, scope: str, journal: files.SetupJournal
) -> None:
    """Write a planned change to its file, and save it as an edit in the journal.

    Raises `FileRefused` if the file was changed since the plan was made, or cannot be written.
    """
    with journal.lock():
        if files.read_file(change.file) != change.before:
            raise files.FileRefused(_CHANGED_MEANWHILE)
        old = journal.edit_of(tool, change.file)
        take_out = (
            change.entry.take_out if change.entry else old.take_out if old else ()
        )
        # The directories above it that setup created or has yet to create.
        made = {folder for other in journal.edits for folder in other.folders}
        folders = (
            folder
            for folder in change.file.resolve().parents
            if str(folder) in made or not folder.exists()
        )
        edit = files.FileEdit(
            tool=tool,
            scope=scope,
            file=str(change.file),
            before=files.digest(change.baseline),
            after=files.digest(change.after),
            parts=change.written,
            folders=sorted(map(str, folders), key=len),
            made=change.made,
            take_out=[*take_out],
        )
        if change.written and edit != old:
            journal.add(edit, change.baseline)
        if not change.changes:
            return
        try:
            if not _write_by_program(change):
                files.replace_file(change.file, change.after or b"")
        except files.FileRefused:
            if old is None:
                journal.remove(edit)
            raise
        written = files.read_file(change.file)
        if files.digest(written) != edit.after:
            edit = msgspec.structs.replace(edit, after=files.digest(written))
            journal.add(edit, change.baseline)


def _write_by_program(change: FileChange) -> bool:
    """Run the tool's own program to write the entry, if it can; return True if the entry is current then.

    Raises `FileRefused` if the program changed something else.
    """
    entry = change.entry
    if entry is None:
        return False
    folder = entry.file.parent
    if change.before is not None and _read_entry_state(entry) is parts.PartState.STALE:
        _run_program(entry.take_out, folder, limit_s=PROGRAM_TIME_LIMIT_S)
    _run_program(entry.add, folder, limit_s=PROGRAM_TIME_LIMIT_S)
    if _read_entry_state(entry) is parts.PartState.CURRENT:
        return True
    if files.read_file(entry.file) != change.before:
        raise files.FileRefused(f"{entry.add[0]} changed it otherwise; run this again")
    return False


def _read_entry_state(entry: parts.EntryPart) -> parts.PartState:
    """Return the state of an entry in its file; missing if the file cannot be read."""
    document = parts.read_document(entry.file)
    return entry.state(document) if document else parts.PartState.MISSING


def _run_program(
    command: Sequence[str | Path], folder: Path, *, limit_s: float
) -> tuple[int, str] | None:
    """Return a command's exit code and output; None if it fails to run or end in time."""
    try:
        done = subprocess.run(  # noqa: S603 the program was found on the user's PATH
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=limit_s,
            check=False,
            cwd=folder,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.returncode, done.stdout.decode(errors="replace")


def undo_edit(
    edit: files.FileEdit, change: FileChange, journal: files.SetupJournal
) -> None:
    """Write the planned undo of an edit, remove it from the journal, and delete directories of setup if empty.

    Raises `FileRefused` if the file was changed since the plan was made, or cannot be written.
    """
    with journal.lock():
        if files.read_file(change.file) != change.before:
            raise files.FileRefused(_CHANGED_MEANWHILE)
        if change.changes and not _remove_by_program(edit, change):
            if change.after is None:
                files.delete_file(change.file)
            else:
                files.replace_file(change.file, change.after)
        journal.remove(edit)
    for folder in reversed(edit.folders):
        with suppress(OSError):  # not empty
            Path(folder).rmdir()


def _remove_by_program(edit: files.FileEdit, change: FileChange) -> bool:
    """If the file changed since the edit, remove our entry by the tool's program; return True on success."""
    if not edit.take_out or files.digest(change.before) == edit.after:
        return False
    folder = change.file.parent
    done = _run_program(edit.take_out, folder, limit_s=PROGRAM_TIME_LIMIT_S)
    if done is None or done[0] != 0:
        return False
    entries = (part for part in edit.parts if part.kind == "entry")
    return all(
        _read_entry_state(parts.EntryPart(change.file, tuple(part.path), {}))
        is parts.PartState.MISSING
        for part in entries
    )


# ------------------------------------------------------------------ one tool


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPlan:
    """The planned changes for a tool, and the reasons against them."""

    target: SetupTarget
    site: parts.SetupSite
    found: bool
    changes: list[FileChange]
    refusals: list[str]

    @property
    def problems(self) -> list[str]:
        """Reasons why the setup is impossible, as sentences; with any, nothing is written."""
        in_files = [
            f"{self.site.machine.short_path(change.file)}: {change.problem}"
            for change in self.changes
            if change.problem
        ]
        return self.refusals + in_files

    @property
    def changed_files(self) -> list[FileChange]:
        """The planned changes, without files that stay the same or cannot be changed."""
        return [change for change in self.changes if change.changes]


def scope_name(project: Path | None) -> str:
    """Return the name of a scope in the journal: "user" for None, else "project" and the path."""
    return "user" if project is None else f"project {project}"


def plan_tool(
    target: SetupTarget, site: parts.SetupSite, journal: files.SetupJournal
) -> ToolPlan:
    """Return the plan of a tool's setup: the changes of its files, or reasons against it."""
    refusals = [
        f"our plugin is installed ({plugin}): remove it first, or leave it at that"
        for plugin in target.plugins(site.machine)
    ]
    if site.project and not target.has_project:
        refusals.append(f"{target.title} has no settings of a project")
    setting_parts = [] if refusals else target.parts(site)
    return ToolPlan(
        target=target,
        site=site,
        found=target.is_present(site.machine),
        changes=[
            plan_file(file, members, tool=target.name, journal=journal)
            for file, members in group_by_file(setting_parts).items()
        ],
        refusals=refusals,
    )


def set_up(plan: ToolPlan, journal: files.SetupJournal) -> list[str]:
    """Write a plan; return problems: those of the plan, or of the first file that cannot be written."""
    if plan.problems:
        return plan.problems
    scope = scope_name(plan.site.project)
    for change in plan.changes:
        try:
            apply_change(change, tool=plan.target.name, scope=scope, journal=journal)
        except files.FileRefused as error:
            return [f"{plan.site.machine.short_path(change.file)}: {error}"]
    return []


def confirm_by_program(target: SetupTarget, site: parts.SetupSite) -> str:
    """Return a sentence on whether the tool's own program lists our server; empty if it cannot tell."""
    program = site.machine.program(*target.programs) if target.listing else None
    if program is None or site.project is not None:
        return ""
    asked = f"{program.name} {' '.join(target.listing)}"
    command: list[str | Path] = [program, *target.listing]
    done = _run_program(command, site.machine.home, limit_s=30)
    if done is None:
        return f"`{asked}` did not answer"
    if parts.NAME in done[1]:
        return f"confirmed by `{asked}`"
    return f"`{asked}` does not show it"


def edits_to_undo(
    journal: files.SetupJournal, tools: tuple[str, ...], project: Path | None
) -> list[files.FileEdit]:
    """Return edits, newest first: of `tools` (of all if empty), in `project` (in all if None)."""
    return [
        edit
        for edit in reversed(journal.edits)
        if (not tools or edit.tool in tools)
        and (project is None or edit.scope == scope_name(project))
    ]


def recognize_edits(
    targets: Iterable[SetupTarget], site: parts.SetupSite, journal: files.SetupJournal
) -> list[files.FileEdit]:
    """Return an edit for each file with parts of ours, for tools that the journal lacks.

    A tool is left out if all its files are in edits of other tools.
    """
    scope = scope_name(site.project)
    known = {edit.tool for edit in journal.edits if edit.scope == scope}
    found: dict[str, list[files.FileEdit]] = {}
    for target in targets:
        is_open = target.name not in known and (target.has_project or not site.project)
        by_file = group_by_file(target.parts(site)) if is_open else {}
        found[target.name] = [
            edit
            for file, setting_parts in by_file.items()
            if (
                edit := recognize_edit(
                    file, setting_parts, tool=target.name, scope=scope
                )
            )
        ]
    for tool, edits in found.items():
        others = chain(journal.edits, *(found[name] for name in found if name != tool))
        if {edit.file for edit in edits} <= {edit.file for edit in others}:
            found[tool] = []
    return [edit for edits in found.values() for edit in edits]


def undo_all(
    edits: list[files.FileEdit], journal: files.SetupJournal, machine: parts.Machine
) -> Iterator[tuple[str, str]]:
    """Undo edits one by one; yield (file, error message), with an empty message on success."""
    for edit in edits:
        change = plan_undo(edit, journal)
        problem = change.problem
        if not problem:
            try:
                undo_edit(edit, change, journal)
            except files.FileRefused as error:
                problem = str(error)
        file = machine.short_path(change.file)
        yield edit.file, f"{file}: {problem}" if problem else ""


def summarize_parts(change: FileChange) -> str:
    """Return the states of a file's parts in words: "MCP server: new; 5 hooks: there"."""
    words = {
        parts.PartState.MISSING: "new",
        parts.PartState.STALE: "outdated, to be renewed",
        parts.PartState.CURRENT: "there",
        parts.PartState.FOREIGN: "another's",
    }
    by_state: dict[parts.PartState, list[str]] = {}
    for label, state in change.states:
        by_state.setdefault(state, []).append(label)
    shown = []
    for state, labels in by_state.items():
        hooks = [label for label in labels if label.startswith("hook ")]
        names = [label for label in labels if label not in (*hooks, "version")]
        names += [f"{len(hooks)} hooks"] if len(hooks) > 1 else hooks
        shown.append(f"{', '.join(names) or 'version'}: {words[state]}")
    return "; ".join(shown)


# ----------------------------------------------------------------- the check

TRANSCRIPTS_MAX = 5_000
"""Transcripts looked at, so that a check stays quick."""
TRANSCRIPT_LEAD = timedelta(minutes=15)
"""A transcript this much newer than the last memory shows that hooks do not run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolActivity:
    """Activity of a tool's hooks, over all kinds of events."""

    calls: int
    stored: int
    """Memories stored."""
    characters: int
    """Characters given to the agent."""
    failures: int
    mean_ms: float
    slowest_ms: float
    called_at: datetime | None
    stored_at: datetime | None
    informed_at: datetime | None
    failed_at: datetime | None
    failure: str

    @classmethod
    def of(cls, reports: Sequence[AgentActivity]) -> ToolActivity:
        """Return the sums over reports; calls and durations leave out the daemon's background captures."""

        def newest(
            field: str, among: Sequence[AgentActivity] = reports
        ) -> datetime | None:
            times = (getattr(report, field) for report in among)
            return max(filter(None, times), default=None)

        called = [report for report in reports if report.event != BACKGROUND]
        calls = sum(report.calls for report in called)
        total_ms = sum(report.mean_ms * report.calls for report in called)
        failed = [report for report in reports if report.failed_at is not None]
        last = max(failed, key=lambda report: str(report.failed_at), default=None)
        return cls(
            calls=calls,
            stored=sum(report.stored for report in reports),
            characters=sum(report.characters for report in reports),
            failures=sum(report.failures for report in reports),
            mean_ms=total_ms / max(calls, 1),
            slowest_ms=max((report.slowest_ms for report in called), default=0),
            called_at=newest("called_at", called),
            stored_at=newest("stored_at"),
            informed_at=newest("informed_at"),
            failed_at=newest("failed_at"),
            failure=last.failure if last else "",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCheck:
    """The state of a tool."""

    tool: str
    title: str
    found: bool
    set_up: bool
    plugins: list[str]
    """Places where our plugin is installed."""
    problems: list[str]
    by_hand: list[str]
    """The problems that only the user can mend."""
    activity: ToolActivity | None
    """Activity of its hooks; None if it has none, or no daemon answers."""

    @property
    def verdict(self) -> str:
        """The state of the setup in a few words, such as "set up" or "found, not set up"."""
        if not self.set_up:
            place = "found" if self.found else "not found on this machine"
            return f"{place}, not set up"
        return "set up, but see below" if self.problems else "set up"


def check_tool(
    target: SetupTarget,
    site: parts.SetupSite,
    journal: files.SetupJournal,
    reports: Sequence[AgentActivity] | None,
) -> ToolCheck:
    """Return the state of a tool, from its files and from the daemon's reports if not None."""
    plan = plan_tool(target, site, journal)
    plugins = target.plugins(site.machine)
    states = [state for change in plan.changes for _, state in change.states]
    is_written = parts.PartState.CURRENT in states or any(
        edit.tool == target.name for edit in journal.edits
    )
    set_up = bool(plugins) or is_written
    has_hooks = any(row.kind != "entry" for row in target.rows)  # or another tool's
    activity = None
    if reports is not None and (plugins or has_hooks):
        names = (target.name, *target.clients)
        activity = ToolActivity.of([each for each in reports if each.client in names])
    problems: list[str] = []
    by_hand = target.hook_obstacles(site.machine) if set_up else []
    if set_up and not plugins:
        problems += plan.problems
        for change in plan.changes:
            file = site.machine.short_path(change.file)
            for lacking, word in _LACKING.items():
                labels = [label for label, state in change.states if state is lacking]
                if labels:
                    problems.append(f"{file}: {', '.join(labels)}: {word}")
    if set_up:
        problems += by_hand
        problems += _warn_of_silence(target, site.machine, activity)
    return ToolCheck(
        tool=target.name,
        title=target.title,
        found=plan.found,
        set_up=set_up,
        plugins=plugins,
        problems=problems,
        by_hand=by_hand,
        activity=activity,
    )


def _warn_of_silence(
    target: SetupTarget, machine: parts.Machine, activity: ToolActivity | None
) -> list[str]:
    """Return a warning, in a list, if the newest transcript is much newer than the last memory."""
    paths = chain.from_iterable(map(machine.home.glob, target.transcripts))
    modified = 0.0
    for path in islice(paths, TRANSCRIPTS_MAX):
        with suppress(OSError):  # deleted meanwhile
            modified = max(modified, path.stat().st_mtime)
    if activity is None or not modified:
        return []
    newest = datetime.fromtimestamp(modified, UTC)
    written = f"{newest:%Y-%m-%d %H:%M} UTC"
    if activity.stored_at is None:
        return [f"transcript of {written}, nothing stored of it: do its hooks run?"]
    if newest - activity.stored_at < TRANSCRIPT_LEAD:
        return []
    stored = f"{activity.stored_at:%Y-%m-%d %H:%M}"
    return [f"transcript of {written}, last memory of {stored}: do its hooks run?"]
