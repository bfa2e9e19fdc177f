"""Token counts of messages: by characters, or of everything that is sent to a model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from mnemosyned.domain.conversation.messages import Message, PartKind, is_plain, parts
from mnemosyned.domain.text.token_estimate import CHARS_PER_TOKEN, Chars4, TokenCounter

MEDIA_TOKENS = 1_600
"""Flat cost: Anthropic documents about 1,568 for the largest picture it does not scale down."""
MESSAGE_TOKENS = 4
"""Tokens that a chat template adds to a message."""

_WORDS = (PartKind.TEXT, PartKind.RESULT)


class MessageCounter(Protocol):
    """Counter of tokens in texts and messages; pure, and never raising."""

    @property
    def name(self) -> str:
        """Name of the counter, as answers show it."""
        ...

    def text(self, text: str) -> int:
        """Count the tokens of a text."""
        ...

    def message(self, message: Message) -> int:
        """Count the tokens of a message of any form."""
        ...

    def total(self, messages: Iterable[Message]) -> int:
        """Count the tokens of a conversation, for comparison with a threshold."""
        ...


class CharsCounter:
    """Counter by characters: four to a token, at least one token a message; media at a flat cost."""

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
    """Counter of everything sent: texts, calls with their arguments, media, and the template."""

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
    """Estimate tokens: the characters of all messages over four, divided once."""
    return sum(map(text_chars, messages)) // CHARS_PER_TOKEN


def text_chars(message: Message) -> int:
    """Count the characters of a message's texts."""
    content = message.get("content")
    if isinstance(content, str):
        return len(content)
    return sum(len(part.text) for part in parts(message) if part.kind in _WORDS)
