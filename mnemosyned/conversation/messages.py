"""Messages of a conversation: their parts, tool calls with their results, ids and token counts.

Messages may have OpenAI's form, Anthropic's, or a plain role and content. None is ever changed.
"""

from __future__ import annotations

import hashlib
import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from mnemosyned.instants import in_zone
from mnemosyned.text import token_counts

Message = Mapping[str, Any]
"""Message as a model's API takes it; unknown fields are kept."""

TOOL_ROLES = (
    "tool",
    "function",
)  # tuples: a role may be anything, even what has no hash
TIME_KEYS = ("created_at", "timestamp")
STUB = "[archived tool result: "
"""Beginning of an archived tool result; the rest of the mark says how to get it back."""

SHORTENED = "[shortened tool result: "
"""Beginning of a tool result that a context shows shortened."""

_CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
_MEDIA = frozenset(
    "image image_url input_image document file input_file audio input_audio video".split()
)
_STUBBED = re.compile(
    f"(?:{re.escape(STUB)}|{re.escape(SHORTENED)})" + r"[^\n\]]{0,200}\]"
)
_ID = re.compile(r"[\w.:@/+-]{1,200}")


class PartKind(StrEnum):
    """Kind of a part of a message."""

    TEXT = "text"
    CALL = "call"
    RESULT = "result"
    MEDIA = "media"
    OTHER = "other"


class MessagePart(NamedTuple):
    """A part of a message: a text, tool call, tool result, or other content."""

    kind: PartKind
    text: str = ""
    """A call's arguments as JSON, a result's text; empty for media."""
    id: str = ""
    """Id that a call and its result share."""
    name: str = ""


def message_parts(message: Message) -> Iterator[MessagePart]:
    """Yield the parts of a message, in order; raise nothing if the message is malformed."""
    content, role = message.get("content"), message.get("role")
    if role in TOOL_ROLES:
        name = _read_word(message.get("name")) or _read_word(message.get("tool_name"))
        yield MessagePart(
            PartKind.RESULT,
            _read_result_text(content),
            _find_answered_call_id(message),
            name,
        )
        yield from _find_media(content)
    elif isinstance(content, str):
        yield MessagePart(PartKind.TEXT, content)
    else:
        for block in _list_content_blocks(content):
            yield from _read_block_parts(block)
    calls: list[tuple[Mapping[str, Any], str]] = []
    for call in _read_list(message.get("tool_calls")):
        if isinstance(call, Mapping):
            function = call.get("function")
            source = function if isinstance(function, Mapping) else call
            calls.append((source, _read_word(call.get("id"))))
    legacy = message.get("function_call")
    if isinstance(legacy, Mapping):
        calls.append((legacy, f"function:{_read_word(legacy.get('name'))}"))
    for source, id in calls:
        arguments = source.get("arguments")
        text = arguments if isinstance(arguments, str) else _write_json(arguments)
        yield MessagePart(PartKind.CALL, text, id, _read_word(source.get("name")))


def message_text(message: Message) -> str:
    """Return the texts of a message, without tool calls and results."""
    content = message.get("content")
    if isinstance(content, str) and message.get("role") not in TOOL_ROLES:
        return content
    return "\n".join(
        part.text for part in message_parts(message) if part.kind is PartKind.TEXT
    )


def is_plain(message: Message) -> bool:
    """Return True if a message is text only: no tool calls, and no tool's result."""
    return (
        isinstance(message.get("content"), str)
        and "tool_calls" not in message
        and "function_call" not in message
        and message.get("role") not in TOOL_ROLES
    )


def is_system(message: Message) -> bool:
    """Return True if a message contains instructions for the model, by its role."""
    return message.get("role") in ("system", "developer")


def has_user_content(message: Message) -> bool:
    """Return True if a message is from the user, unless it has nothing but tool calls and results.

    An empty message counts. An image in a tool's result belongs to the tool.
    """
    if message.get("role") != "user":
        return False
    content = message.get("content")
    if not isinstance(content, str):
        blocks = _list_content_blocks(content)
        own = [block for block in blocks if not _is_result(block)]
        message = {**message, "content": own}
        if blocks and not own:
            return False
    found = list(message_parts(message))
    return not found or any(
        part.kind in (PartKind.TEXT, PartKind.MEDIA, PartKind.OTHER) for part in found
    )


def count_pinned(messages: Sequence[Message]) -> int:
    """Return the number of leading system messages, which every compaction keeps."""
    return next(
        (at for at, message in enumerate(messages) if not is_system(message)),
        len(messages),
    )


class MessageGroups(NamedTuple):
    """Groups that must not be cut: a tool call, its results, and the messages between."""

    cuts: Sequence[int]
    """Positions where the conversation can be cut between groups, ascending."""
    orphans: tuple[int, ...]
    """Positions of results without a call, and of calls that were never answered."""
    pending_call: int | None
    """Position of the first call whose results are still to come."""

    def cut_before(self, position: int) -> int:
        """Return the last position, up to `position`, at which a cut splits no group of messages."""
        return self.cuts[bisect_right(self.cuts, position) - 1]


def group_messages(messages: Sequence[Message]) -> MessageGroups:
    """Return the groups of tool calls and their results; a call without an id gets the next result."""
    found = _CallPairing(len(messages))
    for at, message in enumerate(messages):
        if is_plain(message):
            found.nameless, found.spoken = -1, at
        else:
            found.add(at, message)
    cuts: Sequence[int] = range(len(messages) + 1)
    if any(found.joined):
        cuts = [at for at in cuts if not found.joined[at]]
    waits = [at for at in found.unanswered.values() if at >= found.spoken]
    orphans = {*found.orphans, *found.unanswered.values()} - set(waits)
    return MessageGroups(cuts, tuple(sorted(orphans)), min(waits, default=None))


class _CallPairing:
    """Tool calls and results paired so far, in one pass over a conversation."""

    def __init__(self, count: int) -> None:
        self.joined = bytearray(count + 1)
        """1 where a cut would separate a call from its results."""
        self.unanswered: dict[str, int] = {}
        self.orphans: list[int] = []
        self.nameless = -1
        """Position of the call for results without an id."""
        self.spoken = -1
        """Position of the last message that is no tool result."""
        self._calls: dict[str, int] = {}

    def add(self, at: int, message: Message) -> None:
        """Pair the tool calls and results of the message at position `at` with earlier ones."""
        answers = False
        for kind, id in _find_calls_and_results(message):
            if kind is PartKind.CALL:
                self.nameless = at
                if id:
                    self._calls[id] = self.unanswered[id] = at
                continue
            answers = True
            call = self._calls.get(id, -1) if id else self.nameless
            if call >= 0:
                self.joined[call + 1 : at + 1] = b"\x01" * (at - call)
                self.unanswered.pop(id, None)
            elif id:
                self.orphans.append(at)
        if not answers:
            self.spoken = at


def _find_calls_and_results(message: Message) -> list[tuple[PartKind, str]]:
    """Return (kind, id) of each tool call and result in a message; faster than `message_parts`."""
    if message.get("role") in TOOL_ROLES:
        return [(PartKind.RESULT, _find_answered_call_id(message))]
    links: list[tuple[PartKind, str]] = []
    content = message.get("content")
    if content is not None and not isinstance(content, str):
        for block in _list_content_blocks(content):
            if not isinstance(block, Mapping):
                continue
            kind = _read_word(block.get("type"))
            if kind in _CALLS:
                links.append((PartKind.CALL, _read_word(block.get("id"))))
            elif kind.endswith("tool_result"):
                link = _read_word(block.get("tool_use_id"))
                links.append((PartKind.RESULT, link))
    links += [
        (PartKind.CALL, _read_word(call.get("id")))
        for call in _read_list(message.get("tool_calls"))
        if isinstance(call, Mapping)
    ]
    legacy = message.get("function_call")
    if isinstance(legacy, Mapping):
        links.append((PartKind.CALL, f"function:{_read_word(legacy.get('name'))}"))
    return links


def find_tool_names(messages: Iterable[Message]) -> dict[str, str]:
    """Return {id of a call: name of its tool} for the calls in messages."""
    return {
        part.id: part.name
        for message in messages
        if not is_plain(message)
        for part in message_parts(message)
        if part.kind is PartKind.CALL and part.id and part.name
    }


def message_id(message: Message) -> str:
    """Return the `id` in a message, or without a valid one a digest of the message.

    The same message has the same id at any position, so that archiving it twice is harmless.
    """
    own = message.get("id")
    has_id = isinstance(own, str) and _ID.fullmatch(own)
    return str(own) if has_id else make_short_digest("m", message)


def read_message_time(message: Message) -> datetime | None:
    """Return a message's timestamp, local if it names no zone; None without a readable timestamp."""
    for key in TIME_KEYS:
        value = message.get(key)
        if isinstance(value, str):
            try:
                value = datetime.fromisoformat(value)
            except ValueError:
                continue
        if isinstance(value, datetime):
            return value if value.tzinfo else in_zone(value, None)
    return None


def make_short_digest(prefix: str, value: object) -> str:
    """Return `prefix` with a short digest of a value; equal values have equal digests."""
    written = json.dumps(_make_canonical(value), sort_keys=True)
    return f"{prefix}-{hashlib.sha256(written.encode()).hexdigest()[:16]}"


def strip_truncation_mark(result: str) -> str:
    """Return a tool result without the mark that it is archived or shortened."""
    mark = _STUBBED.match(result)
    return result[mark.end() :] if mark else result


def _make_canonical(value: object) -> object:
    """Return a copy of a value for JSON: keys as texts, bytes in hexadecimal, other objects as types."""
    if isinstance(value, Mapping):
        return {str(key): _make_canonical(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_make_canonical(member) for member in value]
    return (
        value
        if value is None or isinstance(value, str | int | float)
        else _make_json_stand_in(value)
    )


def _make_json_stand_in(value: object) -> str:
    """Return bytes as hexadecimal digits, and any other value as the name of its type."""
    return value.hex() if isinstance(value, bytes) else type(value).__name__


def _read_word(value: object) -> str:
    """Return a text as it is, and an integer as text; empty for any other value."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) else ""


def _find_answered_call_id(message: Message) -> str:
    """Return the id of the call that a tool's message answers, or "function:" and the name in the old form."""
    id = _read_word(message.get("tool_call_id"))
    legacy = message.get("role") == "function" and not id
    return f"function:{_read_word(message.get('name'))}" if legacy else id


def _read_list(value: object) -> Sequence[object]:
    """Return a list or tuple as it is, and an empty tuple for any other value."""
    return value if isinstance(value, list | tuple) else ()


def _list_content_blocks(content: object) -> Sequence[object]:
    """Return the blocks of a message's content: a list's items, a mapping as one block, none for a text."""
    if isinstance(content, list | tuple):
        return content
    return [content] if isinstance(content, Mapping) else []


def _is_result(block: object) -> bool:
    """Return True if a block of a message's content is a tool result."""
    return isinstance(block, Mapping) and _read_word(block.get("type")).endswith(
        "tool_result"
    )


def _read_block_parts(block: object) -> Iterator[MessagePart]:
    """Yield the parts of one block of a message's content."""
    if isinstance(block, str):
        yield MessagePart(PartKind.TEXT, block)
    if not isinstance(block, Mapping):
        return
    kind = _read_word(block.get("type"))
    if kind in _CALLS:
        id, name = _read_word(block.get("id")), _read_word(block.get("name"))
        yield MessagePart(PartKind.CALL, _write_json(block.get("input")), id, name)
    elif _is_result(block):
        content = block.get("content")
        yield MessagePart(
            PartKind.RESULT,
            _read_result_text(content),
            _read_word(block.get("tool_use_id")),
        )
        yield from _find_media(content)
    elif kind in _MEDIA:
        yield MessagePart(PartKind.MEDIA)
    elif isinstance(block.get("text"), str):
        yield MessagePart(PartKind.TEXT, block["text"])
    else:
        yield MessagePart(PartKind.OTHER, _write_json(block))


def _read_result_text(content: object) -> str:
    """Return the text of a tool result's content, which is a text or a list of blocks."""
    if isinstance(content, str):
        return content
    found = [
        part
        for block in _list_content_blocks(content)
        for part in _read_block_parts(block)
    ]
    return "\n".join(part.text for part in found if part.kind is PartKind.TEXT)


def _find_media(content: object) -> Iterator[MessagePart]:
    """Yield a part for each image, audio or document within a tool result."""
    if isinstance(content, str):
        return
    for block in _list_content_blocks(content):
        if isinstance(block, Mapping) and _read_word(block.get("type")) in _MEDIA:
            yield MessagePart(PartKind.MEDIA)


def _write_json(value: object) -> str:
    """Return a value as JSON text, empty for None."""
    if value is None:
        return ""
    return json.dumps(
        value, ensure_ascii=False, skipkeys=True, default=_make_json_stand_in
    )


MEDIA_TOKENS = 1_600
"""Tokens assumed for each picture or file; Anthropic documents about 1,568 for the largest unscaled picture."""
MESSAGE_TOKENS = 4
"""Tokens that a chat template adds to a message."""

_WORDS = (PartKind.TEXT, PartKind.RESULT)


class MessageCounter(Protocol):
    """Port of a token counter for texts and messages, which never raises."""

    @property
    def name(self) -> str:
        """Name of the counter, as shown in results."""
        ...

    def text(self, text: str) -> int:
        """Return the number of tokens of a text."""
        ...

    def message(self, message: Message) -> int:
        """Return the number of tokens of a message in any form, even a malformed one."""
        ...

    def total(self, messages: Iterable[Message]) -> int:
        """Return the number of tokens of a conversation, to compare with a threshold."""
        ...


class CharsCounter:
    """Token counter by characters: four to a token, or fewer of CJK; media have a fixed cost.

    A message has at least one token.
    """

    name = token_counts.Chars4.name

    def text(self, text: str) -> int:
        """Return a quarter of the weighted characters of a text, at least 1."""
        return max(
            1, token_counts.count_weighted_chars(text) // token_counts.CHARS_PER_TOKEN
        )

    def message(self, message: Message) -> int:
        """Return the tokens of a message's texts, tool results and media, at least 1."""
        media = sum(part.kind is PartKind.MEDIA for part in message_parts(message))
        return (
            max(1, count_text_chars(message) // token_counts.CHARS_PER_TOKEN)
            + media * MEDIA_TOKENS
        )

    def total(self, messages: Iterable[Message]) -> int:
        """Return a quarter of the weighted characters of all messages."""
        return estimate_tokens(messages)


class FullCounter:
    """Token counter of all that is sent: texts, calls with arguments, media, and the template."""

    def __init__(self, counter: token_counts.TokenCounter) -> None:
        self.name = counter.name
        self.text = counter.count

    def message(self, message: Message) -> int:
        """Return the tokens of all parts of a message, and of the template around it."""
        if is_plain(message):
            return MESSAGE_TOKENS + self.text(message["content"])
        total = MESSAGE_TOKENS
        for part in message_parts(message):
            total += MEDIA_TOKENS if part.kind is PartKind.MEDIA else 0
            total += sum(self.text(words) for words in (part.name, part.text) if words)
        return total

    def total(self, messages: Iterable[Message]) -> int:
        """Return the sum of the tokens of all messages."""
        return sum(map(self.message, messages))


def estimate_tokens(messages: Iterable[Message]) -> int:
    """Return the weighted characters of all messages divided by four, an estimate of their tokens."""
    return sum(map(count_text_chars, messages)) // token_counts.CHARS_PER_TOKEN


def count_text_chars(message: Message) -> int:
    """Return the weighted characters of a message's texts and tool results."""
    content = message.get("content")
    if isinstance(content, str):
        return token_counts.count_weighted_chars(content)
    return sum(
        token_counts.count_weighted_chars(part.text)
        for part in message_parts(message)
        if part.kind in _WORDS
    )
