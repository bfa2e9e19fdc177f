"""Reads a transcript from where it was last read to, as far as its lines are complete."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import msgspec

from mnemosyned.transcripts.cleaning import announces_tool, clean
from mnemosyned.transcripts.formats import (
    Head,
    Parsed,
    head_of,
    parse_document,
    parse_line,
)
from mnemosyned.transcripts.messages import TranscriptMessage

BYTES_MAX = 1 << 20
"""Bytes read at a time."""
LINE_BYTES_MAX = 16 << 20
"""A longer line is a tool's result, and passed over."""
DOCUMENT_BYTES_MAX = 16 << 20
HEAD_BYTES_MAX = 256 * 1024
NO_TRANSCRIPT = "the path is not that of a transcript"

_PLACES = re.compile(
    r"/(?:\.claude|\.codex|\.cursor|\.gemini|\.copilot|\.qwen|projects|sessions"
    r"|archived_sessions|chats|agent-transcripts|session-state|logs|chatSessions)/"
)
"""Folders in which tools keep transcripts, wherever their own folder was moved."""
_NAME = re.compile(r"[\w.@ +-]{1,200}\.jsonl?")
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class TranscriptRefused(Exception):
    """The path names no transcript of this user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Result of reading a transcript."""

    messages: tuple[TranscriptMessage, ...] = ()
    position: int = 0
    """The byte to go on from."""
    file: str = ""
    """Device and inode."""
    complete: bool = True
    """Whether nothing is left but a line that is still being written."""
    conversation: str = ""
    """The conversation this one is a copy of, where the transcript says so."""
    broken: int = 0
    """Lines that were passed over because they are too long, or not JSON."""


def is_plausible(path: str) -> bool:
    """Whether a path looks like a transcript's."""
    if not path.startswith("/") or "\0" in path or "/../" in path:
        return False
    folder, _, name = path.rpartition("/")
    return bool(_NAME.fullmatch(name) and _PLACES.search(f"{folder}/"))


def size_of(path: str) -> int:
    """Return the size of a transcript; 0 where there is none."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def read_transcript(
    path: str,
    *,
    position: int = 0,
    file: str = "",
    bytes_max: int = BYTES_MAX,
    anywhere: bool = False,
    finished: bool = False,
) -> Reading:
    """Read on from a position; from the beginning where the file was replaced or cut.

    With `anywhere` the user named the file, which may have any name and owner; with `finished`
    nobody writes to it any more, so that its last line needs no end. Raises `TranscriptRefused`.
    """
    descriptor, status = _opened(path, anywhere=anywhere)
    try:
        identity = f"{status.st_dev}:{status.st_ino}"
        size = status.st_size
        is_document = path.endswith(".json")
        if file != identity or not _is_line_start(descriptor, position, size):
            position = 0
        if is_document:
            reading = _read_document(descriptor, size, position)
        else:
            reading = _read_lines(
                descriptor, size, position, bytes_max, finished=finished
            )
    finally:
        os.close(descriptor)
    modified = datetime.fromtimestamp(status.st_mtime, tz=UTC)
    messages = tuple(
        message if message.created_at else replace(message, created_at=modified)
        for message in _said(reading.messages)
    )
    return replace(reading, messages=messages, file=identity)


def _opened(path: str, *, anywhere: bool) -> tuple[int, os.stat_result]:
    """Open a regular file of this user, which is no link. Raises `TranscriptRefused`."""
    if not (anywhere or is_plausible(path)):
        raise TranscriptRefused(NO_TRANSCRIPT)
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    flags |= 0 if anywhere else os.O_NOFOLLOW
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        raise TranscriptRefused(f"no transcript there: {error.strerror}") from error
    status = os.fstat(descriptor)
    is_own = anywhere or status.st_uid in (os.geteuid(), os.getuid())
    if stat.S_ISREG(status.st_mode) and is_own:
        return descriptor, status
    os.close(descriptor)
    raise TranscriptRefused("the transcript is not a regular file of this user")


def _is_line_start(descriptor: int, position: int, size: int) -> bool:
    """Whether a file that grows by lines has one beginning there."""
    if position > size:
        return False
    return position == 0 or os.pread(descriptor, 1, position - 1) in (b"\n", b"}")


def _read_document(descriptor: int, size: int, position: int) -> Reading:
    """Read a conversation that is rewritten whole, unless its size is the same."""
    if size in (0, position) or size > DOCUMENT_BYTES_MAX:
        return Reading(position=position)
    document = _decoded(os.pread(descriptor, size, 0))
    if document is None:  # it is being written
        return Reading(position=position)
    return Reading(messages=tuple(parse_document(document)), position=size)


def _read_lines(
    descriptor: int, size: int, position: int, bytes_max: int, *, finished: bool
) -> Reading:
    head = _head(descriptor)
    if head.by_subagent:
        return Reading(position=size, conversation=head.conversation)
    room = bytes_max
    while True:  # ends with the longest line
        data = os.pread(descriptor, room, position)
        is_last = position + len(data) >= size
        end = len(data) if finished and is_last else data.rfind(b"\n") + 1
        if end or is_last:
            break
        if room >= LINE_BYTES_MAX:
            return Reading(
                position=_next_line(descriptor, position, size),
                complete=False,
                broken=1,
            )
        room *= 4
    texts = [text for text in data[:end].split(b"\n") if text.strip()]
    lines = [line for line in map(_decoded, texts) if line is not None]
    parsed = list(map(parse_line, lines))
    return Reading(
        messages=_with_tools(parsed),
        position=position + end,
        complete=is_last,
        conversation=head.conversation,
        broken=len(texts) - len(lines),
    )


def _next_line(descriptor: int, position: int, size: int) -> int:
    """Return where the line after a giant one begins."""
    while position < size:
        data = os.pread(descriptor, BYTES_MAX, position)
        end = data.find(b"\n") + 1
        if end or not data:
            return position + end
        position += len(data)
    return size


def _head(descriptor: int) -> Head:
    first = os.pread(descriptor, HEAD_BYTES_MAX, 0).partition(b"\n")[0]
    line = _decoded(first)
    return head_of(line) if line is not None else Head()


def _decoded(text: bytes) -> dict[str, Any] | None:
    if not text.strip():
        return None
    try:
        return _decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _with_tools(parsed: Sequence[Parsed]) -> tuple[TranscriptMessage, ...]:
    """Return the messages in order, marked where a tool call follows; copies only if need be."""
    has_events = any(each.messages and not each.is_copy for each in parsed)
    messages: list[TranscriptMessage] = []
    for each in parsed:
        if not (each.is_copy and has_events):
            messages += each.messages
        if each.calls_tool and messages:
            messages[-1] = replace(messages[-1], before_tool=True)
    return tuple(messages)


def _said(messages: Sequence[TranscriptMessage]) -> Iterator[TranscriptMessage]:
    """Yield what was said, cleaned; of a message that is repeated by its id, the last."""
    latest: dict[str, TranscriptMessage] = {}
    for position, message in enumerate(messages):
        latest[message.unique_id or str(position)] = message
    for message in latest.values():
        text = clean(message.text)
        announces = message.before_tool and message.role == "assistant"
        if text and not (announces and announces_tool(text)):
            yield replace(message, text=text)
