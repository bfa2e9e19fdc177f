"""How the shell client calls a verb: what it asks first, shows meanwhile, and says at Ctrl-C."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import click
import msgspec

from mnemosyned.cli.show_memories import render
from mnemosyned.client import Client
from mnemosyned.domain.consolidation import CycleReport
from mnemosyned.domain.errors import InvalidRequest, MnemosynedError
from mnemosyned.terminal import ask, say
from mnemosyned.verbs.memories import Sleep
from mnemosyned.verbs.request import Request
from mnemosyned.verbs.retention import Forgotten, Prune, Pruned

R = TypeVar("R")

BAR_EVERY_S = 0.2


def called(client: Client, request: Request[R]) -> R:
    """The daemon's answer, with a progress bar for a sleep at a terminal.

    Ctrl-C ends the wait at once: the daemon does not notice, and finishes what it was asked.
    """
    long = isinstance(request, Sleep) and not request.dry_run
    with on_interrupt(_going_on(request)):
        if long and sys.stderr.isatty():
            return _with_bar(client, request)
        return client.call(request)


def confirmed(client: Client, request: Request[R]) -> R | Forgotten | Pruned:
    """Show what would be done, ask, and do it; where nobody can answer, --yes does.

    Where nothing would be done nobody is asked, and that is the answer. Whoever was shown that the
    clock jumped, and confirms, believes it.
    """
    preview: Request[Any] = msgspec.structs.replace(request, dry_run=True)
    foreseen: Forgotten | Pruned = client.call(preview)
    if not (
        foreseen.memories or (isinstance(foreseen, Forgotten) and foreseen.learnings)
    ):
        believes = isinstance(request, Prune) and request.believe_clock
        return called(client, request) if believes else foreseen
    say(render(foreseen), err=True, styled=True)
    if not sys.stdin.isatty():
        raise InvalidRequest(
            "nothing was done: there is nobody to ask; add --yes to do it"
        )
    ask("Do it?")
    if isinstance(foreseen, Pruned) and foreseen.doubt:
        request = msgspec.structs.replace(request, believe_clock=True)
    return called(client, request)


@contextmanager
def on_interrupt(words: str) -> Iterator[None]:
    """Say this at Ctrl-C, before it ends the command."""
    try:
        yield
    except KeyboardInterrupt:
        if words:
            say(f"\nmnem: {words}", err=True)
        raise


def _going_on(request: Request[Any]) -> str:
    """What becomes of a call that nobody waits for any more; empty where nothing does."""
    if not request.writes or getattr(request, "dry_run", False):
        return ""
    if isinstance(request, Sleep) and request.undo is None:
        return "the cycle goes on in the daemon; mnem status shows how far it is, mnem log what it did"
    return "the daemon finishes what it was asked to do"


def _with_bar(client: Client, request: Request[R]) -> R:
    """Sleep, and show on standard error how far the cycle is; its answer is waited for here."""
    with click.progressbar(
        length=1, label="sleeping", file=sys.stderr, show_pos=True
    ) as bar:
        asleep = _in_background(lambda: client.call(request))
        while not wait([asleep], timeout=BAR_EVERY_S).done:
            with suppress(MnemosynedError):  # a busy daemon says later how far it is
                if progress := client.status().sleep.progress:
                    bar.length = max(progress.total, 1)
                    bar.update(progress.done - bar.pos)
        report = asleep.result()
        # A short cycle is over before it was asked.
        bar.length = max(report.candidates if isinstance(report, CycleReport) else 0, 1)
        bar.update(bar.length - bar.pos)
        return report


def _in_background(work: Callable[[], R]) -> Future[R]:
    """The result of work in a thread that does not keep the program from ending."""
    future: Future[R] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 raised again where it is waited for
            future.set_exception(error)

    threading.Thread(target=run, name="waiting", daemon=True).start()
    return future
