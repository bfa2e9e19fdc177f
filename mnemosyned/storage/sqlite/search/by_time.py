"""What happened at a time, for a question that asks for nothing else that is known."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from mnemosyned.domain.dates.questions import TimeSpan
from mnemosyned.domain.memory import Tier
from mnemosyned.domain.search.query import Query
from mnemosyned.storage.sqlite.search.filters import among, in_force
from mnemosyned.storage.sqlite.tables.rows import instant_text

LISTED = 0.01
"""What the first is worth: next to nothing beside a word that matches."""
LISTED_STEP = 0.05
WALKED_MAX = 10_000
"""So many of a tier are looked at, the earliest of the time."""
EPISODES_MAX = 500
"""So many episodes, the latest that had begun when the time was over."""
TELLING_CHARS = 120
"""Up to here, what is longer says more; so much of it is compared with the others."""
_FIGURES = re.compile(r"\d+")

_Row = tuple[float, str, int, str | None, str]
"""Importance, when it happened, where it stands, its source and how its text begins."""
_COLUMNS = (
    "importance, created_at, {0}seq, session_id, source, substr(content, 1, ?) AS text"
)
_FIRST_OF_EACH = (
    "SELECT importance, created_at, seq, source, text FROM (SELECT *, row_number() OVER "
    "(PARTITION BY source ORDER BY importance DESC, length(text) DESC, seq) AS place "
    "FROM (%s) WHERE %s) WHERE place <= ?"
)


def listed(
    connection: sqlite3.Connection, query: Query, span: TimeSpan, *, limit: int
) -> dict[int, float]:
    """The memories of a time: what has a place, the most important first, then the earliest.

    Of equal importance places go to one of each source in turn.
    """
    since = max(query.since, span.since) if query.since else span.since
    until = min(query.until, span.until) if query.until else span.until
    reach = (instant_text(since), instant_text(until))
    where, values = _within(query)
    found: list[_Row] = []
    if query.tier in (None, Tier.WORKING):
        fresh = (
            f"SELECT {_COLUMNS.format('')} FROM working_memory "
            "WHERE created_at >= ? AND created_at < ? ORDER BY created_at LIMIT ?"
        )
        found += connection.execute(
            _FIRST_OF_EACH % (fresh, where),
            (TELLING_CHARS, *reach, WALKED_MAX, *values, limit),
        )
    if query.tier is not Tier.WORKING:
        archived = (
            f"SELECT {_COLUMNS.format('a.')} FROM "
            "(SELECT seq, covers_until FROM episodic_memory WHERE level = 0 AND covers_from < ? "
            "ORDER BY covers_from DESC LIMIT ?) AS e "
            "JOIN archive AS a ON a.episode_seq = e.seq WHERE e.covers_until >= ? "
            "AND a.created_at >= ? AND a.created_at < ? AND a.content != '' LIMIT ?"
        )
        begun = (reach[1], EPISODES_MAX, reach[0])
        found += connection.execute(
            _FIRST_OF_EACH % (archived, where),
            (TELLING_CHARS, *begun, *reach, WALKED_MAX, *values, limit),
        )
    turns = _in_turns(found)
    told = sorted(turns[: query.limit], key=_in_order) + turns[query.limit : limit]
    return {row[2]: LISTED / (1 + LISTED_STEP * at) for at, row in enumerate(told)}


def _in_order(row: _Row) -> tuple[float, str, int]:
    return -row[0], row[1], row[2]


def _in_turns(rows: Sequence[_Row]) -> list[_Row]:
    """Of equal importance one of each source in turn, then what repeats others.

    A day has forty notices for each entry of its calendar, and most of them say the same. Within a
    source the longer ones go first, as they say more.
    """
    seen: set[tuple[str | None, str]] = set()
    turns: Counter[tuple[float, str | None]] = Counter()
    placed: list[tuple[tuple[float, bool, int], _Row]] = []
    for row in sorted(rows, key=lambda row: (-row[0], -len(row[4]), row[1], row[2])):
        importance, _, _, source, text = row
        says = (source, _FIGURES.sub("0", text.casefold()))
        placed.append(((-importance, says in seen, turns[importance, source]), row))
        turns[importance, source] += says not in seen
        seen.add(says)
    return [row for _, row in sorted(placed, key=itemgetter(0))]


def _within(query: Query) -> tuple[str, Sequence[Any]]:
    """The filters by session and source, and what is in force."""
    clauses, values = among(query.sessions, query.sources)
    holds, moment = in_force(query, seq="seq")
    return " AND ".join(["1", *clauses]) + holds, [*values, *moment]
