"""The log in a file of limited size, for a daemon that no service manager keeps a log of."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from mnemosyned.domain.errors import ConfigInvalid

BYTES_MAX = 5_000_000
"""Size from which a new file is begun; one older file is kept."""


class LogFile:
    """Standard output and standard error in a file, and in a new one when that is full.

    Raises `ConfigInvalid` where the file cannot be written to.
    """

    def __init__(self, path: Path, *, bytes_max: int = BYTES_MAX) -> None:
        self._path = path
        self._bytes_max = bytes_max
        try:
            self._open()
        except OSError as error:
            raise ConfigInvalid(
                f"--log-file: {path} cannot be written to: {error.strerror}"
            ) from error

    def turn_over(self) -> None:
        """Begin a new file if this one is full; on a disk that fails the old one goes on."""
        with suppress(OSError):
            if self._path.stat().st_size >= self._bytes_max:
                self._path.replace(self._path.with_name(f"{self._path.name}.1"))
                self._open()

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(self._path, flags, 0o600)
        for standard in (1, 2):
            os.dup2(descriptor, standard)
        os.close(descriptor)
