"""Events of the file system, by inotify through watchdog."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from itertools import islice

from watchdog.events import (
    EVENT_TYPE_CLOSED,
    EVENT_TYPE_CREATED,
    EVENT_TYPE_DELETED,
    EVENT_TYPE_MODIFIED,
    EVENT_TYPE_MOVED,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver

CHANGES = frozenset(
    {EVENT_TYPE_CLOSED, EVENT_TYPE_CREATED, EVENT_TYPE_MODIFIED, EVENT_TYPE_MOVED}
)
CLOSE_S = 5.0
FOLDERS_MAX = 20_000
"""Folders below a followed one: each takes a kilobyte here and one in the system."""


def check_room(folder: str) -> None:
    """Refuse events of more folders than the system or we have room for. Raises `OSError`."""
    below = (len(folders) for _, folders, _ in os.walk(folder))
    if sum(islice(below, FOLDERS_MAX)) >= FOLDERS_MAX:
        raise OSError(errno.ENOSPC, f"it has more than {FOLDERS_MAX:,} folders")


class Notifications:
    """Tells which paths changed below some folders."""

    def __init__(
        self, on_change: Callable[[str], None], on_loss: Callable[[], None]
    ) -> None:
        """`on_change` is called with the path of each file, in a thread of its own.

        `on_loss` is called when a followed folder is deleted: its events end, also where one of
        the same name is made at once.
        """
        self._on_change = on_change
        self._on_loss = on_loss
        self._observer: BaseObserver | None = None

    def follow(self, folders: list[str]) -> dict[str, str]:
        """Follow these folders in place of those before; returns why some cannot be followed."""
        self.close()
        if not folders:
            return {}
        observer = Observer()
        observer.start()
        problems = {}
        for folder in folders:
            try:
                check_room(folder)
                self._schedule(observer, folder)
            except OSError as error:
                problems[folder] = f"no events: {error.strerror or error}"
        self._observer = observer
        return problems

    def close(self) -> None:
        """Stop following."""
        observer, self._observer = self._observer, None
        if observer is None:
            return
        with suppress(RuntimeError):
            observer.stop()
            observer.join(CLOSE_S)

    def _schedule(self, observer: BaseObserver, folder: str) -> None:
        place = place_of(folder)
        handler = _Handler(self._on_change, self._on_loss, place)
        observer.schedule(handler, place, recursive=place == folder)


def place_of(path: str) -> str:
    """Return the folder whose events tell of a path: of a file, the one that it is in."""
    return os.path.dirname(path) if os.path.isfile(path) else path  # noqa: PTH113, PTH120


class _Handler(FileSystemEventHandler):
    """Hands the path of each changed file on."""

    def __init__(
        self, on_change: Callable[[str], None], on_loss: Callable[[], None], place: str
    ) -> None:
        self._on_change = on_change
        self._on_loss = on_loss
        self._place = place

    def on_any_event(self, event: FileSystemEvent) -> None:
        if event.event_type == EVENT_TYPE_DELETED and event.src_path == self._place:
            self._on_loss()
        if event.is_directory or event.event_type not in CHANGES:
            return
        self._on_change(os.fsdecode(event.dest_path or event.src_path))
