"""The lines of an export put into groups that are stored together."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mnemosyned.importers.formats import json_files
from mnemosyned.importers.formats.json_files import ExportFile
from mnemosyned.importers.importer import BadRecord, ExportGroup, ImportSource

HEADER = {"record": "header", "format": "mnemosyned-export", "version": 1}


def episode(id: str, originals: int) -> dict[str, Any]:
    return {"record": "episode", "id": id, "originals": originals}


def memory(id: str, in_episode: str | None = None) -> dict[str, Any]:
    return {"record": "memory", "id": id, "episode": in_episode}


def written(file: Path, *records: dict[str, Any], whole: bool = True) -> ImportSource:
    lines = [json.dumps(record).encode() + b"\n" for record in (HEADER, *records)]
    if whole:
        footer = {
            "record": "footer",
            "counts": Counter(json.loads(line)["record"] for line in lines),
            "sha256": hashlib.sha256(b"".join(lines)).hexdigest(),
        }
        lines.append(json.dumps(footer).encode() + b"\n")
    file.write_bytes(b"".join(lines))
    return ImportSource.of_path(file)


def read(source: ImportSource, position: str = "") -> tuple[list[list[str]], list[str]]:
    """The ids in each group, and the reasons of what is bad."""
    groups: list[list[str]] = []
    reasons: list[str] = []
    for record in ExportFile().read(source, position):
        if isinstance(record, ExportGroup):
            lines = map(json.loads, record.data.splitlines())
            groups.append([line.get("id", line["record"]) for line in lines])
        elif isinstance(record, BadRecord):
            reasons.append(record.reason)
    return groups, reasons


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "memory.jsonl"


def test_an_episode_is_stored_with_its_originals(file: Path) -> None:
    source = written(
        file, episode("e", 2), memory("a", "e"), memory("b", "e"), memory("c")
    )

    assert read(source) == ([["e", "a", "b"], ["c"], ["footer"]], [])


def test_of_a_cut_episode_the_originals_are_stored(file: Path) -> None:
    source = written(file, episode("e", 2), memory("a", "e"), whole=False)

    groups, reasons = read(source)

    assert groups == [["a"]]
    assert reasons == [
        "the summary lacks originals and is left out",
        "the export was cut off here: it has no last line",
    ]


def test_a_large_episode_is_stored_in_parts(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_files, "GROUP_LINES_MAX", 2)
    originals = [memory(id, "e") for id in "abcd"]
    source = written(file, episode("e", 5), *originals, whole=False)

    groups, reasons = read(source)

    assert groups == [["e", "a"], ["b", "c"], ["d"]]
    assert reasons == ["the export was cut off here: it has no last line"]


def test_reading_goes_on_after_a_group_and_still_checks_the_whole(file: Path) -> None:
    source = written(file, memory("a"), memory("b"), memory("c"))
    records = list(ExportFile().read(source, ""))
    first = records[0]
    assert isinstance(first, ExportGroup)

    assert read(source, first.position) == ([["b"], ["c"], ["footer"]], [])

    file.write_bytes(file.read_bytes().replace(b'"a"', b'"z"'))
    _, reasons = read(source, first.position)
    assert reasons == ["lines were changed since the export: its hash differs"]


def test_a_line_that_is_missing_is_noticed(file: Path) -> None:
    source = written(file, memory("a"), memory("b"))
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([lines[0], *lines[2:]]))

    _, reasons = read(source)

    assert reasons == [
        "lines are missing or were added: the counts in the last line differ"
    ]


def test_another_version_is_named(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_files, "VERSION", 2)
    source = written(file, memory("a"))

    groups, reasons = read(source)

    assert groups == []
    assert reasons == ["the export is of version 1; this program reads 2"]
