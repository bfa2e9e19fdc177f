"""`mnem restore-db`: a backup becomes the database."""

from __future__ import annotations

from pathlib import Path

import click

from mnemosyned.domain.errors import DatabaseInUse
from mnemosyned.maintenance import daemon_process
from mnemosyned.maintenance.daemon_process import running_daemon
from mnemosyned.maintenance.restore import (
    RestoredDatabase,
    check_restorable,
    restore_database,
)
from mnemosyned.maintenance.service_commands import (
    start_again,
    stop_daemon,
)
from mnemosyned.paths import DATABASE_PATH_BYTES_MAX, DATABASE_SUFFIX, usable_path
from mnemosyned.terminal import counted, say, say_json, when


@click.command("restore-db")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--restart", is_flag=True, help="Stop the daemon for it, and start it again."
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
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def restore_db(
    file: Path,
    database: Path | None,
    *,
    restart: bool,
    forget_again: bool,
    as_json: bool,
) -> None:
    """Put a backup in the place of the database.

    The backup is checked first. The present database is set aside under a name with the date,
    and never deleted. The daemon must be stopped, or --restart does that.

    What was forgotten after the backup was made comes back with it, and the command says how many
    memories that are; --forget-again forgets them again, by a list in the folder of backups.
    """
    config = daemon_process.configured()
    target = _target(database) if database else config.database_path
    backup = usable_path(str(file), field="file").absolute()
    process = running_daemon(target)
    if process and not restart:
        raise DatabaseInUse(
            f"process {process.pid} has {target} open: stop it with `mnem stop`, or add --restart"
        )
    stopped = None
    if process:
        check_restorable(backup, target)  # before anything is stopped
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
    if as_json:
        say_json(restored)
    else:
        say(words_of(restored))


def _target(database: Path) -> Path:
    """The database that is replaced, and set aside under a longer name."""
    return usable_path(
        str(database),
        field="database",
        suffix=DATABASE_SUFFIX,
        bytes_max=DATABASE_PATH_BYTES_MAX,
    ).absolute()


def words_of(restored: RestoredDatabase) -> str:
    """Say what was restored, what was forgotten again, and how to take it back."""
    copy = restored.copy
    held = f"{counted(copy.memories, 'memory')}, {counted(copy.episodes, 'summary')}"
    lines = [f"restored {restored.database}: {held}; checked, complete and on disk"]
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
            f"{counted(restored.forgotten, 'memory')}"
        )
    elif restored.forgotten:
        lines.append(
            "back, although forgotten after the backup was made: "
            f"{counted(restored.forgotten, 'memory')}; to forget again: "
            f"mnem restore-db --forget-again {restored.backup}"
        )
    if restored.list_begins:
        lines.append(
            f"the list of what was forgotten begins at {when(restored.list_begins)}: what was "
            "forgotten between the backup and that time may be back"
        )
    lines += [
        f"the backup has a fault: {problem}; mnem doctor --repair mends it"
        for problem in copy.problems
    ]
    return "\n".join(lines)
