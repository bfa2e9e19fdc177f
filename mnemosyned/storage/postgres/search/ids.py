"""Ids by their beginning, by ranges of the index."""

from __future__ import annotations

from collections.abc import Sequence

from mnemosyned.storage.postgres.database.session import Session
from mnemosyned.storage.postgres.search.filters import Condition

_LAST = "\U0010ffff"
_BEGINNING = (
    "SELECT r.low FROM unnest(%(lows)s::text[], %(highs)s::text[]) "
    "WITH ORDINALITY AS r (low, high, number) WHERE "
    + " OR ".join(
        f"EXISTS (SELECT 1 FROM {table} AS t WHERE t.owner = %(owner)s "
        "AND t.id >= r.low AND t.id < r.high)"
        for table in ("memory", "episode")
    )
    + " ORDER BY r.number"
)


def beginning(session: Session, prefixes: Sequence[str]) -> list[str]:
    """Keep the prefixes with which an id begins."""
    lows = list(prefixes)
    highs = [prefix + _LAST for prefix in prefixes]
    rows = session.execute(_BEGINNING, lows=lows, highs=highs)
    return [prefix for (prefix,) in rows]


def begins(prefixes: Sequence[str], *, table: str = "m") -> Condition:
    """Hold ids that begin with one of these."""
    ranges: list[str] = []
    values: dict[str, object] = {}
    for number, prefix in enumerate(prefixes):
        low, high = f"low_{number}", f"high_{number}"
        ranges.append(f"({table}.id >= %({low})s AND {table}.id < %({high})s)")
        values |= {low: prefix, high: prefix + _LAST}
    return Condition(f"({' OR '.join(ranges)})", values)
