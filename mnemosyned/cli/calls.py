"""Calls of the daemon from the shell: its address, a progress bar, and messages at Ctrl-C."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from mnemosyned import errors, paths
from mnemosyned.cli.options import SOCKET, typed_address, typed_remote
from mnemosyned.cli.output.terminal import progress_line, say
from mnemosyned.client.connection import TIMEOUT_S, Connection
from mnemosyned.socket_path import SOCKET_VARIABLE, socket_path
from mnemosyned.verbs.request import R, Request

if TYPE_CHECKING:
    from mnemosyned.verbs.facade import Caller
    from mnemosyned.verbs.retention import Backup


_LINE = re.compile(r"""^(["']?)socket\1[ \t]*:[ \t]*(.*)$""", re.MULTILINE)
_UNSET = re.compile(r"(null|~|)[ \t\r]*(#.*)?", re.IGNORECASE)
_TEXT = re.compile(r"""(["']?)([^"'#]+?)\1[ \t\r]*(?:#.*)?""")


def configured_socket() -> str | None:
    """Return the socket that the configuration file names; None if it names none, or the environment does.

    The file is parsed only if it has a line for the socket, as commands must start at once. If
    another line is wrong, print the mistake on standard error, and use the socket's line alone.
    """
    if SOCKET_VARIABLE in os.environ:
        return None
    named_file = os.environ.get("MNEMOSYNE_CONFIG")
    file = Path(named_file) if named_file else paths.default_config_file()
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        warn_of_ignored_mistake(f"{file} cannot be read: {error}")
        return None
    line = _LINE.search(text)
    if line is None or _UNSET.fullmatch(line[2]):
        return None
    # Loaded here: most files name no socket.
    from mnemosyned.config.loading import load_config  # noqa: PLC0415

    try:
        named = load_config(file, environ={}).socket
    except errors.ConfigInvalid as error:
        warn_of_ignored_mistake(error.message)
        value = _TEXT.fullmatch(line[2])
        named = value[2] if value else None
    return os.path.expanduser(named) if named else None  # noqa: PTH111 no such user: as it is


def warn_of_ignored_mistake(problem: str) -> None:
    """Print on standard error that a `problem` of the settings was ignored."""
    say(f"mnem: a mistake in the settings was ignored: {problem}", err=True)


NOTHING_CHANGED = "interrupted; nothing was changed"
WATCH_HINT = "watch it with `mnem status` or `mnem tail -f`"


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, with the message to print about the interrupted call."""


@contextmanager
def on_interrupt(message: str) -> Iterator[None]:
    """If Ctrl-C ends the block, raise `Interrupted` with this message."""
    try:
        yield
    except KeyboardInterrupt as error:
        raise Interrupted(message) from error


def interruption_message(error: BaseException) -> str:
    """Return the message to print after Ctrl-C: that of an `Interrupted`, else "interrupted"."""
    cause = error.__cause__ if isinstance(error, click.Abort) else error
    return str(cause) if isinstance(cause, Interrupted) else "interrupted"


def interrupted_call_message(request: Request[Any]) -> str:
    """Return the message after Ctrl-C in a call: whether the daemon goes on with the request."""
    if not request.writes or request.is_preview:
        return NOTHING_CHANGED
    name = request.verb_name()
    if name == "sleep" and getattr(request, "stop", False):
        return f"the sleep cycle ends after its current batch; {WATCH_HINT}"
    if name == "sleep":
        return f"the sleep cycle goes on in the daemon; {WATCH_HINT}, stop it with `mnem sleep --stop`"
    words = name.replace("_", "-")
    if not request.takes_long:
        return f"interrupted; the daemon may still do this {words}: look before you repeat it"
    return f"the daemon goes on with this {words} until it is done; {WATCH_HINT}"


PROBE_TIMEOUT_S = 8.0
"""Time limit to ask whether the daemon works."""


def connect_to_daemon(
    context: click.Context, *, timeout_s: float = TIMEOUT_S
) -> Connection:
    """Return a connection to the daemon named on the command line, or the configured one.

    `timeout_s` limits a call. Raises `InvalidRequest` for an address that cannot be used.
    """
    remote = typed_remote(context)
    if remote is None:
        return Connection(
            typed_address(context).get(SOCKET) or configured_socket() or socket_path(),
            timeout_s=timeout_s,
        )
    try:
        connection = Connection.to(remote.load_authorities(), timeout_s=timeout_s)
    except ValueError as error:
        raise errors.InvalidRequest(str(error)) from error
    connection.on_pause = _announce_pause
    return connection


def _announce_pause(refusal: errors.MnemosynedError) -> None:
    """Print on standard error how long the command waits after a refusal, and the reason of the refusal."""
    reason = refusal.message.partition(";")[0]
    say(f"mnem: waiting for {refusal.retry_after_s} s: {reason}", err=True)


def call_daemon(client: Caller, request: Request[R]) -> R:
    """Send a request to the daemon and return the result. Raises the daemon's error.

    A sleep cycle and `forget` show progress; Ctrl-C ends the wait with `Interrupted`, not the request. Before
    an undo, delete the journals of imports. If the daemon may not write to the folder of a
    backup, move the finished backup there.
    """
    plans_or_stops = request.is_preview or getattr(request, "stop", False)
    is_pause = getattr(request, "pause_minutes", None) is not None
    is_cycle = request.verb_name() == "sleep" and not (plans_or_stops or is_pause)
    with on_interrupt(interrupted_call_message(request)):
        if is_cycle and sys.stderr.isatty():
            return run_with_bar(
                lambda: client.call(request),
                lambda: _cycle_progress(client),
                label="sleeping",
                show_pos=True,
            )
        is_forgetting = request.verb_name() == "forget" and not request.is_preview
        if is_forgetting and sys.stderr.isatty():
            return _forget_with_progress(client, request)
        if request.verb_name() == "backup":
            # Loaded here: the other commands move no files.
            from mnemosyned.cli.commands.backup import back_up  # noqa: PLC0415

            backup = cast("Backup", request)
            return cast("R", back_up(cast("Connection", client), backup))
        if request.verb_name() == "undo" and not plans_or_stops:
            # Loaded here, as above. What an import brought is to be read again by the next one, also
            # if the answer is lost.
            from mnemosyned.importers.run import delete_journals  # noqa: PLC0415

            delete_journals()
        return client.call(request)


def _forget_with_progress(client: Caller, request: Request[R]) -> R:
    """Send a request to forget and return the result; show how many memories are deleted so far."""
    # Loaded here, as below: other commands do without.
    from mnemosyned.memory.values import Tier  # noqa: PLC0415
    from mnemosyned.verbs.upkeep import Status  # noqa: PLC0415

    first: int | None = None
    with progress_line("forgetting", "memory", 0) as advance:

        def show_count() -> None:
            nonlocal first
            with suppress(errors.MnemosynedError):  # as below
                tiers = client.call(Status()).tiers
                count = tiers[Tier.WORKING].count + tiers[Tier.ARCHIVE].count
                first = count if first is None else first
                advance(0, first - count)

        return _run_watched(lambda: client.call(request), show_count, every_s=1.0)


def _cycle_progress(client: Caller) -> tuple[int, int] | None:
    """Return (memories done, memories in all) of the running sleep cycle; None if unknown."""
    from mnemosyned.verbs.upkeep import Status  # noqa: PLC0415 only a cycle needs it

    with suppress(errors.MnemosynedError):  # a busy daemon reports its progress later
        if progress := client.call(Status()).sleep.progress:
            return progress.done, progress.total
    return None


def run_with_bar(
    work: Callable[[], R],
    measure: Callable[[], tuple[int, int] | None],
    *,
    label: str,
    show_pos: bool = False,
) -> R:
    """Run `work` in a thread and show progress on standard error; return its result.

    `measure` returns how much is done and the total, or None; `show_pos` shows both numbers.
    """
    with click.progressbar(
        length=1, label=label, file=sys.stderr, show_pos=show_pos
    ) as bar:

        def update() -> None:
            if measured := measure():
                bar.length = max(measured[1], 1)
                bar.update(max(measured[0] - bar.pos, 0))

        result = _run_watched(work, update, every_s=0.2)
        # A short cycle is over before its progress was asked for.
        total = bar.length = max(getattr(result, "candidates", bar.length or 1), 1)
        bar.update(total - bar.pos)
    return result


def _run_watched(
    work: Callable[[], R], watch: Callable[[], object], *, every_s: float
) -> R:
    """Run `work` in a thread, and call `watch` every `every_s` seconds until it ends; return its result."""
    # Loaded here: only a long call at a terminal needs it.
    from concurrent.futures import Future, wait  # noqa: PLC0415

    future: Future[R] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 raised again where it is waited for
            future.set_exception(error)

    threading.Thread(target=run, name="waiting", daemon=True).start()
    while not wait([future], timeout=every_s).done:
        watch()
    return future.result()
