"""`mnem top`: the live view, where Textual is installed."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import click

from mnemosyned.cli.calls import client_of
from mnemosyned.domain.errors import InvalidRequest
from mnemosyned.version import install_command

LOOK_S = 5.0
"""Longest wait for an answer of the daemon to a look; a sleep may take longer."""


@click.command()
@click.pass_context
def top(context: click.Context) -> None:
    """Watch the daemon live, full screen.

    Tiers, requests and their times, sleep, hooks and problems, once a second.
    Keys: / search, Enter open, s sleep, p pause, ? help, q quit.
    """
    if find_spec("textual") is None:
        raise InvalidRequest(
            f"the live view needs Textual, which is not installed: {install_command('top')}"
        )
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InvalidRequest(
            "the live view needs a terminal; mnem status prints the state once"
        )
    # Loaded here: Textual takes longer to load than most commands run.
    from mnemosyned.top.app import run  # noqa: PLC0415

    run(client_of(context, timeout_s=LOOK_S), client_of(context))
