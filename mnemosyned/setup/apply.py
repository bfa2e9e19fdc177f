"""Changes carried out: each kept in the journal, written in one step and read back."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec

from mnemosyned.setup import files
from mnemosyned.setup.documents.edits import Document
from mnemosyned.setup.documents.errors import NotEditable, Unreadable
from mnemosyned.setup.files import FileRefused
from mnemosyned.setup.journal import ABSENT, Edit, Journal, digest
from mnemosyned.setup.parts import Entry, State
from mnemosyned.setup.plan import FileChange

PROGRAM_TIME_LIMIT_S = 60


def apply(change: FileChange, *, tool: str, scope: str, journal: Journal) -> None:
    """Write a planned change and keep it in the journal. Raises `FileRefused`."""
    with journal.locked():
        if files.read(change.file) != change.before:
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
        written = files.read(change.file)
        if digest(written) != edit.after:
            edit = msgspec.structs.replace(edit, after=digest(written))
            journal.add(edit, change.baseline)


def _folders(file: Path, journal: Journal) -> list[str]:
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


def _by_program(entry: Entry, before: bytes | None) -> bool:
    """Have the tool's own program write its entry; False if it did not."""
    if before is not None and _state(entry) is State.STALE:
        _run(entry.take_out, entry.file)
    _run(entry.add, entry.file)
    if _state(entry) is State.CURRENT:
        return True
    if files.read(entry.file) != before:
        raise FileRefused(f"{entry.add[0]} changed it otherwise; run this again")
    return False


def _state(entry: Entry) -> State:
    try:
        text = files.text_of(files.read(entry.file)) or ""
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


def undo(edit: Edit, change: FileChange, journal: Journal) -> None:
    """Take an edit out of its file and of the journal. Raises `FileRefused`."""
    with journal.locked():
        if files.read(change.file) != change.before:
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
        _state(Entry(change.file, tuple(part.path), {})) is State.MISSING
        for part in entries
    )
