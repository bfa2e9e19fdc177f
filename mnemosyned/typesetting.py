"""How text is set for people: paragraphs, pairs and tables, cut to the terminal."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable
from datetime import datetime

import click

from mnemosyned.domain.instants import in_zone

WIDTH_MAX = 120
LINE_CHARS = 400


def width() -> int:
    """How many columns there are to fill."""
    return min(shutil.get_terminal_size((100, 24)).columns, WIDTH_MAX)


def table(headers: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Rows under their headers, columns aligned."""
    # Loaded here: most answers are no tables.
    from tabulate import tabulate  # noqa: PLC0415

    return tabulate(list(rows), headers=list(headers), tablefmt="simple", disable_numparse=True)


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
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def counted(number: int, noun: str) -> str:
    """A number of things: `1 memory`, `1,200 memories`."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun.removesuffix('y') + 'ies' if noun.endswith('ry') else noun + 's'}"


def cut(text: str, room: int) -> str:
    """A text on one line, cut to the room there is."""
    line = " ".join(text.split())
    return line if len(line) <= room else line[: room - 1] + "…"


def wrapped(text: str) -> str:
    """A text as an indented paragraph."""
    indent = " " * 3
    return textwrap.fill(
        text, width(), initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )


def indented(text: str) -> str:
    """A text as it stands, indented."""
    return "\n".join(f"   {line}" for line in text.splitlines() or [""])


def level_name(level: int) -> str:
    """What a summary of this level is called."""
    return ("episode", "day", "week", "month")[level]
