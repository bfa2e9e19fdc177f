"""Backups, on request and by schedule, their files, and the list of memories forgotten since one.

A restore of a backup reads the list to forget them again. It is a file in the folder of the
backups, one JSON object a line, in the order of events. It contains no ids and no words: a memory is
named by a hash of its id, with a key that the file begins with.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain, islice
from pathlib import Path

import msgspec

from mnemosyned import backup_schedule, errors, paths
from mnemosyned.config.settings import BACKUP_SCHEDULES, Config, SettingsInForce
from mnemosyned.instants import in_zone, shift
from mnemosyned.logs import log_failure, logger
from mnemosyned.memory.clock import Clock
from mnemosyned.memory.ports import MaintenanceStore
from mnemosyned.sleep import context, sleeper
from mnemosyned.verbs import retention, upkeep

FILES_MAX = 10_000
SQLITE, JOURNAL = b"SQLite format 3\0", bytes.fromhex("d9d505f920a163d7")
"""First bytes of a database file, and of a transaction's journal."""
OWN = ("", "-wal", "-shm", "-journal", ".lock")
SUFFIX = ".partial-journal"
"""Longest suffix that is added to a backup's name while the backup is written."""


def backup_folder(database: Path, setting: Path | None) -> Path:
    """Return the folder of dated backups: `setting`, or if None a folder next to the database."""
    return setting or database.with_name("backups")


def find_possible_copies(database: Path, folder: Path | None = None) -> list[str]:
    """Return paths of possible copies of the database: in its folder, subfolders, and `folder`.

    `folder` is the backup folder. Any SQLite file counts, and any file named like the database.
    """
    own = _database_files(database)
    beside = database.parent
    files = chain(
        folder.glob("*") if folder else (), beside.glob("*"), beside.glob("*/*")
    )
    others = set(islice(files, FILES_MAX)) - own
    return sorted(str(file) for file in others if _may_be_copy(file, database))


def backup_target(name: str, database: Path) -> Path:
    """Return an absolute path for a backup of `database`. Raises `InvalidRequest` for an unusable `name`."""
    given = named_target(name, suffix=SUFFIX)
    try:
        target = given.resolve()
        refused = _reason_to_refuse(target, database)
    except OSError as error:  # changed since it was looked at
        refused = f"{paths.shown_path(name)} cannot be used: {paths.describe_path_error(error)}"
    if refused:
        raise errors.InvalidRequest(f"{refused}; choose another name", field="file")
    return target


def named_target(name: str, *, suffix: str = "") -> Path:
    """Return the path that a caller named, after a check.

    Raises `InvalidRequest` for a relative or unusable path, or one that is too long with `suffix`.
    """
    if not name.startswith("/"):
        raise errors.InvalidRequest(
            f"{paths.shown_path(name)} is not an absolute path; begin it with /",
            field="file",
        )
    return paths.require_usable_path(
        name, field="file", suffix=suffix, bytes_max=paths.DATABASE_PATH_BYTES_MAX
    )


def dated_backups(folder: Path) -> list[backup_schedule.DatedBackup]:
    """Return the complete backups with a date in their names, in a folder that may be missing."""
    try:
        names = [file.name for file in islice(folder.iterdir(), FILES_MAX)]
    except OSError:  # there is none yet
        return []
    return [each for each in map(backup_schedule.dated_backup, names) if each]


def find_parts(folder: Path, name: str = "*") -> Iterator[Path]:
    """Yield the files that unfinished backups left in a folder; `name` is a pattern of the backups' names."""
    for end, begins in ((".partial", SQLITE), (SUFFIX, JOURNAL)):
        for part in folder.glob(f"{name}{end}"):
            if part.is_file() and _is_empty_or(part, begins):
                yield part


def file_bytes(path: Path) -> int:
    """Return the size of a file in bytes; 0 if it does not exist."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _reason_to_refuse(target: Path, database: Path) -> str:
    """Return why no backup may be written to `target`, in a clause; empty if it may."""
    if target.is_dir():
        return f"{target} is a folder, not a backup"
    folder = target.parent
    if not folder.is_dir():
        return f"there is no folder {folder}"
    if not os.access(folder, os.W_OK | os.X_OK, effective_ids=True):
        return f"{folder} is closed to the process that makes backups"
    if target in _database_files(database):
        return f"{target} is a file of the memory itself"
    if _is_in_use(target):
        return f"{target} is a database that some program uses"
    if target.exists() and not (target.is_file() and _is_empty_or(target, SQLITE)):
        return f"{target} exists already and is not a backup"
    return ""


def _database_files(database: Path) -> set[Path]:
    """Return the paths of the database and of the side files that SQLite and the daemon make."""
    return {database.with_name(database.name + suffix) for suffix in OWN}


def _may_be_copy(file: Path, database: Path) -> bool:
    """Return whether a file may be a copy of the database, by name, log or first bytes."""
    try:
        # Another name of the database itself is no copy.
        is_database = database.exists() and file.samefile(database)
        if is_database or not file.is_file():
            return False
    except OSError:  # in a folder that is closed to us: no copy that this daemon made
        return False
    named = file.name.startswith(database.stem)
    return named or _is_in_use(file) or _read_beginning(file) == SQLITE


def _is_in_use(file: Path) -> bool:
    """Return whether a program uses a database: whether its write-ahead log exists.

    A database that this process has open must not be opened to look: closing it again would drop
    the locks of SQLite, and another program could then delete the log.
    """
    return file.with_name(file.name + "-wal").exists()


def _is_empty_or(file: Path, beginning: bytes) -> bool:
    """Return whether an existing file is empty, or begins with these bytes."""
    return file.stat().st_size == 0 or _read_beginning(file).startswith(beginning)


def _read_beginning(file: Path) -> bytes:
    """Return a file's first bytes, enough to recognize SQLite; empty if they cannot be read."""
    try:
        with file.open("rb") as opened:
            return opened.read(len(SQLITE))
    except OSError:  # unreadable for us: no copy that this daemon made
        return b""


NAME = "forgotten.list"
_PRIVATE = 0o600


class _ListEvent(msgspec.Struct, omit_defaults=True):
    """One event; the first line has the key alone."""

    at: datetime
    key: str = ""
    begun: str = ""
    """Mark of a backup about to be made, which may hold memories forgotten from here on."""
    made: str = ""
    """That backup was made; `digest` is the hash of its file."""
    digest: str = ""
    forgotten: str = ""
    """The hash of a memory's id."""
    kept: str = ""
    """The same for a memory that is back, or that could not be forgotten."""


_decode = msgspec.json.Decoder(_ListEvent).decode
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class ForgottenSince:
    """Memories forgotten after a backup, by the list in the backup folder."""

    key: bytes
    hashes: frozenset[str]
    """Hashes of the ids that were forgotten after it was made."""
    begins: datetime | None
    """The list lacks deletions between the backup and this time; None if it lacks none."""

    def among(self, ids: Iterable[str]) -> list[str]:
        """Return the given ids of memories that were forgotten after the backup."""
        return [id for id in ids if _hash_id(self.key, id) in self.hashes]


@dataclass(eq=False)
class ForgottenList:
    """Writer of the list of forgotten memories in a backup folder. Safe from any thread and process.

    A failure to write the list is logged, and delays neither a forget nor a backup.
    """

    folder: Callable[[], Path | None]
    """Returns the folder; None for a memory on a server, whose backups are made elsewhere, without a list."""
    now: Callable[[], datetime]

    def note(self, ids: Sequence[str]) -> None:
        """Record memories as about to be forgotten; do nothing if no backup was made so far."""
        self._append_lines(
            lambda key: [self._new_event(forgotten=_hash_id(key, id)) for id in ids]
        )

    def withdraw(self, ids: Sequence[str]) -> None:
        """Record memories as not forgotten after all: restored, or impossible to forget."""
        self._append_lines(
            lambda key: [self._new_event(kept=_hash_id(key, id)) for id in ids]
        )

    def begin_backup(self) -> str:
        """Record that a backup begins, in a new list if there is none; return the backup's random mark."""
        mark = secrets.token_hex(8)
        self._append_lines(lambda _: [self._new_event(begun=mark)], create=True)
        return mark

    def end_backup(self, mark: str, file: Path) -> None:
        """Record the end of a backup by its mark, with the hash of the backup's file."""
        self._append_lines(
            lambda _: [self._new_event(made=mark, digest=_file_digest(file))]
        )

    def drop_before(self, oldest: datetime) -> None:
        """Delete the list's events before `oldest`, the time of the oldest remaining backup; log a failure."""
        folder = self.folder()
        try:
            if folder is None or not (folder / NAME).exists():
                return
            with _lock_folder(folder):
                first, lines = _read_list(folder / NAME)
                left = [line for line in lines if line.at >= oldest]
                if first and len(left) < len(lines):
                    begins = msgspec.structs.replace(first, at=oldest)
                    partial = folder / f"{NAME}.new"
                    partial.unlink(missing_ok=True)
                    append_lines(partial, map(_encode, [begins, *left]))
                    partial.replace(folder / NAME)
        except (OSError, ValueError) as error:
            log_failure("forgotten_list_not_written", error)

    def _new_event(self, **event: str) -> _ListEvent:
        """Return an event of the present time with these fields."""
        return _ListEvent(at=in_zone(self.now(), UTC), **event)

    def _append_lines(
        self, lines: Callable[[bytes], list[_ListEvent]], *, create: bool = False
    ) -> None:
        """Append to the list the events that `lines` makes from the list's key; log a failure.

        Without a list, do nothing unless `create`.
        """
        folder = self.folder()
        try:
            if folder is None or not (create or (folder / NAME).exists()):
                return
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _lock_folder(folder):
                first = next(
                    (each for each in _read_events(folder / NAME) if each.key), None
                )
                if first is None:
                    first = self._new_event(key=secrets.token_hex(16))
                    append_lines(folder / NAME, [_encode(first)])
                events = lines(bytes.fromhex(first.key))
                append_lines(folder / NAME, map(_encode, events))
        except (OSError, ValueError) as error:
            log_failure("forgotten_list_not_written", error)


def forgotten_since(backup: Path, folder: Path) -> ForgottenSince | None:
    """Return the memories forgotten since a backup, by the list in `folder`; None without a list.

    If the list does not name the backup, its time is the date in the file's name, or else the time of
    the file.
    """
    first, events = _read_list(folder / NAME)
    if first is None:
        return None
    digest = _file_digest(backup)
    mark = next((line.made for line in events if line.digest == digest), "")
    begun = [
        number for number, line in enumerate(events) if mark and line.begun == mark
    ]
    begins = None
    if begun:
        events = events[begun[0] :]
    else:
        if dated := backup_schedule.dated_backup(backup.name):
            made_at = dated.made_at
        else:
            log = backup.with_name(f"{backup.name}-wal")
            newest = max(
                file.stat().st_mtime for file in (backup, log) if file.exists()
            )
            made_at = datetime.fromtimestamp(newest, tz=UTC)
        events = [line for line in events if line.at > made_at]
        begins = first.at if made_at < first.at else None
    hashes: set[str] = set()
    for line in events:
        hashes.discard(line.kept)
        hashes |= {line.forgotten} - {""}
    return ForgottenSince(bytes.fromhex(first.key), frozenset(hashes), begins)


def _hash_id(key: bytes, id: str) -> str:
    """Return the keyed hash of a memory id, by which the list names a memory, in hexadecimal."""
    encoded = id.encode("utf-8", "replace")
    return hashlib.blake2b(encoded, key=key, digest_size=16).hexdigest()


def _file_digest(file: Path) -> str:
    """Return the hash of a file's content, in hexadecimal."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "blake2b").hexdigest()[:32]


@contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """Hold an exclusive lock on a folder, and flush the folder to disk at the end."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read_events(path: Path) -> Iterator[_ListEvent]:
    """Yield the events in a list file; skip a line that a crash cut off."""
    try:
        opened = path.open("rb")
    except FileNotFoundError:
        return
    with opened:
        for line in opened:
            try:
                yield _decode(line)
            except msgspec.DecodeError:
                continue


def _read_list(path: Path) -> tuple[_ListEvent | None, list[_ListEvent]]:
    """Return (first event, with the list's key; later events), or (None, []) for a file without a key."""
    lines = _read_events(path)
    first = next((line for line in lines if line.key), None)
    return first, list(lines)


def append_lines(path: Path, lines: Iterable[bytes]) -> None:
    """Append lines to a private file, all of them on disk or none. Raises `OSError`.

    A new file made by root is given to the folder's owner, whose daemon appends, too.
    """
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, _PRIVATE)
    with os.fdopen(descriptor, "r+b", buffering=0):
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        text = b"".join(line + b"\n" for line in lines)
        size = os.lseek(descriptor, 0, os.SEEK_END)
        if not size and os.geteuid() == 0:
            folder = path.parent.stat()
            os.fchown(descriptor, folder.st_uid, folder.st_gid)
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            text = b"\n" + text  # a crash cut the last line off
        try:
            while text:
                text = text[os.write(descriptor, text) :]
            os.fdatasync(descriptor)
        except OSError:
            os.ftruncate(descriptor, size)
            raise


RETRY_S = 900.0
"""Seconds until a scheduled backup that failed is tried again."""
AHEAD = timedelta(minutes=5)
"""A backup dated further in the future than this was made by a wrong clock."""
ON_SERVER = (
    "the memory is on a PostgreSQL server: back that up, with pg_dump or pgBackRest; "
    "mnem export writes a copy that any memory can read"
)
PARTIAL_AGE_S = 86_400.0
"""Age from which the part of a backup is left over from a crash."""

log = logger()


def next_backup_after(config: Config, moment: datetime) -> datetime | None:
    """Return the time of the next scheduled backup after a backup at `moment`; None without a schedule.

    If only a folder is set, backups are daily; cron fields are in UTC. Raises `ConfigInvalid`.
    """
    schedule = config.backup.schedule or ("daily" if config.backup.dir else "off")
    if schedule not in BACKUP_SCHEDULES:
        trigger = sleeper.cron_trigger(schedule, key="backup.schedule")
        fires_at: datetime | None = trigger.get_next_fire_time(moment, moment)
        if fires_at is None:
            raise errors.ConfigInvalid(
                f"backup.schedule: no day of the calendar has these fields; it says {schedule!r}",
                field="backup.schedule",
            )
        return fires_at
    interval = backup_schedule.INTERVALS.get(schedule)
    return shift(moment, interval) if interval else None


def backup_interval(config: Config, now: datetime) -> timedelta | None:
    """Return the time between the next two scheduled backups; None without a schedule."""
    first = next_backup_after(config, now)
    second = next_backup_after(config, first) if first else None
    return second - first if first and second else None


@dataclass(eq=False, kw_only=True)
class BackupKeeper:
    """Maker of backups, which knows the dated ones in the backup folder."""

    store: MaintenanceStore
    settings: SettingsInForce
    file: Path | None
    """None for a memory on a server, whose backups are made elsewhere."""
    clock: Clock
    lease: context.SummarizerLease
    """Borrowed by a scheduled backup, so that no sleep cycle runs meanwhile."""

    def __post_init__(self) -> None:
        self._retry_at = 0.0
        self._problem = ""
        self._forgotten = ForgottenList(lambda: self.folder, now=self.clock.now)

    @property
    def has_schedule(self) -> bool:
        """Whether the settings schedule backups."""
        return next_backup_after(self.settings.config, self.clock.now()) is not None

    @property
    def folder(self) -> Path:
        """The folder of dated backups, which may not exist yet."""
        return backup_folder(self._database_file, self.settings.config.backup_folder)

    @property
    def _database_file(self) -> Path:
        """The database file to back up. Raises `InvalidRequest` for a memory on a server."""
        if self.file is None:
            raise errors.InvalidRequest(ON_SERVER, field="file")
        return self.file

    def back_up(self, request: retention.Backup) -> retention.BackedUp:
        """Make the backup that a request asks for; without a path, a dated backup in the backup folder."""
        if request.file is not None:
            given = named_target(request.file)
            if given.is_dir():
                given /= backup_schedule.backup_name(self.clock.now(), scheduled=False)
            target = backup_target(str(given), self._database_file)
        else:
            target = self._make_dated_target(scheduled=False)
        return self._back_up_to(target)

    def run_scheduled(self) -> None:
        """Make a backup if due, unless a cycle runs, and delete expired ones; log a failure, retry later."""
        due = self.next_backup() if time.monotonic() >= self._retry_at else None
        if due is None or self.clock.now() < due:
            return
        try:
            with self.lease.exclusive(purpose="a scheduled backup"):
                # First the parts of copies that a crash left: they may have filled the disk.
                for part in islice(find_parts(self.folder, "memory-*.db"), FILES_MAX):
                    old = time.time() - part.stat().st_mtime > PARTIAL_AGE_S
                    name = part.name.partition(".partial")[0]
                    if old and backup_schedule.dated_backup(name):
                        part.unlink(missing_ok=True)
                made = self._back_up_to(self._make_dated_target(scheduled=True))
                self._problem, self._retry_at = "", 0.0
                keep = backup_schedule.BackupRetention.parse(
                    str(self.settings.config.backup.keep)
                )
                expired = keep.select_expired(dated_backups(self.folder))
                for backup in expired:
                    (self.folder / backup.name).unlink(missing_ok=True)
                left = dated_backups(self.folder)
                self._forgotten.drop_before(min(left).made_at)
                removed = len(expired)
                log.info(
                    "backup_made", file=made.file, bytes=made.bytes, removed=removed
                )
        except errors.SleepInProgress:
            return  # the next check of the triggers comes soon
        except (errors.MnemosynedError, OSError) as error:
            self._problem = getattr(error, "message", str(error))
            self._retry_at = time.monotonic() + RETRY_S
            log.exception("backup_failed")

    def next_backup(self) -> datetime | None:
        """Return when the next scheduled backup is due; None without a schedule or a file."""
        if self.file is None or not self.has_schedule:
            return None
        last = self._last_backup_at()
        if last is None:
            return self.clock.now()
        return next_backup_after(self.settings.config, last)

    def status(self) -> upkeep.BackupStatus:
        """Return the number and times of dated backups, and the schedule, for the verb `status`."""
        if self.file is None:
            return upkeep.BackupStatus()
        backups = dated_backups(self.folder)
        return upkeep.BackupStatus(
            folder=str(self.folder),
            scheduled=self.has_schedule,
            count=len(backups),
            last=self._last_backup_at(),
            next=self.next_backup(),
            problem=self._problem,
        )

    def warnings(self) -> list[str]:
        """Return a sentence for each problem with backups; empty if there is none."""
        now = self.clock.now()
        interval = backup_interval(self.settings.config, now)
        if interval is None:
            return []
        if self.file is None:
            return [f"backup.schedule has no effect: {ON_SERVER}"]
        warnings = []
        if self._problem:
            warnings.append(f"the last scheduled backup failed: {self._problem}")
        last = self._last_backup_at()
        if last and backup_schedule.is_backup_overdue(last, interval=interval, now=now):
            moment = in_zone(last, None).isoformat(" ")[:16]
            warnings.append(
                f"the last scheduled backup is of {moment}, older than twice the interval "
                "of backup.schedule: mnem backup makes one now"
            )
        return warnings

    def _back_up_to(self, target: Path) -> retention.BackedUp:
        """Back up to `target`, with a mark in the list of forgotten memories; return size and counts."""
        mark = self._forgotten.begin_backup()
        copy = self.store.back_up(target)
        self._forgotten.end_backup(mark, target)
        return retention.BackedUp(
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
            raise errors.InvalidRequest(
                f"the backup folder {folder} cannot be made: {error.strerror}; set backup.dir "
                "to another one",
                field="file",
            ) from error
        name = backup_schedule.backup_name(self.clock.now(), scheduled=scheduled)
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
