"""`mnem doctor`: all checks of an installation, and the repair of what they find."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from mnemosyned import backup_schedule, paths, socket_path
from mnemosyned.assembly.build import check_settings as check_rules
from mnemosyned.cli.maintenance import checks, service
from mnemosyned.cli.maintenance.checks import (
    Finding,
    Installation,
    Remedy,
    Severity,
    warning,
)
from mnemosyned.cli.options import EXIT_NOTHING, json_option, prints_json
from mnemosyned.cli.output.terminal import count_of, hanging_text, say, say_json
from mnemosyned.client.connection import Connection
from mnemosyned.config import loading, settings
from mnemosyned.errors import ConfigInvalid, MnemosynedError
from mnemosyned.storage.sqlite.copies import copy_beside, flush, open_to_read
from mnemosyned.storage.sqlite.ownership import lock_database
from mnemosyned.storage.sqlite.repair import extract_values_again, repair_database
from mnemosyned.verbs.upkeep import Status

CHECKS: Mapping[Callable[[Installation], Iterator[Finding]], bool] = {
    checks.check_programs: False,
    checks.check_settings: False,
    checks.check_daemon: False,
    checks.check_socket: False,
    checks.check_unit: False,
    checks.check_server: False,
    checks.check_database: True,
    checks.check_leftovers: True,
    checks.check_permissions: True,
    checks.check_space: True,
    checks.check_backups: True,
    checks.check_models: False,
    checks.check_clock: True,
    checks.check_login: False,
    checks.check_spool: False,
    checks.check_project: False,
    checks.check_tools: False,
}
"""All checks, and whether they are of a database in a file; a server has upkeep of its own."""

SLOW = (checks.check_database, checks.check_backups)


def examine(installation: Installation, *, slow: bool = True) -> list[Finding]:
    """Run all checks that apply, slow ones only if `slow`; return findings, and warnings for failed checks."""
    findings: list[Finding] = []
    no_file = settings.is_server(installation.config.database)
    no_file |= checks.is_memory_elsewhere(installation)
    for check, is_about_file in CHECKS.items():
        if (no_file and is_about_file) or (check in SLOW and not slow):
            continue
        name = check.__name__.removeprefix("check_")
        try:
            findings += check(installation)
        except (MnemosynedError, OSError) as error:
            findings.append(warning(name, f"this could not be checked: {error}"))
    return findings


def present_installation(*, deep: bool = False) -> Installation:
    """Return this user's installation, even with broken settings; `deep` lets checks take long."""
    file = loading.config_file() or paths.default_config_file()
    config, config_problem = settings.Config(), ""
    try:
        is_there = bool(os.environ.get(socket_path.CONFIG_VARIABLE)) or file.exists()
        config = loading.load_config(file if is_there else None)
        check_rules(config)  # by the rules of one part
    except ConfigInvalid as error:
        config_problem = error.message
    database, socket = paths.state_dir() / "memory.db", paths.default_socket()
    with suppress(ConfigInvalid):  # a check is about that
        database = config.database_path
    with suppress(ConfigInvalid):
        socket = config.socket_path
    process, status, unreachable = None, None, ""
    with suppress(MnemosynedError, OSError):  # check_daemon looks at the lock itself
        process = service.configured_daemon(config)
    if process and process.socket is None:
        unreachable = "it is a program with the memory in it, not a daemon"
    elif process:
        try:
            with Connection(process.socket, timeout_s=checks.ANSWER_S) as client:
                status = client.call(Status())
            socket = Path(str(process.socket))
        except MnemosynedError as error:
            unreachable = error.message
    return Installation(
        config=config,
        config_file=file,
        config_problem=config_problem,
        database=database,
        socket=socket,
        process=process,
        status=status,
        unreachable=unreachable,
        deep=deep,
    )


def repair(findings: Sequence[Finding], installation: Installation) -> Iterator[str]:
    """Repair what is safe to repair among the findings; yield a line for each repair or failure."""
    for finding in findings:
        if (path := finding.path) is None:
            continue
        try:
            if finding.remedy is Remedy.PERMISSIONS:
                mode = 0o700 if path.is_dir() else 0o600
                path.chmod(mode)
                yield f"closed {path} to others (mode {mode:04o})"
            elif finding.remedy in (Remedy.SOCKET, Remedy.LEFTOVER):
                path.unlink(missing_ok=True)
                is_socket = finding.remedy is Remedy.SOCKET
                yield f"removed {'the dead socket ' if is_socket else ''}{path}"
        except OSError as error:
            yield f"not done: {path}: {error.strerror}"
    remedies = {finding.remedy for finding in findings if finding.remedy}
    if remedies & {Remedy.RESTORE, Remedy.DATABASE, Remedy.VALUES}:
        yield from _repair_database(installation.database, remedies)


def _repair_database(database: Path, remedies: set[Remedy]) -> Iterator[str]:
    """Finish a restore, or repair the database after a backup, as `remedies` say; yield a line per step."""
    try:
        if Remedy.RESTORE in remedies:
            with lock_database(database):  # which finishes it
                yield f"finished the restore of {database}"
        if remedies & {Remedy.DATABASE, Remedy.VALUES}:
            with lock_database(database):
                backup = back_up_for_repair(database)
                yield f"backed up the database to {backup}"
                if Remedy.DATABASE in remedies:
                    yield from repair_database(database, paths.shipped("migrations"))
                if Remedy.VALUES in remedies:
                    yield from extract_values_again(database)
    except MnemosynedError as error:
        yield (
            f"not done: {error.message} Stop the daemon with mnem stop, then repair again"
        )
    except (OSError, sqlite3.Error) as error:
        yield f"not done: {error}"


def back_up_for_repair(database: Path) -> Path:
    """Copy the database, with its faults, into `backups` next to it; return the path."""
    folder = database.with_name("backups")
    folder.mkdir(mode=0o700, exist_ok=True)
    # No dated backup: it has the faults that are about to be mended.
    target = folder / f"before-repair-{datetime.now(UTC):{backup_schedule.STAMP}}.db"
    with closing(open_to_read(database)) as source:
        copy_beside(source, target).replace(target)
    flush(folder)
    return target


INDENT_CELLS = 21
"""Cells of a finding before its text."""
_STYLES: dict[Severity, dict[str, Any]] = {
    Severity.OK: {"dim": True},
    Severity.NOTE: {},
    Severity.WARNING: {"bold": True},
    Severity.PROBLEM: {"fg": "red"},
}


@click.command()
@click.option(
    "--repair", "repairs", is_flag=True, help="Make the repairs that are safe."
)
@click.option("--deep", is_flag=True, help="Also make the checks that take long.")
@json_option()
def doctor(*, repairs: bool, deep: bool) -> int:
    """Check the installation, and name the command that repairs each fault.

    It changes nothing and needs no daemon. With --repair it repairs what is safe: permissions, a
    dead socket, indexes, counts, orphaned rows. The database is backed up before it is changed. The
    exit code is 1 while something is wrong.
    """
    findings = examine(present_installation(deep=deep))
    done: list[str] = []
    if repairs:
        done = list(repair(findings, present_installation(deep=deep)))
        findings = examine(present_installation(deep=deep))
    if prints_json():
        say_json({"findings": findings, "repairs": done})
    else:
        for line in done:
            say(f"repair: {line}")
        _print_findings(findings)
    return EXIT_NOTHING if any(each.severity.is_bad for each in findings) else 0


def _print_findings(findings: Sequence[Finding]) -> None:
    """Print findings with their commands, the most severe last, then the number of bad ones."""
    order = list(Severity)
    for finding in sorted(findings, key=lambda each: order.index(each.severity)):
        severity = click.style(
            f"{finding.severity.value:<9}", **_STYLES[finding.severity]
        )
        text = finding.text.replace(f"{Path.home()}/", "~/")
        head = f"{severity}{finding.check:<12}"
        say(hanging_text(head, text, INDENT_CELLS), styled=True)
        if finding.command:
            say(f"{'':<{INDENT_CELLS}}{finding.command}")
    bad = [finding for finding in findings if finding.severity.is_bad]
    mended = [finding for finding in bad if finding.remedy]
    if not bad:
        say("nothing is wrong")
        return
    hint = "; mnem doctor --repair mends what is safe" if mended else ""
    say(f"{count_of(len(bad), 'finding')}{hint}")
