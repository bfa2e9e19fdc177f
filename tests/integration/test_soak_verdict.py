"""The soak's verdict finds what it is there to find."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from soak.ledger import Entry, Ledger, digest, new_marker
from soak.verdict import findings

from mnemosyned import Memory


@pytest.fixture
def ledger(database: Path) -> Ledger:
    """Five acknowledged memories in the file, one of them forgotten again."""
    chance, ledger = random.Random(7), Ledger()
    with Memory(database) as memory:
        for number in range(5):
            marker = new_marker(chance)
            content = f"Ada mended bell {number} ({marker})"
            memory.remember(content, id=f"m{number}", session="yard")
            ledger.keep([Entry(f"m{number}", marker, digest(content), "yard")])
        memory.forget("m4")
        ledger.forget("m4")
    return ledger


def change(database: Path, sql: str) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(sql)


def test_a_sound_file_has_no_findings(database: Path, ledger: Ledger) -> None:
    assert findings(database, ledger) == []


def test_a_lost_memory_is_a_finding(database: Path, ledger: Ledger) -> None:
    change(database, "DELETE FROM working_memory WHERE id = 'm1'")

    assert "acknowledged and lost: 1, such as m1" in findings(database, ledger)


def test_a_memory_with_other_words_is_a_finding(database: Path, ledger: Ledger) -> None:
    change(
        database, "UPDATE working_memory SET content = content || '.' WHERE id = 'm2'"
    )

    assert "with other words: 1, such as m2" in findings(database, ledger)


def test_a_memory_that_the_index_lacks_is_a_finding(
    database: Path, ledger: Ledger
) -> None:
    change(
        database,
        "INSERT INTO memory_fts (memory_fts, rowid, content, role) "
        "SELECT 'delete', seq, content, role FROM working_memory WHERE id = 'm3'",
    )

    assert "not found by its own word: 1, such as m3" in findings(database, ledger)


def test_a_forgotten_memory_that_is_there_is_a_finding(
    database: Path, ledger: Ledger
) -> None:
    ledger.forget("m0")

    found = findings(database, ledger)

    assert "forgotten and there: 1, such as m0" in found
    assert "forgotten and readable in memory.db: 1, such as m0" in found


def test_forgotten_words_in_a_file_beside_the_database_are_a_finding(
    database: Path, ledger: Ledger
) -> None:
    (gone,) = ledger.forgotten
    database.with_name("notes").write_text("x" * 100 + gone.marker)

    assert findings(database, ledger) == [
        "forgotten and readable in notes: 1, such as m4"
    ]
