"""Blocks from BEGIN to END, of which calendars and address books consist."""

from __future__ import annotations

import io
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import BinaryIO

from mnemosyned.importers.importer import Bad, Format, Item, Source
from mnemosyned.importers.reading.parsing import parsed
from mnemosyned.importers.reading.text import LINE_BYTES_MAX, as_utf8, decoded, lines_of
from mnemosyned.verbs.memories import Remember
from mnemosyned.version import install_command

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


class ComponentFile(Format):
    """A file of blocks that a library of the extra parses one by one."""

    outermost: str
    """The kind of block that the file begins with."""
    kinds: frozenset[str]
    """The kinds of blocks that are records, or are needed to read records."""
    definitions: frozenset[str] = frozenset()
    """Those that are needed: they are parsed again when reading goes on after them."""
    noun: str
    """What the place of a record calls it."""
    library: str

    @abstractmethod
    def memory_of(
        self, library: ModuleType, component: Component, source: Source
    ) -> Remember | None:
        """Make the memory of a block; None of a definition. Raises `PARSE_ERRORS`."""

    def recognizes(self, source: Source) -> bool:
        return not source.is_folder and _begins_with(source, self.outermost)

    def read(self, source: Source, position: str) -> Iterator[Item | Bad]:
        library = _loaded(self.library)
        if isinstance(library, str):
            yield Bad(source.name, library)
            return
        done = int(position or 0)
        end = 0
        with source.open() as opened, as_utf8(opened) as text:
            for component in components(text, self.kinds):
                size, end = component.end - end, component.end
                is_definition = component.kind in self.definitions
                if end > done or is_definition:
                    parse = partial(self.memory_of, library, component, source)
                    place = f"{source.name}, {self.noun} {component.number}"
                    record = _record(component, parse, place, size)
                    if record:
                        yield record


def _record(
    component: Component, parse: Callable[[], Remember | None], place: str, size: int
) -> Item | Bad | None:
    position = str(component.end)
    if component.problem:
        return Bad(place, component.problem, position, size)
    return parsed(parse, place, position, size)


def _begins_with(source: Source, kind: str) -> bool:
    """Whether a file begins with a block of this kind."""
    with as_utf8(io.BytesIO(source.head)) as head:
        first = decoded(head.read(512)).lstrip().upper()
    return first.startswith(f"BEGIN:{kind}")


def components(stream: BinaryIO, kinds: frozenset[str]) -> Iterator[Component]:
    """Yield the blocks of some kinds; those within them are parts of their text."""
    kind, lines, size, number = "", list[str](), 0, 0
    end = 0
    for line in lines_of(stream):
        text, end = line.text, line.end
        upper = text.strip().upper()
        begun = upper.removeprefix("BEGIN:") if upper.startswith("BEGIN:") else ""
        if not kind and begun in kinds:
            kind, lines, size = begun, [], 0
            number += 1
        if kind:
            size += LINE_BYTES_MAX if line.too_long else len(text)
            if size <= COMPONENT_CHARS_MAX:
                lines.append(text)
        if kind and upper == f"END:{kind}":
            problem = "" if size <= COMPONENT_CHARS_MAX else "it is too long"
            yield Component(kind, number, "\r\n".join([*lines, ""]), end, problem)
            kind = ""
    if kind:
        yield Component(kind, number, "", end, f"it has no END:{kind}")


def _loaded(name: str) -> ModuleType | str:
    """Return a library of the extra, or what to do as it is missing."""
    try:
        return import_module(name)
    except ImportError:
        return f"it needs {name}; install it with: {install_command(EXTRA)}"
