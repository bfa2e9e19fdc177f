"""Plans of a setup: the changes of each file, to write our parts or to undo an edit."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from mnemosyned.agents.setup.documents import (
    Document,
    NotEditable,
    Unreadable,
    value_at,
    values_along,
)
from mnemosyned.agents.setup.files import (
    ABSENT,
    FileEdit,
    FileRefused,
    SetupJournal,
    WrittenPart,
    check_writable,
    decode_text,
    digest,
    read_file,
)
from mnemosyned.agents.setup.parts import (
    OURS,
    EntryPart,
    HeadingPart,
    HookPart,
    OwnFile,
    Parts,
    PartState,
    SettingsPart,
    describe_foreign_value,
)

_TO_WRITE = (PartState.MISSING, PartState.STALE)
_KINDS = {EntryPart: "entry", HookPart: "hook", HeadingPart: "heading"}
_CLASSES = {kind: part for part, kind in _KINDS.items()}
_WHOLE_FILE = WrittenPart(kind="file", path=[], kept=0)
CONTEXT_LINES = 1


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
    states: Sequence[tuple[str, PartState]] = ()
    """Label and present state of each part."""
    written: list[WrittenPart] = field(default_factory=list)
    entry: EntryPart | None = None
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
            n=CONTEXT_LINES,
            lineterm="",
        )
        return "\n".join(changes)


def group_by_file(parts: Parts) -> dict[Path, Parts]:
    """Return a mapping of each file to the parts that setup writes into it, in the given order."""
    by_file: dict[Path, Parts] = {}
    for part in parts:
        by_file.setdefault(part.file, []).append(part)
    return by_file


def plan_file(
    file: Path, parts: Parts, *, tool: str, journal: SetupJournal
) -> FileChange:
    """Return the planned change of one file, with the parts of a tool written into it.

    If the file cannot be changed, its content stays and the change contains the problem.
    """
    content: bytes | None = None
    try:
        content = read_file(file)
        own = parts[0]
        if isinstance(own, OwnFile):
            change = _plan_own_file(own, content, journal.edit_of(tool, file))
        else:
            members = [part for part in parts if isinstance(part, SettingsPart)]
            change = _plan_settings(file, content, members, tool=tool, journal=journal)
        if change.changes:
            check_writable(file)
    except Unreadable as error:
        problem = f"it cannot be read: {error}"
    except UnicodeEncodeError:
        problem = "the path of our program is not UTF-8"
    except (NotEditable, FileRefused) as error:
        problem = str(error)
    else:
        return change
    return FileChange(file=file, before=content, after=content, problem=problem)


def _plan_own_file(
    part: OwnFile, content: bytes | None, edit: FileEdit | None
) -> FileChange:
    """Return the planned change of a file that is ours. Raises `NotEditable` if it is not."""
    state = part.state_of(decode_text(content))
    if state is PartState.FOREIGN:
        raise NotEditable("it is another file of this name")
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
    parts: list[SettingsPart],
    *,
    tool: str,
    journal: SetupJournal,
) -> FileChange:
    """Return the change that writes our missing and outdated parts into a file.

    Raises `Unreadable`, and `NotEditable` if a value of others is in the place of a part.
    """
    document = _parse_document(file, content)
    states = [(part, part.state(document)) for part in parts]
    for part, state in states:
        if state is PartState.FOREIGN:
            raise NotEditable(describe_foreign_value(part, document))
    # The file as it was before setup: by the journal, or else without outdated parts of ours.
    edit = journal.edit_of(tool, file) or next(iter(journal.edits_of_file(file)), None)
    if edit is None:
        original = _parse_document(file, content)
        for part, state in states:
            if state is PartState.STALE:
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
    entries = [part for part in to_write if isinstance(part, EntryPart)]
    return FileChange(
        file=file,
        before=content,
        after=document.text.encode() if to_write else content,
        baseline=baseline,
        made=made,
        states=[(part.label, state) for part, state in states],
        written=[
            _make_written_part(part, len(values_along(original.data, part.path)) - 1)
            for part in parts
            if part in to_write or tuple(map(str, part.path)) in known
        ],
        entry=next((entry for entry in entries if entry.add), None),
    )


def _parse_document(file: Path, content: bytes | None) -> Document:
    """Return a content, or none, as a document. Raises `Unreadable` and the like."""
    return Document(file, decode_text(content) or "")


def _make_written_part(part: SettingsPart, kept: int) -> WrittenPart:
    """Return the journal's record of a part, `kept` steps of whose path existed before."""
    return WrittenPart(kind=_KINDS[type(part)], path=[*map(str, part.path)], kept=kept)


def _restore_content(
    edit: FileEdit, file: Path, content: bytes | None, *, journal: SetupJournal
) -> tuple[bytes | None, bool]:
    """Return a file's content without an edit, and whether an undo deletes the file.

    If the file did not change since, it is restored byte for byte; else the edit's parts are
    removed. The pair is (None, True) for a file that setup made and in which nothing else is left.
    """
    if digest(content) == edit.after:
        if edit.before == ABSENT:
            return None, True
        if (before := journal.content_before(edit)) is not None:
            return before, False
    if content is None or digest(content) == edit.before:
        return content, False
    document = _parse_document(file, content)
    # Headings last: they stay if hooks of the user remain.
    for written in sorted(edit.parts, key=lambda part: part.kind == "heading"):
        part = _CLASSES[written.kind](file, tuple(written.path), {})
        is_heading = isinstance(part, HeadingPart)
        if is_heading and edit.made and document.data.get("hooks"):
            continue
        part.remove(document)
        for length in range(len(part.path), written.kept, -1):  # empty now
            *_, inner = values = values_along(document.data, part.path[:length])
            if len(values) > length and inner in ({}, []):
                document.remove(part.path[:length])
    if edit.made and document.text.strip() in ("", "{}"):
        return None, True
    return document.text.encode(), False


# ------------------------------------------------------------------------ undo


def plan_undo(edit: FileEdit, journal: SetupJournal) -> FileChange:
    """Return the planned change that undoes an edit, but for parts that other tools need.

    If the undo is impossible, the change contains the problem.
    """
    file = Path(edit.file)
    content: bytes | None = None
    try:
        content = read_file(file)
        after = _remove_edit_content(edit, file, content, journal)
        if after != content:
            check_writable(file)
    except (NotEditable, Unreadable, FileRefused) as error:
        return FileChange(file=file, before=content, after=content, problem=str(error))
    return FileChange(file=file, before=content, after=after)


def _remove_edit_content(
    edit: FileEdit, file: Path, content: bytes | None, journal: SetupJournal
) -> bytes | None:
    """Return a content without an edit's parts, but those needed; None deletes the file.

    Raises `NotEditable` if a file that is ours as a whole was changed since the edit.
    """
    if any(part.kind == "file" for part in edit.parts):
        if content is None or digest(content) == edit.after:
            return None
        raise NotEditable("it has changed since the setup; delete it yourself")
    others = [other for other in journal.edits_of_file(file) if other.tool != edit.tool]
    if others:
        needed = {tuple(part.path) for other in others for part in other.parts}
        parts = [part for part in edit.parts if tuple(part.path) not in needed]
        if not parts:
            return content
        # With some of its parts needed, the others can only be edited out.
        edit = msgspec.structs.replace(edit, before="", after="", parts=parts)
    return _restore_content(edit, file, content, journal=journal)[0]


def recognize_edit(
    file: Path, parts: Parts, *, tool: str, scope: str
) -> FileEdit | None:
    """Return the edit that setup would have made to a file, by our parts found in it.

    With it, a setup that no journal knows can be undone. None if there are none of ours.
    """
    try:
        content = read_file(file)
        own = parts[0]
        written: list[WrittenPart] = []
        is_whole = False
        if isinstance(own, OwnFile):
            text = decode_text(content)
            if own.state_of(text) in OURS:
                written = [_WHOLE_FILE]
            is_whole = text == own.content
        else:
            members = [part for part in parts if isinstance(part, SettingsPart)]
            written = _find_our_parts(_parse_document(file, content), members)
    except (NotEditable, Unreadable, FileRefused):
        return None
    if not written:
        return None
    entries = [part for part in parts if isinstance(part, EntryPart)]
    return FileEdit(
        tool=tool,
        scope=scope,
        file=str(file),
        before="",
        after=digest(content) if is_whole else "",
        parts=written,
        folders=[],
        made=True,
        take_out=[word for entry in entries for word in entry.take_out],
    )


def _find_our_parts(
    document: Document, parts: Iterable[SettingsPart]
) -> list[WrittenPart]:
    """Return records of the parts that are ours, with hooks at events no longer written."""
    sought = {part.path: part for part in parts}
    headings = [part for part in sought.values() if isinstance(part, HeadingPart)]
    for hook in [part for part in sought.values() if isinstance(part, HookPart)]:
        events = value_at(document.data, hook.path[:-1])
        for event in events if isinstance(events, dict) else {}:
            path = (*hook.path[:-1], event)
            sought.setdefault(path, HookPart(hook.file, path, hook.value))
    ours = [
        part
        for part in sought.values()
        if not isinstance(part, HeadingPart) and part.state(document) in OURS
    ]
    return [
        _make_written_part(part, 0) for part in (*ours, *(headings if ours else ()))
    ]
