"""`mnem move` refuses what it cannot carry whole, and says what to do."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner
from postgres.moving import filled, move, settings, source
from support.engines import new_database
from support.fakes import NOON

from mnemosyned.assembly.build import open_memory
from mnemosyned.assembly.stores import open_store
from mnemosyned.cli.maintenance.move import move_command, parse_location
from mnemosyned.config import Config
from mnemosyned.errors import (
    DatabaseInUse,
    InvalidRequest,
    MnemosynedError,
    StorageFailed,
)
from mnemosyned.memory.exchange import ExportedMemory
from mnemosyned.service import move as moves
from mnemosyned.service.move import compare_recalls
from mnemosyned.verbs.memories import Recall, Remember

__all__ = ["filled", "settings", "source"]

pytestmark = pytest.mark.postgres


def test_a_target_with_another_memory_is_refused(
    filled: Path, dsn: str, tmp_path: Path
) -> None:
    other = tmp_path / "other.db"
    for database in (dsn, str(other)):
        with open_memory(Config(database=database, auto_sleep=False)) as memory:
            memory.service.call(Remember("Mine", id="mine"))
    with pytest.raises(InvalidRequest, match="memory mine is not of this memory"):
        move(filled, dsn)
    full = new_database()
    move(filled, full)
    with pytest.raises(InvalidRequest, match="memory mine is not of this memory"):
        move(full, other)

    with open_memory(Config(database=dsn, auto_sleep=False)) as memory:
        assert len(memory.service.call(Recall("mine")).hits) == 1


def test_a_source_that_changed_since_is_refused(source: Path, dsn: str) -> None:
    move(source, dsn)
    with open_memory(Config(database=str(source), auto_sleep=False)) as memory:
        memory.service.call(Remember("Something new", id="new"))

    with pytest.raises(InvalidRequest, match="moved into a new one"):
        move(source, dsn)


def test_a_change_amid_the_move_is_found(
    filled: Path, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliver = moves.Moving.deliver

    def disturbed(self: moves.Moving, advance: moves.Advance) -> None:
        deliver(self, advance)
        with open_memory(Config(database=dsn, auto_sleep=False)) as memory:
            memory.service.call(Remember("From elsewhere", id="elsewhere"))

    monkeypatch.setattr(moves.Moving, "deliver", disturbed)

    with pytest.raises(InvalidRequest, match="is not the same in both"):
        move(filled, dsn)


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        ("here.db", "there.db", "are both files: `mnem backup`"),
        ("postgresql://a/b", "postgresql://c/d", "are both on a server"),
        ("nowhere.db", "postgresql://c/d", "there is no database"),
        ("postgresql://a/b", "nowhere/there.db", "there is no folder"),
    ],
)
def test_places_between_which_nothing_is_moved(
    tmp_path: Path, source: str, target: str, reason: str
) -> None:
    places = [
        place if "://" in place else str(tmp_path / place) for place in (source, target)
    ]

    with pytest.raises(InvalidRequest, match=reason):
        move(*places)

    assert list(tmp_path.iterdir()) == []


def test_a_source_that_keeps_nothing_is_refused(dsn: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="keeps nothing to move"):
        move(dsn, tmp_path / "there.db")

    assert list(tmp_path.iterdir()) == []


def test_a_password_is_not_shown(filled: Path) -> None:
    with pytest.raises(StorageFailed) as error:
        move(filled, "postgresql://ann:hush@127.0.0.1:1/memory?connect_timeout=1")

    assert "hush" not in str(error.value)


def test_a_file_of_another_program_is_refused(dsn: str, tmp_path: Path) -> None:
    foreign = tmp_path / "songs.db"
    with closing(sqlite3.connect(foreign)) as connection:
        connection.execute("CREATE TABLE song (name)")
    before = foreign.read_bytes()
    with open_memory(Config(database=dsn, auto_sleep=False)) as memory:
        memory.service.call(Remember("Mine", id="mine"))

    with pytest.raises(MnemosynedError, match="songs"):
        move(dsn, foreign)

    assert foreign.read_bytes() == before


def test_a_memory_that_is_open_is_refused(source: Path, dsn: str) -> None:
    with (
        open_store(parse_location(str(source))),
        pytest.raises(DatabaseInUse, match="stop it with `mnem stop`"),
    ):
        move(source, dsn)


def test_other_hits_are_told(filled: Path, dsn: str) -> None:
    memory = ExportedMemory(
        id="pin", seq=1, session="s", content="Ada drinks tea", created_at=NOON
    )

    with (
        open_store(parse_location(str(filled))) as full,
        open_store(parse_location(dsn)) as empty,
    ):
        compared = compare_recalls(
            full.search, empty.search, [memory], now=datetime.now(UTC)
        )

    assert compared.differing == ("pin",)


def test_the_words_tell_what_to_set_and_what_stays(filled: Path, dsn: str) -> None:
    words = ["--from", str(filled), "--to", dsn]

    done = CliRunner().invoke(move_command, words, standalone_mode=False)

    assert "each record is the same in both" in done.stdout
    assert "recall: 5 of 5 questions answered alike" in done.stdout
    assert f"mnem config set database '{dsn}'" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("not moved: ")
