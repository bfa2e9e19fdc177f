"""Secure delete: forgotten words leave index segments, pages and the write-ahead log."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from mnemosyned.storage.sqlite.connections import Readers
from mnemosyned.storage.sqlite.fulltext import (
    DEPTH_MAX,
    INDEXES,
    index_depth,
    purge_steps,
    rebuild_index,
)
from mnemosyned.storage.sqlite.session import SqliteSession
from mnemosyned.storage.sqlite.writer import Writer

T = TypeVar("T")

CHECKPOINT_TRIES = 40
CHECKPOINT_PAUSE_S = 0.05
"""Two seconds in all: a recall of ours has ended by then, another program may go on for ever."""


class Purge:
    """Purges one file. Safe from any thread; one runs at a time."""

    def __init__(
        self, writer: Writer, readers: Readers, *, checkpoint: Callable[[], object]
    ) -> None:
        """Purge one file; `checkpoint` copies its log into the file beside readers and writers."""
        self._writer = writer
        self._readers = readers
        self._checkpoint = checkpoint
        self._running = threading.Lock()

    def due(self) -> bool:
        """Return whether deleted words wait for a purge."""
        with self._readers.snapshot() as session:
            return session.scalar("SELECT 1 FROM scrub_due LIMIT 1") is not None

    def run(self) -> bool:
        """Remove deleted words from indexes, pages and log; return False if a program prevents it."""
        with self._running:
            with self._readers.snapshot() as session:
                newest = session.scalar("SELECT max(asked) FROM scrub_due")
            if newest is None:
                return True
            for index in INDEXES:
                self._purge_index(index)
            clean = self._writer.compact() and self._empty_log()
            if clean:
                self._write(
                    lambda session: session.execute(
                        "DELETE FROM scrub_due WHERE asked <= ?", (newest,)
                    )
                )
        return clean

    def _write(self, work: Callable[[SqliteSession], T]) -> T:
        """Run `work` in a transaction without waiting for the disk, as a lost purge is run again."""
        return self._writer.write(work, durable=False)

    def _purge_index(self, index: str) -> None:
        """Merge an index step by step, so that writers wait for one step only; rebuild a deep index."""
        depth = self._write(partial(index_depth, index=index))
        if depth is None or depth > DEPTH_MAX:
            self._write(partial(rebuild_index, index=index))
            return
        for statement in purge_steps(index):
            if not self._write(partial(_merge_step, statement=statement)):
                break

    def _empty_log(self) -> bool:
        """Copy the log into the file and truncate it; return False if a reader prevents it.

        Most of it is copied while others read. For the rest our own readers are paused for moments,
        as otherwise some recall would always be under way.
        """
        self._checkpoint()
        for _ in range(CHECKPOINT_TRIES):
            with self._readers.pause(wait_s=CHECKPOINT_PAUSE_S) as alone:
                if alone and self._writer.checkpoint(wait_s=0):
                    return True
            time.sleep(CHECKPOINT_PAUSE_S)
        return False


def _merge_step(session: SqliteSession, statement: str) -> bool:
    """Run one step of a merge; return False if there was nothing left to do."""
    before = session.total_changes
    session.execute(statement)
    return session.total_changes - before >= 2
