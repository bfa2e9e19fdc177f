"""The daemon of this machine: found by its lock, started, stopped, restarted; the log.

systemd's unit does it where there is one.
"""

from __future__ import annotations

import fcntl
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import msgspec

from mnemosyned import errors, instants, paths, socket_path
from mnemosyned.cli import calls
from mnemosyned.cli.options import json_option, prints_json
from mnemosyned.cli.output.terminal import count_of, say, show_progress
from mnemosyned.client.address import SocketAddress
from mnemosyned.client.connection import Connection
from mnemosyned.config import loading, settings
from mnemosyned.storage.sqlite.ownership import DatabaseProcess, database_owner
from mnemosyned.verbs.upkeep import Status

PROGRAM = "mnemosyned"
READY_S = 60.0
"""Maximum time of a start, as a large log that a crash left is read first."""
POLL_S = 0.1
ANSWER_S = 10.0


def log_path() -> Path:
    """Return the path of the log of a daemon started by `mnem start`."""
    return paths.state_dir() / "mnemosyned.log"


def configured_daemon(config: settings.Config) -> DatabaseProcess | None:
    """Return the process that has locked the configured database, or listens on the socket, or None.

    The process may not answer, or may be a program that embeds the memory, without a socket. A
    daemon whose socket is not the one in the environment is ignored.
    """
    named = os.environ.get(socket_path.SOCKET_VARIABLE)
    # The daemon may run with settings that it read before.
    with suppress(errors.ConfigInvalid):
        file = config.location.file
        process = database_owner(file) if file else None
        if process and (not named or process.socket in (None, named)):
            return process
    with suppress(errors.ConfigInvalid, OSError):
        address = SocketAddress(str(config.socket_path))
        with address.connect(ANSWER_S) as connection:
            level, option = socket.SOL_SOCKET, socket.SO_PEERCRED
            pid = int.from_bytes(connection.getsockopt(level, option, 4), sys.byteorder)
        return DatabaseProcess(pid=pid, socket=str(address))
    return None


def database_of(process: DatabaseProcess) -> str | None:
    """Return the path or URL of a running daemon's database; None if it does not answer."""
    with (
        suppress(errors.DaemonUnreachable),
        Connection(process.socket, timeout_s=ANSWER_S) as client,
    ):
        return client.call(Status()).database
    return None


def daemon_options(pid: int) -> dict[str, str]:
    """Return the options of a running daemon that a restart repeats, with absolute paths."""
    options: dict[str, str] = {}
    with suppress(OSError):
        folder = Path(f"/proc/{pid}/cwd").readlink()
        words = map(os.fsdecode, Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"))
        for word in words:
            name, given, value = word.partition("=")
            if name in ("--config", "--database", "--socket"):
                value = value if given else next(words, "")
                options[name] = loading.make_paths_absolute(
                    name.removeprefix("--"), value, folder
                )
    return options


def daemon_environment(pid: int) -> dict[str, str]:
    """Return a daemon's variables for settings, with absolute paths; empty if unreadable."""
    with suppress(OSError):
        entries = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        pairs = (os.fsdecode(entry).partition("=") for entry in entries)
        values = {name: value for name, _, value in pairs}
        return loading.settings_variables(values, Path(f"/proc/{pid}/cwd").readlink())
    return {}


def start_detached(
    former: StoppedDaemon | None = None, *, config: settings.Config | None = None
) -> None:
    """Start a daemon in a new session, and print the process id once the daemon is ready.

    It gets the options and variables of `former`, or else the variables of this shell. If it ends
    because another daemon already serves `config`, print the other's id. Raises `DaemonUnreachable`,
    with the end of the log, if it is not ready in time.
    """
    others = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(settings.ENVIRONMENT_PREFIX)
    }
    present = loading.settings_variables(os.environ, Path.cwd())
    environment = former.environment if former else present
    arguments = former.arguments if former else ()
    log = log_path()
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    begins = log.stat().st_size if log.exists() else 0
    with (
        TemporaryDirectory(prefix="mnem-") as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as inbox,
        ExitStack() as cleanup,
    ):
        # At most 107 bytes fit in the address of a socket, and TMPDIR may be longer.
        directory = os.open(folder, os.O_PATH | os.O_DIRECTORY)
        cleanup.callback(os.close, directory)
        notify = f"/proc/{os.getpid()}/fd/{directory}/notify"
        inbox.bind(notify)
        inbox.settimeout(POLL_S)
        process = subprocess.Popen(  # noqa: S603 our own program
            [find_program(), "--log-file", str(log), *arguments],
            env={**others, **environment, "NOTIFY_SOCKET": notify},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd="/",
        )
        if _wait_until_ready(inbox, process):
            if process.stdout:
                process.stdout.close()
            say(f"started, as process {process.pid}; its log: {log}", err=True)
            return
        if process.poll() is None:
            raise errors.DaemonUnreachable(
                f"process {process.pid} started and is not ready after {READY_S:g} s: it goes on "
                f"by itself; its log is {log}"
            )
        output = (
            process.stdout.read().decode(errors="replace") if process.stdout else ""
        )
    if config and _report_running(config):
        return
    logged = ""
    with suppress(OSError), log.open("rb") as file:
        file.seek(begins)
        logged = file.read(1 << 16).decode(errors="replace")
    lines = [*logged.splitlines(), *output.splitlines()]
    plain = [line for line in lines if not line.startswith("{")] or lines
    raise errors.DaemonUnreachable(
        f"the daemon did not start; it said: {' '.join(plain[-5:]) or 'nothing'}"
    )


def stop_process(
    process: DatabaseProcess, *, wait_s: float, watch: Callable[[], object]
) -> bool:
    """Send SIGTERM and wait for the end, calling `watch`; return False after `wait_s` seconds.

    Raises `DatabaseInUse` for a process of another user.
    """
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return True
    try:
        signal.pidfd_send_signal(handle, signal.SIGTERM)
        deadline = time.monotonic() + wait_s
        while time.monotonic() < deadline:
            if select.select([handle], [], [], POLL_S)[0]:
                return True
            watch()
    except ProcessLookupError:
        return True
    except PermissionError as error:
        raise errors.DatabaseInUse(
            f"process {process.pid} belongs to another user, who has to stop it"
        ) from error
    finally:
        os.close(handle)
    return False


def find_program() -> str:
    """Return the path of the installed `mnemosyned`. Raises `ConfigInvalid` if there is none."""
    beside = Path(sys.argv[0]).resolve().with_name(PROGRAM)
    for candidate in (beside, Path(sys.executable).with_name(PROGRAM)):
        if os.access(candidate, os.X_OK):
            return str(candidate)
    path = shutil.which(PROGRAM)
    if path is None:
        raise errors.ConfigInvalid(f"{PROGRAM} is not on the PATH; install it again")
    return path


def _wait_until_ready(inbox: socket.socket, process: subprocess.Popen[bytes]) -> bool:
    """Print a started daemon's status until it is ready; return False if it ends, or after `READY_S`."""
    deadline, printed = time.monotonic() + READY_S, ""
    while time.monotonic() < deadline:
        with suppress(TimeoutError):
            states = inbox.recv(4_096).decode(errors="replace")
            if "READY=1" in states:
                return True
            status = states.partition("STATUS=")[2].partition("\n")[0]
            if status and status != printed:
                printed = status
                say(f"not ready yet, {status}", err=True)
        if process.poll() is not None:
            return False
    return False


def readable_line(line: str) -> str:
    """Return a JSON line of the log in words, as `time event name=value`; others unchanged."""
    try:
        entry = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return line
    if not isinstance(entry, dict) or "event" not in entry:
        return line
    match entry:
        case {"exception": [{"exc_type": kind, "exc_value": message}, *_]}:
            entry["exception"] = (
                f"{kind}: {message} (mnem logs --json has the traceback)"
            )
    level, timestamp = entry.pop("level", "info"), str(entry.pop("timestamp", ""))
    with suppress(ValueError):
        moment = instants.in_zone(datetime.fromisoformat(timestamp), None)
        timestamp = f"{moment:%Y-%m-%d %H:%M:%S}"
    if sentence := _event_sentence(entry):
        return f"{timestamp} {sentence}"
    head = [
        timestamp,
        "" if level in {"info", "debug"} else f"{level}:",
        str(entry.pop("event")).replace("_", " "),
    ]
    parts = [" ".join(filter(None, head))]
    for name, value in entry.items():
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        parts.append(f"{name}={text}")
    return "  ".join(parts)


def _event_sentence(entry: dict[str, Any]) -> str:
    """Return a log entry of a sleep cycle, a forget or an undo as a sentence; empty for others."""
    match entry:
        case {"event": "cycle_finished", "status": "nothing_to_do"}:
            return "cycle: nothing is old enough"
        case {"event": "cycle_finished", "status": str(status)}:
            memories = count_of(int(entry.get("evicted", 0)), "memory")
            summaries = count_of(int(entry.get("promoted", 0)), "summary")
            return f"cycle {status}: {memories} became {summaries}"
        case {"event": "cycle_undone", "restored": int(count)}:
            return f"cycle undone: {count_of(count, 'memory')} back in working memory"
        case {"event": "action_undone", "kind": str(kind), "count": int(count)}:
            return f"{kind} undone: {count_of(count, 'memory')}"
        case {"event": "forgotten", "count": int(count)}:
            return f"forgot {count_of(count, 'memory')}"
        case _:
            return ""


UNIT = "mnemosyned.service"
ASK_TIMEOUT_S = 10.0
"""Longest wait for an answer about the unit."""
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
    """Return the path of the daemon's systemd unit, which `make install` writes."""
    config = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(config) / "systemd" / "user" / UNIT


def present_unit() -> SystemdUnit | None:
    """Return the state of the daemon's systemd unit; None if systemd does not run for this user."""
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
    """Run `systemctl --user`; return the process, None if it cannot be run in time."""
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
    """Return whether systemd runs the user's services without a login; None if unknown."""
    words = ["show-user", str(os.geteuid()), "--property=Linger"]
    shown = _run_tool("loginctl", *words, timeout_s=ASK_TIMEOUT_S)
    if shown is None or shown.returncode != 0:
        return None
    return shown.stdout.strip() == "Linger=yes"


STOP_SLACK_S = 60.0
"""Time for a stop beyond the deadline of the last sleep cycle."""
LINES_MAX = 100_000


@click.command()
def start() -> None:
    """Start the daemon, and wait until it answers.

    With systemd it starts the user unit; without, a process of its own with a log in the state
    directory.
    """
    config = loading.load_config(loading.config_file())
    with lock_service():
        start_daemon(config)


@click.command()
def stop() -> None:
    """Stop the daemon, after a last sleep cycle.

    It works even if the settings file has a mistake.
    """
    try:
        config = loading.load_config(loading.config_file())
    except errors.ConfigInvalid as error:
        calls.warn_of_ignored_mistake(error.message)
        config = settings.Config(socket=calls.configured_socket())
    stop_daemon(config)


@click.command()
def restart() -> None:
    """Stop the daemon and start it again with the same options."""
    config = loading.load_config(loading.config_file())
    _ = config.location  # raises before anything is stopped
    with lock_service():
        if stopped := stop_daemon(config):
            start_again(stopped, config)
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
@click.option(
    "-f", "--follow", is_flag=True, help="Continue with new lines as they are written."
)
@json_option("Print the lines as they are written: JSON.")
def logs(lines: int, *, follow: bool) -> None:
    """Show the daemon's log: systemd's journal, or the file of `mnem start`.

    The last lines are shown; --follow then continues with new lines.
    """
    file = log_path()
    unit = present_unit()
    journal = shutil.which("journalctl")
    if journal and unit and unit.loaded and (unit.is_running or not file.exists()):
        words = [journal, "--user", "--no-pager", "--unit", UNIT, "--output=cat"]
        words += ["--follow"] if follow else []
    elif file.exists():  # which another file replaces once it is long
        tail = shutil.which("tail") or "/usr/bin/tail"
        words = [tail, "-F" if follow else "-q", "--", str(file)]
    else:
        raise errors.NotFound(
            f"there is no log: the daemon was not started by `mnem start` ({file})"
        )
    words.insert(1, f"-n{lines}")
    with subprocess.Popen(  # noqa: S603 of this machine
        words, stdout=subprocess.PIPE, encoding="utf-8", errors="replace"
    ) as reading:
        for line in reading.stdout or ():
            text = line.rstrip("\n")
            say(text if prints_json() else readable_line(text))


@contextmanager
def lock_service() -> Iterator[None]:
    """Keep other starts and restarts of this user waiting while the block runs, and wait for theirs first.

    Between the stop and the start of a restart, nothing else says with which options the daemon ran.
    """
    folder = paths.state_dir()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Open for writing, as NFS locks nothing else, such as the folder.
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(folder / "restart.lock", flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppedDaemon:
    """The options and environment of a stopped daemon, to start it again."""

    by_systemd: bool
    arguments: Sequence[str]
    environment: Mapping[str, str]


def start_daemon(config: settings.Config) -> None:
    """Start the daemon by systemd if its unit is installed, else as a detached process.

    If it runs already, only print its process. Raises `DatabaseInUse` if it has another database,
    `DaemonUnreachable`, and `ConfigInvalid` if the setting `database` is not usable.
    """
    if _report_running(config):
        return
    unit = present_unit()
    if not (unit and unit.loaded):
        start_detached(config=config)
        return
    pid = _start_unit()
    theirs = daemon_environment(pid)
    ours = loading.settings_variables(os.environ, Path.cwd())
    known = map(settings.variable, (*settings.KEYS, "config"))
    unread = [name for name in known if name in ours and ours[name] != theirs.get(name)]
    if unread:
        names = ", ".join(unread)
        remedy = f"`mnem config set`, or systemctl --user edit {UNIT}"
        say(f"it does not read {names} of this shell: {remedy}", err=True)


def _report_running(config: settings.Config) -> bool:
    """Return whether a daemon runs already, and print its process if so.

    Raises `DatabaseInUse` if the daemon has another database, or a program has the configured one open.
    """
    wanted = str(config.location)
    process = configured_daemon(config)
    if process is None:
        return False
    _refuse_program(process)
    database = database_of(process)
    if database and database != wanted:
        raise errors.DatabaseInUse(
            f"the daemon runs already, as process {process.pid}, with {database}, and these "
            f"settings name {wanted}: run `mnem stop`, then `mnem start`"
        )
    say(f"the daemon runs already, as process {process.pid}", err=True)
    return True


def stop_daemon(
    config: settings.Config, *, database: Path | None = None
) -> StoppedDaemon | None:
    """Stop the running daemon and wait for its end; return how to start it again, None if none runs.

    `database` selects the process that has this file open. Raises `DatabaseInUse` for a program
    that is no daemon, `DaemonUnreachable` if it does not end in time.
    """
    process = database_owner(database) if database else configured_daemon(config)
    if process is None:
        say("no daemon runs", err=True)
        return None
    _refuse_program(process)
    if not process.pid:
        raise errors.DaemonUnreachable(
            "the lock of the database does not say which process has it; mnem doctor says more"
        )
    unit = present_unit()
    stopped = StoppedDaemon(
        by_systemd=bool(unit and unit.pid == process.pid),
        arguments=[*chain(*daemon_options(process.pid).items())],
        environment=daemon_environment(process.pid),
    )
    if stopped.by_systemd:  # else systemd would take its end for a failure
        systemctl("stop", "--no-block", UNIT)
    began = time.monotonic()
    wait_s = config.shutdown_drain_s + config.sleep.shutdown_deadline_s + STOP_SLACK_S

    def show_consolidation() -> None:
        """Show how far the stopping daemon's last sleep cycle is, if at a terminal."""
        if not (process.socket and sys.stderr.isatty()):
            return
        with (
            suppress(errors.MnemosynedError),
            Connection(process.socket, timeout_s=1) as client,
        ):
            if progress := client.call(Status()).sleep.progress:
                done = f"{progress.done:,} of {progress.total:,}"
                show_progress(f"last sleep cycle: {done}")

    words = f"process {process.pid} goes on with its last sleep cycle, then ends"
    with calls.on_interrupt(words):
        ended = stop_process(process, wait_s=wait_s, watch=show_consolidation)
    if sys.stderr.isatty():
        show_progress("")
    if not ended:
        raise errors.DaemonUnreachable(
            f"process {process.pid} has not ended after {wait_s:g} s; another `mnem stop` cuts a "
            f"last sleep cycle short, and kill -9 {process.pid} ends it without loss if it hangs"
        )
    took = time.monotonic() - began
    say(f"stopped process {process.pid} in {took:.1f} s", err=True)
    return stopped


def _refuse_program(process: DatabaseProcess) -> None:
    """Raise `DatabaseInUse` if a program that embeds the memory has the database open."""
    if process.pid and process.socket is None:
        raise errors.DatabaseInUse(
            f"process {process.pid} is not a daemon, but a program that has the memory open: end it "
            "first"
        )


def start_again(stopped: StoppedDaemon, config: settings.Config | None = None) -> None:
    """Start a stopped daemon again: by systemd, or with its former options and environment.

    With `config`, accept a daemon that another process has already started with the same database.
    """
    if stopped.by_systemd:
        _start_unit()
    else:
        start_detached(stopped, config=config)


def _start_unit() -> int:
    """Start the daemon's systemd unit, print the process id on standard error, and return the id.

    Raises `DaemonUnreachable` if the unit does not run then.
    """
    answer = systemctl("start", UNIT, timeout_s=120.0)
    unit = present_unit()
    if answer is None or answer.returncode != 0 or unit is None or not unit.is_running:
        reason = " ".join((answer.stderr if answer else "").split())
        raise errors.DaemonUnreachable(
            f"systemd did not start {UNIT}: {reason or 'it does not answer'}; mnem logs shows why"
        )
    say(f"started by systemd, as process {unit.pid}", err=True)
    return unit.pid
