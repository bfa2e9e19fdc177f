"""JSON with comments: members and elements set and removed, all other bytes kept."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from mnemosyned.setup.documents.errors import NotEditable
from mnemosyned.setup.documents.jsonc_tree import (
    BYTE_ORDER_MARK,
    COMMENT,
    Item,
    Value,
    read_tree,
)
from mnemosyned.setup.documents.paths import Json, Path, dotted, nested

DEFAULT_INDENT = "  "
ELEMENT_CHARS_MAX = 120
"""An element of a list up to this length is written on one line."""
_COMMENT = re.compile(COMMENT)


def read(text: str) -> Json:
    """The data of a text; an empty one holds an empty object. Raises `Unreadable`."""
    root = read_tree(text)
    return {} if root is None else root.data


def set_value(text: str, path: Path, value: Json) -> str:
    """The text with a value at a path, whose containers are made where they lack."""
    return _edited(text, path, value, append=False)


def append(text: str, path: Path, value: Json) -> str:
    """The text with an element at the end of the list at a path."""
    return _edited(text, path, value, append=True)


def remove(text: str, path: Path) -> str:
    """The text without the value at a path, which must exist."""
    root = read_tree(text)
    if root is None:
        raise NotEditable("it is empty")
    container, depth = _deepest(root, path[:-1])
    index = _index(container, path[-1])
    if depth < len(path) - 1 or index is None:
        raise NotEditable(f"it has no {dotted(path)}")
    return _without(text, container, index)


def _edited(text: str, path: Path, value: Json, *, append: bool) -> str:
    root = read_tree(text)
    if root is None:
        return _first_value(text, nested(path, [value] if append else value))
    container, depth = _deepest(root, path)
    missing = path[depth:]
    if not missing:
        if append:
            return _Layout.of(text, root).insert(container, None, value)
        return _Layout.of(text, root).replace(container, value)
    if not isinstance(container.data, dict):
        where = dotted(path[:depth]) or "it"
        raise NotEditable(f"{where} is not an object")
    content = nested(missing[1:], [value] if append else value)
    return _Layout.of(text, root).insert(container, str(missing[0]), content)


def _first_value(text: str, value: Json) -> str:
    newline = _newline(text)
    before = text
    if before.strip(BYTE_ORDER_MARK) and not before.endswith("\n"):
        before += newline
    shown = _in_lines(value, "\n", DEFAULT_INDENT)
    return before + shown.replace("\n", newline) + newline


def _deepest(root: Value, path: Path) -> tuple[Value, int]:
    """The last value of a path that exists, and how many steps lead to it."""
    value = root
    for depth, step in enumerate(path):
        index = _index(value, step)
        if index is None:
            return value, depth
        value = value.items[index].value
    return value, len(path)


def _index(container: Value, step: str | int) -> int | None:
    if step in container.duplicates:
        raise NotEditable(f'it has "{step}" twice')
    if isinstance(container.data, list):
        is_element = isinstance(step, int) and step < len(container.items)
        return int(step) if is_element else None
    keys = [item.key for item in container.items]
    return keys.index(str(step)) if step in keys else None


@dataclass(frozen=True, slots=True)
class _Layout:
    """How a text is laid out, and edits that follow it."""

    text: str
    newline: str
    unit: str
    one_line: bool

    @classmethod
    def of(cls, text: str, root: Value) -> _Layout:
        unit = DEFAULT_INDENT
        if root.items and (indent := _indent_before(text, root.items[0].start)):
            unit = indent
        one_line = bool(root.items) and "\n" not in text[root.start : root.end]
        return cls(text=text, newline=_newline(text), unit=unit, one_line=one_line)

    def replace(self, old: Value, value: Json) -> str:
        shown = self._shown(
            value,
            indent=_line_indent(self.text, old.start),
            one_line="\n" not in self.text[old.start : old.end],
        )
        return self.text[: old.start] + shown + self.text[old.end :]

    def insert(self, container: Value, key: str | None, value: Json) -> str:
        if not container.items:
            return self._insert_first(container, key, value)
        last = container.items[-1]
        end = last.comma_end or last.value.end
        comment_end, own_line = _comments_end(self.text, end, container.end - 1)
        first = _indent_before(self.text, container.items[0].start)
        if first is None and not own_line:
            before, member = " ", self._member(key, value, indent="", one_line=True)
        else:
            indent = first or ""
            before = self.newline + indent
            member = self._member(key, value, indent=indent, one_line=False)
        comma, trailing = ("", ",") if last.comma_end else (",", "")
        return (
            self.text[:end]
            + comma
            + self.text[end:comment_end]
            + before
            + member
            + trailing
            + self.text[comment_end:]
        )

    def _insert_first(self, container: Value, key: str | None, value: Json) -> str:
        close = container.end - 1
        end, own_line = _comments_end(self.text, container.start + 1, close)
        if self.one_line and not own_line:
            member = self._member(key, value, indent="", one_line=True)
            return self.text[:end] + member + self.text[end:]
        outer = _line_indent(self.text, container.start)
        indent = outer + self.unit
        member = self._member(key, value, indent=indent, one_line=False)
        rest = self.newline + outer + self.text[close:]
        return self.text[:end] + self.newline + indent + member + rest

    def _member(
        self, key: str | None, value: Json, *, indent: str, one_line: bool
    ) -> str:
        if key is None and not one_line:
            return _element(value, self.newline + indent, self.unit)
        shown = self._shown(value, indent=indent, one_line=one_line)
        if key is None:
            return shown
        return f"{json.dumps(key, ensure_ascii=False)}: {shown}"

    def _shown(self, value: Json, *, indent: str, one_line: bool) -> str:
        if one_line:
            return json.dumps(value, ensure_ascii=False)
        return _in_lines(value, self.newline + indent, self.unit)


def _in_lines(value: Json, line_start: str, unit: str) -> str:
    """A value in JSON with a line for each member; a short element of a list has one line."""
    inner = line_start + unit
    if isinstance(value, dict) and value:
        members = [
            f"{json.dumps(key, ensure_ascii=False)}: {_in_lines(member, inner, unit)}"
            for key, member in value.items()
        ]
        return "{" + inner + f",{inner}".join(members) + line_start + "}"
    if isinstance(value, list) and any(map(_is_container, value)):
        members = [_element(member, inner, unit) for member in value]
        return "[" + inner + f",{inner}".join(members) + line_start + "]"
    return json.dumps(value, ensure_ascii=False)


def _is_container(value: Json) -> bool:
    return isinstance(value, dict | list)


def _element(value: Json, line_start: str, unit: str) -> str:
    short = json.dumps(value, ensure_ascii=False)
    if len(short) <= ELEMENT_CHARS_MAX:
        return short
    return _in_lines(value, line_start, unit)


def _without(text: str, container: Value, index: int) -> str:
    """The text without an item, and without the comma that only it needed."""
    item = container.items[index]
    previous: Item | None = container.items[index - 1] if index else None
    before_end = previous.comma_end if previous else container.start + 1
    start, own_line = _comments_end(text, before_end or 0, item.start)
    rest = text[_end_without(text, container, item, start) :]
    if own_line and not rest.lstrip(" \t").startswith(("\r", "\n")):
        rest = _newline(text) + rest
    if previous is None or item.comma_end is not None:
        return text[:start] + rest
    comma = (previous.comma_end or 0) - 1
    return text[:comma] + text[comma + 1 : start] + rest


def _end_without(text: str, container: Value, item: Item, start: int) -> int:
    """Where the text goes on after an item that is taken out; of the last one no blanks stay."""
    end = item.comma_end or item.value.end
    is_alone = len(container.items) == 1 and start == container.start + 1
    if is_alone and not text[end : container.end - 1].strip():
        return container.end - 1
    return end


def _comments_end(text: str, start: int, stop: int) -> tuple[int, bool]:
    """The end of the last comment between two values, and whether a line break must follow it."""
    end, own_line = start, False
    for comment in _COMMENT.finditer(text, start, stop):
        end, own_line = comment.end(), comment[0].startswith("//")
    return end, own_line


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _line_indent(text: str, position: int) -> str:
    """The blanks at the beginning of the line of a position."""
    start = text.rfind("\n", 0, position) + 1
    line = text[start:position]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _indent_before(text: str, position: int) -> str | None:
    """The blanks before a position; None where something else is before it on its line."""
    start = text.rfind("\n", 0, position) + 1
    blanks = text[start:position]
    return blanks if start and not blanks.strip(" \t") else None
