"""Parts that a setup writes: entries, hooks and files of ours, and what they need of the machine."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path, Path as File
from typing import Protocol

from mnemosyned.agents.setup.documents import (
    Document,
    Json,
    KeyPath,
    NotEditable,
    Unreadable,
    dotted,
    value_at,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A user's home, environment and present directory."""

    home: Path
    directory: Path
    environment: Mapping[str, str]
    platform: str = sys.platform

    @classmethod
    def present(cls) -> Machine:
        """The machine this process runs on."""
        return cls(home=Path.home(), directory=Path.cwd(), environment=dict(os.environ))

    @property
    def config(self) -> Path:
        """The directory of configuration files by the XDG rules."""
        return self.folder("XDG_CONFIG_HOME", self.home / ".config")

    @property
    def applications(self) -> Path:
        """The directory in which desktop programs keep their settings."""
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        return self.config

    def folder(self, variable: str, default: Path) -> Path:
        """The directory a variable names, or the default one."""
        return Path(self.environment.get(variable) or default)

    def program(self, *names: str) -> Path | None:
        """The first of these programs that is on the PATH."""
        for name in names:
            if found := shutil.which(name, path=self.environment.get("PATH", "")):
                return Path(found).absolute()
        return None

    def shown(self, path: Path) -> str:
        """A path as people write it, with ~ for the home."""
        try:
            return f"~/{path.relative_to(self.home)}"
        except ValueError:
            return str(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """The two programs that tools start, by paths that outlive a new version."""

    mnem: Path
    hook: Path

    @classmethod
    def of(cls, machine: Machine, started: Path) -> Programs:
        """Return the programs of the installation that was `started`, by links on the PATH if there are any."""
        folder = started.resolve().parent
        if not (folder / "mnem").exists():  # such as `python -m`
            folder = Path(sysconfig.get_path("scripts"))
        return cls(
            mnem=_stable(machine, folder / "mnem"),
            hook=_stable(machine, folder / "mnem-hook"),
        )

    @property
    def missing(self) -> list[Path]:
        """The programs that do not exist or cannot be run."""
        return [path for path in (self.mnem, self.hook) if not os.access(path, os.X_OK)]

    @property
    def temporary(self) -> bool:
        """Whether they are in a cache, as `uvx` and `pipx run` have them."""
        caches = (Path(".cache") / name for name in ("uv", "pipx"))
        return any(f"/{cache}/" in str(self.mnem) for cache in caches)


def _stable(machine: Machine, program: Path) -> Path:
    """A link on the PATH that leads to a program, which stays when that moves; else itself."""
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
"""Members of an entry that are written once and then the user's."""


class State(StrEnum):
    """How a part stands in a configuration file."""

    MISSING = "missing"
    CURRENT = "current"
    STALE = "stale"
    FOREIGN = "foreign"


class SetupPart(Protocol):
    """Something of ours in a configuration file."""

    @property
    def file(self) -> File: ...

    @property
    def path(self) -> KeyPath: ...

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
class SettingsEntry:
    """A member of an object, such as the entry of an MCP server."""

    file: File
    path: KeyPath
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
    path: KeyPath
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

    def _at(self, place: KeyPath) -> Json:
        """The hook as it is written at a place: in a group of others, without its own group."""
        in_group = len(place) > len(self.path) + 1
        return self.value["hooks"][0] if in_group else dict(self.value)

    def remove(self, document: Document) -> None:
        for place in reversed(list(self._places(document))):
            document.remove(place)

    def _places(self, document: Document) -> Iterator[KeyPath]:
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
    path: KeyPath
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


def foreign_text(part: SetupPart, document: Document) -> str:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The scope of a setup: for the user, or for one project."""

    machine: Machine
    programs: Programs
    project: Path | None = None


def _nothing(_: Machine) -> list[str]:
    return []


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A tool that can be given memory."""

    name: str
    title: str
    programs: tuple[str, ...]
    folders: Callable[[Machine], list[Path]]
    """Directories of which one exists where the tool has been used."""
    parts: Callable[[Site], list[SetupPart | OwnFile]]
    project_parts: Callable[[Site], list[SetupPart | OwnFile]] | None = None
    steps: tuple[str, ...] = ()
    """What the user still has to do."""
    notes: tuple[str, ...] = ()
    """What is worth knowing."""
    unconfirmed: tuple[str, ...] = ()
    """What could not be confirmed on a real installation."""
    listing: tuple[str, ...] = ()
    """Arguments with which its own program shows the server, offline."""
    plugins: Callable[[Machine], list[str]] = _nothing
    """Where our plugin is installed already."""
    switched_off: Callable[[Machine], list[str]] = _nothing
    """The settings that keep our hooks from running, and trust that is missing."""
    clients: tuple[str, ...] = field(default=())
    """The names under which the daemon knows the tool."""
    transcripts: tuple[str, ...] = ()
    """Patterns of its transcripts, below the home."""

    def found(self, machine: Machine) -> bool:
        """Whether the tool is on this machine."""
        on_path = machine.program(*self.programs) is not None
        return on_path or any(folder.is_dir() for folder in self.folders(machine))


ARGUMENTS = ("mcp",)
SETTINGS_BYTES_MAX = 64 << 20
"""A configuration file larger than this is not read."""
Parts = list[SetupPart | OwnFile]

CLAUDE_EVENTS = {
    "SessionStart": 10,
    "UserPromptSubmit": 5,
    "Stop": 10,
    "PreCompact": 10,
    "SessionEnd": 5,
}
"""The hooks of Claude Code and of tools that took its form, with their limits in seconds."""


def server(
    file: Path,
    programs: Programs,
    *,
    section: str = "mcpServers",
    **more: Json,
) -> SettingsEntry:
    """An entry with `command` and `args`, as most tools have it."""
    value = {"command": str(programs.mnem), "args": [*ARGUMENTS], **more}
    return SettingsEntry(file, (section, NAME), value)


def stdio_server(
    file: Path, programs: Programs, *, section: str = "mcpServers"
) -> SettingsEntry:
    """An entry that also names its transport."""
    entry = server(file, programs, section=section)
    return SettingsEntry(file, entry.path, {"type": "stdio", **entry.value})


def grouped_hooks(
    file: Path,
    programs: Programs,
    events: Mapping[str, int] = CLAUDE_EVENTS,
    *,
    section: tuple[str, ...] = ("hooks",),
    **more: Json,
) -> list[Hook]:
    """Hooks in groups, as Claude Code has them."""
    return [
        Hook(
            file,
            (*section, event),
            {"hooks": [{**more, **_command(programs), "timeout": limit}]},
            label=f"hook {event}",
        )
        for event, limit in events.items()
    ]


def _command(programs: Programs) -> dict[str, Json]:
    return {"type": "command", "command": command_line(programs.hook)}


def flat_hooks(
    file: Path, events: Mapping[str, Mapping[str, Json]], *section: str
) -> list[Hook]:
    """Hooks without groups, each with its own members."""
    return [
        Hook(file, (*(section or ("hooks",)), event), value, label=f"hook {event}")
        for event, value in events.items()
    ]


def own_json(file: Path, content: Json, mark: str) -> OwnFile:
    """A file of ours in JSON."""
    return OwnFile(file, json.dumps(content, indent=2) + "\n", mark)


def settings_of(file: Path) -> Json:
    """The data of a configuration file; empty where it cannot be read."""
    try:
        if file.stat().st_size > SETTINGS_BYTES_MAX:
            return {}
        return Document(file, file.read_text("utf-8")).data
    except (OSError, UnicodeDecodeError, Unreadable, NotEditable):
        return {}


def has_hooks_of_ours(hooks: list[Hook]) -> bool:
    """Whether the first of these hooks is in its file, whatever its path."""
    first = hooks[0]
    try:
        document = Document(first.file, first.file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, Unreadable, NotEditable):
        return False
    return first.state(document) in ("current", "stale")
