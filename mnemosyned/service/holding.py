"""Requests of `sleep` that run no cycle: they stop the running one, or put off the next."""

from __future__ import annotations

from datetime import timedelta

from mnemosyned.domain.errors import InvalidRequest
from mnemosyned.domain.sleep.cycles import CycleReport
from mnemosyned.sleep.stopping import CycleStopper
from mnemosyned.verbs.sleep import Sleep

STOP_WAIT_S = 3_000.0
"""How long somebody who stops a cycle waits for its present batch, which a model may write."""


def hold_sleep(request: Sleep, stopper: CycleStopper) -> CycleReport:
    """Stop the running cycle, or pause those in the background. Raises `InvalidRequest`."""
    if request.stop:
        if request != Sleep(stop=True):
            raise InvalidRequest(
                "stop ends the running cycle, whatever it was started with; give nothing else",
                field="stop",
            )
        return stopper.stop(STOP_WAIT_S)
    minutes = request.pause_minutes or 0
    if request != Sleep(pause_minutes=minutes):
        raise InvalidRequest(
            "pause_minutes runs no cycle; give nothing else", field="pause_minutes"
        )
    return stopper.pause(timedelta(minutes=minutes))
