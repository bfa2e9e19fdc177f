"""Transcripts of agents' tools, with the ids and sessions that their hooks give."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache

import msgspec

from mnemosyned.importers.importer import Bad, Format, Item, Source
from mnemosyned.importers.reading.memories import sendable
from mnemosyned.projects import project_of
from mnemosyned.transcripts.identity import Identity, identity_of
from mnemosyned.transcripts.messages import TranscriptMessage, memory_ids
from mnemosyned.transcripts.reading import (
    DOCUMENT_BYTES_MAX,
    Reading,
    TranscriptRefused,
    read_transcript,
)
from mnemosyned.verbs.memories import Remember

SUFFIXES = (".json", ".jsonl")


class Transcript(Format):
    """A conversation with Claude Code, Codex, Gemini CLI or another tool that has hooks."""

    name = "transcript"
    needs_file = True

    def recognizes(self, source: Source) -> bool:
        return _identity(source) is not None

    def read(self, source: Source, position: str) -> Iterator[Item | Bad]:
        identity = _identity(source)
        if identity is None:
            yield Bad(source.name, "it is not a transcript of a known tool")
            return
        begin = int(position or 0)
        while True:
            try:
                reading = _read_on(source, begin)
            except TranscriptRefused as refused:
                yield Bad(source.name, str(refused))
                return
            yield from _records(source, identity, reading, begin)
            if reading.complete or reading.position == begin:
                return
            begin = reading.position


def _read_on(source: Source, begin: int) -> Reading:
    """Read the next part of a transcript. Raises `TranscriptRefused` and `OSError`."""
    path = str(source.path.absolute())
    status = source.path.stat()
    if path.endswith(".json") and status.st_size > DOCUMENT_BYTES_MAX:
        raise TranscriptRefused(f"it exceeds {DOCUMENT_BYTES_MAX:,} bytes")
    file = f"{status.st_dev}:{status.st_ino}"
    return read_transcript(
        path, position=begin, file=file, anywhere=True, finished=True
    )


def _records(
    source: Source, identity: Identity, reading: Reading, begin: int
) -> Iterator[Item | Bad]:
    conversation = reading.conversation or identity.conversation
    size = reading.position - begin
    place = f"{source.name}, bytes {begin:,} to {reading.position:,}"
    if reading.broken:
        yield Bad(place, f"{reading.broken:,} lines are too long, or not JSON")
    for number, message in enumerate(reading.messages, 1):
        is_last = number == len(reading.messages)
        yield Item(
            captured_memory(message, identity, conversation),
            f"{place}, message {number}",
            str(reading.position if is_last else begin),
            size if number == 1 else 0,
        )


def captured_memory(
    message: TranscriptMessage, identity: Identity, conversation: str
) -> Remember:
    """Make the memory of a message, as capture by hooks makes it."""
    said = message.created_at
    stored = sendable(
        Remember(
            message.text,
            id=memory_ids(message, conversation)[0],
            session=identity.session,
            source=identity.client,
            role=message.role,
            created_at=min(said, datetime.now(UTC)) if said else None,
            metadata={
                "project": _project(identity.directory),
                "cwd": identity.directory,
                "message": message.unique_id,
            },
        )
    )
    return msgspec.structs.replace(stored, dedupe=True)


@lru_cache(maxsize=256)
def _project(directory: str) -> str:
    return project_of(directory).key


def _identity(source: Source) -> Identity | None:
    path = str(source.shown.absolute())
    if source.stream or source.is_folder or not path.endswith(SUFFIXES):
        return None
    return identity_of(path, source.head)
