"""Triggers that start a cycle, each a pure rule over the activity in working memory.

And the state of the host that they look at: power supply, load, time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from math import ceil
from pathlib import Path
from time import CLOCK_BOOTTIME, clock_gettime, monotonic as since_boot
from typing import Protocol

from mnemosyned.config import Config, SleepConfig
from mnemosyned.errors import SleepInProgress
from mnemosyned.instants import in_zone, shift
from mnemosyned.logs import logger
from mnemosyned.memory.clock import Clock
from mnemosyned.memory.consolidation import (
    CycleReport,
    Selection,
    Trigger,
    WorkingActivity,
)
from mnemosyned.text.token_counts import CHARS_PER_TOKEN

HEADROOM = 0.1
"""At a limit, this share of it is consolidated in addition, so that it is not reached again at
once."""
SESSION_KEPT = 0.5
"""Of a session's token budget, what is left in working memory."""


class SleepTrigger(Protocol):
    """Rule for the start of a cycle and its selection of memories, from the activity."""

    @property
    def name(self) -> Trigger:
        """Name of the trigger in the log."""
        ...

    def due(self, activity: WorkingActivity, now: datetime) -> bool:
        """Return whether a cycle should start now; False again after that cycle has run."""
        ...

    def select_memories(self, activity: WorkingActivity, now: datetime) -> Selection:
        """Return the selection of memories for the cycle."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AgeTrigger:
    """Trigger for the time when the oldest memory passes the age of consolidation.

    `slack` is how much older it may get, so that a cycle finds more than one memory.
    """

    age: timedelta
    slack: timedelta = timedelta(hours=1)
    name: Trigger = Trigger.AGE

    def due(self, activity: WorkingActivity, now: datetime) -> bool:
        """Return whether the oldest memory is older than `age` and `slack` together."""
        limit = shift(now, -self.age - self.slack)
        return activity.oldest is not None and activity.oldest < limit

    def select_memories(self, activity: WorkingActivity, now: datetime) -> Selection:  # noqa: ARG002
        """Return the selection of all memories older than `age`."""
        return Selection(before=shift(now, -self.age))


@dataclass(frozen=True, slots=True, kw_only=True)
class CountTrigger:
    """Trigger for the time when one source has many memories older than `fresh`.

    Source: the consolidation tutorial, N new memories in a category.
    """

    entries: int
    fresh: timedelta
    name: Trigger = Trigger.COUNT

    def due(self, activity: WorkingActivity, now: datetime) -> bool:  # noqa: ARG002
        """Return whether a source has at least `entries` memories older than `fresh`."""
        return any(count >= self.entries for count in activity.by_source.values())

    def select_memories(self, activity: WorkingActivity, now: datetime) -> Selection:
        """Return the selection of memories of such sources that are older than `fresh`."""
        counts = activity.by_source.items()
        sources = tuple(name for name, count in counts if count >= self.entries)
        return Selection(before=shift(now, -self.fresh), sources=sources)


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeTrigger:
    """Trigger for the time when working memory has more memories or bytes than allowed."""

    rows_max: int
    bytes_max: int | None = None
    name: Trigger = Trigger.SIZE

    def due(self, activity: WorkingActivity, now: datetime) -> bool:  # noqa: ARG002
        """Return whether working memory exceeds a limit."""
        return self._excess_rows(activity, margin=0.0) > 0

    def select_memories(self, activity: WorkingActivity, now: datetime) -> Selection:  # noqa: ARG002
        """Return the selection of the oldest memories, down to a margin below the limits."""
        return Selection(oldest=self._excess_rows(activity, margin=HEADROOM))

    def _excess_rows(self, activity: WorkingActivity, *, margin: float) -> int:
        """Return the number of memories over the limits, reduced by the share `margin`.

        Excess bytes count as memories of average size.
        """
        excess = activity.rows - int(self.rows_max * (1 - margin))
        if self.bytes_max is not None and activity.bytes:
            surplus = activity.bytes - self.bytes_max * (1 - margin)
            by_bytes = ceil(surplus * activity.rows / activity.bytes)
            excess = max(excess, by_bytes)
        return min(excess, activity.movable)


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleTrigger:
    """Trigger for a time without requests, if there are enough memories for a cycle."""

    quiet: timedelta
    gain_min: int
    fresh: timedelta
    name: Trigger = Trigger.IDLE

    def due(self, activity: WorkingActivity, now: datetime) -> bool:  # noqa: ARG002
        """Return whether no request came for `quiet`, and `gain_min` memories are old enough."""
        seasoned = sum(activity.by_source.values())
        return activity.quiet >= self.quiet and seasoned >= self.gain_min

    def select_memories(self, activity: WorkingActivity, now: datetime) -> Selection:  # noqa: ARG002
        """Return the selection of all memories older than `fresh`."""
        return Selection(before=shift(now, -self.fresh))


@dataclass(frozen=True, slots=True, kw_only=True)
class TokensTrigger:
    """Trigger for the time when a session's memories use most of their token budget."""

    budget: int
    share: float = 0.8
    name: Trigger = Trigger.TOKENS

    def due(self, activity: WorkingActivity, now: datetime) -> bool:  # noqa: ARG002
        """Return whether the largest session uses the share of its budget that starts a cycle."""
        return self._fullest_session(activity) is not None

    def select_memories(self, activity: WorkingActivity, now: datetime) -> Selection:  # noqa: ARG002
        """Return the selection of the oldest memories of the largest session."""
        name = self._fullest_session(activity)
        if name is None:
            return Selection(oldest=0)
        rows, chars = activity.by_session[name]
        kept = SESSION_KEPT * self.budget * CHARS_PER_TOKEN / chars
        return Selection(session=name, oldest=max(1, ceil(rows * (1 - min(kept, 1)))))

    def _fullest_session(self, activity: WorkingActivity) -> str | None:
        """Return the largest session if it is over its share of the budget, else None."""
        sizes = {name: chars for name, (_, chars) in activity.by_session.items()}
        if not sizes:
            return None
        fullest = max(sizes, key=sizes.__getitem__)
        limit = self.share * self.budget * CHARS_PER_TOKEN
        return fullest if sizes[fullest] >= limit else None


# ------------------------------------------------------------ model at work


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineState:
    """Power supply and load of the machine."""

    on_battery: bool
    load: float
    """Processes that want to run, for each core, over the last minute."""


IDLE_AFTER = timedelta(minutes=5)
"""A memory is in use for so long after a request, with `sleep.model_policy: idle`."""


def model_refusal(
    sleep: SleepConfig, machine: MachineState, activity: WorkingActivity, local: time
) -> str:
    """Return why a model may not write for a background cycle, or an empty text if it may.

    `local` is the time of day of the owner; quiet hours may reach over midnight.
    """
    begins, _, ends = (sleep.quiet_hours or "").partition("-")
    if ends:
        quiet_from, quiet_until = time.fromisoformat(begins), time.fromisoformat(ends)
        if quiet_from <= quiet_until:
            is_quiet = quiet_from <= local < quiet_until
        else:
            is_quiet = local >= quiet_from or local < quiet_until
        if is_quiet:
            return "quiet hours (sleep.quiet_hours)"
    if machine.on_battery and sleep.model_policy == "ac_power":
        return "the machine runs on its battery (sleep.model_policy)"
    if sleep.model_policy == "idle" and activity.quiet < IDLE_AFTER:
        return "the memory is in use (sleep.model_policy)"
    if sleep.load_max is not None and machine.load > sleep.load_max:
        return f"the load is {machine.load:.1f} for each core (sleep.load_max)"
    return ""


def make_triggers(config: Config) -> list[SleepTrigger]:
    """Return the triggers that the settings switch on, in the order of their checks."""
    if not config.auto_sleep:
        return []
    sleep = config.sleep
    fresh = timedelta(minutes=sleep.min_age_minutes)
    found: list[SleepTrigger] = [
        SizeTrigger(rows_max=config.wm_max, bytes_max=sleep.on_bytes)
    ]
    if sleep.on_age:
        slack = timedelta(minutes=sleep.age_slack_minutes)
        found.append(AgeTrigger(age=sleep.consolidation_age, slack=slack))
    if sleep.on_session_tokens:
        found.append(TokensTrigger(budget=sleep.on_session_tokens))
    if sleep.on_count:
        found.append(CountTrigger(entries=sleep.on_count, fresh=fresh))
    if sleep.on_idle_minutes:
        quiet = timedelta(minutes=sleep.on_idle_minutes)
        found.append(
            IdleTrigger(quiet=quiet, gain_min=sleep.idle_min_entries, fresh=fresh)
        )
    return found


REST_S = 60.0
"""Seconds between two cycles that triggers start."""
BACK_OFF_S = 300.0
"""Seconds that a trigger is suspended when its cycle gained nothing; doubled each time."""
BACK_OFF_MAX_S = 6 * 3_600.0

log = logger()


@dataclass(slots=True)
class _Rest:
    """Suspension of a trigger: its end on the monotonic clock, and its length in seconds."""

    until: float = 0.0
    length: float = 0.0


class TriggerWatch:
    """Checker of the triggers in force; each check starts at most one cycle."""

    def __init__(
        self,
        *,
        triggers: Callable[[], Sequence[SleepTrigger]],
        activity: Callable[[], WorkingActivity],
        now: Callable[[], datetime],
        sleep: Callable[[Trigger, Selection], CycleReport | None],
        monotonic: Callable[[], float] = since_boot,
    ) -> None:
        """Take functions that return triggers, activity and time, and a function that runs a cycle."""
        self._triggers = triggers
        self._activity = activity
        self._now = now
        self._sleep = sleep
        self._monotonic = monotonic
        self._rests: dict[Trigger, _Rest] = {}
        self._quiet_until = 0.0

    def check(self) -> Trigger | None:
        """Run a cycle for the first trigger that is due; return the trigger's name, or None."""
        began, triggers = self._monotonic(), self._triggers()
        if not triggers or began < self._quiet_until:
            return None
        activity, now = self._activity(), self._now()
        for trigger in triggers:
            rest = self._rests.setdefault(trigger.name, _Rest())
            if began < rest.until or not trigger.due(activity, now):
                continue
            try:
                report = self._sleep(
                    trigger.name, trigger.select_memories(activity, now)
                )
            except SleepInProgress:
                return None
            ended = self._monotonic()
            self._quiet_until = ended + REST_S
            self._suspend_if_useless(trigger.name, rest, report, ended)
            return trigger.name
        return None

    @staticmethod
    def _suspend_if_useless(
        name: Trigger, rest: _Rest, report: CycleReport | None, ended: float
    ) -> None:
        """Suspend a trigger whose cycle consolidated nothing, twice as long each time.

        A trigger whose cycle was cut short is not suspended.
        """
        if report and (report.evicted or report.problem):
            rest.length = rest.until = 0.0
            return
        rest.length = min(max(BACK_OFF_S, rest.length * 2), BACK_OFF_MAX_S)
        rest.until = ended + rest.length
        log.info("trigger_suspended", trigger=name.value, seconds=round(rest.length))


POWER = Path("/sys/class/power_supply")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
JUMP = timedelta(minutes=1)
"""Smaller steps of the clock are corrections that hurt nobody's age."""


def read_machine_state(power: Path = POWER) -> MachineState:
    """Return power supply and load of the machine; on mains and without load if unknown."""
    try:
        load = os.getloadavg()[0] / (os.cpu_count() or 1)
    except OSError:
        load = 0.0
    return MachineState(on_battery=is_on_battery(power), load=load)


def is_on_battery(power: Path = POWER) -> bool:
    """Return whether the machine runs on its battery: discharging, and no charger plugged in."""
    states = [
        _read_text(supply / "status") for supply in _power_supplies(power, "Battery")
    ]
    mains = [
        _read_text(supply / "online") for supply in _power_supplies(power, "Mains")
    ]
    return "Discharging" in states and "1" not in mains


def _power_supplies(power: Path, kind: str) -> list[Path]:
    """Return the folders of the machine's power supplies of a kind, without those of devices."""
    if not power.is_dir():
        return []
    return [
        supply
        for supply in sorted(power.iterdir())
        if _read_text(supply / "type") == kind
        and _read_text(supply / "scope") != "Device"
    ]


def _read_text(file: Path) -> str:
    """Return the text of a file; empty if it cannot be read."""
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError:  # not every supply tells everything
        return ""


def machine_uptime_s() -> float:
    """Return the seconds since the machine started, including suspend.

    Changes of the wall clock do not affect them.
    """
    return clock_gettime(CLOCK_BOOTTIME)


def read_boot_id() -> str:
    """Return an id of the machine's present start; empty if the system has none."""
    return _read_text(BOOT_ID)


class JumpTolerantClock:
    """Clock for the age of memories, which ignores forward jumps of the wall clock for a while.

    A forward jump is believed after `hold`, by when everything remembered before the jump is that
    old in truth; a backward jump is believed at once.
    """

    def __init__(self, clock: Clock, *, hold: timedelta) -> None:
        self._clock = clock
        self._hold = hold
        self._anchor = (clock.now(), machine_uptime_s())
        self._jumped: float | None = None

    def now(self) -> datetime:
        """Return the time; ignore a forward jump of the wall clock until it has lasted `hold`."""
        now, up = self._clock.now(), machine_uptime_s()
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
