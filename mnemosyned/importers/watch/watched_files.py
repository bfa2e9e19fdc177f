"""Files below watched folders: the selection of files, and the storing of their new content."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import msgspec

from mnemosyned import errors, paths
from mnemosyned.importers import importer, projects, transcripts
from mnemosyned.importers.capture import Capture, store_batch, store_one
from mnemosyned.importers.formats import json_files, notes
from mnemosyned.importers.formats.shell import HISTORY_NAMES, ShellHistory
from mnemosyned.importers.formats.transcripts import SpecStory, read_specstory
from mnemosyned.memory.capture import AgentSession, WatchedFile
from mnemosyned.service.service import MemoryService
from mnemosyned.verbs.memories import Get, Remember

REFUSAL_EVENT = "watched_memory_refused"


READ_BYTES = 1 << 20
"""Bytes of a transcript read at a time."""
BATCH = 100
"""Records of a growing file stored in one transaction."""


def store_note(
    service: MemoryService,
    parts: list[Remember],
    before: Mapping[str, str],
    *,
    version: str,
) -> tuple[dict[str, str], int]:
    """Store the parts of a note whose ids are not in `before`; return the memory ids of all parts.

    Each new part supersedes a memory whose part is missing now. If more parts are missing, the note's first
    part supersedes the rest; an empty note changes nothing. `version` makes new ids for parts that come back.
    The second value is the number of new memories.
    """
    memories: dict[str, str] = {}
    stored = 0
    by_part = {str(part.id): part for part in parts}
    gone = [memory for part, memory in before.items() if part not in by_part]
    for id, part in by_part.items():
        if id in before:
            memories[id] = before[id]
            continue
        named = _renew_superseded_id(service, part, version) if before else part
        replaced = gone.pop(0) if gone else None
        stored += _store_part(service, named, replaced)
        memories[id] = str(named.id)
    if memories and gone:
        id = next(iter(memories))
        heir = msgspec.structs.replace(by_part[id], id=memories[id])
        for memory in gone:
            _store_part(service, heir, memory)
    return memories, stored


def _renew_superseded_id(
    service: MemoryService, part: Remember, version: str
) -> Remember:
    """Return the part, with a new id made with `version` if its memory was superseded."""
    try:
        known = service.call(Get(str(part.id)), background=True).memory
    except errors.NotFound:
        return part
    if known is None or known.superseded_at is None:
        return part
    return msgspec.structs.replace(part, id=importer.stable_id(str(part.id), version))


def _store_part(service: MemoryService, part: Remember, replaced: str | None) -> bool:
    """Store a part, superseding the memory `replaced` unless it was forgotten; return True if it is new."""
    attempts = [part]
    if replaced is not None and replaced != part.id:
        # The second attempt is for a replaced memory that was forgotten.
        attempts.insert(0, msgspec.structs.replace(part, supersedes=replaced))
    return any(
        store_one(service, each, background=True, refusal_event=REFUSAL_EVENT)
        for each in attempts
    )


WATCHED_SUFFIXES = (*notes.NOTE_SUFFIXES, ".jsonl", ".json")
SKIPPED = frozenset({"node_modules", "__pycache__"})
PROGRAM_FOLDERS = ("/.obsidian", "/.trash", "/.git/")
"""Marks of folders with a program's own files."""


def status_of(path: str) -> os.stat_result | None:
    """Return a file's present status; None unless it is a regular file of this user."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return None
    is_own = status.st_uid in (os.geteuid(), os.getuid())
    return status if stat.S_ISREG(status.st_mode) and is_own else None


def may_have_format(path: str) -> bool:
    """Return True for the name of a shell history, or of a note or JSON outside of programs' folders."""
    folder, _, name = path.rpartition("/")
    lower = name.lower()
    if lower.endswith(WATCHED_SUFFIXES):
        return not any(mark in f"{folder}/" for mark in PROGRAM_FOLDERS)
    return "hist" in lower and HISTORY_NAMES.fullmatch(lower) is not None


def files_below(root: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield path and status of the file `root`, or of each file in that folder with a name of watched formats.

    Links, hidden folders and folders of dependencies are skipped.
    """
    if status := status_of(root):
        yield root, status
        return
    for folder, folders, names in os.walk(root):
        is_deep = folder.count("/") - root.count("/") >= 64
        folders[:] = [
            name
            for name in sorted(folders)
            if not (is_deep or name.startswith(".") or name in SKIPPED)
        ]
        for path in (os.path.join(folder, name) for name in sorted(names)):  # noqa: PTH118
            if may_have_format(path) and (status := status_of(path)):
                yield path, status


TRANSCRIPT = "transcript"
GROWING: tuple[importer.ImportFormat, ...] = (json_files.JsonLines(), ShellHistory())
"""Formats of files that only grow."""
NOTE_FORMATS: tuple[importer.ImportFormat, ...] = (notes.ClaudeMemory(), notes.Notes())
SPECSTORY = SpecStory()


class FileReader:
    """Stores the new content of one file at a time."""

    def __init__(self, service: MemoryService, capture: Capture) -> None:
        self._service = service
        self._watches = service.store.watches
        self._clock = service.sleeper.cycle.clock
        self._agents = service.store.agents
        self._capture = capture

    def read(self, path: str, pause: Callable[[], bool]) -> int:
        """Store what is new in a file since its last reading; return the number of new memories.

        `pause` is called between pieces of a transcript; if it returns True, the reading stops there.
        Raises storage errors and `OSError`, after which a file is read again from the same position.
        """
        status = status_of(path)
        if status is None:
            return 0
        now = WatchedFile(
            path=paths.printable_path(path),
            file=importer.file_identity(status),
            size=status.st_size,
            modified_ns=status.st_mtime_ns,
            read_at=self._clock.now(),
        )
        before = self._find_saved_state(now)
        source = importer.ImportSource.of_path(Path(path))
        identity = transcripts.identify_transcript(now.path, source.head)
        if identity:
            now = self._read_transcript(path, now, before, identity, pause)
        elif SPECSTORY.recognizes(source):
            now = self._read_specstory(source, now)
        elif format := _find_format(NOTE_FORMATS, source):
            now = self._read_note(format, source, now, before)
        elif format := _find_format(GROWING, source):
            now = self._read_growing(format, source, now, before)
        total = now.stored + (before.stored if before else 0)
        self._watches.keep_file(replace(now, stored=total))
        return now.stored

    def _find_saved_state(self, now: WatchedFile) -> WatchedFile | None:
        """Return a file's saved state, or None; for a moved file, remove and return the old path's state."""
        known = self._watches.file(now.path)
        if known:
            return known
        for moved in self._watches.moved_from(now.file):
            if status_of(moved.path) is None:
                self._watches.drop_files([moved.path])
                return moved
        return None

    # ----------------------------------------------------------- transcripts

    def _read_transcript(
        self,
        path: str,
        now: WatchedFile,
        before: WatchedFile | None,
        identity: transcripts.TranscriptIdentity,
        pause: Callable[[], bool],
    ) -> WatchedFile:
        """Store messages after the saved position, to the end or until `pause` is True; return new state."""
        session = self._find_or_add_session(now, identity)
        position, file = 0, before.file if before else ""
        if before and before.format == TRANSCRIPT:
            position = int(before.position or 0)
        stored, is_whole = 0, False
        with suppress(transcripts.TranscriptRefused):  # deleted meanwhile
            while True:
                reading = transcripts.read_transcript(
                    path,
                    position=position,
                    file=file,
                    bytes_max=READ_BYTES,
                    anywhere=True,
                )
                stored += self._capture.store_messages(
                    session,
                    reading.messages,
                    conversation=reading.conversation,
                    by_hook=False,
                )
                is_whole = reading.complete or reading.position == position
                position, file = reading.position, reading.file
                if is_whole or pause():
                    break
        return replace(
            now,
            file=file or now.file,
            size=now.size if is_whole else -1,
            format=TRANSCRIPT,
            position=str(position),
            stored=stored,
        )

    def _find_or_add_session(
        self, now: WatchedFile, identity: transcripts.TranscriptIdentity
    ) -> AgentSession:
        """Return the agent's session; add a new one without a transcript, so that no hook reads the file."""
        known = self._agents.session(identity.session)
        if known:
            return known
        modified = datetime.fromtimestamp(now.modified_ns / 1e9, tz=UTC)
        seen_at = min(modified, now.read_at)
        session = AgentSession(
            session=identity.session,
            client=identity.client,
            conversation=identity.conversation,
            started_at=seen_at,
            seen_at=seen_at,
            project=projects.project_of(identity.directory).key,
            directory=identity.directory,
        )
        self._agents.keep_session(session)
        return session

    # --------------------------------------------------------------- others

    def _read_specstory(
        self, source: importer.ImportSource, now: WatchedFile
    ) -> WatchedFile:
        """Store what is new in a conversation that SpecStory wrote again."""
        stored = 0
        with suppress(importer.SourceRefused):  # it names no conversation yet
            identity, messages = read_specstory(source.path)
            stored = self._capture.store_messages(
                self._find_or_add_session(now, identity),
                messages,
                conversation=identity.conversation,
                by_hook=False,
            )
        return replace(now, format=SPECSTORY.name, stored=stored)

    def _read_note(
        self,
        format: importer.ImportFormat,
        source: importer.ImportSource,
        now: WatchedFile,
        before: WatchedFile | None,
    ) -> WatchedFile:
        """Store the changed sections of a note; return the file's new state."""
        records = format.read(source, importer.START)
        parts = [
            each.memory for each in records if isinstance(each, importer.ImportItem)
        ]
        known = dict(before.memories) if before else {}
        version = str(now.modified_ns)
        memories, stored = store_note(self._service, parts, known, version=version)
        return replace(
            now, format=format.name, memories=memories or known, stored=stored
        )

    def _read_growing(
        self,
        format: importer.ImportFormat,
        source: importer.ImportSource,
        now: WatchedFile,
        before: WatchedFile | None,
    ) -> WatchedFile:
        """Store a file's records after the saved position, or all of a replaced file; return its new state."""
        is_same = (
            before is not None
            and before.format == format.name
            and before.file == now.file
            and before.size <= now.size
        )
        position = before.position if before and is_same else importer.START
        records = format.read(source, position)
        items = (
            record for record in records if isinstance(record, importer.ImportItem)
        )
        stored = 0
        while batch := list(islice(items, BATCH)):
            stored += store_batch(
                self._service,
                [item.memory for item in batch],
                background=True,
                refusal_event=REFUSAL_EVENT,
            )
            position = batch[-1].position
        return replace(now, format=format.name, position=position, stored=stored)


def is_readable(path: str) -> bool:
    """Return True for a folder, an empty file, and a file in one of the formats that are watched."""
    status = status_of(path)
    if status is None or not status.st_size:
        return True
    source = importer.ImportSource.of_path(Path(path))
    if transcripts.identify_transcript(paths.printable_path(path), source.head):
        return True
    return _find_format((SPECSTORY, *NOTE_FORMATS, *GROWING), source) is not None


def _find_format(
    formats: Sequence[importer.ImportFormat], source: importer.ImportSource
) -> importer.ImportFormat | None:
    """Return the first of the formats that can read a source, or None."""
    return next((format for format in formats if format.recognizes(source)), None)
