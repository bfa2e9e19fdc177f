"""An import from plan to report: formats, files, batches sent to the daemon, a journal to go on from."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from glob import iglob
from importlib import import_module
from pathlib import Path
from typing import cast

import msgspec

from mnemosyned import errors, ids, paths, socket_path
from mnemosyned.client.streams import Transfers
from mnemosyned.importers import projects, reading
from mnemosyned.importers.importer import (
    START,
    BadRecord,
    ExportGroup,
    ImportFormat,
    ImportItem,
    ImportRecord,
    ImportSource,
    file_identity,
    text_in,
)
from mnemosyned.memory.exchange import ExportedMemory, RestoreReport
from mnemosyned.memory.values import Learning
from mnemosyned.text.rule_files import read_tables
from mnemosyned.verbs.exchange import FOOTER, parse_line_kind, parse_record
from mnemosyned.verbs.facade import Caller
from mnemosyned.verbs.memories import EditMemory, Remember, RememberedMany, RememberMany
from mnemosyned.verbs.request import instant


@dataclass(frozen=True, slots=True)
class FormatEntry:
    """A format by its name; its module is loaded on demand."""

    name: str
    summary: str
    """Description for help: `memories as JSON lines`."""
    target: str
    """`module:class`, in `mnemosyned.importers.formats`."""
    places: tuple[str, ...] = ()
    """Where programs keep it, as patterns of paths; a relative one is below the working directory."""

    def load(self) -> ImportFormat:
        """Import the format's module and return a new instance; a class shared by formats gets the name."""
        module, _, attribute = self.target.partition(":")
        loaded = import_module(f"mnemosyned.importers.formats.{module}")
        made = getattr(loaded, attribute)
        return cast(
            "ImportFormat", made() if hasattr(made, "name") else made(self.name)
        )


FORMATS = tuple(
    FormatEntry(name, **entry)
    for name, entry in read_tables(__file__, "formats.toml").items()
)
"""Formats in the order of recognizing a source: the strictest first."""


def format_names() -> str:
    """Return the names of all formats, separated by commas."""
    return ", ".join(entry.name for entry in FORMATS)


def find_sources() -> dict[str, str]:
    """Return the descriptions of memories of other programs on this machine, by path or pattern."""
    found = {}
    for entry in FORMATS:
        for place in entry.places:
            named = os.path.expandvars(place)
            if any(iglob(os.path.expanduser(named))):  # noqa: PTH111, PTH207 patterns
                found[place if named == place else shlex.quote(named)] = entry.summary
    return found


def recognize_format(source: ImportSource) -> ImportFormat | None:
    """Return the first format that can read a source, or None. Raises `OSError`."""
    formats = (entry.load() for entry in FORMATS)
    return next((format for format in formats if format.recognizes(source)), None)


_LAST = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """A source with its format."""

    source: ImportSource
    format: ImportFormat
    size: int
    """Bytes to read; 0 where unknown."""


@dataclass(slots=True)
class ImportPlan:
    """The sources of an import."""

    parts: list[PlannedPart] = field(default_factory=list)
    unknown_files: int = 0
    unreadable: list[BadRecord] = field(default_factory=list)

    @property
    def size(self) -> int:
        """The number of bytes that the import will read; 0 if unknown for any source."""
        sizes = [part.size for part in self.parts]
        return sum(sizes) if all(sizes) else 0


def plan_import(sources: list[ImportSource], format: str | None) -> ImportPlan:
    """Return the plan of an import: each source with its format, sorted by the times of first memories.

    A folder that no format reads as a whole is replaced by its files. `format` names the only format
    to use. Raises `InvalidRequest` for a source that has no format or cannot be read.
    """
    plan = ImportPlan()
    given = None
    if format:
        given = next((each.load() for each in FORMATS if each.name == format), None)
        if given is None:
            problem = f"there is no format {format}; the formats are {format_names()}"
            raise errors.InvalidRequest(problem, field="format")
    for source in sources:
        try:
            _add_source(plan, source, given)
        except OSError as error:
            reason = f"{source.name} cannot be read: {error.strerror or error}"
            raise errors.InvalidRequest(reason, field="path") from error
    if len(plan.parts) > 1:
        plan.parts.sort(key=_read_first_time)
    return plan


def _add_source(
    plan: ImportPlan, source: ImportSource, given: ImportFormat | None
) -> None:
    """Add a source, or the files of a folder, to the plan in the `given` or recognized format.

    Raises `InvalidRequest` if no format is recognized, and for a pipe that must first be saved to a file.
    """
    format = given or recognize_format(source)
    if given and source.is_folder and not given.recognizes(source):
        format = None
    if format and format.needs_file and source.pipe:
        raise errors.InvalidRequest(
            f"{source.name} is of the format {format.name}, which is read from a file: save it to "
            "one first",
            field="path",
        )
    if format:
        plan.parts.append(PlannedPart(source, format, format.size(source)))
    elif source.is_folder:
        _add_files_of_folder(plan, source, given)
    else:
        raise errors.InvalidRequest(_describe_unknown(source), field="path")


def _describe_unknown(source: ImportSource) -> str:
    """Return the error message, with advice, for a source that no import format recognizes."""
    if not source.head:
        return f"{source.name} is empty"
    if source.head.startswith(reading.SQLITE_SIGNATURE):
        return (
            f"{source.name} is a database that cannot be imported, or a damaged one; a backup of "
            "a memory is put back by `mnem restore-db`"
        )
    if source.head.startswith(reading.ZIP_SIGNATURE):
        return (
            f"{source.name} is a ZIP archive without an export that can be imported, or a damaged "
            "one; mnem import --format chatgpt, claude or hindsight shows why"
        )
    return (
        f"{source.name} has none of the formats that can be imported; plain text is read with "
        f"--format notes, an unusual file with the name of its format: {format_names()}"
    )


def _add_files_of_folder(
    plan: ImportPlan, folder: ImportSource, given: ImportFormat | None
) -> None:
    """Add the files below a folder in the `given` or any format to the plan; count or list all others."""
    for path in _files_below(folder.path):
        source = ImportSource(path, folder.root)
        try:
            format = recognize_format(source)
            is_wanted = format and (given is None or format.name == given.name)
            if format and is_wanted:
                plan.parts.append(PlannedPart(source, format, format.size(source)))
            else:
                plan.unknown_files += 1
        except OSError as error:
            plan.unreadable.append(
                BadRecord(source.name, f"cannot be read: {error.strerror}")
            )


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield the regular files below a folder, sorted by name, without links and hidden folders."""
    for directory, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(directory, name)
            if path.is_file() and not path.is_symlink():
                yield path


def _read_first_time(part: PlannedPart) -> datetime:
    """Return the time of a source's first memory, or the latest possible time without one."""
    with suppress(OSError):  # reported when it is read
        for record in part.format.read(part.source, START):
            if isinstance(record, ImportItem):
                return instant(record.memory.created_at) or _LAST
    return _LAST


BATCH_ITEMS = 500
BATCH_LINES = 1_000
BATCH_SIZE = 2_000_000
"""Maximum characters of memories, or bytes of lines, in a batch: as JSON they fit in a request."""
_PLACE = re.compile(r"(?:memories|lines)\[(\d+)\]")
_MEMORY_PLACE = re.compile(r"memories\[\d+\]\.?")


# --------------------------------------------------------------------- journal

KEPT_S = 90 * 86_400
"""Age at which the journal of an import that was never finished is deleted."""


class ImportEntry(msgspec.Struct, frozen=True):
    """The position up to which one source was stored."""

    path: str
    file: str
    """Device, inode, and the hash of the file's beginning."""
    position: str
    bytes: int
    done: bool = False
    size: int = 0
    """Bytes of the file at that time."""


class ImportJournal:
    """Positions of an import after each batch, in a file; if it is lost, the import only takes longer."""

    def __init__(self, path: Path | None) -> None:
        """Read the journal file at a path, if it exists; with None, keep no positions."""
        self._path = path
        self._entries: dict[str, ImportEntry] = {}
        """The last entry of each source, by the source's path."""
        if path:
            with suppress(FileNotFoundError), path.open("rb") as opened:
                for line in opened:
                    with suppress(msgspec.DecodeError):  # a line that was cut off
                        entry = _decode(line)
                        self._entries[entry.path] = entry

    @classmethod
    def of(cls, database: str, root: Path, format: str) -> ImportJournal:
        """Return the journal for importing `root` in a format into a database; delete old ones.

        If the state directory cannot be written, the journal keeps no positions.
        """
        folder = paths.state_dir() / "imports"
        try:
            socket_path.make_private_folder(str(folder))
            oldest = time.time() - KEPT_S
            for path in folder.glob("*.jsonl"):
                if path.stat().st_mtime < oldest:
                    path.unlink(missing_ok=True)
        except OSError:
            return cls(None)
        try:
            number = file_identity(os.stat(database))  # noqa: PTH116
        except OSError:
            number = ""
        parts = (database, number, str(root.absolute()), format)
        identity = "\0".join(parts)
        name = hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest()[:32]
        return cls(folder / f"{name}.jsonl")

    def entry(self, source: ImportSource) -> ImportEntry | None:
        """Return a source's saved entry, with `done` False if the source has grown since.

        None without an entry, or if the file was replaced or became shorter.
        """
        entry = self._entries.get(str(source.text_path.absolute()))
        if entry is None:
            return None
        try:
            file, size = _identify_file(source)
        except OSError:
            return None  # reported when it is read
        if file != entry.file or size < entry.size:
            return None
        is_unchanged = size == entry.size and not source.is_folder
        return msgspec.structs.replace(entry, done=entry.done and is_unchanged)

    def write(
        self, source: ImportSource, position: str, bytes: int, *, done: bool = False
    ) -> None:
        """Save that a source was imported up to `position`, or to its end if `done`.

        If the file cannot be written, the journal keeps no more positions.
        """
        if self._path is None or (position == START and not done):
            return
        try:
            file, size = _identify_file(source)
            path = str(source.text_path.absolute())
            entry = ImportEntry(path, file, position, bytes, done, size)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            with os.fdopen(os.open(self._path, flags, 0o600), "ab") as journal:
                journal.write(msgspec.json.encode(entry) + b"\n")
        except OSError:
            self._path = None

    def delete(self) -> None:
        """Forget all positions and delete the journal's file."""
        self._entries = {}
        if self._path:
            self._path.unlink(missing_ok=True)


_decode = msgspec.json.Decoder(ImportEntry).decode


def delete_journals() -> None:
    """Delete the journals of all imports, so that the next imports read files from the beginning."""
    for path in (paths.state_dir() / "imports").glob("*.jsonl"):
        path.unlink(missing_ok=True)


def _identify_file(source: ImportSource) -> tuple[str, int]:
    """Return "device:inode:hash of the head" of a source, and its size. Raises `OSError`."""
    status = source.path.stat()
    head = hashlib.sha256(source.head[:4_096]).hexdigest()[:16]
    size = 0 if source.is_folder else status.st_size
    return f"{file_identity(status)}:{head}", size


# --------------------------------------------------------------------- report

PROBLEMS_SHOWN_MAX = 20
SESSIONS_MAX = 10_000
"""Different sessions that are counted by name."""
LEARNINGS_SHOWN_MAX = 20


@dataclass(slots=True)
class ImportReport:
    """Counts of an import, and its first bad records."""

    stored: int = 0
    known: int = 0
    """Memories that were there already."""
    edited: int = 0
    """Memories whose record had changed, and which have its text now."""
    forgotten: int = 0
    """Memories that were imported before and forgotten, and stay so."""
    excluded: int = 0
    """Messages of sessions in folders that the settings exclude, which are left out."""
    learned: int = 0
    """Learnings in force that came with the records."""
    bad: int = 0
    problems: list[str] = field(default_factory=list)
    """The place and reason of the first bad records."""
    files: int = 0
    unknown_files: int = 0
    """Files in folders that have no format that can be imported."""
    restored: dict[str, int] = field(default_factory=dict)
    """Records of an export that were restored, by kind."""
    left_out: int = 0
    """Summaries of an export that the next sleep writes, as their originals are not all here."""
    continued: bool = False
    """Whether it went on where an earlier import had stopped."""

    def add_problem(self, problem: BadRecord) -> None:
        """Count a bad record; list the place and reason of the first `PROBLEMS_SHOWN_MAX`."""
        self.bad += 1
        if len(self.problems) < PROBLEMS_SHOWN_MAX:
            self.problems.append(f"{problem.place}: {problem.reason}")

    def add_stored(self, answer: RememberedMany) -> None:
        """Count the memories in the daemon's answer for a batch as stored, known or forgotten."""
        stored = sum(memory.stored for memory in answer)
        forgotten = sum(memory.forgotten for memory in answer)
        self.stored += stored
        self.forgotten += forgotten
        self.known += len(answer) - stored - forgotten
        self.learned += answer.learned

    def add_restored(self, restored: RestoreReport, place: str) -> None:
        """Count the restored records of an export; conflicts are bad records at `place`."""
        for kind, count in restored.stored.items():
            self.restored[kind] = self.restored.get(kind, 0) + count
        self.stored += restored.stored.get("memory", 0)
        self.known += restored.known.get("memory", 0)
        self.learned += restored.stored.get("learning", 0)
        self.left_out += restored.left_out
        for conflict in restored.conflicts:
            reason = f"the {conflict.kind} {conflict.id}: {conflict.reason}"
            self.add_problem(BadRecord(place, reason))


@dataclass(slots=True)
class Preview:
    """The preview of an import: counts of the records to be stored."""

    memories: int = 0
    formats: Counter[str] = field(default_factory=Counter)
    roles: Counter[str] = field(default_factory=Counter)
    sources: Counter[str] = field(default_factory=Counter)
    sessions: Counter[str] = field(default_factory=Counter)
    earliest: datetime | None = None
    latest: datetime | None = None
    undated: int = 0
    """Memories that would get the time of the import."""
    learned: int = 0
    learnings: list[str] = field(default_factory=list)
    """The first texts that would be learned."""

    def add(self, items: Sequence[ImportItem], format: str) -> None:
        """Count memories that the daemon would store; `format` is the name of their format."""
        self.memories += len(items)
        self.formats[format] += len(items)
        for item in items:
            self._count_memory(item.memory)

    def _count_memory(self, memory: Remember | ExportedMemory) -> None:
        """Count a memory by role, source and session, and widen the span of times to include it."""
        self.roles[memory.role] += 1
        self.sources[memory.source or ""] += 1
        if memory.session in self.sessions or len(self.sessions) < SESSIONS_MAX:
            self.sessions[memory.session] += 1
        moment = instant(memory.created_at)
        if moment is None:
            self.undated += 1
            return
        self.earliest = min(self.earliest or moment, moment)
        self.latest = max(self.latest or moment, moment)

    def add_group(self, group: ExportGroup, format: str) -> None:
        """Count the memories and learnings in lines of an export; the memories also under the name `format`."""
        for line in group.data.splitlines():
            if parse_line_kind(line).record == FOOTER:
                continue
            record = parse_record(line)
            if isinstance(record, ExportedMemory):
                self.memories += 1
                self.formats[format] += 1
                self._count_memory(record)
            elif isinstance(record, Learning):
                self.count_learning(record)

    def count_learning(self, learning: Learning) -> None:
        """Count a learning; list the texts of the first `LEARNINGS_SHOWN_MAX`."""
        self.learned += 1
        if len(self.learnings) < LEARNINGS_SHOWN_MAX:
            self.learnings.append(learning.text)


Progress = Callable[[int, ImportReport], object]
"""Function called with the bytes read since the last call, and the counts so far."""


@dataclass(slots=True)
class ImportRun:
    """One pass over the parts of a plan."""

    caller: Caller
    transfers: Transfers
    """Restores the lines of exports."""
    plan: ImportPlan
    journals: dict[str, ImportJournal] = field(default_factory=dict)
    """Journals by the typed path; none if no position is to be kept."""
    progress: Progress = lambda _size, _report: None
    preview: Preview | None = None
    """With a preview, the daemon checks every record and stores none."""
    id: str = field(default_factory=lambda: ids.new_id(datetime.now(UTC)))
    """The id by which `undo` takes the import back."""
    exclude: Sequence[str] = ()
    """Folders whose sessions are left out."""
    report: ImportReport = field(default_factory=ImportReport)

    def run(self) -> ImportReport:
        """Import all sources of the plan and return the counts; then delete the journals.

        Bad records are counted. Raises all other errors, and keeps the journals then.
        """
        self.report.unknown_files = self.plan.unknown_files
        for problem in self.plan.unreadable:
            self.report.add_problem(problem)
        for part in self.plan.parts:
            PartImport(self, part).read()
            self.report.files += 1
        for journal in self.journals.values():
            journal.delete()
        return self.report


Batch = list[ImportItem | ExportGroup]
"""Memories, or lines of an export: no source has both."""


class PartImport:
    """The import of one part, from the position of an earlier import on."""

    def __init__(self, run: ImportRun, part: PlannedPart) -> None:
        self._run = run
        self._part = part
        self._journal = journal = run.journals.get(str(part.source.root))
        self._entry = entry = journal.entry(part.source) if journal else None
        self._bytes = entry.bytes if entry else 0
        self._batch: Batch = []
        self._count = self._size = 0
        """Memories or lines of the batch, and their characters or bytes."""

    def read(self) -> None:
        """Send the source's records after the journal's position, and mark the source as done."""
        run, source = self._run, self._part.source
        if self._entry:
            run.report.continued = True
            run.progress(self._bytes, run.report)
            if self._entry.done:
                return
        position = self._entry.position if self._entry else START
        for record in self._read_records(position):
            if isinstance(record, BadRecord):
                run.report.add_problem(record)
            elif isinstance(record, ExportGroup) and run.preview:
                run.preview.add_group(record, self._part.format.name)
            elif isinstance(record, ImportItem) and projects.is_below(
                text_in((record.memory.metadata or {}).get("cwd")), run.exclude
            ):
                run.report.excluded += 1
            else:
                if isinstance(record, ImportItem):
                    metadata = record.memory.metadata
                    size = len(record.memory.content)
                    size += len(str(metadata)) if metadata else 0
                    count, count_max = 1, BATCH_ITEMS
                else:
                    count, size, count_max = record.lines, len(record.data), BATCH_LINES
                if self._count + count > count_max or self._size + size > BATCH_SIZE:
                    self._send_batch()
                self._batch.append(record)
                self._count += count
                self._size += size
            self._bytes += record.size
            run.progress(record.size, run.report)
        self._send_batch()
        if self._journal:
            self._journal.write(source, position, self._bytes, done=True)

    def _read_records(self, position: str) -> Iterator[ImportRecord]:
        """Yield the source's records after a position; after an `OSError`, a bad record as the last one."""
        source = self._part.source
        try:
            yield from self._part.format.read(source, position)
        except OSError as error:
            yield BadRecord(source.name, f"cannot be read: {error.strerror or error}")

    def _send_batch(self) -> None:
        """Send the batch, edit or report refused records, and save the position reached."""
        batch, self._batch, self._count, self._size = self._batch, [], 0, 0
        while batch:
            try:
                self._send_records(batch)
            except errors.MnemosynedError as error:
                refused = batch.pop(_find_refused_record(error, batch))
                is_edit = (
                    isinstance(error, errors.IdTaken)
                    and self._part.format.edits_changed
                )
                if is_edit and isinstance(refused, ImportItem):
                    self._edit_memory(refused)
                else:
                    self._report_refused(refused, error)
                continue
            if self._journal:
                position = batch[-1].position
                self._journal.write(self._part.source, position, self._bytes)
            return

    def _send_records(self, batch: Batch) -> None:
        """Send memories or an export's lines, and count the results. Raises the daemon's error."""
        run = self._run
        if groups := [each for each in batch if isinstance(each, ExportGroup)]:
            lines = b"".join(group.data for group in groups)
            restored = run.transfers.restore(lines, run.id)
            run.report.add_restored(restored, groups[0].place)
            return
        items = [each for each in batch if isinstance(each, ImportItem)]
        memories = [item.memory for item in items]
        dry_run = run.preview is not None
        request = RememberMany(memories, dry_run=dry_run, import_id=run.id)
        answer = run.caller.call(request)
        if run.preview:
            run.preview.add(items, self._part.format.name)
            for learning in answer.would_learn:
                run.preview.count_learning(learning)
        else:
            run.report.add_stored(answer)

    def _edit_memory(self, item: ImportItem) -> None:
        """Change the stored memory of a changed record to its present text, or report the refusal."""
        memory = item.memory
        try:
            self._run.caller.call(EditMemory(str(memory.id), text=memory.content))
        except errors.MnemosynedError as error:
            if error.kind not in (
                errors.Kind.INVALID,
                errors.Kind.CONFLICT,
                errors.Kind.NOT_FOUND,
            ):
                raise
            self._report_refused(item, error)
        else:
            self._run.report.edited += 1

    def _report_refused(
        self, record: ImportItem | ExportGroup, error: errors.MnemosynedError
    ) -> None:
        """Report a record as bad, as the daemon refused it."""
        reason = f"{_MEMORY_PLACE.sub('', error.message)} ({error.code})"
        self._run.report.add_problem(BadRecord(record.place, reason, record.position))


def _find_refused_record(error: errors.MnemosynedError, batch: Batch) -> int:
    """Return the index of the record that an error names. Raises the error if it names none."""
    place = _PLACE.match(error.field or "")
    if place is None:
        is_about_one = len(batch) == 1 and isinstance(batch[0], ImportItem)
        is_refusal = (
            error.kind in (errors.Kind.INVALID, errors.Kind.CONFLICT) and error.field
        )
        if is_about_one and is_refusal and not isinstance(error, errors.MalformedJson):
            return 0  # a batch of one is named without its number
        raise error
    left = int(place[1])
    for index, record in enumerate(batch):
        left -= record.lines if isinstance(record, ExportGroup) else 1
        if left < 0:
            return index
    raise error
