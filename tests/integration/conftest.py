"""The memory that most tests of this folder start from."""

import pytest
from support.fakes import FakeClock, FakeSummarizer
from support.services import Lab

from mnemosyned.config.settings import SettingsInForce
from mnemosyned.service.service import MemoryService
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.storage.sqlite.store import SqliteStore


@pytest.fixture
def lab(
    *,
    service: MemoryService,
    store: SqliteStore,
    cycle: SleepCycle,
    summarizer: FakeSummarizer,
    clock: FakeClock,
    settings: SettingsInForce,
) -> Lab:
    return Lab(service, store, cycle, summarizer, clock, settings)
