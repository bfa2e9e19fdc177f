"""Parts of a setup: entries, hooks and files of ours in a tool's settings, and the machine they are on."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from mnemosyned.agents.setup import documents, files


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A user's home, environment and current directory."""

    home: Path
    directory: Path
    environment: Mapping[str, str]
    platform: str = sys.platform

    @classmethod
    def present(cls) -> Machine:
        """Return the home, environment and current directory of this process."""
        return cls(home=Path.home(), directory=Path.cwd(), environment=dict(os.environ))

    @property
    def config(self) -> Path:
        """The user's directory for configuration files: XDG_CONFIG_HOME, or else ~/.config."""
        return Path(self.environment.get("XDG_CONFIG_HOME") or self.home / ".config")

    @property
    def applications(self) -> Path:
        """The directory in which desktop programs keep their settings, by the platform."""
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        return self.config

    def program(self, *names: str) -> Path | None:
        """Return the path of the first of `names` that is a program on the PATH; None if none is."""
        for name in names:
            if found := shutil.which(name, path=self.environment.get("PATH", "")):
                return Path(found).absolute()
        return None

    def short_path(self, path: Path) -> str:
        """Return a path as text, with `~` for the home directory."""
        try:
            return f"~/{path.relative_to(self.home)}"
        except ValueError:
            return str(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """The two programs that tools start, by paths that survive an upgrade."""

    mnem: Path
    hook: Path

    @classmethod
    def of(cls, machine: Machine, started: Path) -> Programs:
        """Return the programs next to `started`, or in the scripts directory, by links on the PATH if any."""
        folder = started.resolve().parent
        if not (folder / "mnem").exists():  # such as `python -m`
            folder = Path(sysconfig.get_path("scripts"))
        return cls(
            mnem=_find_stable_path(machine, folder / "mnem"),
            hook=_find_stable_path(machine, folder / "mnem-hook"),
        )

    @property
    def missing(self) -> list[Path]:
        """The paths of our programs that do not exist or cannot be run."""
        return [path for path in (self.mnem, self.hook) if not os.access(path, os.X_OK)]

    @property
    def temporary(self) -> bool:
        """Whether a program is in a cache directory, from which it may be deleted."""
        caches = (Path(".cache") / name for name in ("uv", "pipx"))
        return any(f"/{cache}/" in str(self.mnem) for cache in caches)


def _find_stable_path(machine: Machine, program: Path) -> Path:
    """Return a link on the PATH to a program, as links survive an upgrade, or its own path."""
    for folder in machine.environment.get("PATH", "").split(os.pathsep):
        link = (Path(folder) / program.name).absolute()
        if folder and link.is_symlink() and link.resolve() == program.resolve():
            return link
    return program.absolute()


NAME = "mnem"
"""The name of our entry in every tool."""
PROGRAMS = frozenset({"mnem", "mnem-hook"})
_COMMAND_KEYS = ("command", "cmd", "bash")
_USERS_CHOICE = frozenset({"enabled", "disabled", "timeout", "env", "environment"})
"""Members of an entry that setup writes only once; later changes are the user's."""


class PartState(StrEnum):
    """The state of a part in a configuration file."""

    MISSING = "missing"
    CURRENT = "current"
    STALE = "stale"
    FOREIGN = "foreign"


OURS = frozenset({PartState.CURRENT, PartState.STALE})


@dataclass(frozen=True, slots=True)
class SettingsPart:
    """A value of ours at a path in a configuration file."""

    file: Path
    path: documents.KeyPath
    value: documents.Json
    label: str = ""
    """Name of the part in plans and checks."""

    def state(self, document: documents.Document) -> PartState:
        """Return `CURRENT` if there is any value at the part's path, else `MISSING`."""
        is_missing = documents.value_at(document.data, self.path) is None
        return PartState.MISSING if is_missing else PartState.CURRENT

    def write(self, document: documents.Document) -> None:
        """Set the part's value in the document. Raises `FileRefused`."""
        document.set_value(self.path, self.value)

    def remove(self, document: documents.Document) -> None:
        """Remove the value at the part's path from the document. Raises `FileRefused`."""
        document.remove(self.path)


@dataclass(frozen=True, slots=True)
class HeadingPart(SettingsPart):
    """A member that a file of hooks needs next to the hooks, such as a version number."""

    label: str = "version"


@dataclass(frozen=True, slots=True)
class EntryPart(SettingsPart):
    """A member of an object, such as the entry of an MCP server."""

    label: str = "MCP server"
    add: tuple[str, ...] = ()
    """Command of the tool's own program that writes the entry, if there is one."""
    take_out: tuple[str, ...] = ()

    def state(self, document: documents.Document) -> PartState:
        """Return whether the entry is missing, current, stale or foreign; ignore members that users choose."""
        present = documents.value_at(document.data, self.path)
        if present is None:
            return PartState.MISSING
        if not _is_ours(present):
            return PartState.FOREIGN
        is_current = all(
            _includes_value(present.get(key), value)
            for key, value in self.value.items()
            if key not in _USERS_CHOICE
        )
        return PartState.CURRENT if is_current else PartState.STALE

    def write(self, document: documents.Document) -> None:
        """Write the entry, keeping members that the user chose or added. Raises `FileRefused`."""
        present = documents.value_at(document.data, self.path) or {}
        choices = {key: present[key] for key in _USERS_CHOICE if key in present}
        others = {key: present[key] for key in present.keys() - self.value.keys()}
        document.set_value(self.path, {**self.value, **choices, **others})

    def remove(self, document: documents.Document) -> None:
        """Remove the entry if all its commands start our programs. Raises `FileRefused`."""
        if self.state(document) in OURS:
            document.remove(self.path)


@dataclass(frozen=True, slots=True)
class HookPart(SettingsPart):
    """An element in an event's list of hooks: one command, or a group of commands."""

    label: str = "hook"

    def state(self, document: documents.Document) -> PartState:
        """Return whether our hook is missing, current or stale; foreign if the value is not a list."""
        elements = documents.value_at(document.data, self.path)
        if elements is None:
            return PartState.MISSING
        if not isinstance(elements, list):
            return PartState.FOREIGN
        ours = [
            set(_find_commands(each)) for each in elements if _has_our_program(each)
        ]
        wanted = set(_find_commands(self.value))
        if any(wanted <= commands for commands in ours):
            return PartState.CURRENT
        return PartState.STALE if ours else PartState.MISSING

    def write(self, document: documents.Document) -> None:
        """Write the hook in place of our first one, or at the end. Raises `FileRefused`."""
        place = next(self._find_places(document), None)
        if place is None:
            document.append(self.path, dict(self.value))
        elif len(place) > len(self.path) + 1:  # in a group with commands of others
            document.set_value(place, self.value["hooks"][0])
        else:
            document.set_value(place, dict(self.value))

    def remove(self, document: documents.Document) -> None:
        """Remove all our hooks of the event, and no others. Raises `FileRefused`."""
        for place in reversed(list(self._find_places(document))):
            document.remove(place)

    def _find_places(self, document: documents.Document) -> Iterator[documents.KeyPath]:
        """Yield the path of each of our hooks: a list element, or our command in a group with others."""
        elements = documents.value_at(document.data, self.path)
        for index, element in enumerate(elements if isinstance(elements, list) else []):
            if _is_ours(element):
                yield (*self.path, index)
            elif _has_our_program(element) and isinstance(element.get("hooks"), list):
                for inner, member in enumerate(element["hooks"]):
                    if _is_ours(member):
                        yield (*self.path, index, "hooks", inner)


@dataclass(frozen=True, slots=True)
class OwnFile:
    """A whole file of ours; the text `mark` identifies it."""

    file: Path
    content: str
    mark: str
    label: str = "plugin"

    def state_of(self, text: str | None) -> PartState:
        """Return the state of a file from its text, which is None for a missing file."""
        if text is None:
            return PartState.MISSING
        if text == self.content:
            return PartState.CURRENT
        return PartState.STALE if self.mark in text else PartState.FOREIGN


Parts = list[SettingsPart | OwnFile]


def describe_foreign_value(part: SettingsPart, document: documents.Document) -> str:
    """Return a message about a value, not ours, that is at the path of a part."""
    if isinstance(part, HookPart):
        return f"{documents.dotted_path(part.path)} is not a list"
    command = next(_find_commands(documents.value_at(document.data, part.path)), "")
    starts = f", which starts {command}" if command else ""
    return f"{documents.dotted_path(part.path)} is another entry of this name{starts}"


def _includes_value(present: documents.Json, value: documents.Json) -> bool:
    """Return True if `present` equals `value`, or is a list with all elements of `value`."""
    if isinstance(present, list) and isinstance(value, list):
        return all(part in present for part in value)
    return bool(present == value)


def _find_commands(value: documents.Json) -> Iterator[str]:
    """Yield every command in settings, at any depth; of a command that is a list, the first word."""
    if isinstance(value, list):
        for part in value:
            yield from _find_commands(part)
    elif isinstance(value, Mapping):
        for key, part in value.items():
            if key not in _COMMAND_KEYS:
                yield from _find_commands(part)
            elif isinstance(part, str):
                yield part
            elif isinstance(part, list) and part:
                yield str(part[0])


def starts_our_program(command: str) -> bool:
    """Return True if a command line, or a path, starts `mnem` or `mnem-hook`."""
    if Path(command).name in PROGRAMS:
        return True
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    return bool(words) and Path(words[0]).name in PROGRAMS


def _is_ours(value: documents.Json) -> bool:
    """Return True if settings have a command, and all their commands start our programs."""
    commands = list(_find_commands(value))
    return bool(commands) and all(map(starts_our_program, commands))


def _has_our_program(value: documents.Json) -> bool:
    """Return True if any command in settings, at any depth, starts one of our programs."""
    return any(map(starts_our_program, _find_commands(value)))


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupSite:
    """The scope of a setup: a user, or one project."""

    machine: Machine
    programs: Programs
    project: Path | None = None


def settings_of(file: Path) -> documents.Json:
    """Return the data of a configuration file; an empty object if missing or unreadable."""
    document = read_document(file)
    return document.data if document else {}


def read_document(file: Path) -> documents.Document | None:
    """Return a configuration file as a document; None if it is missing or cannot be read."""
    try:
        text = files.decode_text(files.read_file(file))
        return None if text is None else documents.Document(file, text)
    except files.FileRefused:
        return None
