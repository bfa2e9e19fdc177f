"""Configuration files in JSON, TOML and YAML edited as text, so that layout and comments stay."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any, TypeAlias

import yaml

from mnemosyned.agents.setup.files import FileRefused


class Unreadable(FileRefused):
    """The text is not in its format; the message says where."""


KeyPath = tuple[str | int, ...]
Json: TypeAlias = Any


def dotted_path(path: KeyPath) -> str:
    """Return the steps of a path joined by dots: "hooks.Stop.0"."""
    return ".".join(map(str, path))


def values_along(data: Json, path: KeyPath) -> list[Json]:
    """Return the parsed data, then the value after each step of a path, up to the first missing step."""
    values = [data]
    for step in path:
        if isinstance(values[-1], str):  # whose characters are no elements
            break
        try:
            values.append(values[-1][step])
        except (LookupError, TypeError):
            break
    return values


def value_at(data: Json, path: KeyPath) -> Json:
    """Return the value at a path in parsed data, or None if there is none."""
    values = values_along(data, path)
    return values[-1] if len(values) > len(path) else None


def with_value(data: Json, path: KeyPath, value: Json) -> Json:
    """Return a copy of parsed data with the value set at a path; missing objects are created."""
    copy = deepcopy(data)
    inner = copy
    for step in path[:-1]:
        if isinstance(inner, dict) and inner.get(step) is None:
            inner[step] = {}
        inner = inner[step]
    inner[path[-1]] = value
    return copy


def without_value(data: Json, path: KeyPath) -> Json:
    """Return a copy of parsed data without the value at a path, which must exist."""
    copy = deepcopy(data)
    inner = value_at(copy, path[:-1])
    del inner[path[-1]]
    return copy


# ------------------------------------------------------- JSON with comments

DEPTH_MAX = 100
BYTE_ORDER_MARK = "\ufeff"

COMMENT = r"//[^\r\n]*(?![^\r\n])|/\*[^*]*(?:\*(?!/)[^*]*)*\*/"
"""Matched as a whole or not at all: none ends earlier so that what follows can match."""
_BETWEEN = re.compile(rf"[ \t\r\n]*(?:(?:{COMMENT})[ \t\r\n]*)*")
_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"'
_BEYOND_JSON = re.compile(
    rf"{_STRING}|[\[{{]{_BETWEEN.pattern},"  # which stay, also the comma of "[,]"
    rf"|(?P<blank>^{BYTE_ORDER_MARK}|{COMMENT}|,(?={_BETWEEN.pattern}[}}\]]))",
)
_OPENING_OR_CLOSING = re.compile(rf"{_STRING}|([\[{{])|[\]}}]")


def _refuse_constant(name: str) -> None:
    """Raise `ValueError` for a number that JSON lacks, such as NaN."""
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


@dataclass(frozen=True, slots=True)
class JsonMember:
    """The range in the text of a member of an object, or of an element of a list."""

    key: str | None
    start: int
    value_start: int
    end: int
    comma_end: int | None
    """The end of the comma after it, if there is one."""


@dataclass(frozen=True, slots=True)
class JsonNode:
    """A value with its range in the text, and the members of an object or list."""

    start: int
    end: int
    data: Json
    members: list[JsonMember]


class JsonText:
    """A text of JSON with comments and trailing commas, and its values by their place."""

    def __init__(self, text: str) -> None:
        """Read the text. Raises `Unreadable` with the place of a mistake."""
        self.text = text
        self._plain = _BEYOND_JSON.sub(_blank_out, text)
        """Plain JSON with each value at the same place."""
        depth = 0
        for bracket in _OPENING_OR_CLOSING.finditer(self._plain):
            if bracket[0][0] != '"':
                depth += 1 if bracket[1] else -1
            if depth > DEPTH_MAX:
                raise Unreadable(f"it is nested in more than {DEPTH_MAX} levels")
        self.data: Json = {}
        self.root: JsonNode | None = None
        """The outermost value; None for comments alone."""
        if not self._plain.strip():
            return
        try:
            self.data = _DECODER.decode(self._plain)
        except json.JSONDecodeError as error:
            place = f"line {error.lineno}, column {error.colno}"
            words = error.msg[:1].lower() + error.msg[1:]
            raise Unreadable(f"{place}: {words}") from error
        except ValueError as error:
            raise Unreadable(str(error)) from error
        is_marked = text.startswith(BYTE_ORDER_MARK)
        self.root = self.node_at(self._skip_blanks(int(is_marked)))

    def node_at(self, start: int) -> JsonNode:
        """Return the node of the value that begins at a position of the text."""
        data, end = _DECODER.raw_decode(self._plain, start)
        members: list[JsonMember] = []
        position = self._skip_blanks(start + 1)
        while isinstance(data, dict | list) and position < end - 1:
            begin, key = position, None
            if isinstance(data, dict):
                key, colon = _DECODER.raw_decode(self._plain, begin)
                position = self._skip_blanks(self._skip_blanks(colon) + 1)
            _, value_end = _DECODER.raw_decode(self._plain, position)
            comma = self._skip_blanks(value_end)
            has_comma = self.text[comma] == ","
            comma_end = comma + 1 if has_comma else None
            members.append(JsonMember(key, begin, position, value_end, comma_end))
            position = self._skip_blanks(comma + has_comma)
        return JsonNode(start, end, data, members)

    def _skip_blanks(self, position: int) -> int:
        """Return the position of the next character after blanks and comments."""
        match = _BETWEEN.match(self.text, position)
        return match.end() if match else position


def _blank_out(match: re.Match[str]) -> str:
    """Return blanks for a match of a comment or a surplus comma, and the match itself for anything else."""
    return re.sub(r"[^\r\n]", " ", match[0]) if match["blank"] else match[0]


_JSON_INDENT = "  "
ELEMENT_CHARS_MAX = 120
"""An element of a list up to this length is written on one line."""
_COMMENT = re.compile(COMMENT)


def read_jsonc(text: str) -> Json:
    """Return the data of JSON with comments; an empty text gives {}. Raises `Unreadable`."""
    return JsonText(text).data


def set_in_jsonc(text: str, path: KeyPath, value: Json, *, append: bool = False) -> str:
    """Return a text of JSON with comments with the value set at, or appended to, a path.

    Missing objects and lists are created. Raises `FileRefused`.
    """
    document = JsonText(text)
    root, newline = document.root, _line_end(text)
    if root is None:  # an empty file, or comments alone
        if text.strip(BYTE_ORDER_MARK) and not text.endswith("\n"):
            text += newline
        content = _wrap_in_objects(path, [value] if append else value)
        return text + _format_json(content, newline, _JSON_INDENT) + newline
    unit = _indent_before(text, root.members[0].start) if root.members else None
    unit = unit or _JSON_INDENT
    node, depth = _find_deepest_node(document, root, path)
    missing = path[depth:]
    if missing:
        if not isinstance(node.data, dict):
            raise FileRefused(f"{dotted_path(path[:depth]) or 'it'} is not an object")
        value = _wrap_in_objects(missing[1:], [value] if append else value)
        return _insert_member(text, root, node, str(missing[0]), value, unit=unit)
    if append:
        return _insert_member(text, root, node, None, value, unit=unit)
    is_short = "\n" not in text[node.start : node.end]
    start = None if is_short else newline + _line_indent(text, node.start)
    return text[: node.start] + _format_json(value, start, unit) + text[node.end :]


def _wrap_in_objects(path: KeyPath, value: Json) -> Json:
    """Return nested objects with the value at this path: {"a": {"b": value}} for ("a", "b")."""
    for step in reversed(path):
        value = {step: value}
    return value


def remove_from_jsonc(text: str, path: KeyPath) -> str:
    """Return a JSON text without the value at a path. Raises `FileRefused`."""
    document = JsonText(text)
    if document.root is None:
        raise FileRefused("it is empty")
    container, depth = _find_deepest_node(document, document.root, path[:-1])
    index = _find_member_index(container, path[-1])
    if depth < len(path) - 1 or index is None:
        raise FileRefused(f"it has no {dotted_path(path)}")
    return _remove_member(text, container, index)


def _find_deepest_node(
    document: JsonText, root: JsonNode, path: KeyPath
) -> tuple[JsonNode, int]:
    """Return the deepest existing node along a path and its depth in steps. Raises `FileRefused`."""
    node = root
    for depth, step in enumerate(path):
        index = _find_member_index(node, step)
        if index is None:
            return node, depth
        node = document.node_at(node.members[index].value_start)
    return node, len(path)


def _find_member_index(container: JsonNode, step: str | int) -> int | None:
    """Return the index of the member or element `step`; None if missing. Raises `FileRefused` if repeated."""
    if isinstance(container.data, list):
        is_element = isinstance(step, int) and step < len(container.members)
        return int(step) if is_element else None
    keys = [member.key for member in container.members]
    if keys.count(str(step)) > 1:  # programs differ on its value
        raise FileRefused(f'it has "{step}" twice')
    return keys.index(str(step)) if step in keys else None


def _insert_member(
    text: str,
    root: JsonNode,
    container: JsonNode,
    key: str | None,
    value: Json,
    *,
    unit: str,
) -> str:
    """Return the text with a new last member in an object, or in a list if `key` is None.

    The member is laid out like earlier members, or else like the document; `unit` is one indentation.
    """
    newline, stop = _line_end(text), container.end - 1
    last = container.members[-1] if container.members else None
    end = (last.comma_end or last.end) if last else container.start + 1
    comment_end, own_line = _find_end_of_comments(text, end, stop)
    comma, after = "", text[comment_end:]
    if last:
        indent = _indent_before(text, container.members[0].start)
        is_short = indent is None and not own_line
        start = None if is_short else newline + (indent or "")
        before = start or " "
        if last.comma_end:
            after = "," + after
        else:
            comma = ","
    else:
        is_short = bool(root.members) and "\n" not in text[root.start : root.end]
        outer = newline + _line_indent(text, container.start)
        start = None if is_short and not own_line else outer + unit
        before = start or ""
        after = outer + text[stop:] if start else after
    member = _format_json(value, start, unit, is_element=key is None)
    name = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
    return text[:end] + comma + text[end:comment_end] + before + name + member + after


def _format_json(
    value: Json, start: str | None, unit: str, *, is_element: bool = False
) -> str:
    """Return a value as JSON with one line per member, or on a single line if `start` is None.

    `start` is the line break and indentation before the closing bracket, `unit` one further indentation.
    A short list element takes a single line.
    """
    short = json.dumps(value, ensure_ascii=False)
    if start is None or (is_element and len(short) <= ELEMENT_CHARS_MAX):
        return short
    inner = start + unit
    if isinstance(value, dict) and value:
        members = [
            f"{json.dumps(key, ensure_ascii=False)}: {_format_json(member, inner, unit)}"
            for key, member in value.items()
        ]
    elif isinstance(value, list) and any(
        isinstance(each, dict | list) for each in value
    ):
        members = [_format_json(each, inner, unit, is_element=True) for each in value]
    else:
        return short
    return short[0] + inner + f",{inner}".join(members) + start + short[-1]


def _remove_member(text: str, container: JsonNode, index: int) -> str:
    """Return the text without a member of the container, and without the comma after or before it."""
    member = container.members[index]
    previous = container.members[index - 1] if index else None
    before_end = previous.comma_end if previous else container.start + 1
    start, own_line = _find_end_of_comments(text, before_end or 0, member.start)
    end, close = member.comma_end or member.end, container.end - 1
    is_alone = len(container.members) == 1 and start == container.start + 1
    if is_alone and not text[end:close].strip():
        end = close
    rest = text[end:]
    if own_line and not rest.lstrip(" \t").startswith(("\r", "\n")):
        rest = _line_end(text) + rest
    if previous is None or member.comma_end is not None:
        return text[:start] + rest
    comma = (previous.comma_end or 0) - 1
    return text[:comma] + text[comma + 1 : start] + rest


def _find_end_of_comments(text: str, start: int, stop: int) -> tuple[int, bool]:
    """Return the end of the last comment in a range, or `start`; and whether that comment begins with `//`."""
    end, own_line = start, False
    for comment in _COMMENT.finditer(text, start, stop):
        end, own_line = comment.end(), comment[0].startswith("//")
    return end, own_line


def _line_end(text: str) -> str:
    """Return the line end of a text: CRLF if the text has any, else LF."""
    return "\r\n" if "\r\n" in text else "\n"


def _line_indent(text: str, position: int) -> str:
    """Return the blanks at the start of the line in which a position lies."""
    start = text.rfind("\n", 0, position) + 1
    line = text[start:position]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _indent_before(text: str, position: int) -> str | None:
    """Return the blanks before a position on its line; None if other text is there, or if it is line 1."""
    start = text.rfind("\n", 0, position) + 1
    blanks = text[start:position]
    return blanks if start and not blanks.strip(" \t") else None


# --------------------------------------------------------------------- TOML
#
# A table of its own at the end continues any TOML file, so that no line has to be moved.

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_HEADER = re.compile(r"[ \t]*\[")
_IDLE = re.compile(r"[ \t]*(?:#.*)?\r?\n?")


def read_toml(text: str) -> Json:
    """Return the data of a TOML text. Raises `Unreadable`."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Unreadable(str(error)) from error


def set_in_toml(text: str, path: KeyPath, value: Json) -> str:
    """Return a TOML text with a table set in place or appended. Raises `FileRefused`."""
    newline = _line_end(text)
    table = newline.join(_format_toml_table(path, value)) + newline
    if value_at(read_toml(text), path) is not None:
        start, end = _find_table_range(text, path)
        return text[:start] + table + text[end:]
    if text and not text.endswith("\n"):
        text += newline
    return text + (newline if text.strip() else "") + table


def remove_from_toml(text: str, path: KeyPath) -> str:
    """Return a TOML text without a table and the blank line before. Raises `FileRefused`."""
    start, end = _find_table_range(text, path)
    lines = text[:start].splitlines(keepends=True)
    if lines and not lines[-1].strip():
        lines.pop()
    return "".join(lines) + text[end:]


def _format_toml_table(path: KeyPath, value: Json) -> list[str]:
    """Return the TOML lines of a table and its subtables. Raises `FileRefused`."""
    if not isinstance(value, dict):
        raise FileRefused(f"{dotted_path(path)} is not a table")
    head = ".".join(map(_quote_toml_key, path))
    pairs = {key: part for key, part in value.items() if not isinstance(part, dict)}
    lines = [f"[{head}]"]
    for key, part in pairs.items():  # strings and lists of JSON are also TOML
        lines.append(f"{_quote_toml_key(key)} = {json.dumps(part, ensure_ascii=False)}")
    for key, part in value.items():
        if key not in pairs:
            lines += ["", *_format_toml_table((*path, key), part)]
    return lines


def _quote_toml_key(key: str | int) -> str:
    """Return a key as TOML writes it: bare if possible, else in quotes."""
    return str(key) if _BARE.fullmatch(str(key)) else json.dumps(str(key))


def _find_table_range(text: str, path: KeyPath) -> tuple[int, int]:
    """Return start and end of a table with its subtables in a text.

    Raises `FileRefused` unless the table has its own heading, directly followed by its subtables.
    """
    dot = r"[ \t]*\.[ \t]*"
    keys = dot.join(rf"""(?:{key}|"{key}"|'{key}')""" for key in map(str, path))
    own_header = re.compile(rf"[ \t]*\[[ \t]*{keys}[ \t]*[.\]]")
    lines = text.splitlines(keepends=True)
    headers = [n for n, line in enumerate(lines) if _HEADER.match(line)]
    own = [n for n in headers if own_header.match(lines[n])]
    if not own or own != headers[headers.index(own[0]) :][: len(own)]:
        raise FileRefused(
            f"{dotted_path(path)} is not a table with a heading of its own"
        )
    last = next((n for n in headers if n > own[-1]), len(lines)) - 1
    while last > own[-1] and _IDLE.fullmatch(lines[last]):
        last -= 1
    return len("".join(lines[: own[0]])), len("".join(lines[: last + 1]))


# --------------------------------------------------------------------- YAML
#
# Places are those reported by the parser; an entry is written and removed as whole lines.

_YAML_INDENT = 2
_Pair = tuple[yaml.Node, yaml.Node]


def read_yaml(text: str) -> Json:
    """Return the data of a YAML text; an empty text gives {}. Raises `Unreadable`."""
    try:
        data = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as error:
        raise Unreadable(" ".join(str(error).split())) from error
    return {} if data is None else data


def set_in_yaml(text: str, path: KeyPath, value: Json) -> str:
    """Return a YAML text with the value at a path replaced, or else added as the last entry.

    `path` has one key, or two for an entry of a mapping under the root. Raises `FileRefused`.
    """
    *section, name = map(str, path)
    newline = _line_end(text)
    if text and not text.endswith("\n"):
        text += newline
    mapping = _parse_yaml_root(text)
    lines = text.splitlines(keepends=True)
    indent, after = 0, len(lines)
    if section:
        pair = _find_yaml_pair(mapping, section[0])
        if pair is None:
            entry = _format_yaml_entry(name, value, _YAML_INDENT, newline)
            return f"{text}{section[0]}:{newline}{entry}"
        key, mapping = pair
        indent, after = key.start_mark.column + _YAML_INDENT, key.start_mark.line + 1
        if not mapping.value or mapping.tag.endswith(":null"):
            # Such as `{}`, which entries follow now.
            if mapping.end_mark.line != key.start_mark.line:
                raise FileRefused(f"{key.value} has a value of an unusual form")
            line = lines[after - 1]
            rest = line[mapping.end_mark.column :]
            lines[after - 1] = line[: mapping.start_mark.column].rstrip() + rest
        elif not isinstance(mapping, yaml.MappingNode) or mapping.flow_style:
            raise FileRefused(f"{key.value} is not a block mapping")
    if present := _find_yaml_pair(mapping, name):
        node = present[1]
        if isinstance(value, dict) or getattr(node, "flow_style", None) is False:
            return set_in_yaml(remove_from_yaml(text, path), path, value)
        begin, end = node.start_mark.index, node.end_mark.index
        blank = " " if text[begin - 1] == ":" else ""
        return f"{text[:begin]}{blank}{_json_text(value)}{text[end:]}"
    if isinstance(mapping, yaml.MappingNode) and mapping.value:
        indent = mapping.value[0][0].start_mark.column
        after = _find_last_line(mapping.value[-1]) + 1
    lines.insert(after, _format_yaml_entry(name, value, indent, newline))
    return "".join(lines)


def remove_from_yaml(text: str, path: KeyPath) -> str:
    """Return a YAML text without an entry; an emptied mapping is left as `{}`.

    `path` has one or two keys. Raises `FileRefused`, also if there is no entry.
    """
    node: yaml.Node | None = _parse_yaml_root(text)
    pairs: list[_Pair] = []
    for step in path:
        pair = _find_yaml_pair(node, str(step))
        if pair is None:
            raise FileRefused(f"it has no {dotted_path(path)}")
        pairs.append(pair)
        node = pair[1]
    lines = text.splitlines(keepends=True)
    del lines[pairs[-1][0].start_mark.line : _find_last_line(pairs[-1]) + 1]
    if len(pairs) > 1 and len(pairs[-2][1].value) == 1:
        line = pairs[-2][0].start_mark.line
        column = pairs[-2][0].end_mark.column + 1
        lines[line] = f"{lines[line][:column]} {{}}{lines[line][column:]}"
    return "".join(lines)


def _parse_yaml_root(text: str) -> yaml.Node | None:
    """Return the root mapping's node; None if empty. Raises `FileRefused`."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise Unreadable(" ".join(str(error).split())) from error
    if root is not None and (not isinstance(root, yaml.MappingNode) or root.flow_style):
        raise FileRefused("it is not a block mapping")
    return root


def _find_yaml_pair(node: yaml.Node | None, key: str) -> _Pair | None:
    """Return a mapping's nodes for a key and its value, or None. Raises `FileRefused` for a repeated key."""
    if not isinstance(node, yaml.MappingNode):
        return None
    pairs = [pair for pair in node.value if pair[0].value == key]
    if len(pairs) > 1:
        raise FileRefused(f'it has "{key}" twice')
    return pairs[0] if pairs else None


def _find_last_line(pair: _Pair) -> int:
    """Return the index of the last line of a YAML entry, a pair of nodes."""
    node = pair[1]
    while isinstance(node, yaml.CollectionNode) and node.value and not node.flow_style:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    ended_by_next_line = node.end_mark.column == 0
    line: int = node.end_mark.line - ended_by_next_line
    return max(line, pair[0].start_mark.line)


def _format_yaml_entry(name: str, value: Json, indent: int, newline: str) -> str:
    """Return the indented YAML lines of an entry; the value, or each member of an object, is JSON."""
    lines = [f"{name}:"]
    if isinstance(value, dict):
        lines += [
            f"{' ' * _YAML_INDENT}{key}: {_json_text(part)}"
            for key, part in value.items()
        ]
    else:
        lines[0] += f" {_json_text(value)}"
    return "".join(f"{' ' * indent}{line}{newline}" for line in lines)


def _json_text(value: Json) -> str:
    """Return a value as JSON on one line, which YAML takes too."""
    return json.dumps(value, ensure_ascii=False)


# ----------------------------------------------------------------- any format


_JSONC = (read_jsonc, set_in_jsonc, remove_from_jsonc)
_YAML = (read_yaml, set_in_yaml, remove_from_yaml)
_FORMATS: dict[str, tuple[Callable[..., Json], ...]] = {
    ".json": _JSONC,
    ".jsonc": _JSONC,
    ".toml": (read_toml, set_in_toml, remove_from_toml),
    ".yaml": _YAML,
    ".yml": _YAML,
}
"""The functions that read, set and remove a value, by the suffix of a file."""


class Document:
    """The text of a configuration file and its data."""

    def __init__(self, file: File, text: str) -> None:
        """Read a text by the file's suffix. Raises `FileRefused`, also if it contains no object."""
        self._read, self._set, self._remove = _FORMATS[file.suffix]
        self.text = text
        self.data: Json = self._read_data(text)
        if not isinstance(self.data, dict):
            raise FileRefused("it does not contain an object")

    def _read_data(self, text: str) -> Json:
        """Return the data of a text in the document's format. Raises `Unreadable`."""
        try:
            return self._read(text)
        except RecursionError as error:
            raise Unreadable("it is nested too deeply") from error

    def set_value(self, path: KeyPath, value: Json) -> None:
        """Set the value at a path, in the text and in the data. Raises `FileRefused`."""
        self._apply_edit(path, self._set, with_value, value)

    def append(self, path: KeyPath, value: Json) -> None:
        """Append a value to the list at a path, in a JSON document. Raises `FileRefused`."""
        elements = [*(value_at(self.data, path) or []), value]
        self._apply_edit(
            path,
            lambda text, path: set_in_jsonc(text, path, value, append=True),
            lambda data, path: with_value(data, path, elements),
        )

    def remove(self, path: KeyPath) -> None:
        """Remove the value at a path, and TOML tables that this leaves empty. Raises `FileRefused`."""
        self._apply_edit(path, self._remove, without_value)

    def _apply_edit(
        self,
        path: KeyPath,
        edit: Callable[..., str],
        model: Callable[..., Json],
        *value: Json,
    ) -> None:
        """Set the text to the result of `edit`, and the data to what that text says.

        Raises `FileRefused` if `model`, which makes the same change to data, gives other data.
        """
        try:
            expected = model(self.data, path, *value)
            text = edit(self.text, path, *value)
            data = self._read_data(text)
        except (LookupError, TypeError, RecursionError, Unreadable) as error:
            raise FileRefused(
                f"{dotted_path(path)} has an unusual form there"
            ) from error
        # An object that the edit emptied may be gone too, and so may those above it.
        pruned = expected
        for length in range(len(path) - 1, 0, -1):
            if value_at(pruned, path[:length]) == {}:
                pruned = without_value(pruned, path[:length])
        if data not in (expected, pruned):
            raise FileRefused(
                f"{dotted_path(path)} cannot be changed without touching more"
            )
        self.text, self.data = text, data
