"""The owner's row: numbers that are given out, and the totals of each tier."""

from __future__ import annotations

from typing import Literal

from mnemosyned.domain.memory import Tier
from mnemosyned.domain.ports.servers.owners import LOCAL_NAME, LOCAL_OWNER
from mnemosyned.storage.postgres.database.session import Session


def ensure_owner(session: Session) -> None:
    """Add the owner's row if there is none."""
    name = LOCAL_NAME if session.owner == LOCAL_OWNER else f"owner-{session.owner}"
    session.execute(
        "INSERT INTO owner (owner, name) VALUES (%(owner)s, %(name)s) "
        "ON CONFLICT DO NOTHING",
        name=name,
    )


def take_numbers(
    session: Session, kind: Literal["memory", "log", "record"], count: int
) -> range:
    """Take the next numbers, of memories, of log rows or of all other records; ascending."""
    last: int = session.scalar(
        f"UPDATE owner SET last_{kind} = last_{kind} + %(count)s "
        f"WHERE owner = %(owner)s RETURNING last_{kind}",
        count=count,
    )
    return range(last - count + 1, last + 1)


def pass_number(
    session: Session, kind: Literal["memory", "log", "record"], number: int
) -> None:
    """Give out none up to this one any more: it was brought from elsewhere."""
    session.execute(
        f"UPDATE owner SET last_{kind} = greatest(last_{kind}, %(number)s) "
        "WHERE owner = %(owner)s",
        number=number,
    )


def note_rewording(session: Session) -> None:
    """Count a change of words that were there.

    Memories or summaries were written anew, went, or came back with the numbers they had.
    """
    session.execute(
        "UPDATE owner SET rewordings = rewordings + 1 WHERE owner = %(owner)s"
    )


def add_to_totals(
    session: Session, tier: Tier, *, count: int = 0, characters: int = 0
) -> None:
    """Count in what a tier gained or lost."""
    if count or characters:
        session.execute(
            f"UPDATE owner SET {tier.value}_count = {tier.value}_count + %(count)s, "
            f"{tier.value}_characters = {tier.value}_characters + %(characters)s "
            "WHERE owner = %(owner)s",
            count=count,
            characters=characters,
        )


def totals(session: Session) -> dict[Tier, tuple[int, int]]:
    """Entries and characters of each tier."""
    row = session.execute(
        "SELECT working_count, working_characters, episodic_count, episodic_characters, "
        "archive_count, archive_characters FROM owner WHERE owner = %(owner)s"
    ).fetchone()
    values = row or (0,) * 6
    tiers = (Tier.WORKING, Tier.EPISODIC, Tier.ARCHIVE)
    return {
        tier: (values[2 * place], values[2 * place + 1])
        for place, tier in enumerate(tiers)
    }
