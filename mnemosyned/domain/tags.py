"""Names of tags: how they are written, and what they may be."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from mnemosyned.domain.errors import InvalidRequest

TAG_CHARS_MAX = 100
TAGS_MAX = 100
"""Tags of one memory."""
_HIDDEN_KINDS = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_JOINERS = "\u200c\u200d"
"""Characters without a shape of their own that words of some scripts, and emoji, need."""


def tag_name(given: str, *, field: str = "tags") -> str:
    """Return a tag as it is kept: in lower case, with single spaces, without a leading `#`.

    Raises `InvalidRequest`.
    """
    name = unicodedata.normalize("NFC", given.strip().removeprefix("#").lower())
    name = " ".join(name.split())
    if not name:
        raise InvalidRequest(f"{field}: a tag must not be empty", field=field)
    if "," in name:
        raise InvalidRequest(
            f"{field}: a tag must not contain a comma; a comma separates tags",
            field=field,
        )
    if any(map(_is_hidden, name)):
        raise InvalidRequest(
            f"{field}: a tag must not contain invisible characters", field=field
        )
    if len(name) > TAG_CHARS_MAX:
        raise InvalidRequest(
            f"{field}: a tag must have at most {TAG_CHARS_MAX} characters", field=field
        )
    return name


def tag_names(given: Iterable[str], *, field: str = "tags") -> tuple[str, ...]:
    """Return tags as they are kept, in order and each once. Raises `InvalidRequest`."""
    names = sorted({tag_name(name, field=field) for name in given})
    if len(names) > TAGS_MAX:
        raise InvalidRequest(
            f"{field}: a memory has at most {TAGS_MAX} tags", field=field
        )
    return tuple(names)


def _is_hidden(character: str) -> bool:
    return character not in _JOINERS and (
        unicodedata.category(character) in _HIDDEN_KINDS
    )
