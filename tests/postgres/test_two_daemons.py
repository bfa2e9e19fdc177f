"""Daemons on one database: one memory, whichever is asked or killed; what each would do is done once."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from e2e.conftest import Start, start
from e2e.daemons import Daemon, eventually
from postgres.fleet import (
    DAYS,
    ITEMS,
    Fleet,
    SlowModel,
    end_connections,
    group_memories,
    remember_groups,
    setting,
)
from support.endpoints import serving
from support.postgres import number_of, open_store, rows
from support.seeds import seed_of

pytestmark = pytest.mark.postgres


__all__ = ["start"]


def test_a_stop_leaves_a_sleep_to_its_sleeper(start: Start, dsn: str) -> None:
    daemon = start("--database", dsn, MNEMOSYNE_SLEEP_ON_SHUTDOWN="true")
    remember_groups(daemon, 3)

    with open_store(dsn) as other, other.sleep.claim():
        assert daemon.stop() == 0

    (left,) = daemon.events("final_consolidation_left")
    assert left["level"] == "info"
    assert not daemon.events("final_consolidation_failed")


def test_what_one_daemon_learns_and_unlearns_the_other_sees(
    start: Start, dsn: str
) -> None:
    daemons = [start("--database", dsn) for _ in range(2)]
    with daemons[0].client() as one, daemons[1].client() as other:
        assert not other.learnings().learnings
        learned = one.learn("Always answer in French.").learning

        assert other.learnings().learnings == [learned]
        assert "French" in str(other.context("Bonjour"))
        one.remove_learning(learned.id)

        assert not other.learnings().learnings
        assert "French" not in str(other.context("Bonjour"))


# The schedules of several daemons: what each would do by itself is done once.


SCHEDULED_DAEMONS = 3
SCHEDULED_GROUPS = 40
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
    return [start("--database", dsn, **FAST) for _ in range(SCHEDULED_DAEMONS)]


def test_scheduled_cycles_are_done_once(daemons: Sequence[Daemon], dsn: str) -> None:
    remember_groups(daemons[0], SCHEDULED_GROUPS)
    months = "SELECT count(*) FROM episode WHERE level = 3"
    eventually(
        lambda: number_of(dsn, months) == 2,
        "the months in which the weeks begin came about",
    )

    def looked(daemon: Daemon) -> int:
        return sum(
            event["event"] in ("cycle_finished", "cycle_skipped")
            for event in daemon.events()
        )

    before = [looked(daemon) for daemon in daemons]
    eventually(
        lambda: all(
            looked(daemon) >= count + CYCLES
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
    assert number_of(dsn, "SELECT count(*) FROM consolidation_log") == len(logged)
    levels = Counter(level for level, _ in logged)
    assert (levels[0], levels[1]) == (SCHEDULED_GROUPS, DAYS)
    kept = rows(dsn, "SELECT level, count(*) FROM episode GROUP BY level")
    assert levels == dict(kept)


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


# Many daemons that sleep over one memory while they are killed: nothing is lost or done twice.


FLEET_DAEMONS = setting("DAEMONS", 4)
KILLS = setting("KILLS", 8)
DROPS = setting("DROPS", 3)
FLEET_GROUPS = setting("MEMORIES", 1_200) // ITEMS
SEED = seed_of("SEED")
WRITING_S = 0.03
REQUESTS_BETWEEN = 4
"""Summaries that may be begun between two faults, at most."""
FINISHED_S = 60.0
"""The most that a cycle takes to begin after the last fault, with the work that is left."""
SETTINGS = {
    "MNEMOSYNE_AUTO_SLEEP": "true",
    "MNEMOSYNE_SLEEP_INTERVAL_MINUTES": f"{FLEET_DAEMONS / 240:.3f}",
    "MNEMOSYNE_SLEEP_ON_SHUTDOWN": "false",
    "MNEMOSYNE_WM_MAX": "1000000",
}


def test_kills_during_sleep_lose_and_double_nothing(tmp_path: Path, dsn: str) -> None:
    chance = random.Random(SEED)
    print(f"SEED={SEED}")
    model = SlowModel(WRITING_S)
    with (
        serving(model) as endpoint,
        Fleet(
            tmp_path,
            dsn=dsn,
            endpoint=f"http://127.0.0.1:{endpoint.port}",
            count=FLEET_DAEMONS,
            settings=SETTINGS,
        ) as fleet,
    ):
        remember_groups(fleet.daemon(), FLEET_GROUPS)
        dropped = inflict(fleet, model, dsn, chance)
        fleet.wait_started()
        waiting = "SELECT count(*) FROM fresh"
        eventually(
            lambda: number_of(dsn, waiting) == 0,
            "the daemons finished what was left",
            timeout_s=FINISHED_S + FLEET_GROUPS * WRITING_S * 4,
        )
        eventually(lambda: claims(dsn) == 0, "no claim was left behind")
        codes = [daemon.stop() for daemon in fleet.daemons]
        print(
            f"{KILLS} kills, {dropped} connections dropped, {FLEET_GROUPS} groups, "
            f"{model.begun.total() - FLEET_GROUPS} summaries begun for nothing"
        )

    assert dropped >= DROPS
    assert codes == [0] * FLEET_DAEMONS
    assert_each_memory_is_in_one_episode(dsn)
    assert set(model.begun) == set(range(FLEET_GROUPS))
    assert model.begun.total() - FLEET_GROUPS <= KILLS


def inflict(fleet: Fleet, model: SlowModel, dsn: str, chance: random.Random) -> int:
    """Kill daemons and end connections while a model writes; how many connections."""
    faults = ["kill"] * KILLS + ["drop"] * DROPS
    chance.shuffle(faults)
    dropped = 0
    for fault in faults:
        asker = model.asker(after=chance.randint(1, REQUESTS_BETWEEN))
        if fault == "drop":
            dropped += end_connections(dsn, claimed=chance.random() < 0.5)
            continue
        # Mostly the one that sleeps, and now and then one that waits for its turn.
        names = [asker] * 3 + fleet.names
        while not fleet.kill(chance.choice(names)):
            names = fleet.names
    return dropped


def assert_each_memory_is_in_one_episode(dsn: str) -> None:
    """Read the tables: no memory lost or placed twice, no group promoted twice."""
    everything = sorted(
        str(memory["id"])
        for group in range(FLEET_GROUPS)
        for memory in group_memories(group)
    )
    placed = rows(
        dsn,
        "SELECT m.id, m.session_id, e.id FROM memory AS m "
        "JOIN placed AS p USING (owner, seq) "
        "JOIN episode AS e ON e.owner = p.owner AND e.seq = p.episode_seq",
    )
    assert sorted(id for id, _, _ in placed) == everything
    assert number_of(dsn, "SELECT count(*) FROM memory") == len(everything)
    episode_of = {(session, episode) for _, session, episode in placed}
    assert len(episode_of) == FLEET_GROUPS
    logged = rows(
        dsn,
        "SELECT session_id, episode_id FROM consolidation_log "
        "WHERE level = 0 AND status = 'promoted'",
    )
    assert Counter(logged) == Counter(episode_of)
    assert (
        number_of(dsn, "SELECT count(*) FROM episode WHERE level = 0") == FLEET_GROUPS
    )
    counted = "SELECT working_count, archive_count, archive_characters FROM owner"
    held = (
        "SELECT (SELECT count(*) FROM fresh), count(*), sum(length(m.content)) "
        "FROM placed AS p JOIN memory AS m USING (owner, seq)"
    )
    assert rows(dsn, counted) == rows(dsn, held)


def claims(dsn: str) -> int:
    return number_of(
        dsn, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted"
    )
