"""A process that has loaded the programs and forks one for each order it is sent.

Loading is most of what a start costs; a fork of what is loaded is a process like any other. Run as
`python -P template.py FD`, where FD is a socket that brings orders; ends when that is closed.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import json
import os
import signal
import socket
import sys
import termios
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from mnemosyned.cli.main import load_command, main as mnem
from mnemosyned.cli.registry import COMMANDS
from mnemosyned.daemon.main import main as mnemosyned

sys.path.insert(0, str(Path(__file__).parents[1]))
from support.blank_database import copy_blank_databases

sys.path.pop(0)  # of the programs, which do not find the tests
import_module("mnemosyned.storage.sqlite.store")  # which a daemon loads on its way
copy_blank_databases()
for (
    _command
) in COMMANDS.values():  # each, as a program would load the one it is asked for
    load_command(_command)

Program = Callable[[], int | None]
PROGRAMS: dict[str, Program] = {"mnem": mnem, "mnemosyned": mnemosyned}
FDS = 5
"""Descriptors of an order: its JSON, the three standard streams, and the pipe for its end."""


def next_program(orders: socket.socket) -> Program:
    """Fork as ordered; returns in the programs, and in the template itself once all is over."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # meant for the programs alone
    gc.freeze()  # or a program's last collection goes through all that was loaded: 0.1 s
    while True:
        _, fds, _, _ = socket.recv_fds(orders, 1, FDS)
        if not fds:
            return lambda: None
        if os.fork() == 0:
            orders.close()
            return _kept(*fds)
        for fd in fds:
            os.close(fd)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass


def _kept(order: int, stdin: int, stdout: int, stderr: int, told: int) -> Program:
    """Fork once more: the child becomes the program, the parent tells its id and how it ended."""
    child = os.fork()
    if child == 0:
        for number, fd in enumerate((stdin, stdout, stderr)):
            os.dup2(fd, number)
        return _become(**json.loads(os.pread(order, os.fstat(order).st_size, 0)))
    os.closerange(0, told)
    os.write(told, b"%d\n" % child)
    _, status = os.waitpid(child, 0)
    os.write(told, b"%d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def _become(
    words: list[str],
    environment: dict[str, str],
    directory: str,
    *,
    at_terminal: bool,
) -> Program:
    """Take over what an order says, as a new interpreter would."""
    if at_terminal:  # whose keys then send it signals
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(directory)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.argv = words
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 descriptors, for the whole life
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    return PROGRAMS[Path(sys.argv[0]).name]


def run(program: Program) -> None:
    """Run to the end as any Python program does, but leave it to the system to clear up.

    To take apart all that was loaded costs several times what most of these programs do. One that
    has threads left, an exit code in words or output that nobody takes ends in the usual way.
    """
    try:
        sys.exit(program())
    except SystemExit as ending:
        names = {thread.name for thread in threading.enumerate()}
        # The thread of the log waits for lines; the functions below have it write what is left.
        alone = names <= {threading.main_thread().name, "log"}
        if alone and (ending.code is None or isinstance(ending.code, int)):
            atexit._run_exitfuncs()  # noqa: SLF001 what Python calls itself at this point
            with suppress(OSError):
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(ending.code or 0)
        raise


if __name__ == "__main__":
    run(next_program(socket.socket(fileno=int(sys.argv[1]))))
