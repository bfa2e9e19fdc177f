"""Models made here, and what loads them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.gguf import canned_model
from support.llama import ENDLESS, SENTENCE, Maker
from support.processes import child_pids

from mnemosyned.config.settings import LlmConfig
from mnemosyned.models.llama import LlamaModel


@pytest.fixture
def load() -> Iterator[Maker]:
    """Makes models that end with the test; no process outlives it."""
    before = child_pids()
    made: list[LlamaModel] = []

    def make(path: Path, **options: Any) -> LlamaModel:  # noqa: ANN401
        settings = LlmConfig(threads=1, **options)
        made.append(LlamaModel(model_path=path, settings=settings))
        return made[-1]

    yield make
    for model in made:
        model.close()
    assert child_pids() <= before


@pytest.fixture
def canned(tmp_path: Path) -> Path:
    return canned_model(tmp_path / "canned.gguf", SENTENCE)


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    """A model that goes on for minutes."""
    return canned_model(
        tmp_path / "endless.gguf", ENDLESS, endless=True, context=100_000
    )
