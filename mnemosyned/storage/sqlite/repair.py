"""Faults of a database: pages, references, totals, indexes and orphans; and their repair.

Every check only reads, so that a file in use can be looked at. Checks of an index's inner
structure need a connection of their own: see `structure_faults`.

A repair needs a database that no process has open. No memory is deleted by it. An original whose
summary is missing goes back to working memory, from which the next sleep takes it. Exact values
that an earlier Python or version read wrongly are extracted again from the originals.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Literal

from mnemosyned.memory.forgetting import content_hash
from mnemosyned.memory.masking import mask_memories
from mnemosyned.memory.values import MemoryRecord, Tier
from mnemosyned.storage.common.state import invalidate
from mnemosyned.storage.sqlite import fulltext, schema
from mnemosyned.storage.sqlite.session import SqliteSession
from mnemosyned.text.exact_values import extract_details

TABLE_INDEXES = "indexes of tables"
"""Subject of a fault in the index of any table."""
_STORED_HASHES = {
    "working_memory": "content_hash",
    "archive": "content_hash",
    "episodic_memory": "NULL",
}
"""The column with the hash of the content, by table."""


class FaultKind(StrEnum):
    """Kinds of faults, by their repair."""

    INTEGRITY = "integrity"
    """Damaged pages: a backup mends it."""
    FOREIGN_KEY = "foreign_key"
    TOTALS = "totals"
    INDEX = "index"
    """Entries of an index: rebuilding mends it."""
    SCHEMA = "schema"
    """Missing tables, indexes and triggers: making them again mends it."""
    ORPHAN = "orphan"
    """Rows that belong to nothing: deleting mends it."""
    TEXT = "text"
    """Texts that something other than an edit changed: a backup mends it."""


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
    column: str = ""
    """The column of the condition that tables of earlier versions lack, if there is one."""


_ORIGINALS = "(SELECT seq FROM working_memory UNION ALL SELECT seq FROM archive)"
_IDS = "(SELECT id FROM working_memory UNION ALL SELECT id FROM archive)"
ORPHANS = (
    Orphans("exact values", "detail", "memory_seq NOT IN (SELECT seq FROM archive)"),
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
    Orphans(
        "endings by an agreement",
        "ending",
        f"agreed_id != '' AND agreed_id NOT IN {_IDS}",
        column="agreed_id",
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
"""The condition for a summary `e` that names a wrong number of originals."""


def find_faults(connection: sqlite3.Connection) -> list[StorageFault]:
    """Return the faults of a database that checks find without writing.

    Damage in pages, or an error of SQLite while it reads, is returned alone.
    """
    problems = find_damage(connection)
    if any(fault.subject not in fulltext.INDEXES for fault in problems):
        return problems  # the rest reads rows by the indexes of their tables
    try:
        problems += _row_faults(connection)
    except sqlite3.DatabaseError as error:
        return [StorageFault(FaultKind.INTEGRITY, "file", str(error))]
    return problems


def schema_faults(
    connection: sqlite3.Connection, migrations: Path
) -> list[StorageFault]:
    """Return a fault for each missing part of the schema; none for a database of another version."""
    if schema.schema_version(connection) != schema.latest_version(migrations):
        return []
    with closing(schema.blank_database(migrations)) as blank:
        missing = schema.missing_parts(connection, blank)
    return [
        StorageFault(
            FaultKind.INTEGRITY if name in _HOLDING else FaultKind.SCHEMA,
            name,
            f"the {kind} {name} is missing",
        )
        for kind, name, _ in missing
    ]


def find_damage(connection: sqlite3.Connection) -> list[StorageFault]:
    """Return the damage that SQLite finds in pages and indexes."""
    found, others = [], []
    for text in _check_pages(connection, "integrity"):
        # From 3.44 on SQLite checks full-text indexes too.
        index = next(
            (index for index in fulltext.INDEXES if f"main.{index}" in text), None
        )
        if index:
            words = f"the full-text index {index}: {text}"
            found.append(StorageFault(FaultKind.INDEX, index, words))
        else:
            others.append(text)
    # If two rows have one id, an index cannot be built again.
    is_table_damaged = any("non-unique" in text for text in others)
    # The quick check leaves out the indexes of tables.
    if others and not is_table_damaged and not _check_pages(connection, "quick"):
        words = f"the index of a table does not match its rows: {others[0]}"
        return [*found, StorageFault(FaultKind.INDEX, TABLE_INDEXES, words)]
    return found + [StorageFault(FaultKind.INTEGRITY, "file", text) for text in others]


def _check_pages(
    connection: sqlite3.Connection, check: Literal["integrity", "quick"]
) -> list[str]:
    """Return what a check of SQLite finds, or its error as the only finding."""
    try:
        rows = connection.execute(f"PRAGMA {check}_check(20)").fetchall()
    except sqlite3.DatabaseError as error:
        return [str(error)]
    return [text for (text,) in rows if text != "ok"]


def count_contents(connection: sqlite3.Connection) -> tuple[int, int]:
    """Return the number of memories and the number of summaries in a database."""
    working, archived, episodes = (
        _count_rows(connection, f"SELECT count(*) FROM {table}")
        for table in ("working_memory", "archive", "episodic_memory")
    )
    return working + archived, episodes


def structure_faults(connection: sqlite3.Connection) -> list[StorageFault]:
    """Return one fault for all texts changed without an edit, and one per wrong full-text index.

    FTS5's own check is an INSERT that writes nothing, so the connection must be able to write: use a copy.
    """
    present = schema.table_names(connection)
    faults = []
    if changed := list(_changed_texts(connection)):
        ids = ", ".join(changed[:5])
        text = (
            f"texts that are not as they were stored: {len(changed):,} ({ids}); "
            "without a backup, mnem edit corrects one"
        )
        faults.append(StorageFault(FaultKind.TEXT, "texts", text))
    return faults + [
        StorageFault(
            FaultKind.INDEX,
            index,
            f"the full-text index {index} does not match the texts",
        )
        for index in fulltext.INDEXES
        if index in present and not fulltext.is_intact(connection, index)
    ]


def _changed_texts(connection: sqlite3.Connection) -> Iterator[str]:
    """Yield the ids of memories and summaries whose text is not UTF-8 or does not match its hash."""
    # As bytes, because a text that is not UTF-8 could not be read otherwise.
    for id, content, stored in connection.execute(
        " UNION ALL ".join(
            f"SELECT CAST(id AS BLOB), CAST(content AS BLOB), {stored} FROM {table}"
            for table, stored in _STORED_HASHES.items()
        )
    ):
        text = content.decode(errors="replace")
        is_pruned = not content
        is_hash_right = stored is None or content_hash(text) == stored or is_pruned
        if not is_hash_right or text.encode() != content:
            yield id.decode(errors="replace")


def _row_faults(connection: sqlite3.Connection) -> Iterator[StorageFault]:
    """Yield a fault for each missing index, broken reference, wrong count and group of orphaned rows."""
    present = schema.table_names(connection)
    broken = Counter(
        table for table, *_ in connection.execute("PRAGMA foreign_key_check")
    )
    for table, count in broken.items():
        text = (
            f"rows of {table} that refer to a summary which does not exist: {count:,}"
        )
        yield StorageFault(FaultKind.FOREIGN_KEY, table, text)
    if "tier_totals" in present:
        stored = dict(connection.execute("SELECT tier, count FROM tier_totals"))
        for tier, table in TIER_TABLES.items():
            count = _count_rows(connection, f"SELECT count(*) FROM {table}")
            if stored.get(tier) != count:
                text = f"the {tier} tier holds {count:,}, but {stored.get(tier)} are counted"
                yield StorageFault(FaultKind.TOTALS, tier, text)
    else:
        text = "its tables are missing"
        yield StorageFault(FaultKind.INTEGRITY, "tier_totals", text)
    for index in fulltext.INDEXES:
        if index not in present:
            text = f"the full-text index {index} is missing"
            yield StorageFault(FaultKind.INTEGRITY, index, text)
    for kind, subject, rows, text in _row_checks(connection, present):
        if count := _count_rows(connection, f"SELECT count(*) FROM ({rows})"):
            yield StorageFault(kind, subject, text.format(count))


def _find_orphan_checks(connection: sqlite3.Connection) -> Iterator[Orphans]:
    """Yield the entries of `ORPHANS` whose table and column a database has."""
    columns = "SELECT count(*) FROM pragma_table_info(?) WHERE ? IN ('', name)"
    for orphans in ORPHANS:
        found = connection.execute(columns, (orphans.table, orphans.column))
        if found.fetchone()[0]:
            yield orphans


def _row_checks(
    connection: sqlite3.Connection, present: set[str]
) -> Iterator[tuple[FaultKind, str, str, str]]:
    """Yield checks for wrong rows: (kind of fault, subject, SQL that finds the rows, text).

    The text has `{}` for the number of rows. Tables not in `present` are not checked.
    """
    if {"tier_totals", "emptied_episode"} <= present:
        rows = f"SELECT 1 FROM episodic_memory AS e WHERE {MISCOUNTED}"
        text = "summaries that name a wrong number of originals: {:,}"
        yield FaultKind.TOTALS, "episodic_memory", rows, text
    if "tier_totals" in present:
        rows = "SELECT 1 FROM archive WHERE id IN (SELECT id FROM working_memory)"
        text = "{:,} memories are in working memory and in the archive"
        yield FaultKind.INTEGRITY, "archive", rows, text
    for index, texts in fulltext.INDEXED_ROWS.items():
        if index not in present:
            continue
        indexed = f"SELECT id FROM {index}_docsize"
        comparisons = {"entries without a text": f"{indexed} EXCEPT {texts}"}
        if index not in fulltext.TEXTS:  # which has every row of its table
            comparisons["texts without an entry"] = f"{texts} EXCEPT {indexed}"
        for words, rows in comparisons.items():
            text = f"the full-text index {index} has {words}: {{:,}}"
            yield FaultKind.INDEX, index, rows, text
    for orphans in _find_orphan_checks(connection):
        rows = f"SELECT 1 FROM {orphans.table} WHERE {orphans.where}"
        text = f"rows that belong to nothing: {{:,}} ({orphans.words})"
        yield FaultKind.ORPHAN, orphans.table, rows, text


def _count_rows(connection: sqlite3.Connection, statement: str) -> int:
    (number,) = connection.execute(statement).fetchone()
    return int(number)


EPISODES_AT_ONCE = 100
"""Episodes whose values one transaction extracts again: some 2,000 originals."""
_LOST = (
    "SELECT seq FROM archive WHERE episode_seq NOT IN (SELECT seq FROM episodic_memory)"
)
_TOTALS = """
UPDATE tier_totals SET (count, characters) = (
    SELECT count(*), ifnull(sum(length(content)), 0) FROM {table}
) WHERE tier = '{tier}' AND count != (SELECT count(*) FROM {table})
"""


def repair_database(database: Path, migrations: Path) -> Iterator[str]:
    """Repair all repairable faults of a database; yield one line of text for each repair."""
    with closing(_open_database(database)) as connection:
        yield from _recreate_missing(connection, migrations)
        if any(each.subject == TABLE_INDEXES for each in find_damage(connection)):
            connection.execute("REINDEX")
            yield "rebuilt the indexes of the tables"
        yield from _replace_unreadable(connection)
        yield from _return_orphans(connection)
        # The next cycle rolls them up again.
        unlinked = connection.execute(
            "UPDATE episodic_memory SET parent_id = NULL "
            "WHERE parent_id NOT IN (SELECT id FROM episodic_memory)"
        ).rowcount
        if unlinked:
            yield f"took {unlinked:,} summaries out from under one that does not exist"
        for orphans in _find_orphan_checks(connection):
            statement, action = f"DELETE FROM {orphans.table}", "removed"
            if orphans.emptied:
                statement = f"UPDATE {orphans.table} SET {orphans.emptied} = NULL"
                action = "mended"
            changed = connection.execute(f"{statement} WHERE {orphans.where}").rowcount
            if changed:
                yield f"{action} {changed:,} {orphans.words}"
        miscounted = sum(
            connection.execute(
                f"UPDATE episodic_memory AS e SET item_count = {ORIGINALS} "
                f"WHERE level = ? AND {MISCOUNTED}",
                (level,),
            ).rowcount
            for level in range(4)  # upward, as each level counts the one below
        )
        if miscounted:
            yield f"counted the originals of {miscounted:,} summaries again"
        for tier, table in TIER_TABLES.items():
            if connection.execute(_TOTALS.format(table=table, tier=tier)).rowcount:
                yield f"counted the {tier} tier again"
    for index in fulltext.rebuild_indexes(database):
        yield f"rebuilt the full-text index {index} from the texts"


def _open_database(database: Path) -> SqliteSession:
    """Return a connection for repairs, with secure delete and full durability."""
    connection = sqlite3.connect(database, isolation_level=None, factory=SqliteSession)
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def _recreate_missing(
    connection: sqlite3.Connection, migrations: Path
) -> Iterator[str]:
    """Create missing parts of the schema, tables with their initial rows; yield a line of text per part."""
    with closing(schema.blank_database(migrations)) as blank:
        connection.execute("BEGIN IMMEDIATE")
        missing = schema.missing_parts(connection, blank)
        for kind, name, sql in missing:
            connection.execute(sql)
            if kind == "table" and not sql.startswith("CREATE VIRTUAL"):
                # Loaded here, as it loads numpy.
                from sqlite_utils import Database  # noqa: PLC0415

                rows = Database(blank, execute_plugins=False).table(name).rows
                Database(connection, execute_plugins=False).table(name).insert_all(rows)
        connection.execute("COMMIT")
    for kind, name, _ in missing:
        yield f"made the {kind} {name} again"


def count_lacking_values(connection: sqlite3.Connection, *, limit: int) -> int:
    """Return how many of the newest `limit` originals contain an exact value that is not stored."""
    if "detail_kind" not in schema.table_names(connection):
        return 0
    newest = connection.execute(
        "SELECT seq, content FROM archive WHERE content != '' ORDER BY seq DESC LIMIT ?",
        (limit,),
    )
    return sum(
        any(
            (detail.kind, detail.value) not in values
            for detail in extract_details(content)
        )
        for values, content in (
            (_stored_values(connection, seq), content) for seq, content in newest
        )
    )


def _stored_values(
    connection: sqlite3.Connection, seq: int
) -> dict[tuple[str, str], bool]:
    """Return {(kind, value): is a secret} of the exact values of an original."""
    rows = connection.execute(
        "SELECT k.name, d.value, d.sensitive FROM detail AS d "
        "JOIN detail_kind AS k ON k.number = d.kind WHERE d.memory_seq = ?",
        (seq,),
    )
    return {(kind, value): bool(sensitive) for kind, value, sensitive in rows}


def extract_values_again(database: Path) -> Iterator[str]:
    """Extract the exact values of all originals again; yield lines of text about the progress.

    A summary with a newly found secret is emptied, to be rewritten with the secret masked, unless
    it has pruned originals.
    """
    done = changed = emptied = last = 0
    with closing(_open_database(database)) as connection:
        while episodes := connection.execute(
            "SELECT seq FROM episodic_memory WHERE level = 0 AND seq > ? ORDER BY seq LIMIT ?",
            (last, EPISODES_AT_ONCE),
        ).fetchall():
            connection.execute("BEGIN IMMEDIATE")
            unmasked = []
            for (episode,) in episodes:
                count, has_new_secret = _extract_episode_again(connection, episode)
                changed += count
                if has_new_secret and not connection.has_pruned(episode):
                    unmasked.append(episode)
            invalidate(connection, unmasked)
            connection.execute("COMMIT")
            emptied += len(unmasked)
            done += len(episodes)
            ((last,),) = episodes[-1:]
            if done % 10_000 == 0:
                yield f"read the originals of {done:,} summaries so far"
    yield f"extracted the exact values of {changed:,} originals again"
    if emptied:
        yield f"emptied {emptied:,} summaries, which the next sleep rewrites with secrets masked"


def _extract_episode_again(connection: SqliteSession, episode: int) -> tuple[int, bool]:
    """Store newly extracted exact values of an episode; return (originals changed, whether a secret is new)."""
    originals = connection.execute(
        "SELECT seq, id, content FROM archive WHERE episode_seq = ? AND content != ''",
        (episode,),
    ).fetchall()
    moment = datetime.now(UTC)  # which plays no part in it
    memories = [
        MemoryRecord(id=id, content=content, created_at=moment)
        for _, id, content in originals
    ]
    _, details = mask_memories(memories)
    changed, has_new_secret = 0, False
    for seq, id, _ in originals:
        old = _stored_values(connection, seq)
        new = {
            (str(each.kind), each.value): each.sensitive
            for each in details
            if each.memory == id
        }
        # What another memory shows to be secret stays so; a cut value goes.
        wanted = new | {pair: True for pair in old if old[pair]}
        if wanted == old or new.keys() <= old.keys():
            continue
        changed += 1
        has_new_secret |= any(wanted[pair] and not old.get(pair) for pair in wanted)
        connection.execute("DELETE FROM detail WHERE memory_seq = ?", (seq,))
        connection.insert_details(
            [(seq, *pair, is_secret) for pair, is_secret in wanted.items()]
        )
    return changed, has_new_secret


def _replace_unreadable(connection: sqlite3.Connection) -> Iterator[str]:
    """Replace bytes of texts that are not UTF-8; yield a line of text if there were any."""
    count = 0
    for table in _STORED_HASHES:
        rows = connection.execute(f"SELECT seq, CAST(content AS BLOB) FROM {table}")
        wrong = [
            (text, seq)
            for seq, content in rows
            if (text := content.decode(errors="replace")).encode() != content
        ]
        connection.executemany(f"UPDATE {table} SET content = ? WHERE seq = ?", wrong)
        count += len(wrong)
    if count:
        yield f"replaced bytes that are not UTF-8 in {count:,} texts"


def _return_orphans(connection: sqlite3.Connection) -> Iterator[str]:
    """Move originals without an episode to working memory; yield a line of text if any moved."""
    columns = [
        name for _, name, *_ in connection.execute("PRAGMA table_info(working_memory)")
    ]
    names = ", ".join(columns)
    connection.execute("BEGIN IMMEDIATE")
    moved = connection.execute(
        f"INSERT INTO working_memory ({names}) SELECT {names} FROM archive "
        f"WHERE seq IN ({_LOST}) AND content != ''"
    ).rowcount
    connection.execute(
        f"DELETE FROM archive WHERE seq IN ({_LOST}) AND seq IN (SELECT seq FROM working_memory)"
    )
    connection.execute("COMMIT")
    if moved:
        yield f"brought {moved:,} originals without a summary back to working memory"
