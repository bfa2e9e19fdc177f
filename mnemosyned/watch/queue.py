"""Files that wait to be read, each until it has been quiet for a while."""

from __future__ import annotations

import heapq
import threading
import time
from dataclasses import dataclass


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
