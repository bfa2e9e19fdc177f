"""Fair turns of owners on the processor: the interpreter runs one thread at a time."""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

QUANTUM_S = 0.0005
"""Processor time after which a thread looks whether it should rest."""
REST_TIMES = 4
"""While others are at work, the threads of an owner that used more rest this many times as long as
they all worked: a fifth of the processor is left to it."""
REST_STEP_S = 0.002
AHEAD_S = 0.1
"""Processor time that an owner may have used beyond another's before it rests for it: owners who use
alike would else wait for each other, and leave the processor idle."""
WAITING_S = 0.05
"""An owner whose threads gave no sign of work for so long waits for the database, as for a lock."""
FORGOTTEN_S = 5.0
"""What owners used counts half after so long: whoever writes batches uses much, with pauses."""
_thread = threading.local()


def pause_for_other_owners() -> None:
    """Sleep briefly if an owner at work used far less processor time than this thread's owner."""
    if turns := getattr(_thread, "turns", None):
        turns.rest()


def note_database_time(since: float) -> None:
    """Add the seconds since the monotonic time `since` to this thread's time on the database."""
    spent_s = time.monotonic() - since
    _thread.database_s = getattr(_thread, "database_s", 0.0) + spent_s


def take_database_time() -> float:
    """Return the seconds that this thread has spent on the database since the last call."""
    spent_s: float = getattr(_thread, "database_s", 0.0)
    _thread.database_s = 0.0
    return spent_s


def count_server_time(seconds: float) -> None:
    """Add seconds of the database server's work to the processor time of this thread's owner."""
    if turns := getattr(_thread, "turns", None):
        turns.count_time(_thread.owner, seconds)


class FairTurns:
    """The processor time that owners use for requests; safe from any thread."""

    def __init__(self) -> None:
        self._changing = threading.RLock()
        self._running: Counter[int] = Counter()
        self._used: Counter[int] = Counter()
        """In microseconds."""
        self._signs: dict[int, float] = {}
        """By owner with running threads, when one of these began or looked whether it should rest."""
        self._halved = time.monotonic()

    @contextmanager
    def working(self, owner: int, *, is_awaited: bool = True) -> Iterator[None]:
        """Count a block's processor time for an owner; other owners pause if the block `is_awaited`."""
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
                self.count_time(owner, time.thread_time() - _thread.since)
                self._running[owner] -= is_awaited
                self._running += Counter()  # without those that have none
                if owner not in self._running:
                    self._signs.pop(owner, None)

    def rest(self) -> None:
        """Sleep for a limited time while an owner that used far less processor time is at work."""
        owner: int = _thread.owner
        self._signs[owner] = time.monotonic()
        used_s = time.thread_time() - _thread.since
        if used_s < QUANTUM_S:
            return
        with self._changing:
            self.count_time(owner, used_s)
            threads = max(1, self._running[owner])
        ends = time.monotonic() + min(used_s, 4 * QUANTUM_S) * REST_TIMES * threads
        while (now := time.monotonic()) < ends:
            with self._changing:
                most = self._used[owner] - AHEAD_S * 1e6
                if not any(
                    self._used[other] < most and now - self._signs[other] < WAITING_S
                    for other in self._running
                ):
                    break
            time.sleep(REST_STEP_S)
        _thread.since = time.thread_time()

    def count_time(self, owner: int, used_s: float) -> None:
        """Add processor time in seconds to an owner's total; halve all every `FORGOTTEN_S`."""
        now = time.monotonic()
        with self._changing:
            if now - self._halved > FORGOTTEN_S:
                self._halved = now
                self._used = Counter(
                    {each: used // 2 for each, used in self._used.items() if used > 1}
                )
            self._used[owner] += int(used_s * 1e6)


USERS_MAX = 10_000
"""Owners whose use is remembered; whoever used something longest ago is forgotten first."""


class OwnerAllowance:
    """An amount that each owner may use in a period, at once or bit by bit; safe from any thread.

    The used budget refills evenly over the period. A use may exceed what is left: the next one then
    waits until the excess has come back, too.
    """

    def __init__(
        self,
        limit_of: Callable[[int], int | None],
        *,
        period_s: float,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take a function that returns an owner's limit for `period_s` seconds, None for no limit."""
        self._limit_of = limit_of
        self._period_s = period_s
        self._now = now
        self._changing = threading.Lock()
        self._uses: OrderedDict[int, tuple[float, float]] = OrderedDict()
        """By owner, the used amount and the time of the last use."""

    def used(self, owner: int) -> float:
        """Return how much of the owner's limit is used now; 0 without a limit."""
        limit, now = self._limit_of(owner), self._now()
        used, since = self._uses.get(owner, (0.0, now))
        return max(0.0, used - (now - since) * limit / self._period_s) if limit else 0.0

    def use(self, owner: int, amount: float) -> None:
        """Count an amount as used by an owner; without a limit nothing is counted."""
        if self._limit_of(owner) is None:
            return
        with self._changing:
            self._uses[owner] = (self.used(owner) + amount, self._now())
            self._uses.move_to_end(owner)
            if len(self._uses) > USERS_MAX:
                self._uses.popitem(last=False)

    def wait_s(self, owner: int) -> float:
        """Return the seconds until a unit of the owner's limit is free; 0 if one is free now."""
        limit = self._limit_of(owner)
        if limit is None:
            return 0.0
        return max(0.0, self.used(owner) + 1 - limit) * self._period_s / limit
