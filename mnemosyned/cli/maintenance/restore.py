"""`mnem restore-db`: a backup put in the place of the database."""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import click

from mnemosyned.assembly.build import open_memory
from mnemosyned.cli.maintenance.service import start_again, stop_daemon
from mnemosyned.cli.options import json_option
from mnemosyned.cli.output.show import say_result
from mnemosyned.cli.output.terminal import ask_or_exit, count_of, local_time
from mnemosyned.config.loading import config_file, load_config
from mnemosyned.config.settings import BackupConfig, Config
from mnemosyned.errors import DatabaseInUse, InvalidRequest
from mnemosyned.memory.ports import CopyReport
from mnemosyned.paths import (
    DATABASE_PATH_BYTES_MAX,
    DATABASE_SUFFIX,
    require_usable_path,
    shipped,
)
from mnemosyned.service.backups import forgotten_since
from mnemosyned.service.intake import split_into_chunks
from mnemosyned.storage.sqlite import copies
from mnemosyned.storage.sqlite.ownership import database_owner, lock_database
from mnemosyned.verbs.request import NAMES_MAX
from mnemosyned.verbs.retention import Forget


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
    """Raise an error if a backup cannot take the place of the database.

    Raises `InvalidRequest` for the database itself or a damaged file, `SchemaTooNew` for a newer one.
    """
    if backup.exists() and database.exists() and backup.samefile(database):
        raise InvalidRequest(f"{backup} is the database itself", field="file")
    copies.check_backup(backup, shipped("migrations"))


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

    def look_or_forget(copy: Path) -> None:
        """Collect the memories forgotten since the backup, and forget them if so asked."""
        with closing(copies.open_to_read(copy)) as connection:
            rows = connection.execute(
                "SELECT id FROM working_memory UNION ALL SELECT id FROM archive"
            ).fetchall()
        ids = [id for (id,) in rows]
        forgotten.extend(dict.fromkeys(id for each in lists for id in each.among(ids)))
        if not (forgotten and forget_again):
            return
        # The list of the backup folder has it already, from the time when it was forgotten.
        config = Config(
            database=str(copy),
            auto_sleep=False,
            backup=BackupConfig(dir=f"{copy}.backups"),
        )
        with open_memory(config) as memory:
            for chunk in split_into_chunks(forgotten, NAMES_MAX):
                memory.service.call(Forget(id=list(chunk), now=True))
        copy.with_name(f"{copy.name}.lock").unlink(missing_ok=True)
        copies.flush(copy)

    with lock_database(database):
        copy = copies.stage_copy(backup, database, change=look_or_forget)
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
@json_option()
def restore_db(
    file: Path,
    database: Path | None,
    *,
    restart: bool,
    forget_again: bool,
    yes: bool,
) -> None:
    """Put a backup in the place of the database.

    The backup is checked first. The present database is set aside under a name with the date,
    and never deleted. The daemon must be stopped, or --restart does that.

    The backup also restores memories that were forgotten after it was made. The command counts
    them, and --forget-again forgets them again, by a list in the folder of backups.
    """
    config = load_config(config_file())
    target = config.database_path
    if database:  # it is set aside under a longer name
        target = require_usable_path(
            str(database),
            field="database",
            suffix=DATABASE_SUFFIX,
            bytes_max=DATABASE_PATH_BYTES_MAX,
        ).absolute()
    backup = require_usable_path(str(file), field="file").absolute()
    process = database_owner(target)
    if process and not restart:
        raise DatabaseInUse(
            f"process {process.pid} has {target} open: stop it with `mnem stop`, or add --restart"
        )
    stopped = None
    check_restorable(backup, target)  # before anything is stopped
    if not yes and sys.stdin.isatty():
        ask_or_exit(f"Put {backup} in the place of {target}, and set that aside?")
    if process:
        stopped = stop_daemon(config, database=target)
    try:
        restored = restore_database(
            backup,
            target,
            folder=config.backup_folder,
            forget_again=forget_again,
        )
    finally:
        if stopped:
            start_again(stopped)
    say_result(restored, restore_text(restored))


def restore_text(restored: RestoredDatabase) -> str:
    """Return the result of a restore: counts, what is back, and how to take it back."""
    copy = restored.copy
    held = f"{count_of(copy.memories, 'memory')}, {count_of(copy.episodes, 'summary')}"
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
            f"{count_of(restored.forgotten, 'memory')}"
        )
    elif restored.forgotten:
        lines.append(
            "back, although forgotten after the backup was made: "
            f"{count_of(restored.forgotten, 'memory')}; to forget again: "
            f"mnem restore-db --forget-again {restored.backup}"
        )
    if restored.list_begins:
        lines.append(
            f"the list of what was forgotten begins at {local_time(restored.list_begins)}: what was "
            "forgotten between the backup and that time may be back"
        )
    lines += [
        f"the backup has a fault: {problem}; mnem doctor --repair mends it"
        for problem in copy.problems
    ]
    return "\n".join(lines)
