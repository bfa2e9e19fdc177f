"""The fields of a request from what was typed, with files and standard input read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
import msgspec

from mnemosyned.cli.arguments.parameters import FILES, FROM_STDIN
from mnemosyned.domain.errors import InvalidRequest
from mnemosyned.paths import usable_path

STDIN_BYTES_MAX = 64 << 20


def fields_typed(given: dict[str, Any], command: str = "") -> dict[str, Any]:
    """The fields of a command from what was typed, with files and standard input read."""
    fields: dict[str, Any] = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in given.items()
        if value not in (None, ())
    }
    for name in FROM_STDIN.keys() & given.keys():
        if isinstance(given[name], tuple):  # an option `--query` is left alone
            fields[name] = _words(given[name], FROM_STDIN[name].format(command))
    if "metadata" in fields:
        fields["metadata"] = _object(fields["metadata"], "--metadata", field="metadata")
    if "tags" in fields:
        fields["tags"] = _tags(fields["tags"])
    if "file" in fields:  # the daemon has another working directory
        fields["file"] = str(usable_path(fields["file"], field="file").absolute())
    for name in FILES & fields.keys():
        fields[name] = _listed(fields[name], field=name)
    return fields


def _words(given: tuple[str, ...], otherwise: str) -> str:
    """The words of an argument; without any, or with `-`, those of standard input."""
    return " ".join(given) if given and given != ("-",) else standard_input(otherwise)


def _tags(given: str | list[str]) -> list[str]:
    """The tags of an argument or a repeated option, at each comma."""
    typed = [given] if isinstance(given, str) else given
    return [tag for part in typed for tag in part.split(",") if tag.strip()]


def standard_input(otherwise: str) -> str:
    """The text of standard input. Raises `click.UsageError`, at a terminal with what to do instead."""
    if sys.stdin.isatty():
        raise click.UsageError(f"{otherwise}, or pipe it in")
    data = sys.stdin.buffer.read(STDIN_BYTES_MAX + 1)
    if len(data) > STDIN_BYTES_MAX:
        raise click.UsageError(
            f"standard input exceeds {STDIN_BYTES_MAX:,} bytes; split it"
        )
    try:
        return data.decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise click.UsageError(
            f"standard input is not UTF-8 at byte {error.start}"
        ) from error


def _listed(file: str, *, field: str) -> object:
    """Return the list in a JSON file; in an object, such as an API request, the list of that name."""
    if file == "-":
        text = standard_input(f"{field} are JSON: name a file")
    else:
        try:
            text = Path(file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InvalidRequest(
                f"{file} cannot be read: {reason}", field=field
            ) from error
    content = _object(text, file, field=field)
    return content.get(field) if isinstance(content, dict) else content


def _object(text: str, where: str, *, field: str) -> object:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise InvalidRequest(f"{where} is not JSON: {error}", field=field) from error
