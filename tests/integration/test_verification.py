"""The checks of a backup and of the doctor find nothing wrong with a database that was lived in."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from mnemosyned import Memory
from mnemosyned.paths import shipped
from mnemosyned.storage.sqlite.verification import (
    find_faults,
    schema_faults,
    structure_faults,
)


def live(database: Path) -> None:
    """Remember, sleep, change, forget, restore, supersede, compact and undo."""
    with Memory(database) as memory:
        for number in range(40):
            memory.remember(
                f"Ada paid {number}.50 EUR for tea on 2026-03-0{number % 9 + 1}",
                id=f"m{number}",
                session=f"s{number % 4}",
                created_at=f"2026-03-0{number % 9 + 1}T10:00:00Z",
            )
        memory.sleep(force=True)
        memory.undo()
        memory.sleep(force=True)
        memory.restore("m8")
        memory.unpin("m8")
        memory.edit("m9", text="Ada paid nothing for coffee")
        memory.tag("m10", tags=["tea"])
        memory.tag("m11", tags=["tea"])
        for id in ("m9", "m10", "m12"):
            memory.forget(id)
        memory.forget(session="s1")
        memory.learn("Answer in English.")
        memory.remember("Ada paid 5 EUR", id="newer", supersedes="m14")
        memory.forget("newer")
        talk = [
            {"role": "user", "content": f"line {number} " * 50} for number in range(40)
        ]
        memory.compact(talk, max_tokens=500, session="talk")
        memory.sleep(force=True)
        memory.prune(characters_max=100)


def test_a_life_leaves_no_fault(database: Path, blank: Path) -> None:
    shutil.copy(blank, database)
    live(database)

    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        assert find_faults(connection) == []
        assert schema_faults(connection, shipped("migrations")) == []
        assert structure_faults(connection) == []
