"""The formats of `mnem import`: what is read of each, and of broken files of each."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import sys
import zipfile
from contextlib import closing
from datetime import datetime
from io import BytesIO
from pathlib import Path
from random import Random

import msgspec
import pytest
from support.import_personal import PERSONAL, calendar
from support.import_samples import (
    SAMPLES,
    Expected,
    Sample,
    chatgpt_conversation,
    chatgpt_zip,
    claude_zip,
    note,
)
from support.import_stores import STORES, mcp_memory_service, mem0_history

from mnemosyned.importers.formats.chats.chatgpt import ChatGptExport
from mnemosyned.importers.importer import START, Bad, Format, Item, Source
from mnemosyned.importers.plan import plan_import
from mnemosyned.importers.reading.sqlite import SqliteLimits, SqliteRefused, reading
from mnemosyned.importers.registry import recognized
from mnemosyned.verbs.request import instant

EVERY_SAMPLE = pytest.mark.parametrize(
    "sample",
    [*SAMPLES, *STORES, *PERSONAL],
    ids=lambda sample: f"{sample.format}-{sample.write.__name__}",
)


def format_of(path: Path) -> Format:
    format = recognized(Source.named(path))
    assert format, f"{path} is not recognized"
    return format


def read(path: Path, position: str = START) -> tuple[list[Item], list[Bad]]:
    records = list(format_of(path).read(Source.named(path), position))
    return (
        [record for record in records if isinstance(record, Item)],
        [record for record in records if isinstance(record, Bad)],
    )


def seen(item: Item, expected: Expected) -> Expected:
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


def damages(data: bytes) -> dict[str, bytes]:
    """A file's bytes, broken in many ways."""
    return {
        "empty": b"",
        "cut off": data[: len(data) * 2 // 3],
        "cut at once": data[:20],
        "garbage in it": data[: len(data) // 2] + b"\xff\xfe\x00\x81" * 50 + data[len(data) // 2 :],
        "all zeros": bytes(len(data)),
        "doubled": data + data,
        "with a mark": b"\xef\xbb\xbf" + data,
        "utf-16": data.decode("latin-1").encode("utf-16"),
        "latin-1": data.decode("utf-8", "replace").encode("latin-1", "replace"),
        "old line ends": data.replace(b"\n", b"\r\n"),
        "brackets": b"[" * 100_000 + data,
    }  # fmt: skip


@EVERY_SAMPLE
def test_broken_files_are_reported_and_never_a_crash(
    sample: Sample, tmp_path: Path
) -> None:
    path = sample.write(tmp_path)
    files = (
        [path]
        if path.is_file()
        else [each for each in path.rglob("*") if each.is_file()]
    )
    if sample.format == "git":  # git reads what is in its objects
        files = [path / ".git" / "HEAD", path / ".git" / "config"]
    format = format_of(path)
    ends: set[str] = set()
    for file in files:
        data = file.read_bytes()
        for name, damaged in damages(data).items():
            file.chmod(0o644)
            file.write_bytes(damaged)
            for record in format.read(Source.named(path), START):
                assert isinstance(record, Item | Bad)
                assert record.place
                ends.add(name)
            recognized(Source.named(path))
        file.write_bytes(data)
    assert ends, "nothing was read of any of them"


# ------------------------------------------------------------------- hostile


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name", ["a.jsonl", "a.json", ".bash_history", "a.log", "a.mbox", "a.ics"]
)
def test_a_line_of_20_megabytes_does_not_hide_what_follows(
    name: str, tmp_path: Path
) -> None:
    """Of JSON that is one document, the line is a part like any other."""
    giant = b"x" * (20 << 20)
    texts = {
        "a.jsonl": b'{"content": "%s"}\n{"content": "last"}\n' % giant,
        "a.json": b'[{"content": "%s"}, {"content": "last"}]' % giant,
        ".bash_history": b"%s\nlast\n" % giant,
        "a.log": b"commit 1111111\nAuthor: A <a>\nDate: 2026-03-16 09:00:00 +0100\n\n    %s\n"
        b"    last\n" % giant,
        "a.mbox": b"From a Mon Mar 16 09:00:00 2026\nSubject: a\n\n%s\n\n"
        b"From a Mon Mar 16 09:00:00 2026\nSubject: last\n\n" % giant,
        "a.ics": b"BEGIN:VCALENDAR\nBEGIN:VEVENT\nDESCRIPTION:%s\nEND:VEVENT\n"
        b"BEGIN:VEVENT\nSUMMARY:last\nEND:VEVENT\n" % giant,
    }
    path = tmp_path / name
    path.write_bytes(texts[name])

    items, _ = read(path)

    assert items[-1].memory.content.endswith("last")


def test_an_archive_that_unpacks_to_gigabytes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.zip"
    head = json.dumps([chatgpt_conversation()]).encode()[:-1] + b","
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("conversations.json", "w", force_zip64=True) as member,
    ):
        member.write(head)
        for _ in range(70):
            member.write(b" " * (1 << 20))

    records = list(ChatGptExport().read(Source.named(path), START))

    (refused,) = records
    assert isinstance(refused, Bad)
    assert "which no export does" in refused.reason


def test_an_archive_that_is_cut_off_gives_no_items_and_a_reason(tmp_path: Path) -> None:
    path = chatgpt_zip(tmp_path)
    path.write_bytes(path.read_bytes()[:-30])

    records = list(ChatGptExport().read(Source.named(path), START))

    assert [type(record) for record in records] == [Bad]


def test_a_calendar_without_its_library_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "icalendar", None)

    _, bad = read(calendar(tmp_path))

    assert bad[0].reason == (
        "it needs icalendar; install it with: pip install 'mnemosyned[personal]'"
    )


def test_a_bad_zone_and_a_bad_entry_of_a_calendar_are_named_and_the_others_read(
    tmp_path: Path,
) -> None:
    """A zone named like a folder of zones makes the library open that folder."""
    event = "BEGIN:VEVENT\nSUMMARY:{}\nDTSTART;TZID={}:20260316T100000\nEND:VEVENT\n"
    path = tmp_path / "a.ics"
    path.write_text(
        "BEGIN:VCALENDAR\nBEGIN:VTIMEZONE\nTZID:Here\nBEGIN:STANDARD\nDTSTART:never\n"
        "END:STANDARD\nEND:VTIMEZONE\n"
        + event.format("one", "Europe")
        + event.format("two", "Here")
    )

    items, bad = read(path)

    assert [item.memory.content.split("\n")[0] for item in items] == ["two"]
    assert [record.place for record in bad] == [f"{path}, entry 1", f"{path}, entry 2"]
    assert "'never'" in bad[0].reason
    assert "Is a directory" in bad[1].reason


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


def test_a_front_matter_of_aliases_is_refused_and_the_note_kept(tmp_path: Path) -> None:
    path = tmp_path / "bomb.md"
    path.write_text("---\na: &a [1]\nb: [*a, *a]\n---\nWords\n")

    items, bad = read(path)

    assert "aliases are not read" in bad[0].reason
    assert "Words" in items[0].memory.content


def test_a_folder_with_loops_and_devices_is_read_as_far_as_it_has_files(
    tmp_path: Path,
) -> None:
    note(tmp_path)
    (tmp_path / "Vault" / "again").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "Vault" / "self.md").symlink_to("self.md")
    os.mkfifo(tmp_path / "Vault" / "pipe.md")
    deleted = tmp_path / "Vault" / ".trash" / "old.md"
    deleted.parent.mkdir()
    deleted.write_text("Old")

    plan = plan_import([Source.named(tmp_path)], None)

    assert [part.source.path.name for part in plan.parts] == ["Ferry.md"]


def test_a_stream_next_to_a_file_is_read_whole(tmp_path: Path) -> None:
    lines = [json.dumps({"content": f"number {n}"}) for n in range(20_000)]
    file = tmp_path / "a.jsonl"
    file.write_text('{"content": "a", "created_at": "2026-03-16T09:00:00Z"}')
    stream = Source.of_stream(BytesIO("\n".join(lines).encode()))

    plan = plan_import([stream, Source.named(file)], None)
    counts = [len(list(part.format.read(part.source, START))) for part in plan.parts]

    assert counts == [1, 20_000]


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


def test_a_giant_value_in_a_database_is_refused(tmp_path: Path) -> None:
    path = mem0_history(tmp_path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE history SET new_memory = hex(zeroblob(40 << 20))")
        connection.commit()

    items, bad = read(path)

    assert items == []
    assert "string or blob too big" in bad[0].reason


def test_a_query_without_end_in_a_database_is_given_up(tmp_path: Path) -> None:
    endless = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT i FROM n"
    )
    path = tmp_path / "views.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"CREATE VIEW numbers AS {endless}")

    limits = SqliteLimits(steps=100_000, steps_at_a_time=1_000)
    with (
        pytest.raises(SqliteRefused, match="interrupted"),
        reading(path, limits) as database,
    ):
        database.execute("SELECT max(i) FROM numbers").fetchall()


def test_a_vault_that_is_kept_in_git_is_read_as_notes(tmp_path: Path) -> None:
    note(tmp_path)
    (tmp_path / "Vault" / ".git").mkdir()

    plan = plan_import([Source.named(tmp_path / "Vault")], None)

    assert [part.format.name for part in plan.parts] == ["notes"]


ODD: list[object] = [
    None,
    True,
    -1,
    1e308,
    10**30,
    "",
    [],
    {},
    [None],
    {"a": 1},
    "\ud800",
]


def odd(value: object, random: Random) -> object:
    """JSON of the same shape, in which some values are of another kind and some are missing."""
    if random.random() < 0.06:
        return random.choice(ODD)
    if isinstance(value, dict):
        return {k: odd(v, random) for k, v in value.items() if random.random() > 0.02}
    return [odd(each, random) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    "sample",
    [
        each
        for each in SAMPLES
        if each.format in {"chatgpt", "claude", "transcript"}
        and each.write not in {chatgpt_zip, claude_zip}
    ],
    ids=lambda sample: sample.write.__name__,
)
def test_values_of_another_kind_are_reported_and_never_a_crash(
    sample: Sample, tmp_path: Path
) -> None:
    path = sample.write(tmp_path)
    format, random = format_of(path), Random(7)
    lines = path.read_text("utf-8", "replace").splitlines()
    values = [json.loads(line) for line in lines if line.endswith(("}", "]"))]
    for _ in range(40):
        path.write_text("\n".join(json.dumps(odd(each, random)) for each in values))
        recognized(Source.named(path))
        records = list(format.read(Source.named(path), START))
        items = [record for record in records if isinstance(record, Item)]
        assert all(isinstance(record, Item | Bad) for record in records)
        assert all(msgspec.json.encode(item.memory) for item in items)


def test_a_note_of_spaces_and_marks_takes_no_longer_than_others(tmp_path: Path) -> None:
    path = tmp_path / "hostile.md"
    path.write_text("# " + " #" * 200_000 + "x\n" + "# " + " " * 400_000 + "x\n")

    items, bad = read(path)

    assert items
    assert bad == []
