"""Changes to the configuration file, which keep comments and all other lines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import msgspec

from mnemosyned.config.loading import load_config
from mnemosyned.errors import ConfigInvalid
from mnemosyned.paths import replacing_file

Value = str | int | float | bool | list[str] | msgspec.UnsetType | None
"""The value of a setting; UNSET takes the setting out of the file."""


def write_settings(file: Path, changes: Mapping[str, Value]) -> None:
    """Change settings by dotted key in the file, all or none; UNSET removes one.

    Comments and other lines stay. Raises `ConfigInvalid` if the file is or would become invalid, or
    cannot be edited line by line.
    """
    # Loaded here: only a change of settings needs it.
    from mnemosyned.agents.setup import documents, files  # noqa: PLC0415

    file = file.resolve()
    before = ""
    if file.exists():
        load_config(file, environ={})
        with file.open(encoding="utf-8", newline="") as opened:
            before = opened.read()
    document = documents.Document(file.with_suffix(".yaml"), before)
    for key, value in changes.items():
        path = tuple(key.split("."))
        try:
            if value is not msgspec.UNSET:
                document.set_value(path, value)
            elif len(documents.values_along(document.data, path)) > len(path):
                document.remove(path)
        except files.FileRefused as error:
            written = "null" if value is msgspec.UNSET else json.dumps(value)
            raise ConfigInvalid(
                f"{file} cannot be edited line by line; set {key} to {written} by hand",
                field=key,
            ) from error
    if document.text != before:
        replace_settings(file, document.text)


def replace_settings(file: Path, text: str) -> None:
    """Replace the file's text in one step if it is valid; keep the mode. Raises `ConfigInvalid`."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    mode = file.stat().st_mode & 0o777 if file.exists() else 0o600
    with replacing_file(file, mode=mode) as opened:
        opened.write(text.encode())
        opened.flush()
        load_config(Path(opened.name), environ={})
