"""`AsyncMemory`: a database opened in this process, for asyncio."""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Self, TypeVar

from mnemosyned.domain.ports.clock import Clock
from mnemosyned.library.blocking import Memory
from mnemosyned.verbs.facade import AsyncVerbs
from mnemosyned.verbs.request import Request

R = TypeVar("R")

THREADS = 4


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
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="memory")
        self._turns = asyncio.Semaphore(threads)
        self._memory: Memory | None = None

    async def __aenter__(self) -> Self:
        opening = self._threads.submit(self._open)
        try:
            self._memory = await asyncio.shield(asyncio.wrap_future(opening))
        except BaseException:
            opening.add_done_callback(_close_opened)
            self._threads.shutdown(wait=False)
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Let running calls finish, and close the file."""
        await asyncio.to_thread(self._close)

    async def call(self, request: Request[R]) -> R:
        """Run one verb. Raises an error of the domain, never half of the work."""
        if self._memory is None:
            raise RuntimeError("it is not open; use `async with AsyncMemory(…)`")
        loop = asyncio.get_running_loop()
        async with self._turns:
            return await loop.run_in_executor(self._threads, self._memory.call, request)

    def _open(self) -> Memory:
        return Memory(self._database, clock=self._clock, **self._settings)

    def _close(self) -> None:
        self._threads.shutdown()
        if self._memory is not None:
            self._memory.close()


def _close_opened(opening: Future[Memory]) -> None:
    """Close a database that nobody waits for anymore."""
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
