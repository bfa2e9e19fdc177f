"""A database that an earlier version or a crash left opens, recalls and sleeps, or says what is lost."""

import gzip
import shutil
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support.fakes import (
    FakeClock,
    consolidate,
    memory,
    promotion,
    remember_batch,
    working_ids,
)
from support.stores import open_store

from mnemosyned import Memory
from mnemosyned.memory.forgetting import ForgetFilter
from mnemosyned.memory.values import Tier
from mnemosyned.storage.sqlite import fulltext
from mnemosyned.storage.sqlite.fulltext import TEXTS, write_grams
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.text.terms import gram_text, parse_terms

FILE = Path(__file__).parents[1] / "data" / "schema_11.db.gz"
TICKETS = [number for number in range(100, 148) if number != 105]
FORGOTTEN = 105
COMPACTION = "c-ac65ed7a95a6ca05"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(datetime(2026, 4, 20, 9, tzinfo=UTC))


@pytest.fixture
def old_memory(tmp_path: Path, clock: FakeClock) -> Iterator[Memory]:
    database = tmp_path / "memory.db"
    database.write_bytes(gzip.decompress(FILE.read_bytes()))
    with Memory(database, clock=clock) as opened:
        yield opened


def first(memory: Memory, question: str) -> str:
    return memory.recall(question, limit=1).hits[0].content


def assert_every_ticket_is_found(memory: Memory) -> None:
    memory.endings()  # finds them at once, where each recall would find a few
    for number in TICKETS:
        assert f"OPS-{number}" in first(memory, f"OPS-{number}")


def test_it_opens_whole(old_memory: Memory) -> None:
    status = old_memory.status()

    counts = {tier.value: totals.count for tier, totals in status.tiers.items()}
    assert counts == {"working": 2, "episodic": 67, "archive": 77}
    assert status.problems == []
    rules = {learning.text for learning in old_memory.learnings().learnings}
    assert rules == {"Deploys happen on Tuesdays.", "Always answer in short sentences."}


@pytest.mark.thorough
def test_it_recalls_the_same_as_the_version_that_wrote_it(old_memory: Memory) -> None:
    for question, answer in (
        ("office", "The office is in Milan."),
        ("東京", "日本の会議は東京で十時に始まる。"),
        ("parcel 7788", "Bert waits for the parcel 7788 at the gate."),
    ):
        assert first(old_memory, question) == answer
    assert f"OPS-{FORGOTTEN}" not in str(old_memory.recall(f"OPS-{FORGOTTEN}"))
    assert "tr0ub4dor" not in str(old_memory.recall("deployment password"))
    assert_every_ticket_is_found(old_memory)


def test_a_summary_leads_to_its_exact_words_and_a_memory_can_be_forgotten(
    old_memory: Memory,
) -> None:
    (hit,) = old_memory.recall("roof garden opens").hits

    words = {original.content for original in old_memory.expand(COMPACTION).originals}

    assert "roof garden" in hit.content
    assert "Answer 11: the roof garden opens at 11:15." in words
    assert len(words) == 26
    assert old_memory.forget("m17").complete
    assert "OPS-117" not in str(old_memory.recall("OPS-117"))


@pytest.mark.thorough
def test_it_sleeps_and_recalls_the_same_afterwards(
    old_memory: Memory, clock: FakeClock
) -> None:
    clock.advance(days=40)

    report = old_memory.sleep()

    assert report.failed == 0
    assert report.evicted >= 1
    assert_every_ticket_is_found(old_memory)
    assert "7788" in first(old_memory, "parcel 7788")


@pytest.mark.thorough
def test_its_days_and_weeks_are_composed_again(
    old_memory: Memory, clock: FakeClock, tmp_path: Path
) -> None:
    clock.advance(days=40)

    report = old_memory.sleep()

    assert report.rolled_up >= 14
    with closing(sqlite3.connect(tmp_path / "memory.db")) as connection:
        weeks = connection.execute(
            "SELECT content FROM episodic_memory WHERE level = 2 ORDER BY period_from"
        ).fetchall()
    lines = [line for (content,) in weeks for line in content.split("\n")]
    assert lines[0].startswith("Mon 2 March: ")
    assert not any(line.startswith("ticket ") for line in lines)


def test_headings_and_keywords_of_its_summaries_became_index_terms(
    old_memory: Memory, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / "memory.db")) as connection:
        rows = connection.execute(
            "SELECT content, index_terms FROM episodic_memory WHERE summarizer = 'aaak'"
        ).fetchall()
        select = "SELECT sum(length(content)) FROM episodic_memory"
        (characters,) = connection.execute(select).fetchone()
        found = connection.execute(
            "SELECT e.content FROM episode_fts AS f JOIN episodic_memory AS e "
            "ON e.seq = f.rowid WHERE episode_fts MATCH 'index_terms : \"OPS-141\"'"
        ).fetchall()

    assert len(rows) > 10
    assert [text for text, _ in rows if "Keywords: " in text] == []
    assert all(terms.split("\n")[0].endswith(" March 2026") for _, terms in rows)
    assert found
    assert "OPS-141" not in found[0][0]
    assert old_memory.status().tiers[Tier.EPISODIC].characters == characters


# A SQLite file of before words that touch a script without spaces were indexed by themselves.


PLAIN = [
    memory("plain", "nginx is not touched", hours_ago=30),
    memory("camel", "getUserName of nginx", hours_ago=30),
    memory("han", "今天下雨 nginx", hours_ago=30),
]
GLUED = [
    memory(f"glued-{number}", f"服务器{number}号用nginx运行", hours_ago=30)
    for number in range(6)
]
SLEPT = [memory("slept-1", "Anaさんが来ました"), memory("slept-2", "由Ana主持的会")]


def make_old(database: Path) -> None:
    """Leave the entries and the schema as the version before wrote them."""
    with closing(sqlite3.connect(database)) as connection, connection:
        for index, texts in TEXTS.items():
            connection.execute(f"INSERT INTO {index} ({index}) VALUES ('delete-all')")
            connection.executemany(
                f"INSERT INTO {index} (rowid, grams) VALUES (?, ?)",
                [
                    (seq, parts)
                    for seq, text in connection.execute(texts)
                    if (parts := gram_text(text))
                ],
            )
        connection.execute("DROP TABLE reindexing")
        connection.execute("PRAGMA user_version = 18")
        connection.execute(
            "DELETE FROM _sqlite_migrations WHERE name = '0019_glued_words'"
        )


def fill(store: SqliteStore) -> None:
    remember_batch(store, *SLEPT, *PLAIN, *GLUED)
    consolidate(store, promotion("e", *SLEPT, content="Anaさんが来て、Redisを直した"))


@pytest.fixture
def old(database: Path) -> Path:
    with open_store(database) as store:
        fill(store)
    make_old(database)
    return database


def selected(database: Path, word: str) -> list[str]:
    with open_store(database) as store:
        return sorted(store.deletion.select(ForgetFilter(terms=parse_terms(word))))


def entries(database: Path, index: str) -> list[tuple[int, str]]:
    """Rows and terms of an index, as FTS5 itself lists them."""
    with closing(sqlite3.connect(database)) as connection:
        connection.execute(
            f"CREATE VIRTUAL TABLE temp.v USING fts5vocab(main, {index}, instance)"
        )
        return sorted(connection.execute("SELECT doc, term, offset FROM v"))


def test_what_an_earlier_version_indexed_is_found_once_the_file_is_opened(
    old: Path,
) -> None:
    glued = [each.id for each in GLUED]
    assert selected(old, "nginx") == ["camel", *glued, "han", "plain"]
    assert selected(old, "Ana") == ["slept-1", "slept-2"]
    with closing(sqlite3.connect(old)) as connection:
        assert not connection.execute("SELECT name, seq FROM reindexing").fetchall()


def test_an_entry_is_the_same_whether_it_was_written_now_or_written_again(
    old: Path, tmp_path: Path
) -> None:
    selected(old, "nginx")

    fresh = tmp_path / "fresh.db"
    with open_store(fresh) as store:
        fill(store)
    for index in TEXTS:
        assert entries(old, index) == entries(fresh, index)


# A file of before words were indexed by the common forms of their letters, as its own version wrote it.


LETTERS = Path(__file__).parents[1] / "data" / "schema_27.db.gz"
FOUND = {
    "API": ["camel", "slept-api"],
    "500": ["slept-api"],
    "サーバー": ["slept-kana"],
    "ｻｰﾊﾞｰ": ["slept-kana"],
    "filament": ["ligature"],
    "서버": ["korean"],
    "v2": ["glued"],
    "nginx": ["glued"],
    "User": ["camel"],
}
"""The memories with each word."""


@pytest.fixture
def with_letters(database: Path) -> Path:
    database.write_bytes(gzip.decompress(LETTERS.read_bytes()))
    return database


def test_other_forms_of_letters_are_found_once_the_file_is_opened(
    with_letters: Path,
) -> None:
    assert {word: selected(with_letters, word) for word in FOUND} == FOUND
    with closing(sqlite3.connect(with_letters)) as connection:
        assert not connection.execute("SELECT name, seq FROM reindexing").fetchall()


def test_indexes_are_written_on_where_a_daemon_was_killed(
    with_letters: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Path(shutil.copy(with_letters, tmp_path / "whole.db"))
    selected(whole, "API")
    written: list[int] = []

    def write_and_die(*args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        written.append(args[2])
        if len(written) == 6:  # three summaries came first
            raise KeyboardInterrupt
        write_grams(*args, **kwargs)

    monkeypatch.setattr(fulltext, "REINDEXED_AT_ONCE", 2)
    monkeypatch.setattr(fulltext, "write_grams", write_and_die)
    with pytest.raises(KeyboardInterrupt):
        selected(with_letters, "API")

    with closing(sqlite3.connect(with_letters)) as connection:
        due = "SELECT seq FROM reindexing WHERE name = 'memory_gram_fts'"
        assert connection.execute(due).fetchone() == (written[4],)
    assert selected(with_letters, "API") == FOUND["API"]
    assert written[6] == written[5]
    for index in TEXTS:
        assert entries(with_letters, index) == entries(whole, index)


def test_an_index_that_was_rebuilt_in_the_meantime_counts_no_row_twice(
    with_letters: Path,
) -> None:
    selected(with_letters, "API")
    totals = "SELECT block FROM memory_gram_fts_data WHERE id = 1"
    with closing(sqlite3.connect(with_letters)) as connection, connection:
        before = connection.execute(totals).fetchall()
        connection.execute("INSERT INTO reindexing VALUES ('memory_gram_fts', 1)")

    assert selected(with_letters, "API") == FOUND["API"]
    with closing(sqlite3.connect(with_letters)) as connection:
        assert connection.execute(totals).fetchall() == before


# A damaged write-ahead log drops what is behind the damage; that is said, and only then.


HEADER, FRAME, PAGE = 32, 24, 4_096
MEMORIES = 20


@pytest.fixture
def crashed(database: Path, blank: Path, tmp_path: Path) -> Path:
    """What a killed process left: all of its writing is in the log alone."""
    shutil.copy(blank, database)
    (tmp_path / "crashed").mkdir()
    with open_store(database) as store:
        for number in range(MEMORIES):
            remember_batch(store, memory(f"m{number:02}"))
        for file in tmp_path.glob("memory.db*"):
            shutil.copy(file, tmp_path / "crashed")
    return tmp_path / "crashed" / "memory.db"


def log_of(database: Path) -> Path:
    return database.with_name("memory.db-wal")


def damaged(database: Path, frame: int, *, header: bool = False) -> None:
    """One bit of a frame, counted from 0, is another."""
    data = bytearray(log_of(database).read_bytes())
    at = HEADER + frame * (FRAME + PAGE) + FRAME + 100
    data[8 if header else at] ^= 1
    log_of(database).write_bytes(data)


def frames(database: Path) -> int:
    return (log_of(database).stat().st_size - HEADER) // (FRAME + PAGE)


def ends(database: Path) -> list[int]:
    """The frames that end a transaction."""
    data = log_of(database).read_bytes()
    places = [HEADER + number * (FRAME + PAGE) for number in range(frames(database))]
    return [n for n, at in enumerate(places) if struct.unpack_from(">6I", data, at)[1]]


def opened(database: Path) -> tuple[list[str], list[str]]:
    """The memories in the file, and what status says of it."""
    with open_store(database) as store:
        return working_ids(store), store.maintenance.warnings()


def test_the_transactions_behind_a_damaged_frame_are_counted(crashed: Path) -> None:
    transactions = ends(crashed)
    middle = transactions[len(transactions) // 2]
    damaged(crashed, middle)
    lost = sum(end >= middle for end in transactions)

    known, warnings = opened(crashed)

    assert len(known) == MEMORIES - lost > 0
    (warning,) = warnings
    assert f"{lost} of the {len(transactions)} transactions" in warning
    assert opened(crashed)[1] == []  # it is said once


def test_a_damaged_header_loses_all_and_status_and_the_log_say_so(
    crashed: Path, caplog: pytest.LogCaptureFixture
) -> None:
    damaged(crashed, 0, header=True)

    with Memory(crashed) as memory:
        status = memory.status()

    assert status.tiers[Tier.WORKING].count == 0
    (warning,) = status.warnings
    assert "cannot be read" in warning
    assert f"{MEMORIES} of the {MEMORIES} transactions" in warning
    assert "database_warning" in caplog.text


@pytest.mark.parametrize("cut", [0, 1, FRAME + PAGE - 1, FRAME + PAGE])
def test_a_log_that_is_whole_or_ends_in_a_write_that_power_cut_short_has_no_damage(
    crashed: Path, cut: int
) -> None:
    """A write that was cut has no end in the log: nobody was told that it is kept."""
    log = log_of(crashed)
    log.write_bytes(log.read_bytes()[: log.stat().st_size - cut])

    known, warnings = opened(crashed)

    assert len(known) == MEMORIES - bool(cut)
    assert warnings == []


def test_frames_of_an_earlier_round_of_the_log_are_no_loss(
    database: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    with open_store(database) as store:
        for number in range(MEMORIES):
            remember_batch(store, memory(f"m{number:02}"))
        store.maintenance.run_upkeep()
        remember_batch(store, memory("last"))  # overwrites the first frames of the log
        for file in tmp_path.glob("memory.db*"):
            shutil.copy(file, copy)

    known, warnings = opened(copy / "memory.db")

    assert len(known) == MEMORIES + 1
    assert warnings == []


@pytest.mark.parametrize("content", [b"", b"x" * 10, b"x" * 5_000, bytes(9_000)])
def test_whatever_lies_there_as_a_log_is_survived(
    database: Path, blank: Path, content: bytes
) -> None:
    shutil.copy(blank, database)
    log_of(database).write_bytes(content)

    known, _ = opened(database)

    assert known == []
