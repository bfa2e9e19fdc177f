"""An import that goes on: what its journal says of a file, and of one that changed since."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest

from mnemosyned.errors import StorageFailed
from mnemosyned.importers.importer import ImportSource
from mnemosyned.importers.plan import plan_import
from mnemosyned.importers.run import BATCH_ITEMS, ImportJournal, ImportRun, Restorer
from mnemosyned.memory.values import Acknowledged
from mnemosyned.verbs.facade import Caller
from mnemosyned.verbs.memories import RememberedMany, RememberMany
from mnemosyned.verbs.request import Request

OTHERS = [f'{{"content": "line {number}", "session": "import"}}' for number in range(4)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "memories.jsonl"


class StoppingDaemon:
    """A daemon that keeps memories by id, and fails after so many batches."""

    def __init__(self) -> None:
        self.batches_left = 0
        self.memories: dict[str | None, str] = {}
        self.received = 0

    def call(self, request: Request[RememberedMany]) -> RememberedMany:
        assert isinstance(request, RememberMany)
        if self.batches_left == 0:
            raise StorageFailed("nothing of this request was kept: the disk is full")
        self.batches_left -= 1
        self.received += len(request.memories)
        now = datetime.now(UTC)
        answers = [
            Acknowledged(
                id=str(memory.id), created_at=now, stored=memory.id not in self.memories
            )
            for memory in request.memories
        ]
        self.memories |= {each.id: each.content for each in request.memories}
        return RememberedMany(answers)


def run_of(daemon: StoppingDaemon, path: Path, journal: Path) -> ImportRun:
    plan = plan_import([ImportSource.of_path(path)], None)
    journals = {str(path): ImportJournal(journal)}
    return ImportRun(cast("Caller", daemon), cast("Restorer", None), plan, journals)


def write_lines(file: Path, count: int) -> None:
    file.write_bytes(
        b"".join(b'{"content": "line %d"}\n' % (n // 2) for n in range(count))
    )


def test_an_import_goes_on_where_it_stopped(tmp_path: Path, file: Path) -> None:
    daemon, journal = StoppingDaemon(), tmp_path / "journal"
    write_lines(file, 3 * BATCH_ITEMS)
    daemon.batches_left = 2
    with pytest.raises(StorageFailed):
        run_of(daemon, file, journal).run()
    daemon.batches_left = 10

    report = run_of(daemon, file, journal).run()

    assert (report.stored, report.known) == (BATCH_ITEMS, 0)
    assert report.continued
    assert daemon.received == len(daemon.memories) == 3 * BATCH_ITEMS
    assert not journal.exists()


def test_a_batch_whose_position_was_not_kept_is_stored_once(
    tmp_path: Path, file: Path
) -> None:
    daemon, journal = StoppingDaemon(), tmp_path / "journal"
    write_lines(file, 3 * BATCH_ITEMS)
    daemon.batches_left = 2
    with pytest.raises(StorageFailed):
        run_of(daemon, file, journal).run()
    first, second = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(first + second[: len(second) // 2])
    daemon.batches_left = 10

    report = run_of(daemon, file, journal).run()

    assert (report.stored, report.known) == (BATCH_ITEMS, BATCH_ITEMS)
    assert len(daemon.memories) == 3 * BATCH_ITEMS


def test_a_file_that_grew_after_it_was_done_is_read_on(tmp_path: Path) -> None:
    daemon, journal = StoppingDaemon(), tmp_path / "journal"
    folder = tmp_path / "folder"
    folder.mkdir()
    first, second = folder / "a.jsonl", folder / "b.jsonl"
    write_lines(first, BATCH_ITEMS)
    second.write_text("\n".join(OTHERS))
    daemon.batches_left = 1
    with pytest.raises(StorageFailed):
        run_of(daemon, folder, journal).run()
    with first.open("a") as opened:
        opened.write('{"content": "added"}\n')
    daemon.batches_left = 10

    report = run_of(daemon, folder, journal).run()

    assert report.stored == len(OTHERS) + 1
    assert "added" in daemon.memories.values()


def test_a_file_that_was_cut_is_read_from_the_beginning(
    tmp_path: Path, file: Path
) -> None:
    daemon, journal = StoppingDaemon(), tmp_path / "journal"
    write_lines(file, 3 * BATCH_ITEMS)
    daemon.batches_left = 2
    with pytest.raises(StorageFailed):
        run_of(daemon, file, journal).run()
    write_lines(file, BATCH_ITEMS)
    with file.open("a") as opened:
        opened.write('{"content": "added"}\n')
    daemon.batches_left = 10

    report = run_of(daemon, file, journal).run()

    assert (report.stored, report.known) == (1, BATCH_ITEMS)


def test_another_file_of_the_same_name_is_read_from_the_beginning(
    tmp_path: Path, file: Path
) -> None:
    daemon, journal = StoppingDaemon(), tmp_path / "journal"
    write_lines(file, 2 * BATCH_ITEMS)
    daemon.batches_left = 1
    with pytest.raises(StorageFailed):
        run_of(daemon, file, journal).run()
    file.unlink()
    file.write_text("\n".join(OTHERS))
    daemon.batches_left = 10

    report = run_of(daemon, file, journal).run()

    assert (report.stored, report.continued) == (4, False)


def test_files_whose_names_are_not_utf_8_are_imported_and_known_again(
    tmp_path: Path,
) -> None:
    daemon, journal = StoppingDaemon(), tmp_path / "journal"
    daemon.batches_left = 100
    folder = tmp_path / "notes"
    (folder / os.fsdecode(b"d\xe9r")).mkdir(parents=True)
    names = (b"a.md", b"caf\xe9.md", b"caf\xe8.md", b"d\xe9r/tea.md", b"t\xe9.jsonl")
    for name in names:
        text = '{"content": "a line"}' if name.endswith(b"jsonl") else "Water it."
        (folder / os.fsdecode(name)).write_text(text)
    (folder / os.fsdecode(b"bad\xe9.md")).write_bytes(b"\0\0\0")

    first = run_of(daemon, folder, journal)
    report = first.run()
    for part in first.plan.parts:
        ImportJournal(journal).write(part.source, "end", 9, done=True)

    assert (report.stored, report.known) == (5, 0)
    assert report.problems == [rf"{folder}/bad\xe9.md: it is not text"]
    known = ImportJournal(journal)
    entries = [known.entry(part.source) for part in first.plan.parts]
    assert all(entry and entry.done for entry in entries)
    assert run_of(daemon, folder, tmp_path / "other").run().known == 5
