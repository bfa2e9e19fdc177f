"""SIGKILL at random moments, again and again: what was acknowledged is there, once, and whole."""

from __future__ import annotations

import os
import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

import pytest
from e2e.consistency import damage, half_done
from e2e.daemons import (
    WAIT_S,
    Daemon,
    Json,
    eventually,
    kept,
    rows,
    running,
    short_room,
    spawn,
)
from support.fakes import files_containing
from support.seeds import seed_of

from mnemosyned import Client, Memory, Remember
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
def test_a_killed_daemon_has_what_it_acknowledged(part: int, tmp_path: Path) -> None:
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
            process = spawn(*options, home=tmp_path, log=room / "log", anew=True)
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


# SIGKILL while it forgets, undoes or prunes: nothing is half done, and repeating it finishes it.


FORGETTING_KILLS = int(os.environ.get("FORGET_KILLS", "6"))
KILLS_MAX = FORGETTING_KILLS + 20
"""Most kills until one comes halfway: on a busy machine the start may be seen only at the end."""
FORGETTING_SETTINGS: dict[str, Json] = {
    "MNEMOSYNE_SLEEP_ON_SHUTDOWN": "false",
    "MNEMOSYNE_AUTO_SLEEP": "false",
}
LONG_AGO = datetime.fromisoformat("2026-03-02T09:30:00Z")
MEMORIES = 900
ROOM, WORD = "zqxjv-room", "Zqxjvkwyz"
OPEN_SHARE = 3
"""One memory in so many is of another session and of nobody in particular."""


def told(number: int) -> Remember:
    ours = number % OPEN_SHARE
    about = (
        f"{WORD} paid {number} euros for"
        if ours
        else f"It took {number} minutes to mend"
    )
    return Remember(
        f"{about} the bicycle in the yard, and the bell number {number} with it.",
        id=f"m{number}",
        session=ROOM if ours else "open",
        created_at=LONG_AGO if number % 10 else None,
    )


PRIVATE = [f"m{number}" for number in range(MEMORIES) if number % OPEN_SHARE]
EVERYTHING = sorted(f"m{number}" for number in range(MEMORIES))


@pytest.fixture(scope="module")
def slept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with most of its memories in the archive, under episodes and a day."""
    database = tmp_path_factory.mktemp("slept") / "memory.db"
    with Memory(database) as memory:
        memory.remember_many([told(number) for number in range(MEMORIES)])
        report = memory.sleep()
    assert report.rolled_up
    return database


@contextmanager
def killed_amid(
    slept: Path, home: Path, moment: float | None, verb: str, **request: Json
) -> Iterator[Daemon]:
    """A daemon started again after one was killed while it answered; the request is repeated.

    It is killed at that moment, a share of the time that the work takes undisturbed, or where none
    is given as soon as it has begun.
    """
    usual_s = took_s(slept, home.with_suffix(".undisturbed"), verb, request)
    home.mkdir()
    database = Path(shutil.copy(slept, home / "memory.db"))
    with running(home, **FORGETTING_SETTINGS) as first:

        def ask() -> None:
            with suppress(OSError, ValueError):  # it is killed before it can answer
                first.post(verb, **request)

        asking = threading.Thread(target=ask)
        asking.start()
        if moment is None:
            eventually(lambda: archive(database) != archive(slept), "the work begins")
        else:
            time.sleep(moment * usual_s)
        first.kill()
        asking.join(WAIT_S)
    with running(home, **FORGETTING_SETTINGS) as second:
        assert broken(database) == {}
        yield second
        assert broken(database) == {}
        second.stop()
    assert damage(database) == []


def archive(database: Path) -> list[tuple[object, ...]]:
    """Counts of the archive: the first step of each kind of work changes them."""
    return rows(
        database, "SELECT count, characters FROM tier_totals WHERE tier = 'archive'"
    )


def moments(
    chance: random.Random, halfway: Callable[[], bool]
) -> Iterator[float | None]:
    """When to kill, until enough kills are done and one of them met it halfway."""
    for kill in range(KILLS_MAX):
        if kill < FORGETTING_KILLS:
            yield chance.random() if kill % 2 else None
        elif halfway():
            return
        else:
            yield None


def broken(database: Path) -> dict[str, int]:
    """Rows left half done; rows of the log outlive their episodes when those are forgotten."""
    found = half_done(database)
    return {what: count for what, count in found.items() if "the log" not in what}


def lives(
    slept: Path,
    home: Path,
    verb: str,
    halfway: Callable[[], bool] = lambda: True,
    **request: Json,
) -> Iterator[Daemon]:
    """Daemons started again after kills while they answered, one of which met it halfway."""
    print(f"CRASH_SEED={SEED}")
    chance = random.Random(f"{SEED} {verb} {request}")
    for kill, moment in enumerate(moments(chance, halfway)):
        with killed_amid(slept, home / f"{kill}", moment, verb, **request) as daemon:
            yield daemon
    assert halfway(), "no kill met it halfway"


_TOOK: dict[str, float] = {}


def took_s(slept: Path, room: Path, verb: str, request: dict[str, Json]) -> float:
    """How long it takes when nobody kills it, measured once for each verb."""
    if verb not in _TOOK:
        room.mkdir()
        shutil.copy(slept, room / "memory.db")
        with running(room, **FORGETTING_SETTINGS) as daemon:
            began = time.monotonic()
            assert daemon.post(verb, **request).status == 200
            _TOOK[verb] = time.monotonic() - began
    return _TOOK[verb]


@pytest.mark.parametrize(
    "named", [{"session": ROOM}, {"person": WORD}], ids=["session", "person"]
)
def test_forgetting_that_was_killed_is_finished_by_repeating_it(
    slept: Path, tmp_path: Path, named: dict[str, str]
) -> None:
    left: set[int] = set()

    def halfway() -> bool:
        return bool(left - {MEMORIES, MEMORIES - len(PRIVATE)})

    for daemon in lives(slept, tmp_path, "forget", halfway, **named):
        stored = kept(daemon.database)
        assert len(stored) == len(set(stored))
        left.add(len(stored))
        receipt = daemon.post("forget", **named)

        assert (receipt.status, receipt.body["complete"]) == (200, True)
        assert receipt.body["memories"] == len(set(stored) & set(PRIVATE))
        assert kept(daemon.database) == sorted(set(EVERYTHING) - set(PRIVATE))
        assert files_containing(daemon.database.parent, WORD, ROOM) == []


def test_a_killed_undo_is_finished_by_another(slept: Path, tmp_path: Path) -> None:
    def count(database: Path, table: str = "archive") -> int:
        ((found,),) = rows(database, f"SELECT count(*) FROM {table}")
        return int(found)

    ((cycle,),) = rows(slept, "SELECT DISTINCT cycle_id FROM consolidation_log")
    met: set[int] = set()

    def halfway() -> bool:
        return bool(met - {0, count(slept)})

    for daemon in lives(slept, tmp_path, "undo", halfway, action=cycle):
        assert kept(daemon.database) == EVERYTHING
        left = count(daemon.database)
        met.add(left)
        answer = daemon.post("undo", action=cycle)

        assert answer.status == 200 if left else answer.error[0] == "cannot_undo"
        assert count(daemon.database) == count(daemon.database, "episodic_memory") == 0
        assert kept(daemon.database) == EVERYTHING


def test_a_killed_pruning_is_finished_by_another(slept: Path, tmp_path: Path) -> None:
    with_words = "SELECT count(*) FROM archive WHERE content != ''"

    for daemon in lives(slept, tmp_path, "prune", keep_days=30):
        ((left,),) = rows(daemon.database, with_words)
        receipt = daemon.post("prune", keep_days=30)

        assert (receipt.status, receipt.body["memories"]) == (200, left)
        assert rows(daemon.database, with_words) == [(0,)]
        assert kept(daemon.database) == EVERYTHING
