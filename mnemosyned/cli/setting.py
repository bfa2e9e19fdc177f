"""Write one setting into the user's file, leaving every other word of it as it is."""

from __future__ import annotations

import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any

from mnemosyned.config import load_config
from mnemosyned.domain.errors import ConfigInvalid

VALUE = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s#"'][^#\n]*?)?"""


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
    lines = text.splitlines(keepends=True)
    head = re.compile(rf"{re.escape(section)}[ \t]*:[ \t]*(#.*)?\r?\n?")
    at = next((at for at, line in enumerate(lines) if head.fullmatch(line)), None)
    if at is None:
        gap = newline if text and not text.endswith("\n") else ""
        return f"{text}{gap}{section}:{newline}  {name}: {_yaml(value)}{newline}"
    if not lines[at].endswith("\n"):
        lines[at] += newline
    end = at + 1
    while end < len(lines) and re.match(r"[ \t]|#|\r?\n", lines[end]):
        end += 1
    key = re.compile(
        rf"([ \t]+{re.escape(name)}[ \t]*:[ \t]*){VALUE}([ \t]+#.*|[ \t]*)(\r?\n?)"
    )
    indent = "  "
    for number in range(end - 1, at, -1):
        if found := key.fullmatch(lines[number]):
            start = found[1] if found[1][-1] in " \t" else f"{found[1]} "
            lines[number] = f"{start}{_yaml(value)}{found[2]}{found[3]}"
            return "".join(lines)
        if child := re.match(r"([ \t]+)[^\s#]", lines[number]):
            indent = child[1]
    lines.insert(at + 1, f"{indent}{name}: {_yaml(value)}{newline}")
    return "".join(lines)


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
