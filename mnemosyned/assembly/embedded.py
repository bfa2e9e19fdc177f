"""The verbs on a database file, without a daemon: `Memory`, and for asyncio `AsyncMemory`."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Self, TypeVar

from mnemosyned.assembly.build import open_memory
from mnemosyned.client.blocking import Client
from mnemosyned.config.loading import load_config
from mnemosyned.config.settings import IN_MEMORY
from mnemosyned.errors import ConfigInvalid, DatabaseInUse, StorageFailed
from mnemosyned.memory.clock import Clock
from mnemosyned.storage.sqlite import connections, ownership
from mnemosyned.verbs.facade import AsyncVerbs, Caller, Verbs
from mnemosyned.verbs.request import Request, validate

R = TypeVar("R")

THREADS = 4
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 each directory in it is private, by `mkdtemp`
"""A file system in memory, on Linux."""
_PRIVATE = "mnemosyned-memory-"
_ABANDONED_S = 60.0
"""Age from which a private directory without a lock is taken for a killed process's."""


@contextmanager
def private_directory() -> Iterator[Path]:
    """Return a context manager that gives a new private directory, deleted at the end of the block.

    It is in `/dev/shm`, a file system in memory, or else in the directory for temporary files.
    Directories left behind by killed processes are deleted first.
    """
    in_memory = SHARED_MEMORY.is_dir() and os.access(SHARED_MEMORY, os.W_OK)
    parent = SHARED_MEMORY if in_memory else Path(tempfile.gettempdir())
    for abandoned in parent.glob(f"{_PRIVATE}*"):
        with suppress(OSError):  # another user's, in use, or deleted by another call
            if time.time() - abandoned.stat().st_mtime < _ABANDONED_S:
                continue
            descriptor = os.open(abandoned, os.O_RDONLY | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(abandoned, ignore_errors=True)
            finally:
                os.close(descriptor)
    directory = Path(tempfile.mkdtemp(prefix=_PRIVATE, dir=parent))
    descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        os.close(descriptor)


def _close_in_its_process(stack: ExitStack, opened_by: int) -> None:
    """Close the `stack` if this is the process `opened_by`; in a fork, prevent its closing for ever."""
    if os.getpid() == opened_by:
        stack.close()
        return
    # Loaded here: few programs fork. The end of the stack would write to the other process's file.
    import ctypes  # noqa: PLC0415

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(stack))


class Memory(Verbs):
    """Every verb on one database file, without a daemon.

    `Memory(":memory:")` is a database that ends with `close()`. Its files are in a private
    directory of `/dev/shm`, which is memory; only where a system has none are they in the directory
    for temporary files. If the process is killed, the next such database deletes them.

    Settings are the keys of the configuration, `Memory(path, wm_max=500)`, and dotted ones by
    `**{"sleep.ttl_hours": 1}`; the `MNEMOSYNE_…` variables count, the daemon's file does not. It sleeps when
    `sleep()` is called, when the cap is reached, and with `auto_sleep=True` in the background. If a daemon owns
    the file, all calls go through it. Raises `ConfigInvalid`, `DatabaseInUse`, `SchemaTooNew`.
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
        self._opened_by = 0
        """The process that has the file open; 0 if that is a daemon."""
        self._caller: Caller
        try:
            self._open_database(os.fspath(database), {**asleep, **settings}, clock)
        except BaseException:
            self._stack.close()
            raise
        # Also at the end of the program, while what is needed for closing still exists.
        self._close = weakref.finalize(
            self, _close_in_its_process, self._stack, os.getpid()
        )

    def _open_database(
        self, database: str, settings: dict[str, object], clock: Clock | None
    ) -> None:
        """Open the database, or connect to the daemon that has it open."""
        if not database:  # to the settings, the default of the daemon
            raise ConfigInvalid(
                "database is empty; name a file, or :memory:", field="database"
            )
        if database == IN_MEMORY:
            directory = self._stack.enter_context(private_directory())
            database = str(directory / "memory.db")
        config = load_config(overrides={**settings, "database": database})
        try:
            memory = self._stack.enter_context(open_memory(config, clock=clock))
            self._caller = memory.service
            self._opened_by = os.getpid()
        except DatabaseInUse:
            owner = ownership.database_owner(config.database_path)
            if owner is None or owner.socket is None:
                raise
            self._caller = self._stack.enter_context(Client(owner.socket))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def call(self, request: Request[R]) -> R:
        """Carry out a request and return its result. Raises `MnemosynedError` if it fails."""
        self.check_process()
        if not self._close.alive:
            raise StorageFailed(connections.CLOSED)
        return self._caller.call(validate(request))

    def check_process(self) -> None:
        """Raise `DatabaseInUse` in a fork of the process that opened the database."""
        if self._opened_by not in (0, os.getpid()):
            raise DatabaseInUse(
                f"process {self._opened_by} opened this memory before a fork, and only that process can "
                "use it. For several processes, run a daemon and use Client"
            )

    def close(self) -> None:
        """Stop the background threads and close the database."""
        self._close()


class AsyncMemory(AsyncVerbs):
    """Every verb of a `Memory` as a coroutine: `async with AsyncMemory(path) as memory`.

    SQLite blocks, so the calls run on up to `threads` threads; further ones wait for their turn. A
    call that is cancelled once it runs is finished all the same. Settings and errors are those of
    `Memory`. One event loop uses it.
    """

    def __init__(
        self,
        database: str | os.PathLike[str],
        *,
        threads: int = THREADS,
        clock: Clock | None = None,
        **settings: object,
    ) -> None:
        if threads < 1:
            raise ValueError("threads must be at least 1")
        self._database = database
        self._clock = clock
        self._settings = settings
        self._new_threads = partial(
            ThreadPoolExecutor, threads, thread_name_prefix="memory"
        )
        self._threads = self._new_threads()
        self._turns = asyncio.Semaphore(threads)
        self._memory: Memory | None = None

    async def __aenter__(self) -> Self:
        def close_opened(opening: Future[Memory]) -> None:
            """Close the memory if it was opened, since nobody waits for it any more."""
            if not opening.cancelled() and opening.exception() is None:
                opening.result().close()

        opening = self._threads.submit(
            Memory, self._database, clock=self._clock, **self._settings
        )
        try:
            self._memory = await asyncio.shield(asyncio.wrap_future(opening))
        except BaseException:
            opening.add_done_callback(close_opened)
            threads, self._threads = self._threads, self._new_threads()
            threads.shutdown(wait=False)
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Wait until running calls have finished, then close the database."""
        memory, self._memory = self._memory, None
        threads, self._threads = self._threads, self._new_threads()

        def wait_and_close() -> None:
            """Wait until the calls in the threads have finished, then close the memory."""
            threads.shutdown()
            if memory is not None:
                memory.close()

        await asyncio.to_thread(wait_and_close)

    async def call(self, request: Request[R]) -> R:
        """Return a request's result, made in a thread. Raises `MnemosynedError`; `RuntimeError` if not open."""
        memory = self._memory
        if memory is None:
            raise RuntimeError("it is not open; use `async with AsyncMemory(…)`")
        memory.check_process()  # a fork has none of the threads below
        loop = asyncio.get_running_loop()
        async with self._turns:
            return await loop.run_in_executor(self._threads, memory.call, request)
