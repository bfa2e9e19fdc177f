"""The watcher, built when the first folder is followed."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Self

from mnemosyned.config import Config
from mnemosyned.importers.capture import Capture
from mnemosyned.memory.ports import MemoryStore
from mnemosyned.service.service import MemoryService
from mnemosyned.sleep.lease import ForegroundGate
from mnemosyned.verbs.upkeep import Watch, WatchedFolder, Watching

if TYPE_CHECKING:
    from mnemosyned.importers.watch.watcher import Watcher


class WatcherHost:
    """Holds the watcher, if any folder is followed; safe from any thread."""

    def __init__(
        self,
        *,
        service: MemoryService,
        store: MemoryStore,
        capture: Capture,
        gate: ForegroundGate,
        config: Config,
    ) -> None:
        self._service = service
        self._store = store
        self._capture = capture
        self._gate = gate
        self._config = config
        self._lock = threading.Lock()
        self._watcher: Watcher | None = None

    def __enter__(self) -> Self:
        self._service.provide(Watch, self.watch)
        self._service.watched = self.folders
        if self._config.watch.paths or self._store.watches.folders():
            self._ensure_watcher()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            watcher, self._watcher = self._watcher, None
        if watcher:
            watcher.__exit__()

    def watch(self, request: Watch) -> Watching:
        """Follow more folders or fewer, and list them."""
        if not (request.paths or self._watcher):
            return Watching([])
        return self._ensure_watcher().watch(request)

    def folders(self) -> list[WatchedFolder]:
        """Describe what is followed."""
        watcher = self._watcher
        return watcher.folders() if watcher else []

    def reconfigure(self, config: Config) -> None:
        """Follow what the settings say now."""
        self._config = config
        if self._watcher:
            self._watcher.reconfigure(config.watch)
        elif config.watch.paths:
            self._ensure_watcher()

    def _ensure_watcher(self) -> Watcher:
        # Loaded here: where nothing is followed, nobody waits for it, nor keeps it in memory.
        from mnemosyned.importers.watch import (  # noqa: PLC0415
            watched_files,
            watcher,
        )

        with self._lock:
            if self._watcher is None:
                clock = self._service.sleeper.cycle.clock
                reader = watched_files.FileReader(
                    service=self._service,
                    watches=self._store.watches,
                    agents=self._store.agents,
                    capture=self._capture,
                    clock=clock,
                    limits=watcher.LIMITS,
                )
                self._watcher = watcher.Watcher(
                    watches=self._store.watches,
                    reader=reader,
                    clock=clock,
                    gate=self._gate,
                    settings=self._config.watch,
                ).__enter__()
            return self._watcher
