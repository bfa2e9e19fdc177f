"""YAML: an entry of a mapping at the top set and taken out as lines; all other lines stay.

The places are those the parser reports; what an edit makes of the data is compared with what was
asked, in `edits.py`.
"""

from __future__ import annotations

import json

import yaml

from mnemosyned.setup.documents.errors import NotEditable, Unreadable
from mnemosyned.setup.documents.paths import Json, Path, dotted

DEFAULT_INDENT = 2
_Pair = tuple[yaml.Node, yaml.Node]


def read(text: str) -> Json:
    """The data of a text; an empty one holds an empty mapping. Raises `Unreadable`."""
    try:
        data = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as error:
        raise Unreadable(" ".join(str(error).split())) from error
    return {} if data is None else data


def set_value(text: str, path: Path, value: Json) -> str:
    """The text with an entry at a path of two steps, as the last one of its mapping."""
    section, name = map(str, path)
    newline = "\r\n" if "\r\n" in text else "\n"
    pair = _pair(_root(text), section)
    if pair is None:
        before = text if not text or text.endswith("\n") else text + newline
        entry = _entry(name, value, DEFAULT_INDENT, newline)
        return before + f"{section}:" + newline + entry
    if _pair(pair[1], name) is not None:
        text = remove(text, path)
        return set_value(text, path, value)
    lines = text.splitlines(keepends=True)
    indent, after = _room(pair)
    if lines and after == len(lines) and not lines[-1].endswith("\n"):
        lines[-1] += newline
    if _is_empty(pair[1]):
        lines[after - 1] = _opened(lines[after - 1], pair)
    lines.insert(after, _entry(name, value, indent, newline))
    return "".join(lines)


def remove(text: str, path: Path) -> str:
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
        return key.start_mark.column + DEFAULT_INDENT, key.start_mark.line + 1
    if not isinstance(mapping, yaml.MappingNode) or mapping.flow_style:
        raise NotEditable(f"{key.value} is not a block mapping")
    return mapping.value[0][0].start_mark.column, _last_line(mapping.value[-1]) + 1


def _opened(line: str, pair: _Pair) -> str:
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
        lines.append(f"{blanks}{' ' * DEFAULT_INDENT}{key}: {shown}")
    return newline.join(lines) + newline
