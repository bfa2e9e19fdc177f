"""A daemon in a sandbox makes a backup in its own folder; the shell moves it where it was wanted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar, cast

import pytest

from mnemosyned import Memory
from mnemosyned.cli.commands.backup import back_up
from mnemosyned.client.connection import Connection
from mnemosyned.errors import InvalidRequest, StorageFailed
from mnemosyned.verbs.request import Request
from mnemosyned.verbs.retention import Backup

R = TypeVar("R")


class Sandboxed:
    """A client of a daemon that may write to its own folders alone."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def call(self, request: Request[R]) -> R:
        if isinstance(request, Backup) and request.file is not None:
            raise StorageFailed(f"{request.file}: Read-only file system")
        return self._memory.call(request)


@pytest.fixture
def sandboxed(
    tmp_path: Path, database: Path, blank: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Connection]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    database.write_bytes(blank.read_bytes())
    with Memory(database) as memory:
        memory.remember("tea at four", id="a")
        yield cast("Connection", Sandboxed(memory))


def own_backups(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "state").rglob("memory-*.db*"))


def test_a_backup_is_moved_out_of_the_sandbox(
    sandboxed: Connection, tmp_path: Path
) -> None:
    target = tmp_path / "copy.db"

    done = back_up(sandboxed, Backup(str(target)))

    assert (done.file, done.memories) == (str(target), 1)
    assert target.stat().st_size == done.bytes
    assert target.stat().st_mode & 0o777 == 0o600
    assert own_backups(tmp_path) == []
    with Memory(target) as copy:
        assert [hit.id for hit in copy.recall("tea").hits] == ["a"]


def test_a_note_of_a_person_is_no_backup_to_replace(
    sandboxed: Connection, tmp_path: Path
) -> None:
    note = tmp_path / "copy.db"
    note.write_text("My own words")

    with pytest.raises(InvalidRequest, match="exists already and is not a backup"):
        back_up(sandboxed, Backup(str(note)))

    assert note.read_text() == "My own words"
    assert own_backups(tmp_path) == []
    assert sorted(path.name for path in tmp_path.glob("copy.db*")) == ["copy.db"]
