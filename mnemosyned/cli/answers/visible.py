"""Results with every string in them as a person may see it: nothing steers a terminal."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, TypeVar

import msgspec

from mnemosyned.domain.text.invisible import escape_invisible

T = TypeVar("T")

DEPTH_MAX = 50
"""Values nested deeper are shown as JSON."""
TEXTS = frozenset({"content", "snippet", "text", "system"})
"""Fields that may have several lines; names, ids and the like have one."""


def seen(value: T) -> T:
    """A result with every string in it as a person may see it, names and ids on one line."""
    clean: T = _seen(value, "", 0)
    return clean


def _seen(value: Any, name: str, depth: int) -> Any:  # noqa: ANN401 any part of a result
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        return escape_invisible(value, one_line=name not in TEXTS)
    if isinstance(value, Mapping | list | tuple):
        return _seen_members(value, name, depth)
    if isinstance(value, msgspec.Struct):
        changed = _changed(value, value.__struct_fields__, depth)
        return msgspec.structs.replace(value, **changed)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return dataclasses.replace(value, **_changed(value, names, depth))
    return value


def _seen_members(value: Any, name: str, depth: int) -> Any:  # noqa: ANN401
    if depth > DEPTH_MAX:
        return escape_invisible(msgspec.json.encode(value).decode())
    if isinstance(value, Mapping):
        return {
            _seen(key, "", depth): _seen(member, str(key), depth + 1)
            for key, member in value.items()
        }
    return type(value)([_seen(member, name, depth + 1) for member in value])


def _changed(value: object, names: Iterable[str], depth: int) -> dict[str, Any]:
    """The fields of a value that look otherwise to a person."""
    changed: dict[str, Any] = {}
    for name in names:
        member = getattr(value, name)
        clean = _seen(member, name, depth + 1)
        if clean is not member:
            changed[name] = clean
    return changed
