"""Memories made of records, with names and text that the daemon takes."""

from __future__ import annotations

from typing import Any

import msgspec

from mnemosyned.domain.errors import InvalidRequest
from mnemosyned.domain.memory import DEFAULT_SESSION
from mnemosyned.domain.tags import tag_name
from mnemosyned.verbs.memories import Remember
from mnemosyned.verbs.request import TEXT_MAX

TAGS_MAX = 50
"""Tags kept of one record."""


def sendable(memory: Remember) -> Remember:
    """The memory with text, names and metadata that the daemon takes.

    Names are cut to their limit, and empty metadata is left out.
    """
    metadata = {key: value for key, value in memory.metadata.items() if value}
    return msgspec.structs.replace(
        memory,
        content=clean_text(memory.content),
        session=clean_name(memory.session) or DEFAULT_SESSION,
        source=clean_name(memory.source or "") or None,
        role=clean_name(memory.role),
        metadata=_as_json(metadata),
        tags=tags_in(memory.tags),
    )


def _as_json(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return metadata that can be sent: where a value cannot be written as JSON, all as words."""
    try:
        msgspec.json.encode(metadata)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return {
            clean_name(str(key)): clean_name(repr(metadata[key])) for key in metadata
        }
    return metadata


def clean_text(text: str) -> str:
    """Return text without NUL and without halves of characters."""
    if text.isascii():
        return text.replace("\0", "").strip()
    return text.replace("\0", "").encode("utf-8", "replace").decode().strip()


def clean_name(name: str) -> str:
    """Return a name on one line within the limit."""
    return " ".join(clean_text(name).split())[:TEXT_MAX].strip()


def text_in(value: object) -> str:
    """Return text; empty where the value is none."""
    return value if isinstance(value, str) else ""


def tags_in(value: object) -> list[str]:
    """Return tags that are a list, or words in a text with commas or spaces between them."""
    if isinstance(value, str):
        value = value.split(",") if "," in value else value.split()
    if not isinstance(value, list):
        return []
    tags: dict[str, None] = {}
    for text in map(str, filter(None, value)):
        try:
            tags[tag_name(clean_name(text).lstrip("#"))] = None
        except InvalidRequest:
            continue
    return list(tags)[:TAGS_MAX]
