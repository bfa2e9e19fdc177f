"""`mnem move`: everything that is stored, from a file to a server or back."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

import click

from mnemosyned.assembly.stores import open_store_of
from mnemosyned.cli.calls import Interrupted
from mnemosyned.cli.maintenance.service import configured_daemon, database_of
from mnemosyned.cli.options import EXIT_NOTHING, json_option
from mnemosyned.cli.output.show import say_result
from mnemosyned.cli.output.terminal import RECORD_NOUNS, count_of, progress_line, say
from mnemosyned.config.loading import config_file, load_config
from mnemosyned.config.settings import (
    Config,
    DatabaseLocation,
    is_server,
    without_password,
)
from mnemosyned.errors import DatabaseInUse, InvalidRequest, PartlyDone, StorageFailed
from mnemosyned.memory.engine_ports import LOCAL_NAME
from mnemosyned.memory.ports import MemoryStore
from mnemosyned.paths import (
    DATABASE_PATH_BYTES_MAX,
    DATABASE_SUFFIX,
    require_usable_path,
)
from mnemosyned.service.exchange import Moving, compare_recalls, count_stored
from mnemosyned.storage.sqlite.ownership import database_owner

LEFT_OUT = (
    "what waits to be purged of the old database, as that concerns its own pages alone"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveReport:
    """The result of a completed move."""

    source: str
    target: str
    owner: str
    stored: Mapping[str, int]
    """Records that were moved, by kind."""
    known: Mapping[str, int]
    """Records that an earlier move had moved."""
    counts: Mapping[str, int]
    """Records of both databases, by kind."""
    sha256: Mapping[str, str]
    """Hash of the records of each kind."""
    asked: int
    differing: tuple[str, ...]
    """Ids of memories whose words both databases answer differently."""
    left_out: str = LEFT_OUT


def parse_location(text: str, *, field: str | None = None) -> DatabaseLocation:
    """Return the database that a URL or path names. Raises `InvalidRequest` for the `field`."""
    if is_server(text):
        return DatabaseLocation(url=text)
    path = require_usable_path(
        text,
        field=field,
        suffix=DATABASE_SUFFIX,
        bytes_max=DATABASE_PATH_BYTES_MAX,
    )
    return DatabaseLocation(path.absolute())


def move(
    source: DatabaseLocation,
    target: DatabaseLocation,
    *,
    config: Config,
    owner: str = LOCAL_NAME,
) -> MoveReport:
    """Copy all records from one database into another, then compare both; return the report.

    The target is empty, or partly filled by an interrupted move. `owner` is the owner on the
    server. Raises `NotFound`, `InvalidRequest`, `DatabaseInUse`, `ConfigInvalid`,
    `SleepInProgress`, `PartlyDone` and `StorageFailed`.
    """
    _refuse_unmovable(source, target)
    for location in (source, target):
        _refuse_in_use(location, config, owner)
    with ExitStack() as stack:
        old = stack.enter_context(_open_claimed(source, owner))
        size = count_stored(old.exchange)
        if size is None:
            raise InvalidRequest(f"{source} keeps nothing to move", field="from")
        new = stack.enter_context(_open_claimed(target, owner))
        moving = Moving(old.exchange, new.exchange)
        with progress_line("moving", "record", size) as advance:
            try:
                moving.deliver(advance)
            except StorageFailed as error:
                raise PartlyDone(
                    f"{error.message}. Records that were moved stay: repeat the command to continue",
                    reason=error.reason,
                ) from error
        with progress_line("comparing", "record", size) as advance:
            compared = moving.compare(advance)
        differing = compare_recalls(
            old.search, new.search, compared.sample, now=datetime.now(UTC)
        )
    return MoveReport(
        source=str(source),
        target=str(target),
        owner=owner,
        stored=moving.stored,
        known=moving.known,
        counts=compared.counts,
        sha256=compared.hashes,
        asked=len(compared.sample),
        differing=differing,
    )


def _refuse_unmovable(source: DatabaseLocation, target: DatabaseLocation) -> None:
    """Raise `InvalidRequest` unless one database is a file there and the other on a server."""
    if source.file and target.file:
        raise InvalidRequest(
            f"{source} and {target} are both files: `mnem backup` copies one into the other",
            field="to",
        )
    if source.url and target.url:
        raise InvalidRequest(
            f"{source} and {target} are both on a server: pg_dump and pg_restore copy a database",
            field="to",
        )
    if source.file and not source.file.is_file():
        raise InvalidRequest(f"there is no database {source}", field="from")
    if target.file and not target.file.parent.is_dir():
        raise InvalidRequest(f"there is no folder {target.file.parent}", field="to")


def _refuse_in_use(location: DatabaseLocation, config: Config, owner: str) -> None:
    """Raise `DatabaseInUse` if a process on this machine has the database open.

    A daemon of several owners may go on: the comparison at the end notices what it stores.
    """
    process = None
    if location.file:
        process = database_owner(location.file) if location.file.exists() else None
    elif owner == LOCAL_NAME and (daemon := configured_daemon(config)):
        process = daemon if database_of(daemon) == str(location) else None
    if process:
        raise DatabaseInUse(
            f"process {process.pid} has {location} open: stop it with `mnem stop`, so that "
            "nothing changes while it is moved"
        )


@contextmanager
def _open_claimed(location: DatabaseLocation, owner: str) -> Iterator[MemoryStore]:
    """Yield an owner's store, in which no cycle can run. Raises `SleepInProgress`."""
    with open_store_of(location, owner) as store, store.sleep.claim():
        yield store


@click.command("move")
@click.option(
    "--to",
    "to",
    required=True,
    metavar="DATABASE",
    help="A PostgreSQL URL or a file, either empty or begun by the same move.",
)
@click.option(
    "--from",
    "source",
    metavar="DATABASE",
    help="The memory to move; default: that of the settings.",
)
@click.option(
    "--owner",
    default=LOCAL_NAME,
    metavar="NAME",
    show_default=True,
    help="Whose memory it is on the server.",
)
@json_option()
def move_command(to: str, source: str | None, owner: str) -> int:
    """Move all that is kept from a file to a PostgreSQL server, or back.

    The old database stays as it is. Repeat an interrupted move to continue where it stopped. In the
    end both are compared record by record, and asked the same questions. Stop the daemon first,
    unless you move only the memory of an owner that it serves over TCP.
    """
    config = load_config(config_file())
    origin = parse_location(source, field="from") if source else config.location
    target = parse_location(to, field="to")
    try:
        done = move(origin, target, config=config, owner=owner)
    except KeyboardInterrupt as error:
        words = "interrupted; repeat the command to go on from there"
        raise Interrupted(words) from error
    say_result(done, "\n".join(_move_lines(done, target)))
    if done.differing:
        ids = ", ".join(done.differing)
        say(f"recall answers otherwise for the words of {ids}", err=True)
        return EXIT_NOTHING
    return 0


def _move_lines(done: MoveReport, target: DatabaseLocation) -> Iterator[str]:
    """Yield the lines of a move's report: counts, comparison, and the command to use the target."""
    things = ", ".join(
        count_of(done.counts[kind], noun)
        for kind, noun in RECORD_NOUNS.items()
        if kind in done.counts
    )
    known = sum(done.known.values())
    yield f"moved {things or 'an empty memory'} from {done.source} to {done.target}"
    if known:
        yield f"{known:,} of these records had been moved before"
    yield "compared: each record is the same in both, in the same order"
    alike = done.asked - len(done.differing)
    if done.asked:
        asked = count_of(done.asked, "question")
        yield f"recall: {alike:,} of {asked} answered alike"
    command = f"mnem config set database {shlex.quote(str(target.file))}"
    if target.url and done.owner != LOCAL_NAME:
        command = f"mnem owner token add {done.owner}"
    elif target.url:
        bare = without_password(target.url, shown="")
        command = f"mnem config set database {shlex.quote(bare)}"
        if bare != target.url:
            command += "\nwithout the password, which libpq takes from ~/.pgpass"
    yield f"to use it: {command}"
    yield f"not moved: {LEFT_OUT}"
