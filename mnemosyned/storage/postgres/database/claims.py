"""Work that one process does at a time, among all that share an owner."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psycopg

from mnemosyned.domain.errors import SleepInProgress, StorageFailed
from mnemosyned.storage.postgres.database.connections import (
    Connection,
    connected_apart,
)
from mnemosyned.storage.postgres.database.failures import storage_failed
from mnemosyned.storage.postgres.database.health import REFUSES_WRITES, STANDBY
from mnemosyned.storage.postgres.database.session import Session

_KEY = "hashtextextended('mnemosyned sleeps in ' || current_schema(), %(owner)s)"


class SessionClaims:
    """Claims to sleep, held by one connection of its own for all owners; safe from any thread.

    Each is an advisory lock of that session: the server drops it with the connection, so that no
    process leaves one behind, however it ends. It saves work and guards nothing, as the transaction
    that moves memories does.
    """

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._changing = threading.Lock()
        self._claimed: set[int] = set()
        self._connection: Connection | None = None

    @contextmanager
    def sleep_claim(self, owner: int) -> Iterator[Callable[[], bool]]:
        """Keep others from sleeping while the block runs; yield the check whether it still holds.

        Raises `SleepInProgress`, and `StorageFailed` where no connection can be had, or on a standby.
        """
        with self._changing:
            # The server lets a session have a lock twice.
            is_free = owner not in self._claimed
            try:
                if self._connection is None or self._connection.closed:
                    self._connection = connected_apart(self._dsn)
                connection = self._connection
                session = Session(connection, owner)
                if session.scalar(f"SELECT {REFUSES_WRITES}"):
                    self._close_unused()
                    raise StorageFailed(STANDBY)
                is_free = is_free and session.scalar(
                    f"SELECT pg_try_advisory_lock({_KEY})"
                )
            except psycopg.Error as error:
                self._close_unused()
                raise storage_failed(error) from error
            if is_free:
                self._claimed.add(owner)
            else:
                self._close_unused()
        if not is_free:
            raise SleepInProgress(
                "another daemon consolidates this memory; ask again when it has finished"
            )
        try:
            yield lambda: _holds(session)
        finally:
            with self._changing:
                self._claimed.discard(owner)
                with suppress(psycopg.Error):
                    session.execute(f"SELECT pg_advisory_unlock({_KEY})")
                if connection is self._connection:
                    self._close_unused()

    def _close_unused(self) -> None:
        """Close the connection where no claim is left on it."""
        if not self._claimed and self._connection:
            self._connection.close()
            self._connection = None


def _holds(session: Session) -> bool:
    """Whether the connection, and the lock with it, is still there."""
    try:
        session.execute("SELECT 1")
    except psycopg.Error:
        return False
    return True
