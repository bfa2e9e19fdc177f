"""SIGKILL at random moments, again and again: what was acknowledged is there, once, and whole.

CRASH_KILLS sets how many kills there are in all, CRASH_SEED repeats a run by its seed.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from e2e.consistency import damage, half_done
from e2e.daemons import (
    WAIT_S,
    Daemon,
    Json,
    eventually,
    kept,
    running,
    short_room,
    spawn,
)
from support.seeds import seed_of

from mnemosyned import Client, Remember
from mnemosyned.errors import DaemonUnreachable

pytestmark = [pytest.mark.e2e, pytest.mark.fault]

KILLS = int(os.environ.get("CRASH_KILLS", "80"))
SEED = seed_of("CRASH_SEED")
SETTINGS: dict[str, Json] = {"MNEMOSYNE_SLEEP_GROUP_ENTRIES_MAX": "5"}
BATCH = 7
SESSIONS = 6
BACKLOG = 150
WORDS = "amber basil cedar dahlia ember fennel ginger hazel iris juniper".split()


class Ledger:
    """Requests to the daemon, and those it acknowledged, over all of its lives."""

    def __init__(self) -> None:
        self.asked: dict[str, Remember] = {}
        self.acknowledged: set[str] = set()
        self.batches: list[list[str]] = []
        self.new: list[str] = []
        """Ids acknowledged in the present life."""
        self.sleeps_cut_short = 0
        self.kept_unheard = 0

    def memory(self, id: str) -> Remember:
        word = WORDS[len(self.asked) % len(WORDS)]
        content = f"Memory {id} is about {word}, which took {len(self.asked)} minutes."
        self.asked[id] = Remember(
            content, id=id, session=f"s{len(self.asked) % SESSIONS}"
        )
        return self.asked[id]

    def acknowledge(self, *ids: str) -> None:
        self.acknowledged.update(ids)
        self.new.extend(ids)


@pytest.mark.parametrize("part", range(4))
def test_a_killed_daemon_has_everything_it_acknowledged(
    part: int, tmp_path: Path
) -> None:
    print(f"CRASH_SEED={SEED} part {part}")
    chance = random.Random(f"{SEED} {part}")
    ledger = Ledger()
    kills = -(-KILLS // 4)

    for life in range(kills):
        with running(tmp_path, **SETTINGS) as daemon:
            check(daemon, ledger)
            one_life(daemon, ledger, chance, f"{part}-{life}", amid_sleep=life % 2 == 1)
    with running(tmp_path, **SETTINGS) as daemon:
        check(daemon, ledger)
        retry(daemon, ledger)
        sample = chance.choice(sorted(ledger.acknowledged))
        found = daemon.post(
            "recall", query=ledger.asked[sample].content, limit=100
        ).body["hits"]
        code = daemon.stop()

    print(
        f"{len(ledger.asked)} asked, {ledger.kept_unheard} kept without an answer, "
        f"{ledger.sleeps_cut_short} sleeps cut short"
    )
    assert code == 0
    assert any(sample in (hit["id"], *hit["summary_of"]) for hit in found)
    assert kept(tmp_path / "memory.db") == sorted(ledger.asked)
    assert half_done(tmp_path / "memory.db") == {}
    assert damage(tmp_path / "memory.db") == []
    assert ledger.sleeps_cut_short > 0, (
        "no kill met a sleep; the moments are badly chosen"
    )


def one_life(
    daemon: Daemon,
    ledger: Ledger,
    chance: random.Random,
    name: str,
    *,
    amid_sleep: bool,
) -> None:
    """Clients remember and sleep, and the daemon is killed under them."""
    with daemon.client() as client, ThreadPoolExecutor(5) as pool:
        if amid_sleep:
            batch(client, ledger, f"{name}-backlog", BACKLOG)
        work: list[Callable[[], None]] = [
            lambda: singles(client, ledger, f"{name}-a"),
            lambda: singles(client, ledger, f"{name}-b"),
            lambda: batches(client, ledger, f"{name}-c"),
            lambda: sleeps(client, ledger),
        ]
        known = len(ledger.new)
        running = [pool.submit(until_killed, job) for job in work]
        if not amid_sleep:
            eventually(
                lambda: len(ledger.new) > known, "the first memory is acknowledged"
            )
        time.sleep(chance.uniform(0, 0.08 if amid_sleep else 0.25))
        daemon.kill()
        for job in running:
            job.result(WAIT_S)


def until_killed(job: Callable[[], None]) -> None:
    deadline = time.monotonic() + WAIT_S
    try:
        while time.monotonic() < deadline:
            job()
    except DaemonUnreachable:
        return  # the daemon is gone: this was not acknowledged
    raise AssertionError("the daemon was not killed in time")


def singles(client: Client, ledger: Ledger, name: str) -> None:
    memory = ledger.memory(f"{name}-{len(ledger.asked)}")
    client.call(memory)
    ledger.acknowledge(str(memory.id))


def batches(client: Client, ledger: Ledger, name: str) -> None:
    batch(client, ledger, f"{name}-{len(ledger.asked)}", BATCH)


def batch(client: Client, ledger: Ledger, name: str, size: int) -> None:
    memories = [ledger.memory(f"{name}-{number}") for number in range(size)]
    ids = [str(memory.id) for memory in memories]
    ledger.batches.append(ids)
    client.remember_many(memories)
    ledger.acknowledge(*ids)


def sleeps(client: Client, ledger: Ledger) -> None:
    try:
        client.sleep(force=True)
    except DaemonUnreachable as error:
        ledger.sleeps_cut_short += "hung up" in error.message
        raise


def check(daemon: Daemon, ledger: Ledger) -> None:
    """After a restart: everything acknowledged once, nothing that nobody said, nothing half."""
    stored = kept(daemon.database)
    assert len(stored) == len(set(stored)), "a memory is there twice"
    assert ledger.acknowledged <= set(stored), "an acknowledged memory is lost"
    assert set(stored) <= ledger.asked.keys(), "there is a memory that nobody said"
    for ids in ledger.batches:
        assert len({id in stored for id in ids}) == 1, "a batch is kept in part"
    assert half_done(daemon.database) == {}
    with daemon.client() as client:
        for id in ledger.new:
            memory = client.get(id=id).memory
            assert memory
            assert memory.content == ledger.asked[id].content
    ledger.new.clear()


def retry(daemon: Daemon, ledger: Ledger) -> None:
    """Send again, with its id, all that no answer came for."""
    with daemon.client() as client:
        for id in sorted(ledger.asked.keys() - ledger.acknowledged):
            ledger.kept_unheard += not client.call(ledger.asked[id]).stored
            ledger.acknowledge(id)


def test_a_daemon_killed_while_it_starts_starts_again(tmp_path: Path) -> None:
    print(f"CRASH_SEED={SEED}")
    chance = random.Random(SEED)
    database = tmp_path / "memory.db"

    with short_room() as room:
        for _ in range(12):
            options = ("--database", str(database), "--socket", str(room / "s"))
            process = spawn(*options, home=tmp_path, log=room / "log")
            time.sleep(chance.uniform(0.1, 0.5))
            process.kill()
            process.wait(WAIT_S)
            if (
                chance.random() < 0.5
            ):  # the next one starts with a file that is not there
                for left in tmp_path.glob("memory.db*"):
                    left.unlink()
    with running(tmp_path) as daemon:
        daemon.post("remember", id="tea", content="Tea at four.")
        daemon.stop()

    assert kept(database) == ["tea"]
    assert damage(database) == []
