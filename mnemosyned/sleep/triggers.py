"""Triggers that start a cycle: rules over working memory, and the host's power, load and clocks."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from functools import partial
from math import ceil
from pathlib import Path
from time import CLOCK_BOOTTIME, clock_gettime, monotonic as since_boot
from typing import TYPE_CHECKING, Self

from mnemosyned.config.settings import Config, SleepConfig
from mnemosyned.errors import SleepInProgress, StorageFailed
from mnemosyned.instants import in_zone, shift
from mnemosyned.logs import logger
from mnemosyned.memory.clock import Clock, Judgment, Sighting, judge_clock
from mnemosyned.memory.consolidation import (
    CycleReport,
    Selection,
    Trigger,
    WorkingActivity,
)
from mnemosyned.text.token_counts import CHARS_PER_TOKEN

if TYPE_CHECKING:
    from mnemosyned.storage.common.surroundings import ClockStore

HEADROOM = 0.1
"""Share of a limit that is consolidated in addition, so that the limit is not reached again at once."""
SESSION_DUE = 0.8
"""Share of a session's token budget from which on a cycle is due."""
SESSION_KEPT = 0.5
"""Share of a session's token budget that a cycle leaves in working memory."""


SleepTrigger = Callable[[WorkingActivity, datetime], Selection | None]
"""Rule that starts a cycle: it returns which memories to consolidate if a cycle is due, else None. It returns
None again after that cycle has run."""


def select_by_age(
    activity: WorkingActivity,
    now: datetime,
    *,
    age: timedelta,
    slack: timedelta = timedelta(hours=1),
) -> Selection | None:
    """Select memories older than `age` if the oldest exceeds `age` by over `slack`; None if not."""
    if activity.oldest is None or activity.oldest >= shift(now, -age - slack):
        return None
    return Selection(before=shift(now, -age))


def select_by_count(
    activity: WorkingActivity, now: datetime, *, entries: int, fresh: timedelta
) -> Selection | None:
    """Select memories older than `fresh` from each source that has `entries` of them; None if no source has."""
    counts = activity.by_source.items()
    sources = tuple(name for name, count in counts if count >= entries)
    return Selection(before=shift(now, -fresh), sources=sources) if sources else None


def select_by_size(
    activity: WorkingActivity,
    now: datetime,  # noqa: ARG001 as every trigger is called
    *,
    rows_max: int,
    bytes_max: int | None = None,
) -> Selection | None:
    """Select the oldest memories if working memory exceeds a limit; None if not.

    The limits are `rows_max` memories and `bytes_max` bytes, None for no limit. Enough memories are selected
    to leave the share `HEADROOM` free. Excess bytes count as memories of average size.
    """

    def count_excess(margin: float) -> int:
        """Return how many memories to move so that the rest leaves the share `margin` of the limits free."""
        excess = activity.rows - int(rows_max * (1 - margin))
        if bytes_max is not None and activity.bytes:
            surplus = activity.bytes - bytes_max * (1 - margin)
            excess = max(excess, ceil(surplus * activity.rows / activity.bytes))
        return min(excess, activity.movable)

    return Selection(oldest=count_excess(HEADROOM)) if count_excess(0.0) > 0 else None


def select_when_idle(
    activity: WorkingActivity,
    now: datetime,
    *,
    quiet: timedelta,
    gain_min: int,
    fresh: timedelta,
) -> Selection | None:
    """Select memories older than `fresh` after `quiet` without requests; None if fewer than `gain_min`."""
    seasoned = sum(activity.by_source.values())
    is_due = activity.quiet >= quiet and seasoned >= gain_min
    return Selection(before=shift(now, -fresh)) if is_due else None


def select_by_tokens(
    activity: WorkingActivity,
    now: datetime,  # noqa: ARG001 as every trigger is called
    *,
    budget: int,
) -> Selection | None:
    """Select the oldest memories of the largest session if it uses most of `budget` tokens; None if not."""
    if not activity.by_session:
        return None
    name = max(activity.by_session, key=lambda name: activity.by_session[name][1])
    rows, chars = activity.by_session[name]
    if chars < SESSION_DUE * budget * CHARS_PER_TOKEN:
        return None
    kept = SESSION_KEPT * budget * CHARS_PER_TOKEN / chars
    return Selection(session=name, oldest=max(1, ceil(rows * (1 - min(kept, 1)))))


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineState:
    """Power supply and load of the machine."""

    on_battery: bool
    load: float
    """Processes that want to run, for each core, over the last minute."""


IDLE_AFTER = timedelta(minutes=5)
"""Time after a request in which a memory counts as in use, with `sleep.model_policy: idle`."""


def model_refusal(
    sleep: SleepConfig, machine: MachineState, activity: WorkingActivity, local: time
) -> str:
    """Return why a model may not write for a background cycle, or an empty text if it may.

    The settings `sleep` name the load, power supply and quiet hours that forbid it. `local` is the time of
    day of the owner; quiet hours may reach over midnight.
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


def make_triggers(config: Config) -> dict[Trigger, SleepTrigger]:
    """Return {name: rule} of the triggers that the settings switch on, in the order of checks."""
    if not config.auto_sleep:
        return {}
    sleep = config.sleep
    fresh = timedelta(minutes=sleep.min_age_minutes)
    found: dict[Trigger, SleepTrigger] = {
        Trigger.SIZE: partial(
            select_by_size, rows_max=config.wm_max, bytes_max=sleep.on_bytes
        )
    }
    if sleep.on_age:
        slack = timedelta(minutes=sleep.age_slack_minutes)
        found[Trigger.AGE] = partial(
            select_by_age, age=sleep.consolidation_age, slack=slack
        )
    if sleep.on_session_tokens:
        found[Trigger.TOKENS] = partial(
            select_by_tokens, budget=sleep.on_session_tokens
        )
    if sleep.on_count:
        found[Trigger.COUNT] = partial(
            select_by_count, entries=sleep.on_count, fresh=fresh
        )
    if sleep.on_idle_minutes:
        quiet = timedelta(minutes=sleep.on_idle_minutes)
        found[Trigger.IDLE] = partial(
            select_when_idle, quiet=quiet, gain_min=sleep.idle_min_entries, fresh=fresh
        )
    return found


SEEN_S = 600.0
"""Seconds after which many memories are counted again although this process changed none."""
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


@dataclass(eq=False, kw_only=True)
class TriggerWatch:
    """Checker of the triggers in force; each check starts at most one cycle."""

    triggers: Callable[[], Mapping[Trigger, SleepTrigger]]
    """Returns the rules in force."""
    activity: Callable[[], WorkingActivity]
    now: Callable[[], datetime]
    sleep: Callable[[Trigger, Selection], CycleReport | None]
    """Runs a cycle on a selection; returns None if it was put off."""
    monotonic: Callable[[], float] = since_boot
    """Returns seconds."""

    def __post_init__(self) -> None:
        self._rests: dict[Trigger, _Rest] = {}
        self._quiet_until = 0.0
        self._seen: WorkingActivity | None = None
        self._seen_at = 0.0
        """When `_seen` was counted, by the monotonic clock."""

    def may_be_due(
        self, changed_at: float, *, settle_s: float, quiet: timedelta
    ) -> bool:
        """Return whether `check` might find a trigger due, judged by the last count of the memories.

        True also if that count is out of date: made less than `settle_s` after the last change, which was at
        `changed_at` by the monotonic clock, or older than `SEEN_S`, as other processes change memories, too.
        `quiet` is the time since the last request.
        """
        began, triggers = self.monotonic(), self.triggers()
        if not triggers or began < self._quiet_until:
            return False
        is_old = began - self._seen_at > SEEN_S
        if self._seen is None or is_old or changed_at + settle_s >= self._seen_at:
            return True
        activity, now = replace(self._seen, quiet=quiet), self.now()
        return any(
            began >= self._rests.setdefault(name, _Rest()).until
            and trigger(activity, now)
            for name, trigger in triggers.items()
        )

    def check(self) -> Trigger | None:
        """Run a cycle for the first due trigger, and return the name of the trigger.

        Return None if no trigger is due, a cycle is running, or one ended just now. A trigger whose cycle
        consolidated nothing, or was put off, is suspended for a while.
        """
        began, triggers = self.monotonic(), self.triggers()
        if not triggers or began < self._quiet_until:
            return None
        activity, now = self.activity(), self.now()
        self._seen, self._seen_at = activity, began
        for name, trigger in triggers.items():
            rest = self._rests.setdefault(name, _Rest())
            if began < rest.until or not (selection := trigger(activity, now)):
                continue
            try:
                report = self.sleep(name, selection)
            except SleepInProgress:
                return None
            ended = self.monotonic()
            self._quiet_until = ended + REST_S
            if report and (report.evicted or (report.problem and not report.failed)):
                rest.length = rest.until = 0.0
                return name
            # It consolidated nothing, or was put off: next time the rest is twice as long.
            rest.length = min(max(BACK_OFF_S, rest.length * 2), BACK_OFF_MAX_S)
            rest.until = ended + rest.length
            log.info(
                "trigger_suspended", trigger=name.value, seconds=round(rest.length)
            )
            return name
        return None


POWER = Path("/sys/class/power_supply")
JUMP = timedelta(minutes=1)
"""Smaller steps of the clock are corrections that matter to no memory's age."""


def read_machine_state(power: Path = POWER) -> MachineState:
    """Return whether the machine runs on its battery, and its load; False and 0.0 where unknown."""
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
    """Return the folders of the machine's power supplies of a kind, without those of attached devices."""
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
    """Return the seconds since the machine started, including suspended time."""
    return clock_gettime(CLOCK_BOOTTIME)


class JumpTolerantClock:
    """Clock for the age of memories, which ignores forward jumps of the wall clock for a while.

    A forward jump is accepted after `hold`, when everything remembered before the jump really is that old; a
    backward jump is accepted at once.
    """

    def __init__(self, clock: Clock, *, hold: timedelta) -> None:
        """Follow `clock`, and ignore its forward jumps until they have lasted `hold`."""
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


KEPT_EVERY_S = 3_600.0
"""Seconds between two clock readings that are stored; a crash loses no more than that."""
KEPT_LAST_S = 60.0
"""Minimum age of the stored reading for a last one at the end, so that a short use stores none."""
REMEDY = "if the date is right: mnem archive prune --believe-clock"


@dataclass(eq=False, kw_only=True)
class ClockGuard:
    """Check of the wall clock against its last trusted reading in the store. Safe from any thread."""

    store: ClockStore
    clock: Clock
    uptime: Callable[[], float] = machine_uptime_s
    """Returns the seconds since `boot`."""
    boot: Callable[[], str] = lambda: _read_text(
        Path("/proc/sys/kernel/random/boot_id")
    )
    """Returns an id that is new at each start of the machine; empty if the system has none."""

    def __post_init__(self) -> None:
        self._looking = threading.Lock()
        self._seen = self.store.last_sighting()
        self._kept = (
            self._seen if self._seen and self._seen.boot == self.boot() else None
        )
        self._doubted = False

    def __enter__(self) -> Self:
        self.look()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def now(self) -> datetime:
        """Return the present time: the clock's, or the time expected if the clock jumped ahead."""
        return self.look().now

    def look(self) -> Judgment:
        """Return whether the clock can be trusted, by its last trusted reading; store a new reading hourly."""
        with self._looking:
            judgment = self._judge_clock()
            self._log_change(judgment)
            self._store_sighting(judgment.sighting, every_s=KEPT_EVERY_S)
            return judgment

    def confirm(self) -> None:
        """Trust the present time of the clock from now on, also after a jump."""
        with self._looking:
            self._seen = None
            judgment = self._judge_clock()
            self._log_change(judgment, how="confirmed")
            self._store_sighting(judgment.sighting, every_s=0.0)

    def close(self) -> None:
        """Store the last trusted reading of the clock, for the next start."""
        with self._looking:
            self._store_sighting(self._judge_clock().sighting, every_s=KEPT_LAST_S)

    def doubt(self) -> str:
        """Return why the clock is not trusted, in a sentence; empty if it is trusted."""
        judgment = self.look()
        if not judgment.ahead:
            return ""
        said, believed = judgment.now + judgment.ahead, judgment.now
        return (
            f"the clock says {said:%Y-%m-%d}, {_days_ahead(judgment)} later than can have passed since "
            f"{believed:%Y-%m-%d}: was the machine off for so long, or is the clock wrong?"
        )

    def _judge_clock(self) -> Judgment:
        """Return whether the clock can be trusted, by its last trusted reading; remember the new reading."""
        now, up = self.clock.now(), self.uptime()
        judgment = judge_clock(self._seen, now=now, boot=self.boot(), uptime_s=up)
        self._seen = judgment.sighting
        return judgment

    def _log_change(self, judgment: Judgment, *, how: str = "it went back") -> None:
        """Log when the clock begins or ceases to be trusted; `how` says why it is trusted again."""
        doubted = bool(judgment.ahead)
        if doubted and not self._doubted:
            log.warning(
                "clock_not_believed",
                believed=judgment.now.isoformat(timespec="seconds"),
                ahead=_days_ahead(judgment),
                held_back="pruning by age",
                remedy=REMEDY,
            )
        elif self._doubted and not doubted:
            log.info("clock_believed", reason=how)
        self._doubted = doubted

    def _store_sighting(self, sighting: Sighting, *, every_s: float) -> None:
        """Store a clock reading unless the stored one is less than `every_s` seconds older; log a failure."""
        kept = self._kept
        if kept and sighting.uptime_s - kept.uptime_s < every_s:
            return
        self._kept = sighting
        try:
            self.store.keep_sighting(sighting)
        except StorageFailed as error:  # what was kept before is older, and doubts more
            log.warning("clock_not_kept", reason=error.message)


def _days_ahead(judgment: Judgment) -> str:
    """Return how far the clock is ahead of the time expected: "3 days", or "30 hours"."""
    days = judgment.ahead.total_seconds() / 86_400
    return f"{days:,.0f} days" if days >= 2 else f"{days * 24:.0f} hours"
