"""`mnem owner` and `mnem db`: owners of a database on a server, their tokens, and its upkeep."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from getpass import getuser
from typing import TYPE_CHECKING

import click

from mnemosyned.assembly.stores import open_audit, open_owners, open_server
from mnemosyned.cli.maintenance.audit import replay
from mnemosyned.cli.maintenance.owner_export import export_owner
from mnemosyned.cli.options import EXIT_NOTHING, json_option, prints_json
from mnemosyned.cli.output.show import say_result
from mnemosyned.cli.output.terminal import (
    ask_or_exit,
    count_of,
    duration_text,
    local_time,
    say,
    say_json,
    table,
)
from mnemosyned.config import DatabaseLocation, config_file, load_config
from mnemosyned.memory.engine_ports import OWN_SCOPES, IssuedToken, Scope

if TYPE_CHECKING:
    from mnemosyned.storage.postgres.owners import PostgresOwners, PostgresServer

DAYS_MAX = 36_600
HOURS_MAX = 24 * 366
DEFAULT_SCOPES = ",".join(OWN_SCOPES)


@click.group()
def owner() -> None:
    """Add, list and remove owners of a database on a server, and issue their tokens.

    It works on the database that the settings name, with or without a daemon.
    """


@owner.command()
@click.argument("name")
@json_option()
def add(name: str) -> None:
    """Add an owner, whose memory no other owner sees."""
    with _open_owners() as owners:
        added = owners.add(name)
    text = f"added {added.name}; for a token: mnem owner token add {added.name}"
    say_result(added, text)


@owner.command("list")
@click.option(
    "--bytes", "measured", is_flag=True, help="Measure the bytes, row by row."
)
@json_option()
def list_owners(*, measured: bool) -> None:
    """List all owners with the sizes of their memories and the numbers of valid tokens.

    Sizes are numbers of memories, summaries and characters, and with --bytes also of bytes.
    """
    with _open_owners() as owners:
        listed = owners.owners(measured=measured)
    rows = [
        (
            *(
                each.name,
                "group" if each.is_group else "",
                each.memories,
                each.summaries,
                each.characters,
            ),
            *("" if each.bytes is None else each.bytes, each.tokens),
            local_time(each.created_at),
        )
        for each in listed
    ]
    text = table(_HEADERS, rows, optional=("added", "summaries"))
    say_result(listed, text)


@owner.command()
@click.argument("name")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@json_option()
def remove(name: str, *, yes: bool) -> None:
    """Delete an owner with all its memory; nothing brings it back.

    Its tokens are revoked first. The answer says where words still are, and until when.
    """
    if not yes:
        ask_or_exit(f"delete {name} and everything that it keeps?")
    with _open_owners() as owners:
        removed = owners.remove(name)
    held = f"{count_of(removed.memories, 'memory')}, {count_of(removed.summaries, 'summary')}"
    lines = [f"deleted {removed.name}: {held}"]
    if not removed.purged:
        lines.append(
            "another program still looks at the tables: until VACUUM has run, their pages keep words"
        )
    lines += [f"words are left in {place}" for place in removed.left]
    say_result(removed, "\n".join(lines))


@owner.group()
def group() -> None:
    """Add groups, whose memory their members share, and change who is a member."""


@group.command("add")
@click.argument("name")
@json_option()
def add_group(name: str) -> None:
    """Add a group, whose memory its members read and write with tokens of their own."""
    with _open_owners() as owners:
        added = owners.add(name, is_group=True)
    text = f"added {added.name}; for a member: mnem owner group join {added.name} OWNER"
    say_result(added, text)


@group.command()
@click.argument("group")
@click.argument("member")
@click.option(
    "--scopes",
    default="read,write",
    show_default=True,
    help="What the member may do there, with commas between.",
)
@json_option()
def join(group: str, member: str, scopes: str) -> None:
    """Make an owner a member of a group, or change what a member may do.

    A token of the member allows there what both it and --scopes allow.
    """
    with _open_owners() as owners:
        joined = owners.join(group, member, _parse_scopes(scopes))
    say_result(joined, f"{member} may {', '.join(joined.scopes)} in {group}")


@group.command()
@click.argument("group")
@click.argument("member")
@json_option()
def leave(group: str, member: str) -> None:
    """End a membership; daemons refuse the member within a second."""
    with _open_owners() as owners:
        owners.leave(group, member)
    say_result({"group": group, "member": member}, f"{member} left {group}")


@group.command("list")
@click.argument("group", required=False)
@json_option()
def list_members(group: str | None) -> None:
    """List the members of a group, or of all groups, with what they may do."""
    with _open_owners() as owners:
        listed = owners.memberships(group)
    rows = [
        (each.group, each.member, ",".join(each.scopes), local_time(each.joined_at))
        for each in listed
    ]
    say_result(listed, table(("group", "member", "scopes", "joined"), rows))


@owner.group()
def token() -> None:
    """Issue, list, rotate and revoke the tokens of an owner."""


@token.command("add")
@click.argument("owner")
@click.option("--name", default="token", show_default=True, help="What it is for.")
@click.option(
    "--scopes",
    default=DEFAULT_SCOPES,
    show_default=True,
    help="What it allows, with commas between.",
)
@click.option(
    "--days",
    type=click.IntRange(1, DAYS_MAX),
    help="How long it is valid; else for ever.",
)
@json_option()
def add_token(owner: str, name: str, scopes: str, days: int | None) -> None:
    """Issue a token for an owner and print it; it cannot be shown again.

    It allows what --scopes says, and is valid for --days, or else until it is revoked.
    """
    valid_for = timedelta(days=days) if days else None
    with _open_owners() as owners:
        issued = owners.issue(owner, name, _parse_scopes(scopes), valid_for=valid_for)
    _print_issued_token(issued)


@token.command("list")
@click.argument("owner")
@json_option()
def list_tokens(owner: str) -> None:
    """List an owner's tokens, the newest first; the tokens themselves are not kept."""
    with _open_owners() as owners:
        listed = owners.tokens(owner)
    if prints_json():
        say_json(listed)
    elif listed:
        rows = []
        for each in listed:
            state = "valid"
            if each.revoked_at:
                state = f"revoked {local_time(each.revoked_at)}"
            elif each.expires_at:
                validity = "valid until" if each.valid else "expired"
                state = f"{validity} {local_time(each.expires_at)}"
            issued = local_time(each.created_at)
            rows.append((each.id, each.name, ",".join(each.scopes), issued, state))
        say(table(("id", "name", "scopes", "issued", "state"), rows))
    else:
        say(f"{owner} has no token; mnem owner token add {owner} issues one", err=True)


@token.command()
@click.argument("owner")
@click.argument("token")
@click.option(
    "--keep-hours",
    type=click.FloatRange(0, HOURS_MAX),
    default=0,
    show_default=True,
    help="How long the old one is valid yet.",
)
@json_option()
def rotate(owner: str, token: str, keep_hours: float) -> None:
    """Replace a token, named by its id or name, by a new one of the same kind.

    The old token is refused at once, or after --keep-hours.
    """
    with _open_owners() as owners:
        issued = owners.rotate(owner, token, keep_for=timedelta(hours=keep_hours))
    _print_issued_token(issued)


@token.command()
@click.argument("owner")
@click.argument("token")
@json_option()
def revoke(owner: str, token: str) -> None:
    """Revoke a token by its id, or all of a name; daemons refuse it within a second."""
    with _open_owners() as owners:
        count = owners.revoke(owner, token)
    text = f"revoked {count_of(count, 'token')} of {owner}"
    say_result({"revoked": count}, text)


_HEADERS = (
    *("owner", "kind", "memories", "summaries", "characters", "bytes", "tokens"),
    "added",
)


def _parse_scopes(scopes: str) -> list[Scope]:
    """Return the scopes in a text with commas between. Raises `click.BadParameter`."""
    words = [word.strip() for word in scopes.split(",")]
    if unknown := [word for word in words if word not in tuple(Scope)]:
        raise click.BadParameter(
            f"{unknown[0]!r} is none of {', '.join(Scope)}", param_hint="--scopes"
        )
    return [*map(Scope, words)]


@contextmanager
def _open_owners() -> Iterator[PostgresOwners]:
    """Open the store of owners and tokens in the configured server; changes go to the audit log.

    Raises `ConfigInvalid` if the settings name no server.
    """
    config = load_config(config_file())
    with (
        open_owners(config.location) as owners,
        open_audit(config, user=getuser()) as audit,
    ):
        if audit:
            owners.on_change = audit.note_change
        yield owners


def _print_issued_token(issued: IssuedToken) -> None:
    """Print a new token's secret on standard output, and until when it is valid on standard error.

    With --json both are printed as JSON.
    """
    if prints_json():
        say_json(issued)
        return
    say(issued.secret)
    until = issued.token.expires_at
    lasts = f"valid until {local_time(until)}" if until else "valid until it is revoked"
    say(f"keep it now, it is not shown again; {lasts}", err=True)


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

    Stop the daemons meanwhile. Run it again after an upgrade: what is distributed stays as it is.
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
owner.add_command(export_owner)
