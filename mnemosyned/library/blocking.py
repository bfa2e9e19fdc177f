"""`Memory`: a database opened in this process, or reached through the daemon that owns it."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import Self, TypeVar

from mnemosyned.assembly.build import open_memory
from mnemosyned.client import Client
from mnemosyned.config import IN_MEMORY, load_config
from mnemosyned.domain.errors import DatabaseInUse
from mnemosyned.domain.ports.clock import Clock
from mnemosyned.library.private_directory import private_directory
from mnemosyned.storage.sqlite.database.ownership import owner_of
from mnemosyned.verbs.facade import Caller, Verbs
from mnemosyned.verbs.request import Request, checked

R = TypeVar("R")


class Memory(Verbs):
    """Every verb on one database file, without a daemon.

    `Memory(":memory:")` is a database that ends with `close()`. Its files are in a private
    directory of `/dev/shm`, which is memory; only where a system has none are they in the directory
    for temporary files. If the process is killed, the next such database deletes them.

    Settings are the keys of the configuration, `Memory(path, wm_max=500)`, and dotted ones by
    `**{"sleep.ttl_hours": 1}`; the `MNEMOSYNE_…` variables count, the daemon's file does not.
    It sleeps when `sleep()` is called, when the cap is reached, and with `auto_sleep=True` in
    the background. Where a daemon owns the file, all calls go through it.
    Raises `ConfigInvalid`, `DatabaseInUse`, `SchemaTooNew`.
    """

    def __init__(
        self,
        database: str | os.PathLike[str],
        *,
        clock: Clock | None = None,
        **settings: object,
    ) -> None:
        asleep = {} if "MNEMOSYNE_AUTO_SLEEP" in os.environ else {"auto_sleep": False}
        self._stack = ExitStack()
        self._caller: Caller
        try:
            self._open(os.fspath(database), {**asleep, **settings}, clock)
        except BaseException:
            self._stack.close()
            raise

    def _open(
        self, database: str, settings: dict[str, object], clock: Clock | None
    ) -> None:
        if database == IN_MEMORY:
            directory = self._stack.enter_context(private_directory())
            database = str(directory / "memory.db")
        config = load_config(overrides={**settings, "database": database})
        try:
            memory = self._stack.enter_context(open_memory(config, clock=clock))
            self._caller = memory.service
        except DatabaseInUse:
            owner = owner_of(config.database_path)
            if owner is None or owner.socket is None:
                raise
            self._caller = self._stack.enter_context(Client(owner.socket))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def call(self, request: Request[R]) -> R:
        """Run one verb. Raises an error of the domain, never half of the work."""
        return self._caller.call(checked(request))

    def close(self) -> None:
        """Stop what runs in the background and close the file."""
        self._stack.close()
