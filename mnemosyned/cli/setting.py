"""Write one setting into the user's file, leaving every other word of it as it is."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterable
from itertools import takewhile
from pathlib import Path

from mnemosyned.config import load_config
from mnemosyned.domain.errors import ConfigInvalid

Value = str | int | float | bool | None

VALUE = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s#"'][^#\n]*?)?"""
_IN_SECTION = re.compile(r"[ \t]|#|\r?\n")
_CHILD = re.compile(r"([ \t]+)[^\s#]")


def write_setting(file: Path, key: str, value: Value) -> None:
    """Set a setting by its dotted key, on its line where there is one; all or nothing.

    Raises `ConfigInvalid` where the file is not valid, or would not be.
    """
    file = file.resolve()
    before = ""
    if file.exists():
        load_config(file, environ={})
        with file.open(encoding="utf-8", newline="") as opened:
            before = opened.read()
    after = with_setting(before, key, value)
    if not _differs_only_there(before, after, key, value):
        raise ConfigInvalid(
            f"{file}: its form is not one that can be edited here; set {key} to "
            f"{_yaml(value)} by hand",
            field=key,
        )
    replace_settings(file, after)


def replace_settings(file: Path, text: str) -> None:
    """Give the file this text if it is valid, in one step. Raises `ConfigInvalid`."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    mode = file.stat().st_mode & 0o777 if file.exists() else 0o600
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as opened:
            opened.write(text)
            opened.flush()
            os.fchmod(opened.fileno(), mode)
            os.fsync(opened.fileno())
        load_config(Path(temporary), environ={})
        Path(temporary).replace(file)
    finally:
        Path(temporary).unlink(missing_ok=True)


def with_setting(text: str, key: str, value: Value) -> str:
    """The text of a file with this setting in it."""
    newline = "\r\n" if "\r\n" in text else "\n"
    if text and not text.endswith("\n"):
        text += newline
    section, _, name = key.rpartition(".")
    lines = text.splitlines(keepends=True)
    begin, children, indent = _place(lines, section)
    setting = f"{name}: {_yaml(value)}{newline}"
    if begin < 0:
        return f"{text}{section}:{newline}  {setting}"
    margin = r"[ \t]+" if section else ""
    line_of_key = re.compile(
        rf"({margin}{re.escape(name)}[ \t]*:)([ \t]*){VALUE}([ \t]+#.*|[ \t]*)(\r?\n?)"
    )
    matches = list(map(line_of_key.fullmatch, children))
    for number in reversed(range(len(children))):
        if match := matches[number]:
            label, space, comment, ending = match.groups()
            line = f"{label}{space or ' '}{_yaml(value)}{comment}{ending}"
            lines[begin + number] = line
            return "".join(lines)
    lines.insert(begin if section else len(lines), f"{indent}{setting}")
    return "".join(lines)


def _place(lines: list[str], section: str) -> tuple[int, list[str], str]:
    """The first line of a section, its lines and their indent; -1 where there is none."""
    if not section:
        return 0, lines, ""
    head = re.compile(rf"{re.escape(section)}[ \t]*:[ \t]*(#.*)?\r?\n?")
    heads = [number for number, line in enumerate(lines) if head.fullmatch(line)]
    if not heads:
        return -1, [], ""
    begin = heads[0] + 1
    children = list(takewhile(_IN_SECTION.match, lines[begin:]))
    return begin, children, _indent(children)


def _indent(children: Iterable[str]) -> str:
    """The indent of the first setting of a section."""
    for line in children:
        if child := _CHILD.match(line):
            return child[1]
    return "  "


def _yaml(value: Value) -> str:
    """A value as YAML has it: JSON is also that, but for null, which reads better in words."""
    return "null" if value is None else json.dumps(value, ensure_ascii=False)


def _differs_only_there(before: str, after: str, key: str, value: Value) -> bool:
    # Loaded here: only a change of settings needs it.
    import yaml  # noqa: PLC0415

    wanted: dict[str, object] = yaml.safe_load(before) or {}
    section, _, name = key.rpartition(".")
    try:
        if section:
            settings = yaml.safe_load(before) or {}
            wanted[section] = {**(settings.get(section) or {}), name: value}
        else:
            wanted[name] = value
        return bool(yaml.safe_load(after) == wanted)
    except (yaml.YAMLError, TypeError):
        return False
