"""State of the host, as far as Linux tells: its power supply, its load, its time."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from mnemosyned.domain.instants import in_zone, shift
from mnemosyned.domain.ports.clock import Clock
from mnemosyned.sleep.starts.triggers import Machine

POWER = Path("/sys/class/power_supply")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
JUMP = timedelta(minutes=1)
"""Smaller steps of the clock are corrections that hurt nobody's age."""


def machine_now(power: Path = POWER) -> Machine:
    """The machine as it is; one that does not tell runs on mains, without load."""
    try:
        load = os.getloadavg()[0] / (os.cpu_count() or 1)
    except OSError:
        load = 0.0
    return Machine(on_battery=on_battery(power), load=load)


def on_battery(power: Path = POWER) -> bool:
    """Whether a battery is being drained: a charger that is plugged in says no."""
    states = [_read(supply / "status") for supply in _supplies(power, "Battery")]
    mains = [_read(supply / "online") for supply in _supplies(power, "Mains")]
    return "Discharging" in states and "1" not in mains


def _supplies(power: Path, kind: str) -> list[Path]:
    """The machine's own supplies of a kind; a mouse's battery is not the machine's."""
    if not power.is_dir():
        return []
    return [
        supply
        for supply in sorted(power.iterdir())
        if _read(supply / "type") == kind and _read(supply / "scope") != "Device"
    ]


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError:  # not every supply tells everything
        return ""


def uptime_s() -> float:
    """Seconds since the machine started, time asleep included; nobody sets this clock."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def boot_id() -> str:
    """Which start of the machine this is; empty where the system does not tell."""
    return _read(BOOT_ID)


class JumpTolerantClock:
    """The time by which memories age: no step of the machine's clock makes one older.

    Set forward, the clock is not believed for `hold`, by when everything that was remembered
    before the step is that old in truth; set back, it is believed at once.
    """

    def __init__(self, clock: Clock, *, hold: timedelta) -> None:
        self._clock = clock
        self._hold = hold
        self._anchor = (clock.now(), uptime_s())
        self._jumped: float | None = None

    def now(self) -> datetime:
        """The present instant, at most as late as the passing of time allows."""
        now, up = self._clock.now(), uptime_s()
        began, began_up = self._anchor
        expected = shift(began, timedelta(seconds=up - began_up))
        if now - expected <= JUMP:
            self._anchor, self._jumped = (now, up), None
            return now
        if self._jumped is None:
            self._jumped = up
        if up - self._jumped >= self._hold.total_seconds():
            self._anchor, self._jumped = (now, up), None
            return now
        return in_zone(expected, UTC)
