"""Transcripts that agents keep: messages and identity in each tool's form, read from any offset on."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import PurePath
from typing import Annotated, Any, BinaryIO, Literal

import msgspec

from mnemosyned.importers import importer
from mnemosyned.importers.reading import lines_of
from mnemosyned.memory.capture import CAPTURED_PREFIX
from mnemosyned.text import json_repair, rule_files
from mnemosyned.text.frames import HARNESS_TAGS, OWN_TAG, PRIVATE_TAG, WRAPPER_TAGS

Role = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptMessage:
    """A message of a person or an agent in a transcript."""

    role: Role
    text: str
    created_at: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    unique_id: str = ""
    """The tool's own id of the message."""
    is_copied: bool = False
    """Whether `unique_id` is unique everywhere, and the same in copies of the conversation."""
    before_tool: bool = False
    """Whether the agent called a tool right after it."""


def memory_ids(message: TranscriptMessage, conversation: str) -> tuple[str, ...]:
    """Return the ids under which a message may be in memory; the first is used to store it.

    The last id is a hash of conversation, role and words. It is the only one for a message that has no id of
    its own.
    """
    words = " ".join(message.text.split())
    by_words = importer.stable_id(
        "words", conversation, message.role, words, prefix=CAPTURED_PREFIX
    )
    if not message.unique_id:
        return (by_words,)
    place = "" if message.is_copied else conversation
    by_id = importer.stable_id(
        "message", place, message.unique_id, prefix=CAPTURED_PREFIX
    )
    return by_id, by_words


TranscriptLine = Mapping[str, Any]
_TABLES = rule_files.read_tables(__file__, "transcripts.toml")


def _compile(pattern: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """Compile a regular expression of the TOML file, removing its line breaks."""
    return re.compile(pattern.replace("\n", ""), flags)


ROLES: Mapping[str, Role] = _TABLES["roles"]
TEXT_KINDS = (None, *_TABLES["text_kinds"])
TOOL_KINDS = frozenset(_TABLES["tool_kinds"])
CLAUDE_PEOPLE = _TABLES["claude_people"]
_CURSOR_TIME = _compile(_TABLES["cursor_time"])


@dataclass(frozen=True, slots=True)
class ParsedLine:
    """Content of one line: messages, a tool call, or neither."""

    messages: tuple[TranscriptMessage, ...] = ()
    calls_tool: bool = False
    is_copy: bool = False
    """Whether the same words follow once more as a message."""


NOTHING = ParsedLine()


def head_of(line: TranscriptLine) -> tuple[str, bool]:
    """Return the conversation id in a transcript's first line, and True if it is a subagent's transcript.

    For a copied conversation, the id is the original's; empty if the line has none.
    """
    payload = line.get("payload")
    if line.get("type") == "session_meta" and isinstance(payload, Mapping):
        source = payload.get("source")
        origin = payload.get("forked_from_id") or payload.get("id")
        return importer.text_in(origin), isinstance(
            source, Mapping
        ) and "subagent" in source
    if line.get("kind") not in (None, "main") and "sessionId" in line:
        return importer.text_in(line.get("sessionId")), True
    return "", False


def parse_line(line: TranscriptLine) -> ParsedLine:
    """Return the messages and tool calls in a line of any known tool's transcript."""
    queued = line.get("attachment")
    if isinstance(queued, Mapping) and queued.get("type") == "queued_command":
        # Claude Code keeps in no other line what a person typed while it worked.
        said = {"content": queued.get("prompt")}
        is_prompt = queued.get("commandMode", "prompt") == "prompt"
        line = {**line, **queued, "type": "user" if is_prompt else "", "message": said}
    kind, message, time = line.get("type"), line.get("message"), line.get("timestamp")
    if isinstance(line.get("payload"), Mapping):
        return _parse_codex(line)
    if kind in ("user", "assistant") and isinstance(message, Mapping):  # Claude, Qwen
        if "toolUseResult" in line or any(map(line.get, _TABLES["claude_not_said"])):
            return NOTHING
        origin = line.get("origin")
        if isinstance(origin, Mapping) and origin.get("kind") not in CLAUDE_PEOPLE:
            return NOTHING
        content = message.get("content", message.get("parts"))
        return parse_message(kind, content, time, id=line.get("uuid"), is_copied=True)
    if "role" in line and isinstance(message, Mapping):
        return _parse_cursor(line["role"], message.get("content"))
    id, data = line.get("id"), line.get("data")
    if kind in ("user", "gemini") and "content" in line:  # tool calls beside the text
        calls = bool(line.get("toolCalls"))
        content = line.get("displayContent") or line["content"]  # without files
        return parse_message(kind, content, time, id=id, calls_tool=calls)
    if isinstance(line.get("$set"), Mapping):  # Gemini CLI replaces all messages
        return ParsedLine(tuple(parse_document(line["$set"])))
    if isinstance(line.get("source"), str) and "content" in line:  # Antigravity
        time, calls = line.get("created_at"), bool(line.get("tool_calls"))
        is_said = line.get("type", "USER_INPUT") in _TABLES["antigravity_said"]
        kind = line["source"] if is_said else ""
        return parse_message(kind, line["content"], time, calls_tool=calls)
    if isinstance(kind, str) and isinstance(data, Mapping):  # Copilot
        marks = map({**data, **line}.get, _TABLES["copilot_not_said"])
        if any(marks) or data.get("source") not in (None, "user"):
            return NOTHING
        calls = kind.startswith("tool.") or bool(data.get("toolRequests"))
        return parse_message(kind, data.get("content"), time, id=id, calls_tool=calls)
    return NOTHING


def _parse_cursor(role: object, content: object) -> ParsedLine:
    """Return the message or tool call in a line of Cursor; the time is read from a prompt's text."""
    parsed = parse_message(role, content, None)
    for message in parsed.messages:
        text, moment = message.text.rstrip(), None
        if message.role == "assistant":
            text = text.removesuffix("[REDACTED]")  # a thought
        elif said := _CURSOR_TIME.search(text):
            text = text.replace(said[0], "", 1)
            day, hours, minutes = said.groups("00")
            with suppress(ValueError):  # a date that is none
                zoned = f"{day} {int(hours):+03d}{minutes}"
                moment = datetime.strptime(zoned, "%b %d, %Y, %I:%M %p %z")
        cleaned = replace(message, text=text, created_at=moment)
        return replace(parsed, messages=(cleaned,))
    return parsed


def _parse_codex(line: TranscriptLine) -> ParsedLine:
    """Return the message or tool call in a line of Codex; `is_copy` marks the second copy of a message."""
    payload, kind, time = line["payload"], line.get("type"), line.get("timestamp")
    inner = payload.get("type")
    if kind == "event_msg":
        item = payload.get("item") if inner == "item_completed" else payload
        event = item if isinstance(item, Mapping) else {}
        content = event.get("content", event.get("message"))
        return parse_message(event.get("type"), content, time)
    if kind != "response_item":
        return NOTHING
    if inner == "message":
        said = parse_message(payload.get("role"), payload.get("content"), time)
        return ParsedLine(said.messages, is_copy=True)
    return ParsedLine(calls_tool=importer.text_in(inner) in TOOL_KINDS)


def parse_document(document: TranscriptLine) -> Iterator[TranscriptMessage]:
    """Yield the messages in the document's list `messages`, whose elements are parsed as lines are."""
    messages = document.get("messages")
    for line in messages if isinstance(messages, list) else ():
        if isinstance(line, Mapping):
            yield from parse_line(line).messages


_decode_fields = msgspec.json.Decoder(dict[str, Any]).decode


def decode_object(text: bytes) -> dict[str, Any] | None:
    """Decode bytes as a JSON object; return None if they contain anything else."""
    try:
        return json_repair.decode_cut_texts(_decode_fields, text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def text_of(content: object) -> str:
    """Return the text of a string, a part, or a list of parts, without thoughts and parts other than text."""
    if isinstance(content, str):
        return content
    parts = [content] if isinstance(content, Mapping) else content
    texts: list[str] = []
    for part in parts if isinstance(parts, Sequence) else ():
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, Mapping) and not part.get("thought"):
            is_text = part.get("type") in TEXT_KINDS
            texts.append(importer.text_in(part.get("text")) if is_text else "")
    return "\n".join(filter(None, texts))


def parse_message(
    kind: object,
    content: object,
    moment: object,
    *,
    id: object = None,
    is_copied: bool = False,
    calls_tool: bool = False,
) -> ParsedLine:
    """Return the message, if it has text and a known speaker `kind`, and whether it calls a tool.

    `calls_tool` is True for a tool call outside of `content`.
    """
    text = text_of(content)
    parts = content if isinstance(content, list) else []
    calls_tool = calls_tool or any(
        isinstance(part, Mapping)
        and (importer.text_in(part.get("type")) in TOOL_KINDS or "functionCall" in part)
        for part in parts
    )
    role = ROLES.get(kind) if isinstance(kind, str) else None
    if role is None or not text.strip():
        return ParsedLine(calls_tool=calls_tool)
    message = TranscriptMessage(
        role=role,
        text=text,
        created_at=importer.moment_from(moment, zone=UTC),
        unique_id=importer.text_in(id),
        is_copied=is_copied,
    )
    return ParsedLine((message,), calls_tool=calls_tool)


# ------------------------------------------------------------------- identity

LINES_MAX = 50
"""Lines at the beginning that identify a transcript."""
_CLIENT_FOLDERS = {
    client: re.compile(folder) for client, folder in _TABLES["client_folders"].items()
}


_FIELD = re.compile(r'"(sessionId|projectHash)"\s*:\s*"([^"\\]{1,300})"')


@dataclass(frozen=True, slots=True)
class TranscriptIdentity:
    """The tool and conversation of a transcript."""

    client: str
    conversation: str
    directory: str = ""

    @property
    def session(self) -> str:
        """The session id of the transcript's memories, `client:conversation`."""
        return f"{self.client}:{self.conversation}"


def client_of_path(path: str) -> str:
    """Return the name of the tool whose transcripts are in the folder of a path; empty for none."""
    clients = (each for each, folder in _CLIENT_FOLDERS.items() if folder.search(path))
    return next(clients, "")


def identify_transcript(path: str, head: bytes) -> TranscriptIdentity | None:
    """Return tool, conversation and directory of a transcript by path and first bytes, or None."""
    if head[:1] == b"{" and path.endswith(".json"):  # one JSON object
        fields = dict(_FIELD.findall(head[:2_048].decode("utf-8", "replace")))
        if "sessionId" not in fields or b'"messages"' not in head:
            return None
        client = client_of_path(path) or "gemini"
        return TranscriptIdentity(client, fields["sessionId"])
    texts = head.split(b"\n")[:LINES_MAX]
    lines = [line for line in map(decode_object, texts) if line is not None]
    client = next(filter(None, map(_recognize_client, lines)), "")
    if not client:
        return None
    client = client_of_path(path) or client
    return TranscriptIdentity(
        client=client,
        conversation=_find_conversation_id(client, path, lines),
        directory=_find_first_text(lines, "cwd"),
    )


def _recognize_client(line: TranscriptLine) -> str:
    """Return the name of the tool that writes lines of this form; empty if none is known."""
    payload, kind = line.get("payload"), line.get("type")
    if isinstance(payload, Mapping) and _name_or_empty(kind) in _TABLES["codex_kinds"]:
        return "codex"
    if "sessionId" in line and "kind" in line and "messages" not in line:
        return "gemini"
    if not parse_line(line).messages:
        return ""
    clients = _TABLES["client_keys"].items()
    return next((each for each, keys in clients if line.keys() >= set(keys)), "")


def _find_conversation_id(
    client: str, path: str, lines: Sequence[TranscriptLine]
) -> str:
    """Return the conversation id that the tool's hooks also send, from the lines or the file's name."""
    name = PurePath(path).name.partition(".")[0]
    if client == "codex":
        begun = [line for line in lines if line.get("type") == "session_meta"]
        return _find_first_text(begun, "id") or name
    if client == "gemini":
        return _find_first_text(lines, "sessionId") or name
    if client in ("antigravity", "copilot"):  # one name for all, in a folder for each
        return PurePath(path.replace("/.system_generated/logs", "")).parent.name or name
    return name or _find_first_text(lines, "sessionId")


def _find_first_text(lines: Sequence[TranscriptLine], key: str) -> str:
    """Return the first text under `key` in a line, its payload or its context; empty if there is none."""
    for line in lines:
        data = line.get("data")  # of Copilot
        context = data.get("context") if isinstance(data, Mapping) else None
        for part in (line, line.get("payload"), context):
            text = part.get(key) if isinstance(part, Mapping) else None
            if text := _name_or_empty(text):
                return text
    return ""


def _name_or_empty(value: object) -> str:
    """Return the value if it is a text without NUL characters, else an empty text."""
    return value if isinstance(value, str) and "\0" not in value else ""


# -------------------------------------------------------------------- reading

CHARS_MAX = 50_000
"""Characters stored of one message; longer messages are pasted logs."""
READ_CHARS_MAX = 4 * CHARS_MAX

_HIDDEN_TAGS = (OWN_TAG, PRIVATE_TAG)
"""Tags of hidden blocks; a block without an end hides the rest of the text."""
_OPENING = rule_files.compile_on_use(
    rf"<({'|'.join((*_HIDDEN_TAGS, *HARNESS_TAGS))})\b[^<>]{{0,1000}}>", re.IGNORECASE
)
_WRAPPER = re.compile(rf"</?(?:{'|'.join(WRAPPER_TAGS)})>")
_IDE_CONTEXT, _IDE_REQUEST = "# Context from my IDE setup:", "## My request for Codex:"
_GEMINI_FILES = "\n--- Content from referenced "
"""Precedes the files that a prompt for Gemini CLI names."""
_NOT_SAID = _compile(_TABLES["not_said"], re.DOTALL)
_ANNOUNCEMENT = _compile(_TABLES["announcement"], re.IGNORECASE)
_REASON = _compile(_TABLES["reason"], re.IGNORECASE)


def clean(text: str) -> str:
    """Return a message's words without private blocks, markup and remarks of the tool.

    Cut at `CHARS_MAX` characters; empty if no person or agent said the text.
    """
    text = text[:READ_CHARS_MAX]
    if "<" in text:
        text = _WRAPPER.sub("", without_blocks(text))
    if text.startswith(_IDE_CONTEXT) and _IDE_REQUEST in text:
        text = text.partition(_IDE_REQUEST)[2]
    text = text.partition(_GEMINI_FILES)[0]
    text = importer.clean_text(text)
    if not any(map(str.isalnum, text)) or _NOT_SAID.match(text):
        return ""
    return text if len(text) <= CHARS_MAX else text[:CHARS_MAX] + "…"


def without_blocks(text: str) -> str:
    """Return the text without private blocks, recalled memories and blocks of tools.

    A private or recalled block without an end removes the rest of the text.
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
    """Return the pattern that matches the closing tag of this name, in either case."""
    return re.compile(rf"</{tag}\s{{0,9}}>", re.IGNORECASE)


BYTES_MAX = 1 << 20
"""Bytes read at a time."""
DOCUMENT_BYTES_MAX = 16 << 20
NO_TRANSCRIPT = "the path is not that of a transcript"

_FOLDERS, _NAME = _compile(_TABLES["folders"]), _compile(_TABLES["name"])


class TranscriptRefused(importer.SourceRefused):
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
    """Return True if a path, by folder and name alone, may be a tool's transcript."""
    if not path.startswith("/") or "\0" in path or "/../" in path:
        return False
    folder, _, name = path.rpartition("/")
    return bool(_NAME.fullmatch(name) and _FOLDERS.search(f"{folder}/"))


def size_of(path: str) -> int:
    """Return the size of a file in bytes; 0 if it is missing or no regular file."""
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
    """Return the cleaned messages in about `bytes_max` bytes of a transcript after a position.

    Read from the beginning if `file`, the "device:inode" of the last reading, has changed. With
    `anywhere` the file may have any name and owner; with `finished` its last line may lack a line
    break. Raises `TranscriptRefused`.
    """
    descriptor, status = _open_transcript(path, anywhere=anywhere)
    identity, size = importer.file_identity(status), status.st_size
    with os.fdopen(descriptor, "rb") as stream:
        if file != identity:
            position = 0
        if position:
            # Before a place to go on from stands the end of a line, or of a document.
            stream.seek(position - 1)
            if stream.read(1) not in (b"\n", b"}"):
                position = 0
        if "/subagents/" in path.partition("/agent-transcripts/")[2]:
            reading = TranscriptReading(position=size)
        elif path.endswith(".json"):
            reading = _read_document(stream, size, position)
        else:
            reading = _read_lines(stream, size, position, bytes_max, finished=finished)
    said = datetime.fromtimestamp(status.st_mtime, tz=UTC)
    messages = []
    for message in clean_messages(reading.messages):
        said = message.created_at or said  # an answer without a time, as its prompt
        messages.append(replace(message, created_at=said))
    return replace(reading, messages=tuple(messages), file=identity)


def _open_transcript(path: str, *, anywhere: bool) -> tuple[int, os.stat_result]:
    """Return a transcript's descriptor and status. Raises `TranscriptRefused`.

    Unless `anywhere`, it must have a tool's path, belong to this user, and be no link.
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


def _read_document(stream: BinaryIO, size: int, position: int) -> TranscriptReading:
    """Return the messages of a transcript that is one JSON object; none if unchanged, broken or too large."""
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
    """Return the messages in about `bytes_max` bytes of lines after a position.

    A last line without a line break waits unless `finished`; a subagent's messages are left out.
    """
    stream.seek(0)
    first = decode_object(stream.readline(256 * 1024)) or {}
    conversation, by_subagent = head_of(first)
    if by_subagent:
        return TranscriptReading(position=size, conversation=conversation)
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
    has_events = any(each.messages and not each.is_copy for each in parsed_lines)
    messages: list[TranscriptMessage] = []
    for each in parsed_lines:
        if not (each.is_copy and has_events):
            messages += each.messages
        if each.calls_tool and messages:
            messages[-1] = replace(messages[-1], before_tool=True)
    return TranscriptReading(
        messages=tuple(messages),
        position=end,
        complete=complete,
        conversation=conversation,
        broken=broken,
    )


def clean_messages(
    messages: Sequence[TranscriptMessage],
) -> Iterator[TranscriptMessage]:
    """Yield cleaned messages, the last of each id; skip empty texts and announcements of tool calls."""
    latest: dict[str | int, TranscriptMessage] = {}
    for position, message in enumerate(messages):
        latest[message.unique_id or position] = message
    for message in latest.values():
        text = clean(message.text)
        may_announce = message.before_tool and message.role == "assistant"
        if may_announce and _ANNOUNCEMENT.match(text) and not _REASON.search(text):
            continue
        if text:
            yield replace(message, text=text)
