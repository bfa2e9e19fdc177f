"""A tool as setup knows it: how it is found, what is written for it, what is not certain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from mnemosyned.setup.machine import Machine, Programs
from mnemosyned.setup.parts import OwnFile, Part


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
    parts: Callable[[Site], list[Part | OwnFile]]
    project_parts: Callable[[Site], list[Part | OwnFile]] | None = None
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
