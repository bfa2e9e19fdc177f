"""A damaged write-ahead log drops what is behind the damage; that is said, and only then."""

import shutil
import struct
from pathlib import Path

import pytest
from support.fakes import memory, remember_batch, working_ids

from mnemosyned import Memory
from mnemosyned.memory.values import Tier
from mnemosyned.paths import shipped
from mnemosyned.storage.sqlite.store import open_store

HEADER, FRAME, PAGE = 32, 24, 4_096
MEMORIES = 20


@pytest.fixture
def crashed(database: Path, blank: Path, tmp_path: Path) -> Path:
    """What a killed process left: all of its writing is in the log alone."""
    shutil.copy(blank, database)
    (tmp_path / "crashed").mkdir()
    with open_store(database, migrations=shipped("migrations")) as store:
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
    with open_store(database, migrations=shipped("migrations")) as store:
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
    with open_store(database, migrations=shipped("migrations")) as store:
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
