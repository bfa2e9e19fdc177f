"""The feed of the live view: what it asks of the daemon, and remembers between two answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mnemosyned.client.connection import Connection
from mnemosyned.domain.errors import UnknownVerb
from mnemosyned.domain.memory import MemoryRecord
from mnemosyned.domain.sleep.cycles import LogEntry
from mnemosyned.top.figures import LastMinute, read_figures
from mnemosyned.verbs.listing import ListMemories
from mnemosyned.verbs.sleep import Log
from mnemosyned.verbs.status import Stats, Status

LOG_ROWS = 300
LATEST = 100
"""Newest memories that are shown."""
RUNNING_LOG_S = 2.0
"""Seconds between two looks at the log while a cycle runs."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything the view shows of one moment."""

    stats: Stats
    cycles: Sequence[LogEntry]
    latest: Sequence[MemoryRecord]
    watched_s: float
    """How long the running cycle has been watched; 0 where none runs."""


class Feed:
    """Reads the daemon's state, one reader at a time.

    The log and the newest memories count as requests, and the daemon puts some work off until
    there are none: they are only read again where the state says that they changed.
    """

    def __init__(
        self, connection: Connection, *, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self.minute = LastMinute()
        self._connection = connection
        self._now_s = now_s
        self._cycles: Sequence[LogEntry] = ()
        self._latest: Sequence[MemoryRecord] = ()
        self._seen: dict[str, object] = {}
        self._running_since: float | None = None

    def read(self) -> Snapshot:
        """Ask for what is new. Raises `MnemosynedError` where the daemon does not answer."""
        stats = self._connection.call(Status())
        self.minute.add(read_figures(self._page(), moment=self._now_s()))
        watched_s = self._watched_s(stats)
        looks = int(watched_s // RUNNING_LOG_S)
        if self._changed("cycles", (stats.pid, stats.sleep.last_cycle, looks)):
            self._cycles = self._connection.call(Log(limit=LOG_ROWS)).rows
        totals = {
            tier: (total.count, total.characters) for tier, total in stats.tiers.items()
        }
        if self._changed("latest", (stats.pid, totals)):
            self._latest = self._connection.call(ListMemories(limit=LATEST)).memories
        return Snapshot(stats, self._cycles, self._latest, watched_s)

    def _page(self) -> str:
        """The figures of the daemon; empty where it does not show them, as to one of its owners."""
        try:
            return self._connection.page("/metrics")
        except UnknownVerb:
            return ""

    def forget_seen(self) -> None:
        """Read all of it again, whatever the state says."""
        self._seen.clear()

    def _changed(self, name: str, state: object) -> bool:
        changed = self._seen.get(name) != state
        self._seen[name] = state
        return changed

    def _watched_s(self, stats: Stats) -> float:
        if not stats.sleep.running:
            self._running_since = None
            return 0.0
        now = self._now_s()
        if self._running_since is None:
            self._running_since = now
        return now - self._running_since
