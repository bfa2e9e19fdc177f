"""Fair shares of the processor for owners and requests, as Python runs one thread at a time."""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

QUANTUM_S = 0.0005
"""Processor time after which a thread checks whether it should rest."""
REST_TIMES = 4
"""Rest of an owner's threads that used more than others at work, as a multiple of the time in which they all
worked: a fifth of the processor is left to the owner."""
REST_STEP_S = 0.002
AHEAD_S = 0.1
"""Processor time that an owner may use more than another before it rests. Without it, owners with equal use
would wait for each other, and leave the processor idle."""
WAITING_S = 0.05
"""Seconds without a sign of work after which an owner is taken to wait for the database, as for a lock."""
FORGOTTEN_S = 5.0
"""Seconds after which past use counts half, as owners who write batches use much, with pauses."""
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
        """Count a block's processor time for an owner. Other owners pause for it only if `is_awaited`."""
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
        """Sleep for a limited time while an owner with far less processor time is at work."""
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
        """Add processor time in seconds to an owner's total; halve all totals every `FORGOTTEN_S` seconds."""
        now = time.monotonic()
        with self._changing:
            if now - self._halved > FORGOTTEN_S:
                self._halved = now
                self._used = Counter(
                    {each: used // 2 for each, used in self._used.items() if used > 1}
                )
            self._used[owner] += int(used_s * 1e6)


USERS_MAX = 10_000
"""Maximum owners whose use is remembered; the least recent is dropped first."""


class OwnerAllowance:
    """Limit on how much each owner may use in a period, at once or in parts. Safe from any thread.

    The used amount refills evenly over the period. A use may exceed what is left: the next one then waits until
    the excess has refilled, too.
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
        """Return the amount that the owner has used and that has not refilled yet; 0 without a limit."""
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
        """Return the seconds until the owner may use one more unit; 0 if that is possible now."""
        limit = self._limit_of(owner)
        if limit is None:
            return 0.0
        return max(0.0, self.used(owner) + 1 - limit) * self._period_s / limit


ACTIVE_S = 0.5
"""Seconds after the last answer during which another request is expected."""
YIELD_MAX_S = 0.05
"""Maximum wait of a group for requests, so that a cycle makes progress whatever the traffic."""
POLL_S = 0.001
WORK_REST_TIMES = 9
"""Rest of a cycle while requests come in, as a multiple of the time for which it used disk, writer and
processor. The cycle then takes ten times as long; p95 of remember falls from three times its usual value to one
and a half times."""
REST_MAX_S = 0.05
"""Maximum rest, so that a cycle makes progress however slow the machine is."""
QUIET_WAIT_MAX_S, QUIET_POLL_S = 0.5, 0.05
"""Maximum wait of work that is not urgent, such as a batch of vectors of some 20 ms, which then takes a
twenty-fifth of a processor under load."""
BUSY_ANSWERS = 20
"""Answers within one to two seconds from which clients would notice a purge of the file."""


class ForegroundGate:
    """Counter of requests in flight, each a `with` block, to which cycles yield; thread-safe."""

    def __init__(self, shared: ForegroundGate | None = None) -> None:
        """Begin with no request in flight; one of many owners yields to all that `shared` counts."""
        self._shared = shared
        self._lock = threading.Lock()
        self._in_flight = 0
        self._last = time.monotonic() - ACTIVE_S
        self._answered: deque[float] = deque(maxlen=BUSY_ANSWERS)
        """When the last answers were given, by the monotonic clock."""

    def __enter__(self) -> None:
        """Count a request as in flight while the block runs."""
        with self._lock:
            self._in_flight += 1
        if self._shared:
            self._shared.__enter__()

    def __exit__(self, *_: object) -> None:
        """Count the request as answered."""
        if self._shared:
            self._shared.__exit__()
        with self._lock:
            self._in_flight -= 1
            self._last = time.monotonic()
            self._answered.append(self._last)

    @property
    def busy(self) -> bool:
        """Whether at least `BUSY_ANSWERS` requests were answered in this and the last second."""
        if self._shared:
            return self._shared.busy
        with self._lock:
            is_known = len(self._answered) == BUSY_ANSWERS
            return is_known and self._answered[0] >= int(time.monotonic()) - 1

    @property
    def active(self) -> bool:
        """Whether a request is in flight, or ended less than `ACTIVE_S` seconds ago."""
        if self._shared:
            return self._shared.active
        return self._in_flight > 0 or time.monotonic() - self._last < ACTIVE_S

    @property
    def quiet_s(self) -> float:
        """Seconds since the last request; 0 while a request is in flight."""
        return 0.0 if self._in_flight else time.monotonic() - self._last

    def wait_until_quiet(
        self, hurry: threading.Event, is_busy: Callable[[], bool] | None = None
    ) -> None:
        """Wait until no request is active and `is_busy` returns False, `QUIET_WAIT_MAX_S` seconds at most.

        Return at once when `hurry` is set: a request waits for the caller's work.
        """
        ends = time.monotonic() + QUIET_WAIT_MAX_S
        while (self.active or (is_busy and is_busy())) and time.monotonic() < ends:
            if hurry.wait(QUIET_POLL_S):
                break

    def yield_to_requests(self) -> None:
        """Wait until no request is in flight, up to `YIELD_MAX_S` seconds."""
        if self._shared:
            self._shared.yield_to_requests()
            return
        ends = time.monotonic() + YIELD_MAX_S
        while self._in_flight and time.monotonic() < ends:
            time.sleep(POLL_S)

    def rest_after(self, worked_s: float) -> None:
        """While requests are active, sleep in proportion to the seconds worked, at most `REST_MAX_S`."""
        if self.active:
            time.sleep(min(worked_s * WORK_REST_TIMES, REST_MAX_S))
