"""The planner's statistics, made again for an owner of whom they know too little.

Autovacuum analyzes a table when a tenth of it has changed; what one owner of several adds is often
less. Until then the planner takes a new owner for a single row, and reads all rows of one table again
for each row of another.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

from mnemosyned.storage.postgres.database.session import Session

CHECKED_EVERY = 128
"""Memories after which an owner's statistics are looked at."""
TOO_LOW = 10
"""So many times more than the planner believes make it choose wrong plans."""
OWNERS_MAX = 10_000
"""Owners whose growth is remembered."""
_OWN = (
    "SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = 'memory'::regclass"
)
_COUNTS = "SELECT working_count, archive_count FROM owner WHERE owner = %(owner)s"
_BELIEVED = "EXPLAIN (FORMAT JSON) SELECT 1 FROM {table} WHERE owner = %(owner)s"
_ANALYZE = (
    "ANALYZE (SKIP_LOCKED) memory, fresh, working_state, episode, placed, memory_state, "
    "tag, revision"
)
"""A table that is locked is being analyzed or cleaned already."""


@dataclass(slots=True)
class _Grown:
    memories: int = 0
    checked_at: int = CHECKED_EVERY


class Growth:
    """How much owners have grown since they were last looked at; used from any thread."""

    def __init__(self) -> None:
        self._owners: OrderedDict[int, _Grown] = OrderedDict()
        self._changing = threading.Lock()

    def is_due(self, owner: int, memories: int) -> bool:
        """Add to an owner's memories; tell whether the statistics are to be looked at."""
        if not memories:
            return False
        with self._changing:
            grown = self._owners.setdefault(owner, _Grown())
            self._owners.move_to_end(owner)
            if len(self._owners) > OWNERS_MAX:
                self._owners.popitem(last=False)
            grown.memories += memories
            is_due = grown.memories >= grown.checked_at
            if is_due:
                grown.checked_at = grown.memories + CHECKED_EVERY
        return is_due

    def postpone(self, owner: int) -> None:
        """Look at an owner again when it has doubled: a sample may miss it among many."""
        with self._changing:
            grown = self._owners.setdefault(owner, _Grown())
            grown.checked_at = max(grown.checked_at, 2 * grown.memories)


def refresh_statistics(session: Session) -> bool:
    """Analyze the tables if the planner believes an owner to have far less than it has.

    Outside a transaction. Tell whether it did; who does not own the tables leaves them alone.
    """
    counts = session.execute(_COUNTS).fetchone() if session.scalar(_OWN) else None
    if counts is None:
        return False
    is_stale = any(
        count >= CHECKED_EVERY and _believed(session, table) * TOO_LOW < count
        for table, count in zip(("fresh", "placed"), counts, strict=True)
    )
    if is_stale:
        session.execute(_ANALYZE)
    return is_stale


def _believed(session: Session, table: str) -> float:
    """Return how many rows the planner expects of an owner; on a cluster each node knows its own."""
    (plan,) = session.scalar(_BELIEVED.format(table=table))
    node = plan["Plan"]
    return float("inf") if node["Node Type"] == "Custom Scan" else node["Plan Rows"]
