"""Files around the database: permissions, space, backups, models and the hooks' spool."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

from mnemosyned.assembly.policies import backup_policy
from mnemosyned.config import NO_MODEL, with_default_model
from mnemosyned.domain.errors import MnemosynedError
from mnemosyned.domain.keeping.backups import overdue
from mnemosyned.hooks import spool
from mnemosyned.maintenance.findings import (
    Finding,
    Installation,
    Remedy,
    note,
    ok,
    problem,
    warning,
)
from mnemosyned.maintenance.restore import check_restorable
from mnemosyned.models.catalog import ModelStore
from mnemosyned.paths import models_dir, token_path
from mnemosyned.service.backups.copies import dated_backups, file_bytes
from mnemosyned.service.backups.keeper import interval_of
from mnemosyned.terminal import counted, when

FREE_MIN_BYTES = 50_000_000
FREE_WARNING = 2.0
"""Times the size of the database that should be free: a purge and a backup each write it anew."""
FILES_MAX = 10_000
SPOOL_OLD_S = 600.0
"""Calls wait a moment while a daemon restarts; for longer, something keeps them."""
MAGIC = b"GGUF"
BY_HAND = timedelta(days=7)
"""Interval of backups where none are scheduled."""


def check_permissions(installation: Installation) -> Iterator[Finding]:
    """Whether the files of the memory belong to this user, and are closed to all others."""
    database = installation.database
    files = [
        database,
        *(database.with_name(database.name + suffix) for suffix in ("-wal", "-shm")),
        installation.config_file,
        token_path(),
    ]
    folders = [database.parent, installation.config_file.parent, models_dir()]
    findings = [_closed(path, 0o077) for path in files]
    # A folder of others may be looked into, but not written to.
    findings += [_closed(path, 0o022) for path in dict.fromkeys(folders)]
    bad = [finding for finding in findings if finding]
    yield from bad
    if not bad:
        yield ok("permissions", "the files of the memory are open to you alone")


def check_space(installation: Installation) -> Iterator[Finding]:
    """Whether the disk has room for a purge and a backup."""
    folder = installation.database.parent
    if not folder.exists():
        return
    free = shutil.disk_usage(folder).free
    size = file_bytes(installation.database)
    wanted = max(FREE_MIN_BYTES, FREE_WARNING * size)
    text = f"{free / 1e6:,.0f} MB are free for a database of {size / 1e6:,.0f} MB"
    if free < FREE_MIN_BYTES:
        yield problem("disk", f"the disk is almost full: {text}", f"df -h {folder}")
    elif free < wanted:
        yield warning(
            "disk", f"{text}: a purge or a backup may fail", f"df -h {folder}"
        )
    else:
        yield ok("disk", text)


def check_backups(installation: Installation) -> Iterator[Finding]:
    """Whether there is a backup, how old it is, and whether the newest is whole."""
    policy = backup_policy(installation.config)
    folder, scheduled = installation.backup_folder, policy.scheduled
    if scheduled and folder.exists() and not os.access(folder, os.W_OK):
        yield problem(
            "backups",
            f"{folder} cannot be written to",
            "mnem config set backup.dir DIR",
        )
    newest = max(dated_backups(folder), default=None)
    if newest is None:
        if installation.database.exists():
            yield _no_backup(folder, scheduled=scheduled)
        return
    try:
        check_restorable(folder / newest.name, installation.database)
    except MnemosynedError as error:
        yield problem("backups", f"the newest backup: {error.message}", "mnem backup")
        return
    text = f"the newest backup is of {when(newest.made_at)}, in {folder}"
    now = datetime.now(UTC)
    interval = interval_of(policy, now) if scheduled else BY_HAND
    if overdue(newest.made_at, interval=interval, now=now):
        yield warning("backups", f"{text}, and old", "mnem backup")
    else:
        yield ok("backups", f"{text}, and whole")


def check_models(installation: Installation) -> Iterator[Finding]:
    """Whether the models of the settings are there, whole, and can be run."""
    config = with_default_model(installation.config)
    named = {
        "llm.model_path": config.llm.model_path,
        "embedding.model_path": config.embedding.model_path,
    }
    for key, name in named.items():
        if name and name != NO_MODEL:
            yield from _model_findings(key, name, deep=installation.deep)


def check_spool(_: Installation) -> Iterator[Finding]:
    """Whether calls of hooks wait for the daemon."""
    folder = Path(spool.folder())
    try:
        files = list(islice(folder.iterdir(), FILES_MAX))
    except OSError:
        return
    if odd := [file.name for file in files if file.name.startswith(spool.SET_ASIDE)]:
        text = f"{counted(len(odd), 'entry')} of {folder} cannot be handed in: {odd[0]}"
        yield warning("hooks", text, f"ls -la {folder}")
    calls = [file for file in files if not file.name.startswith(".")]
    if not calls:
        return
    oldest = min(file.lstat().st_mtime for file in calls)
    age_s = datetime.now(UTC).timestamp() - oldest
    text = f"{counted(len(calls), 'call')} of agents' hooks wait in {folder}"
    if age_s < SPOOL_OLD_S:
        yield note("hooks", f"{text}; the next hook hands them in")
    else:
        yield warning(
            "hooks", f"{text}, the oldest for {age_s / 86_400:,.1f} days", "mnem start"
        )


def _closed(path: Path, mask: int) -> Finding | None:
    """The fault in who may use a file; None if there is none, or no such file."""
    try:
        status = path.stat()
    except OSError:
        return None
    mode = stat.S_IMODE(status.st_mode)
    if status.st_uid != os.geteuid():
        command = f"sudo chown {os.geteuid()} {path}"
        return problem("permissions", f"{path} belongs to another user", command)
    if not mode & mask or (path.is_dir() and mode & stat.S_ISVTX):
        return None
    wanted = 0o700 if path.is_dir() else 0o600
    action = "write to" if path.is_dir() else "read or write"
    return warning(
        "permissions",
        f"others can {action} {path} (mode {mode:04o})",
        f"chmod {wanted:o} {path}",
        Remedy.PERMISSIONS,
        path,
    )


def _no_backup(folder: Path, *, scheduled: bool) -> Finding:
    text = f"there is no backup in {folder}"
    if scheduled:
        return warning("backups", text, "mnem backup")
    return note("backups", text, f"mnem config set backup.dir {folder}")


def _model_findings(key: str, name: str, *, deep: bool) -> Iterator[Finding]:
    path = Path(name).expanduser()
    if not path.is_file():
        yield problem("model", f"{key}: there is no file {path}", "mnem model list")
        return
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            text = f"{key}: {path} is not a model in GGUF format"
            yield problem("model", text, "mnem model list")
            return
    if deep:
        verdict = ModelStore().verify(path)
        for text in verdict.problems:
            yield problem("model", f"{path}: {text}", f"mnem model pull {path.name}")
        if verdict.problems:
            return
    if find_spec("llama_cpp") is None:
        text = (
            f"{key} names a model, but llama.cpp is not installed: rules write instead"
        )
        yield warning("model", text, "make install-llm")
        return
    yield ok("model", f"{key}: {path.name} is there")
