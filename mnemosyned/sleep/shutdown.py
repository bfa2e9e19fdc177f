"""The consolidation before the end: by rule, or by a model where there is ample time for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mnemosyned.domain.consolidation import CycleReport, Trigger
from mnemosyned.sleep.cycle import SleepCycle

RULES_S = 60.0
"""What rules may need. A model has only what the deadline allows beyond it: nothing by default."""
MARGIN = 2
"""A model is asked if there is so much more time than its pace in the log calls for."""
LOOK_S = 0.2


def final_consolidation(
    cycle: SleepCycle, *, deadline_s: float, go_on: Callable[[], bool]
) -> CycleReport:
    """The cycle at the end: the age rule holds, the deadline cuts it short between two groups.

    What a model is writing when it begins is ended. A model that is asked again all the same is
    interrupted as soon as its time is up or `go_on` says no; rules do the rest. What a cycle is
    tidied up with, pruning and rewriting the file, waits for the first one after the next start:
    nobody can tell how long it takes, and it is not lost.
    """
    ends = time.monotonic() + deadline_s
    cycle.interrupt()
    model_s = 0.0
    if deadline_s > RULES_S:
        cycle.wait_idle(deadline_s - RULES_S)
        model_s = ends - time.monotonic() - RULES_S
    if not _affordable(cycle, model_s):
        left_s = max(0.0, ends - time.monotonic())
        return cycle.run(
            trigger=Trigger.SHUTDOWN, quick=True, deadline_s=left_s, go_on=go_on
        )
    with _interrupted_after(cycle, model_s, go_on):
        left_s = ends - time.monotonic()
        return cycle.run(trigger=Trigger.SHUTDOWN, deadline_s=left_s, go_on=go_on)


def _affordable(cycle: SleepCycle, model_s: float) -> bool:
    """Whether a model is in force that can write all that is due in that time, with a margin."""
    if model_s <= 0 or cycle.running:
        return False
    cycle.summarizer.resume()
    expected_s = cycle.run(trigger=Trigger.SHUTDOWN, dry_run=True).model_s
    return expected_s is not None and expected_s * MARGIN <= model_s


@contextmanager
def _interrupted_after(
    cycle: SleepCycle, seconds: float, go_on: Callable[[], bool]
) -> Iterator[None]:
    """While the block runs, see to it that the model stops in time; a group may take minutes."""
    over = threading.Event()
    ends = time.monotonic() + seconds

    def watch() -> None:
        while not over.wait(LOOK_S):
            if time.monotonic() >= ends or not go_on():
                cycle.interrupt()
                return

    watching = threading.Thread(target=watch, name="last-model")
    watching.start()
    try:
        yield
    finally:
        over.set()
        watching.join()
