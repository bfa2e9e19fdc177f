"""Changes to the configuration file, which keep comments and all other lines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import msgspec

from mnemosyned.config import load_config
from mnemosyned.errors import ConfigInvalid
from mnemosyned.paths import replacing_file

Value = str | int | float | bool | list[str] | msgspec.UnsetType | None
"""The value of a setting; UNSET takes the setting out of the file."""


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
    # Loaded here: only a change of settings needs it.
    import yaml  # noqa: PLC0415

    before, newline = text, "\r\n" if "\r\n" in text else "\n"
    if text and not text.endswith("\n"):
        text += newline
    section, _, name = key.rpartition(".")
    written = _yaml_text(value)
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    pairs = root.value if isinstance(root, yaml.MappingNode) else []
    place, indent = len(text), ""
    if section:
        head = next((pair for pair in pairs if pair[0].value == section), None)
        if head is None:
            new = f"{text}{section}:{newline}  {name}: {written}{newline}"
            return before if value is msgspec.UNSET else new
        place = text.find("\n", head[0].end_mark.index) + 1
        pairs = head[1].value if isinstance(head[1], yaml.MappingNode) else []
        indent = " " * (pairs[0][0].start_mark.column if pairs else 2)
    for found, present in reversed(pairs):
        if found.value == name:
            begin, end = present.start_mark.index, present.end_mark.index
            if value is msgspec.UNSET:
                line = text.rfind("\n", 0, found.start_mark.index) + 1
                return text[:line] + text[text.find("\n", end) + 1 :]
            blank = " " if text[begin - 1] == ":" else ""
            return f"{text[:begin]}{blank}{written}{text[end:]}"
    if value is msgspec.UNSET:
        return before
    return f"{text[:place]}{indent}{name}: {written}{newline}{text[place:]}"


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
