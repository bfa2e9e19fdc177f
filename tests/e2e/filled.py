"""A daemon that has something of everything."""

from __future__ import annotations

import pytest
from e2e.daemons import Daemon


@pytest.fixture(scope="module")
def filled(shared: Daemon) -> Daemon:
    """A daemon with an episode of three originals, one working memory and a row in the log."""
    for number in range(3):
        shared.post(
            "remember", id=f"old-{number}", content=f"Old news, number {number}."
        )
    shared.post("sleep", force=True)
    shared.post("remember", id="tea", content="Tea at four.", metadata={"pot": 1})
    return shared
