"""Repairs a database that no process has open: missing tables, indexes, counts and orphaned rows.

No memory is deleted by it. An original whose summary is missing goes back to working memory, from
which the next sleep takes it. Exact values that an earlier Python or version read wrongly are
extracted again from the originals.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from mnemosyned.memory.masking import mask_memories
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.storage.common.episodes import invalidate
from mnemosyned.storage.sqlite.fulltext import rebuild_indexes
from mnemosyned.storage.sqlite.memories import insert_details
from mnemosyned.storage.sqlite.schema import blank_database, missing_parts, table_names
from mnemosyned.storage.sqlite.session import SqliteSession
from mnemosyned.storage.sqlite.verification import (
    MISCOUNTED,
    ORIGINALS,
    ORPHANS,
    TIER_TABLES,
)
from mnemosyned.text.details import Detail, DetailKind
from mnemosyned.text.exact_values import extract_details

EPISODES_AT_ONCE = 100
"""Episodes whose values one transaction extracts again: some 2,000 originals."""
PROGRESS_EPISODES = 10_000
_LOST = (
    "SELECT seq FROM archive WHERE episode_seq NOT IN (SELECT seq FROM episodic_memory)"
)
_TOTALS = """
UPDATE tier_totals SET (count, characters) = (
    SELECT count(*), ifnull(sum(length(content)), 0) FROM {table}
) WHERE tier = '{tier}' AND count != (SELECT count(*) FROM {table})
"""


def repair_database(database: Path, migrations: Path) -> Iterator[str]:
    """Repair all faults of a database; yield one line of text for each repair."""
    with closing(_open_database(database)) as connection:
        yield from _recreate_missing(connection, migrations)
        present = table_names(connection)
        yield from _return_orphans(connection)
        # The next cycle rolls them up again.
        unlinked = connection.execute(
            "UPDATE episodic_memory SET parent_id = NULL "
            "WHERE parent_id NOT IN (SELECT id FROM episodic_memory)"
        ).rowcount
        if unlinked:
            yield f"took {unlinked:,} summaries out from under one that does not exist"
        for orphans in ORPHANS:
            if orphans.table not in present:
                continue
            statement, action = f"DELETE FROM {orphans.table}", "removed"
            if orphans.emptied:
                statement = f"UPDATE {orphans.table} SET {orphans.emptied} = NULL"
                action = "mended"
            changed = connection.execute(f"{statement} WHERE {orphans.where}").rowcount
            if changed:
                yield f"{action} {changed:,} {orphans.words}"
        yield from _recount_totals(connection)
    for index in rebuild_indexes(database):
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
    """Create missing parts of the schema, tables with their first rows; yield a line for each."""
    with closing(blank_database(migrations)) as blank:
        connection.execute("BEGIN IMMEDIATE")
        missing = missing_parts(connection, blank)
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


def lacking_values(connection: sqlite3.Connection, *, limit: int) -> int:
    """Count the originals among the newest `limit` that lack an exact value in their rows."""
    if "detail_kind" not in table_names(connection):
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
    """Return an original's exact values by kind and value; each is True if it is a secret."""
    rows = connection.execute(
        "SELECT k.name, d.value, d.sensitive FROM detail AS d "
        "JOIN detail_kind AS k ON k.number = d.kind WHERE d.memory_seq = ?",
        (seq,),
    )
    return {(kind, value): bool(sensitive) for kind, value, sensitive in rows}


def extract_again(database: Path) -> Iterator[str]:
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
            if done % PROGRESS_EPISODES == 0:
                yield f"read the originals of {done:,} summaries so far"
    yield f"extracted the exact values of {changed:,} originals again"
    if emptied:
        yield f"emptied {emptied:,} summaries, which the next sleep rewrites with secrets masked"


def _extract_episode_again(connection: SqliteSession, episode: int) -> tuple[int, bool]:
    """Extract an episode's exact values again; return how many originals changed, and of a new secret."""
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
            (detail.kind, detail.value): detail
            for detail in details
            if detail.memory == id
        }
        # What another memory shows to be secret stays so; a cut value goes.
        wanted = {pair: True for pair, sensitive in old.items() if sensitive}
        wanted |= {
            pair: detail.sensitive or old.get(pair, False)
            for pair, detail in new.items()
        }
        if wanted == old or new.keys() <= old.keys():
            continue
        changed += 1
        has_new_secret |= any(wanted[pair] and not old.get(pair) for pair in wanted)
        connection.execute("DELETE FROM detail WHERE memory_seq = ?", (seq,))
        insert_details(
            connection,
            [
                Detail(DetailKind(kind), value, sensitive=sensitive, memory=id)
                for (kind, value), sensitive in wanted.items()
            ],
            episode,
        )
    return changed, has_new_secret


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


def _recount_totals(connection: sqlite3.Connection) -> Iterator[str]:
    """Correct counts of summaries' originals and of tiers; yield a line of text for each."""
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
