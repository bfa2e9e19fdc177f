"""Transcripts that agents keep of their conversations, read from any offset on."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import BinaryIO

from mnemosyned.importers.importer import SourceRefused, clean_text, file_identity
from mnemosyned.importers.reading import lines_of
from mnemosyned.importers.transcript_formats import (
    ParsedLine,
    TranscriptMessage,
    decode_object,
    head_of,
    parse_document,
    parse_line,
)
from mnemosyned.text.frames import HARNESS_TAGS, OWN_TAG, PRIVATE_TAG, WRAPPER_TAGS

CHARS_MAX = 50_000
"""Characters stored of one message; longer messages are pasted logs."""
READ_CHARS_MAX = 4 * CHARS_MAX

_HIDDEN_TAGS = (OWN_TAG, PRIVATE_TAG)
"""A block without an end hides all that follows."""
_OPENING = re.compile(
    rf"<({'|'.join((*_HIDDEN_TAGS, *HARNESS_TAGS))})\b[^<>]{{0,1000}}>", re.IGNORECASE
)
_WRAPPER = re.compile(rf"</?(?:{'|'.join(WRAPPER_TAGS)})>")
_IDE_CONTEXT, _IDE_REQUEST = "# Context from my IDE setup:", "## My request for Codex:"
_NOT_SAID = re.compile(
    r"\A(?:\[Request interrupted by user[^\]]*\]|\(no content\)|No response requested\.?"
    r"|/[\w:-]+|# AGENTS\.md instructions for .*|Caveat: The messages below .*"
    r"|This session is being continued from a previous conversation .*)\Z",
    re.DOTALL,
)
"""Notes of the tools in place of a message, and commands to them."""
_ANNOUNCEMENT = re.compile(
    r"\A(?:(?:ok(?:ay)?|good|great|perfect|now|next|first|then|so|alright)[,.!:]?\s+)*"
    r"(?:let me|let's|i'll|i’ll|i will|i'm going to|i need to)\b[^.!?\n]{0,140}[.:…]?\Z",
    re.IGNORECASE,
)
"""One sentence of an agent that announces its next tool call."""
_REASON = re.compile(
    r"\b(?:because|since|instead|rather|decid|so that|not|never)", re.IGNORECASE
)


def clean(text: str) -> str:
    """Return a message's words without tags and notes of tools; empty if none are left.

    A long message is cut.
    """
    text = text[:READ_CHARS_MAX]
    if "<" in text:
        text = _WRAPPER.sub("", without_blocks(text))
    if text.startswith(_IDE_CONTEXT) and _IDE_REQUEST in text:
        text = text.partition(_IDE_REQUEST)[2]
    text = clean_text(text)
    if not any(map(str.isalnum, text)) or _NOT_SAID.match(text):
        return ""
    return text if len(text) <= CHARS_MAX else text[:CHARS_MAX] + "…"


def without_blocks(text: str) -> str:
    """Return the text without private blocks, our own blocks and blocks of tools.

    A private block without an end hides the rest of the text.
    """
    kept: list[str] = []
    position = 0
    unended: set[str] = set()
    while opening := _OPENING.search(text, position):
        tag = opening[1].lower()
        closing = (
            None if tag in unended else _closing_tag(tag).search(text, opening.end())
        )
        if closing is None and tag in _HIDDEN_TAGS:
            return "".join([*kept, text[position : opening.start()]])
        if closing is None:  # a person's own angle brackets
            unended.add(tag)
            kept.append(text[position : opening.end()])
            position = opening.end()
            continue
        kept.append(text[position : opening.start()])
        position = closing.end()
    return "".join([*kept, text[position:]])


@lru_cache(maxsize=128)
def _closing_tag(tag: str) -> re.Pattern[str]:
    """Return the pattern of a tag's end, in any case."""
    return re.compile(rf"</{tag}\s{{0,9}}>", re.IGNORECASE)


def announces_tool(text: str) -> bool:
    """Return True if a text only announces a tool call, without a reason or a decision."""
    return _ANNOUNCEMENT.match(text) is not None and not _REASON.search(text)


BYTES_MAX = 1 << 20
"""Bytes read at a time."""
DOCUMENT_BYTES_MAX = 16 << 20
HEAD_BYTES_MAX = 256 * 1024
NO_TRANSCRIPT = "the path is not that of a transcript"

_FOLDERS = re.compile(
    r"/(?:\.claude|\.codex|\.cursor|\.gemini|\.copilot|\.qwen|projects|sessions"
    r"|archived_sessions|chats|agent-transcripts|session-state|logs|chatSessions)/"
)
"""Folders in which tools keep transcripts, wherever their own folder was moved."""
_NAME = re.compile(r"[\w.@ +-]{1,200}\.jsonl?")


class TranscriptRefused(SourceRefused):
    """The path names no transcript of this user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptReading:
    """The result of reading a transcript."""

    messages: tuple[TranscriptMessage, ...] = ()
    position: int = 0
    """The byte to go on from."""
    file: str = ""
    """Device and inode."""
    complete: bool = True
    """Whether nothing is left but a line that is still being written."""
    conversation: str = ""
    """The original of a copied conversation, if the transcript names it."""
    broken: int = 0
    """Lines that were skipped as too long, or not JSON."""


def is_plausible(path: str) -> bool:
    """Return True if a path looks like the path of a transcript, without reading it."""
    if not path.startswith("/") or "\0" in path or "/../" in path:
        return False
    folder, _, name = path.rpartition("/")
    return bool(_NAME.fullmatch(name) and _FOLDERS.search(f"{folder}/"))


def size_of(path: str) -> int:
    """Return the size of a transcript in bytes; 0 if the path is no regular file."""
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
) -> TranscriptReading:
    """Return the messages after a position; from the beginning if the file was replaced.

    `file` is the device and inode that the position belongs to. With `anywhere` the user named the
    file, which may have any name and owner; with `finished` nobody writes to it any more, so that
    its last line needs no end. Raises `TranscriptRefused`.
    """
    descriptor, status = _open_transcript(path, anywhere=anywhere)
    identity, size = file_identity(status), status.st_size
    with os.fdopen(descriptor, "rb") as stream:
        # Before a place to go on from stands the end of a line, or of a document.
        if file != identity or not _ends_record(stream, position):
            position = 0
        if path.endswith(".json"):
            reading = _read_document(stream, size, position)
        else:
            reading = _read_lines(stream, size, position, bytes_max, finished=finished)
    modified = datetime.fromtimestamp(status.st_mtime, tz=UTC)
    messages = tuple(
        message if message.created_at else replace(message, created_at=modified)
        for message in _clean_messages(reading.messages)
    )
    return replace(reading, messages=messages, file=identity)


def _open_transcript(path: str, *, anywhere: bool) -> tuple[int, os.stat_result]:
    """Return the descriptor and status of a transcript opened for reading.

    Without `anywhere`, it must be at a plausible path, this user's own and no link. Raises
    `TranscriptRefused`.
    """
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


def _ends_record(stream: BinaryIO, position: int) -> bool:
    """Return True if a line or a document ends at this position of a transcript."""
    if position == 0:
        return True
    stream.seek(position - 1)
    return stream.read(1) in (b"\n", b"}")


def _read_document(stream: BinaryIO, size: int, position: int) -> TranscriptReading:
    """Return the messages of a transcript in one JSON object of `size` bytes.

    None are read if the position shows that the size is unchanged.
    """
    if size in (0, position) or size > DOCUMENT_BYTES_MAX:
        return TranscriptReading(position=position)
    stream.seek(0)
    document = decode_object(stream.read(size))
    if document is None:  # it is being written
        return TranscriptReading(position=position)
    return TranscriptReading(messages=tuple(parse_document(document)), position=size)


def _read_lines(
    stream: BinaryIO, size: int, position: int, bytes_max: int, *, finished: bool
) -> TranscriptReading:
    """Return the messages in the lines after a position, reading about `bytes_max` bytes.

    `size` is the file's; `finished` means that the last line needs no line end. A line that is too
    long is a tool's result, and passed over.
    """
    stream.seek(0)
    head = head_of(decode_object(stream.readline(HEAD_BYTES_MAX)) or {})
    if head.by_subagent:
        return TranscriptReading(position=size, conversation=head.conversation)
    parsed_lines: list[ParsedLine] = []
    end, broken, complete = position, 0, True
    stream.seek(0)
    for line in lines_of(stream, offset=position):
        if not (finished or line.too_long or line.data.endswith(b"\n")):
            break
        end = line.end
        if line.data.strip() or line.too_long:
            written = decode_object(line.data)
            if written is None:
                broken += 1
            else:
                parsed_lines.append(parse_line(written))
        if end - position >= bytes_max:
            complete = end >= size
            break
    return TranscriptReading(
        messages=_collect_messages(parsed_lines),
        position=end,
        complete=complete,
        conversation=head.conversation,
        broken=broken,
    )


def _collect_messages(
    parsed_lines: Sequence[ParsedLine],
) -> tuple[TranscriptMessage, ...]:
    """Return the messages of the lines in order, each marked if a tool call follows.

    Copies are left out if the original messages are there.
    """
    has_events = any(each.messages and not each.is_copy for each in parsed_lines)
    messages: list[TranscriptMessage] = []
    for each in parsed_lines:
        if not (each.is_copy and has_events):
            messages += each.messages
        if each.calls_tool and messages:
            messages[-1] = replace(messages[-1], before_tool=True)
    return tuple(messages)


def _clean_messages(
    messages: Sequence[TranscriptMessage],
) -> Iterator[TranscriptMessage]:
    """Yield messages with cleaned text, without empty ones and announced tool calls.

    Of messages with the same id only the last counts.
    """
    latest: dict[str, TranscriptMessage] = {}
    for position, message in enumerate(messages):
        latest[message.unique_id or str(position)] = message
    for message in latest.values():
        text = clean(message.text)
        announces = message.before_tool and message.role == "assistant"
        if text and not (announces and announces_tool(text)):
            yield replace(message, text=text)
