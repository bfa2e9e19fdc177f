"""Edits of a configuration file of any format, each compared with what was asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path as File
from types import ModuleType

from mnemosyned.setup.documents import jsonc, toml, yaml
from mnemosyned.setup.documents.errors import NotEditable, Unreadable
from mnemosyned.setup.documents.paths import (
    Json,
    Path,
    dotted,
    pruned,
    with_element,
    with_value,
    without,
)

_FORMATS: dict[str, ModuleType] = {
    ".json": jsonc,
    ".jsonc": jsonc,
    ".toml": toml,
    ".yaml": yaml,
    ".yml": yaml,
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

    def set_value(self, path: Path, value: Json) -> None:
        """Set the value at a path."""
        self._change(path, self._format.set_value, with_value, value)

    def append(self, path: Path, value: Json) -> None:
        """Add an element at the end of the list at a path, in JSON alone."""
        self._change(path, jsonc.append, with_element, value)

    def remove(self, path: Path) -> None:
        """Take out the value at a path; in TOML with objects that only it had filled."""
        self._change(path, self._format.remove, without)

    def _change(
        self,
        path: Path,
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
