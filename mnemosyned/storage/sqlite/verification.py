"""Checks whether a database is whole: pages, references, totals, indexes and orphans.

Every check only reads, so that a file in use can be looked at. Checks of an index's inner
structure need a connection of their own: see `index_faults`.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from mnemosyned.memory.values import Tier
from mnemosyned.storage.sqlite.fulltext import INDEXED_ROWS, INDEXES, TEXTS, is_intact
from mnemosyned.storage.sqlite.schema import (
    blank_database,
    latest_version,
    missing_parts,
    schema_version,
    table_names,
)

PROBLEMS_MAX = 20


class FaultKind(StrEnum):
    """Kinds of faults, by their repair."""

    INTEGRITY = "integrity"
    """Damaged pages: a backup mends it."""
    FOREIGN_KEY = "foreign_key"
    TOTALS = "totals"
    INDEX = "index"
    """Full-text entries: rebuilding mends it."""
    SCHEMA = "schema"
    """Missing tables, indexes and triggers: making them again mends it."""
    ORPHAN = "orphan"
    """Rows that belong to nothing: deleting mends it."""


@dataclass(frozen=True, slots=True)
class StorageFault:
    """One fault of a database."""

    kind: FaultKind
    subject: str
    """A table or an index, or SQLite's own words."""
    text: str
    """What is wrong, in words."""


@dataclass(frozen=True, slots=True)
class Orphans:
    """Rows of a table that belong to something which does not exist."""

    words: str
    table: str
    where: str
    """The condition that such rows meet."""
    emptied: str = ""
    """The column that is emptied in such rows; without one, they are deleted."""


_ORIGINALS = "(SELECT seq FROM working_memory UNION ALL SELECT seq FROM archive)"
_IDS = "(SELECT id FROM working_memory UNION ALL SELECT id FROM archive)"
ORPHANS = (
    Orphans("exact details", "detail", "memory_seq NOT IN (SELECT seq FROM archive)"),
    Orphans("states of memories", "memory_state", f"memory_seq NOT IN {_ORIGINALS}"),
    Orphans(
        "states of working memories",
        "working_state",
        "memory_seq NOT IN (SELECT seq FROM working_memory)",
    ),
    Orphans(
        "memories superseded by nothing",
        "memory_state",
        f"superseded_by NOT IN {_ORIGINALS}",
        emptied="superseded_by",
    ),
    Orphans(
        "learnings superseded by nothing",
        "learning",
        "superseded_by NOT IN (SELECT id FROM learning)",
        emptied="superseded_by",
    ),
    Orphans(
        "learnings of a memory that does not exist",
        "learning",
        f"memory_id NOT IN {_IDS}",
        emptied="memory_id",
    ),
    Orphans("vectors", "embedding", f"memory_seq NOT IN {_ORIGINALS}"),
    Orphans(
        "summaries to be rewritten",
        "emptied_episode",
        "episode_seq NOT IN (SELECT seq FROM episodic_memory)",
    ),
    Orphans("earlier words", "revision", f"memory_seq NOT IN {_ORIGINALS}"),
    Orphans(
        "endings",
        "ending",
        f"older_id NOT IN {_IDS} OR newer_id NOT IN {_IDS}",
    ),
    Orphans("tags", "tag", f"memory_seq NOT IN {_ORIGINALS}"),
)
TIER_TABLES = {
    Tier.WORKING: "working_memory",
    Tier.EPISODIC: "episodic_memory",
    Tier.ARCHIVE: "archive",
}
_HOLDING = frozenset(TIER_TABLES.values())
"""Tables without which the memories are lost: an empty one in their place would hide that."""
ORIGINALS = """iif(level = 0,
    (SELECT count(*) FROM archive WHERE episode_seq = e.seq),
    (SELECT sum(item_count) FROM episodic_memory WHERE parent_id = e.id))"""
"""The number of originals of a summary `e`."""
MISCOUNTED = f"""item_count != {ORIGINALS} AND {ORIGINALS} > 0
    AND NOT stale AND seq NOT IN (SELECT episode_seq FROM emptied_episode)"""
"""The condition for a summary `e` that names another number of originals than it has."""
_BOTH_HOMES = "SELECT count(*) FROM archive WHERE id IN (SELECT id FROM working_memory)"


def find_faults(
    connection: sqlite3.Connection, *, orphans: bool = True
) -> list[StorageFault]:
    """Return the faults of a database that can be found by reading it.

    If SQLite cannot read the file any further, its error is the only fault. With `orphans` false,
    rows whose record does not exist are not searched for.
    """
    try:
        problems = find_damage(connection)
        if any(fault.kind is FaultKind.INTEGRITY for fault in problems):
            return problems
        present = table_names(connection)
        broken = Counter(
            table for table, *_ in connection.execute("PRAGMA foreign_key_check")
        )
        problems += [
            StorageFault(
                FaultKind.FOREIGN_KEY,
                table,
                f"rows of {table} that refer to a summary which does not exist: {count:,}",
            )
            for table, count in broken.items()
        ]
        problems += _total_faults(connection, present)
        problems += _index_faults(connection, present)
        if orphans:
            problems += orphan_faults(connection, present)
    except sqlite3.DatabaseError as error:
        return [StorageFault(FaultKind.INTEGRITY, "file", str(error))]
    return problems


def schema_faults(
    connection: sqlite3.Connection, migrations: Path
) -> list[StorageFault]:
    """Return a fault for each part that a database of the latest schema version lacks."""
    if schema_version(connection) != latest_version(migrations):
        return []
    with closing(blank_database(migrations)) as blank:
        missing = missing_parts(connection, blank)
    return [
        StorageFault(
            FaultKind.INTEGRITY if name in _HOLDING else FaultKind.SCHEMA,
            name,
            f"the {kind} {name} is missing",
        )
        for kind, name, _ in missing
    ]


def find_damage(connection: sqlite3.Connection) -> list[StorageFault]:
    """Return the damaged pages that SQLite finds. Raises `sqlite3.DatabaseError` if it cannot look."""
    rows = connection.execute(f"PRAGMA integrity_check({PROBLEMS_MAX})")
    found = []
    for (text,) in rows:
        if text == "ok":
            continue
        # From 3.44 on SQLite checks full-text indexes too.
        index = next((index for index in INDEXES if f"main.{index}" in text), None)
        if index:
            words = f"the full-text index {index}: {text}"
            found.append(StorageFault(FaultKind.INDEX, index, words))
        else:
            found.append(StorageFault(FaultKind.INTEGRITY, "file", text))
    return found


def count_contents(connection: sqlite3.Connection) -> tuple[int, int]:
    """Return the number of memories and the number of summaries in a database."""
    working, archived, episodes = (
        _count_rows(connection, f"SELECT count(*) FROM {table}")
        for table in ("working_memory", "archive", "episodic_memory")
    )
    return working + archived, episodes


def orphan_faults(
    connection: sqlite3.Connection, present: set[str]
) -> list[StorageFault]:
    """Return a fault for each table in `present` with rows whose record does not exist."""
    problems = []
    for orphans in ORPHANS:
        if orphans.table not in present:
            continue
        rows = f"SELECT count(*) FROM {orphans.table} WHERE {orphans.where}"
        if count := _count_rows(connection, rows):
            text = f"rows that belong to nothing: {count:,} ({orphans.words})"
            problems.append(StorageFault(FaultKind.ORPHAN, orphans.table, text))
    return problems


def structure_faults(connection: sqlite3.Connection) -> list[StorageFault]:
    """Return a fault for each full-text index that disagrees with its texts, by FTS5's own check.

    The check is an INSERT that writes nothing, so the connection must be able to write: use a copy.
    """
    present = table_names(connection)
    return [
        StorageFault(
            FaultKind.INDEX,
            index,
            f"the full-text index {index} does not match the texts",
        )
        for index in INDEXES
        if index in present and not is_intact(connection, index)
    ]


def _total_faults(
    connection: sqlite3.Connection, present: set[str]
) -> list[StorageFault]:
    """Return a fault for each wrong count of a tier or summaries, and for memories in two tiers."""
    if "tier_totals" not in present:
        return [
            StorageFault(FaultKind.INTEGRITY, "tier_totals", "its tables are missing")
        ]
    problems = []
    stored = dict(connection.execute("SELECT tier, count FROM tier_totals"))
    for tier, table in TIER_TABLES.items():
        count = _count_rows(connection, f"SELECT count(*) FROM {table}")
        if stored.get(tier) != count:
            text = (
                f"the {tier} tier holds {count:,}, but {stored.get(tier)} are counted"
            )
            problems.append(StorageFault(FaultKind.TOTALS, tier, text))
    if "emptied_episode" in present:
        wrong = f"SELECT count(*) FROM episodic_memory AS e WHERE {MISCOUNTED}"
        if count := _count_rows(connection, wrong):
            text = f"summaries that name another number of originals than they have: {count:,}"
            problems.append(StorageFault(FaultKind.TOTALS, "episodic_memory", text))
    if count := _count_rows(connection, _BOTH_HOMES):
        text = f"{count:,} memories are in working memory and in the archive"
        problems.append(StorageFault(FaultKind.INTEGRITY, "archive", text))
    return problems


def _index_faults(
    connection: sqlite3.Connection, present: set[str]
) -> list[StorageFault]:
    """Return a fault for each full-text index that is missing or has other rows than the texts."""
    problems = []
    for index, texts in INDEXED_ROWS.items():
        if index not in present:
            text = f"the full-text index {index} is missing"
            problems.append(StorageFault(FaultKind.INTEGRITY, index, text))
            continue
        indexed = f"SELECT id FROM {index}_docsize"
        comparisons = {"entries without a text": f"{indexed} EXCEPT {texts}"}
        if index not in TEXTS:  # which has every row of its table
            comparisons["texts without an entry"] = f"{texts} EXCEPT {indexed}"
        for words, rows in comparisons.items():
            if count := _count_rows(connection, f"SELECT count(*) FROM ({rows})"):
                text = f"the full-text index {index} has {words}: {count:,}"
                problems.append(StorageFault(FaultKind.INDEX, index, text))
    return problems


def _count_rows(connection: sqlite3.Connection, statement: str) -> int:
    """Return the number that a `SELECT count(*)` statement yields."""
    (number,) = connection.execute(statement).fetchone()
    return int(number)
