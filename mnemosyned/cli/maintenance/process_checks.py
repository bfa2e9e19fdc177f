"""Checks of the doctor on the daemon's process, its unit and the tools that are set up."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import socket
import sqlite3
import stat
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from mnemosyned.agents.setup.files import SetupJournal
from mnemosyned.agents.setup.parts import Machine, Programs, SetupSite
from mnemosyned.agents.setup.targets import TARGETS
from mnemosyned.agents.setup.tools import check_tool
from mnemosyned.cli.maintenance.daemon_process import PROGRAM
from mnemosyned.cli.maintenance.findings import (
    Finding,
    Installation,
    Remedy,
    note,
    ok,
    problem,
    warning,
)
from mnemosyned.cli.maintenance.service import (
    is_lingering,
    present_unit,
    unit_file,
)
from mnemosyned.config import (
    API_KEY_VARIABLE,
    PATHS,
    make_paths_absolute,
    url_in_path,
    value_of,
    without_password,
)
from mnemosyned.errors import ConfigInvalid
from mnemosyned.paths import SOCKET_PATH_BYTES_MAX, state_dir
from mnemosyned.storage.sqlite.copies import open_to_read
from mnemosyned.version import __version__

CONNECT_S = 1.0
BEHIND = timedelta(minutes=10)
SQLITE_MIN = (3, 37, 0)
"""The first version with STRICT tables."""
START = "mnem start"
REPAIR = "mnem doctor --repair"


def check_settings(installation: Installation) -> Iterator[Finding]:
    """Check whether the settings are valid, and in force without a restart."""
    if installation.config_problem:
        url = url_in_path(installation.config.database or "")
        bare = shlex.quote(without_password(url or "", shown=""))
        command = f"mnem config set database {bare}" if url else "mnem config edit"
        yield problem("settings", installation.config_problem, command)
        return
    pending = installation.status.restart_needed if installation.status else []
    if pending:
        text = f"changed, but in force only after a restart: {', '.join(pending)}"
        yield warning("settings", text, "mnem restart")
    for name in sorted(PATHS):
        value = value_of(installation.config, name) or "/"
        below = make_paths_absolute(name, value, Path("/"))
        if below != value and not value.startswith(("/", "~")):
            text = f"{name}: {value} is another file in each working directory"
            yield warning("settings", text, f"mnem config set {name} PATH")
    key = installation.config.llm.api_key_file
    if key and not os.access(Path(key).expanduser(), os.R_OK):
        text = f"llm.api_key_file: {key} cannot be read (or set {API_KEY_VARIABLE})"
        yield problem("settings", text, "mnem config edit")
    file = installation.config_file
    where = str(file) if file.exists() else "all defaults; no file"
    yield ok("settings", f"{where}: valid")


def check_programs(_: Installation) -> Iterator[Finding]:
    """Check the versions of Python and SQLite, and whether `mnemosyned` is on the PATH."""
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
    if shutil.which(PROGRAM) is None:
        folder = Path(sys.argv[0]).absolute().parent
        missing = f"{PROGRAM} is not on the PATH; agents and systemd may not find it"
        yield note("programs", missing, f'export PATH="{folder}:$PATH"')
    yield ok("programs", f"mnemosyned {__version__}, {text}")


def check_socket(installation: Installation) -> Iterator[Finding]:
    """Check whether the socket is a live socket of this user."""
    path = installation.socket
    length = len(os.fsencode(path))
    if length > SOCKET_PATH_BYTES_MAX:
        text = f"the path of the socket has {length} bytes, more than {SOCKET_PATH_BYTES_MAX}: {path}"
        yield problem("socket", text, "mnem config set socket PATH")
        return
    try:
        status = path.lstat()
    except OSError:
        return  # without a daemon there is none
    if not stat.S_ISSOCK(status.st_mode):
        text = f"{path} is no socket, and is in the way of it"
        yield problem("socket", text, f"mv {path} {path}.old")
    elif status.st_uid not in (os.geteuid(), 0):
        text = f"{path} belongs to another user (id {status.st_uid})"
        yield problem("socket", text, "mnem config set socket PATH")
    elif not _is_socket_alive(path):
        text = f"{path} is dead: a daemon that was killed left it"
        yield warning("socket", text, REPAIR, Remedy.SOCKET, path)


def check_daemon(installation: Installation) -> Iterator[Finding]:
    """Check whether the daemon runs, answers, and has the configured database."""
    process, status = installation.process, installation.status
    lock = installation.database.with_name(installation.database.name + ".lock")
    if lock.is_symlink():
        yield problem(
            "daemon", f"{lock} is a symbolic link: no daemon starts", f"rm {lock}"
        )
        return
    if process is None:
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
        yield warning("daemon", text, "mnem restart")
    with suppress(ConfigInvalid):
        location = str(installation.config.location)
        if status.database != location and "database" not in status.restart_needed:
            text = f"it has {status.database}, and the settings name {location}"
            yield warning("daemon", text, "mnem stop; mnem start")
    yield from (problem("daemon", text, "mnem restart") for text in status.problems)
    yield from (warning("daemon", text) for text in status.warnings)
    yield ok("daemon", f"process {process.pid} answers on {installation.socket}")


def check_unit(_: Installation) -> Iterator[Finding]:
    """Check the systemd user unit, if systemd runs for this user."""
    unit, file = present_unit(), unit_file()
    if unit is None or not unit.loaded:
        if unit is None and file.exists():
            text = f"{file} is installed, but no systemd of this user answers"
            yield note("unit", text, START)
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
        yield warning("unit", f"the unit is {unit.active}", START)
    if not unit.enabled:
        text = "the unit is not enabled: it does not start at the next login"
        yield warning("unit", text, "systemctl --user enable mnemosyned")
    if is_lingering() is False:
        text = "without lingering the daemon ends when you log out"
        yield note("unit", text, "loginctl enable-linger")
    if unit.is_running and unit.enabled:
        yield ok("unit", "the unit is enabled and active")


def check_clock(installation: Installation) -> Iterator[Finding]:
    """Check whether the system clock is behind the times that a daemon has seen."""
    status = installation.status
    if status is not None:
        if status.clock:
            yield warning("clock", status.clock, "mnem archive prune --believe-clock")
        return
    seen = None
    if installation.database.is_file():
        with (
            suppress(sqlite3.Error, OSError, ValueError),
            closing(open_to_read(installation.database, foreign=True)) as connection,
        ):
            row = connection.execute("SELECT moment FROM clock_seen").fetchone()
            seen = datetime.fromisoformat(row[0]) if row else None
    if seen and seen - datetime.now(UTC) > BEHIND:
        text = f"the clock is behind: a daemon saw {seen:%Y-%m-%d %H:%M} UTC already"
        yield warning("clock", text, "timedatectl")


def _is_socket_alive(path: Path) -> bool:
    """Return whether a process accepts connections on a socket, even if it is busy."""
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as probe:
        probe.settimeout(CONNECT_S)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:  # busy, or closed to us: not dead
            return True
    return True


def check_tools(installation: Installation) -> Iterator[Finding]:
    """Check each agents' tool that was set up, as `mnem setup --check` does."""
    machine = Machine.present()
    site = SetupSite(machine=machine, programs=Programs.of(machine, Path(sys.argv[0])))
    journal = SetupJournal(state_dir() / "setup")
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
            yield warning("tools", f"{check.title}: {text}", f"mnem setup {check.tool}")
        if not check.problems:
            yield ok("tools", f"{check.title} has memory")
