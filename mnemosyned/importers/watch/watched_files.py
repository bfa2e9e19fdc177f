"""Files below watched folders: which are followed, how far each is read, what is remembered."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import msgspec

from mnemosyned.errors import Kind, MnemosynedError, NotFound
from mnemosyned.importers.capture import Capture
from mnemosyned.importers.formats.json_files import JsonLines
from mnemosyned.importers.formats.notes import NOTE_SUFFIXES as NOTES, Notes
from mnemosyned.importers.formats.shell import NAMES as HISTORIES, ShellHistory
from mnemosyned.importers.importer import START, Format, ImportItem, Source, stable_id
from mnemosyned.importers.transcript_formats import TranscriptIdentity, identity_of
from mnemosyned.importers.transcripts import TranscriptRefused, read_transcript
from mnemosyned.importers.watch.policy import WatchLimits
from mnemosyned.logs import logger
from mnemosyned.memory.capture import AgentSession, AgentStore, WatchedFile, WatchStore
from mnemosyned.memory.clock import Clock
from mnemosyned.paths import printable_path
from mnemosyned.projects import project_of
from mnemosyned.service.service import MemoryService
from mnemosyned.verbs.memories import Get, Remember, RememberMany

REFUSALS = (Kind.INVALID, Kind.CONFLICT, Kind.NOT_FOUND)
"""Kinds of errors that one memory is at fault of."""

log = logger()


def store(service: MemoryService, memories: Iterable[Remember], *, batch: int) -> int:
    """Store memories, and return how many were new. Raises what is not the fault of one."""
    stored = 0
    waiting = iter(memories)
    while chunk := list(islice(waiting, batch)):
        try:
            answers = service.call(RememberMany(chunk), background=True).memories
        except MnemosynedError as error:
            if error.kind not in REFUSALS:
                raise
            stored += sum(store_one(service, memory) for memory in chunk)
        else:
            stored += sum(answer.stored for answer in answers)
    return stored


def store_one(service: MemoryService, memory: Remember) -> bool:
    """Store one memory; False where it was known, or is refused. Raises other errors."""
    try:
        return service.call(memory, background=True).stored
    except MnemosynedError as error:
        if error.kind not in REFUSALS:
            raise
        log.info("watched_memory_refused", code=error.code, session=memory.session)
        return False


@dataclass(slots=True)
class NoteChange:
    """The changes in the store when a note has these parts now."""

    memories: dict[str, str] = field(default_factory=dict)
    """Each part by its id in the format, and the id of its memory."""
    stored: int = 0


def take_over(
    service: MemoryService,
    parts: list[Remember],
    before: Mapping[str, str],
    *,
    version: str,
) -> NoteChange:
    """Store the parts of a note that are new, each in place of one that is gone.

    Where more are gone than are new, the first part that remains takes their place too; of a note
    that is empty the memories stay. Raises what storing raises.
    """
    change = NoteChange()
    by_part = {str(part.id): part for part in parts}
    gone = [memory for part, memory in before.items() if part not in by_part]
    for id, part in by_part.items():
        if id in before:
            change.memories[id] = before[id]
            continue
        named = _with_own_id(service, part, version) if before else part
        replaced = gone.pop(0) if gone else None
        change.stored += _store(service, named, replaced)
        change.memories[id] = str(named.id)
    if change.memories and gone:
        id = next(iter(change.memories))
        heir = msgspec.structs.replace(by_part[id], id=change.memories[id])
        for memory in gone:
            _store(service, heir, memory)
    return change


def _with_own_id(service: MemoryService, part: Remember, version: str) -> Remember:
    """Give words that were replaced once and are back an id of their own."""
    try:
        known = service.call(Get(str(part.id)), background=True).memory
    except NotFound:
        return part
    if known is None or known.superseded_at is None:
        return part
    return msgspec.structs.replace(part, id=stable_id(str(part.id), version))


def _store(service: MemoryService, part: Remember, replaced: str | None) -> bool:
    if replaced is None or replaced == part.id:
        return store_one(service, part)
    return store_one(
        service, msgspec.structs.replace(part, supersedes=replaced)
    ) or store_one(service, part)  # what it replaces may be forgotten


WATCHED_SUFFIXES = (*NOTES, ".jsonl", ".json")
DEPTH_MAX = 64
SKIPPED = frozenset({"node_modules", "__pycache__"})


@dataclass(frozen=True, slots=True)
class FileState:
    """A regular file, as it is now."""

    path: str
    file: str
    """Device and inode."""
    size: int
    modified_ns: int


@dataclass(slots=True)
class Scan:
    """The outcome of looking through a folder, filled while it goes on."""

    folders: int = 0
    problem: str = ""


def state_of(path: str) -> FileState | None:
    """Return the state of a regular file of this user; None for anything else."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return None
    is_own = status.st_uid in (os.geteuid(), os.getuid())
    if not (stat.S_ISREG(status.st_mode) and is_own):
        return None
    file = f"{status.st_dev}:{status.st_ino}"
    return FileState(path, file, status.st_size, status.st_mtime_ns)


def may_have_format(path: str) -> bool:
    """Whether a file's name is one of a format that is followed."""
    folder, _, name = path.rpartition("/")
    lower = name.lower()
    if lower.endswith(WATCHED_SUFFIXES):
        return not _is_hidden(folder)
    return "hist" in lower and HISTORIES.fullmatch(lower) is not None


def _is_hidden(folder: str) -> bool:
    """Whether it is a folder of a program's own files."""
    return "/.obsidian" in folder or "/.trash" in folder or "/.git/" in f"{folder}/"


def _is_passed_over(folder: str) -> bool:
    return folder.startswith(".") or folder in SKIPPED


def files_below(root: str, scan: Scan) -> Iterator[FileState]:
    """Yield the files that may have a format; links and hidden folders are passed over."""
    state = state_of(root)
    if state:
        yield state
        return
    waiting = [(root, 0)]
    while waiting:
        folder, depth = waiting.pop()
        try:
            with os.scandir(folder) as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
        except OSError as error:
            if folder == root:
                scan.problem = f"it cannot be read: {error.strerror}"
            continue
        scan.folders += 1
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if depth < DEPTH_MAX and not _is_passed_over(entry.name):
                    waiting.append((entry.path, depth + 1))
            elif may_have_format(entry.path):
                found = state_of(entry.path)
                yield from [found] if found else []


TRANSCRIPT = "transcript"
GROWING: tuple[Format, ...] = (JsonLines(), ShellHistory())
"""Formats of files that are only added to."""
NOTES_FORMAT = Notes()


class FileReader:
    """Stores what is new in one file at a time."""

    def __init__(
        self,
        *,
        service: MemoryService,
        watches: WatchStore,
        agents: AgentStore,
        capture: Capture,
        clock: Clock,
        limits: WatchLimits,
    ) -> None:
        self._service = service
        self._watches = watches
        self._agents = agents
        self._capture = capture
        self._clock = clock
        self._limits = limits

    def read(self, path: str, rest: Callable[[], bool]) -> int:
        """Store what is new, and return how many memories that were.

        `rest` is called between parts, and tells whether to stop. Raises what storing raises, and
        `OSError`; the file is then read again from the same place.
        """
        present = state_of(path)
        if present is None:
            return 0
        before = self._before(present)
        source = Source.named(Path(path))
        identity = identity_of(printable_path(path), source.head)
        if identity:
            return self._transcript(present, before, identity, rest)
        if NOTES_FORMAT.recognizes(source):
            return self._note(present, before, source)
        for format in GROWING:
            if format.recognizes(source):
                return self._growing(present, before, format, source)
        self._keep(present, before, format="", position=START)
        return 0

    def _before(self, present: FileState) -> WatchedFile | None:
        """Return the file's state, also where it had another name."""
        known = self._watches.file(printable_path(present.path))
        if known:
            return known
        for moved in self._watches.moved_from(present.file):
            if state_of(moved.path) is None:
                self._watches.drop_files([moved.path])
                return moved
        return None

    def _keep(
        self,
        present: FileState,
        before: WatchedFile | None,
        *,
        format: str,
        position: str,
        memories: dict[str, str] | None = None,
        stored: int = 0,
    ) -> None:
        self._watches.keep_file(
            WatchedFile(
                path=printable_path(present.path),
                file=present.file,
                size=present.size,
                modified_ns=present.modified_ns,
                format=format,
                position=position,
                memories=memories or {},
                stored=stored + (before.stored if before else 0),
                read_at=self._clock.now(),
            )
        )

    # ----------------------------------------------------------- transcripts

    def _transcript(
        self,
        present: FileState,
        before: WatchedFile | None,
        identity: TranscriptIdentity,
        rest: Callable[[], bool],
    ) -> int:
        session = self._session(present, identity)
        position, file = _read_until(before)
        stored = 0
        while True:
            try:
                reading = read_transcript(
                    present.path,
                    position=position,
                    file=file,
                    bytes_max=self._limits.read_bytes,
                    anywhere=True,
                )
            except TranscriptRefused:  # deleted meanwhile
                return stored
            stored += self._capture.messages(
                session,
                reading.messages,
                conversation=reading.conversation,
                by_hook=False,
            )
            if reading.complete or reading.position == position or rest():
                break
            position, file = reading.position, reading.file
        is_whole = reading.complete or reading.position == position
        seen = present if is_whole else replace(present, size=-1)
        self._keep(
            replace(seen, file=reading.file or present.file),
            before,
            format=TRANSCRIPT,
            position=str(reading.position),
            stored=stored,
        )
        return stored

    def _session(
        self, present: FileState, identity: TranscriptIdentity
    ) -> AgentSession:
        """Return the conversation, known from now on as one of its project.

        Its transcript stays unnamed: what hooks name is read by them.
        """
        known = self._agents.session(identity.session)
        if known:
            return known
        modified = datetime.fromtimestamp(present.modified_ns / 1e9, tz=UTC)
        seen_at = min(modified, self._clock.now())
        session = AgentSession(
            session=identity.session,
            client=identity.client,
            conversation=identity.conversation,
            started_at=seen_at,
            seen_at=seen_at,
            project=project_of(identity.directory).key,
            directory=identity.directory,
        )
        self._agents.keep_session(session)
        return session

    # --------------------------------------------------------------- others

    def _note(
        self, present: FileState, before: WatchedFile | None, source: Source
    ) -> int:
        parts = list(_memories(NOTES_FORMAT, source, START))
        change = take_over(
            self._service,
            parts,
            before.memories if before else {},
            version=str(present.modified_ns),
        )
        self._keep(
            present,
            before,
            format=NOTES_FORMAT.name,
            position=START,
            memories=change.memories or dict(before.memories if before else {}),
            stored=change.stored,
        )
        return change.stored

    def _growing(
        self,
        present: FileState,
        before: WatchedFile | None,
        format: Format,
        source: Source,
    ) -> int:
        is_same = (
            before is not None
            and before.format == format.name
            and before.file == present.file
            and before.size <= present.size
        )
        position = before.position if before and is_same else START
        last = [position]

        def memories() -> Iterator[Remember]:
            for record in format.read(source, position):
                if isinstance(record, ImportItem):
                    last[0] = record.position
                    yield record.memory

        stored = store(self._service, memories(), batch=self._limits.batch)
        self._keep(present, before, format=format.name, position=last[0], stored=stored)
        return stored


def _read_until(before: WatchedFile | None) -> tuple[int, str]:
    """How far a transcript was read, and which file that was; it may have been of another format."""
    if before is None:
        return 0, ""
    is_known = before.format == TRANSCRIPT
    return int(before.position or 0) if is_known else 0, before.file


def _memories(format: Format, source: Source, position: str) -> Iterator[Remember]:
    for record in format.read(source, position):
        if isinstance(record, ImportItem):
            yield record.memory
