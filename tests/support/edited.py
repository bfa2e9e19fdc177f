"""A memory that tests edit."""

from __future__ import annotations

import pytest

from mnemosyned.service.service import MemoryService
from mnemosyned.verbs.memories import Remember


@pytest.fixture
def kettle(service: MemoryService) -> str:
    """A memory that is edited."""
    service.call(
        Remember("The kettle is at 10.0.0.7", id="m", session="home", source="notes")
    )
    return "m"
