"""Calls of the shell client, with a progress bar where they take long."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from mnemosyned.cli.address_options import remote_of, socket_typed
from mnemosyned.cli.configured_socket import configured_socket
from mnemosyned.cli.interruption import interrupted_call, on_interrupt
from mnemosyned.client.address import remote_address
from mnemosyned.client.connection import Connection
from mnemosyned.client.messages import TIMEOUT_S
from mnemosyned.domain.errors import InvalidRequest, MnemosynedError
from mnemosyned.socket_path import socket_path
from mnemosyned.verbs.request import Request

if TYPE_CHECKING:
    from concurrent.futures import Future

    from mnemosyned.verbs.retention import Backup

R = TypeVar("R")

BAR_EVERY_S = 0.2


def client_of(context: click.Context, *, timeout_s: float = TIMEOUT_S) -> Connection:
    """The client of a command, of the daemon that was named or is configured.

    Raises `InvalidRequest` for an address that cannot be used.
    """
    remote = remote_of(context)
    if remote is None:
        return Connection(
            socket_typed(context) or configured_socket() or socket_path(),
            timeout_s=timeout_s,
        )
    try:
        return Connection.to(remote_address(remote), timeout_s=timeout_s)
    except ValueError as error:
        raise InvalidRequest(str(error)) from error


def called(client: Connection, request: Request[R]) -> R:
    """Call the daemon, with a progress bar for a sleep at a terminal.

    Ctrl-C ends the wait at once; the daemon does not notice, and finishes the request.
    """
    with on_interrupt(partial(interrupted_call, request)):
        if _is_cycle(request) and sys.stderr.isatty():
            return _with_bar(client, request)
        if request.verb_name() == "backup":
            # Loaded here: the other commands move no files.
            from mnemosyned.cli.backup_call import back_up  # noqa: PLC0415

            return cast("R", back_up(client, cast("Backup", request), _in_background))
        return client.call(request)


def _is_cycle(request: Request[Any]) -> bool:
    """Whether a call runs a cycle, and does not merely plan, stop or put off one."""
    pauses = getattr(request, "pause_minutes", None) is not None
    other = (
        getattr(request, "dry_run", False) or getattr(request, "stop", False) or pauses
    )
    return request.verb_name() == "sleep" and not other


def _with_bar(client: Connection, request: Request[R]) -> R:
    """Run a sleep in a thread and show its progress on standard error until it ends."""
    # Loaded here: only a long call at a terminal needs them.
    from concurrent.futures import wait  # noqa: PLC0415

    from mnemosyned.verbs.status import Status  # noqa: PLC0415 the same

    with click.progressbar(
        length=1, label="sleeping", file=sys.stderr, show_pos=True
    ) as bar:
        sleeping = _in_background(lambda: client.call(request))
        while not wait([sleeping], timeout=BAR_EVERY_S).done:
            with suppress(MnemosynedError):  # a busy daemon reports its progress later
                if progress := client.call(Status()).sleep.progress:
                    bar.length = max(progress.total, 1)
                    bar.update(progress.done - bar.pos)
        report = sleeping.result()
        # A short cycle is over before its progress was asked for.
        bar.length = max(getattr(report, "candidates", 0), 1)
        bar.update(bar.length - bar.pos)
        return report


def _in_background(work: Callable[[], R]) -> Future[R]:
    """The result of work in a thread that does not keep the program from ending."""
    from concurrent.futures import Future  # noqa: PLC0415 the same

    future: Future[R] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 raised again where it is waited for
            future.set_exception(error)

    threading.Thread(target=run, name="waiting", daemon=True).start()
    return future
