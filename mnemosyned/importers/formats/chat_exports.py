"""Exports of ChatGPT and Claude."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, BinaryIO

from mnemosyned.importers.importer import (
    BadRecord,
    ImportFormat,
    ImportItem,
    ImportSource,
    moment_from,
    sendable,
    stable_id,
    text_in,
)
from mnemosyned.importers.reading import (
    ZIP_SIGNATURE,
    ArchiveMember,
    ArchiveRefused,
    JsonBroken,
    JsonOutline,
    JsonReader,
    member_head,
    members_of,
    open_text,
    outline_document,
)
from mnemosyned.verbs.memories import Remember

Json = Mapping[str, Any]
CONVERSATIONS = re.compile(r"conversations(?:-\d+)?\.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedMessage:
    """A message of a conversation."""

    id: str
    role: str
    text: str
    created_at: datetime | None
    metadata: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatConversation:
    """The fields that all messages of a conversation share."""

    id: str
    title: str
    messages: Iterable[ExportedMessage]


@dataclass(frozen=True, slots=True)
class _ChatPosition:
    """The position of an import: archive member, conversation, message."""

    member: int = 0
    conversation: int = 0
    message: int = 0

    @classmethod
    def parse(cls, position: str) -> _ChatPosition:
        """Parse a position written by `str`; an empty text is the beginning."""
        return cls(*map(int, position.split("/"))) if position else cls()

    def __str__(self) -> str:
        return f"{self.member}/{self.conversation}/{self.message}"


class ChatExport(ImportFormat):
    """An export of a chat service."""

    @abstractmethod
    def has_form(self, outline: JsonOutline) -> bool:
        """Return True if conversations with these keys are this service's."""

    @abstractmethod
    def conversation(self, value: Json) -> ChatConversation:
        """Return a conversation with its messages, parsed from its JSON object.

        Raises `KeyError`, `TypeError` or `ValueError`.
        """

    def recognizes(self, source: ImportSource) -> bool:
        """Return True for a list of this service's conversations, also in an archive."""
        try:
            head = source.head
            if head.startswith(ZIP_SIGNATURE) and not source.stream:
                head = member_head(source.path, CONVERSATIONS)
            outline = outline_document(head)
        except ArchiveRefused:
            return False
        return outline is not None and outline.is_list and self.has_form(outline)

    def size(self, source: ImportSource) -> int:
        """Return the number of bytes to read: of an archive, its conversations unpacked."""
        if not source.head.startswith(ZIP_SIGNATURE):
            return source.size()
        try:
            members = members_of(source.path, CONVERSATIONS)
            return sum(member.size for member in members)
        except ArchiveRefused:
            return source.size()

    def read(
        self, source: ImportSource, position: str
    ) -> Iterator[ImportItem | BadRecord]:
        """Yield the messages after a position, from the document or each one in the archive."""
        start = _ChatPosition.parse(position)
        members: Sequence[ArchiveMember | None] = [None]
        try:
            if source.head.startswith(ZIP_SIGNATURE):
                members = members_of(source.path, CONVERSATIONS)
            for number, member in enumerate(members):
                if number >= start.member:
                    name = f"{source.name}/{member.name}" if member else source.name
                    with open_text(source, member) as text:
                        yield from self._read_document(name, text, start, number)
                    start = _ChatPosition()
        except ArchiveRefused as refused:
            yield BadRecord(source.name, str(refused))

    def _read_document(
        self, name: str, opened: BinaryIO, start: _ChatPosition, member: int
    ) -> Iterator[ImportItem | BadRecord]:
        """Yield the messages of a document with conversations, after position `start`.

        `member` is the number of the document in its archive, `name` its name in error messages.
        """
        try:
            for element in JsonReader(opened).elements():
                if element.index < start.conversation:
                    continue
                done = start.message if element.index == start.conversation else 0
                place = f"{name}, conversation {element.index + 1}"
                position = _ChatPosition(member, element.index, done)
                size = element.size
                for record in self._read_conversation(element.value, place, position):
                    yield replace(record, size=size)
                    size = 0
        except JsonBroken as broken:
            yield BadRecord(name, str(broken))

    def _read_conversation(
        self,
        value: Any,  # noqa: ANN401 any JSON
        name: str,
        start: _ChatPosition,
    ) -> Iterator[ImportItem | BadRecord]:
        """Yield the messages of one conversation after position `start`."""
        if not isinstance(value, Mapping):
            yield BadRecord(name, "it is not a conversation")
            return
        try:
            conversation = self.conversation(value)
            for number, said in enumerate(conversation.messages, 1):
                if number > start.message:
                    position = _ChatPosition(start.member, start.conversation, number)
                    place = f"{name}, message {number}"
                    memory = Remember(
                        said.text,
                        id=stable_id(self.name, conversation.id, said.id),
                        session=f"{self.name}:{conversation.id}",
                        source=self.name,
                        role=said.role,
                        created_at=said.created_at,
                        metadata={"title": conversation.title, **said.metadata},
                    )
                    yield ImportItem(sendable(memory), place, str(position))
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

    def has_form(self, outline: JsonOutline) -> bool:
        """Return True if ChatGPT's conversations have such keys."""
        return bool({"mapping", "current_node"} & outline.keys)

    def conversation(self, value: Json) -> ChatConversation:
        """Return a ChatGPT conversation with the messages on its shown branch."""
        mapping = value["mapping"]
        first = next(iter(mapping), "")
        id = value.get("conversation_id") or value.get("id") or first
        return ChatConversation(
            id=str(id),
            title=text_in(value.get("title")),
            messages=_read_chatgpt_messages(value, mapping),
        )


def _read_chatgpt_messages(
    conversation: Json, mapping: Json
) -> Iterator[ExportedMessage]:
    """Yield the messages on a ChatGPT conversation's shown branch.

    `mapping` is its tree of nodes by id.
    """
    begun = conversation.get("create_time")
    for node in _find_shown_branch(conversation, mapping):
        message = mapping[node].get("message")
        if not isinstance(message, Mapping) or not _is_visible_message(message):
            continue
        content = message["content"]
        parts = content.get("parts") or [content.get("text")]
        text = "\n".join(filter(None, map(_read_part_text, parts)))
        if text.strip():
            yield ExportedMessage(
                id=text_in(message.get("id")) or node,
                role=message["author"]["role"],
                text=text,
                created_at=moment_from(message.get("create_time") or begun),
                metadata={"model": (message.get("metadata") or {}).get("model_slug")},
            )


def _find_shown_branch(conversation: Json, mapping: Json) -> list[str]:
    """Return the ids of the nodes from the root to the last shown node."""
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
    """Return True if a person or the model said the message, and it is not hidden."""
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
    """Return a message part as text: its words, a word for its kind, or an empty text."""
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

    def has_form(self, outline: JsonOutline) -> bool:
        """Return True if Claude's conversations have such keys."""
        return "chat_messages" in outline.keys

    def conversation(self, value: Json) -> ChatConversation:
        """Return a Claude conversation with its messages."""
        return ChatConversation(
            id=text_in(value["uuid"]),
            title=text_in(value.get("name")),
            messages=_read_claude_messages(value),
        )


def _read_claude_messages(conversation: Json) -> Iterator[ExportedMessage]:
    """Yield the messages of a Claude conversation that have text."""
    begun = conversation.get("created_at")
    for message in conversation["chat_messages"]:
        role = CLAUDE_ROLES.get(text_in(message.get("sender")))
        text = _read_claude_text(message)
        if role and text.strip():
            yield ExportedMessage(
                id=text_in(message["uuid"]),
                role=role,
                text=text,
                created_at=moment_from(message.get("created_at") or begun),
            )


def _read_claude_text(message: Json) -> str:
    """Return a message's words and attached files, without thoughts and results of tools."""
    parts = message.get("content")
    texts = [
        text_in(part.get("text"))
        for part in (parts if isinstance(parts, list) else ())
        if isinstance(part, Mapping) and part.get("type") == "text"
    ]
    said = ["\n".join(filter(None, texts)) or text_in(message.get("text"))]
    attached = [*(message.get("attachments") or ()), *(message.get("files") or ())]
    for file in attached:
        name = text_in(file.get("file_name")) or "a file"
        extract = text_in(file.get("extracted_content"))[:EXTRACT_CHARS_MAX]
        said.append(f"[{name}]\n{extract}".strip())
    return "\n\n".join(filter(None, said))
