"""`mnem watch`: folders whose files the daemon follows."""

from __future__ import annotations

import os

import click

from mnemosyned.cli.answers.render import render
from mnemosyned.cli.calls import client_of
from mnemosyned.terminal import say, say_json
from mnemosyned.verbs.watching import Watch


@click.command("watch")
@click.argument("paths", nargs=-1, metavar="[PATHS]...", type=click.Path())
@click.option("--list", "only_list", is_flag=True, help="Show what is followed.")
@click.option(
    "--remove", is_flag=True, help="Stop following PATHS; their memories stay."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def watch(
    context: click.Context,
    paths: tuple[str, ...],
    *,
    only_list: bool,
    remove: bool,
    as_json: bool,
) -> None:
    """Follow folders, and list those that are followed.

    Transcripts of agents' tools, notes in Markdown, JSON lines and shell histories are read, also those
    that are there already; the daemon goes on with it after every start. An edited note takes the place
    of its earlier version. Without PATHS, show what is followed.
    """
    if only_list and (paths or remove):
        raise click.UsageError("--list takes no PATHS; leave one of them out")
    if remove and not paths:
        raise click.UsageError("--remove needs PATHS; mnem watch --list shows them")
    absolute = [os.path.realpath(os.path.expanduser(path)) for path in paths]  # noqa: PTH111
    with client_of(context) as client:
        watching = client.call(Watch(absolute, remove=remove))
    if as_json:
        say_json(watching)
    else:
        say(render(watching), styled=True)
