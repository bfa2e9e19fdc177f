"""Reading of the samples of `mnem import`."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.import_chats import CHATS
from support.import_personal import PERSONAL
from support.import_samples import PLAIN, Sample
from support.import_stores import STORES

from mnemosyned.importers.importer import (
    START,
    BadRecord,
    ImportFormat,
    ImportItem,
    ImportSource,
)
from mnemosyned.importers.plan import recognize_format

ALL = [*PLAIN, *CHATS, *PERSONAL, *STORES]


def name_of(sample: Sample) -> str:
    return f"{sample.format}-{sample.write.__name__}"


EVERY_SAMPLE = pytest.mark.parametrize("sample", ALL, ids=name_of)


def format_of(path: Path) -> ImportFormat:
    format = recognize_format(ImportSource.of_path(path))
    assert format, f"{path} is not recognized"
    return format


def read(path: Path, position: str = START) -> tuple[list[ImportItem], list[BadRecord]]:
    records = list(format_of(path).read(ImportSource.of_path(path), position))
    return (
        [record for record in records if isinstance(record, ImportItem)],
        [record for record in records if isinstance(record, BadRecord)],
    )
