"""An export of one engine restores in the other, and everything in it comes back as it was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest
from support.compare_databases import EXPORTED, differences
from support.mixed_memory import QUESTIONS, fill

from mnemosyned.assembly.build import OpenMemory, open_memory
from mnemosyned.config import Config
from mnemosyned.verbs.exchange import Export
from mnemosyned.verbs.memories import Recall
from mnemosyned.verbs.upkeep import Status

pytestmark = pytest.mark.postgres

ENDS = ("header", "footer")
HELD_TOGETHER = {
    "archive": ("memory", "placed"),
    "working_memory": ("memory", "fresh"),
    "episodic_memory": ("episode",),
    "tier_totals": ("owner",),
}
"""Tables of SQLite whose rows are in others here."""


@contextmanager
def opened(database: str | Path) -> Iterator[OpenMemory]:
    with open_memory(Config(database=str(database), auto_sleep=False)) as memory:
        yield memory


WHOLE = Export()


def exported(database: str | Path, chosen: Export = WHOLE) -> list[bytes]:
    """The lines of an export, the first and the last included."""
    with opened(database) as memory:
        chunks = memory.service.export(chosen)
        return b"".join(chunks).splitlines(keepends=True)


def restored(lines: list[bytes], database: str | Path) -> None:
    """Restore an export into a memory, in one request."""
    with opened(database) as memory:
        outcome = memory.service.restore_lines(b"".join(lines[1:]))
        assert outcome.conflicts == []
        assert (outcome.working, outcome.left_out) == (0, 0)
        assert sum(outcome.stored.values()) == len(lines) - len(ENDS)


def records(lines: list[bytes]) -> list[dict[str, Any]]:
    """What an export holds; the order of the values of one memory is an engine's own."""
    decoded = [msgspec.json.decode(line) for line in lines]
    assert [decoded[0]["record"], decoded[-1]["record"]] == list(ENDS)
    for record in decoded:
        if "details" in record:
            record["details"] = sorted(record["details"])
    return decoded[1:-1]


def answers(database: str | Path) -> list[list[object]]:
    with opened(database) as memory:
        found = [memory.service.call(Recall(question)) for question in QUESTIONS]
    return [[(hit.id, hit.content) for hit in result.hits] for result in found]


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A SQLite file with something of everything."""
    file = tmp_path / "filled.db"
    fill(file)
    return file


def test_a_file_comes_back_from_a_server_row_by_row(
    filled: Path, dsn: str, tmp_path: Path
) -> None:
    again = tmp_path / "again.db"
    lines = exported(filled)

    restored(lines, dsn)
    from_server = exported(dsn)
    restored(from_server, again)

    kinds = Counter(record["record"] for record in records(lines))
    assert set(kinds) >= {"episode", "memory", "supersession", "learning", "log"}
    assert records(from_server) == records(lines)
    footers = [msgspec.json.decode(given[-1]) for given in (lines, from_server)]
    assert footers[0]["counts"] == footers[1]["counts"]
    assert differences(filled, again) == []
    assert answers(dsn) == answers(filled)


def test_a_server_comes_back_from_a_file(dsn: str, tmp_path: Path) -> None:
    fill(dsn)
    file = tmp_path / "memory.db"
    lines = exported(dsn)
    before = answers(dsn)

    restored(lines, file)

    assert records(exported(file)) == records(lines)
    assert answers(file) == before


def test_a_server_has_the_rows_and_totals_of_the_other_it_was_restored_from(
    filled: Path, dsn: str, other_dsn: str
) -> None:
    restored(exported(filled), dsn)

    restored(exported(dsn), other_dsn)

    assert differing_tables(dsn, other_dsn) == []
    with opened(dsn) as one, opened(other_dsn) as other:
        assert one.service.call(Status()).tiers == other.service.call(Status()).tiers


@pytest.mark.parametrize(
    "chosen",
    [Export(session="work-1"), Export(source="codex"), Export(tag="cabin")],
    ids=["session", "source", "tag"],
)
def test_a_part_is_the_same_on_both_engines(
    filled: Path, dsn: str, chosen: Export
) -> None:
    restored(exported(filled), dsn)

    part = records(exported(dsn, chosen))

    assert part == records(exported(filled, chosen))
    assert "memory" in {record["record"] for record in part}


def test_a_memory_that_is_restored_twice_is_there_once(filled: Path, dsn: str) -> None:
    lines = exported(filled)
    restored(lines, dsn)
    before = records(exported(dsn))

    with opened(dsn) as memory:
        outcome = memory.service.restore_lines(b"".join(lines[1:]))

    assert (outcome.stored, outcome.conflicts) == ({}, [])
    assert sum(outcome.known.values()) == len(lines) - len(ENDS)
    assert records(exported(dsn)) == before


def differing_tables(one: str, other: str) -> list[str]:
    """The tables of which two databases have other rows; numbers of records are each one's own."""
    tables = {name for table in EXPORTED for name in HELD_TOGETHER.get(table, (table,))}
    with (
        psycopg.connect(one) as left,
        psycopg.connect(other) as right,
    ):
        return [
            table
            for table in sorted(tables)
            if _rows(left, table) != _rows(right, table)
        ]


def _rows(connection: psycopg.Connection[Any], table: str) -> list[Any]:
    own = {
        "owner": "'name', 'created_at', 'last_record'",
        "emptied_episode": "'mark'",
        "revision": "'seq'",
        "learning": "'seq'",
    }
    without = f" - ARRAY[{own[table]}]" if table in own else ""
    query = f"SELECT (to_jsonb(r){without})::text FROM {table} AS r ORDER BY 1"
    rows: list[Any] = connection.execute(query.encode()).fetchall()
    return rows
