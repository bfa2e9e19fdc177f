"""Exports of Claude: conversations as lists of messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mnemosyned.importers.formats.chats.exports import (
    ChatExport,
    Conversation,
    Json,
    Said,
)
from mnemosyned.importers.reading.json_stream import Outline
from mnemosyned.importers.reading.memories import text_in
from mnemosyned.importers.reading.moments import moment_from

ROLES: Mapping[str, str] = {"human": "user", "assistant": "assistant"}
EXTRACT_CHARS_MAX = 20_000
"""Characters kept of a file that was pasted into a message."""


class ClaudeExport(ChatExport):
    """`conversations.json` of Claude's data export, alone or in its archive."""

    name = "claude"

    def has_form(self, outline: Outline) -> bool:
        return "chat_messages" in outline.keys

    def conversation(self, value: Json) -> Conversation:
        return Conversation(
            id=text_in(value["uuid"]),
            title=text_in(value.get("name")),
            messages=_messages(value),
        )


def _messages(conversation: Json) -> Iterator[Said]:
    begun = conversation.get("created_at")
    for message in conversation["chat_messages"]:
        role = ROLES.get(text_in(message.get("sender")))
        text = _text(message)
        if role and text.strip():
            yield Said(
                id=text_in(message["uuid"]),
                role=role,
                text=text,
                created_at=moment_from(message.get("created_at") or begun),
            )


def _text(message: Json) -> str:
    """Return what was said, and the files that came with it; not thoughts and tools' results."""
    parts = message.get("content")
    texts = [
        text_in(part.get("text"))
        for part in (parts if isinstance(parts, list) else ())
        if isinstance(part, Mapping) and part.get("type") == "text"
    ]
    said = "\n".join(filter(None, texts)) or text_in(message.get("text"))
    return "\n\n".join(filter(None, [said, *_files(message)]))


def _files(message: Json) -> Iterator[str]:
    attached = [*(message.get("attachments") or ()), *(message.get("files") or ())]
    for file in attached:
        name = text_in(file.get("file_name")) or "a file"
        extract = text_in(file.get("extracted_content"))[:EXTRACT_CHARS_MAX]
        yield f"[{name}]\n{extract}".strip()
