"""Directories for databases that end with their program."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 each directory in it is private, by `mkdtemp`
"""A file system in memory, on Linux."""
_PRIVATE = "mnemosyned-memory-"
_ABANDONED_S = 60.0
"""Age from which a private directory without a lock is taken for a killed process's."""


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
