"""`mnem db`: upkeep of a database server, for all of its owners."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mnemosyned.assembly.stores import open_server
from mnemosyned.cli.maintenance.audit import replay
from mnemosyned.cli.options import EXIT_NOTHING, json_option
from mnemosyned.cli.output.show import say_result
from mnemosyned.cli.output.terminal import count_of, duration_text
from mnemosyned.config.loading import config_file, load_config
from mnemosyned.config.settings import DatabaseLocation

if TYPE_CHECKING:
    from mnemosyned.storage.postgres.store import PostgresServer

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
    help="A login that owns no tables; it gets the rights that a daemon needs.",
)
@json_option()
def migrate(url: str | None, serving: str | None) -> None:
    """Bring the tables up to date, and the rights of the role in which requests work.

    A daemon whose login owns the tables does the same at its start. May be repeated at any time.
    --serving names a login that owns no tables, and gives it the rights that a daemon needs.
    """
    server = (
        open_server(DatabaseLocation(url=url)) if url else _open_configured_server()
    )
    migrated = server.migrate(serving=serving)
    before, after = migrated.before, migrated.after
    change = f"before {before}" if after != before else "as it was"
    lines = [f"{statement};" for statement in migrated.statements]
    lines.append(f"schema version {after}, {change}")
    say_result(migrated, "\n".join(lines))


@db.command()
@json_option()
def purge() -> int:
    """Rewrite tables and log, so that no deleted word is left in the server's files.

    Each table is locked while it is written: requests wait. The answer says what is left, and until
    when; the exit code is 1 where a step was not done.
    """
    purged = _open_configured_server().purge()
    took = duration_text(purged.duration_s)
    longest = f"the longest was locked for {purged.longest_s:.1f} s"
    lines = [f"written anew: {count_of(purged.tables, 'table')} in {took}; {longest}"]
    if purged.log_files:
        files = count_of(purged.log_files, "file")
        lines.append(f"write-ahead log: {files} written over")
    lines += [f"not done: {step}" for step in purged.undone]
    lines += [f"words may be left in {place}" for place in purged.left]
    say_result(purged, "\n".join(lines))
    return EXIT_NOTHING if purged.undone else 0


@db.command()
@click.option(
    "--shards",
    type=click.IntRange(1, SHARDS_MAX),
    default=SHARDS,
    show_default=True,
    help="Parts of each table, which the nodes share: a few for each node there will ever be.",
)
@json_option()
def distribute(shards: int) -> None:
    """Distribute the tables over the nodes of Citus, an owner's rows on one node.

    Stop the daemons first. Run it again after an upgrade: tables that are distributed do not
    change.
    """
    distributed = _open_configured_server().distribute(shards)
    nodes = count_of(distributed.nodes, "node")
    text = f"all tables were distributed before, over {nodes}"
    if distributed.tables:
        tables = count_of(len(distributed.tables), "table")
        text = f"distributed {tables} by their owner over {nodes}"
    say_result(distributed, "\n".join([text, *distributed.advice]))


def _open_configured_server() -> PostgresServer:
    """Return the database server that the settings name. Raises `ConfigInvalid` without one."""
    return open_server(load_config(config_file()).location)


db.add_command(replay)
