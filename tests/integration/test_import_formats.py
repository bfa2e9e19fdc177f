"""The formats of `mnem import`: what is read of each, and of broken files of each."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest
from support.import_samples import SAMPLES, Expected, Sample

from mnemosyned.importers.importer import START, Bad, Format, Item, Source
from mnemosyned.importers.registry import recognized

EVERY_SAMPLE = pytest.mark.parametrize(
    "sample", SAMPLES, ids=lambda sample: f"{sample.format}-{sample.write.__name__}"
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
    created_at = memory.created_at.isoformat() if memory.created_at else ""
    if memory.created_at and expected.created_at:
        moment = datetime.fromisoformat(expected.created_at)
        assert memory.created_at == moment
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
