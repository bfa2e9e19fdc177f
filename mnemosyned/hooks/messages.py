"""Messages in a call itself, for tools whose transcript cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mnemosyned.hooks.calls import Event, HookCall, Payload
from mnemosyned.transcripts.cleaning import clean
from mnemosyned.transcripts.formats import ROLES, text_of
from mnemosyned.transcripts.messages import Role, TranscriptMessage, moment_of

MESSAGES_MAX = 1_000
"""Messages of one call that are read, the newest."""


def messages_of(call: HookCall) -> tuple[TranscriptMessage, ...]:
    """Return what was said, by the messages of a plugin or by the prompt and the last answer."""
    if call.messages:
        return tuple(_sent(call.messages[-MESSAGES_MAX:]))
    if call.client == "opencode":  # its plugin sends the same again, with ids
        return ()
    said: tuple[tuple[Role, str], ...] = (
        ("user", call.prompt if call.event is Event.PROMPT else ""),
        ("assistant", call.reply),
    )
    return tuple(
        TranscriptMessage(role=role, text=text)
        for role, words in said
        if (text := clean(words))
    )


def _sent(messages: tuple[Payload, ...]) -> Iterator[TranscriptMessage]:
    for message in messages:
        kind = message.get("role")
        role = ROLES.get(kind) if isinstance(kind, str) else None
        text = clean(text_of(message.get("content", message.get("text"))))
        if role and text:
            yield TranscriptMessage(
                role=role,
                text=text,
                created_at=moment_of(_time(message)),
                unique_id=str(message.get("id") or ""),
            )


def _time(message: Payload) -> Any:  # noqa: ANN401 whatever the plugin sends
    return message.get("timestamp", message.get("created_at"))
