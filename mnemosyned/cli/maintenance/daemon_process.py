"""The daemon of this machine as a process: found by its lock, started detached, stopped by a signal."""

from __future__ import annotations

import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from mnemosyned.cli.output.terminal import say
from mnemosyned.client.address import SocketAddress
from mnemosyned.client.connection import Connection
from mnemosyned.config import (
    ENVIRONMENT_PREFIX,
    Config,
    config_file,
    load_config,
    make_paths_absolute,
    settings_variables,
)
from mnemosyned.errors import ConfigInvalid, DaemonUnreachable, DatabaseInUse
from mnemosyned.paths import state_dir
from mnemosyned.storage.sqlite.ownership import DatabaseProcess, database_owner
from mnemosyned.verbs.upkeep import Status

PROGRAM = "mnemosyned"
READY_S = 60.0
"""Longest time of a start; a large log that a crash left is read first."""
POLL_S = 0.1
ANSWER_S = 10.0
LINES_SHOWN = 5
"""Lines of the log shown after a failed start."""
OPTIONS_KEPT = ("--config", "--database", "--socket")


def log_path() -> Path:
    """Return the path of the log of a daemon started by `mnem start`."""
    return state_dir() / "mnemosyned.log"


def load_present_config() -> Config:
    """Return the settings as a daemon started now would read them. Raises `ConfigInvalid`."""
    return load_config(config_file())


def configured_daemon(config: Config) -> DatabaseProcess | None:
    """Return the running daemon for these settings; None if none runs.

    It is the process in the lock of the database file, even if it does not answer. Without one it
    is the process that listens on the configured socket, with whatever database.
    """
    # The daemon may run with settings that it read before.
    with suppress(ConfigInvalid):
        if (file := config.location.file) and (process := database_owner(file)):
            return process
    with suppress(ConfigInvalid, OSError):
        address = SocketAddress(config.socket_path)
        with address.connect(ANSWER_S) as connection:
            level, option = socket.SOL_SOCKET, socket.SO_PEERCRED
            pid = int.from_bytes(connection.getsockopt(level, option, 4), sys.byteorder)
        return DatabaseProcess(pid=pid, socket=str(address))
    return None


def database_of(process: DatabaseProcess) -> str | None:
    """Return the path or URL of a daemon's database; None if the daemon does not answer."""
    with (
        suppress(DaemonUnreachable),
        Connection(process.socket, timeout_s=ANSWER_S) as client,
    ):
        return client.call(Status()).database
    return None


def daemon_options(pid: int) -> dict[str, str]:
    """Return the command-line options of a running daemon that a restart repeats, by name.

    Paths are absolute. Empty if they cannot be read.
    """
    options: dict[str, str] = {}
    with suppress(OSError):
        folder = Path(f"/proc/{pid}/cwd").readlink()
        words = map(os.fsdecode, Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"))
        for word in words:
            name, given, value = word.partition("=")
            if name in OPTIONS_KEPT:
                value = value if given else next(words, "")
                options[name] = make_paths_absolute(
                    name.removeprefix("--"), value, folder
                )
    return options


def daemon_environment(pid: int) -> dict[str, str]:
    """Return a running daemon's environment variables for settings; empty if unreadable."""
    with suppress(OSError):
        entries = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        pairs = (os.fsdecode(entry).partition("=") for entry in entries)
        values = {name: value for name, _, value in pairs}
        return settings_variables(values, Path(f"/proc/{pid}/cwd").readlink())
    return {}


def start_detached(
    arguments: Sequence[str] = (), *, environment: Mapping[str, str] | None = None
) -> int:
    """Start a daemon in a session of its own; return the process id once the daemon is ready.

    `arguments` are further options; `environment` holds the variables for settings, those of this
    shell if None. Raises `DaemonUnreachable`, with the end of the log, if the daemon ends or is not
    ready in time.
    """
    others = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(ENVIRONMENT_PREFIX)
    }
    if environment is None:
        environment = settings_variables(os.environ, Path.cwd())
    log = log_path()
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    begins = log.stat().st_size if log.exists() else 0
    with (
        TemporaryDirectory(prefix="mnem-") as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as inbox,
    ):
        inbox.bind(str(Path(folder, "notify")))
        inbox.settimeout(POLL_S)
        process = subprocess.Popen(  # noqa: S603 our own program
            [find_program(), "--log-file", str(log), *arguments],
            env={
                **others,
                **environment,
                "NOTIFY_SOCKET": str(Path(folder, "notify")),
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd="/",
        )
        if _is_ready(inbox, process):
            if process.stdout:
                process.stdout.close()
            return process.pid
        if process.poll() is None:
            raise DaemonUnreachable(
                f"process {process.pid} started and is not ready after {READY_S:g} s: it goes on "
                f"by itself; its log is {log}"
            )
        output = (
            process.stdout.read().decode(errors="replace") if process.stdout else ""
        )
    logged = ""
    with suppress(OSError), log.open("rb") as file:
        file.seek(begins)
        logged = file.read(1 << 16).decode(errors="replace")
    lines = [*logged.splitlines(), *output.splitlines()][-LINES_SHOWN:]
    raise DaemonUnreachable(
        f"the daemon did not start; it said: {' '.join(lines) or 'nothing'}"
    )


def stop_process(
    process: DatabaseProcess, *, wait_s: float, watch: Callable[[], object]
) -> bool:
    """Send a process the signal to stop and wait for its end; return False after `wait_s`.

    `watch` is called repeatedly during the wait. Raises `DatabaseInUse` for a process of another
    user.
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
        raise DatabaseInUse(
            f"process {process.pid} belongs to another user, who has to stop it"
        ) from error
    finally:
        os.close(handle)
    return False


def find_program() -> str:
    """Return the path of the installed `mnemosyned` program. Raises `ConfigInvalid`."""
    beside = Path(sys.argv[0]).resolve().with_name(PROGRAM)
    for candidate in (beside, Path(sys.executable).with_name(PROGRAM)):
        if os.access(candidate, os.X_OK):
            return str(candidate)
    path = shutil.which(PROGRAM)
    if path is None:
        raise ConfigInvalid(f"{PROGRAM} is not on the PATH; install it again")
    return path


def _is_ready(inbox: socket.socket, process: subprocess.Popen[bytes]) -> bool:
    """Wait for the daemon's ready message, and print its status until then.

    Return False if the process ends or `READY_S` is over.
    """
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
