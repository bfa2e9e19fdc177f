"""Exports of ChatGPT: conversations as trees of messages, of which one branch was shown last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mnemosyned.importers.formats.chats.exports import (
    ChatExport,
    Conversation,
    Json,
    Said,
)
from mnemosyned.importers.reading.json_stream import Outline
from mnemosyned.importers.reading.memories import text_in
from mnemosyned.importers.reading.moments import moment_from

ROLES = frozenset({"user", "assistant"})
TEXT_KINDS = frozenset({"text", "multimodal_text"})
"""Kinds of content that were said; others are a tool's, a plan, or instructions."""
_PART_NAMES: Mapping[str, str] = {
    "image_asset_pointer": "[image]",
    "audio_asset_pointer": "",
    "real_time_user_audio_video_asset_pointer": "",
}
"""Parts without words; what was spoken is a part of its own."""


class ChatGptExport(ChatExport):
    """`conversations.json` of ChatGPT's data export, alone or in its archive."""

    name = "chatgpt"

    def has_form(self, outline: Outline) -> bool:
        return bool({"mapping", "current_node"} & outline.keys)

    def conversation(self, value: Json) -> Conversation:
        mapping = value["mapping"]
        first = next(iter(mapping), "")
        id = value.get("conversation_id") or value.get("id") or first
        return Conversation(
            id=str(id),
            title=text_in(value.get("title")),
            messages=_messages(value, mapping),
        )


def _messages(conversation: Json, mapping: Json) -> Iterator[Said]:
    begun = conversation.get("create_time")
    for node in _branch(conversation, mapping):
        message = mapping[node].get("message")
        if not isinstance(message, Mapping) or not _was_said(message):
            continue
        text = _text(message["content"])
        if text.strip():
            yield Said(
                id=text_in(message.get("id")) or node,
                role=message["author"]["role"],
                text=text,
                created_at=moment_from(message.get("create_time") or begun),
                metadata={"model": (message.get("metadata") or {}).get("model_slug")},
            )


def _branch(conversation: Json, mapping: Json) -> list[str]:
    """Return the nodes from the root to the one that was shown last."""
    node = conversation.get("current_node")
    if node not in mapping:
        node = _last_leaf(mapping)
    branch: dict[str, None] = {}
    while isinstance(node, str) and node in mapping and node not in branch:
        branch[node] = None
        node = mapping[node].get("parent")
    return list(reversed(branch))


def _last_leaf(mapping: Json) -> str | None:
    leaves = [name for name, node in mapping.items() if not node.get("children")]
    return leaves[-1] if leaves else None


def _was_said(message: Json) -> bool:
    """Whether a person or the model said it to the other, and it was shown."""
    content, author = message.get("content"), message.get("author") or {}
    if not isinstance(content, Mapping) or author.get("role") not in ROLES:
        return False
    metadata = message.get("metadata") or {}
    is_hidden = metadata.get("is_visually_hidden_from_conversation") or (
        metadata.get("is_user_system_message") or message.get("weight") == 0
    )
    is_to_all = message.get("recipient") in (None, "all")
    return not is_hidden and is_to_all and content.get("content_type") in TEXT_KINDS


def _text(content: Json) -> str:
    parts = content.get("parts") or [content.get("text")]
    return "\n".join(filter(None, map(_part, parts)))


def _part(part: Any) -> str:  # noqa: ANN401 any JSON
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        return ""
    kind = text_in(part.get("content_type"))
    return text_in(part.get("text")) or _PART_NAMES.get(kind, "")
