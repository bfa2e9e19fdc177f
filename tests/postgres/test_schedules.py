"""The schedules of several daemons: what each would do by itself is done once."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest
from e2e.conftest import Start, start
from e2e.daemons import Daemon, eventually

__all__ = ["start"]

pytestmark = pytest.mark.postgres

DAEMONS = 3
GROUPS = 40
CYCLES = 3
"""So many cycles of each daemon, at the least, find nothing left to do."""
FAST = {
    "MNEMOSYNE_AUTO_SLEEP": "true",
    "MNEMOSYNE_SLEEP_INTERVAL_MINUTES": "0.01",
    "MNEMOSYNE_SLEEP_TICK_S": "0.2",
    "MNEMOSYNE_WATCH_SETTLE_S": "0",
}


@pytest.fixture
def daemons(start: Start, dsn: str) -> list[Daemon]:
    """Daemons that sleep by a fast clock."""
    return [start("--database", dsn, **FAST) for _ in range(DAEMONS)]


def rows(dsn: str, sql: str) -> list[tuple[Any, ...]]:
    """What a statement finds, read without the product."""
    with psycopg.connect(dsn) as connection:
        found: list[tuple[Any, ...]] = connection.execute(sql.encode()).fetchall()
        return found


def test_cycles_and_roll_ups_by_schedule_are_done_once(
    daemons: Sequence[Daemon], dsn: str
) -> None:
    memories = [
        {
            "content": f"Step {number} of matter {group} was done by Huber at the mill.",
            "session": f"s{group}",
            "created_at": f"2026-01-{1 + group % 20:02}T10:{number:02}:00Z",
        }
        for group in range(GROUPS)
        for number in range(4)
    ]
    assert daemons[0].post("remember_many", memories=memories).status == 200
    eventually(
        lambda: rows(dsn, "SELECT 1 FROM episode WHERE level = 3"), "a month came about"
    )
    before = [len(daemon.events("cycle_finished")) for daemon in daemons]
    eventually(
        lambda: all(
            len(daemon.events("cycle_finished") + daemon.events("cycle_skipped"))
            >= count + CYCLES
            for daemon, count in zip(daemons, before, strict=True)
        ),
        "every daemon looked again, and again",
    )

    logged = rows(
        dsn,
        "SELECT l.level, coalesce(e.period_from::text, e.session_id) "
        "FROM consolidation_log AS l JOIN episode AS e ON e.owner = l.owner "
        "AND e.id = l.episode_id",
    )
    assert set(Counter(logged).values()) == {1}
    assert len(rows(dsn, "SELECT 1 FROM consolidation_log")) == len(logged)
    levels = Counter(level for level, _ in logged)
    assert (levels[0], levels[1]) == (GROUPS, 20)
    assert levels == dict(
        rows(dsn, "SELECT level, count(*) FROM episode GROUP BY level")
    )


def test_a_folder_that_several_daemons_follow_is_stored_once(
    daemons: Sequence[Daemon], dsn: str, tmp_path: Path
) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    for daemon in daemons:
        added = daemon.mnem("watch", str(folder))
        assert added.returncode == 0, added.stderr
    for number in range(5):
        (folder / f"{number}.md").write_text(f"# Mill\n\nNote {number} of the mill.\n")
    eventually(
        lambda: len(rows(dsn, "SELECT 1 FROM memory")) >= 5, "the notes were read"
    )
    time.sleep(1.0)  # as long as others might store them again

    stored = Counter(content for (content,) in rows(dsn, "SELECT content FROM memory"))
    assert set(stored.values()) == {1}
