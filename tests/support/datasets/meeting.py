"""A meeting as an episode, with a decision, a price, a day and an address among small talk."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from mnemosyned.memory.values import MemoryRecord

NOON = datetime(2026, 3, 3, 12, tzinfo=UTC)


def memories(*contents: str) -> list[MemoryRecord]:
    return [
        MemoryRecord(
            id=str(at),
            content=text,
            role="user",
            created_at=NOON + timedelta(minutes=at),
        )
        for at, text in enumerate(contents)
    ]


EPISODE = memories(
    "We looked at three vendors for the new badge printer this morning.",
    "Decision: we buy the Zebra ZC300 from Kessler, as soon as possible, for 1,890 euros.",
    "The other two were slower, and one of them needed a driver nobody could find.",
    "Ines will pick it up on 14 April; the invoice goes to finance@example.com.",
    "Then we talked about lunch for a while and about the weather, which was fine.",
)
