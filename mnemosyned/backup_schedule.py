"""Backups by date: names, schedules, and expiry of old backups."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from mnemosyned.instants import in_zone

STAMP = "%Y%m%dT%H%M%SZ"
_NAME = re.compile(r"memory-(\d{8}T\d{6}Z)(\.auto)?\.db")
_RULE = re.compile(r"(\d{1,4})\s*(newest|hourly|daily|weekly|monthly)?", re.IGNORECASE)
KEEP_FORM = "7 daily, 4 weekly, 6 monthly"

Period = tuple[int, ...]

_PERIODS: dict[str, Callable[[datetime], Period]] = {
    "hourly": lambda moment: (moment.year, moment.month, moment.day, moment.hour),
    "daily": lambda moment: (moment.year, moment.month, moment.day),
    "weekly": lambda moment: tuple(moment.isocalendar()[:2]),
    "monthly": lambda moment: (moment.year, moment.month),
}
INTERVALS = {
    "hourly": timedelta(hours=1),
    "daily": timedelta(days=1),
    "weekly": timedelta(weeks=1),
}
"""Named schedules, each with its interval; after the interval a backup is due."""


@dataclass(frozen=True, slots=True, order=True)
class DatedBackup:
    """A file in the backup folder, as its name describes it."""

    made_at: datetime
    name: str
    scheduled: bool
    """Whether the schedule made it; no other is ever deleted."""


@dataclass(frozen=True, slots=True)
class BackupRetention:
    """Rule for which scheduled backups to keep: the newest ones, and the newest of each period."""

    newest: int = 0
    periods: tuple[tuple[str, int], ...] = ()

    @classmethod
    def parse(cls, text: str) -> BackupRetention:
        """Return the retention rule in a text such as `10` or `7 daily, 4 weekly`. Raises `ValueError`."""
        newest = 0
        periods: list[tuple[str, int]] = []
        for part in text.split(","):
            rule = _RULE.fullmatch(part.strip())
            if rule is None or int(rule[1]) == 0:
                raise ValueError(f"expected a number of backups, or {KEEP_FORM!r}")
            unit = (rule[2] or "newest").lower()
            if unit == "newest":
                newest = int(rule[1])
            else:
                periods.append((unit, int(rule[1])))
        return cls(newest, tuple(periods))

    def select_expired(self, backups: Iterable[DatedBackup]) -> list[DatedBackup]:
        """Return the scheduled backups to delete by this rule, never the newest one."""
        scheduled = sorted((each for each in backups if each.scheduled), reverse=True)
        kept = set(scheduled[: max(self.newest, 1)])
        for unit, count in self.periods:
            newest = {
                _PERIODS[unit](each.made_at): each for each in reversed(scheduled)
            }
            kept.update(list(newest.values())[-count:])
        return [backup for backup in scheduled if backup not in kept]


def backup_name(moment: datetime, *, scheduled: bool) -> str:
    """Return a backup's file name, such as `memory-20260310T082000Z.db`, or `….auto.db` if `scheduled`."""
    kind = ".auto" if scheduled else ""
    return f"memory-{in_zone(moment, UTC):{STAMP}}{kind}.db"


def dated_backup(name: str) -> DatedBackup | None:
    """Return time and kind of a backup from its file name, or None for any other file."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    try:
        made_at = datetime.strptime(match[1], STAMP).replace(tzinfo=UTC)
    except ValueError:  # the 31st of February
        return None
    return DatedBackup(made_at, name, bool(match[2]))


def is_backup_overdue(
    last: datetime | None, *, interval: timedelta, now: datetime
) -> bool:
    """Return True if the last backup is older than two intervals; False if there is none."""
    return last is not None and now - last > 2 * interval
