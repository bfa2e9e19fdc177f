"""Messages in the conversations that ChatGPT and Claude export."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from mnemosyned.importers.formats.memory_stores import StoreFormat, list_in, object_in
from mnemosyned.importers.importer import text_in
from mnemosyned.importers.transcripts import text_of

Json = Mapping[str, Any]
CHATGPT_ROLES = frozenset({"user", "assistant"})
CHATGPT_HIDDEN_MARKS = (
    "is_visually_hidden_from_conversation",
    "is_user_system_message",
)
CHATGPT_TEXT_KINDS = frozenset({"text", "multimodal_text"})
"""Kinds of content of a message; other kinds are a tool's, a plan, or instructions."""
_MARK = re.compile(
    "([ \t]*)(?:\ue200(\\w+)\ue202?([^\ue200\ue201]*)\ue201|【[\\d:]+†[^】\\n]{0,99}】)"
)
"""A mark in ChatGPT's answers: a citation, a widget, or words that are shown as a link."""


class ChatGptExport(StoreFormat):
    """`conversations.json` of ChatGPT's data export, alone or in its archive."""

    def split_rows(self, kind: str, value: object) -> Iterator[tuple[str, object]]:
        """Yield (kind, message) for the visible messages on the shown branch of a conversation."""
        conversation = object_in(value)
        mapping = conversation["mapping"]
        ids = (conversation.get("conversation_id"), conversation.get("id"), *mapping)
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
                        "conversation": next(filter(None, ids)),
                        "title": conversation.get("title"),
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
    marks = map((message.get("metadata") or {}).get, CHATGPT_HIDDEN_MARKS)
    is_hidden = any(marks) or message.get("weight") == 0
    is_to_all = message.get("recipient") in (None, "all")
    is_text = content.get("content_type") in CHATGPT_TEXT_KINDS
    return is_text and is_to_all and not is_hidden


def _read_part_text(part: Any) -> str:  # noqa: ANN401 any JSON
    """Return the text of a part of a ChatGPT message: its words, or "[image]"; else empty."""
    if isinstance(part, str):
        return _MARK.sub(_read_mark, part)
    fields = object_in(part)
    is_image = fields.get("content_type") == "image_asset_pointer"
    return text_in(fields.get("text")) or "[image]" * is_image


def _read_mark(mark: re.Match[str]) -> str:
    """Return the words that a mark in ChatGPT's text is shown with, such as a name; empty for a citation."""
    blanks, kind, values = mark.groups("")
    shown, _, target = values.partition("\ue202")
    if kind == "entity":
        shown = "".join(map(str, list_in(values)[:2][-1:]))
    elif kind == "url" and "://" in target:
        shown = f"[{shown}]({target})"
    elif kind not in ("url", "link_title"):
        return ""
    return blanks + shown


CLAUDE_ROLES: Mapping[str, str] = {"human": "user", "assistant": "assistant"}
EXTRACT_CHARS_MAX = 20_000
"""Characters kept of a file that was pasted into a message."""
_NOT_SAID = re.compile(
    r"<antThinking>.*?</antThinking>"
    r"|```\s*This block is not supported on your current device yet\.\s*```",
    re.DOTALL,
)
"""A thought, or what older exports have in place of a tool call."""


class ClaudeExport(StoreFormat):
    """`conversations.json` of Claude's data export, alone or in its archive."""

    def split_rows(self, kind: str, value: object) -> Iterator[tuple[str, object]]:
        """Yield (kind, message) for the messages of a conversation with text and a known sender."""
        conversation = object_in(value)
        begun = conversation.get("created_at")
        for message in conversation["chat_messages"]:
            role = CLAUDE_ROLES.get(text_in(message.get("sender")))
            words = text_of(message.get("content") or message.get("text"))
            said = [_NOT_SAID.sub("", words).strip()]
            lists = map(message.get, ("attachments", "files"))
            for file in chain.from_iterable(filter(None, lists)):
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
