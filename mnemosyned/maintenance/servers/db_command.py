"""`mnem db`: a database on a server as a whole, for who runs the server."""

from __future__ import annotations

from collections.abc import Iterator

import click

from mnemosyned.assembly.stores import open_server
from mnemosyned.config import DatabaseLocation
from mnemosyned.domain.ports.servers.server import (
    DatabaseServer,
    Distribution,
    ServerPurge,
)
from mnemosyned.maintenance import daemon_process
from mnemosyned.terminal import counted, say, say_json, span

EXIT_UNDONE = 1
SHARDS = 128
SHARDS_MAX = 4_096


@click.group()
def db() -> None:
    """Bring a database server up to date, purge its files, or spread it over a cluster.

    These commands work on the database that the settings name, for all of its owners, with or
    without a daemon, and need the login that owns the tables.
    """


@db.command()
@click.option(
    "--url",
    help="The database, with the login that owns the tables; default: that of the settings.",
)
@click.option(
    "--serving",
    metavar="LOGIN",
    help="A login that owns nothing, to be given what a daemon needs to serve.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def migrate(url: str | None, serving: str | None, *, as_json: bool) -> None:
    """Bring the tables up to date, and the rights of the role in which requests work.

    A daemon whose login owns the tables does the same at its start. May be repeated at any time.
    """
    location = (
        DatabaseLocation(url=url) if url else daemon_process.configured().location
    )
    migrated = open_server(location).migrate(serving=serving)
    if as_json:
        say_json(migrated)
        return
    for statement in migrated.statements:
        say(f"{statement};")
    before, after = migrated.before, migrated.after
    say(
        f"schema version {after}"
        + (f", before {before}" if after != before else ", as it was")
    )


@db.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def purge(*, as_json: bool) -> int:
    """Write tables and log anew, so that no deleted word is left in the server's files.

    Each table is locked while it is written: requests wait. The answer says what is left, and
    until when; the exit code is 1 where a step was not done.
    """
    purged = _server().purge()
    if as_json:
        say_json(purged)
    else:
        say("\n".join(_purged_lines(purged)))
    return EXIT_UNDONE if purged.undone else 0


@db.command()
@click.option(
    "--shards",
    type=click.IntRange(1, SHARDS_MAX),
    default=SHARDS,
    show_default=True,
    help="Parts of each table, which the nodes share: a few for each node there will ever be.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def distribute(shards: int, *, as_json: bool) -> None:
    """Spread the tables over the nodes of Citus, all that is an owner's on one node.

    Stop the daemons meanwhile. Run it again after an upgrade: what is distributed stays as it is.
    """
    distributed = _server().distribute(shards)
    if as_json:
        say_json(distributed)
    else:
        say("\n".join(_distributed_lines(distributed)))


def _server() -> DatabaseServer:
    """The server of the database that is configured. Raises `ConfigInvalid`."""
    return open_server(daemon_process.configured().location)


def _purged_lines(purged: ServerPurge) -> Iterator[str]:
    yield (
        f"written anew: {counted(purged.tables, 'table')} in {span(purged.duration_s)}; "
        f"the longest was locked for {purged.longest_s:.1f} s"
    )
    if purged.log_files:
        files = counted(purged.log_files, "file")
        yield f"write-ahead log: {files} written over"
    yield from (f"not done: {step}" for step in purged.undone)
    yield from (f"words may be left in {place}" for place in purged.left)


def _distributed_lines(distributed: Distribution) -> Iterator[str]:
    nodes = counted(distributed.nodes, "node")
    if distributed.tables:
        tables = counted(len(distributed.tables), "table")
        yield f"distributed {tables} by their owner over {nodes}"
    else:
        yield f"all tables were distributed before, over {nodes}"
    yield from distributed.advice
