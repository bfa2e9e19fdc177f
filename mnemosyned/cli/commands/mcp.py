"""`mnem mcp` where options stand before it; `entry` runs it directly where none do."""

from __future__ import annotations

import click

from mnemosyned.cli.address_options import remote_of, socket_typed
from mnemosyned.mcp.pump import run


@click.command()
@click.pass_context
def mcp(context: click.Context) -> None:
    """Serve memory to an agent by the Model Context Protocol, on standard input and output.

    Agents start it by themselves.
    """
    run(socket_typed(context), remote_of(context))
