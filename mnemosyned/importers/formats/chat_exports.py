"""Exports of ChatGPT and Claude."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, BinaryIO

import msgspec

from mnemosyned.importers import reading
from mnemosyned.importers.importer import (
    BadRecord,
    ImportFormat,
    ImportItem,
    ImportSource,
    Records,
    SourceRefused,
    moment_from,
    sendable,
    stable_id,
    text_in,
)
from mnemosyned.importers.transcripts import text_of
from mnemosyned.verbs.memories import Remember

Json = Mapping[str, Any]
CONVERSATIONS = re.compile(r"conversations(?:-\d+)?\.json")
Position = tuple[int, ...]
"""The position of an import: archive member, conversation, message."""


class ChatExport(ImportFormat):
    """An export of a chat service."""

    keys: frozenset[str]
    """Keys of which a conversation of this service has one at least."""

    @abstractmethod
    def parse_conversation(self, value: Json) -> tuple[str, str, Iterator[Remember]]:
        """Return a conversation's id and title, and an iterator over its messages.

        They have the service's ids. Raises `KeyError`, `TypeError` or `ValueError`, also while read.
        """

    def recognizes(self, source: ImportSource) -> bool:
        """Return True for a JSON list of this service's conversations, also in a ZIP archive."""
        outline = reading.outline_source(source, CONVERSATIONS)
        return (
            outline is not None and outline.is_list and bool(self.keys & outline.keys)
        )

    def size(self, source: ImportSource) -> int:
        """Return the number of bytes to read: the file's, or of an archive's conversations."""
        if not source.head.startswith(reading.ZIP_SIGNATURE):
            return source.size()
        try:
            members = reading.members_of(source.path, CONVERSATIONS)
            return sum(member.file_size for member in members)
        except SourceRefused:
            return source.size()

    def read_records(self, source: ImportSource, position: str) -> Records:
        """Yield the messages after a position "document/conversation/message"."""
        start = tuple(map(int, position.split("/"))) if position else (0, 0, 0)
        with reading.open_documents(source, [CONVERSATIONS]) as documents:
            for number, (member, text) in enumerate(documents):
                if number >= start[0]:
                    name = f"{source.name}/{member}" if member else source.name
                    yield from self._read_document(name, text, start, number)
                    start = (0, 0, 0)

    def _read_document(
        self, name: str, opened: BinaryIO, start: Position, member: int
    ) -> Records:
        """Yield the messages of a list of conversations after the position `start`."""
        _, begin, done = start
        try:
            for element in reading.JsonReader(opened).elements():
                if element.index < begin:
                    continue
                place = f"{name}, conversation {element.index + 1}"
                position = (
                    member,
                    element.index,
                    done if element.index == begin else 0,
                )
                size = element.size
                for record in self._read_conversation(element.value, place, position):
                    yield replace(record, size=size)
                    size = 0
        except SourceRefused as broken:  # other documents may be whole
            yield BadRecord(name, str(broken))

    def _read_conversation(
        self,
        value: Any,  # noqa: ANN401 any JSON
        name: str,
        start: Position,
    ) -> Records:
        """Yield the messages of a conversation in JSON after a position, or a bad record."""
        if not isinstance(value, Mapping):
            yield BadRecord(name, "it is not a conversation")
            return
        *conversation, done = start
        try:
            id, title, messages = self.parse_conversation(value)
            for number, said in enumerate(messages, 1):
                if number > done:
                    memory = msgspec.structs.replace(
                        said,
                        id=stable_id(self.name, id, said.id or ""),
                        session=f"{self.name}:{id}",
                        source=self.name,
                        metadata={"title": title, **said.metadata},
                    )
                    position = "/".join(map(str, (*conversation, number)))
                    place = f"{name}, message {number}"
                    yield ImportItem(sendable(memory), place, position)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            yield BadRecord(name, f"it has not the form of a conversation: {error!r}")


CHATGPT_ROLES = frozenset({"user", "assistant"})
CHATGPT_TEXT_KINDS = frozenset({"text", "multimodal_text"})
"""Kinds of content of a message; other kinds are a tool's, a plan, or instructions."""
_PART_NAMES: Mapping[str, str] = {
    "image_asset_pointer": "[image]",
    "audio_asset_pointer": "",
    "real_time_user_audio_video_asset_pointer": "",
}
"""Parts without words; spoken words are a part of their own."""


class ChatGptExport(ChatExport):
    """`conversations.json` of ChatGPT's data export, alone or in its archive."""

    name = "chatgpt"
    keys = frozenset({"mapping", "current_node"})

    def parse_conversation(self, value: Json) -> tuple[str, str, Iterator[Remember]]:
        """Return the id and title of a ChatGPT conversation, and its shown branch's messages."""
        mapping = value["mapping"]
        first = next(iter(mapping), "")
        id = str(value.get("conversation_id") or value.get("id") or first)
        messages = _read_chatgpt_messages(value, mapping)
        return id, text_in(value.get("title")), messages


def _read_chatgpt_messages(conversation: Json, mapping: Json) -> Iterator[Remember]:
    """Yield the visible messages on the branch of a ChatGPT conversation that is shown."""
    said = conversation.get("create_time")
    for node in _find_shown_branch(conversation, mapping):
        message = mapping[node].get("message")
        if not isinstance(message, Mapping) or not _is_visible_message(message):
            continue
        said = message.get("create_time") or said  # not before its question
        content = message["content"]
        parts = content.get("parts") or [content.get("text")]
        text = "\n".join(filter(None, map(_read_part_text, parts)))
        if text.strip():
            yield Remember(
                text,
                id=text_in(message.get("id")) or node,
                role=message["author"]["role"],
                created_at=moment_from(said),
                metadata={"model": (message.get("metadata") or {}).get("model_slug")},
            )


def _find_shown_branch(conversation: Json, mapping: Json) -> list[str]:
    """Return the ids of the nodes from the root to the current node, or else the last leaf."""
    node = conversation.get("current_node")
    if node not in mapping:
        leaves = [name for name, each in mapping.items() if not each.get("children")]
        node = leaves[-1] if leaves else None
    branch: dict[str, None] = {}
    while isinstance(node, str) and node in mapping and node not in branch:
        branch[node] = None
        node = mapping[node].get("parent")
    return list(reversed(branch))


def _is_visible_message(message: Json) -> bool:
    """Return True if a ChatGPT message was said by the user or the model and is shown as text."""
    content, author = message.get("content"), message.get("author") or {}
    if not isinstance(content, Mapping) or author.get("role") not in CHATGPT_ROLES:
        return False
    metadata = message.get("metadata") or {}
    is_hidden = metadata.get("is_visually_hidden_from_conversation") or (
        metadata.get("is_user_system_message") or message.get("weight") == 0
    )
    is_to_all = message.get("recipient") in (None, "all")
    return (
        not is_hidden
        and is_to_all
        and content.get("content_type") in CHATGPT_TEXT_KINDS
    )


def _read_part_text(part: Any) -> str:  # noqa: ANN401 any JSON
    """Return the text of a part of a ChatGPT message: its words, or "[image]"; else empty."""
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        return ""
    kind = text_in(part.get("content_type"))
    return text_in(part.get("text")) or _PART_NAMES.get(kind, "")


CLAUDE_ROLES: Mapping[str, str] = {"human": "user", "assistant": "assistant"}
EXTRACT_CHARS_MAX = 20_000
"""Characters kept of a file that was pasted into a message."""


class ClaudeExport(ChatExport):
    """`conversations.json` of Claude's data export, alone or in its archive."""

    name = "claude"
    keys = frozenset({"chat_messages"})

    def parse_conversation(self, value: Json) -> tuple[str, str, Iterator[Remember]]:
        """Return the id and title of a Claude conversation, and its messages."""
        messages = _read_claude_messages(value)
        return text_in(value["uuid"]), text_in(value.get("name")), messages


def _read_claude_messages(conversation: Json) -> Iterator[Remember]:
    """Yield the messages of a Claude conversation, without those that have no text."""
    begun = conversation.get("created_at")
    for message in conversation["chat_messages"]:
        role = CLAUDE_ROLES.get(text_in(message.get("sender")))
        text = _read_claude_text(message)
        if role and text.strip():
            yield Remember(
                text,
                id=text_in(message["uuid"]),
                role=role,
                created_at=moment_from(message.get("created_at") or begun),
            )


def _read_claude_text(message: Json) -> str:
    """Return a Claude message's words and its attached files' text, below their names."""
    said = [text_of(message.get("content")) or text_in(message.get("text"))]
    attached = [*(message.get("attachments") or ()), *(message.get("files") or ())]
    for file in attached:
        name = text_in(file.get("file_name")) or "a file"
        extract = text_in(file.get("extracted_content"))[:EXTRACT_CHARS_MAX]
        said.append(f"[{name}]\n{extract}".strip())
    return "\n\n".join(filter(None, said))
