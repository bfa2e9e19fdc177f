"""Memories made of records, with names and text that the daemon takes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from mnemosyned.domain.errors import InvalidRequest
from mnemosyned.domain.tags import tag_name
from mnemosyned.verbs.memories import Remember
from mnemosyned.verbs.request import TEXT_MAX

TAGS_MAX = 50
"""Tags kept of one record."""


def memory(
    content: str,
    *,
    id: str,
    session: str,
    source: str,
    role: str = "",
    created_at: datetime | None = None,
    metadata: Mapping[str, Any] | None = None,
    tags: object = None,
    importance: float = 0.5,
) -> Remember:
    """Make a memory; empty metadata is left out, and names are cut to their limit.

    `tags` are a list, or words in a text.
    """
    kept = _sendable({key: value for key, value in (metadata or {}).items() if value})
    return Remember(
        clean_text(content),
        id=id,
        session=clean_name(session) or "default",
        source=clean_name(source) or None,
        role=clean_name(role),
        created_at=created_at,
        metadata=kept,
        tags=tags_in(tags),
        importance=importance,
    )


def _sendable(metadata: dict[str, Any]) -> dict[str, Any]:
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
