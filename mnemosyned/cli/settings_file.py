"""Changes to the configuration file, which keep comments and all other lines."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path

import msgspec

from mnemosyned.config import load_config
from mnemosyned.errors import ConfigInvalid
from mnemosyned.paths import replacing_file

Value = str | int | float | bool | list[str] | msgspec.UnsetType | None
"""The value of a setting; UNSET takes the setting out of the file."""

VALUE = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s#"'][^#\n]*?)?"""
_IN_SECTION = re.compile(r"[ \t]|#|\r?\n")
_CHILD = re.compile(r"([ \t]+)[^\s#]")


def write_settings(file: Path, changes: Mapping[str, Value]) -> None:
    """Change settings by dotted key in the file, all or none; UNSET removes one.

    Comments and other lines stay. Raises `ConfigInvalid` if the file is or would become invalid, or
    cannot be edited line by line.
    """
    file = file.resolve()
    before = after = ""
    if file.exists():
        load_config(file, environ={})
        with file.open(encoding="utf-8", newline="") as opened:
            before = after = opened.read()
    for key, value in changes.items():
        text, after = after, with_setting(after, key, value)
        if not _changes_one_setting(text, after, key, value):
            raise ConfigInvalid(
                f"{file}: its form is not one that can be edited here; set {key} to "
                f"{_yaml_text(value)} by hand",
                field=key,
            )
    if after != before:
        replace_settings(file, after)


def replace_settings(file: Path, text: str) -> None:
    """Write the file's new text in one step, with its mode. Raises `ConfigInvalid`."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    mode = file.stat().st_mode & 0o777 if file.exists() else 0o600
    with replacing_file(file, mode=mode) as opened:
        opened.write(text.encode())
        opened.flush()
        load_config(Path(opened.name), environ={})


def with_setting(text: str, key: str, value: Value) -> str:
    """Return the file's text with the setting of a dotted key set, or removed for UNSET."""
    before, newline = text, "\r\n" if "\r\n" in text else "\n"
    if text and not text.endswith("\n"):
        text += newline
    section, _, name = key.rpartition(".")
    lines = text.splitlines(keepends=True)
    begin, children, indent = _find_section(lines, section)
    setting = f"{name}: {_yaml_text(value)}{newline}"
    if begin < 0:
        if value is msgspec.UNSET:
            return before
        return f"{text}{section}:{newline}  {setting}"
    margin = r"[ \t]+" if section else ""
    line_of_key = re.compile(
        rf"({margin}{re.escape(name)}[ \t]*:)([ \t]*){VALUE}([ \t]+#.*|[ \t]*)(\r?\n?)"
    )
    matches = list(map(line_of_key.fullmatch, children))
    for number in reversed(range(len(children))):
        if match := matches[number]:
            label, space, comment, ending = match.groups()
            line = f"{label}{space or ' '}{_yaml_text(value)}{comment}{ending}"
            lines[begin + number] = "" if value is msgspec.UNSET else line
            return "".join(lines)
    if value is msgspec.UNSET:
        return before
    lines.insert(begin if section else len(lines), f"{indent}{setting}")
    return "".join(lines)


def _find_section(lines: list[str], section: str) -> tuple[int, list[str], str]:
    """Return where a section begins, its lines and their indentation; -1 without one."""
    if not section:
        return 0, lines, ""
    head = re.compile(rf"{re.escape(section)}[ \t]*:[ \t]*(#.*)?\r?\n?")
    heads = [number for number, line in enumerate(lines) if head.fullmatch(line)]
    if not heads:
        return -1, [], ""
    begin = heads[0] + 1
    children = list(takewhile(_IN_SECTION.match, lines[begin:]))
    settings = filter(None, map(_CHILD.match, children))
    indent = next((setting[1] for setting in settings), "  ")
    return begin, children, indent


def _yaml_text(value: Value) -> str:
    """Return a value as YAML on one line; UNSET as `null`."""
    return (
        "null"
        if value in (None, msgspec.UNSET)
        else json.dumps(value, ensure_ascii=False)
    )


def _changes_one_setting(before: str, after: str, key: str, value: Value) -> bool:
    """Return whether the YAML `after` differs from `before` in the setting `key` alone."""
    # Loaded here: only a change of settings needs it.
    import yaml  # noqa: PLC0415

    section, _, name = key.rpartition(".")
    try:
        wanted, found = (yaml.safe_load(text) or {} for text in (before, after))
        values = wanted
        if section:  # it may be there without a setting
            values = wanted[section] = {**(wanted.get(section) or {})}
            found[section] = found.get(section) or {}
        values[name] = value
        if value is msgspec.UNSET:
            del values[name]
        return bool(found == wanted)
    except (yaml.YAMLError, TypeError):
        return False
