"""The cycle at shutdown: by rule, or by a model when there is ample time for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mnemosyned.domain.sleep.cycles import CycleReport, Trigger
from mnemosyned.sleep.context import CycleRequest
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.sleep.lease import SummarizerLease

RULES_S = 60.0
"""Time reserved for rules. A model gets only what the deadline allows beyond it: by default
nothing."""
MARGIN = 2
"""A model is asked only if there is this many times the time that its pace in the log calls for."""
POLL_S = 0.2


def final_consolidation(
    cycle: SleepCycle, *, deadline_s: float, keep_going: Callable[[], bool]
) -> CycleReport:
    """Run the last cycle: the age rule applies, and the deadline ends it between two groups.

    A summary that a model is writing is abandoned. A model that is asked again all the same is
    interrupted as soon as its time is up or `keep_going` returns False; rules do the rest.
    Pruning and purging, whose time cannot be known, wait for the first cycle after the next start.
    """
    ends = time.monotonic() + deadline_s
    cycle.lease.interrupt()
    model_s = 0.0
    if deadline_s > RULES_S:
        cycle.lease.wait_idle(deadline_s - RULES_S)
        model_s = ends - time.monotonic() - RULES_S
    use_model = _affordable(cycle, model_s)
    request = CycleRequest(
        trigger=Trigger.SHUTDOWN,
        rules_only=not use_model,
        deadline_s=max(0.0, ends - time.monotonic()),
        keep_going=keep_going,
    )
    if not use_model:
        return cycle.run(request)
    with _interrupted_after(cycle.lease, model_s, keep_going):
        return cycle.run(request)


def _affordable(cycle: SleepCycle, model_s: float) -> bool:
    """Return whether a model can write all that is due in `model_s`, with a margin."""
    if model_s <= 0 or cycle.lease.lent:
        return False
    cycle.lease.current.resume()
    expected_s = cycle.preview(CycleRequest(trigger=Trigger.SHUTDOWN)).model_s
    return expected_s is not None and expected_s * MARGIN <= model_s


@contextmanager
def _interrupted_after(
    lease: SummarizerLease, seconds: float, keep_going: Callable[[], bool]
) -> Iterator[None]:
    """Interrupt the model when its time is up; one group may take minutes."""
    over = threading.Event()
    ends = time.monotonic() + seconds

    def watch() -> None:
        while not over.wait(POLL_S):
            if time.monotonic() >= ends or not keep_going():
                lease.interrupt()
                return

    watching = threading.Thread(target=watch, name="last-model")
    watching.start()
    try:
        yield
    finally:
        over.set()
        watching.join()
