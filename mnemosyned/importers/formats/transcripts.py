"""Conversations that agents keep: transcripts, SpecStory's Markdown, OpenCode's database and folder."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from mnemosyned.importers.importer import (
    START,
    BadRecord,
    ImportFormat,
    ImportItem,
    ImportSource,
    Records,
    SourceRefused,
    file_identity,
    moment_from,
    sendable,
    text_in,
)
from mnemosyned.importers.projects import project_of
from mnemosyned.importers.reading import decode_text, open_database, tables_of
from mnemosyned.importers.transcripts import (
    DOCUMENT_BYTES_MAX,
    ROLES,
    Role,
    TranscriptIdentity,
    TranscriptMessage,
    TranscriptReading,
    clean,
    clean_messages,
    identify_transcript,
    memory_ids,
    read_transcript,
)
from mnemosyned.verbs.memories import Remember

SUFFIXES = (".json", ".jsonl")


class Transcript(ImportFormat):
    """A conversation with Claude Code, Codex, Gemini CLI or another tool that has hooks."""

    name = "transcript"
    needs_file = True

    def recognizes(self, source: ImportSource) -> bool:
        """Return True for a conversation file of a tool that is known, such as Claude Code."""
        return _identify_source(source) is not None

    def read_records(self, source: ImportSource, position: str) -> Records:
        """Yield the messages of a transcript after a position, a byte offset.

        Raises `SourceRefused` if the file is no transcript or too large.
        """
        identity = _identify_source(source)
        if identity is None:
            raise SourceRefused("it is not a transcript of a known tool")
        path, begin = str(source.path.absolute()), int(position or 0)
        while True:
            status = source.path.stat()
            if path.endswith(".json") and status.st_size > DOCUMENT_BYTES_MAX:
                raise SourceRefused(f"it exceeds {DOCUMENT_BYTES_MAX:,} bytes")
            reading = read_transcript(
                path,
                position=begin,
                file=file_identity(status),
                anywhere=True,
                finished=True,
            )
            yield from _make_transcript_items(source, identity, reading, begin)
            if reading.complete or reading.position == begin:
                return
            begin = reading.position


def _make_transcript_items(
    source: ImportSource,
    identity: TranscriptIdentity,
    reading: TranscriptReading,
    begin: int,
) -> Records:
    """Yield the messages read from byte `begin` on, after a bad record that counts broken lines."""
    conversation = reading.conversation or identity.conversation
    size = reading.position - begin
    place = f"{source.name}, bytes {begin:,} to {reading.position:,}"
    if reading.broken:
        yield BadRecord(place, f"{reading.broken:,} lines are too long, or not JSON")
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
    """Return the memory of a transcript's message, with the id that live capture would give it.

    `dedupe` is set: a text that the same session and source has already is not stored again. A time
    in the future is replaced by the present time. `conversation` is the id of the conversation from
    which ids are made.
    """
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
                "project": _find_project_key(identity.directory),
                "cwd": identity.directory,
                "message": message.unique_id,
            },
        )
    )
    return msgspec.structs.replace(stored, dedupe=True)


@lru_cache(maxsize=256)
def _find_project_key(directory: str) -> str:
    """Return the key of the project that a directory belongs to; empty if it has none."""
    return project_of(directory).key


def _identify_source(source: ImportSource) -> TranscriptIdentity | None:
    """Return the tool and conversation of a transcript file; None for any other source."""
    path = str(source.text_path.absolute())
    if source.stream or source.is_folder or not path.endswith(SUFFIXES):
        return None
    return identify_transcript(path, source.head)


SPECSTORY_MARK = b"<!-- Generated by SpecStory, Markdown "
SPECSTORY_FOLDERS = (".specstory", "history")
"""The folders below a project in which SpecStory keeps its conversations."""
_SPECSTORY_SESSION = re.compile(
    r"^<!-- ([A-Za-z][A-Za-z ]{0,40}?)(?: CLI| IDE)? Session ([\w.-]{1,200}) \(",
    re.MULTILINE,
)
_SPECSTORY_SPEAKER = re.compile(
    r"_\*\*(User|Agent)( - sidechain)? \((?:[^()\n]{1,200} )?"
    r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,9})?Z)\)\*\*_"
)
_SPECSTORY_BLOCK = re.compile(r"<(think|tool-use)\b[^<>\n]{0,1000}>")
_SPECSTORY_ROLES: Mapping[str, Role] = {"User": "user", "Agent": "assistant"}


class SpecStory(ImportFormat):
    """A conversation with a coding agent that SpecStory saved as Markdown."""

    name = "specstory"
    needs_file = True

    def recognizes(self, source: ImportSource) -> bool:
        """Return True for a file that begins with SpecStory's remark."""
        is_file = not source.stream and not source.is_folder
        return is_file and source.head.startswith(SPECSTORY_MARK)

    def read_records(self, source: ImportSource, position: str) -> Records:  # noqa: ARG002
        """Yield what the user and the agent said, all of it whatever the position.

        Raises `SourceRefused` for a file that is too large or names no conversation.
        """
        size = source.size()
        identity, messages = read_specstory(source.path)
        for number, message in enumerate(messages, 1):
            yield ImportItem(
                captured_memory(message, identity, identity.conversation),
                f"{source.name}, message {number}",
                START,
                size if number == 1 else 0,
            )


def read_specstory(path: Path) -> tuple[TranscriptIdentity, list[TranscriptMessage]]:
    """Return the conversation of a file of SpecStory, and what the user and the agent said in it.

    Tools, thoughts and subagents are left out. Raises `SourceRefused` for a file that is too large
    or names no conversation.
    """
    if path.stat().st_size > DOCUMENT_BYTES_MAX:
        raise SourceRefused(f"it exceeds {DOCUMENT_BYTES_MAX:,} bytes")
    text = decode_text(path.read_bytes())
    session = _SPECSTORY_SESSION.search(text)
    if session is None:
        raise SourceRefused("it does not say which conversation it is")
    folder = path.absolute().parent
    is_in_project = folder.parts[-2:] == SPECSTORY_FOLDERS
    identity = TranscriptIdentity(
        client=session[1].lower().replace(" ", "-"),
        conversation=session[2],
        directory=str(folder.parent.parent if is_in_project else folder),
    )
    return identity, list(clean_messages(list(_split_specstory(text))))


def _split_specstory(text: str) -> Iterator[TranscriptMessage]:
    """Yield the messages of SpecStory's Markdown, in order, without subagents' and without blocks.

    A line that names a speaker begins a message, unless it is within a block of a tool, which may
    show such a file. A message before a tool's call is marked.
    """
    speaker: re.Match[str] | None = None
    said: list[str] = []
    closing = ""
    waiting: TranscriptMessage | None = None
    for line in [*text.splitlines(), ""]:
        if closing:
            closing = "" if closing in line else closing
            continue
        if block := _SPECSTORY_BLOCK.match(line):
            end = f"</{block[1]}>"
            closing = "" if end in line else end
            if waiting and block[1] == "tool-use":
                waiting = replace(waiting, before_tool=True)
            continue
        begins = _SPECSTORY_SPEAKER.fullmatch(line.rstrip())
        if begins is None:
            said.append(line)
            continue
        if message := _make_specstory_message(speaker, said):
            if waiting:
                yield waiting
            waiting = message
        speaker, said = begins, []
    if waiting:
        yield waiting
    if message := _make_specstory_message(speaker, said):
        yield message


def _make_specstory_message(
    speaker: re.Match[str] | None, said: Sequence[str]
) -> TranscriptMessage | None:
    """Return the message of a speaker's line and the lines below it.

    None without words, for a subagent, and before the first speaker.
    """
    text = "\n".join(said).strip().removesuffix("\n---").strip()
    if speaker is None or speaker[2] or not text or text == "---":
        return None
    return TranscriptMessage(
        role=_SPECSTORY_ROLES[speaker[1]],
        text=text,
        created_at=moment_from(speaker[3]),
    )


FILE_BYTES_MAX = 16 << 20
OPENCODE_FILES_MAX = 1_000_000
DATABASE = "opencode.db"
TABLES = frozenset({"session", "message", "part"})

Json = Mapping[str, Any]


class OpenCodeDatabase(ImportFormat):
    """`opencode.db`."""

    name = "opencode"
    needs_file = True

    def recognizes(self, source: ImportSource) -> bool:
        """Return True for a SQLite database with the tables of OpenCode."""
        return tables_of(source) >= TABLES

    def read_records(self, source: ImportSource, position: str) -> Records:
        """Yield the messages after a position, a message's row id, without those of subagents."""
        with open_database(source.path) as database:
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
                    yield BadRecord(place, "it is not JSON", str(row))
                    continue
                identity = TranscriptIdentity("opencode", session, text_in(directory))
                yield from _make_opencode_item(identity, info, texts, place, str(row))


class OpenCodeFolder(ImportFormat):
    """The folder `storage` with a file for each session, message and part."""

    name = "opencode-files"
    needs_file = True

    def recognizes(self, source: ImportSource) -> bool:
        """Return True for OpenCode's folder of files, unless it also has a database."""
        # Where there is a database too, it has all of the files, and more.
        return (
            source.is_folder
            and not (source.path / DATABASE).exists()
            and all((_storage_folder(source.path) / name).is_dir() for name in TABLES)
        )

    def read_records(self, source: ImportSource, position: str) -> Records:
        """Yield the messages of all sessions after the first `position` sessions.

        Sessions of subagents are left out.
        """
        storage = _storage_folder(source.path)
        for number, path in enumerate(sorted(storage.glob("session/*/*.json")), 1):
            if number > OPENCODE_FILES_MAX or number <= int(position or 0):
                continue
            session = _read_object(path)
            if isinstance(session, str):
                yield BadRecord(str(path), session, str(number))
            elif not session.get("parentID"):
                yield from _read_session_messages(storage, session, number)


def _storage_folder(folder: Path) -> Path:
    """Return the subfolder `storage`, or the folder itself if it has none."""
    return folder / "storage" if (folder / "storage").is_dir() else folder


def _read_session_messages(storage: Path, session: Json, number: int) -> Records:
    """Yield the messages of an OpenCode session from the files in the folder `storage`.

    `number` is the session's number among all sessions, from 1. A file that cannot be read is
    yielded as a bad record.
    """
    id = text_in(session.get("id"))
    identity = TranscriptIdentity("opencode", id, text_in(session.get("directory")))
    for path in sorted((storage / "message" / id).glob("*.json")):
        info = _read_object(path)
        if isinstance(info, str):
            yield BadRecord(str(path), info)
            continue
        folder = storage / "part" / text_in(info.get("id"))
        parts = [_read_object(each) for each in sorted(folder.glob("*.json"))]
        read = [part for part in parts if not isinstance(part, str)]
        if len(read) < len(parts):
            yield BadRecord(str(folder), "a part of the message cannot be read")
        # An import goes on with the session, whose ids keep messages from coming twice.
        position = str(number - 1)
        yield from _make_opencode_item(identity, info, read, str(path), position)


def _read_object(path: Path) -> Json | str:
    """Return a file's JSON object, or a text with the reason why there is none."""
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            return f"it exceeds {FILE_BYTES_MAX:,} bytes"
        document = json.loads(path.read_bytes())
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    except (ValueError, RecursionError):
        return "it is not JSON"
    return document if isinstance(document, dict) else "it is not a JSON object"


def _make_opencode_item(
    identity: TranscriptIdentity,
    info: Json,
    parts: Sequence[Json],
    place: str,
    position: str,
) -> Iterator[ImportItem]:
    """Yield one OpenCode message as an item to import; nothing without a known speaker or words.

    `info` and `parts` are the objects of the message and its parts. `place` names it in error
    messages, `position` is where an import goes on.
    """
    role = ROLES.get(text_in(info.get("role")))
    texts = [
        text_in(part.get("text"))
        for part in parts
        if isinstance(part, Mapping) and part.get("type") == "text"
        if not (part.get("synthetic") or part.get("ignored"))
    ]
    text = clean("\n".join(filter(None, texts)))
    if not (role and text):
        return
    times = info.get("time")
    created = times.get("created") if isinstance(times, Mapping) else None
    message = TranscriptMessage(
        role=role,
        text=text,
        created_at=moment_from(created, zone=UTC),
        unique_id=text_in(info.get("id")),
    )
    memory = captured_memory(message, identity, identity.conversation)
    yield ImportItem(memory, place, position, len(text))
