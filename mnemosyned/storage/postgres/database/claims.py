"""Work that one process does at a time, among all that share an owner."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psycopg

from mnemosyned.domain.errors import SleepInProgress
from mnemosyned.storage.postgres.database.failures import storage_failed
from mnemosyned.storage.postgres.database.pool import Pool
from mnemosyned.storage.postgres.database.session import Session

_KEY = "hashtextextended('mnemosyned sleeps in ' || current_schema(), %(owner)s)"


@contextmanager
def sleep_claim(pool: Pool, owner: int) -> Iterator[Callable[[], bool]]:
    """Keep others from sleeping while the block runs. Raises `SleepInProgress`.

    An advisory lock of a session of its own: the server drops it with the connection, so that no
    process leaves one behind, however it ends. It saves work and guards nothing, as the transaction
    that moves memories does. Yields the check whether it still holds.
    """
    with pool.apart(owner) as session:
        try:
            is_claimed = session.scalar(f"SELECT pg_try_advisory_lock({_KEY})")
        except psycopg.Error as error:
            raise storage_failed(error) from error
        if not is_claimed:
            raise SleepInProgress(
                "another daemon consolidates this memory; ask again when it has finished"
            )
        try:
            yield lambda: _holds(session)
        finally:
            # Closing alone would let go a moment later.
            with suppress(psycopg.Error):
                session.execute(f"SELECT pg_advisory_unlock({_KEY})")


def _holds(session: Session) -> bool:
    """Whether the connection, and the lock with it, is still there."""
    try:
        session.execute("SELECT 1")
    except psycopg.Error:
        return False
    return True
