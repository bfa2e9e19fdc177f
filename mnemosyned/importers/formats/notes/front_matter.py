"""The front matter of a note: fields in YAML between two lines of dashes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

CHARS_MAX = 64 * 1024
_BLOCK = re.compile(
    r"\A---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Note:
    """A note's fields and its text."""

    body: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    """By their names in lower case."""
    problem: str = ""
    """Why the front matter could not be read; the body then begins with it."""


class _LoaderWithoutAliases(yaml.SafeLoader):
    """A loader that refuses aliases, of which a few lines make gigabytes."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()  # type: ignore[no-untyped-call]
            raise yaml.constructor.ConstructorError(
                None, None, "aliases are not read", event.start_mark
            )
        return super().compose_node(parent, index)


def split_note(text: str) -> Note:
    """Part a note into fields and text."""
    text = text.replace("\r\n", "\n")
    block = _BLOCK.match(text[:CHARS_MAX])
    if block is None:
        return Note(text)
    try:
        fields = yaml.load(block[1], Loader=_LoaderWithoutAliases)  # noqa: S506 a SafeLoader
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problem = getattr(error, "problem", None) or str(error)
        return Note(text, problem=f"the front matter is not YAML: {problem}")
    if not isinstance(fields, dict):
        return Note(text[block.end() :])
    named = {str(key).strip().lower(): value for key, value in fields.items()}
    return Note(text[block.end() :], named)
