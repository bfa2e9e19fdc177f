"""Exports of chat services: lists of conversations, in a file or in an archive."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, BinaryIO

from mnemosyned.importers.importer import (
    HEAD_BYTES,
    Bad,
    Format,
    Item,
    Source,
    stable_id,
)
from mnemosyned.importers.reading.archives import (
    SIGNATURE,
    ArchiveRefused,
    Member,
    members_of,
    open_member,
)
from mnemosyned.importers.reading.json_stream import (
    JsonBroken,
    JsonReader,
    Outline,
    outline_of,
)
from mnemosyned.importers.reading.memories import sendable
from mnemosyned.importers.reading.text import as_utf8
from mnemosyned.verbs.memories import Remember

Json = Mapping[str, Any]
CONVERSATIONS = re.compile(r"conversations(?:-\d+)?\.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A message of a conversation."""

    id: str
    role: str
    text: str
    created_at: datetime | None
    metadata: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """The fields that all messages of a conversation share."""

    id: str
    title: str
    messages: Iterable[Said]


@dataclass(frozen=True, slots=True)
class _Place:
    """How far an import has come: archive member, conversation, message."""

    member: int = 0
    conversation: int = 0
    message: int = 0

    @classmethod
    def read(cls, position: str) -> _Place:
        return cls(*map(int, position.split("/"))) if position else cls()

    def __str__(self) -> str:
        return f"{self.member}/{self.conversation}/{self.message}"


class ChatExport(Format):
    """An export of a chat service."""

    @abstractmethod
    def has_form(self, outline: Outline) -> bool:
        """Whether conversations of this service have these keys."""

    @abstractmethod
    def conversation(self, value: Json) -> Conversation:
        """Read one conversation. Raises `KeyError`, `TypeError` or `ValueError`."""

    def recognizes(self, source: Source) -> bool:
        try:
            outline = outline_of(_head(source))
        except ArchiveRefused:
            return False
        return outline is not None and outline.is_list and self.has_form(outline)

    def size(self, source: Source) -> int:
        if not source.head.startswith(SIGNATURE):
            return source.size()
        try:
            return sum(member.size for member in _members(source))
        except ArchiveRefused:
            return source.size()

    def read(self, source: Source, position: str) -> Iterator[Item | Bad]:
        start = _Place.read(position)
        if not source.head.startswith(SIGNATURE):
            with source.open() as opened, as_utf8(opened) as text:
                yield from self._document(source.name, text, start, 0)
            return
        try:
            for number, member in enumerate(_members(source)):
                if number >= start.member:
                    name = f"{source.name}/{member.name}"
                    with (
                        open_member(source.path, member) as opened,
                        as_utf8(opened) as text,
                    ):
                        yield from self._document(name, text, start, number)
                    start = _Place()
        except ArchiveRefused as refused:
            yield Bad(source.name, str(refused))

    def _document(
        self, name: str, opened: BinaryIO, start: _Place, member: int
    ) -> Iterator[Item | Bad]:
        reader = JsonReader(opened)
        read = 0
        try:
            for element in reader.elements():
                size, read = reader.bytes_read - read, reader.bytes_read
                if element.index < start.conversation:
                    continue
                done = start.message if element.index == start.conversation else 0
                place = f"{name}, conversation {element.index + 1}"
                position = _Place(member, element.index, done)
                for record in self._records(element.value, place, position):
                    yield _sized(record, size)
                    size = 0
        except JsonBroken as broken:
            yield Bad(name, str(broken))

    def _records(self, value: Any, name: str, start: _Place) -> Iterator[Item | Bad]:  # noqa: ANN401 any JSON
        if not isinstance(value, Mapping):
            yield Bad(name, "it is not a conversation")
            return
        try:
            conversation = self.conversation(value)
            for number, said in enumerate(conversation.messages, 1):
                if number > start.message:
                    position = _Place(start.member, start.conversation, number)
                    place = f"{name}, message {number}"
                    yield Item(self._memory(conversation, said), place, str(position))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            yield Bad(name, f"it has not the form of a conversation: {error!r}")

    def _memory(self, conversation: Conversation, said: Said) -> Remember:
        return sendable(
            Remember(
                said.text,
                id=stable_id(self.name, conversation.id, said.id),
                session=f"{self.name}:{conversation.id}",
                source=self.name,
                role=said.role,
                created_at=said.created_at,
                metadata={"title": conversation.title, **said.metadata},
            )
        )


def _members(source: Source) -> list[Member]:
    return members_of(source.path, CONVERSATIONS)


def _head(source: Source) -> bytes:
    """The first bytes of the conversations. Raises `ArchiveRefused`."""
    if source.stream or not source.head.startswith(SIGNATURE):
        return source.head
    for member in _members(source)[:1]:
        with open_member(source.path, member) as opened:
            return opened.read(HEAD_BYTES)
    return b""


def _sized(record: Item | Bad, size: int) -> Item | Bad:
    if isinstance(record, Bad):
        return Bad(record.place, record.reason, record.position, size)
    return Item(record.memory, record.place, record.position, size)
