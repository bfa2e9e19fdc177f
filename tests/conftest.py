"""The parts most tests start from: a clock, a summariser and an open store."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes import FakeClock, FakeSummarizer

from mnemosyned.paths import shipped
from mnemosyned.storage.sqlite import SqliteStore, open_store


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def summarizer() -> FakeSummarizer:
    return FakeSummarizer()


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def store(database: Path) -> Iterator[SqliteStore]:
    with open_store(database, migrations=shipped("migrations")) as opened:
        yield opened
