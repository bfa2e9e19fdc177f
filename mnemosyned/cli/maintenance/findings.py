"""Findings of the doctor, and what its checks are given."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path

from mnemosyned.config import Config
from mnemosyned.service.backup_files import backup_folder
from mnemosyned.storage.sqlite.ownership import DatabaseProcess
from mnemosyned.verbs.upkeep import Stats


class Severity(StrEnum):
    """How serious a finding is, from `ok` to `problem`."""

    OK = "ok"
    NOTE = "note"
    """Worth knowing; nothing is wrong."""
    WARNING = "warning"
    PROBLEM = "problem"

    @property
    def is_bad(self) -> bool:
        """Whether it is a warning or a problem."""
        return self in (Severity.WARNING, Severity.PROBLEM)


class Remedy(StrEnum):
    """A repair that `mnem doctor --repair` can make."""

    PERMISSIONS = "permissions"
    SOCKET = "socket"
    LEFTOVER = "leftover"
    RESTORE = "restore"
    DATABASE = "database"
    VALUES = "values"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's report."""

    check: str
    severity: Severity = field(kw_only=True)
    text: str
    command: str = ""
    """The command that repairs it; empty if there is none."""
    remedy: Remedy | None = None
    path: Path | None = None
    """The file of the remedy."""


ok = partial(Finding, severity=Severity.OK)
"""A finding that all is well."""
note = partial(Finding, severity=Severity.NOTE)
"""Something worth knowing."""
warning = partial(Finding, severity=Severity.WARNING)
"""Something to be repaired."""
problem = partial(Finding, severity=Severity.PROBLEM)
"""Something that keeps the memory from working, or endangers it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """The settings, files and daemon that the doctor checks; any of them may be broken."""

    config: Config
    """The settings, or the defaults if they cannot be read."""
    config_file: Path
    config_problem: str = ""
    database: Path
    socket: Path
    process: DatabaseProcess | None = None
    status: Stats | None = None
    """The daemon's status; None if it does not answer."""
    unreachable: str = ""
    """Why it does not answer."""
    deep: bool = False
    """Whether checks may take long."""

    @property
    def backup_folder(self) -> Path:
        """The folder of dated backups, which may not exist."""
        return backup_folder(self.database, self.config.backup_folder)
