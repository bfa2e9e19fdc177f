"""Messages at Ctrl-C: what goes on in the daemon, how to watch it and how to stop it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from mnemosyned.terminal import counted
from mnemosyned.verbs.request import Request

NOTHING = "interrupted; nothing was changed"
WATCH = "watch it with `mnem status` or `mnem tail -f`"


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, with what to say of the call that it ended."""

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.words = words


@contextmanager
def on_interrupt(words: Callable[[], str]) -> Iterator[None]:
    """Let Ctrl-C end the command with these words."""
    try:
        yield
    except KeyboardInterrupt as error:
        raise Interrupted(words()) from error


def words_of(error: BaseException) -> str:
    """The message of a command that ended by Ctrl-C, or at a question by Ctrl-D."""
    cause = error.__cause__ if isinstance(error, click.Abort) else error
    return cause.words if isinstance(cause, Interrupted) else "interrupted"


def interrupted_call(request: Request[Any]) -> str:
    """The message of a call that was waited for: the daemon does not notice that nobody waits."""
    if not request.writes or getattr(request, "dry_run", False):
        return NOTHING
    name = request.verb_name()
    if name == "sleep" and getattr(request, "stop", False):
        return f"the sleep cycle ends after its present batch; {WATCH}"
    if name == "sleep":
        return f"the sleep cycle goes on in the daemon; {WATCH}, stop it with `mnem sleep --stop`"
    words = name.replace("_", "-")
    if not request.takes_long:
        return f"interrupted; the daemon may still do this {words}: look before you repeat it"
    return f"the daemon goes on with this {words} until it is done; {WATCH}"


def interrupted_import(kept: int) -> str:
    """The message of an import of which this many memories were acknowledged."""
    are = "is" if kept == 1 else "are"
    stored = f"{counted(kept, 'memory')} of this import {are} stored"
    return f"{stored}; repeat the command to go on from there"
