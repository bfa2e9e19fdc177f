"""`mnem import`: bad lines are named, good files are whole, and twice is once."""

from __future__ import annotations

import io
import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest
from e2e.daemons import Daemon, kept

from mnemosyned.cli.importer import BATCH, import_lines
from mnemosyned.domain.errors import StorageFailed
from mnemosyned.domain.memory import Acknowledged
from mnemosyned.verbs.facade import Caller
from mnemosyned.verbs.memories import RememberedMany, RememberMany

pytestmark = pytest.mark.e2e

GOOD = [f'{{"content": "line {number}", "session": "import"}}' for number in range(4)]
BAD = [
    *GOOD[:2],
    '{"content": "cut sh',
    "",
    '{"content": "x", "colour": "red"}',
    '{"content": " "}',
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "memories.jsonl"


def importing(
    daemon: Daemon, file: Path, *options: str
) -> subprocess.CompletedProcess[bytes]:
    return daemon.mnem("import", *options, str(file))


def test_a_file_with_bad_lines_is_refused_whole(daemon: Daemon, file: Path) -> None:
    file.write_text("\n".join([*BAD, *GOOD[2:]]))

    done = importing(daemon, file)

    assert done.returncode == 2
    said = done.stderr.decode()
    assert "line 3: the line is not JSON" in said
    assert "(malformed_json)" in said
    assert "line 5: colour" in said
    assert "line 6: there is nothing to remember" in said
    assert "line 4" not in said
    assert kept(daemon.database) == []


def test_bad_lines_can_be_skipped(daemon: Daemon, file: Path) -> None:
    file.write_text("\n".join([*BAD, *GOOD[2:]]))

    done = importing(daemon, file, "--bad-lines", "skip", "--json")

    report = json.loads(done.stdout)
    assert done.returncode == 2
    assert (report["stored"], report["known"], len(report["refused"])) == (4, 0, 3)
    assert len(kept(daemon.database)) == 4


def test_importing_twice_adds_nothing(daemon: Daemon, file: Path) -> None:
    file.write_text("\n".join([*GOOD, GOOD[0]]))
    importing(daemon, file)
    daemon.post("sleep", force=True)
    before = kept(daemon.database)

    done = importing(daemon, file)

    assert done.returncode == 0
    assert b"0 remembered, 5 already known, 0 learned" in done.stdout
    assert kept(daemon.database) == before
    assert len(before) == 5, "a line said twice was said twice"


def test_a_large_file_is_kept_whole_and_in_order(daemon: Daemon, file: Path) -> None:
    lines = [
        json.dumps({"content": f"number {n}", "id": f"n{n:05}"}) for n in range(1501)
    ]
    file.write_text("\n".join(lines))

    done = importing(daemon, file)

    assert done.returncode == 0
    assert b"1,501 remembered" in done.stdout
    assert kept(daemon.database) == [f"n{n:05}" for n in range(1501)]


def test_a_bad_line_is_named_by_its_number_in_a_large_file(
    daemon: Daemon, file: Path
) -> None:
    lines = [json.dumps({"content": f"number {n}"}) for n in range(1, 1200)]
    lines[1100 - 1] = json.dumps({"content": "x", "created_at": "2999-01-01T00:00:00Z"})
    file.write_text("\n".join(lines))

    done = importing(daemon, file)

    assert done.returncode == 2
    assert b"line 1100: " in done.stderr
    assert b"(invalid_time)" in done.stderr
    assert kept(daemon.database) == []


class FullDisk:
    """A daemon that has room for so many batches."""

    def __init__(self, batches: int) -> None:
        self._left = batches

    def call(self, request: RememberMany) -> RememberedMany:
        self._left -= 1
        if self._left < 0:
            raise StorageFailed("nothing of this request was kept: the disk is full")
        now = datetime.now(UTC)
        return RememberedMany(
            [
                Acknowledged(id="x", created_at=now, stored=True)
                for _ in request.memories
            ]
        )


@pytest.mark.parametrize("batches", [0, 2])
def test_an_import_that_stops_halfway_says_how_much_is_kept(batches: int) -> None:
    lines = b"".join(
        b'{"content": "line %d"}\n' % number for number in range(3 * BATCH)
    )

    with pytest.raises(StorageFailed) as error:
        import_lines(
            io.BytesIO(lines),
            cast("Caller", FullDisk(batches)),
            check_only=False,
            progress=lambda _: None,
        )

    kept_before = f"{batches * BATCH:,} memories of the file are stored"
    assert (kept_before in error.value.message) is bool(batches)
    assert "the disk is full" in error.value.message
