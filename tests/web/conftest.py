"""A memory, and a visitor of its pages without a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from web.visitor import Visitor, new_memory

from mnemosyned import Memory


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with new_memory(tmp_path) as opened:
        yield opened


@pytest.fixture
def visitor(memory: Memory) -> Visitor:
    return Visitor.let_in(memory)
