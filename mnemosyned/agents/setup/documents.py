"""Configuration files in JSON, TOML and YAML edited as text, so that layout and comments stay."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any, TypeAlias

import yaml


class Unreadable(Exception):
    """The text is not in its format; the message says where."""


class NotEditable(Exception):
    """The text has a form in which our part cannot be written safely."""


KeyPath = tuple[str | int, ...]
Json: TypeAlias = Any


def dotted(path: KeyPath) -> str:
    """A path as people write it."""
    return ".".join(map(str, path))


def nested(path: KeyPath, value: Json) -> Json:
    """The value within an object for each step of the path."""
    for step in reversed(path):
        value = {step: value}
    return value


def value_at(data: Json, path: KeyPath) -> Json:
    """The value at a path; None where there is none."""
    for step in path:
        if isinstance(data, Mapping):
            data = data.get(step)
        elif _is_index(data, step):
            data = data[step]
        else:
            return None
    return data


def steps_present(data: Json, path: KeyPath) -> int:
    """How many steps of a path exist."""
    for count, step in enumerate(path):
        present = step in data if isinstance(data, Mapping) else _is_index(data, step)
        if not present:
            return count
        data = data[step]
    return len(path)


def _is_index(data: Json, step: str | int) -> bool:
    return (
        isinstance(data, Sequence)
        and not isinstance(data, str)
        and isinstance(step, int)
        and step < len(data)
    )


def with_value(data: Json, path: KeyPath, value: Json) -> Json:
    """A copy of the data with a value at a path, whose objects are made where they lack."""
    copy = deepcopy(data)
    inner = copy
    for step in path[:-1]:
        if isinstance(inner, dict) and inner.get(step) is None:
            inner[step] = {}
        inner = inner[step]
    inner[path[-1]] = value
    return copy


def with_element(data: Json, path: KeyPath, value: Json) -> Json:
    """A copy of the data with an element at the end of the list at a path."""
    elements = value_at(data, path) or []
    return with_value(data, path, [*elements, value])


def without(data: Json, path: KeyPath) -> Json:
    """A copy of the data without the value at a path."""
    copy = deepcopy(data)
    inner = value_at(copy, path[:-1])
    del inner[path[-1]]
    return copy


def pruned(data: Json, path: KeyPath) -> Json:
    """A copy of the data without the empty objects on the way to a path."""
    for length in range(len(path), 0, -1):
        if value_at(data, path[:length]) == {}:
            data = without(data, path[:length])
    return data


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
    items: tuple[JsonMember, ...] = ()

    @property
    def container(self) -> bool:
        return isinstance(self.data, dict | list)

    @property
    def duplicates(self) -> set[str | None]:
        """The keys that occur more than once: of those, readers differ in which one counts."""
        seen = Counter(item.key for item in self.items if item.key is not None)
        return {key for key, times in seen.items() if times > 1}


@dataclass(frozen=True, slots=True)
class JsonMember:
    """A member of an object or an element of a list, up to the comma after it."""

    key: str | None
    start: int
    value: Value
    comma_end: int | None


@dataclass(slots=True)
class _JsonReader:
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
        items: list[JsonMember] = []
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

    def _item(self, *, named: bool) -> JsonMember:
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
            return JsonMember(key, start, value, None)
        self.position += 1
        return JsonMember(key, start, value, self.position)

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
    reader = _JsonReader(text, position=int(text.startswith(BYTE_ORDER_MARK)))
    if not reader.peek():
        return None
    root = reader.value()
    if reader.peek():
        raise reader.fail("the end")
    return root


_JSON_INDENT = "  "
ELEMENT_CHARS_MAX = 120
"""An element of a list up to this length is written on one line."""
_COMMENT = re.compile(COMMENT)


def read_jsonc(text: str) -> Json:
    """The data of a text; an empty one holds an empty object. Raises `Unreadable`."""
    root = read_tree(text)
    return {} if root is None else root.data


def set_in_jsonc(text: str, path: KeyPath, value: Json) -> str:
    """The text with a value at a path, whose containers are made where they lack."""
    return _edited(text, path, value, append=False)


def append(text: str, path: KeyPath, value: Json) -> str:
    """The text with an element at the end of the list at a path."""
    return _edited(text, path, value, append=True)


def remove_from_jsonc(text: str, path: KeyPath) -> str:
    """The text without the value at a path, which must exist."""
    root = read_tree(text)
    if root is None:
        raise NotEditable("it is empty")
    container, depth = _deepest(root, path[:-1])
    index = _index(container, path[-1])
    if depth < len(path) - 1 or index is None:
        raise NotEditable(f"it has no {dotted(path)}")
    return _without_member(text, container, index)


def _edited(text: str, path: KeyPath, value: Json, *, append: bool) -> str:
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
    shown = _in_lines(value, "\n", _JSON_INDENT)
    return before + shown.replace("\n", newline) + newline


def _deepest(root: Value, path: KeyPath) -> tuple[Value, int]:
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
        unit = _JSON_INDENT
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


def _without_member(text: str, container: Value, index: int) -> str:
    """The text without an item, and without the comma that only it needed."""
    item = container.items[index]
    previous: JsonMember | None = container.items[index - 1] if index else None
    before_end = previous.comma_end if previous else container.start + 1
    start, own_line = _comments_end(text, before_end or 0, item.start)
    rest = text[_end_without(text, container, item, start) :]
    if own_line and not rest.lstrip(" \t").startswith(("\r", "\n")):
        rest = _newline(text) + rest
    if previous is None or item.comma_end is not None:
        return text[:start] + rest
    comma = (previous.comma_end or 0) - 1
    return text[:comma] + text[comma + 1 : start] + rest


def _end_without(text: str, container: Value, item: JsonMember, start: int) -> int:
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


_BARE = re.compile(r"[A-Za-z0-9_-]+")
_HEADER = re.compile(r"[ \t]*\[")
_IDLE = re.compile(r"[ \t]*(?:#.*)?\r?\n?")


def read_toml(text: str) -> Json:
    """The data of a text. Raises `Unreadable`."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Unreadable(str(error)) from error


def set_in_toml(text: str, path: KeyPath, value: Json) -> str:
    """The text with a table at a path: in the place of the old one, or at the end."""
    newline = "\r\n" if "\r\n" in text else "\n"
    table = newline.join(_table(path, value)) + newline
    if value_at(read_toml(text), path) is not None:
        start, end = _place(text, path)
        return text[:start] + table + text[end:]
    before = text
    if before and not before.endswith("\n"):
        before += newline
    gap = newline if before.strip() else ""
    return before + gap + table


def remove_from_toml(text: str, path: KeyPath) -> str:
    """The text without the table at a path, its own tables and the empty line before it."""
    start, end = _place(text, path)
    lines = text[:start].splitlines(keepends=True)
    if lines and not lines[-1].strip():
        lines.pop()
    return "".join(lines) + text[end:]


def _table(path: KeyPath, value: Json) -> list[str]:
    if not isinstance(value, dict):
        raise NotEditable(f"{dotted(path)} is not a table")
    head = ".".join(map(_key, path))
    pairs = {key: part for key, part in value.items() if not isinstance(part, dict)}
    lines = [f"[{head}]"]
    lines += [f"{_key(key)} = {_shown(part)}" for key, part in pairs.items()]
    for key, part in value.items():
        if key not in pairs:
            lines += ["", *_table((*path, key), part)]
    return lines


def _key(key: str | int) -> str:
    return str(key) if _BARE.fullmatch(str(key)) else json.dumps(str(key))


def _shown(value: Json) -> str:
    """A value; strings and lists of JSON are also TOML."""
    return json.dumps(value, ensure_ascii=False)


def _place(text: str, path: KeyPath) -> tuple[int, int]:
    """Return the range of the table at a path, with the tables within it."""
    lines = text.splitlines(keepends=True)
    headers = [n for n, line in enumerate(lines) if _HEADER.match(line)]
    own = [n for n in headers if _names(lines[n], path)]
    if not own or own != headers[headers.index(own[0]) :][: len(own)]:
        raise NotEditable(f"{dotted(path)} is not a table with a heading of its own")
    last = next((n for n in headers if n > own[-1]), len(lines)) - 1
    while last > own[-1] and _IDLE.fullmatch(lines[last]):
        last -= 1
    return len("".join(lines[: own[0]])), len("".join(lines[: last + 1]))


def _names(line: str, path: KeyPath) -> bool:
    """Whether a heading is that of the table at a path, or of one within it."""
    dot = r"[ \t]*\.[ \t]*"
    keys = dot.join(rf"""(?:{key}|"{key}"|'{key}')""" for key in map(str, path))
    return bool(re.match(rf"[ \t]*\[[ \t]*{keys}[ \t]*[.\]]", line))


_YAML_INDENT = 2
_Pair = tuple[yaml.Node, yaml.Node]


def read_yaml(text: str) -> Json:
    """The data of a text; an empty one holds an empty mapping. Raises `Unreadable`."""
    try:
        data = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as error:
        raise Unreadable(" ".join(str(error).split())) from error
    return {} if data is None else data


def set_in_yaml(text: str, path: KeyPath, value: Json) -> str:
    """The text with an entry at a path of two steps, as the last one of its mapping."""
    section, name = map(str, path)
    newline = "\r\n" if "\r\n" in text else "\n"
    pair = _pair(_root(text), section)
    if pair is None:
        before = text if not text or text.endswith("\n") else text + newline
        entry = _entry(name, value, _YAML_INDENT, newline)
        return before + f"{section}:" + newline + entry
    if _pair(pair[1], name) is not None:
        text = remove_from_yaml(text, path)
        return set_in_yaml(text, path, value)
    lines = text.splitlines(keepends=True)
    indent, after = _room(pair)
    if lines and after == len(lines) and not lines[-1].endswith("\n"):
        lines[-1] += newline
    if _is_empty(pair[1]):
        lines[after - 1] = _open_mapping(lines[after - 1], pair)
    lines.insert(after, _entry(name, value, indent, newline))
    return "".join(lines)


def remove_from_yaml(text: str, path: KeyPath) -> str:
    """The text without the entry at a path of one or two steps."""
    node: yaml.Node | None = _root(text)
    pairs: list[_Pair] = []
    for step in path:
        pair = _pair(node, str(step))
        if pair is None:
            raise NotEditable(f"it has no {dotted(path)}")
        pairs.append(pair)
        node = pair[1]
    lines = text.splitlines(keepends=True)
    del lines[pairs[-1][0].start_mark.line : _last_line(pairs[-1]) + 1]
    if len(pairs) > 1 and len(pairs[-2][1].value) == 1:
        line = pairs[-2][0].start_mark.line
        column = pairs[-2][0].end_mark.column + 1
        lines[line] = f"{lines[line][:column]} {{}}{lines[line][column:]}"
    return "".join(lines)


def _root(text: str) -> yaml.Node | None:
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise Unreadable(" ".join(str(error).split())) from error
    if root is not None and (not isinstance(root, yaml.MappingNode) or root.flow_style):
        raise NotEditable("it is not a block mapping")
    return root


def _pair(node: yaml.Node | None, key: str) -> _Pair | None:
    """The key and value of this name in a mapping. Raises `NotEditable` if there are two."""
    if not isinstance(node, yaml.MappingNode):
        return None
    pairs = [pair for pair in node.value if pair[0].value == key]
    if len(pairs) > 1:
        raise NotEditable(f'it has "{key}" twice')
    return pairs[0] if pairs else None


def _is_empty(node: yaml.Node) -> bool:
    return not node.value or (
        isinstance(node, yaml.ScalarNode) and node.tag.endswith(":null")
    )


def _room(pair: _Pair) -> tuple[int, int]:
    """The indentation of a new entry, and the number of lines before it."""
    key, mapping = pair
    if _is_empty(mapping):
        return key.start_mark.column + _YAML_INDENT, key.start_mark.line + 1
    if not isinstance(mapping, yaml.MappingNode) or mapping.flow_style:
        raise NotEditable(f"{key.value} is not a block mapping")
    return mapping.value[0][0].start_mark.column, _last_line(mapping.value[-1]) + 1


def _open_mapping(line: str, pair: _Pair) -> str:
    """The line of a key without its empty value, so that lines can follow it."""
    key, value = pair
    if value.end_mark.line != key.start_mark.line:
        raise NotEditable(f"{key.value} has a value of an unusual form")
    rest = line[value.end_mark.column :]
    return line[: value.start_mark.column].rstrip() + rest


def _last_line(pair: _Pair) -> int:
    """The last line of an entry."""
    node = pair[1]
    while isinstance(node, yaml.CollectionNode) and node.value and not node.flow_style:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    ended_by_next_line = node.end_mark.column == 0
    line: int = node.end_mark.line - ended_by_next_line
    return max(line, pair[0].start_mark.line)


def _entry(name: str, value: Json, indent: int, newline: str) -> str:
    """The lines of an entry; values in JSON are also YAML."""
    if not isinstance(value, dict):
        raise NotEditable(f"{name} is not a mapping")
    blanks = " " * indent
    lines = [f"{blanks}{name}:"]
    for key, part in value.items():
        shown = json.dumps(part, ensure_ascii=False)
        lines.append(f"{blanks}{' ' * _YAML_INDENT}{key}: {shown}")
    return newline.join(lines) + newline


@dataclass(frozen=True, slots=True)
class _Syntax:
    """How one file format is read and edited as text."""

    read: Callable[[str], Json]
    set_value: Callable[[str, KeyPath, Json], str]
    remove: Callable[[str, KeyPath], str]


_JSONC = _Syntax(read_jsonc, set_in_jsonc, remove_from_jsonc)
_YAML = _Syntax(read_yaml, set_in_yaml, remove_from_yaml)
_FORMATS = {
    ".json": _JSONC,
    ".jsonc": _JSONC,
    ".toml": _Syntax(read_toml, set_in_toml, remove_from_toml),
    ".yaml": _YAML,
    ".yml": _YAML,
}


class Document:
    """The text of a configuration file and its data."""

    def __init__(self, file: File, text: str) -> None:
        """Read a text in the format of its file's name. Raises `Unreadable`."""
        self._format = _FORMATS[file.suffix]
        self.text = text
        self.data: Json = self._read(text)
        if not isinstance(self.data, dict):
            raise NotEditable("it does not hold an object")

    def _read(self, text: str) -> Json:
        try:
            return self._format.read(text)
        except RecursionError as error:
            raise Unreadable("it is nested too deeply") from error

    def set_value(self, path: KeyPath, value: Json) -> None:
        """Set the value at a path."""
        self._change(path, self._format.set_value, with_value, value)

    def append(self, path: KeyPath, value: Json) -> None:
        """Add an element at the end of the list at a path, in JSON alone."""
        self._change(path, append, with_element, value)

    def remove(self, path: KeyPath) -> None:
        """Take out the value at a path; in TOML with objects that only it had filled."""
        self._change(path, self._format.remove, without)

    def _change(
        self,
        path: KeyPath,
        edit: Callable[..., str],
        model: Callable[..., Json],
        *value: Json,
    ) -> None:
        """Edit the text, if its data becomes exactly what was asked. Raises `NotEditable`."""
        try:
            expected = model(self.data, path, *value)
            text = edit(self.text, path, *value)
            data = self._read(text)
        except (LookupError, TypeError, RecursionError, Unreadable) as error:
            raise NotEditable(f"{dotted(path)} has an unusual form there") from error
        if data not in (expected, pruned(expected, path[:-1])):
            raise NotEditable(f"{dotted(path)} cannot be changed without touching more")
        self.text, self.data = text, data
