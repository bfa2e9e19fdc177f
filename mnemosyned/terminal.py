"""Text for terminals: paragraphs, pairs and tables, cut to the width, and printed.

Only `say` prints, so that no memory reaches a terminal with control characters in it.
"""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import Enum
from typing import Any, TypeVar

import click
import msgspec

from mnemosyned.domain.instants import in_zone
from mnemosyned.domain.text.invisible import escape_invisible, escape_invisible_json

T = TypeVar("T")

WIDTH_MAX = 120
LINE_CHARS = 400
DEPTH_MAX = 50
"""Values nested deeper are shown as JSON."""
TEXTS = frozenset({"content", "snippet", "text", "system"})
"""Fields that may have several lines; names, ids and the like have one."""
_STYLE = re.compile("(\x1b\\[(?:0|1|2|31)m)")
"""Sequences that `click.style` writes here: reset, bold, dim, red."""


def say(text: str, *, err: bool = False, styled: bool = False) -> None:
    """Print without terminal control characters; a reader that closes the pipe is no failure.

    `styled` keeps our own styles: then values must have been made `seen` before.
    """
    parts = _STYLE.split(text) if styled else [text]
    parts[::2] = map(escape_invisible, parts[::2])  # between them are the styles
    _print("".join(parts), err=err)


def say_json(value: object, *, err: bool = False) -> None:
    """Print as JSON, with terminal control characters escaped."""
    _print(escape_invisible_json(msgspec.json.encode(value).decode()).encode(), err=err)


def ask(question: str) -> None:
    """Ask on standard error whether to go on; `click.Abort` where not."""
    if not agreed(question, default=False):
        raise click.Abort


def agreed(question: str, *, default: bool) -> bool:
    """Ask a question on standard error; the answer."""
    shown = escape_invisible(question, one_line=True)
    return click.confirm(shown, default=default, err=True)


def _print(text: str | bytes, *, err: bool) -> None:
    try:
        click.echo(text, err=err)
    except BrokenPipeError:
        stream = sys.stderr if err else sys.stdout
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def seen(value: T) -> T:
    """A result with every string in it as a person may see it, names and ids on one line."""
    clean: T = _seen(value, "", 0)
    return clean


def _seen(value: Any, name: str, depth: int) -> Any:  # noqa: ANN401 any part of a result
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        return escape_invisible(value, one_line=name not in TEXTS)
    if isinstance(value, Mapping | list | tuple):
        return _seen_members(value, name, depth)
    if isinstance(value, msgspec.Struct):
        changed = _changed(value, value.__struct_fields__, depth)
        return msgspec.structs.replace(value, **changed)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return dataclasses.replace(value, **_changed(value, names, depth))
    return value


def _seen_members(value: Any, name: str, depth: int) -> Any:  # noqa: ANN401
    if depth > DEPTH_MAX:
        return escape_invisible(msgspec.json.encode(value).decode())
    if isinstance(value, Mapping):
        return {
            _seen(key, "", depth): _seen(member, str(key), depth + 1)
            for key, member in value.items()
        }
    return type(value)([_seen(member, name, depth + 1) for member in value])


def _changed(value: object, names: Iterable[str], depth: int) -> dict[str, Any]:
    """The fields of a value that look otherwise to a person."""
    changed: dict[str, Any] = {}
    for name in names:
        member = getattr(value, name)
        clean = _seen(member, name, depth + 1)
        if clean is not member:
            changed[name] = clean
    return changed


def width() -> int:
    """The number of columns to fill."""
    return min(shutil.get_terminal_size((100, 24)).columns, WIDTH_MAX)


def table(headers: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Rows under their headers, columns aligned."""
    # Loaded here: most answers are no tables.
    from tabulate import tabulate  # noqa: PLC0415

    return tabulate(
        list(rows), headers=list(headers), tablefmt="simple", disable_numparse=True
    )


def pairs(rows: Iterable[tuple[str, str]]) -> str:
    """A line for each key that has a value."""
    return "\n".join(
        f"{click.style(f'{key:<12}', dim=True)}{value}" for key, value in rows if value
    )


def when(moment: datetime | None) -> str:
    """Local time, to the minute."""
    return in_zone(moment, None).isoformat(" ")[:16] if moment else ""


def span(seconds: float) -> str:
    """A length of time, to the second or the minute."""
    minutes, whole_seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {whole_seconds} s"


def counted(number: int, noun: str) -> str:
    """A number of things: `1 memory`, `1,200 memories`."""
    if number == 1:
        return f"1 {noun}"
    plural = f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s"
    return f"{number:,} {plural}"


def cut(text: str, room: int) -> str:
    """A text on one line, cut to the room there is."""
    line = " ".join(text.split())
    return line if len(line) <= room else line[: room - 1] + "…"


def wrapped(text: str) -> str:
    """A text as an indented paragraph."""
    indent = " " * 3
    return textwrap.fill(
        text,
        width(),
        initial_indent=indent,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )


def indented(text: str) -> str:
    """A text with its line breaks, indented."""
    return "\n".join(f"   {line}" for line in text.splitlines() or [""])


def level_name(level: int) -> str:
    """The name of a summary of this level."""
    return ("episode", "day", "week", "month")[level]
