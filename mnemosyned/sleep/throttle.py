"""Who else is at work: a cycle gives way to what somebody waits for."""

from __future__ import annotations

import threading
import time

GONE_S = 0.5
"""So long after the last answer the machine is the cycle's again."""
GIVE_WAY_S = 0.05
"""The longest that a group waits: a cycle gets on whatever the traffic."""
LOOK_S = 0.001
REST_TIMES = 6
"""In company a cycle leaves the disk, the writer and the processor alone for so many times as long
as it had them. It takes three to five times as long then; p95 of remember, up to five times what it
is without a cycle, comes down to one to two times."""
REST_MAX_S = 0.03
"""So much at most: a cycle gets on however slow the machine is."""


BUSY_ANSWERS = 20
"""Answers in one to two seconds from which on somebody would notice a purge of the file."""


class Company:
    """Counts the requests that are being answered, each a `with` block; safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting = 0
        self._last = time.monotonic() - GONE_S
        self._second = 0
        self._answers = 0
        """Answers in the second that is counted."""
        self._answers_before = 0
        """Answers in the second before it."""

    def __enter__(self) -> None:
        """Somebody waits while the block runs."""
        with self._lock:
            self._waiting += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._waiting -= 1
            self._last = time.monotonic()
            self._count(int(self._last))
            self._answers += 1

    def _count(self, second: int) -> None:
        """Begin to count another second, if it is another."""
        if second != self._second:
            self._answers_before = self._answers if second == self._second + 1 else 0
            self._answers = 0
            self._second = second

    @property
    def busy(self) -> bool:
        """Whether many are being answered, and not only one after the other now and then."""
        with self._lock:
            self._count(int(time.monotonic()))
            return self._answers + self._answers_before >= BUSY_ANSWERS

    @property
    def present(self) -> bool:
        """Whether somebody waits, or did a moment ago and may ask again."""
        return self._waiting > 0 or time.monotonic() - self._last < GONE_S

    @property
    def quiet_s(self) -> float:
        """How long nobody has asked for anything."""
        return 0.0 if self._waiting else time.monotonic() - self._last

    def give_way(self) -> None:
        """Wait until nobody waits, for a moment at most."""
        ends = time.monotonic() + GIVE_WAY_S
        while self._waiting and time.monotonic() < ends:
            time.sleep(LOOK_S)

    def rest(self, worked_s: float) -> None:
        """After work that others may have waited for: leave them alone for a while."""
        if self.present:
            time.sleep(min(worked_s * REST_TIMES, REST_MAX_S))
