"""Whole databases: `mnem restore-db`, `mnem move`, and for all owners of a server `mnem db`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mnemosyned import paths
from mnemosyned.assembly import build, stores
from mnemosyned.cli import calls, options
from mnemosyned.cli.maintenance import audit, service
from mnemosyned.cli.output import show, terminal
from mnemosyned.config import loading, settings
from mnemosyned.errors import DatabaseInUse, InvalidRequest, PartlyDone, StorageFailed
from mnemosyned.memory.engine_ports import LOCAL_NAME
from mnemosyned.memory.ports import CopyReport, MemoryStore
from mnemosyned.service import exchange, intake
from mnemosyned.service.backups import forgotten_since
from mnemosyned.storage.sqlite import copies
from mnemosyned.storage.sqlite.ownership import database_owner, lock_database
from mnemosyned.verbs import request, retention

if TYPE_CHECKING:
    from mnemosyned.storage.postgres.store import PostgresServer


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredDatabase:
    """The result of a restore."""

    backup: Path
    database: Path
    copy: CopyReport
    set_aside: Path | None
    """The former database; None if there was none."""
    forgotten: int | None
    """Memories in the backup that were forgotten after it was made; None without a list."""
    forgotten_again: bool
    """Whether these were forgotten again; otherwise they are back."""
    list_begins: datetime | None
    """Memories forgotten between the backup and this time may be back; None if there are none."""


def check_restorable(backup: Path, database: Path) -> None:
    """Raise `InvalidRequest` if `backup` is damaged or the database itself, `SchemaTooNew` if it is too new."""
    if backup.exists() and database.exists() and backup.samefile(database):
        raise InvalidRequest(f"{backup} is the database itself", field="file")
    copies.check_backup(backup, paths.shipped("migrations"))


def restore_database(
    backup: Path,
    database: Path,
    *,
    folder: Path | None = None,
    forget_again: bool = False,
) -> RestoredDatabase:
    """Put a copy of a backup in the place of the database; set the former database aside.

    Lists next to the backup and in `folder` say which memories were forgotten since; they are
    forgotten again if `forget_again`. Raises `InvalidRequest`, `SchemaTooNew`, `DatabaseInUse` and
    `StorageFailed`, and then the database is unchanged.
    """
    check_restorable(backup, database)
    folders = dict.fromkeys([backup.parent, folder or database.with_name("backups")])
    lists = list(filter(None, (forgotten_since(backup, each) for each in folders)))
    forgotten: list[str] = []

    def collect_forgotten(copy: Path) -> None:
        """Add ids in `copy` that were forgotten since to `forgotten`; with `forget_again`, forget them."""
        with closing(copies.open_to_read(copy)) as connection:
            rows = connection.execute(
                "SELECT id FROM working_memory UNION ALL SELECT id FROM archive"
            ).fetchall()
        ids = [id for (id,) in rows]
        forgotten.extend(dict.fromkeys(id for each in lists for id in each.among(ids)))
        if not (forgotten and forget_again):
            return
        # The list of the backup folder has it already, from the time when it was forgotten.
        backups = settings.BackupConfig(dir=f"{copy}.backups")
        config = settings.Config(database=str(copy), auto_sleep=False, backup=backups)
        with build.open_memory(config) as memory:
            for chunk in intake.split_into_chunks(forgotten, request.NAMES_MAX):
                memory.service.call(retention.Forget(id=list(chunk), now=True))
        copy.with_name(f"{copy.name}.lock").unlink(missing_ok=True)
        copies.flush(copy)

    with lock_database(database):
        copy = copies.stage_copy(backup, database, change=collect_forgotten)
        aside = copies.finish_restore(database)
    begins = [each.begins for each in lists if each.begins]
    return RestoredDatabase(
        backup=backup,
        database=database,
        copy=copy,
        set_aside=aside,
        forgotten=len(forgotten) if lists else None,
        forgotten_again=bool(forgotten) and forget_again,
        list_begins=min(begins) if begins and len(begins) == len(lists) else None,
    )


@click.command("restore-db")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--restart", is_flag=True, help="Stop the daemon first, and start it afterwards."
)
@click.option(
    "--database",
    type=click.Path(path_type=Path),
    help="The database to replace; default: that of the settings.",
)
@click.option(
    "--forget-again",
    is_flag=True,
    help="Forget again what was forgotten after the backup was made.",
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
@options.json_option()
def restore_db(
    file: Path, database: Path | None, *, restart: bool, forget_again: bool, yes: bool
) -> None:
    """Put a backup in the place of the database.

    The backup is checked first. The present database is set aside under a name with the date,
    and never deleted. The daemon must be stopped, or --restart does that.

    The backup also restores memories that were forgotten after it was made. The command counts
    them, and --forget-again forgets them again, by a list in the folder of backups.
    """
    config = loading.load_config(loading.config_file())
    target = config.database_path
    if database:  # it is set aside under a longer name
        target = parse_location(str(database), field="database").file or target
    backup = paths.require_usable_path(str(file), field="file").absolute()
    process = database_owner(target)
    if process and not restart:
        raise DatabaseInUse(
            f"process {process.pid} has {target} open: stop it with `mnem stop`, or add --restart"
        )
    stopped = None
    check_restorable(backup, target)  # before anything is stopped
    if not yes and sys.stdin.isatty():
        terminal.ask_or_exit(
            f"Put {backup} in the place of {target}, and set that aside?"
        )
    with service.lock_service():
        if process:
            stopped = service.stop_daemon(config, database=target)
        try:
            restored = restore_database(
                backup, target, folder=config.backup_folder, forget_again=forget_again
            )
        finally:
            if stopped:
                service.start_again(stopped)
    show.say_result(restored, restore_text(restored))


def restore_text(restored: RestoredDatabase) -> str:
    """Return a restore's result as text: counts, forgotten memories, and the command to revert it."""
    copy = restored.copy
    held = f"{terminal.count_of(copy.memories, 'memory')}, {terminal.count_of(copy.episodes, 'summary')}"
    lines = [f"restored {restored.database}: {held}; verified"]
    if restored.set_aside:
        lines.append(f"the former database is set aside as {restored.set_aside}")
        lines.append(f"to take this back: mnem restore-db {restored.set_aside}")
    if restored.forgotten is None:
        lines.append(
            "no list of what was forgotten is kept with the backups: what was forgotten after this "
            "one was made may be back"
        )
    elif restored.forgotten_again:
        lines.append(
            "forgotten again, as it was after the backup was made: "
            f"{terminal.count_of(restored.forgotten, 'memory')}"
        )
    elif restored.forgotten:
        lines.append(
            "back, although forgotten after the backup was made: "
            f"{terminal.count_of(restored.forgotten, 'memory')}; to forget again: "
            f"mnem restore-db --forget-again {restored.backup}"
        )
    if restored.list_begins:
        lines.append(
            f"the list of what was forgotten begins at {terminal.local_time(restored.list_begins)}: what was "
            "forgotten between the backup and that time may be back"
        )
    lines += [
        f"the backup has a fault: {problem}; mnem doctor says more"
        for problem in copy.problems
    ]
    return "\n".join(lines)


LEFT_OUT = (
    "the list of `mnem undo` except sleep cycles (`mnem restore` still puts back forgotten memories), "
    "daily figures, and what waits to be purged from the old database"
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


def parse_location(text: str, *, field: str | None = None) -> settings.DatabaseLocation:
    """Return the database that a URL or path names. Raises `InvalidRequest` for the `field`."""
    if settings.is_server(text):
        return settings.DatabaseLocation(url=text)
    path = paths.require_usable_path(
        text,
        field=field,
        suffix=paths.DATABASE_SUFFIX,
        bytes_max=paths.DATABASE_PATH_BYTES_MAX,
    )
    return settings.DatabaseLocation(path.absolute())


def move(
    source: settings.DatabaseLocation,
    target: settings.DatabaseLocation,
    *,
    config: settings.Config,
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
        size = exchange.count_stored(old.exchange)
        if size is None:
            raise InvalidRequest(
                f"{source} is empty: there is nothing to move", field="from"
            )
        new = stack.enter_context(_open_claimed(target, owner))
        moving = exchange.Moving(old.exchange, new.exchange)
        with terminal.progress_line("moving", "record", size) as advance:
            try:
                moving.deliver(advance)
            except StorageFailed as error:
                raise PartlyDone(
                    f"{error.message}. Records that were moved stay: repeat the command to continue",
                    reason=error.reason,
                ) from error
        with terminal.progress_line("comparing", "record", size) as advance:
            compared = moving.compare(advance)
        differing = exchange.compare_recalls(
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


def _refuse_unmovable(
    source: settings.DatabaseLocation, target: settings.DatabaseLocation
) -> None:
    """Raise `InvalidRequest` for two files, two servers, or a path that does not exist."""
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


def _refuse_in_use(
    location: settings.DatabaseLocation, config: settings.Config, owner: str
) -> None:
    """Raise `DatabaseInUse` if a process on this machine has the database open.

    A daemon of several owners may keep running: if it changes `owner`'s memory, `Moving.compare` fails.
    """
    process = None
    if location.file:
        process = database_owner(location.file) if location.file.exists() else None
    elif owner == LOCAL_NAME and (daemon := service.configured_daemon(config)):
        process = daemon if service.database_of(daemon) == str(location) else None
    if process:
        raise DatabaseInUse(
            f"process {process.pid} has {location} open: stop it with `mnem stop`, so that "
            "nothing changes while it is moved"
        )


@contextmanager
def _open_claimed(
    location: settings.DatabaseLocation, owner: str
) -> Iterator[MemoryStore]:
    """Yield an owner's store, in which no cycle can run. Raises `SleepInProgress`."""
    with stores.open_store_of(location, owner) as store, store.sleep.claim():
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
@options.json_option()
def move_command(to: str, source: str | None, owner: str) -> int:
    """Move all that is kept from a file to a PostgreSQL server, or back.

    The old database stays as it is. Repeat an interrupted move to continue where it stopped. In the
    end both are compared record by record, and asked the same questions. Stop the daemon first,
    unless you move only the memory of an owner that it serves over TCP.
    """
    config = loading.load_config(loading.config_file())
    origin = parse_location(source, field="from") if source else config.location
    target = parse_location(to, field="to")
    with calls.on_interrupt("interrupted; repeat the command to go on from there"):
        done = move(origin, target, config=config, owner=owner)
    show.say_result(done, "\n".join(_move_lines(done, target)))
    if done.differing:
        ids = ", ".join(done.differing)
        terminal.say(f"recall answers otherwise for the words of {ids}", err=True)
        return options.EXIT_NOTHING
    return 0


def _move_lines(done: MoveReport, target: settings.DatabaseLocation) -> Iterator[str]:
    """Yield the lines of a move's report: counts, comparison, and the command to use the target."""
    things = ", ".join(
        terminal.count_of(done.counts[kind], noun)
        for kind, noun in terminal.RECORD_NOUNS.items()
        if kind in done.counts
    )
    known = sum(done.known.values())
    yield f"moved {things or 'an empty memory'} from {done.source} to {done.target}"
    if known:
        yield f"{known:,} of these records had been moved before"
    yield "compared: each record is the same in both, in the same order"
    alike = done.asked - len(done.differing)
    if done.asked:
        asked = terminal.count_of(done.asked, "question")
        yield f"recall: {alike:,} of {asked} answered alike"
    command = f"mnem config set database {shlex.quote(str(target.file))}"
    if target.url and done.owner != LOCAL_NAME:
        name = done.owner
        command = f"mnem owner token add {name}; of a group: mnem owner group join {name} OWNER"
    elif target.url:
        bare = settings.without_password(target.url, shown="")
        command = f"mnem config set database {shlex.quote(bare)}"
        if bare != target.url:
            command += "\nwithout the password, which libpq takes from ~/.pgpass"
    yield f"to use it: {command}"
    yield f"not moved: {LEFT_OUT}"


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
@options.json_option()
def migrate(url: str | None, serving: str | None) -> None:
    """Bring the tables up to date, and the rights of the role in which requests work.

    A daemon whose login owns the tables does the same at its start. May be repeated at any time.
    --serving names a login that owns no tables, and gives it the rights that a daemon needs.
    """
    server = (
        stores.open_server(settings.DatabaseLocation(url=url))
        if url
        else _open_configured_server()
    )
    migrated = server.migrate(serving=serving)
    before, after = migrated.before, migrated.after
    change = f"before {before}" if after != before else "as it was"
    lines = [f"{statement};" for statement in migrated.statements]
    lines.append(f"schema version {after}, {change}")
    show.say_result(migrated, "\n".join(lines))


@db.command()
@options.json_option()
def purge() -> int:
    """Rewrite tables and log, so that no deleted word is left in the server's files.

    Each table is locked while it is written: requests wait. The output says what is left, and until
    when; the exit code is 1 if a step failed.
    """
    purged = _open_configured_server().purge()
    took = terminal.duration_text(purged.duration_s)
    longest = f"the longest was locked for {purged.longest_s:.1f} s"
    lines = [
        f"written anew: {terminal.count_of(purged.tables, 'table')} in {took}; {longest}"
    ]
    if purged.log_files:
        files = terminal.count_of(purged.log_files, "file")
        lines.append(f"write-ahead log: {files} written over")
    lines += [f"not done: {step}" for step in purged.undone]
    lines += [f"words may be left in {place}" for place in purged.left]
    show.say_result(purged, "\n".join(lines))
    return options.EXIT_NOTHING if purged.undone else 0


@db.command()
@click.option(
    "--shards",
    type=click.IntRange(1, 4_096),
    default=128,
    show_default=True,
    help="Parts of each table, which the nodes share: a few for each node there will ever be.",
)
@options.json_option()
def distribute(shards: int) -> None:
    """Distribute the tables over the nodes of Citus, an owner's rows on one node.

    Stop the daemons first. Run it again after an upgrade: tables that are distributed do not
    change.
    """
    distributed = _open_configured_server().distribute(shards)
    nodes = terminal.count_of(distributed.nodes, "node")
    text = f"all tables were distributed before, over {nodes}"
    if distributed.tables:
        tables = terminal.count_of(len(distributed.tables), "table")
        text = f"distributed {tables} by their owner over {nodes}"
    show.say_result(distributed, "\n".join([text, *distributed.advice]))


def _open_configured_server() -> PostgresServer:
    """Return the database server that the settings name. Raises `ConfigInvalid` if they name none."""
    return stores.open_server(loading.load_config(loading.config_file()).location)


db.add_command(audit.replay)
