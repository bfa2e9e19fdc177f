"""Messages in the conversations that ChatGPT and Claude export."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mnemosyned.importers.formats.memory_stores import StoreFormat, object_in
from mnemosyned.importers.importer import text_in
from mnemosyned.importers.transcripts import text_of

Json = Mapping[str, Any]
CHATGPT_ROLES = frozenset({"user", "assistant"})
CHATGPT_TEXT_KINDS = frozenset({"text", "multimodal_text"})
"""Kinds of content of a message; other kinds are a tool's, a plan, or instructions."""
_PART_NAMES: Mapping[str, str] = {
    "image_asset_pointer": "[image]",
    "audio_asset_pointer": "",
    "real_time_user_audio_video_asset_pointer": "",
}
"""Parts without words; spoken words are a part of their own."""


class ChatGptExport(StoreFormat):
    """`conversations.json` of ChatGPT's data export, alone or in its archive."""

    def split_rows(self, kind: str, value: object) -> Iterator[tuple[str, object]]:
        """Yield (kind, message) for the visible messages on the shown branch of a conversation."""
        conversation = object_in(value)
        mapping = conversation["mapping"]
        first = next(iter(mapping), "")
        about = {
            "conversation": conversation.get("conversation_id")
            or conversation.get("id")
            or first,
            "title": conversation.get("title"),
        }
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
                yield (
                    kind,
                    {
                        **about,
                        "text": text,
                        "id": text_in(message.get("id")) or node,
                        "role": message["author"]["role"],
                        "created_at": said,
                        "model": (message.get("metadata") or {}).get("model_slug"),
                    },
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


class ClaudeExport(StoreFormat):
    """`conversations.json` of Claude's data export, alone or in its archive."""

    def split_rows(self, kind: str, value: object) -> Iterator[tuple[str, object]]:
        """Yield (kind, message) for the messages of a conversation with text and a known sender."""
        conversation = object_in(value)
        begun = conversation.get("created_at")
        for message in conversation["chat_messages"]:
            role = CLAUDE_ROLES.get(text_in(message.get("sender")))
            said = [text_of(message.get("content")) or text_in(message.get("text"))]
            attached = [
                *(message.get("attachments") or ()),
                *(message.get("files") or ()),
            ]
            for file in attached:
                name = text_in(file.get("file_name")) or "a file"
                extract = text_in(file.get("extracted_content"))[:EXTRACT_CHARS_MAX]
                said.append(f"[{name}]\n{extract}".strip())
            text = "\n\n".join(filter(None, said))
            if role and text.strip():
                yield (
                    kind,
                    {
                        "conversation": conversation["uuid"],
                        "title": conversation.get("name"),
                        "text": text,
                        "id": message["uuid"],
                        "role": role,
                        "created_at": message.get("created_at") or begun,
                    },
                )
