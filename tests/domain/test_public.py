"""What `mnemosyned` itself hands out, and what loading that costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import mnemosyned

ENGINE = ("sqlite3", "msgspec", "structlog", "apscheduler", "mnemosyned.service")
PURE = ["ContextManager", "MemoryConsolidator", "TokenBudget", "RoundsPolicy", "AutoPolicy"]


@pytest.mark.parametrize("name", mnemosyned.__all__)
def test_every_public_name_can_be_loaded(name: str) -> None:
    assert getattr(mnemosyned, name).__name__ == name


def test_the_pure_part_loads_neither_the_engine_nor_anything_that_must_be_installed() -> None:
    script = (
        "import sys, mnemosyned\n"
        "assert not [name for name in sys.modules if name.startswith('mnemosyned.')]\n"
        f"from mnemosyned import {', '.join(PURE)}\n"
        f"assert not sys.modules.keys() & set({ENGINE!r})"
    )

    subprocess.run([sys.executable, "-c", script], check=True)
