"""The rules of sleep: when cycles run, which memories they take, and how much one may do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from mnemosyned.instants import shift
from mnemosyned.memory.consolidation import GroupLimits
from mnemosyned.memory.periods import ROLLUP_MIN
from mnemosyned.sleep.triggers import ModelWork, SleepTrigger


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The limits of one cycle; memories beyond them wait for the next."""

    time: timedelta | None = None
    tokens: int | None = None
    """Tokens that a model is given to read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RollupPolicy:
    """When a period is rolled up, and how many episodes a day needs to be shortened."""

    grace: timedelta = timedelta(hours=6)
    """The delay after the last memory of a period became old enough to be consolidated."""
    minimum: int = ROLLUP_MIN
    """A short day of one or two episodes keeps all they say: nothing is shortened merely to have
    a summary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitPacing:
    """How many groups share a commit, so that a cycle uses the disk well and blocks nobody."""

    groups_max: int = 8
    wait_s: float = 0.1
    """A finished group waits at most this long, and one more group, for others to share its
    commit, so that a flush serves many. What a model wrote does not wait."""
    hold_s: float = 0.05
    """Target time for a commit to hold the writer; the number of groups adapts to it. While requests
    are in flight, each group has a commit of its own."""
    checkpoint_groups: int = 75
    """Groups between two checkpoints of the write-ahead log: about 4 MB of writing."""
    commit_groups: int = 4
    """Groups that a commit counts for by itself: it rewrites pages that every group touches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """The timetable of the cycles that run in the background."""

    auto: bool = False
    """Whether there is one."""
    interval: timedelta = timedelta(hours=1)
    cron: str | None = None
    """Five fields in UTC, in place of the interval."""
    tick_s: float = 30.0
    """Seconds between two checks of the triggers; fixed at the start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundPolicy:
    """When a model may write in the background, and which memories are too new for triggers."""

    model: ModelWork = field(default_factory=ModelWork)
    fresh: timedelta = timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class SleepPolicy:
    """When cycles run, which memories they take, and how they group them."""

    ttl: timedelta = timedelta(hours=24)
    wm_max: int = 10_000
    """Memories that working memory holds at most."""
    schedule: Schedule = field(default_factory=Schedule)
    triggers: Sequence[SleepTrigger] = ()
    background: BackgroundPolicy = field(default_factory=BackgroundPolicy)
    groups: GroupLimits = field(default_factory=GroupLimits)
    rollup: RollupPolicy = field(default_factory=RollupPolicy)
    budget: Budget = field(default_factory=Budget)
    pacing: CommitPacing = field(default_factory=CommitPacing)
    plan_size: int = 10_000
    """Memories planned at a time: a longer backlog takes no more memory than this."""

    def cutoff(self, now: datetime) -> datetime:
        """Return the instant before which a memory must be created: half of the TTL ago."""
        return shift(now, -self.ttl / 2)

    def rollup_cutoff(self, now: datetime) -> datetime:
        """Return the instant by which a period must have ended to be rolled up.

        All of its memories were old enough to be consolidated some time before.
        """
        return shift(self.cutoff(now), -self.rollup.grace)


class SleepPolicies(Protocol):
    """The holder of the policies in force, which a reload of the settings replaces."""

    @property
    def sleep(self) -> SleepPolicy:
        """The rules of sleep."""
        ...
