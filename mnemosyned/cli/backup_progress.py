"""The progress of a backup at a terminal: how much of the copy is written."""

from __future__ import annotations

import sys
from concurrent.futures import Future, wait
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TypeVar

import click

from mnemosyned.client.connection import Connection
from mnemosyned.domain.errors import MnemosynedError
from mnemosyned.verbs.status import Status

R = TypeVar("R")

BAR_EVERY_S = 0.2
PARTS_MAX = 1_000


def watch_copy(client: Connection, named: str | None, copying: Future[R]) -> R:
    """Show the size of the unfinished copy until the backup is done."""
    total, folder = 1, ""
    with suppress(MnemosynedError):  # a busy daemon is asked no second time
        status = client.call(Status())
        total, folder = max(status.bytes_on_disk, 1), status.backup.folder
    with click.progressbar(length=total, label="backing up", file=sys.stderr) as bar:
        while not wait([copying], timeout=BAR_EVERY_S).done:
            written = min(_written(named, folder), total - 1)  # checking comes last
            bar.update(max(written - bar.pos, 0))
        report = copying.result()
        bar.update(total - bar.pos)
    return report


def _written(named: str | None, folder: str) -> int:
    """The bytes of the copy so far; 0 where it cannot be seen."""
    with suppress(OSError):
        if named and not Path(named).is_dir():
            return Path(f"{named}.partial").stat().st_size
        parts = islice(Path(named or folder).glob("memory-*.db.partial"), PARTS_MAX)
        return max((part.stat().st_size for part in parts), default=0)
    return 0
