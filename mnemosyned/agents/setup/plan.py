"""What a setup would change in each file of a tool."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from mnemosyned.agents.setup import files
from mnemosyned.agents.setup.documents import (
    Document,
    NotEditable,
    Unreadable,
    steps_present,
    value_at,
)
from mnemosyned.agents.setup.files import (
    ABSENT,
    Edit,
    SetupJournal,
    WrittenPart,
    digest,
)
from mnemosyned.agents.setup.parts import (
    Heading,
    Hook,
    OwnFile,
    SettingsEntry,
    SetupPart,
    State,
    foreign_text,
)

_TO_WRITE = (State.MISSING, State.STALE)
_KINDS = {SettingsEntry: "entry", Hook: "hook", Heading: "heading", OwnFile: "file"}
CONTEXT_LINES = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """A file as it is and as it would be."""

    file: Path
    before: bytes | None
    after: bytes | None
    baseline: bytes | None = None
    """What an undo brings back."""
    made: bool = False
    states: Sequence[tuple[str, State]] = ()
    """Each part by its label, as it stands."""
    written: list[WrittenPart] = field(default_factory=list)
    entry: SettingsEntry | None = None
    """The entry that the tool's own program writes, if it is to be written."""
    problem: str = ""

    @property
    def changed(self) -> bool:
        return not self.problem and self.before != self.after

    def diff(self, name: str) -> str:
        """The change as a unified diff."""
        old, new = _lines(self.before), _lines(self.after)
        old_name = name if self.before is not None else "/dev/null"
        new_name = name if self.after is not None else "/dev/null"
        changes = difflib.unified_diff(
            old, new, old_name, new_name, n=CONTEXT_LINES, lineterm=""
        )
        return "\n".join(changes)


def _lines(content: bytes | None) -> list[str]:
    return (content or b"").decode(errors="replace").splitlines()


def plan_files(
    parts: Iterable[SetupPart | OwnFile], *, tool: str, journal: SetupJournal
) -> list[FileChange]:
    """The changes of all files that the parts of a tool are in."""
    by_file: dict[Path, list[SetupPart | OwnFile]] = {}
    for part in parts:
        by_file.setdefault(part.file, []).append(part)
    return [
        _checked(file, members, tool=tool, journal=journal)
        for file, members in by_file.items()
    ]


def _checked(
    file: Path, parts: list[SetupPart | OwnFile], *, tool: str, journal: SetupJournal
) -> FileChange:
    content: bytes | None = None
    try:
        content = files.read_settings_file(file)
        change = _file_change(file, content, parts, tool=tool, journal=journal)
        if change.changed:
            files.check_writable(file)
    except Unreadable as error:
        problem = f"it cannot be read: {error}"
    except UnicodeEncodeError:
        problem = "the path of our program is not UTF-8"
    except (NotEditable, files.FileRefused) as error:
        problem = str(error)
    else:
        return change
    return FileChange(file=file, before=content, after=content, problem=problem)


def _file_change(
    file: Path,
    content: bytes | None,
    parts: list[SetupPart | OwnFile],
    *,
    tool: str,
    journal: SetupJournal,
) -> FileChange:
    own = parts[0]
    if isinstance(own, OwnFile):
        return _own_file_change(own, content, journal.of(tool, file))
    members = [part for part in parts if not isinstance(part, OwnFile)]
    document = _document(file, content)
    states = _states(members, document)
    ground = _ground(file, content, members, tool=tool, journal=journal)
    to_write = [part for part, state in states if state in _TO_WRITE]
    for part in to_write:
        part.write(document)
    return FileChange(
        file=file,
        before=content,
        after=document.text.encode() if to_write else content,
        baseline=ground.content,
        made=ground.made,
        states=[(part.label, state) for part, state in states],
        written=ground.written(members, to_write),
        entry=_added_entry(to_write),
    )


def _document(file: Path, content: bytes | None) -> Document:
    return Document(file, files.text_of(content) or "")


def _added_entry(parts: Iterable[SetupPart]) -> SettingsEntry | None:
    """The first entry that the tool's own program writes."""
    entries = (part for part in parts if isinstance(part, SettingsEntry))
    return next((entry for entry in entries if entry.add), None)


def _states(
    members: Sequence[SetupPart], document: Document
) -> list[tuple[SetupPart, State]]:
    """Return each part with its state. Raises `NotEditable` for what is not ours."""
    states = [(part, part.state(document)) for part in members]
    for part, state in states:
        if state is State.FOREIGN:
            raise NotEditable(foreign_text(part, document))
    return states


def _own_file_change(
    part: OwnFile, content: bytes | None, edit: Edit | None
) -> FileChange:
    state = part.state_of(files.text_of(content))
    if state is State.FOREIGN:
        raise NotEditable("it is another file of this name")
    is_ours = edit is not None or state in _TO_WRITE
    return FileChange(
        file=part.file,
        before=content,
        after=part.content.encode(),
        made=True,
        states=[(part.label, state)],
        written=[WrittenPart(kind="file", path=[], kept=0)] if is_ours else [],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ground:
    """A file without anything that setup wrote."""

    content: bytes | None
    made: bool
    document: Document
    known: frozenset[tuple[str, ...]]
    """The paths of what setup wrote before."""

    def written(
        self, parts: list[SetupPart], to_write: list[SetupPart]
    ) -> list[WrittenPart]:
        """Return what setup has written once the parts to write are there."""
        return [
            WrittenPart(
                kind=_KINDS[type(part)],
                path=[*map(str, part.path)],
                kept=steps_present(self.document.data, part.path),
            )
            for part in parts
            if part in to_write or tuple(map(str, part.path)) in self.known
        ]


def _ground(
    file: Path,
    content: bytes | None,
    parts: list[SetupPart],
    *,
    tool: str,
    journal: SetupJournal,
) -> _Ground:
    """The file as it was, by the journal; without that, as it is but for outdated parts."""
    edits = journal.of_file(file)
    edit = journal.of(tool, file) or (edits[0] if edits else None)
    if edit is None:
        document = _document(file, content)
        for part in parts:
            if part.state(document) is State.STALE:
                part.remove(document)
        changed = document.text.encode() if content is not None else None
        return _Ground(
            content=changed,
            made=content is None,
            document=document,
            known=frozenset(),
        )
    baseline, made = content_before(edit, file, content, journal=journal)
    return _Ground(
        content=baseline,
        made=made,
        document=_document(file, baseline),
        known=frozenset(tuple(part.path) for part in edit.parts),
    )


def content_before(
    edit: Edit, file: Path, content: bytes | None, *, journal: SetupJournal
) -> tuple[bytes | None, bool]:
    """Return a file's content without an edit, and whether then there is no file.

    Where nothing else was changed since, it is what was there before, byte for byte.
    """
    if digest(content) == edit.after:
        if edit.before == ABSENT:
            return None, True
        if (before := journal.before(edit)) is not None:
            return before, False
    if content is None or digest(content) == edit.before:
        return content, False
    document = _document(file, content)
    _take_out(edit, file, document)
    if edit.made and document.text.strip() in ("", "{}"):
        return None, True
    return document.text.encode(), False


def _take_out(edit: Edit, file: Path, document: Document) -> None:
    """Take the parts of an edit out of a document, but for what users need."""
    for part in written_parts(file, edit.parts):
        if _needed_by_users(part, edit, document):
            continue
        part.remove(document)
        _prune(document, part, next(w.kept for w in edit.parts if _same(w, part)))


def _needed_by_users(part: SetupPart, edit: Edit, document: Document) -> bool:
    """Whether a heading of a file we made is needed by hooks that the user added."""
    return isinstance(part, Heading) and edit.made and bool(document.data.get("hooks"))


def _same(written: WrittenPart, part: SetupPart) -> bool:
    return tuple(written.path) == part.path


def _prune(document: Document, part: SetupPart, kept: int) -> None:
    """Take out the containers that setup made for a part, where they are empty now."""
    for length in range(len(part.path), kept, -1):
        path = part.path[:length]
        present = steps_present(document.data, path) == length
        if present and value_at(document.data, path) in ({}, []):
            document.remove(path)


def written_parts(file: Path, written: list[WrittenPart]) -> list[SetupPart]:
    """The parts of the journal, to be taken out; headings last."""
    ordered = sorted(written, key=lambda part: part.kind == "heading")
    return [_written_part(file, part.kind, tuple(part.path)) for part in ordered]


def _written_part(file: Path, kind: str, path: tuple[str, ...]) -> SetupPart:
    if kind == "entry":
        return SettingsEntry(file, path, {})
    if kind == "hook":
        return Hook(file, path, {})
    return Heading(file, path, None)


def plan_undo(edit: Edit, journal: SetupJournal) -> FileChange:
    """The change that takes an edit out of its file; what another tool needs stays."""
    file = Path(edit.file)
    content: bytes | None = None
    try:
        content = files.read_settings_file(file)
        after = _without(edit, file, content, journal)
        if after != content:
            files.check_writable(file)
    except (NotEditable, Unreadable, files.FileRefused) as error:
        return FileChange(file=file, before=content, after=content, problem=str(error))
    return FileChange(file=file, before=content, after=after)


def _without(
    edit: Edit, file: Path, content: bytes | None, journal: SetupJournal
) -> bytes | None:
    if any(part.kind == "file" for part in edit.parts):
        if content is None or digest(content) == edit.after:
            return None
        raise NotEditable("it was changed since; delete it yourself")
    others = [other for other in journal.of_file(file) if other.tool != edit.tool]
    if others:
        parts = _parts_of_it_alone(edit, others)
        if not parts:
            return content
        # With some of its parts needed, the others can only be edited out.
        edit = msgspec.structs.replace(edit, before="", after="", parts=parts)
    return content_before(edit, file, content, journal=journal)[0]


def _parts_of_it_alone(edit: Edit, others: Iterable[Edit]) -> list[WrittenPart]:
    """The parts of an edit that no other one has."""
    needed = {tuple(part.path) for other in others for part in other.parts}
    return [part for part in edit.parts if tuple(part.path) not in needed]


def recognized(
    file: Path, parts: Sequence[SetupPart | OwnFile], *, tool: str, scope: str
) -> Edit | None:
    """What is ours in a file, as an edit of which no journal tells; None for nothing."""
    try:
        content = files.read_settings_file(file)
        text = files.text_of(content)
        own = parts[0]
        if isinstance(own, OwnFile):
            written = [WrittenPart(kind="file", path=[], kept=0)]
            is_ours = own.state_of(text) in (State.CURRENT, State.STALE)
            is_whole = text == own.content
        else:
            members = [part for part in parts if not isinstance(part, OwnFile)]
            written = _ours_in(_document(file, content), members)
            is_ours, is_whole = bool(written), False
    except (Unreadable, files.FileRefused):
        return None
    if not is_ours:
        return None
    entries = [part for part in parts if isinstance(part, SettingsEntry)]
    return Edit(
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


def _ours_in(document: Document, parts: Sequence[SetupPart]) -> list[WrittenPart]:
    """Our parts of a document, also hooks of events for which none are written any more."""
    sought = {part.path: part for part in parts}
    for hook in [part for part in parts if isinstance(part, Hook)]:
        events = value_at(document.data, hook.path[:-1])
        for event in events if isinstance(events, dict) else {}:
            path = (*hook.path[:-1], event)
            sought.setdefault(path, Hook(hook.file, path, hook.value))
    ours = [
        part
        for part in sought.values()
        if not isinstance(part, Heading)
        and part.state(document) in (State.CURRENT, State.STALE)
    ]
    headings = [part for part in parts if isinstance(part, Heading) and ours]
    return [
        WrittenPart(kind=_KINDS[type(part)], path=[*map(str, part.path)], kept=0)
        for part in (*ours, *headings)
    ]
