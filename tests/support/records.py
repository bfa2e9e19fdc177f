"""Memories for the rules that summarize records, and what a readable line must be."""

import re
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from zoneinfo import ZoneInfo

from mnemosyned.memory.values import MemoryRecord
from mnemosyned.summary.records.lines import RecordLine
from mnemosyned.summary.records.summarize import summarize_records

MORNING = datetime(2026, 3, 10, 8, tzinfo=UTC)
SAMPLES = Path(__file__).parent / "datasets" / "records"
VIENNA = ZoneInfo("Europe/Vienna")
_HASH = re.compile(
    r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,}\b|\b0x[0-9a-f]{6,}\b"
)
_BARE_VALUES = re.compile(r"[\d\s.,:;/%€$-]+")


def remembered(*contents: str) -> list[MemoryRecord]:
    """Return memories a minute apart."""
    return [
        MemoryRecord(
            id=str(number),
            content=content,
            created_at=MORNING + timedelta(minutes=number),
        )
        for number, content in zip(count(), contents, strict=False)
    ]


def record_lines(*contents: str) -> tuple[RecordLine, ...]:
    """Return the lines of memories that must all be records; each must be readable."""
    summary = summarize_records(remembered(*contents), zone=VIENNA)
    assert summary.prose == ()
    for line in summary.lines:
        assert_readable(line)
    return summary.lines


def record_texts(*contents: str) -> list[str]:
    """Return the texts of the lines of memories that must all be records."""
    return [line.text for line in record_lines(*contents)]


def assert_readable(line: RecordLine) -> None:
    """Check what holds for every line: a whole sentence without hashes, on one line."""
    assert line.text.endswith((".", "!", "?", "…", "”", "。")), line.text
    assert line.text == " ".join(line.text.split())
    assert not _BARE_VALUES.fullmatch(line.text)
    for text in (line.text, *line.index_terms):
        assert not _HASH.search(text), text
    assert 0 <= line.worth <= 1
    assert line.memories >= 1


def record_samples(kind: str) -> list[tuple[str, list[str]]]:
    """Return the samples of a kind: each record and the lines it must become.

    In the file a line `===` stands before each record and `--> ` before each line expected.
    """
    samples = []
    for block in _blocks(kind):
        content, *expected = block.split("\n--> ")
        samples.append((content, expected))
    assert len(samples) >= 8
    return samples


def prose_samples() -> list[str]:
    """Return texts that no rule may take."""
    return _blocks("prose")


def _blocks(name: str) -> list[str]:
    text = (SAMPLES / f"{name}.txt").read_text(encoding="utf-8")
    return text.removesuffix("\n").split("\n===\n")[1:]
