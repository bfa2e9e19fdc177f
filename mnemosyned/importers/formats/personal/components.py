"""Blocks from BEGIN to END, of which calendars and address books consist."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import BinaryIO

from mnemosyned.importers.importer import Source
from mnemosyned.importers.reading.text import as_utf8, decoded, lines_of

COMPONENT_CHARS_MAX = 4 << 20
EXTRA = "personal"


@dataclass(frozen=True, slots=True)
class Component:
    """One block."""

    kind: str
    number: int
    text: str
    end: int
    problem: str = ""


def begins_with(source: Source, kind: str) -> bool:
    """Whether a file begins with a block of this kind."""
    with as_utf8(io.BytesIO(source.head)) as head:
        first = decoded(head.read(512)).lstrip().upper()
    return first.startswith(f"BEGIN:{kind}")


def components(
    stream: BinaryIO, kinds: frozenset[str], *, offset: int
) -> Iterator[Component]:
    """Yield the blocks of some kinds; those within them are parts of their text."""
    kind, lines, size, number = "", list[str](), 0, 0
    end = offset
    for line in lines_of(stream, offset=offset):
        text, end = line.text, line.end
        upper = text.strip().upper()
        begun = upper.removeprefix("BEGIN:") if upper.startswith("BEGIN:") else ""
        if not kind and begun in kinds:
            kind, lines, size = begun, [], 0
            number += 1
        if kind:
            size += len(text)
            if size <= COMPONENT_CHARS_MAX:
                lines.append(text)
        if kind and upper == f"END:{kind}":
            problem = "" if size <= COMPONENT_CHARS_MAX else "it is too long"
            yield Component(kind, number, "\r\n".join([*lines, ""]), end, problem)
            kind = ""
    if kind:
        yield Component(kind, number, "", end, f"it has no END:{kind}")


def library(name: str) -> ModuleType | str:
    """Return a library of the extra, or what to do as it is missing."""
    # Loaded here: without calendars and address books nobody waits for it.
    from importlib import import_module  # noqa: PLC0415

    try:
        return import_module(name)
    except ImportError:
        return f"it needs {name}; install it with: pip install 'mnemosyned[{EXTRA}]'"
