"""The daemon's side of hooks, over a real store and a home of its own."""

from pathlib import Path

import pytest
from support.agents import Shop

from mnemosyned.agents.hooks.service import HookService
from mnemosyned.service.service import MemoryService
from mnemosyned.storage.sqlite.store import SqliteStore


@pytest.fixture
def hooks(service: MemoryService, tmp_path: Path) -> HookService:
    return HookService(service, home=tmp_path)


@pytest.fixture
def shop(
    hooks: HookService, service: MemoryService, store: SqliteStore, tmp_path: Path
) -> Shop:
    return Shop(hooks, service, store, home=tmp_path)
