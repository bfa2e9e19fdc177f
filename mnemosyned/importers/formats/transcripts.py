"""Conversations that agents keep: transcript files, and OpenCode's database and folder."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from mnemosyned.importers.importer import (
    Bad,
    Format,
    ImportItem,
    Source,
    sendable,
    text_in,
)
from mnemosyned.importers.reading import SqliteRefused, reading, tables_of
from mnemosyned.importers.transcript_formats import (
    ROLES,
    TranscriptIdentity,
    TranscriptMessage,
    identify_transcript,
    memory_ids,
    moment_of,
)
from mnemosyned.importers.transcripts import (
    DOCUMENT_BYTES_MAX,
    TranscriptReading,
    TranscriptRefused,
    clean,
    read_transcript,
)
from mnemosyned.projects import project_of
from mnemosyned.verbs.memories import Remember

SUFFIXES = (".json", ".jsonl")


class Transcript(Format):
    """A conversation with Claude Code, Codex, Gemini CLI or another tool that has hooks."""

    name = "transcript"
    needs_file = True

    def recognizes(self, source: Source) -> bool:
        return _identity(source) is not None

    def read(self, source: Source, position: str) -> Iterator[ImportItem | Bad]:
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


def _read_on(source: Source, begin: int) -> TranscriptReading:
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
    source: Source, identity: TranscriptIdentity, reading: TranscriptReading, begin: int
) -> Iterator[ImportItem | Bad]:
    conversation = reading.conversation or identity.conversation
    size = reading.position - begin
    place = f"{source.name}, bytes {begin:,} to {reading.position:,}"
    if reading.broken:
        yield Bad(place, f"{reading.broken:,} lines are too long, or not JSON")
    for number, message in enumerate(reading.messages, 1):
        is_last = number == len(reading.messages)
        yield ImportItem(
            captured_memory(message, identity, conversation),
            f"{place}, message {number}",
            str(reading.position if is_last else begin),
            size if number == 1 else 0,
        )


def captured_memory(
    message: TranscriptMessage, identity: TranscriptIdentity, conversation: str
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


def _identity(source: Source) -> TranscriptIdentity | None:
    path = str(source.shown.absolute())
    if source.stream or source.is_folder or not path.endswith(SUFFIXES):
        return None
    return identify_transcript(path, source.head)


FILE_BYTES_MAX = 16 << 20
OPENCODE_FILES_MAX = 1_000_000
DATABASE = "opencode.db"
TABLES = frozenset({"session", "message", "part"})

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Written:
    """A message with its parts."""

    place: str
    session: str
    directory: str
    info: Json
    parts: Sequence[Json]


class OpenCodeDatabase(Format):
    """`opencode.db`."""

    name = "opencode"
    needs_file = True

    def recognizes(self, source: Source) -> bool:
        return tables_of(source) >= TABLES

    def read(self, source: Source, position: str) -> Iterator[ImportItem | Bad]:
        try:
            with reading(source.path) as database:
                rows = database.execute(
                    "SELECT m.rowid, m.id, m.session_id, s.directory, m.time_created, m.data "
                    "FROM message AS m JOIN session AS s ON s.id = m.session_id "
                    "WHERE m.rowid > ? AND s.parent_id IS NULL ORDER BY m.rowid",
                    (int(position or 0),),
                )
                for row, id, session, directory, created, data in rows:
                    place = f"{source.name}, message {id}"
                    parts = database.execute(
                        "SELECT data FROM part WHERE message_id = ? ORDER BY id LIMIT 10000",
                        (id,),
                    )
                    try:
                        texts = [json.loads(text) for (text,) in parts]
                        info = {"id": id, "time": {"created": created}}
                        info |= json.loads(data)
                    except (ValueError, TypeError, RecursionError):
                        yield Bad(place, "it is not JSON", str(row))
                        continue
                    written = _Written(place, session, directory, info, texts)
                    if item := _item(written, str(row)):
                        yield item
        except SqliteRefused as refused:
            yield Bad(source.name, str(refused))


class OpenCodeFolder(Format):
    """The folder `storage` with a file for each session, message and part."""

    name = "opencode-files"
    needs_file = True

    def recognizes(self, source: Source) -> bool:
        # Where there is a database too, it has all of the files, and more.
        return (
            source.is_folder
            and not (source.path / DATABASE).exists()
            and all((_storage(source.path) / name).is_dir() for name in TABLES)
        )

    def read(self, source: Source, position: str) -> Iterator[ImportItem | Bad]:
        storage = _storage(source.path)
        for number, path in enumerate(sorted(storage.glob("session/*/*.json")), 1):
            if number > OPENCODE_FILES_MAX or number <= int(position or 0):
                continue
            session = _document(path)
            if isinstance(session, str):
                yield Bad(str(path), session, str(number))
            elif not session.get("parentID"):
                yield from _messages(storage, session, number)


def _storage(folder: Path) -> Path:
    return folder / "storage" if (folder / "storage").is_dir() else folder


def _messages(storage: Path, session: Json, number: int) -> Iterator[ImportItem | Bad]:
    id = text_in(session.get("id"))
    for path in sorted((storage / "message" / id).glob("*.json")):
        info = _document(path)
        if isinstance(info, str):
            yield Bad(str(path), info)
            continue
        folder = storage / "part" / text_in(info.get("id"))
        parts = [_document(each) for each in sorted(folder.glob("*.json"))]
        read = [part for part in parts if not isinstance(part, str)]
        if len(read) < len(parts):
            yield Bad(str(folder), "a part of the message cannot be read")
        directory = text_in(session.get("directory"))
        written = _Written(str(path), id, directory, info, read)
        # An import goes on with the session, whose ids keep messages from coming twice.
        if item := _item(written, str(number - 1)):
            yield item


def _document(path: Path) -> Json | str:
    """Return a file's object, or why there is none."""
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            return f"it exceeds {FILE_BYTES_MAX:,} bytes"
        document = json.loads(path.read_bytes())
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    except (ValueError, RecursionError):
        return "it is not JSON"
    return document if isinstance(document, dict) else "it is not a JSON object"


def _item(written: _Written, position: str) -> ImportItem | None:
    """Make the memory of a message, as OpenCode's plugin sends it; None without words."""
    info = written.info
    role = ROLES.get(text_in(info.get("role")))
    text = clean("\n".join(filter(None, map(_part_text, written.parts))))
    if not (role and text):
        return None
    times = info.get("time")
    created = times.get("created") if isinstance(times, Mapping) else None
    message = TranscriptMessage(
        role=role,
        text=text,
        created_at=moment_of(created),
        unique_id=text_in(info.get("id")),
    )
    identity = TranscriptIdentity(
        "opencode", written.session, text_in(written.directory)
    )
    stored = captured_memory(message, identity, written.session)
    return ImportItem(stored, written.place, position, len(text))


def _part_text(part: object) -> str:
    if not isinstance(part, Mapping) or part.get("type") != "text":
        return ""
    is_hidden = part.get("synthetic") or part.get("ignored")
    return "" if is_hidden else text_in(part.get("text"))
