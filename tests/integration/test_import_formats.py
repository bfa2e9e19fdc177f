"""The formats of `mnem import`: what is read of each."""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
from contextlib import closing
from datetime import datetime
from io import BytesIO
from pathlib import Path

import pytest
from support.import_personal import calendar
from support.import_reading import ALL, EVERY_SAMPLE, format_of, name_of, read
from support.import_samples import Expected, Sample, note
from support.import_stores import mcp_memory_service, mem0_history

from mnemosyned.errors import InvalidRequest
from mnemosyned.importers.importer import START, BadRecord, ImportItem, ImportSource
from mnemosyned.importers.plan import FORMATS, plan_import
from mnemosyned.verbs.request import instant


def seen(item: ImportItem, expected: Expected) -> Expected:
    """The memory, with those fields left out that the expected one leaves open."""
    memory = item.memory
    written = instant(memory.created_at)
    created_at = written.isoformat() if written else ""
    if written and expected.created_at:
        moment = datetime.fromisoformat(expected.created_at)
        assert written == moment
        created_at = expected.created_at
    return Expected(
        memory.content,
        memory.session if expected.session else "",
        memory.source or "",
        memory.role,
        created_at if expected.created_at else "",
    )


@EVERY_SAMPLE
def test_a_format_is_recognized_and_read(sample: Sample, tmp_path: Path) -> None:
    path = sample.write(tmp_path)

    items, bad = read(path)

    assert format_of(path).name == sample.format
    assert [
        seen(item, expected)
        for item, expected in zip(items, sample.expected, strict=True)
    ] == sample.expected
    assert len(bad) == sample.bad


def test_every_format_is_loaded_by_the_name_it_has() -> None:
    loaded = {entry.name: entry.load().name for entry in FORMATS}

    assert loaded == {name: name for name in loaded}
    assert set(loaded) >= {sample.format for sample in ALL}


@EVERY_SAMPLE
def test_records_have_the_same_ids_when_they_are_read_again(
    sample: Sample, tmp_path: Path
) -> None:
    path = sample.write(tmp_path)

    first, _ = read(path)
    again, _ = read(path)

    ids = [item.memory.id for item in first]
    assert all(ids)
    assert ids == [item.memory.id for item in again]


@EVERY_SAMPLE
def test_reading_goes_on_after_every_position(sample: Sample, tmp_path: Path) -> None:
    path = sample.write(tmp_path)
    whole, _ = read(path)
    ids = [item.memory.id for item in whole]

    for number, item in enumerate(whole, 1):
        left, _ = read(path, item.position)
        left_ids = [item.memory.id for item in left]
        # All that is left is read, and at the most what shares a position with it again.
        assert left_ids[-len(ids[number:]) or len(left_ids) :] == ids[number:]
        assert set(left_ids) <= set(ids)
        places = {each.memory.id: each.place for each in whole}
        assert all(each.place == places[each.memory.id] for each in left)


def test_a_calendar_without_its_library_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "icalendar", None)

    _, bad = read(calendar(tmp_path))

    assert bad[0].reason == (
        f"it needs icalendar; install it with: {sys.executable} -m pip install "
        "'icalendar<8,>=6.1' 'vobject<0.10,>=0.9.9'"
    )


def test_a_database_is_not_changed_by_reading_it(tmp_path: Path) -> None:
    path = mem0_history(tmp_path)
    before = path.read_bytes()

    read(path)

    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_long_note_is_split_at_its_headings(tmp_path: Path) -> None:
    path = tmp_path / "Garden.md"
    body = "\n\n".join(
        f"## Bed {bed}\n\n" + "Tomatoes need water. " * 100 for bed in range(1, 5)
    )
    path.write_text(f"# Garden\n\nIntro\n\n```\n# no heading\n```\n\n{body}")

    items, _ = read(path)

    contents = [item.memory.content for item in items]
    assert len(contents) == 4
    assert contents[1].startswith("Garden\n\n## Bed 2\n")
    assert all(len(content) < 4_200 for content in contents)
    assert all(item.memory.metadata["title"] == "Garden" for item in items)
    assert len({item.memory.id for item in items}) == 4


@pytest.mark.parametrize(
    "sample",
    [each for each in ALL if each.format not in {"git", "opencode-files"}],
    ids=name_of,
)
def test_a_stream_is_read_as_the_file_is_or_is_to_be_saved_to_one(
    sample: Sample, tmp_path: Path
) -> None:
    path = sample.write(tmp_path)
    stream = ImportSource.of_stream(BytesIO(path.read_bytes()), path)
    is_packed = path.suffix in {".db", ".zip"}
    if is_packed or sample.format in {"transcript", "notes", "shell"}:
        with pytest.raises(InvalidRequest, match="save it to one first"):
            plan_import([stream], sample.format)
        return

    (part,) = plan_import([stream], sample.format).parts
    records = list(part.format.read(stream, START))

    items, bad = read(path)
    assert [record for record in records if isinstance(record, ImportItem)] == items
    assert [record for record in records if isinstance(record, BadRecord)] == bad


def test_a_stream_next_to_a_file_is_read_whole(tmp_path: Path) -> None:
    lines = [json.dumps({"content": f"number {n}"}) for n in range(20_000)]
    file = tmp_path / "a.jsonl"
    file.write_text('{"content": "a", "created_at": "2026-03-16T09:00:00Z"}')
    stream = ImportSource.of_stream(BytesIO("\n".join(lines).encode()))

    plan = plan_import([stream, ImportSource.of_path(file)], None)
    counts = [len(list(part.format.read(part.source, START))) for part in plan.parts]

    assert counts == [1, 20_000]


def test_a_note_is_the_same_by_a_link_to_its_folder(tmp_path: Path) -> None:
    (tmp_path / "garden").mkdir()
    (tmp_path / "garden" / "Beds.md").write_text("Water them")
    (tmp_path / "link").symlink_to("garden")

    (direct,), _ = read(tmp_path / "garden" / "Beds.md")
    (linked,), _ = read(tmp_path / "link" / "Beds.md")

    assert linked.memory.id == direct.memory.id
    assert linked.memory.session == "notes:garden"


def test_tags_of_notes_and_stores_are_tags(tmp_path: Path) -> None:
    (note_item,), _ = read(note(tmp_path))
    (row, *_), _ = read(mcp_memory_service(tmp_path))

    assert note_item.memory.tags == ["trip", "sea", "booked"]
    assert row.memory.tags == ["style", "code"]


def test_a_database_with_a_log_that_nobody_has_open_is_read_whole(
    tmp_path: Path,
) -> None:
    path = mem0_history(tmp_path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(
            "UPDATE history SET new_memory = 'Likes water' WHERE id = '3'"
        )
        connection.commit()
        copies = tmp_path / "crashed"
        copies.mkdir()
        for suffix in ("", "-wal"):
            shutil.copy(f"{path}{suffix}", copies)

    items, bad = read(copies / path.name)

    assert ([item.memory.content for item in items], bad) == (["Likes water"], [])
    assert len(list(copies.iterdir())) == 2


def test_a_vault_that_is_kept_in_git_is_read_as_notes(tmp_path: Path) -> None:
    note(tmp_path)
    (tmp_path / "Vault" / ".git").mkdir()

    plan = plan_import([ImportSource.of_path(tmp_path / "Vault")], None)

    assert [part.format.name for part in plan.parts] == ["notes"]
