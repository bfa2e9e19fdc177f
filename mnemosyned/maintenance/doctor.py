"""Looks over an installation without changing it: every check, and what the daemon says."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from mnemosyned.assembly.build import check_settings as check_rules
from mnemosyned.client.connection import Connection
from mnemosyned.config import (
    CONFIG_VARIABLE,
    Config,
    config_file,
    is_server,
    load_config,
)
from mnemosyned.domain.errors import ConfigInvalid, MnemosynedError
from mnemosyned.logs import logger
from mnemosyned.maintenance.checks.database import (
    check_database,
    check_leftovers,
    check_server,
)
from mnemosyned.maintenance.checks.files import (
    check_backups,
    check_models,
    check_permissions,
    check_space,
    check_spool,
)
from mnemosyned.maintenance.checks.process import (
    check_clock,
    check_daemon,
    check_programs,
    check_settings,
    check_socket,
    check_unit,
)
from mnemosyned.maintenance.checks.tools import check_tools
from mnemosyned.maintenance.daemon_process import configured_daemon
from mnemosyned.maintenance.findings import Finding, Installation, warning
from mnemosyned.paths import config_dir, default_socket, state_dir
from mnemosyned.verbs.status import Status

ANSWER_S = 10.0
CHECKS: tuple[Callable[[Installation], Iterator[Finding]], ...] = (
    check_programs,
    check_settings,
    check_daemon,
    check_socket,
    check_unit,
    check_server,
    check_database,
    check_leftovers,
    check_permissions,
    check_space,
    check_backups,
    check_models,
    check_clock,
    check_spool,
    check_tools,
)

log = logger()


ABOUT_FILES = (
    check_database,
    check_leftovers,
    check_permissions,
    check_space,
    check_backups,
    check_clock,
)
"""Checks of a memory in a file; one on a server is looked after there."""


def examine(installation: Installation) -> list[Finding]:
    """Run every check; one that cannot run is a finding itself."""
    findings: list[Finding] = []
    on_server = is_server(installation.config.database)
    for check in CHECKS:
        if on_server and check in ABOUT_FILES:
            continue
        name = check.__name__.removeprefix("check_")
        try:
            findings += check(installation)
        except (MnemosynedError, OSError) as error:
            findings.append(warning(name, f"this could not be checked: {error}"))
    return findings


def present_installation(*, deep: bool = False) -> Installation:
    """The installation of this user, whatever is wrong with it."""
    file = config_file() or config_dir() / "mnemosyned.yaml"
    config, trouble = _settings(file)
    installation = Installation(
        config=config,
        config_file=file,
        config_problem=trouble,
        database=_path_or(lambda: config.database_path, state_dir() / "memory.db"),
        socket=_path_or(lambda: config.socket_path, default_socket()),
        state=state_dir(),
        deep=deep,
    )
    return _with_daemon(installation)


def _settings(file: Path) -> tuple[Config, str]:
    """The settings, or the defaults, and why a daemon could not use them."""
    named = os.environ.get(CONFIG_VARIABLE)
    try:
        config = load_config(file if named or file.exists() else None)
    except ConfigInvalid as error:
        return Config(), error.message
    try:
        check_rules(config)
    except ConfigInvalid as error:  # by the rules of one part
        return config, error.message
    return config, ""


def _path_or(path: Callable[[], Path], otherwise: Path) -> Path:
    try:
        return path()
    except ConfigInvalid:  # check_settings says so, or the file check does
        return otherwise


def _with_daemon(installation: Installation) -> Installation:
    """The installation with the process that has the database open, and its status."""
    try:
        process = configured_daemon(installation.config)
    except (MnemosynedError, OSError):  # check_daemon looks at the lock itself
        return installation
    if process is None:
        return installation
    if process.socket is None:
        reason = "it is a program with the memory in it, not a daemon"
        return replace(installation, process=process, unreachable=reason)
    try:
        with Connection(process.socket, timeout_s=ANSWER_S) as client:
            status = client.call(Status())
    except MnemosynedError as error:
        return replace(installation, process=process, unreachable=error.message)
    socket = Path(process.socket)
    return replace(installation, process=process, status=status, socket=socket)
