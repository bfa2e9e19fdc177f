"""A service with vectors of an embedder that a test made."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from support.fakes import FakeEmbedder
from support.services import make_service
from support.vector_service import WAIT_S, Open

from mnemosyned.config.settings import SettingsInForce
from mnemosyned.models import encoder_file
from mnemosyned.models.encoder_file import FILE_NAME
from mnemosyned.models.sentence_encoder import SentenceEncoder
from mnemosyned.search.vectors import embedding, indexer as module
from mnemosyned.search.vectors.indexer import VectorIndexer
from mnemosyned.service.forgetting import RetentionService
from mnemosyned.service.service import MemoryService
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.storage.sqlite.store import SqliteStore


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with the file of the built-in encoder: made once, in seconds, for all workers."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "encoder"
    folder.mkdir(exist_ok=True)
    program = [sys.executable, "-m", encoder_file.__name__, str(folder / FILE_NAME)]
    subprocess.run(program, check=True)
    assert {file.name for file in folder.iterdir()} == {FILE_NAME, "encoder.lock"}
    return folder


@pytest.fixture(scope="session")
def encoder(cache: Path) -> Iterator[SentenceEncoder]:
    """The built-in encoder, loaded once: it keeps nothing of a text but the vectors of the last few."""
    with pytest.MonkeyPatch.context() as patch, closing(SentenceEncoder()) as encoder:
        patch.setenv("CACHE_DIRECTORY", str(cache))
        encoder.encode(["load"])
        yield encoder


@pytest.fixture
def gather_s() -> float:
    return 0.0


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch, gather_s: float) -> None:
    """The vectors begin without delay."""
    monkeypatch.setattr(module, "START_AFTER_S", 0.0)
    monkeypatch.setattr(module, "GATHER_S", gather_s)


@pytest.fixture
def open_service(
    store: SqliteStore,
    cycle: SleepCycle,
    retention: RetentionService,
    settings: SettingsInForce,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Open]:
    """The service with vectors of an embedder; what was opened before is closed."""
    monkeypatch.setattr(embedding, "RETRY_S", 0.01)
    stack = ExitStack()

    def make(
        embedder: FakeEmbedder,
        *,
        wait_s: float = WAIT_S,
        pause: Callable[[threading.Event], None] | None = None,
    ) -> MemoryService:
        stack.close()
        vectors = VectorIndexer(
            store=store.vectors,
            embedder=embedder,
            wait_s=wait_s,
            similarity_min=0.6,
            pause=pause,
        )
        stack.enter_context(vectors)
        retention.on_removal = vectors.note_deletions
        return make_service(store, cycle, retention, settings, vectors=vectors)

    with closing(stack):
        yield make
