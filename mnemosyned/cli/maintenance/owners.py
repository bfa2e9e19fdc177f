"""`mnem owner`: owners of a database on a server and their tokens, on the database or over https."""

from __future__ import annotations

import csv
import hashlib
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from getpass import getuser
from itertools import chain
from pathlib import Path
from typing import TextIO

import click
import msgspec

from mnemosyned.assembly import stores
from mnemosyned.cli import calls, options
from mnemosyned.cli.commands.backup import check_target, open_whole_file
from mnemosyned.cli.output.show import say_result
from mnemosyned.cli.output.terminal import (
    ask_or_exit,
    count_of,
    local_time,
    say,
    say_json,
    table,
)
from mnemosyned.config.loading import config_file, load_config
from mnemosyned.errors import StorageFailed
from mnemosyned.memory.engine_ports import OWN_SCOPES, IssuedToken, Scope
from mnemosyned.memory.exchange import KIND_NAMES
from mnemosyned.service import audit, service
from mnemosyned.service.exchange import ExchangeService
from mnemosyned.service.owners import administer
from mnemosyned.verbs import owners as verbs
from mnemosyned.verbs.exchange import FOOTER, KINDS, Export, Footer, parse_line_kind
from mnemosyned.verbs.request import R, Request, decoder_of, validate

_SCOPES = click.option(
    "--scopes",
    default=",".join(OWN_SCOPES),
    show_default=True,
    help="Scopes of the token, separated by commas.",
)
_DAYS = click.option(
    "--days",
    type=click.IntRange(1, verbs.DAYS_MAX),
    help="Days for which the token is valid; default: the setting owners.token_days.",
)


def _administer(request: Request[R]) -> R:
    """Carry out a request of administration, and return the result.

    The daemon at a given URL does it; else this process, if the settings name a database on a
    server; else the daemon of the login. Raises `ConfigInvalid` if there is none of these.
    """
    context = click.get_current_context()
    config = None if options.typed_url(context) else load_config(config_file())
    if config is None or (config.location.file and options.typed_remote(context)):
        with calls.connect_to_daemon(context) as daemon:
            return daemon.call(validate(request))
    with (
        stores.open_owners(config.location) as owners,
        stores.open_audit(config, user=getuser()) as audit_log,
    ):
        if audit_log:
            owners.on_change = audit_log.note_change
        return administer(owners, config.owners, validate(request))


@click.group()
def owner() -> None:
    """Invite, list, suspend and remove owners of a database on a server; issue their tokens.

    It asks the daemon behind --url or MNEMOSYNE_URL, with a token of the scope admin. Without a
    token it works on the database that the settings name, with or without a daemon, as the login
    that owns the tables. If the settings name none, it asks the daemon of `mnem login`.
    """


@owner.command()
@click.argument("name")
@options.json_option()
def add(name: str) -> None:
    """Add an owner, whose memory no other owner sees."""
    added = _administer(verbs.AddOwner(name))
    text = f"added {added.name}; for a token: mnem owner token add {added.name}"
    say_result(added, text)


@owner.command()
@click.argument("names", nargs=-1)
@click.option(
    "--csv",
    "file",
    type=click.File("r", encoding="utf-8-sig", errors="replace"),
    help="A file with a line for each owner under the headers name, scopes, days; - is standard "
    "input.",
)
@_SCOPES
@_DAYS
@click.option(
    "--valid-days",
    type=click.IntRange(1, verbs.DAYS_MAX),
    default=7,
    show_default=True,
    help="Days for which the codes may be redeemed.",
)
@options.json_option()
def invite(
    names: tuple[str, ...],
    *,
    file: TextIO | None,
    scopes: str,
    days: int | None,
    valid_days: int,
) -> None:
    """Print a one-time code for each owner; add missing owners. If one fails, none is invited.

    The owner exchanges the code for a token with `mnem login`. Codes are not kept, and cannot be
    shown again. In a pipe they are printed as CSV. Scopes and days in the file take precedence over
    the options.
    """
    given = _scopes_from(scopes)
    invitees = [verbs.Invitee(name, given, days) for name in names]
    if file:
        invitees += _invitees_in(file, given, days)
    if not invitees:
        raise click.UsageError("name owners, or a file with --csv")
    made = _administer(verbs.InviteOwners(invitees, valid_days)).invitations
    if options.prints_json():
        say_json(made)
        return
    rows = [(each.owner, each.code) for each in made]
    if options.chosen_format() == "table":
        say(table(("owner", "code"), rows))
    else:
        csv.writer(sys.stdout).writerows([("owner", "code"), *rows])
    added = count_of(sum(each.added for each in made), "owner")
    until = local_time(made[0].expires_at)
    hint = "the codes replace earlier ones and are not shown again"
    say(f"added {added}; {hint}, valid until {until}", err=True)


def _invitees_in(
    file: TextIO, scopes: list[Scope], days: int | None
) -> list[verbs.Invitee]:
    """Return the owners in a CSV file, with `scopes` and `days` where it names none.

    Raises `click.BadParameter` with the line at fault.
    """
    rows = csv.DictReader(file, skipinitialspace=True)
    if ";" in (rows.fieldnames or [""])[0]:
        raise click.BadParameter(
            "line 1: semicolons separate the columns; use commas instead",
            param_hint="--csv",
        )
    invitees: list[verbs.Invitee] = []
    for row in rows:
        named, lasts = (row.get("name") or "").strip(), (row.get("days") or "").strip()
        is_plain = named and (lasts or "1").isdecimal() and None not in row
        if not is_plain or len(invitees) == verbs.INVITED_MAX:
            raise click.BadParameter(
                f"line {rows.line_num}: under the headers name, scopes, days each line has a name, "
                "and if need be scopes, in quotes with commas between, and a number of days; "
                f"{verbs.INVITED_MAX:,} lines at most",
                param_hint="--csv",
            )
        own = _scopes_from(row["scopes"]) if row.get("scopes") else scopes
        invitees.append(verbs.Invitee(named, own, int(lasts) if lasts else days))
    return invitees


def _scopes_from(words: str) -> list[Scope]:
    """Return the scopes in a list with commas between. Raises `click.BadParameter`."""
    scopes = [word.strip() for word in words.split(",")]
    if unknown := [word for word in scopes if word not in tuple(Scope)]:
        raise click.BadParameter(
            f"{unknown[0]!r} is none of {', '.join(Scope)}", param_hint="--scopes"
        )
    return list(map(Scope, scopes))


@owner.command("list")
@click.option(
    "--bytes", "measured", is_flag=True, help="Measure the bytes, row by row."
)
@options.json_option()
def list_owners(*, measured: bool) -> None:
    """List all owners: size of memory, valid tokens, requests and last use.

    Sizes are numbers of memories, summaries and characters, and with --bytes also of bytes, for
    which the login that owns the tables is needed. No text is shown.
    """
    listed = _administer(verbs.ListOwners(bytes=measured)).owners
    rows = [
        (
            *(each.name, "group" if each.is_group else "", each.memories),
            *(each.summaries, each.characters),
            *("" if each.bytes is None else each.bytes, each.tokens),
            *(each.invitations or "", each.requests, local_time(each.last_used_at)),
            *(local_time(each.created_at), "suspended" if each.suspended_at else ""),
        )
        for each in listed
    ]
    headers = (
        *("owner", "kind", "memories", "summaries", "characters", "bytes", "tokens"),
        *("invitations", "requests", "last used", "added", "state"),
    )
    optional = ("added", "summaries", "requests")
    say_result(listed, table(headers, rows, optional=optional, without_empty=True))


@owner.command()
@click.argument("name")
@options.json_option()
def suspend(name: str) -> None:
    """Refuse an owner's tokens and codes within a second; its memory stays as it is."""
    changed = _administer(verbs.ChangeOwner(name, suspended=True))
    say_result(changed, f"suspended {name}; mnem owner resume {name} takes it back")


@owner.command()
@click.argument("name")
@options.json_option()
def resume(name: str) -> None:
    """Accept the tokens and codes of a suspended owner again."""
    changed = _administer(verbs.ChangeOwner(name, suspended=False))
    say_result(changed, f"{name} is not suspended any more")


@owner.command()
@click.argument("name")
@click.argument("new_name")
@options.json_option()
def rename(name: str, new_name: str) -> None:
    """Give an owner another name; memory, tokens and codes are kept."""
    changed = _administer(verbs.ChangeOwner(name, new_name=new_name))
    say_result(changed, f"{name} is {new_name} from now on")


@owner.command()
@click.argument("name")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option(
    "--receipt",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A new file for the receipt: deletions, their times, and where text remains until when.",
)
@options.json_option()
def remove(name: str, *, yes: bool, receipt: Path | None) -> None:
    """Delete an owner with all its memory; nothing brings it back.

    Its tokens are revoked first. The output says where deleted text remains, and until when.
    """
    if receipt:
        check_target(receipt, force=False)
    if not yes:
        ask_or_exit(f"delete {name} and everything that it keeps?")
    removed = _administer(verbs.RemoveOwner(name))
    if receipt:
        save_receipt(receipt, removed)
    held = f"{count_of(removed.memories, 'memory')}, {count_of(removed.summaries, 'summary')}"
    lines = [f"deleted {removed.name}: {held}"]
    if not removed.purged:
        lines.append(
            "until VACUUM has run, the pages of the tables keep words: another program still looks "
            "at them, or only their owner may do that: mnem db purge with that login"
        )
    lines += [f"words are left in {place}" for place in removed.left]
    say_result(removed, "\n".join(lines))


@owner.group()
def group() -> None:
    """Add groups of owners with a shared memory, and change their members."""


@group.command("add")
@click.argument("name")
@options.json_option()
def add_group(name: str) -> None:
    """Add a group; its members use the group's memory with their own tokens."""
    added = _administer(verbs.AddOwner(name, is_group=True))
    text = f"added {added.name}; for a member: mnem owner group join {added.name} OWNER"
    say_result(added, text)


@group.command()
@click.argument("group")
@click.argument("members", nargs=-1, required=True)
@click.option(
    "--scopes",
    default="read,write",
    show_default=True,
    help="Scopes of the members in the group, separated by commas.",
)
@options.json_option()
def join(group: str, members: tuple[str, ...], scopes: str) -> None:
    """Make owners members of a group, or change what members may do.

    In the group, a token of a member allows only what both the token and --scopes allow.
    """
    for member in members:
        joined = _administer(verbs.JoinGroup(group, member, _scopes_from(scopes)))
        say_result(joined, f"{member} may {', '.join(joined.scopes)} in {group}")


@group.command()
@click.argument("group")
@click.argument("member")
@options.json_option()
def leave(group: str, member: str) -> None:
    """End a membership; daemons refuse the member within a second."""
    left = _administer(verbs.LeaveGroup(group, member))
    say_result({"group": group, "member": left.name}, f"{member} left {group}")


@group.command("list")
@click.argument("group", required=False)
@options.json_option()
def list_members(group: str | None) -> None:
    """List the members of a group, or of all groups, with what they may do."""
    listed = _administer(verbs.ListMembers(group)).memberships
    rows = [
        (each.group, each.member, ",".join(each.scopes), local_time(each.joined_at))
        for each in listed
    ]
    text = table(("group", "member", "scopes", "joined"), rows, without_empty=True)
    say_result(listed, text or "no members; mnem owner group join GROUP OWNER adds one")


@owner.group()
def token() -> None:
    """Issue, list, rotate and revoke the tokens of an owner."""


@token.command("add")
@click.argument("owner")
@click.option(
    "--name",
    default="token",
    show_default=True,
    help="The token's name, such as that of its machine.",
)
@_SCOPES
@_DAYS
@options.json_option()
def add_token(owner: str, name: str, scopes: str, days: int | None) -> None:
    """Issue a token for an owner and print it; it cannot be shown again.

    It allows what --scopes says, and is valid for --days, or else as owners.token_days says.
    """
    given = _scopes_from(scopes)
    _print_issued_token(_administer(verbs.IssueToken(owner, name, given, days)))


@token.command("list")
@click.argument("owner")
@options.json_option()
def list_tokens(owner: str) -> None:
    """List an owner's tokens, the newest first; the tokens themselves are not kept."""
    listed = _administer(verbs.ListTokens(owner)).tokens
    if options.prints_json():
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
            issued, used = map(local_time, (each.created_at, each.last_used_at))
            rows.append(
                (each.id, each.name, ",".join(each.scopes), issued, used, state)
            )
        headers = ("id", "name", "scopes", "issued", "last used", "state")
        say(table(headers, rows, optional=("issued",)))
    else:
        say(f"{owner} has no token; mnem owner token add {owner} issues one", err=True)


@token.command()
@click.argument("owner")
@click.argument("token")
@click.option(
    "--keep-hours",
    type=click.FloatRange(0, 24 * 366),
    default=0,
    show_default=True,
    help="Hours for which the old token remains valid.",
)
@options.json_option()
def rotate(owner: str, token: str, keep_hours: float) -> None:
    """Replace a token, named by its id or name, with a new one of the same kind.

    The old token is refused at once, or after --keep-hours.
    """
    _print_issued_token(_administer(verbs.RotateToken(owner, token, keep_hours)))


@token.command()
@click.argument("owner")
@click.argument("token")
@options.json_option()
def revoke(owner: str, token: str) -> None:
    """Revoke a token by its id, or all of a name; daemons refuse it within a second."""
    revoked = _administer(verbs.RevokeTokens(owner, token))
    say_result(revoked, f"revoked {count_of(revoked.revoked, 'token')} of {owner}")


def _print_issued_token(issued: IssuedToken) -> None:
    """Print a new token's secret, and its validity on standard error; or both as JSON if chosen."""
    if options.prints_json():
        say_json(issued)
        return
    say(issued.secret)
    until = issued.token.expires_at
    lasts = f"valid until {local_time(until)}" if until else "valid until it is revoked"
    say(f"keep it now, it is not shown again; {lasts}", err=True)


@owner.command("export")
@click.argument("name")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Replace files that exist.")
@options.json_option()
def export_owner(name: str, file: Path, *, force: bool) -> None:
    """Write everything that the database has of an owner to FILE and FILE.account.jsonl.

    `mnem import` reads FILE: memories, summaries, learnings and what belongs to them. The other
    file has data that an import leaves out: texts given to agents, memories that can be restored,
    watched folders, tokens without their secrets, memberships of groups, and lines of the audit
    log.
    """
    options.use_local_daemon(click.get_current_context())
    account = file.with_name(file.name + ".account.jsonl")
    for path in (file, account):
        check_target(path, force=force)
    config = load_config(config_file())
    with (
        stores.open_owned_stores(config.location) as owned_stores,
        stores.open_audit_table(config.location) as table,
        stores.open_audit(config, user=getuser()) as log,
    ):
        number = owned_stores.owners.number(name)
        owner = next(
            each for each in owned_stores.owners.owners() if each.number == number
        )
        store = owned_stores.store(number)
        exchange = ExchangeService(
            store=store.exchange,
            clock=service.SystemClock(),
            database=name,
            file=None,
            schema_version=store.schema_version,
            postpone_cycles=lambda _: None,
            on_restored=lambda: None,
        )
        footer, digest = _write_chunks(file, exchange.export(Export()))
        if parse_line_kind(footer).record != FOOTER:
            raise StorageFailed(f"the export is not whole: {footer.decode()}")
        records = Counter(decoder_of(Footer).decode(footer).counts)

        def account_lines() -> Iterator[bytes]:
            """Yield the lines of what an export leaves out, and count them."""
            things = [
                ("owner", owner),
                *(("token", t) for t in owned_stores.owners.tokens(name)),
                *(
                    ("membership", each)
                    for each in owned_stores.owners.memberships()
                    if name in (each.group, each.member)
                ),
            ]
            with store.exchange.everything() as (_, everything):
                further = ((KIND_NAMES[type(each)], each) for each in everything)
                for kind, thing in chain(things, further):
                    if kind in (*KINDS, "vector", "clock"):
                        continue
                    records[kind] += 1
                    line = msgspec.json.encode(thing)
                    yield b'{"record":"%s",%s\n' % (kind.encode(), line[1:])
            for *_, line in table.read():
                entry = audit.parse_line(line)
                if entry and number in (entry.owner, entry.about):
                    records["audit"] += 1
                    yield f'{{"record":"audit",{line[1:]}\n'.encode()

        _, account_digest = _write_chunks(account, account_lines())
        if log:
            log.note_change("owner_export", number)
    receipt = {
        "owner": name,
        "at": datetime.now(UTC),
        "sha256": {str(file): digest, str(account): account_digest},
        "records": records,
    }
    held = f"{count_of(records['memory'], 'memory')}, {count_of(records['episode'], 'summary')}"
    lines = count_of(records.total(), "line")
    say_result(receipt, f"{name}: {held}; {lines} in {file} and {account}")


def save_receipt(path: Path, result: object) -> None:
    """Write a result to a file as JSON, with the present time and a SHA-256 of the text before that."""
    said = {"at": datetime.now(UTC), **msgspec.to_builtins(result)}
    lines = msgspec.json.format(msgspec.json.encode(said)).removesuffix(b"\n}")
    digest = hashlib.sha256(lines).hexdigest().encode()
    with open_whole_file(path) as file:
        file.write(b'%s,\n  "sha256": "%s"\n}\n' % (lines, digest))


def _write_chunks(path: Path, chunks: Iterable[bytes]) -> tuple[bytes, str]:
    """Write chunks of lines to a file; return the last chunk and the file's SHA-256."""
    digest, last = hashlib.sha256(), b""
    with open_whole_file(path) as written:
        for chunk in filter(None, chunks):
            written.write(chunk)
            digest.update(chunk)
            last = chunk
    return last, digest.hexdigest()
