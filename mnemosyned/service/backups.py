"""`BackupKeeper`: backups on request and by schedule, and the deletion of expired ones."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path

from mnemosyned.backup_schedule import (
    INTERVALS,
    BackupRetention,
    backup_name,
    dated_backup,
    is_backup_overdue,
)
from mnemosyned.config import BACKUP_SCHEDULES, Config, SettingsInForce
from mnemosyned.errors import InvalidRequest, MnemosynedError, SleepInProgress
from mnemosyned.instants import in_zone, shift
from mnemosyned.logs import logger
from mnemosyned.memory.clock import Clock
from mnemosyned.memory.ports import MaintenanceStore
from mnemosyned.service.backup_files import (
    ForgottenList,
    backup_folder,
    backup_target,
    dated_backups,
    named_target,
)
from mnemosyned.sleep.context import SummarizerLease
from mnemosyned.sleep.sleeper import cron_times, cron_trigger
from mnemosyned.verbs.retention import BackedUp, Backup
from mnemosyned.verbs.upkeep import BackupStatus

RETRY_S = 900.0
"""A scheduled backup that failed is tried again this much later."""
AHEAD = timedelta(minutes=5)
"""A backup from further in the future than this was dated by a wrong clock."""
FILES_MAX = 10_000
ON_SERVER = (
    "the memory is on a PostgreSQL server: back that up, with pg_dump or pgBackRest; "
    "mnem export writes a copy that any memory can read"
)
PARTIAL_AGE_S = 86_400.0
"""A part of a copy this old is one that a crash left."""

log = logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupRules:
    """When the daemon makes backups by itself, where, and how many it keeps."""

    interval: timedelta | None = None
    cron: str | None = None
    """Five fields in UTC, in place of the interval."""
    keep: BackupRetention = field(default_factory=BackupRetention)

    @property
    def has_schedule(self) -> bool:
        """Whether backups are scheduled, by an interval or a cron expression."""
        return bool(self.interval or self.cron)


def backup_rules(config: Config) -> BackupRules:
    """Return the backup rules; a folder without a schedule means daily. Raises `ConfigInvalid`."""
    backup = config.backup
    schedule = backup.schedule or ("daily" if backup.dir else "off")
    has_name = schedule in BACKUP_SCHEDULES
    if not has_name:
        cron_trigger(schedule, key="backup.schedule")
    return BackupRules(
        interval=INTERVALS.get(schedule),
        cron=None if has_name else schedule,
        keep=BackupRetention.parse(str(backup.keep)),
    )


def interval_of(rules: BackupRules, now: datetime) -> timedelta:
    """Return the time between the next two scheduled backups after `now`; 0 without a schedule."""
    if rules.cron:
        first, second = cron_times(rules.cron, after=now)
        return second - first
    return rules.interval or timedelta()


@dataclass(eq=False, kw_only=True)
class BackupKeeper:
    """Makes backups and knows the dated ones in the backup folder."""

    store: MaintenanceStore
    settings: SettingsInForce
    file: Path | None
    """None for a memory on a server, whose backups are made elsewhere."""
    clock: Clock
    lease: SummarizerLease
    """Borrowed by a scheduled backup, so that no sleep cycle runs meanwhile."""

    def __post_init__(self) -> None:
        self._retry_at = 0.0
        self._problem = ""
        self._forgotten = ForgottenList(lambda: self.folder, now=self.clock.now)

    @property
    def _rules(self) -> BackupRules:
        """The backup rules of the present settings."""
        return backup_rules(self.settings.config)

    @property
    def folder(self) -> Path:
        """The folder of dated backups, which may not exist yet."""
        return backup_folder(self._database_file, self.settings.config.backup_folder)

    @property
    def _database_file(self) -> Path:
        """The database file to back up. Raises `InvalidRequest` for a memory on a server."""
        if self.file is None:
            raise InvalidRequest(ON_SERVER, field="file")
        return self.file

    def back_up(self, request: Backup) -> BackedUp:
        """Make the backup that a request asks for; without a path, a dated one in the folder."""
        if request.file is not None:
            given = named_target(request.file)
            if given.is_dir():
                given /= backup_name(self.clock.now(), scheduled=False)
            target = backup_target(str(given), self._database_file)
        else:
            target = self._make_dated_target(scheduled=False)
        return self._back_up_to(target)

    def run_scheduled(self) -> None:
        """Make a backup if one is due and no sleep cycle runs; log a failure, and retry later."""
        if not self._rules.has_schedule or time.monotonic() < self._retry_at:
            return
        due = self.next_backup()
        if due is None or self.clock.now() < due:
            return
        try:
            with self.lease.exclusive(purpose="a scheduled backup"):
                self._back_up_by_schedule()
        except SleepInProgress:
            return  # the next check of the triggers comes soon
        except (MnemosynedError, OSError) as error:
            self._problem = getattr(error, "message", str(error))
            self._retry_at = time.monotonic() + RETRY_S
            log.exception("backup_failed")

    def next_backup(self) -> datetime | None:
        """Return when the next scheduled backup is due; None without a schedule or a file."""
        rules = self._rules
        if not rules.has_schedule or self.file is None:
            return None
        last = self._last_backup_at()
        if last is None:
            return self.clock.now()
        if rules.cron:
            return cron_times(rules.cron, after=last)[0]
        return shift(last, rules.interval or timedelta())

    def status(self) -> BackupStatus:
        """Return the number and times of dated backups, and the schedule, for the verb `status`."""
        rules = self._rules
        if self.file is None:
            return BackupStatus(
                folder="", scheduled=False, count=0, last=None, next=None
            )
        backups = dated_backups(self.folder)
        return BackupStatus(
            folder=str(self.folder),
            scheduled=rules.has_schedule,
            count=len(backups),
            last=self._last_backup_at(),
            next=self.next_backup(),
            problem=self._problem,
        )

    def warnings(self) -> list[str]:
        """Return a sentence for each problem with backups; empty if there is none."""
        if not self._rules.has_schedule:
            return []
        if self.file is None:
            return [f"backup.schedule has no effect: {ON_SERVER}"]
        warnings = []
        if self._problem:
            warnings.append(f"the last scheduled backup failed: {self._problem}")
        last, now = self._last_backup_at(), self.clock.now()
        interval = interval_of(self._rules, now)
        if last and is_backup_overdue(last, interval=interval, now=now):
            moment = in_zone(last, None).isoformat(" ")[:16]
            warnings.append(
                f"the last scheduled backup is of {moment}, older than twice the interval "
                "of backup.schedule: mnem backup makes one now"
            )
        return warnings

    def _back_up_by_schedule(self) -> None:
        """Make a dated backup, then delete the dated backups that the rules no longer keep."""
        # First the parts of copies that a crash left: they may have filled the disk.
        for part in islice(self.folder.glob("memory-*.db.partial"), FILES_MAX):
            old = time.time() - part.stat().st_mtime > PARTIAL_AGE_S
            if old and dated_backup(part.name.removesuffix(".partial")):
                part.unlink(missing_ok=True)
        target = self._make_dated_target(scheduled=True)
        made = self._back_up_to(target)
        self._problem, self._retry_at = "", 0.0
        expired = self._rules.keep.select_expired(dated_backups(self.folder))
        for backup in expired:
            (self.folder / backup.name).unlink(missing_ok=True)
        left = dated_backups(self.folder)
        self._forgotten.drop_before(min(left).made_at)
        log.info("backup_made", file=made.file, bytes=made.bytes, removed=len(expired))

    def _back_up_to(self, target: Path) -> BackedUp:
        """Write a copy of the database to `target`, and return its size and counts."""
        mark = self._forgotten.begin_backup()
        copy = self.store.back_up(target)
        self._forgotten.end_backup(mark, target)
        return BackedUp(
            file=str(target),
            bytes=copy.bytes,
            memories=copy.memories,
            episodes=copy.episodes,
            problems=list(copy.problems),
        )

    def _make_dated_target(self, *, scheduled: bool) -> Path:
        """Return the path of a new dated backup, and make its folder. Raises `InvalidRequest`."""
        folder = self.folder
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidRequest(
                f"the backup folder {folder} cannot be made: {error.strerror}; set backup.dir "
                "to another one",
                field="file",
            ) from error
        name = backup_name(self.clock.now(), scheduled=scheduled)
        return backup_target(str(folder / name), self._database_file)

    def _last_backup_at(self) -> datetime | None:
        """Return the time of the newest dated backup, None without one; ignore dates in the future."""
        latest = shift(self.clock.now(), AHEAD)
        dates = [
            each.made_at
            for each in dated_backups(self.folder)
            if each.made_at <= latest
        ]
        return max(dates, default=None)
