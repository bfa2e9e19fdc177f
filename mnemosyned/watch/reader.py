"""Reads a file that changed, on from where it was read to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from mnemosyned.domain.ports.clock import Clock
from mnemosyned.domain.ports.surroundings.agents import AgentSession, AgentStore
from mnemosyned.domain.ports.surroundings.watching import WatchedFile, WatchStore
from mnemosyned.hooks.capture import Capture
from mnemosyned.importers.formats.jsonl import JsonLines
from mnemosyned.importers.formats.notes.notes import Notes
from mnemosyned.importers.formats.personal.shell import ShellHistory
from mnemosyned.importers.importer import START, Format, Item, Source
from mnemosyned.paths import printable_path
from mnemosyned.projects import project_of
from mnemosyned.service.service import MemoryService
from mnemosyned.transcripts.identity import Identity, identity_of
from mnemosyned.transcripts.reading import TranscriptRefused, read_transcript
from mnemosyned.verbs.memories import Remember
from mnemosyned.watch.delivery import store
from mnemosyned.watch.notes import take_over
from mnemosyned.watch.policy import WatchLimits
from mnemosyned.watch.scan import FileState, state_of

TRANSCRIPT = "transcript"
GROWING: tuple[Format, ...] = (JsonLines(), ShellHistory())
"""Formats of files that are only added to."""
NOTES = Notes()


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
        if NOTES.recognizes(source):
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
        identity: Identity,
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

    def _session(self, present: FileState, identity: Identity) -> AgentSession:
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
        parts = list(_memories(NOTES, source, START))
        change = take_over(
            self._service,
            parts,
            before.memories if before else {},
            version=str(present.modified_ns),
        )
        self._keep(
            present,
            before,
            format=NOTES.name,
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
                if isinstance(record, Item):
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
        if isinstance(record, Item):
            yield record.memory
