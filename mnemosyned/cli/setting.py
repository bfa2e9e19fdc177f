"""Write one setting into the user's file, leaving every other word of it as it is."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterable
from itertools import takewhile
from pathlib import Path
from typing import Any

from mnemosyned.config import load_config
from mnemosyned.domain.errors import ConfigInvalid

VALUE = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s#"'][^#\n]*?)?"""
_IN_SECTION = re.compile(r"[ \t]|#|\r?\n")
_CHILD = re.compile(r"([ \t]+)[^\s#]")


def write_setting(file: Path, section: str, name: str, value: str | None) -> None:
    """Set `section.name`, on its line where there is one; all or nothing.

    Raises `ConfigInvalid` where the file is not valid, or would not be.
    """
    file = file.resolve()
    before = ""
    if file.exists():
        load_config(file, environ={})
        with file.open(encoding="utf-8", newline="") as opened:
            before = opened.read()
    after = with_setting(before, section, name, value)
    if not _differs_only_there(before, after, section, name, value):
        raise ConfigInvalid(
            f"{file}: its form is not one that can be edited here; set {section}.{name} to "
            f"{_yaml(value)} by hand",
            field=f"{section}.{name}",
        )
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    mode = file.stat().st_mode & 0o777 if file.exists() else 0o600
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as opened:
            opened.write(after)
            opened.flush()
            os.fchmod(opened.fileno(), mode)
            os.fsync(opened.fileno())
        load_config(Path(temporary), environ={})
        Path(temporary).replace(file)
    finally:
        Path(temporary).unlink(missing_ok=True)


def with_setting(text: str, section: str, name: str, value: str | None) -> str:
    """The text of a file with this setting in it."""
    newline = "\r\n" if "\r\n" in text else "\n"
    if text and not text.endswith("\n"):
        text += newline
    lines = text.splitlines(keepends=True)
    head = re.compile(rf"{re.escape(section)}[ \t]*:[ \t]*(#.*)?\r?\n?")
    heads = [number for number, line in enumerate(lines) if head.fullmatch(line)]
    if not heads:
        return f"{text}{section}:{newline}  {name}: {_yaml(value)}{newline}"
    begin = heads[0] + 1
    children = list(takewhile(_IN_SECTION.match, lines[begin:]))
    key = re.compile(
        rf"([ \t]+{re.escape(name)}[ \t]*:)([ \t]*){VALUE}([ \t]+#.*|[ \t]*)(\r?\n?)"
    )
    settings = list(map(key.fullmatch, children))
    for number in reversed(range(len(children))):
        if setting := settings[number]:
            label, space, comment, ending = setting.groups()
            line = f"{label}{space or ' '}{_yaml(value)}{comment}{ending}"
            lines[begin + number] = line
            return "".join(lines)
    indent = _indent(children)
    lines.insert(begin, f"{indent}{name}: {_yaml(value)}{newline}")
    return "".join(lines)


def _indent(children: Iterable[str]) -> str:
    """The indent of the first setting of a section."""
    for line in children:
        if child := _CHILD.match(line):
            return child[1]
    return "  "


def _yaml(value: str | None) -> str:
    return "null" if value is None else json.dumps(value, ensure_ascii=False)


def _differs_only_there(
    before: str, after: str, section: str, name: str, value: str | None
) -> bool:
    # Loaded here: only a change of settings needs it.
    import yaml  # noqa: PLC0415

    wanted: dict[str, Any] = yaml.safe_load(before) or {}
    try:
        wanted[section] = {**(wanted.get(section) or {}), name: value}
        return bool(yaml.safe_load(after) == wanted)
    except (yaml.YAMLError, TypeError):
        return False
