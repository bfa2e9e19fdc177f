"""The watcher of folders: it waits for changes and reads changed files in turn."""

from __future__ import annotations

import errno
import heapq
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
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

from mnemosyned.config.settings import WatchConfig
from mnemosyned.errors import InvalidRequest, MnemosynedError, NotFound, ShuttingDown
from mnemosyned.importers.importer import PARSE_ERRORS
from mnemosyned.importers.watch.watched_files import (
    FileReader,
    Scan,
    WatchLimits,
    files_below,
    may_have_format,
    state_of,
)
from mnemosyned.logs import logger
from mnemosyned.memory.capture import WatchStore
from mnemosyned.memory.clock import Clock
from mnemosyned.paths import path_fault, printable_path, shown_path
from mnemosyned.sleep.lease import ForegroundGate
from mnemosyned.verbs.upkeep import PATHS_MAX, Watch, WatchedFolder, Watching


@dataclass(slots=True)
class _Wait:
    due: float
    latest: float


class DueFiles:
    """Paths with the time at which each is to be read; safe from any thread."""

    def __init__(self, *, files_max: int) -> None:
        self._files_max = files_max
        self._changed = threading.Condition()
        self._waits: dict[str, _Wait] = {}
        self._heap: list[tuple[float, str]] = []
        """Every time that was ever set and has not come; those in `_waits` are in force."""
        self._stopping = False
        self._woken = False

    def __len__(self) -> int:
        with self._changed:
            return len(self._waits)

    def put(self, path: str, *, after_s: float, at_most_s: float) -> None:
        """Read a path once it has been quiet for `after_s`, or at the most `at_most_s` from now."""
        now = time.monotonic()
        with self._changed:
            wait = self._waits.get(path)
            if wait is None and len(self._waits) >= self._files_max:
                return  # the next scan finds it
            latest = wait.latest if wait else now + at_most_s
            due = min(now + after_s, latest)
            self._waits[path] = _Wait(due, latest)
            heapq.heappush(self._heap, (due, path))
            self._changed.notify()

    def next(self, timeout_s: float) -> str:
        """Return a path that is due, and forget it; empty after the timeout, or when woken."""
        until = time.monotonic() + timeout_s
        with self._changed:
            while not (self._stopping or self._woken):
                now = time.monotonic()
                due = self._first_due(until)
                if due <= now and self._heap:
                    _, path = heapq.heappop(self._heap)
                    del self._waits[path]
                    return path
                if now >= until:
                    return ""
                self._changed.wait(min(due, until) - now)
            self._woken = False
            return ""

    def _first_due(self, otherwise: float) -> float:
        """Return when the first file is due; drops times that were put off."""
        while self._heap:
            due, path = self._heap[0]
            wait = self._waits.get(path)
            if wait and wait.due == due:
                return due
            heapq.heappop(self._heap)
        return otherwise

    def rest(self, seconds: float) -> None:
        """Wait, unless it is time to stop."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopping, seconds)

    def wake(self) -> None:
        """Have the thread that waits look at once at what it follows."""
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    @property
    def stopping(self) -> bool:
        """Whether the thread that reads should end."""
        with self._changed:
            return self._stopping

    def stop(self) -> None:
        """Wake the thread that waits, for the last time."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()


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


LIMITS = WatchLimits()

log = logger()


class Watcher:
    """Follows folders; safe from any thread."""

    def __init__(
        self,
        *,
        watches: WatchStore,
        reader: FileReader,
        clock: Clock,
        gate: ForegroundGate,
        settings: WatchConfig,
        limits: WatchLimits = LIMITS,
    ) -> None:
        self._watches = watches
        self._reader = reader
        self._clock = clock
        self._gate = gate
        self._settings = settings
        self._limits = limits
        self._due = DueFiles(files_max=settings.files_max)
        self._notifications = Notifications(self._note_change, self._apply)
        self._problems: dict[str, str] = {}
        self._without_events = False
        self._roots: list[str] = []
        self._places: list[str] = []
        """Device and inode of the folder that tells of each root."""
        self._changed = threading.Event()
        self._scanning = False
        self._rested_at = time.monotonic()
        """When the last pause ended."""
        self._pauses: dict[str, float] = {}
        """Seconds that files whose reading takes long wait for the next one."""
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self._folders():
            self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._due.stop()
        if self._thread:
            self._thread.join(10.0)
        self._notifications.close()

    def reconfigure(self, settings: WatchConfig) -> None:
        """Follow what the settings say now."""
        self._settings = settings
        self._apply()

    # ----------------------------------------------------------------- verb

    def watch(self, request: Watch) -> Watching:
        """Follow more folders or fewer, and list them."""
        for path in request.paths:
            if request.remove:
                self._remove(path)
            else:
                self._add(path)
        if request.paths:
            self._apply()
        return Watching(self.folders(), len(self._due) + self._scanning)

    def folders(self) -> list[WatchedFolder]:
        """Describe what is followed."""
        return [
            self._described(path, by_settings=by_settings)
            for path, by_settings in self._folders().items()
        ]

    def _add(self, path: str) -> None:
        problem = _unfit(path)
        if problem:
            raise InvalidRequest(
                f"{shown_path(path)} cannot be watched: {problem}", field="paths"
            )
        folders = self._folders()
        if len(folders) >= PATHS_MAX and path not in folders:
            raise InvalidRequest(
                f"{PATHS_MAX} folders are watched already; remove one, or watch one above them",
                field="paths",
            )
        self._watches.add_folder(_plain(path), self._clock.now())

    def _remove(self, path: str) -> None:
        if self._watches.remove_folder(_plain(path)):
            return
        if _plain(path) in self._folders():
            raise InvalidRequest(
                f"{shown_path(path)} is watched by the setting watch.paths; remove it there",
                field="paths",
            )
        raise NotFound(
            f"{shown_path(path)} is not watched; mnem watch --list shows what is"
        )

    def _folders(self) -> dict[str, bool]:
        """Return what is followed, and whether it is by the settings."""
        named = self._settings.paths
        configured = [_plain(os.path.expanduser(path)) for path in named]  # noqa: PTH111 no such user: as it is
        added = dict.fromkeys(self._watches.folders(), False)
        return {**added, **dict.fromkeys(configured, True)}

    def _described(self, path: str, *, by_settings: bool) -> WatchedFolder:
        totals = self._watches.totals(path)
        return WatchedFolder(
            path=path,
            added_by="settings" if by_settings else "command",
            files=totals.files,
            stored=totals.stored,
            read_at=totals.read_at,
            problem=_unfit(path) or self._problems.get(path, ""),
        )

    # --------------------------------------------------------------- thread

    def _apply(self) -> None:
        """Have the thread take up what is followed now."""
        if self._thread:
            self._changed.set()
            self._due.wake()
        elif self._folders():
            self._start()

    def _start(self) -> None:
        self._changed.set()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._due.stopping:
            try:
                self._follow()
            except Exception:
                log.exception("watch_failed")
                self._due.rest(self._limits.retry_s)

    def _follow(self) -> None:
        """Read what is due, and in between what a scan finds, until it is time to stop."""
        scan: Iterator[str] = iter(())
        rescan_at = look_at = 0.0
        while not self._due.stopping:
            if time.monotonic() >= look_at:
                look_at = time.monotonic() + self._limits.look_s
                if _places(self._roots) != self._places:
                    self._changed.set()
            if self._changed.is_set():
                self._changed.clear()
                self._begin()
                # From the beginning: what changed before there were events is found.
                scan, self._scanning = self._scan(), True
            if not self._scanning and time.monotonic() >= rescan_at:
                scan, self._scanning = self._scan(), True
            path = self._due.next(
                0.0
                if self._scanning
                else max(0.0, min(rescan_at, look_at) - time.monotonic())
            )
            if not path and self._scanning:
                path = next(scan, "")
                if not path:
                    self._scanning = False
                    pause = self._limits
                    rescan_at = time.monotonic() + (
                        pause.poll_s if self._without_events else pause.rescan_s
                    )
            if path:
                self._read(path)

    def _begin(self) -> None:
        self._roots = list(self._folders())
        self._places = _places(self._roots)
        fit = [root for root in self._roots if not _unfit(root)]
        self._problems = self._notifications.follow(fit)
        self._without_events = bool(self._problems)
        for folder, problem in self._problems.items():
            log.warning("watch_without_events", folder=folder, reason=problem)

    def _scan(self) -> Iterator[str]:
        """Yield the files that are not as they were when they were last read."""
        room = self._settings.files_max
        for root in self._roots:
            if not os.path.exists(root):  # noqa: PTH110
                continue  # it may come back, and is then read on
            scan = Scan()
            states = self._watches.states(root)
            for file in files_below(root, scan):
                if room <= 0:
                    limit = f"only {self._settings.files_max:,} files are followed; raise watch.files_max"
                    self._problems[root] = limit
                    return
                room -= 1
                if states.pop(printable_path(file.path), None) != (
                    file.size,
                    file.modified_ns,
                ):
                    yield file.path
            missing = [path for path in states if state_of(path) is None]
            # Those that moved were found under their new name by now.
            self._watches.drop_files(missing)

    def _read(self, path: str) -> None:
        began = time.thread_time()
        try:
            stored = self._reader.read(path, self._rest)
        except ShuttingDown:  # the rest is read after the next start
            self._due.rest(self._limits.retry_s)
            return
        except MnemosynedError as error:
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
            self._note_effort(path, time.thread_time() - began, stored)
            self._rest()
            return
        self._due.put(
            path, after_s=self._limits.retry_s, at_most_s=self._limits.retry_s
        )

    def _note_effort(self, path: str, took_s: float, stored: int) -> None:
        """Have a file that takes long for what is new in it wait for its next reading."""
        limits = self._limits
        self._pauses.pop(path, None)
        has_room = len(self._pauses) < limits.slow_files_max
        if took_s > limits.slow_s * max(1, stored) and has_room:
            self._pauses[path] = limits.slow_pause * took_s

    def _rest(self) -> bool:
        """Leave the processor to others; whether it is time to stop."""
        limits, now = self._limits, time.monotonic()
        self._due.rest(min(limits.rest_max_s, max(0.0, now - self._rested_at)))
        while self._gate.busy and time.monotonic() < now + limits.busy_s:
            if self._due.stopping:
                break
            self._due.rest(limits.rest_max_s)
        self._rested_at = time.monotonic()
        return self._due.stopping

    def _note_change(self, path: str) -> None:
        """Take up an event; called by another thread."""
        if not may_have_format(path) or not self._is_followed(path):
            return
        limits, pause = self._limits, self._pauses.get(path, 0.0)
        if path.endswith((".jsonl", ".json")) or "hist" in path.rpartition("/")[2]:
            after_s = at_most_s = limits.grow_s
        else:
            after_s, at_most_s = self._settings.settle_s, limits.settle_max_s
        self._due.put(
            path, after_s=max(after_s, pause), at_most_s=max(at_most_s, pause)
        )

    def _is_followed(self, path: str) -> bool:
        """Whether a path is below what is followed, and not in a hidden folder there."""
        for root in self._roots:
            if path == root:
                return True
            below = path.removeprefix(f"{root}/")
            if below != path:
                return not any(part.startswith(".") for part in below.split("/")[:-1])
        return False


def _places(roots: Iterable[str]) -> list[str]:
    """Return device and inode of the folder that tells of each path; empty where the path is not."""
    places = []
    for root in roots:
        try:
            status = os.stat(place_of(root))  # noqa: PTH116
        except OSError:
            places.append("")
        else:
            places.append(f"{status.st_dev}:{status.st_ino}")
    return places


def _plain(path: str) -> str:
    return os.path.realpath(path)


def _unfit(path: str) -> str:
    """Return why a path cannot be followed; empty if it can."""
    if not os.path.isabs(path):  # noqa: PTH117
        return "its path is not absolute"
    if fault := path_fault(path):
        return fault
    plain = _plain(path)
    if plain in {"/", _plain(str(Path.home()))}:
        return "it holds everything; name folders in it"
    if not os.path.exists(plain):  # noqa: PTH110
        return "there is no such folder or file"
    if plain != printable_path(plain):
        return "its name is not UTF-8; watch the folder above it"
    return "" if os.access(plain, os.R_OK) else "permission denied"
