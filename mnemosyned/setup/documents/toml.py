"""TOML: a table appended and taken out as text; anything else in the file stays as it is.

A TOML file may be continued by a table of its own at the end, so that no line has to be moved.
What a text edit makes of the data is compared with what was asked, in `edits.py`.
"""

from __future__ import annotations

import json
import re
import tomllib

from mnemosyned.setup.documents.errors import NotEditable, Unreadable
from mnemosyned.setup.documents.paths import Json, Path, dotted, value_at

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_HEADER = re.compile(r"[ \t]*\[")
_IDLE = re.compile(r"[ \t]*(?:#.*)?\r?\n?")


def read(text: str) -> Json:
    """The data of a text. Raises `Unreadable`."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Unreadable(str(error)) from error


def set_value(text: str, path: Path, value: Json) -> str:
    """The text with a table at a path: in the place of the old one, or at the end."""
    newline = "\r\n" if "\r\n" in text else "\n"
    table = newline.join(_table(path, value)) + newline
    if value_at(read(text), path) is not None:
        start, end = _place(text, path)
        return text[:start] + table + text[end:]
    before = text
    if before and not before.endswith("\n"):
        before += newline
    gap = newline if before.strip() else ""
    return before + gap + table


def remove(text: str, path: Path) -> str:
    """The text without the table at a path, its own tables and the empty line before it."""
    start, end = _place(text, path)
    lines = text[:start].splitlines(keepends=True)
    if lines and not lines[-1].strip():
        lines.pop()
    return "".join(lines) + text[end:]


def _table(path: Path, value: Json) -> list[str]:
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


def _place(text: str, path: Path) -> tuple[int, int]:
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


def _names(line: str, path: Path) -> bool:
    """Whether a heading is that of the table at a path, or of one within it."""
    dot = r"[ \t]*\.[ \t]*"
    keys = dot.join(rf"""(?:{key}|"{key}"|'{key}')""" for key in map(str, path))
    return bool(re.match(rf"[ \t]*\[[ \t]*{keys}[ \t]*[.\]]", line))
