"""A database that an earlier version wrote opens, recalls and sleeps.

`tests/data/schema_11.db.gz` was written before the code was laid out anew: twelve days of
tickets, slept on every other day, rolled up to days, weeks and a month, with a superseded
fact, a pin, a secret, two learnings, a compaction and a forgotten memory.
"""

from __future__ import annotations

import gzip
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.fakes import FakeClock

from mnemosyned import Memory
from mnemosyned.memory.values import Tier

FILE = Path(__file__).parents[1] / "data" / "schema_11.db.gz"
TICKETS = [number for number in range(100, 148) if number != 105]
FORGOTTEN = 105
COMPACTION = "c-ac65ed7a95a6ca05"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(datetime(2026, 4, 20, 9, tzinfo=UTC))


@pytest.fixture
def memory(tmp_path: Path, clock: FakeClock) -> Iterator[Memory]:
    database = tmp_path / "memory.db"
    database.write_bytes(gzip.decompress(FILE.read_bytes()))
    with Memory(database, clock=clock) as opened:
        yield opened


def first(memory: Memory, question: str) -> str:
    return memory.recall(question, limit=1).hits[0].content


def assert_every_ticket_is_found(memory: Memory) -> None:
    for number in TICKETS:
        assert f"OPS-{number}" in first(memory, f"OPS-{number}")


def test_it_opens_whole(memory: Memory) -> None:
    status = memory.status()

    counts = {tier.value: totals.count for tier, totals in status.tiers.items()}
    assert counts == {"working": 2, "episodic": 67, "archive": 77}
    assert status.problems == []


def test_it_recalls_the_same_as_the_version_that_wrote_it(memory: Memory) -> None:
    assert first(memory, "office") == "The office is in Milan."
    assert first(memory, "東京") == "日本の会議は東京で十時に始まる。"
    assert first(memory, "parcel 7788") == "Bert waits for the parcel 7788 at the gate."
    assert "tr0ub4dor" not in str(memory.recall("deployment password"))
    assert_every_ticket_is_found(memory)


def test_a_summary_leads_to_its_exact_words(memory: Memory) -> None:
    (hit,) = memory.recall("roof garden opens").hits

    words = {original.content for original in memory.expand(COMPACTION).originals}

    assert "roof garden" in hit.content
    assert "Answer 11: the roof garden opens at 11:15." in words
    assert len(words) == 26


def test_what_was_forgotten_stays_so(memory: Memory) -> None:
    assert f"OPS-{FORGOTTEN}" not in str(memory.recall(f"OPS-{FORGOTTEN}"))


def test_it_sleeps_and_recalls_the_same_afterwards(
    memory: Memory, clock: FakeClock
) -> None:
    clock.advance(days=40)

    report = memory.sleep()

    assert report.failed == 0
    assert report.evicted >= 1
    assert_every_ticket_is_found(memory)
    assert "7788" in first(memory, "parcel 7788")


def test_its_days_and_weeks_are_composed_again(
    memory: Memory, clock: FakeClock, tmp_path: Path
) -> None:
    clock.advance(days=40)

    report = memory.sleep()

    assert report.rolled_up >= 14
    with closing(sqlite3.connect(tmp_path / "memory.db")) as connection:
        weeks = connection.execute(
            "SELECT content FROM episodic_memory WHERE level = 2 ORDER BY period_from"
        ).fetchall()
    lines = [line for (content,) in weeks for line in content.split("\n")]
    assert lines[0].startswith("Mon 2 March: ")
    assert not any(line.startswith("ticket ") for line in lines)


def test_it_forgets(memory: Memory) -> None:
    receipt = memory.forget("m17")

    assert receipt.complete
    assert not re.search("OPS-117", str(memory.recall("OPS-117")))


def test_its_learnings_hold(memory: Memory) -> None:
    texts = {learning.text for learning in memory.learnings().learnings}

    assert texts == {"Deploys happen on Tuesdays.", "Always answer in short sentences."}


def test_headings_and_keywords_of_its_summaries_became_index_terms(
    memory: Memory, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / "memory.db")) as connection:
        rows = connection.execute(
            "SELECT content, index_terms FROM episodic_memory WHERE summarizer = 'aaak'"
        ).fetchall()
        found = connection.execute(
            "SELECT e.content FROM episode_fts AS f JOIN episodic_memory AS e "
            "ON e.seq = f.rowid WHERE episode_fts MATCH 'index_terms : \"OPS-141\"'"
        ).fetchall()

    assert len(rows) > 10
    assert [text for text, _ in rows if "Keywords: " in text] == []
    assert all(terms.split("\n")[0].endswith(" March 2026") for _, terms in rows)
    assert found
    assert "OPS-141" not in found[0][0]
    assert memory.status().tiers[Tier.EPISODIC].characters == sum(
        map(len, _contents(tmp_path))
    )


def _contents(folder: Path) -> list[str]:
    with closing(sqlite3.connect(folder / "memory.db")) as connection:
        rows = connection.execute("SELECT content FROM episodic_memory").fetchall()
    return [content for (content,) in rows]
