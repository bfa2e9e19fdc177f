"""Parts of a tool's configuration: entries, hooks and files of our own.

Each part knows whether it is there, how to write it and how to take it out. What is ours is known by
the program it starts, so that a foreign entry of the same name is never changed.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path as File
from typing import Protocol

from mnemosyned.setup.documents.edits import Document
from mnemosyned.setup.documents.paths import Json, Path, dotted, value_at

NAME = "mnem"
"""The name of our entry in every tool."""
PROGRAMS = frozenset({"mnem", "mnem-hook"})
_COMMAND_KEYS = ("command", "cmd", "bash")
_USERS_CHOICE = frozenset({"enabled", "disabled", "timeout", "env", "environment"})
"""Members of an entry that are written once and then the user's."""


class State(StrEnum):
    """How a part stands in a configuration file."""

    MISSING = "missing"
    CURRENT = "current"
    STALE = "stale"
    FOREIGN = "foreign"


class Part(Protocol):
    """Something of ours in a configuration file."""

    @property
    def file(self) -> File: ...

    @property
    def path(self) -> Path: ...

    @property
    def label(self) -> str:
        """Name of it, in a word."""

    def state(self, document: Document) -> State:
        """How it stands there."""

    def write(self, document: Document) -> None:
        """Write it, or bring it up to date. Raises `NotEditable`."""

    def remove(self, document: Document) -> None:
        """Take it out, if it is there and ours. Raises `NotEditable`."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A member of an object, such as the entry of an MCP server."""

    file: File
    path: Path
    value: Mapping[str, Json]
    label: str = "MCP server"
    add: tuple[str, ...] = ()
    """The command of the tool's own program that writes it, if there is one."""
    take_out: tuple[str, ...] = ()

    def state(self, document: Document) -> State:
        present = value_at(document.data, self.path)
        if present is None:
            return State.MISSING
        if not _is_ours(present):
            return State.FOREIGN
        current = all(
            _holds(present.get(key), value)
            for key, value in self.value.items()
            if key not in _USERS_CHOICE
        )
        return State.CURRENT if current else State.STALE

    def write(self, document: Document) -> None:
        present = value_at(document.data, self.path) or {}
        kept = {key: present[key] for key in _USERS_CHOICE if key in present}
        others = {key: present[key] for key in present.keys() - self.value.keys()}
        document.set_value(self.path, {**self.value, **kept, **others})

    def remove(self, document: Document) -> None:
        if self.state(document) in (State.CURRENT, State.STALE):
            document.remove(self.path)


@dataclass(frozen=True, slots=True)
class Hook:
    """An element of an event's list of hooks: one command, or a group of them."""

    file: File
    path: Path
    value: Mapping[str, Json]
    label: str = "hook"

    def state(self, document: Document) -> State:
        elements = value_at(document.data, self.path)
        if elements is None:
            return State.MISSING
        if not isinstance(elements, list):
            return State.FOREIGN
        ours = [element for element in elements if _has_ours(element)]
        wanted = set(_commands(self.value))
        if any(wanted <= set(_commands(element)) for element in ours):
            return State.CURRENT
        return State.STALE if ours else State.MISSING

    def write(self, document: Document) -> None:
        places = list(self._places(document))
        if places:
            document.set_value(places[0], self._at(places[0]))
        else:
            document.append(self.path, dict(self.value))

    def _at(self, place: Path) -> Json:
        """The hook as it is written at a place: in a group of others, without its own group."""
        in_group = len(place) > len(self.path) + 1
        return self.value["hooks"][0] if in_group else dict(self.value)

    def remove(self, document: Document) -> None:
        for place in reversed(list(self._places(document))):
            document.remove(place)

    def _places(self, document: Document) -> Iterator[Path]:
        """Return the places of our hooks: elements of the list, or of a group that has others too."""
        elements = value_at(document.data, self.path)
        for index, element in enumerate(elements if isinstance(elements, list) else []):
            if _is_ours(element):
                yield (*self.path, index)
            elif _has_ours(element) and isinstance(element.get("hooks"), list):
                for inner, member in enumerate(element["hooks"]):
                    if _is_ours(member):
                        yield (*self.path, index, "hooks", inner)


@dataclass(frozen=True, slots=True)
class Heading:
    """A member that a file of hooks needs next to them, such as its version."""

    file: File
    path: Path
    value: Json
    label: str = "version"

    def state(self, document: Document) -> State:
        present = value_at(document.data, self.path)
        return State.MISSING if present is None else State.CURRENT

    def write(self, document: Document) -> None:
        document.set_value(self.path, self.value)

    def remove(self, document: Document) -> None:
        document.remove(self.path)


@dataclass(frozen=True, slots=True)
class OwnFile:
    """A file that is ours as a whole; `mark` is a text by which it is known."""

    file: File
    content: str
    mark: str
    label: str = "plugin"

    def state_of(self, text: str | None) -> State:
        """How it stands, by the text of the file."""
        if text is None:
            return State.MISSING
        if text == self.content:
            return State.CURRENT
        return State.STALE if self.mark in text else State.FOREIGN


def foreign_text(part: Part, document: Document) -> str:
    """Return the value in place of our part."""
    if isinstance(part, Hook):
        return f"{dotted(part.path)} is not a list"
    commands = list(_commands(value_at(document.data, part.path)))
    shown = f", which starts {commands[0]}" if commands else ""
    return f"{dotted(part.path)} is another entry of this name{shown}"


def command_line(program: File) -> str:
    """The command line that starts a program without arguments, for a shell."""
    return shlex.quote(str(program))


def _holds(present: Json, value: Json) -> bool:
    """Whether a value is as ours, or a list that has all of it."""
    if isinstance(present, list) and isinstance(value, list):
        return all(part in present for part in value)
    return bool(present == value)


def _commands(value: Json) -> Iterator[str]:
    """Every command line within a value."""
    if isinstance(value, list):
        for part in value:
            yield from _commands(part)
    elif isinstance(value, Mapping):
        for key, part in value.items():
            if key not in _COMMAND_KEYS:
                yield from _commands(part)
            elif isinstance(part, str):
                yield part
            elif isinstance(part, list) and part:
                yield str(part[0])


def starts_ours(command: str) -> bool:
    """Whether a command line, or the path of a program, starts one of ours."""
    if File(command).name in PROGRAMS:
        return True
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    return bool(words) and File(words[0]).name in PROGRAMS


def _is_ours(value: Json) -> bool:
    """Whether a value starts programs, and ours alone."""
    commands = list(_commands(value))
    return bool(commands) and all(map(starts_ours, commands))


def _has_ours(value: Json) -> bool:
    return any(map(starts_ours, _commands(value)))
