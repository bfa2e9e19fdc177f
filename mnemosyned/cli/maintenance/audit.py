"""`mnem audit` and `mnem db replay`: the audit log checked, listed, pruned, repeated after a restore."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from getpass import getuser
from itertools import islice
from pathlib import Path

import click
import msgspec

from mnemosyned.assembly.stores import open_audit, open_audit_table, open_owned_stores
from mnemosyned.cli.options import EXIT_NOTHING, json_option
from mnemosyned.cli.output.show import say_result
from mnemosyned.cli.output.terminal import count_of, local_time, table
from mnemosyned.config.loading import config_file, load_config
from mnemosyned.config.settings import Config
from mnemosyned.errors import InvalidRequest
from mnemosyned.memory.engine_ports import LOCAL_NAME
from mnemosyned.service.audit import (
    BATCH_MAX,
    PRUNED,
    AuditEntry,
    AuditFile,
    ChainVerifier,
    Heads,
    parse_line,
    read_lines,
    rows_of,
)
from mnemosyned.service.intake import split_into_chunks

LISTED_MAX, DAYS_MAX = 100_000, 36_600
CHANGES = {
    "forgotten": ("memory", True),
    "remove_learning": ("memory", True),
    "put_back": ("memory", False),
    "token_revoke": ("token", True),
    "token_rotate": ("token", True),
    "token_renew": ("token", True),
    "login": ("code", True),
    "owner_invite": ("code", True),
    "group_leave": ("member", True),
    "group_join": ("member", True),
    "owner_rename": ("name", True),
    "owner_suspend": ("suspended", True),
    "owner_resume": ("suspended", False),
    "owner_remove": ("owner", True),
}
"""Verbs that a replay reads: the kind of thing concerned, and True if the verb deletes it."""
OF_FIRST = ("token_rotate", "token_renew", "group_join", "group_leave")
"""Verbs of lines that concern only their first id: the ended token, before its successor; or a member's number,
before the name and the remaining scopes."""
COUNTED = ("forgotten", "learnings", "tokens", "codes", "members", "suspended")
"""Fields of a replay's result."""
ALL_CHAINS = 10**9
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group()
def audit() -> None:
    """Check, list and prune the log of who asked what.

    The log is in a database on a server; its table is read with the login that owns the tables. The
    files are those of the setting audit.file; a command that names FILEs reads only these.
    """


@audit.command()
@click.argument("files", nargs=-1, type=_FILE)
@click.option(
    "--against",
    type=_FILE,
    help="An earlier output of `verify --json`: its last lines must still exist.",
)
@json_option()
def verify(files: tuple[Path, ...], against: Path | None) -> int:
    """Check that no line of the log is missing, was changed or moved; otherwise the exit code is 1.

    If the end of a chain of lines was cut off, another chain, the files or --against show it.
    """
    config = load_config(config_file())
    heads: Heads = {}
    if against:
        try:
            printed = msgspec.json.decode(against.read_bytes())
            heads = msgspec.convert(printed["heads"], Heads)
        except (msgspec.MsgspecError, LookupError, TypeError) as error:
            raise InvalidRequest(
                f"{against} is not what `mnem audit verify --json` prints: {error}",
                field="against",
            ) from error
    checked = _check_files(files or _audit_files(config), heads if files else {})
    faults, unreadable = checked.faults, checked.unreadable
    if not files:
        from_files, checked = checked, ChainVerifier()
        checked.seen = heads | from_files.heads
        with open_audit_table(config.location) as stored:
            checked.note_heads(line for *_, line in stored.read())
            for *place, line in stored.read():
                entry = checked.check(line)
                if entry is None or place != [entry.writer, entry.seq, entry.at]:
                    checked.faults.append(
                        f"chain {place[0]}, line {place[1]} is another"
                    )
        checked.finish(whole=True)
        faults = [*checked.faults, *faults]
    done = {
        "lines": checked.lines,
        "unstopped": len(checked.open),
        "unreadable": unreadable,
        "faults": faults,
        "heads": checked.heads,
    }
    chains = count_of(len(checked.heads), "chain")
    state = count_of(len(faults), "fault") if faults else "whole"
    unstopped = count_of(len(checked.open), "chain")
    count = f"{count_of(checked.lines, 'line')} in {chains}: {state}"
    text = [f"{count}; {unstopped} without a stop: running, or killed"]
    text += faults[:20]
    if unreadable:
        text.append(f"{count_of(unreadable, 'line')} of files cut off by a crash")
    say_result(done, "\n".join(text))
    return EXIT_NOTHING if faults else 0


def _audit_files(config: Config) -> list[Path]:
    """Return the files of the audit log, the oldest first; none if the settings have no `audit.file`."""
    return AuditFile(config.audit_file).files() if config.audit_file else []


def _check_files(files: Sequence[Path], seen: Heads) -> ChainVerifier:
    """Check audit files, in which each chain must reach its line in `seen`; return the verifier with faults."""
    verifier = ChainVerifier()
    verifier.seen |= seen
    verifier.note_heads(read_lines(files))
    for line in read_lines(files):
        verifier.check(line)
    verifier.finish(whole=False)
    return verifier


@audit.command("list")
@click.argument("files", nargs=-1, type=_FILE)
@click.option("--owner", help="Lines of or about this owner: a name or a number.")
@click.option("--verb", help="Lines of this verb, such as recall, forget or login.")
@click.option("--id", "id", help="Lines with this id.")
@click.option(
    "--days",
    type=click.IntRange(1, DAYS_MAX),
    default=7,
    show_default=True,
    help="Days to look back.",
)
@click.option(
    "--limit",
    type=click.IntRange(1, LISTED_MAX),
    default=100,
    show_default=True,
    help="Maximum number of lines.",
)
@json_option()
def list_lines(
    files: tuple[Path, ...],
    *,
    owner: str | None,
    verb: str | None,
    id: str | None,
    days: int,
    limit: int,
) -> None:
    """List lines of the last --days, newest first: time, sender, address, verb and ids."""
    since = datetime.now(UTC) - timedelta(days=days)
    names: dict[int, list[str]] = {}

    def read() -> Iterator[AuditEntry]:
        """Yield all entries of the last `days`, the newest first."""
        lines: Iterable[str] = (line for *_, line in stored.read(since=since))
        if files:
            lines = reversed(list(read_lines(files)))
        return (each for each in map(parse_line, lines) if each and each.at >= since)

    def matches_options(entry: AuditEntry) -> bool:
        numbers = (entry.owner, entry.about, *entry.groups)
        named = (name for number in numbers for name in names.get(number, ()))
        is_theirs = owner in (None, entry.name, *map(str, numbers), *named)
        is_named = id is None or id in entry.ids
        return is_theirs and is_named and verb in (None, entry.verb)

    entries: list[AuditEntry] = []
    with open_audit_table(load_config(config_file()).location) as stored:
        for entry in read():  # who was removed or renamed, too
            if entry.owner and entry.name not in names.setdefault(entry.owner, []):
                names[entry.owner].append(entry.name)
            if owner is None and len(entries) < limit and matches_options(entry):
                entries.append(entry)
        if owner is not None:  # by any of the names
            entries = list(islice(filter(matches_options, read()), limit))
    rows = [
        (
            *(local_time(each.at), each.name, each.address or each.via, each.verb),
            *(names.get(each.about, [each.about or ""])[0], each.outcome),
            *(each.count, " ".join(each.ids)),
        )
        for each in entries
    ]
    heads = ("at", "who", "from", "verb", "about", "outcome", "count", "ids")
    say_result(entries, table(heads, rows, optional=("about", "outcome")))


@audit.command()
@click.option(
    "--older",
    metavar="DAYS",
    help="How old, such as 400d; default: the setting audit.keep_days.",
)
@json_option()
def prune(older: str | None) -> None:
    """Delete old lines of the audit log; the remaining lines can still be verified.

    A new line records where the deleted lines ended. Files of the log are deleted by whole months.
    """
    config = load_config(config_file())
    try:
        days = float((older or f"{config.audit.keep_days}").removesuffix("d"))
        end = datetime.now(UTC) - timedelta(days=days)
    except (ValueError, OverflowError) as error:
        raise InvalidRequest(f"{older} is no number of days; write 400d") from error
    with (
        open_audit_table(config.location) as stored,
        open_audit(config, user=getuser()) as log,
    ):
        there, before = stored.heads(ALL_CHAINS), ChainVerifier()
        before.note_heads(stored.read_pruned(end))
        heads = {w: head for w, head in before.pruned.items() if w in there}
        heads |= stored.last_before(end)
        if log and heads:
            log.note(PRUNED, count=len(heads), heads=heads, whole=True)
        lines = stored.delete(end)
    files = [path for path in _audit_files(config) if path.stem[-7:] < f"{end:%Y-%m}"]
    for path in files:
        path.unlink()
    text = f"deleted {count_of(lines, 'line')} and {count_of(len(files), 'file')}"
    say_result({"before": end, "lines": lines, "files": files}, text)


def find_losses(
    entries: Iterable[AuditEntry], added: Mapping[str, datetime]
) -> Mapping[str, Mapping[int, Mapping[str, Sequence[str]]]]:
    """Return what the log says was taken away or renamed: {kind: {owner's number: {id: value}}}.

    Kinds are those of `CHANGES`. The value is the new name of an owner (with the id ""), the remaining scopes
    of a member, or else empty. The last line about an id decides. `added` has, by owner's number, the time
    when the present owner was added: an older line is about a former owner.
    """
    last: dict[tuple[str, int, str], tuple[datetime, bool, Sequence[str]]] = {}
    for entry in entries:
        kind, is_gone = CHANGES.get(entry.verb, ("", False))
        number = entry.about or entry.owner
        about = [str(number), *(entry.ids[:1] if kind == "member" else ())]
        if any(entry.at < added.get(each, entry.at) for each in about):
            continue
        if not kind or entry.outcome:
            continue
        ids: Sequence[str] = entry.ids[:1] if entry.verb in OF_FIRST else entry.ids
        left = {"name": entry.ids, "member": entry.ids[2:]}.get(kind, ())
        for id in [""] if kind == "name" else ids or [""]:
            said, key = (entry.at, is_gone, left), (kind, number, id)
            last[key] = max(said, last.get(key, said))
    found: defaultdict[str, defaultdict[int, dict[str, Sequence[str]]]]
    found = defaultdict(lambda: defaultdict(dict))
    for (kind, owner, id), (_, is_gone, left) in last.items():
        if is_gone:
            found[kind][owner][id] = left
    return found


@click.command()
@click.argument("files", nargs=-1, required=True, type=_FILE)
@click.option("--dry-run", is_flag=True, help="Count; change nothing.")
@click.option(
    "--despite-faults", is_flag=True, help="Continue if lines are missing or changed."
)
@json_option()
def replay(files: tuple[Path, ...], *, dry_run: bool, despite_faults: bool) -> None:
    """Forget, remove and revoke again what a restored backup brought back, by the audit log.

    FILEs are the log's files of all machines. You can repeat it: lines that the database has are
    skipped. No daemon may serve the database during this.
    """
    config = load_config(config_file())
    checked = _check_files(files, {})
    with (
        open_owned_stores(config.location) as stores,
        open_audit_table(config.location) as stored,
    ):
        owners = stores.owners
        owners.number(LOCAL_NAME)  # refuses a login that does not own the tables
        there = stored.heads(ALL_CHAINS)
        since = stored.oldest() or datetime.min.replace(tzinfo=UTC)
        if there and there.keys().isdisjoint(checked.heads):
            checked.faults.append(
                "the database has no line of these files; is it another?"
            )
        if checked.faults and not despite_faults:
            raise InvalidRequest(
                f"nothing was done: {checked.faults[0]}. mnem audit verify shows all faults; "
                "--despite-faults replays the lines that are there",
                field="files",
            )

        def lost_lines() -> Iterator[tuple[str, int, datetime, str]]:
            """Yield lines of the files that are missing in the table, except those pruned by age."""
            rows = rows_of(read_lines(files))
            while batch := list(islice(rows, BATCH_MAX)):
                yield from stored.find_lacking(batch, since=since)

        known = {each.number: each for each in owners.owners()}
        added = {str(number): each.created_at for number, each in known.items()}
        losses = find_losses(
            filter(None, (parse_line(line) for *_, line in lost_lines())), added
        )
        lines = sum(1 for _ in lost_lines())
        done: Counter[str] = Counter()
        removed = [known.pop(number).name for number in losses["owner"].keys() & known]
        for name in () if dry_run else removed:
            owners.remove(name)
        renamed = {
            number: name
            for number, said in losses["name"].items()
            for name in said[""]
            if number in known and known[number].name != name
        }
        for number in () if dry_run else renamed:  # names may have been swapped
            with suppress(InvalidRequest):  # an interrupted replay did it
                owners.change(known[number].name, new_name=f"{number}.replayed")
        for number, name in () if dry_run else renamed.items():
            with suppress(InvalidRequest):  # a name given to another since stays there
                owners.change(f"{number}.replayed", new_name=name)
        listed = owners.owners()
        known = {each.number: each for each in listed if each.number in known}
        numbers = {each.name: each.number for each in listed}
        for number in sorted(known):
            name, deletion = known[number].name, stores.store(number).deletion
            for ids in split_into_chunks([*losses["memory"][number]], BATCH_MAX):
                removal = deletion.preview(ids)
                if not dry_run:
                    removal = deletion.forget(ids) | deletion.forget_learnings(ids)
                done["forgotten"] += removal.working + removal.archived
                done["learnings"] += removal.learnings
            revoked = losses["token"][number]
            for token in owners.tokens(name) if revoked else ():
                if token.valid and token.id in revoked:
                    done["tokens"] += 1 if dry_run else owners.revoke(name, token.id)
            if losses["suspended"][number] and not known[number].suspended_at:
                done["suspended"] += 1
                if not dry_run:
                    owners.change(name, suspended=True)
            if number in losses["code"] and known[number].invitations:
                done["codes"] += known[number].invitations
                if not dry_run:
                    owners.withdraw_codes(name)
        for membership in owners.memberships():
            group, member = membership.group, membership.member
            allowed = losses["member"][numbers[group]].get(str(numbers[member]))
            if allowed is None or set(membership.scopes) <= set(allowed):
                continue
            done["members"] += 1
            kept = [scope for scope in membership.scopes if scope in allowed]
            if kept and not dry_run:
                owners.join(group, member, kept)
            elif not dry_run:
                owners.leave(group, member)
        missing = lost_lines()
        while not dry_run and (batch := list(islice(missing, BATCH_MAX))):
            stored.append(batch, replacing=True)
    if lines and not dry_run:
        with open_audit(config, user=getuser()) as log:
            if log:
                log.note("replayed", count=lines, whole=True)
    receipt = {
        "dry_run": dry_run,
        "at": datetime.now(UTC),
        "files": files,
        "lines": lines,
        "owners": removed,
        "renamed": len(renamed),
        **{name: done[name] for name in COUNTED},
    }
    again = "would be done again" if dry_run else "done again"
    what = [
        f"{count_of(done['forgotten'], 'memory')} forgotten",
        f"{count_of(done['learnings'], 'learning')} removed",
        f"{count_of(len(removed), 'owner')} removed",
        f"{count_of(len(renamed), 'owner')} renamed",
        f"{count_of(done['suspended'], 'owner')} suspended",
        f"{count_of(done['tokens'], 'token')} revoked",
        f"{count_of(done['codes'], 'code')} withdrawn",
        f"{count_of(done['members'], 'membership')} ended or restricted",
    ]
    text = f"{count_of(lines, 'line')} of the log were lost; {again}: {', '.join(what)}"
    say_result(receipt, text)
