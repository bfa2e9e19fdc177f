"""Lets background consolidation yield while requests are in flight."""

from __future__ import annotations

import threading
import time

ACTIVE_S = 0.5
"""Seconds after the last answer during which another request is expected."""
YIELD_MAX_S = 0.05
"""The longest that a group waits for requests: a cycle makes progress whatever the traffic."""
POLL_S = 0.001
REST_TIMES = 9
"""While requests come in, a cycle leaves disk, writer and processor alone for this many times as
long as it used them. It then takes ten times as long; p95 of remember, up to three times what it is
without a cycle, comes down to one and a half times."""
REST_MAX_S = 0.05
"""The longest rest: a cycle makes progress however slow the machine is."""
BUSY_ANSWERS = 20
"""Answers in one to two seconds from which on clients would notice a purge of the file."""


class ForegroundGate:
    """Counts the requests in flight, each a `with` block; safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._in_flight = 0
        self._last = time.monotonic() - ACTIVE_S
        self._second = 0
        self._answers = 0
        """Answers in the second that is counted."""
        self._answers_before = 0
        """Answers in the second before it."""

    def __enter__(self) -> None:
        """Count a request as in flight while the block runs."""
        with self._lock:
            self._in_flight += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._in_flight -= 1
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
        """Whether many requests are answered, not merely one now and then."""
        with self._lock:
            self._count(int(time.monotonic()))
            return self._answers + self._answers_before >= BUSY_ANSWERS

    @property
    def active(self) -> bool:
        """Whether a request is in flight, or was a moment ago and may be followed by another."""
        return self._in_flight > 0 or time.monotonic() - self._last < ACTIVE_S

    @property
    def quiet_s(self) -> float:
        """Seconds since the last request."""
        return 0.0 if self._in_flight else time.monotonic() - self._last

    def yield_to_requests(self) -> None:
        """Wait until no request is in flight, `YIELD_MAX_S` at most."""
        ends = time.monotonic() + YIELD_MAX_S
        while self._in_flight and time.monotonic() < ends:
            time.sleep(POLL_S)

    def rest_after(self, worked_s: float) -> None:
        """Leave the machine to requests for a while, after work that took `worked_s`."""
        if self.active:
            time.sleep(min(worked_s * REST_TIMES, REST_MAX_S))


class OwnerGate(ForegroundGate):
    """The requests of one owner: cycles yield to those of all owners, as they share the machine."""

    def __init__(self, shared: ForegroundGate) -> None:
        super().__init__()
        self._shared = shared

    def __enter__(self) -> None:
        super().__enter__()
        self._shared.__enter__()

    def __exit__(self, *_: object) -> None:
        self._shared.__exit__()
        super().__exit__()

    @property
    def busy(self) -> bool:
        return self._shared.busy

    @property
    def active(self) -> bool:
        return self._shared.active

    def yield_to_requests(self) -> None:
        self._shared.yield_to_requests()
