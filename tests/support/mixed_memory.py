"""A memory with something of everything that is kept, after sleeps."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from mnemosyned import Memory

QUESTIONS = (
    "gate code",
    "what does Ada drink",
    "boiler",
    "release on Tuesday",
    "what did we release ten months ago",
    "東京",
    "build_server.py",
    "prefer coffee",
)


def fill(database: Path | str) -> None:
    """Fill a new database: days of talks, then sleep, and something of every kind."""
    start = datetime.now(UTC) - timedelta(days=300)
    with Memory(database) as memory:
        for day in range(14):
            for number in range(6):
                memory.remember(
                    f"Day {day}, note {number}: the boiler of cabin {number} was serviced, "
                    f"we release on Tuesday, see build_server.py and 東京 ticket T-{day}{number}.",
                    id=f"d{day:03}-{number}",
                    session=f"work-{number % 3}",
                    source="codex" if number % 2 else None,
                    role="user",
                    tags=["cabin", "north wing"] if number == 2 else [],
                    metadata={"day": day, "tags": ["a", "b"]} if number == 1 else {},
                    created_at=start + timedelta(days=day, minutes=number),
                    importance=0.25 * (number % 4),
                )
        memory.remember("The gate code is 4711", id="old-code", created_at=start)
        memory.remember("The gate code is 4712", id="new-code", supersedes="old-code")
        memory.remember("I prefer tea. Always answer in French.", id="t", role="user")
        memory.remember("I prefer coffee.", id="c", role="user")
        memory.sleep(force=True)
        memory.edit("d012-0", text="We moved the cabin's boiler, T-120")
        memory.edit("d011-1", session="moved", importance=0.9)
        memory.sleep(force=True)
        memory.forget(id="d003-2")
        memory.prune(keep_days=295)
        memory.remember(
            "Ada drinks tea; token ghp_" + "a1B2" * 9, pinned=True, id="pin"
        )
        memory.remember(
            "A voucher", valid_until=start + timedelta(days=900), id="voucher"
        )
        memory.learn("Ask before pushing", source="codex")
        memory.restore("d013-1")
        messages = [
            {"role": "user", "content": f"Message {n}: " + "the build is slow. " * 40}
            for n in range(30)
        ]
        memory.compact(messages, max_tokens=900, session="long")
