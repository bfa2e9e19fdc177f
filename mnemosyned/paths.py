"""Directories and files on this machine: systemd's directories, or the user's by the XDG rules."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SOCKET_VARIABLE = "MNEMOSYNE_SOCKET"
SOCKET_NAME = "mnemosyned.sock"
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 each directory in it is private, by `mkdtemp`
"""A file system in memory, on Linux."""
_PRIVATE = "mnemosyned-memory-"
_ABANDONED_S = 60.0
"""Age from which a private directory without a lock is taken for a killed process's."""


def state_dir() -> Path:
    """The default directory of the database."""
    return _directory(
        "STATE_DIRECTORY", "XDG_STATE_HOME", Path.home() / ".local" / "state"
    )


def models_dir() -> Path:
    """The directory of language models."""
    return state_dir() / "models"


def config_dir() -> Path:
    """The directory of the configuration file."""
    return _directory(
        "CONFIGURATION_DIRECTORY", "XDG_CONFIG_HOME", Path.home() / ".config"
    )


def default_socket() -> Path:
    """The socket of the daemon, unless the settings name another."""
    if os.environ.get("RUNTIME_DIRECTORY") or os.environ.get("XDG_RUNTIME_DIR"):
        return _directory("RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR", Path()) / SOCKET_NAME
    return state_dir() / SOCKET_NAME


def shipped(folder: str) -> Path:
    """`migrations`, `config` or `systemd`: next to the package in a checkout, in it once installed.

    Raises `FileNotFoundError` if the installation is damaged.
    """
    package = Path(__file__).parent
    for candidate in (package / "_data" / folder, package.parent / folder):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(
        f"{folder} is missing next to {package}; install mnemosyned again"
    )


@contextmanager
def private_directory() -> Iterator[Path]:
    """A directory for files that must not outlive the block, in memory where the system has it.

    Without `/dev/shm` it is in the directory for temporary files. One that a killed process left
    behind is deleted by the next call.
    """
    in_memory = SHARED_MEMORY.is_dir() and os.access(SHARED_MEMORY, os.W_OK)
    parent = SHARED_MEMORY if in_memory else Path(tempfile.gettempdir())
    _delete_abandoned(parent)
    directory = Path(tempfile.mkdtemp(prefix=_PRIVATE, dir=parent))
    descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        os.close(descriptor)


def _delete_abandoned(parent: Path) -> None:
    """Delete the private directories of killed processes, whose locks ended with them."""
    for directory in parent.glob(f"{_PRIVATE}*"):
        with suppress(OSError):  # another user's, in use, or deleted by another call
            if time.time() - directory.stat().st_mtime < _ABANDONED_S:
                continue
            descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(directory, ignore_errors=True)
            finally:
                os.close(descriptor)


def _directory(systemd: str, xdg: str, default: Path) -> Path:
    """The directory that systemd names, or `mnemosyned` in the one that XDG names."""
    if given := os.environ.get(systemd):
        return Path(given.split(":")[0])
    return Path(os.environ.get(xdg) or default) / "mnemosyned"
