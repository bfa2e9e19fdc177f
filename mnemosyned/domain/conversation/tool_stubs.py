"""Stubs of long tool results: their beginning, their end and the id of the rest."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mnemosyned.domain.conversation.key_facts import NAMELESS
from mnemosyned.domain.conversation.messages import (
    SHORTENED,
    STUB,
    TOOL_ROLES,
    Message,
    Part,
    PartKind,
    is_plain,
    message_id,
    parts,
    strip_stub_mark,
)
from mnemosyned.domain.conversation.result_excerpts import beginning, ending
from mnemosyned.domain.conversation.summary_message import VALUE_SEPARATOR, VALUES
from mnemosyned.domain.memory import TELLING_KINDS
from mnemosyned.domain.secrets.exact_values import extract_details
from mnemosyned.domain.text.frames import neutralize_line

STUBBED_CHARS_MIN = 800
"""Minimum length of a result to stub; a stub is never longer."""
ENDING_CHARS = 240
VALUES_CHARS = 160
_NAME = re.compile(r"[^\w.-]+")
_POINTER = re.compile(re.escape(STUB) + r"[^\n\]]{0,100}; expand ([^\s\]]{1,200})\]")


def stub_results(
    message: Message, names: Mapping[str, str], *, archived: bool = True
) -> dict[str, Any] | None:
    """Stub the long tool results of a message; None where it has none.

    A stub begins like its result, so that its key fact stays the same. It names the id of the
    archived original, unless the original is not `archived`.
    """
    if is_plain(message):
        return None
    long = list(filter(_is_long_result, parts(message)))
    if not long:
        return None
    id = message_id(message) if archived else ""
    if message.get("role") in TOOL_ROLES:
        name = long[0].name or names.get(long[0].id, NAMELESS)
        return {**message, "content": _stub(long[0].text, name, id)}
    stubs = {
        part.id: _stub(part.text, names.get(part.id, NAMELESS), id) for part in long
    }
    content = [
        {**block, "content": stubs[block["tool_use_id"]]}
        if isinstance(block, Mapping) and block.get("tool_use_id") in stubs
        else block
        for block in message["content"]
    ]
    return {**message, "content": content}


def _is_long_result(part: Part) -> bool:
    return part.kind is PartKind.RESULT and len(part.text.strip()) > STUBBED_CHARS_MIN


def stub_pointer(message: Message) -> str:
    """Return the id that a stub names for its original; empty for any other message."""
    if is_plain(message):
        return ""
    marks = (
        _POINTER.match(part.text)
        for part in parts(message)
        if part.kind is PartKind.RESULT
    )
    return next((mark[1] for mark in marks if mark), "")


def is_stub_of(message: Message, original: Message) -> bool:
    """Whether a message is a stub of this original; a tool could write a pointer itself."""
    stub = stub_results(original, {})
    return stub is not None and _comparable_parts(message) == _comparable_parts(stub)


def _comparable_parts(message: Message) -> list[tuple[PartKind, str, str]]:
    return [
        (
            part.kind,
            strip_stub_mark(part.text) if part.kind is PartKind.RESULT else part.text,
            part.id,
        )
        for part in parts(message)
    ]


def _stub(result: str, name: str, id: str) -> str:
    result = result.strip()
    head = beginning(result)
    end = ending(result, after=len(head), chars=ENDING_CHARS)
    shown = (head, _values(result, shown=f"{head}\n{end}"), end)
    called = _NAME.sub("_", name)[:40]
    size = f"{len(result):,} characters"
    mark = (
        f"{STUB}{called}, {size}; expand {id}]"
        if id
        else f"{SHORTENED}{called}, {size}]"
    )
    return f"{mark} " + "\n…\n".join(filter(None, shown))


def _values(result: str, *, shown: str) -> str:
    """Return the line of exact values that the stub does not show, empty if there is none."""
    values: list[str] = []
    room = VALUES_CHARS
    for detail in extract_details(result):
        telling = detail.kind in TELLING_KINDS and not detail.sensitive
        if not telling or detail.value in shown:
            continue
        room -= len(detail.value) + len(VALUE_SEPARATOR)
        if room < 0:
            break
        values.append(detail.value)
    return VALUES + neutralize_line(VALUE_SEPARATOR.join(values)) if values else ""
