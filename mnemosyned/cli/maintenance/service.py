"""`mnem start`, `stop`, `restart` and `logs`, with systemd's unit where there is one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from pathlib import Path

import click
import msgspec

from mnemosyned.cli.calls import configured_socket, on_interrupt
from mnemosyned.cli.maintenance import daemon_process
from mnemosyned.cli.maintenance.daemon_process import configured_daemon
from mnemosyned.cli.output.terminal import is_terminal, say, show_progress
from mnemosyned.client.connection import Connection
from mnemosyned.config import KEYS, Config, settings_variables, variable
from mnemosyned.errors import (
    ConfigInvalid,
    DaemonUnreachable,
    DatabaseInUse,
    MnemosynedError,
    NotFound,
)
from mnemosyned.instants import in_zone
from mnemosyned.storage.sqlite.ownership import DatabaseProcess, database_owner
from mnemosyned.verbs.upkeep import Status

_LEVELS_LEFT_OUT = {"info", "debug"}


def readable_line(line: str) -> str:
    """Return a JSON log line as `time event  name=value`; other lines unchanged."""
    try:
        entry = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return line
    if not isinstance(entry, dict) or "event" not in entry:
        return line
    level, timestamp = entry.pop("level", "info"), str(entry.pop("timestamp", ""))
    with suppress(ValueError):
        moment = in_zone(datetime.fromisoformat(timestamp), None)
        timestamp = f"{moment:%Y-%m-%d %H:%M:%S}"
    head = [
        timestamp,
        "" if level in _LEVELS_LEFT_OUT else f"{level}:",
        str(entry.pop("event")).replace("_", " "),
    ]
    parts = [" ".join(filter(None, head))]
    for name, value in entry.items():
        is_text = isinstance(value, str)
        parts.append(
            f"{name}={value if is_text else msgspec.json.encode(value).decode()}"
        )
    return "  ".join(parts)


UNIT = "mnemosyned.service"
ASK_TIMEOUT_S = 10.0
"""Longest wait for an answer about the unit."""
CHANGE_TIMEOUT_S = 120.0
_PROPERTIES = ("LoadState", "ActiveState", "UnitFileState", "MainPID", "Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemdUnit:
    """The state of the user unit in systemd."""

    loaded: bool
    active: str
    """Its state, such as active, inactive or failed."""
    enabled: bool
    pid: int
    result: str

    @property
    def is_running(self) -> bool:
        """Whether the unit is active, or starting or reloading."""
        return self.active in ("active", "activating", "reloading")


def unit_file() -> Path:
    """Return the path of the user unit that `make install` writes."""
    config = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(config) / "systemd" / "user" / UNIT


def present_unit() -> SystemdUnit | None:
    """Return the state of the user unit; None if systemd does not run for this user."""
    shown = systemctl("show", UNIT, *(f"--property={name}" for name in _PROPERTIES))
    if shown is None or shown.returncode != 0:
        return None
    values = dict(line.partition("=")[::2] for line in shown.stdout.splitlines())
    return SystemdUnit(
        loaded=values.get("LoadState") == "loaded",
        active=values.get("ActiveState", ""),
        enabled=values.get("UnitFileState") in ("enabled", "enabled-runtime"),
        pid=int(values.get("MainPID") or 0),
        result=values.get("Result", ""),
    )


def systemctl(
    *words: str, timeout_s: float = ASK_TIMEOUT_S
) -> subprocess.CompletedProcess[str] | None:
    """Run `systemctl --user`; return the finished process, or None if it cannot be run in time."""
    return _run_tool("systemctl", "--user", "--no-pager", *words, timeout_s=timeout_s)


def _run_tool(
    name: str, *words: str, timeout_s: float
) -> subprocess.CompletedProcess[str] | None:
    """Run a program with its output captured; None if it is missing or exceeds `timeout_s`."""
    program = shutil.which(name)
    if program is None:
        return None
    try:
        return subprocess.run(  # noqa: S603 our own words
            [program, *words],
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def is_lingering() -> bool | None:
    """Return whether the user's services run without a login; None if it is unknown."""
    words = ["show-user", str(os.geteuid()), "--property=Linger"]
    shown = _run_tool("loginctl", *words, timeout_s=ASK_TIMEOUT_S)
    if shown is None or shown.returncode != 0:
        return None
    return shown.stdout.strip() == "Linger=yes"


STOP_SLACK_S = 60.0
"""Time for a stop beyond the deadline of the last consolidation."""
FOLLOW_S = 0.5
LINES_MAX = 100_000


@click.command()
def start() -> None:
    """Start the daemon, and wait until it answers.

    With systemd it starts the user unit; without, a process of its own with a log in the state
    directory.
    """
    start_daemon(daemon_process.load_present_config())


@click.command()
def stop() -> None:
    """Stop the daemon, after its last consolidation.

    A mistake in the settings is ignored: the daemon may run with those it read before.
    """
    try:
        config = daemon_process.load_present_config()
    except ConfigInvalid as error:
        say(f"mnem: a mistake in the settings was ignored: {error.message}", err=True)
        config = Config(socket=configured_socket())
    stop_daemon(config)


@click.command()
def restart() -> None:
    """Stop the daemon and start it again with the same options."""
    config = daemon_process.load_present_config()
    _ = config.location  # raises before anything is stopped
    if stopped := stop_daemon(config):
        start_again(stopped)
    else:
        start_daemon(config)


@click.command()
@click.option(
    "-n",
    "--lines",
    default=50,
    show_default=True,
    type=click.IntRange(1, LINES_MAX),
    help="How many of the last lines.",
)
@click.option("-f", "--follow", is_flag=True, help="Go on as lines are written.")
def logs(lines: int, *, follow: bool) -> None:
    """Show the daemon's log: systemd's journal, or the file of `mnem start`."""
    file = daemon_process.log_path()
    unit = present_unit()
    journal = shutil.which("journalctl")
    if journal and unit and unit.loaded and (unit.is_running or not file.exists()):
        words = ["--user", "--no-pager", "--unit", UNIT, "--output=cat", f"-n{lines}"]
        sys.stdout.flush()
        os.execv(journal, [journal, *words, *(["--follow"] if follow else [])])  # noqa: S606
    if not file.exists():
        raise NotFound(
            f"there is no log: the daemon was not started by `mnem start` ({file})"
        )
    _print_log(file, lines, follow=follow)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppedDaemon:
    """The options and environment of a stopped daemon, to start it again."""

    by_systemd: bool
    arguments: Sequence[str]
    environment: Mapping[str, str]


def start_daemon(config: Config) -> None:
    """Start the daemon by systemd, or as a detached process.

    If it runs already, print its process. Raises `DatabaseInUse` if it runs with another database,
    `ConfigInvalid` for an impossible database.
    """
    wanted = str(config.location)
    if process := configured_daemon(config):
        _refuse_program(process)
        database = daemon_process.database_of(process)
        if database and database != wanted:
            raise DatabaseInUse(
                f"the daemon runs already, as process {process.pid}, with {database}, and these "
                f"settings name {wanted}: run `mnem stop`, then `mnem start`"
            )
        say(f"the daemon runs already, as process {process.pid}", err=True)
        return
    unit = present_unit()
    if not (unit and unit.loaded):
        _start_detached()
        return
    pid = _start_unit()
    theirs = daemon_process.daemon_environment(pid)
    ours = settings_variables(os.environ, Path.cwd())
    known = map(variable, (*KEYS, "config"))
    unread = [name for name in known if name in ours and ours[name] != theirs.get(name)]
    if unread:
        names = ", ".join(unread)
        remedy = f"`mnem config set`, or systemctl --user edit {UNIT}"
        say(f"it does not read {names} of this shell: {remedy}", err=True)


def stop_daemon(
    config: Config, *, database: Path | None = None
) -> StoppedDaemon | None:
    """Stop the daemon and wait for its end; None if none ran.

    `database` selects the process that has this file open, instead of the configured daemon. Raises
    `DatabaseInUse` for a program that is no daemon, `DaemonUnreachable` if it does not end in time.
    """
    process = database_owner(database) if database else configured_daemon(config)
    if process is None:
        say("no daemon runs", err=True)
        return None
    _refuse_program(process)
    if not process.pid:
        raise DaemonUnreachable(
            "the lock of the database does not say which process has it; mnem doctor says more"
        )
    unit = present_unit()
    stopped = StoppedDaemon(
        by_systemd=bool(unit and unit.pid == process.pid),
        arguments=[*chain(*daemon_process.daemon_options(process.pid).items())],
        environment=daemon_process.daemon_environment(process.pid),
    )
    if stopped.by_systemd:  # else systemd would take its end for a failure
        systemctl("stop", "--no-block", UNIT)
    began = time.monotonic()
    wait_s = config.sleep.shutdown_deadline_s + STOP_SLACK_S

    def show_consolidation() -> None:
        """Show the progress of the last consolidation at a terminal."""
        if not (process.socket and sys.stderr.isatty()):
            return
        with (
            suppress(MnemosynedError),
            Connection(process.socket, timeout_s=1) as client,
        ):
            if progress := client.call(Status()).sleep.progress:
                done = f"{progress.done:,} of {progress.total:,}"
                show_progress(f"last consolidation: {done}")

    words = f"process {process.pid} goes on with its last consolidation, then ends"
    with on_interrupt(lambda: words):
        ended = daemon_process.stop_process(
            process, wait_s=wait_s, watch=show_consolidation
        )
    if sys.stderr.isatty():
        show_progress("")
    if not ended:
        raise DaemonUnreachable(
            f"process {process.pid} still works on its last consolidation after {wait_s:g} s; it "
            "ends by itself, and another `mnem stop` cuts it short"
        )
    took = time.monotonic() - began
    say(f"stopped process {process.pid} in {took:.1f} s", err=True)
    return stopped


def _refuse_program(process: DatabaseProcess) -> None:
    """Raise `DatabaseInUse` if a process is no daemon, but a program that embeds the memory."""
    if process.pid and process.socket is None:
        raise DatabaseInUse(
            f"process {process.pid} is not a daemon, but a program that has the memory open: end it "
            "first"
        )


def start_again(stopped: StoppedDaemon) -> None:
    """Start a stopped daemon with its former options and environment."""
    if stopped.by_systemd:
        _start_unit()
    else:
        _start_detached(stopped)


def _start_detached(former: StoppedDaemon | None = None) -> None:
    """Start a detached daemon and print its process; `former` gives options and environment."""
    pid = daemon_process.start_detached(
        former.arguments if former else (),
        environment=former.environment if former else None,
    )
    log = daemon_process.log_path()
    say(f"started, as process {pid}; its log: {log}", err=True)


def _start_unit() -> int:
    """Start the daemon by systemd; return its process id. Raises `DaemonUnreachable`."""
    answer = systemctl("start", UNIT, timeout_s=CHANGE_TIMEOUT_S)
    unit = present_unit()
    if answer is None or answer.returncode != 0 or unit is None or not unit.is_running:
        reason = " ".join((answer.stderr if answer else "").split())
        raise DaemonUnreachable(
            f"systemd did not start {UNIT}: {reason or 'it does not answer'}; mnem logs shows why"
        )
    say(f"started by systemd, as process {unit.pid}", err=True)
    return unit.pid


def _print_log(file: Path, lines: int, *, follow: bool) -> None:
    """Print the last lines of a log file; with `follow`, also new lines, over rotations."""
    with file.open(encoding="utf-8", errors="replace") as opened:
        for line in deque(opened, lines):
            _print_log_line(line)
        while follow:
            if line := opened.readline():
                _print_log_line(line)
                continue
            is_rotated = False
            with suppress(OSError):
                is_rotated = file.stat().st_ino != os.fstat(opened.fileno()).st_ino
            if is_rotated:
                _print_log(file, LINES_MAX, follow=True)
                return
            time.sleep(FOLLOW_S)


def _print_log_line(line: str) -> None:
    """Print a log line: unchanged in a pipe, in readable form at a terminal."""
    line = line.rstrip("\n")
    say(readable_line(line) if is_terminal(sys.stdout) else line)
