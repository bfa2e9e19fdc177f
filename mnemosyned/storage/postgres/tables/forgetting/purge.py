"""Notes of what was deleted, and whose words are still to be taken out of pages and logs."""

from __future__ import annotations

from mnemosyned.storage.postgres.database.session import Session
from mnemosyned.storage.postgres.tables.owners.owner import take_numbers


def request_purge(session: Session) -> None:
    """Note, within the deletion's own transaction, that its words are still to be purged.

    Each deletion has a number of its own, so that a purge which began before it does not count.
    """
    (asked,) = take_numbers(session, "record", 1)
    session.execute(
        "INSERT INTO scrub_due (owner, asked) VALUES (%(owner)s, %(asked)s)",
        asked=asked,
    )
