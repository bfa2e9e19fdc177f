"""The pool of read-only connections."""

from __future__ import annotations

from pathlib import Path

import pytest

from mnemosyned.errors import StorageFailed
from mnemosyned.storage.sqlite.connections import Readers, open_writer


def test_a_read_does_not_wait_for_ever_for_its_turn(tmp_path: Path) -> None:
    writer = open_writer(tmp_path / "memory.db")
    readers = Readers(tmp_path / "memory.db", size=1, wait_s=0.05)

    with (
        readers.snapshot(),
        pytest.raises(StorageFailed, match="all 1 readers were busy"),
        readers.snapshot(),
    ):
        pass

    with readers.snapshot() as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    readers.close()
    writer.close()
