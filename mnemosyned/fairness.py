"""Fair turns of owners on the interpreter, which runs one thread at a time."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

QUANTUM_S = 0.0005
"""Processor time after which a thread looks whether it should rest."""
REST_TIMES = 4
"""While others are at work, the threads of an owner that used more rest this many times as long as
they all worked: a fifth of the processor is left to it."""
REST_STEP_S = 0.002
WAITING_S = 0.05
"""An owner whose threads gave no sign of work for so long waits for the database, as for a lock."""
FORGOTTEN_S = 1.0
"""What owners used counts half after so long."""
_thread = threading.local()


def pause_for_other_owners() -> None:
    """Sleep briefly if an owner at work used less processor time than this thread's owner."""
    if turns := getattr(_thread, "turns", None):
        turns.rest()


class FairTurns:
    """The processor time that owners use for requests; safe from any thread."""

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._running: Counter[int] = Counter()
        self._used: Counter[int] = Counter()
        """In microseconds."""
        self._signs: dict[int, float] = {}
        """By owner with running threads, when one of these began or looked whether it should rest."""
        self._halved = time.monotonic()

    @contextmanager
    def working(self, owner: int, *, is_awaited: bool = True) -> Iterator[None]:
        """Return a context manager that counts the block's processor time for an owner.

        Threads of owners that used more pause for the block if `is_awaited`.
        """
        with self._changing:
            if is_awaited:
                self._running[owner] += 1
            self._signs[owner] = time.monotonic()
        _thread.turns, _thread.owner = self, owner
        _thread.since = time.thread_time()
        try:
            yield
        finally:
            _thread.turns = None
            with self._changing:
                self._count_time(owner, time.thread_time() - _thread.since)
                self._running[owner] -= is_awaited
                self._running += Counter()  # without those that have none
                if owner not in self._running:
                    self._signs.pop(owner, None)

    def rest(self) -> None:
        """Sleep for a limited time while an owner that used less processor time is at work."""
        owner: int = _thread.owner
        self._signs[owner] = time.monotonic()
        used_s = time.thread_time() - _thread.since
        if used_s < QUANTUM_S:
            return
        with self._changing:
            self._count_time(owner, used_s)
            threads = max(1, self._running[owner])
        ends = time.monotonic() + min(used_s, 4 * QUANTUM_S) * REST_TIMES * threads
        while (now := time.monotonic()) < ends:
            with self._changing:
                used = self._used[owner]
                if not any(
                    self._used[other] < used and now - self._signs[other] < WAITING_S
                    for other in self._running
                ):
                    break
            time.sleep(REST_STEP_S)
        _thread.since = time.thread_time()

    def _count_time(self, owner: int, used_s: float) -> None:
        """Add processor time to an owner's total; halve all totals every `FORGOTTEN_S`."""
        now = time.monotonic()
        if now - self._halved > FORGOTTEN_S:
            self._halved = now
            self._used = Counter(
                {each: used // 2 for each, used in self._used.items() if used > 1}
            )
        self._used[owner] += int(used_s * 1e6)
