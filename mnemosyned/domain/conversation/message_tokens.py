"""How many tokens messages take: by the seeds' own rules, or all that a model is sent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from mnemosyned.domain.conversation.messages import Message, PartKind, is_plain, parts
from mnemosyned.domain.text.token_estimate import CHARS_PER_TOKEN, Chars4, TokenCounter

MEDIA_TOKENS = 1_600
"""A flat cost: Anthropic documents about 1,568 for the largest picture it does not scale down."""
MESSAGE_TOKENS = 4
"""What a chat template adds to a message. Source: the Mini-Agent seed."""

_WORDS = (PartKind.TEXT, PartKind.RESULT)


class MessageCounter(Protocol):
    """Says how many tokens texts and messages take; pure, and never raising."""

    @property
    def name(self) -> str:
        """Who counted, as answers show it."""
        ...

    def text(self, text: str) -> int:
        """The tokens of a text."""
        ...

    def message(self, message: Message) -> int:
        """The tokens of a message, whatever is in it."""
        ...

    def total(self, messages: Iterable[Message]) -> int:
        """The tokens of a conversation, as a threshold is held against."""
        ...


class CharsCounter:
    """The seeds' rule: four characters of text to a token, at least one a message; media flat."""

    name = Chars4.name

    def text(self, text: str) -> int:
        return max(1, len(text) // CHARS_PER_TOKEN)

    def message(self, message: Message) -> int:
        content = message.get("content")
        if isinstance(content, str):
            return max(1, len(content) // CHARS_PER_TOKEN)
        media = sum(part.kind is PartKind.MEDIA for part in parts(message))
        return max(1, text_chars(message) // CHARS_PER_TOKEN) + media * MEDIA_TOKENS

    def total(self, messages: Iterable[Message]) -> int:
        return estimate_tokens(messages)


class FullCounter:
    """Everything that is sent: texts, calls with their arguments, media, and the template."""

    def __init__(self, counter: TokenCounter) -> None:
        self.name = counter.name
        self.text = counter.count

    def message(self, message: Message) -> int:
        if is_plain(message):
            return MESSAGE_TOKENS + self.text(message["content"])
        total = MESSAGE_TOKENS
        for part in parts(message):
            total += MEDIA_TOKENS if part.kind is PartKind.MEDIA else 0
            total += sum(self.text(words) for words in (part.name, part.text) if words)
        return total

    def total(self, messages: Iterable[Message]) -> int:
        return sum(map(self.message, messages))


def estimate_tokens(messages: Iterable[Message]) -> int:
    """The characters of all messages over four, divided once. Source: the Missy seed."""
    return sum(map(text_chars, messages)) // CHARS_PER_TOKEN


def text_chars(message: Message) -> int:
    """The characters of a message's texts; what is no text counts nothing."""
    content = message.get("content")
    if isinstance(content, str):
        return len(content)
    return sum(len(part.text) for part in parts(message) if part.kind in _WORDS)
