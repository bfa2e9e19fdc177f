"""JSON with comments and trailing commas, read with the position of every value."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from mnemosyned.setup.documents.errors import Unreadable

DEPTH_MAX = 100

COMMENT = r"//[^\r\n]*|/\*[\s\S]*?\*/"
_BETWEEN = re.compile(rf"[ \t\r\n]*(?:(?:{COMMENT})[ \t\r\n]*)*")
_STRING = re.compile(
    r'"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"',
)
_SCALAR = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
BYTE_ORDER_MARK = "\ufeff"


@dataclass(frozen=True, slots=True)
class Value:
    """A value and its place in the text; `items` are the members of an object or list."""

    start: int
    end: int
    data: Any
    items: tuple[Item, ...] = ()

    @property
    def container(self) -> bool:
        return isinstance(self.data, dict | list)

    @property
    def duplicates(self) -> set[str | None]:
        """The keys that occur more than once: of those, readers differ in which one counts."""
        seen = Counter(item.key for item in self.items if item.key is not None)
        return {key for key, times in seen.items() if times > 1}


@dataclass(frozen=True, slots=True)
class Item:
    """A member of an object or an element of a list, up to the comma after it."""

    key: str | None
    start: int
    value: Value
    comma_end: int | None


@dataclass(slots=True)
class _Reader:
    text: str
    position: int = 0
    depth: int = 0

    def fail(self, expected: str) -> Unreadable:
        before = self.text[: self.position]
        line = before.count("\n") + 1
        column = self.position - (before.rfind("\n") + 1) + 1
        return Unreadable(f"line {line}, column {column}: {expected} expected")

    def skip(self) -> None:
        match = _BETWEEN.match(self.text, self.position)
        self.position = match.end() if match else self.position

    def peek(self) -> str:
        self.skip()
        return self.text[self.position : self.position + 1]

    def value(self) -> Value:
        first = self.peek()
        start = self.position
        if first in ("{", "["):
            return self._container(closing="}" if first == "{" else "]")
        data = self._string() if first == '"' else self._scalar()
        return Value(start, self.position, data)

    def _container(self, *, closing: str) -> Value:
        start = self.position
        self.position += 1
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise self.fail(f"at most {DEPTH_MAX} levels of nesting")
        items: list[Item] = []
        open_ended = True
        while self.peek() != closing:
            if not open_ended:
                raise self.fail(f'"," or "{closing}"')
            items.append(self._item(named=closing == "}"))
            open_ended = items[-1].comma_end is not None
        self.position += 1
        self.depth -= 1
        values = [item.value.data for item in items]
        keys = [item.key for item in items]
        data = dict(zip(keys, values, strict=True)) if closing == "}" else values
        return Value(start, self.position, data, tuple(items))

    def _item(self, *, named: bool) -> Item:
        start, key = self.position, None
        if named:
            key = self._string()
            if self.peek() != ":":
                raise self.fail('":"')
            self.position += 1
        value = self.value()
        end = self.position
        if self.peek() != ",":
            self.position = end
            return Item(key, start, value, None)
        self.position += 1
        return Item(key, start, value, self.position)

    def _string(self) -> str:
        match = _STRING.match(self.text, self.position)
        if match is None:
            raise self.fail("a string")
        self.position = match.end()
        text: str = json.loads(match[0])
        return text

    def _scalar(self) -> Any:  # noqa: ANN401 any JSON
        match = _SCALAR.match(self.text, self.position)
        if match is None:
            raise self.fail("a value")
        self.position = match.end()
        return json.loads(match[0])


def read_tree(text: str) -> Value | None:
    """The root value of a text; None if it holds none. Raises `Unreadable`."""
    reader = _Reader(text, position=int(text.startswith(BYTE_ORDER_MARK)))
    if not reader.peek():
        return None
    root = reader.value()
    if reader.peek():
        raise reader.fail("the end")
    return root
