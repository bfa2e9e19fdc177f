"""Many daemons that sleep over one memory while they are killed: nothing is lost or done twice.

The long form: DAEMONS=12 KILLS=200 DROPS=20 MEMORIES=24000.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import psycopg
import pytest
from e2e.daemons import Daemon, eventually
from postgres.fleet import (
    ITEMS,
    Fleet,
    SlowModel,
    end_connections,
    group_memories,
    setting,
)
from support.endpoints import serving
from support.seeds import seed_of

pytestmark = pytest.mark.postgres

DAEMONS = setting("DAEMONS", 4)
KILLS = setting("KILLS", 8)
DROPS = setting("DROPS", 3)
GROUPS = setting("MEMORIES", 1_200) // ITEMS
SEED = seed_of("SEED")
WRITING_S = 0.03
REQUESTS_BETWEEN = 4
"""Summaries that may be begun between two faults, at most."""
FINISHED_S = 60.0
"""The most that a cycle takes to begin after the last fault, with the work that is left."""
SETTINGS = {
    "MNEMOSYNE_AUTO_SLEEP": "true",
    "MNEMOSYNE_SLEEP_INTERVAL_MINUTES": f"{DAEMONS / 240:.3f}",
    "MNEMOSYNE_SLEEP_ON_SHUTDOWN": "false",
    "MNEMOSYNE_WM_MAX": "1000000",
}


def test_kills_and_lost_connections_during_sleep_lose_nothing_and_double_nothing(
    tmp_path: Path, dsn: str
) -> None:
    chance = random.Random(SEED)
    print(f"SEED={SEED}")
    model = SlowModel(WRITING_S)
    with (
        serving(model) as endpoint,
        Fleet(
            tmp_path,
            dsn=dsn,
            endpoint=f"http://127.0.0.1:{endpoint.port}",
            count=DAEMONS,
            settings=SETTINGS,
        ) as fleet,
    ):
        remember_groups(fleet.daemon())
        kills, dropped = inflict(fleet, model, dsn, chance)
        fleet.wait_started()
        waiting = "SELECT count(*) FROM fresh"
        eventually(
            lambda: value(dsn, waiting) == 0,
            "the daemons finished what was left",
            timeout_s=FINISHED_S + GROUPS * WRITING_S * 4,
        )
        eventually(lambda: claims(dsn) == 0, "no claim was left behind")
        codes = [daemon.stop() for daemon in fleet.daemons]
        print(
            f"{kills} kills, {dropped} connections dropped, {GROUPS} groups, "
            f"{model.begun.total() - GROUPS} summaries begun for nothing"
        )

    assert (kills, dropped >= DROPS) == (KILLS, True)
    assert codes == [0] * DAEMONS
    assert_each_memory_is_in_one_episode(dsn)
    assert set(model.begun) == set(range(GROUPS))
    assert model.begun.total() - GROUPS <= KILLS


def remember_groups(daemon: Daemon) -> None:
    """Fill the memory; all of it is old enough to be consolidated."""
    for first in range(0, GROUPS, 50):
        groups = range(first, min(first + 50, GROUPS))
        memories = [memory for group in groups for memory in group_memories(group)]
        assert daemon.post("remember_many", memories=memories).status == 200


def inflict(
    fleet: Fleet, model: SlowModel, dsn: str, chance: random.Random
) -> tuple[int, int]:
    """Kill daemons and end connections while a model writes; how often each was done."""
    faults = ["kill"] * KILLS + ["drop"] * DROPS
    chance.shuffle(faults)
    kills = dropped = 0
    for fault in faults:
        asker = model.asker(after=chance.randint(1, REQUESTS_BETWEEN))
        if fault == "drop":
            dropped += end_connections(dsn, claimed=chance.random() < 0.5)
            continue
        # Mostly the one that sleeps, and now and then one that waits for its turn.
        names = [asker] * 3 + fleet.names
        while not fleet.kill(chance.choice(names)):
            names = fleet.names
        kills += 1
    return kills, dropped


def assert_each_memory_is_in_one_episode(dsn: str) -> None:
    """Read the tables: no memory lost or placed twice, no group promoted twice."""
    everything = sorted(
        str(memory["id"]) for group in range(GROUPS) for memory in group_memories(group)
    )
    placed = rows(
        dsn,
        "SELECT m.id, m.session_id, e.id FROM memory AS m "
        "JOIN placed AS p USING (owner, seq) "
        "JOIN episode AS e ON e.owner = p.owner AND e.seq = p.episode_seq",
    )
    assert sorted(id for id, _, _ in placed) == everything
    assert value(dsn, "SELECT count(*) FROM memory") == len(everything)
    episode_of = {(session, episode) for _, session, episode in placed}
    assert len(episode_of) == GROUPS
    logged = rows(
        dsn,
        "SELECT session_id, episode_id FROM consolidation_log "
        "WHERE level = 0 AND status = 'promoted'",
    )
    assert Counter(logged) == Counter(episode_of)
    assert value(dsn, "SELECT count(*) FROM episode WHERE level = 0") == GROUPS
    counted = "SELECT working_count, archive_count, archive_characters FROM owner"
    held = (
        "SELECT (SELECT count(*) FROM fresh), count(*), sum(length(m.content)) "
        "FROM placed AS p JOIN memory AS m USING (owner, seq)"
    )
    assert rows(dsn, counted) == rows(dsn, held)


def claims(dsn: str) -> int:
    """Locks that a daemon holds to sleep."""
    return value(
        dsn, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted"
    )


def rows(dsn: str, sql: str) -> list[tuple[Any, ...]]:
    """What a statement finds, read without the product."""
    with psycopg.connect(dsn) as connection:
        found: list[tuple[Any, ...]] = connection.execute(sql.encode()).fetchall()
        return found


def value(dsn: str, sql: str) -> int:
    """The one number that a statement finds."""
    ((found,),) = rows(dsn, sql)
    assert isinstance(found, int)
    return found
