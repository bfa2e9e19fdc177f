"""The watcher of folders: it waits for changes and reads changed files in turn."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Self

import msgspec
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

from mnemosyned import errors, paths
from mnemosyned.importers.capture import DueQueue
from mnemosyned.importers.importer import PARSE_ERRORS, file_identity
from mnemosyned.importers.watch import watched_files
from mnemosyned.logs import logger
from mnemosyned.service.service import MemoryService
from mnemosyned.verbs.upkeep import PATHS_MAX, Watch, WatchedFolder, Watching

CHANGES = frozenset(
    {EVENT_TYPE_CLOSED, EVENT_TYPE_CREATED, EVENT_TYPE_MODIFIED, EVENT_TYPE_MOVED}
)
FOLDERS_MAX = 20_000
"""Maximum folders below a watched one; each takes a kilobyte here and one in the kernel."""


class Notifications(FileSystemEventHandler):
    """Events of files below watched folders."""

    def __init__(
        self, on_change: Callable[[str], None], on_loss: Callable[[], None]
    ) -> None:
        """Call `on_change` for each changed file, `on_loss` for a deleted watched folder."""
        self._on_change = on_change
        self._on_loss = on_loss
        self._observer: BaseObserver | None = None
        self._places: set[str] = set()

    def follow(self, folders: list[str]) -> dict[str, str]:
        """Watch only these paths from now on; return {path: reason} for paths without events."""
        self.close()
        if not folders:
            return {}
        observer = Observer()
        observer.start()
        problems = {}
        self._places = set(map(event_folder, folders))
        for folder in folders:
            below = (len(folders) for _, folders, _ in os.walk(folder))
            if sum(islice(below, FOLDERS_MAX)) >= FOLDERS_MAX:
                problems[folder] = (
                    f"no events: it has more than {FOLDERS_MAX:,} folders"
                )
                continue
            try:
                place = event_folder(folder)
                observer.schedule(self, place, recursive=place == folder)
            except OSError as error:
                problems[folder] = f"no events: {error.strerror or error}"
        self._observer = observer
        return problems

    def close(self) -> None:
        """Stop watching all paths."""
        observer, self._observer = self._observer, None
        if observer is None:
            return
        with suppress(RuntimeError):
            observer.stop()
            observer.join(5.0)

    def on_any_event(self, event: FileSystemEvent) -> None:
        """Call `on_change` with a changed file's path, or `on_loss` if a watched folder was deleted."""
        if event.event_type == EVENT_TYPE_DELETED and event.src_path in self._places:
            self._on_loss()
        if event.is_directory or event.event_type not in CHANGES:
            return
        self._on_change(os.fsdecode(event.dest_path or event.src_path))


def event_folder(path: str) -> str:
    """Return the folder to watch for changes of a path: a file's folder, or the path itself."""
    return os.path.dirname(path) if os.path.isfile(path) else path  # noqa: PTH113, PTH120


GROW_S = 0.5
"""Delay from a change to the reading of a growing file."""
SETTLE_MAX_S = 600.0
"""Longest delay of a note that changes all the time."""
SLOW_S = 0.05
"""Processor time per stored memory above which a file that is read from its beginning is read less often."""
SLOW_PAUSE = 20.0
"""Factor of the time of a slow reading for which the file then waits."""
RETRY_S = 30.0
"""Pause after a failure of the store."""
REST_MAX_S = 0.02
"""Longest pause between two readings; a pause is as long as the reading before it."""
BUSY_S = 1.0
"""Maximum wait of a reading while requests come in."""
RESCAN_S = 600.0
"""Interval of scans for changes without an event."""
POLL_S = 10.0
"""Interval of scans where there are no events."""
LOOK_S = 2.0
"""Interval of checks whether a folder was deleted, replaced or restored."""

log = logger()


class Watcher:
    """Watches folders; safe from any thread."""

    def __init__(
        self, service: MemoryService, reader: watched_files.FileReader
    ) -> None:
        self._watches = service.store.watches
        self._reader = reader
        self._clock = service.sleeper.cycle.clock
        self._gate = service.sleeper.cycle.gate
        self._settings = service.settings
        self._due = DueQueue(self._settings.config.watch.files_max)
        self._notifications = Notifications(self._put_changed_file, self.update_folders)
        self._problems: dict[str, str] = {}
        self._without_events = False
        self._roots: list[str] = []
        self._places: list[str] = []
        """Device and inode of each root's event folder."""
        self._changed = threading.Event()
        self._scanning = False
        self._rested_at = time.monotonic()
        """End of the last pause."""
        self._pauses: dict[str, float] = {}
        """Waits, in seconds, of files whose reading takes long."""
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self._list_watched_paths():
            self._start_thread()
        return self

    def __exit__(self, *_: object) -> None:
        self._due.stop()
        if self._thread:
            self._thread.join(10.0)
        self._notifications.close()

    # ----------------------------------------------------------------- verb

    def watch(self, request: Watch) -> Watching:
        """Add or remove the request's paths, if any; return all watched folders."""
        for path in request.paths:
            if request.remove:
                self._remove_folder(path)
            else:
                self._add_folder(path)
        if request.paths:
            self.update_folders()
        return Watching(self.folders(), len(self._due) + self._scanning)

    def folders(self) -> list[WatchedFolder]:
        """Return the watched folders with their counts of files and memories, and problems."""
        folders = []
        for path, by_settings in self._list_watched_paths().items():
            totals = self._watches.totals(path)
            folders.append(
                WatchedFolder(
                    path=path,
                    added_by="settings" if by_settings else "command",
                    files=totals.files,
                    stored=totals.stored,
                    read_at=totals.read_at,
                    problem=_find_watch_problem(path) or self._problems.get(path, ""),
                )
            )
        return folders

    def _add_folder(self, path: str) -> None:
        """Save that a folder is to be watched. Raises `InvalidRequest` if it cannot be watched."""
        problem = _find_watch_problem(path)
        if not problem and not watched_files.is_readable(path):
            problem = "it is no transcript, note, JSON lines or shell history"
        if problem:
            raise errors.InvalidRequest(
                f"{paths.shown_path(path)} cannot be watched: {problem}", field="paths"
            )
        folders = self._list_watched_paths()
        if len(folders) >= PATHS_MAX and path not in folders:
            raise errors.InvalidRequest(
                f"{PATHS_MAX} folders are watched already; remove one, or watch one above them",
                field="paths",
            )
        self._watches.add_folder(os.path.realpath(path), self._clock.now())

    def _remove_folder(self, path: str) -> None:
        """Stop watching a folder. Raises `NotFound`, or `InvalidRequest` if the settings name it."""
        plain = os.path.realpath(path)
        if self._watches.remove_folder(plain):
            return
        if plain in self._list_watched_paths():
            raise errors.InvalidRequest(
                f"{paths.shown_path(path)} is watched by the setting watch.paths; remove it there",
                field="paths",
            )
        raise errors.NotFound(
            f"{paths.shown_path(path)} is not watched; mnem watch --list shows what is"
        )

    def _list_watched_paths(self) -> dict[str, bool]:
        """Return the watched paths, each with True if it is named by the settings, else False."""
        named = self._settings.config.watch.paths
        configured = [os.path.realpath(os.path.expanduser(path)) for path in named]  # noqa: PTH111 no such user: as it is
        added = dict.fromkeys(self._watches.folders(), False)
        return {**added, **dict.fromkeys(configured, True)}

    # --------------------------------------------------------------- thread

    def update_folders(self) -> None:
        """Make the thread watch the saved folders; start the thread if there are folders."""
        if self._thread:
            self._changed.set()
            self._due.wake()
        elif self._list_watched_paths():
            self._start_thread()

    def _start_thread(self) -> None:
        """Start the thread that watches the folders and reads changed files."""
        self._changed.set()
        self._thread = threading.Thread(
            target=self._run_thread, name="watch", daemon=True
        )
        self._thread.start()

    def _run_thread(self) -> None:
        """Watch and read files until stopped; log any other error and begin again after a pause."""
        while not self._due.stopping:
            try:
                self._read_until_stopped()
            except Exception:
                log.exception("watch_failed")
                self._due.rest(RETRY_S)

    def _read_until_stopped(self) -> None:
        """Read changed files as they become due, and files found by scans, until stopped."""
        scan: Iterator[str] = iter(())
        rescan_at = look_at = 0.0
        while not self._due.stopping:
            if time.monotonic() >= look_at:
                look_at = time.monotonic() + LOOK_S
                if _read_folder_identities(self._roots) != self._places:
                    self._changed.set()
            must_scan = not self._scanning and time.monotonic() >= rescan_at
            if self._changed.is_set():
                self._changed.clear()
                self._roots = list(self._list_watched_paths())
                self._places = _read_folder_identities(self._roots)
                fit = [root for root in self._roots if not _find_watch_problem(root)]
                self._problems = self._notifications.follow(fit)
                self._without_events = bool(self._problems)
                for folder, problem in self._problems.items():
                    log.warning("watch_without_events", folder=folder, reason=problem)
                must_scan = True  # finds also changes from before there were events
            if must_scan:
                scan, self._scanning = self._scan_roots(), True
            wait_s = max(0.0, min(rescan_at, look_at) - time.monotonic())
            path = self._due.take(0.0 if self._scanning else wait_s)
            if not path and self._scanning:
                path = next(scan, "")
                if not path:
                    self._scanning = False
                    pause_s = POLL_S if self._without_events else RESCAN_S
                    rescan_at = time.monotonic() + pause_s
            if path:
                self._read_file(path)

    def _scan_roots(self) -> Iterator[str]:
        """Yield the paths of watched files that changed since their last reading; forget missing files."""
        room = files_max = self._settings.config.watch.files_max
        for root in self._roots:
            if not os.path.exists(root):  # noqa: PTH110
                continue  # it may come back, and is then read on
            states = self._watches.states(root)
            for path, status in watched_files.files_below(root):
                if room <= 0:
                    self._problems[root] = (
                        f"only {files_max:,} files are watched; raise watch.files_max"
                    )
                    return
                room -= 1
                present = (status.st_size, status.st_mtime_ns)
                if states.pop(paths.printable_path(path), None) != present:
                    yield path
            missing = [path for path in states if watched_files.status_of(path) is None]
            # Those that moved were found under their new name by now.
            self._watches.drop_files(missing)

    def _read_file(self, path: str) -> None:
        """Store a changed file's new content, then pause; retry after a storage error."""
        began = time.thread_time()
        try:
            stored = self._reader.read(path, self._pause)
        except errors.ShuttingDown:  # the rest is read after the next start
            self._due.rest(RETRY_S)
            return
        except errors.MnemosynedError as error:
            log.warning("watched_file_not_read", code=error.code)
        except OSError as error:
            log.info("watched_file_not_read", reason=error.strerror)
            return
        except (*PARSE_ERRORS, msgspec.MsgspecError):
            log.exception("watched_file_not_read")
            return
        else:
            if stored:
                log.info("watched_file_read", stored=stored)
            took_s = time.thread_time() - began
            self._pauses.pop(path, None)
            has_room = len(self._pauses) < 1_000
            if took_s > SLOW_S * max(1, stored) and has_room:
                self._pauses[path] = SLOW_PAUSE * took_s
            self._pause()
            return
        self._due.put(path, after_s=RETRY_S)

    def _pause(self) -> bool:
        """Rest, then wait up to `BUSY_S` while requests are served; return True if the watcher is stopping."""
        now = time.monotonic()
        self._due.rest(min(REST_MAX_S, max(0.0, now - self._rested_at)))
        while self._gate.busy and time.monotonic() < now + BUSY_S:
            if self._due.stopping:
                break
            self._due.rest(REST_MAX_S)
        self._rested_at = time.monotonic()
        return self._due.stopping

    def _put_changed_file(self, path: str) -> None:
        """Queue a changed file, if it is watched, for a time when it has settled (called by the observer)."""
        if not watched_files.may_have_format(path) or not self._is_watched(path):
            return
        pause = self._pauses.get(path, 0.0)
        if path.endswith((".jsonl", ".json")) or "hist" in path.rpartition("/")[2]:
            after_s = at_most_s = GROW_S
        else:
            after_s, at_most_s = self._settings.config.watch.settle_s, SETTLE_MAX_S
        self._due.put(
            path, after_s=max(after_s, pause), at_most_s=max(at_most_s, pause)
        )

    def _is_watched(self, path: str) -> bool:
        """Return True if a path is a watched path, or below one without a hidden folder between."""
        for root in self._roots:
            if path == root:
                return True
            below = path.removeprefix(f"{root}/")
            if below != path:
                return not any(part.startswith(".") for part in below.split("/")[:-1])
        return False


def _read_folder_identities(roots: Iterable[str]) -> list[str]:
    """Return "device:inode" of the folder to watch for each path; empty texts for missing ones."""
    places = []
    for root in roots:
        try:
            places.append(file_identity(os.stat(event_folder(root))))  # noqa: PTH116
        except OSError:
            places.append("")
    return places


def _find_watch_problem(path: str) -> str:
    """Return the reason why a path cannot be watched, as a clause; empty if it can."""
    if not os.path.isabs(path):  # noqa: PTH117
        return "its path is not absolute"
    if fault := paths.path_fault(path):
        return fault
    plain = os.path.realpath(path)
    if plain in {"/", os.path.realpath(Path.home())}:
        return "it holds everything; name folders in it"
    if not os.path.exists(plain):  # noqa: PTH110
        return "there is no such folder or file"
    if plain != paths.printable_path(plain):
        return "its name is not UTF-8; watch the folder above it"
    return "" if os.access(plain, os.R_OK) else "permission denied"
