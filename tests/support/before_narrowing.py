"""A database as it was before the migration to fewer bytes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.fakes import NOON
from support.postgres import MIGRATIONS

from mnemosyned.memory.forgetting import content_hash
from mnemosyned.storage.postgres.fulltext import word_hashes

if TYPE_CHECKING:
    import psycopg

NARROW = "0003_narrow.sql"
SAID, PRUNED, FRESH = "Ada has 3 keys, PIN 4711", "Bert owes €754", "Cleo waits"
MEMORIES = {1: SAID, 2: "", 3: FRESH}
DETAILS = (
    (1, "number", "3", False),
    (1, "access_code", "4711", True),
    (2, "money", '€7"54\n', False),
)


def migrations_before(folder: Path) -> Path:
    """The migrations of the version before, in a folder of their own."""
    migrations = folder / "before"
    shutil.copytree(MIGRATIONS, migrations)
    for file in migrations.glob("*.sql"):
        if file.name >= NARROW:
            file.unlink()
    return migrations


def fill(connection: psycopg.Connection[Any]) -> None:
    """Insert two originals, one of them pruned, and a memory at work."""
    connection.execute(
        "INSERT INTO owner (owner, name, last_memory, last_record, working_count, archive_count) "
        "VALUES (1, 'local', 3, 4, 1, 2)"
    )
    for seq, said in MEMORIES.items():
        connection.execute(
            "INSERT INTO memory (owner, seq, id, session_id, content, created_at, content_hash, "
            "words) VALUES (1, %s, %s, 's', %s, %s, %s, %s)",
            (seq, f"m{seq}", said, NOON, content_hash(said or PRUNED),
             word_hashes(1, said)),
        )  # fmt: skip
    connection.execute(
        "INSERT INTO episode (owner, seq, repeated, repeats, id, session_id, content, item_count, "
        "covers_from, covers_until, summarizer, created_at, words) "
        "VALUES (1, 4, '{}', '{}', 'e1', 's', 'Ada has keys.', 2, %(now)s, %(now)s, 'rule', %(now)s, "
        "%(words)s)",
        {"now": NOON, "words": word_hashes(1, "Ada has keys.")},
    )
    connection.execute("INSERT INTO placed VALUES (1, 1, 4), (1, 2, 4)")
    connection.execute("INSERT INTO fresh VALUES (1, 3, %s)", (NOON,))
    connection.execute(
        "INSERT INTO memory_state (owner, memory_seq, pruned_at) VALUES (1, 2, %s)",
        (NOON,),
    )
    for row in DETAILS:
        connection.execute("INSERT INTO detail VALUES (1, %s, %s, %s, %s)", row)
