"""SIGKILL while it forgets, undoes or prunes: nothing is half done, and repeating it finishes it.

Every other kill comes at a time drawn by chance, the others as soon as the file shows that the work
has begun. FORGET_KILLS sets how many there are of each kind, CRASH_SEED repeats a run by its seed.
"""

from __future__ import annotations

import os
import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

import pytest
from e2e.consistency import damage, half_done
from e2e.daemons import WAIT_S, Daemon, Json, eventually, kept, rows, running
from support.fakes import files_containing
from support.seeds import seed_of

from mnemosyned import Memory, Remember

pytestmark = [pytest.mark.e2e, pytest.mark.fault]

KILLS = int(os.environ.get("FORGET_KILLS", "6"))
KILLS_MAX = KILLS + 20
"""Most kills until one comes halfway: on a busy machine the start may be seen only at the end."""
SEED = seed_of("CRASH_SEED")
SETTINGS: dict[str, Json] = {
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
    with running(home, **SETTINGS) as first:

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
    with running(home, **SETTINGS) as second:
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
        if kill < KILLS:
            yield chance.random() if kill % 2 else None
        elif halfway():
            return
        else:
            yield None


def broken(database: Path) -> dict[str, int]:
    """Rows left half done; rows of the log outlive their episodes when those are forgotten."""
    found = half_done(database)
    return {what: count for what, count in found.items() if "the log" not in what}


_TOOK: dict[str, float] = {}


def took_s(slept: Path, room: Path, verb: str, request: dict[str, Json]) -> float:
    """How long it takes when nobody kills it, measured once for each verb."""
    if verb not in _TOOK:
        room.mkdir()
        shutil.copy(slept, room / "memory.db")
        with running(room, **SETTINGS) as daemon:
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
    print(f"CRASH_SEED={SEED}")
    chance = random.Random(f"{SEED} {named}")
    left: set[int] = set()

    def halfway() -> bool:
        return bool(left - {MEMORIES, MEMORIES - len(PRIVATE)})

    for kill, moment in enumerate(moments(chance, halfway)):
        home = tmp_path / f"{kill}"
        with killed_amid(slept, home, moment, "forget", **named) as daemon:
            stored = kept(daemon.database)
            assert len(stored) == len(set(stored))
            left.add(len(stored))
            receipt = daemon.post("forget", **named)

            assert (receipt.status, receipt.body["complete"]) == (200, True)
            assert receipt.body["memories"] == len(set(stored) & set(PRIVATE))
            assert kept(daemon.database) == sorted(set(EVERYTHING) - set(PRIVATE))
            assert files_containing(daemon.database.parent, WORD, ROOM) == []

    assert halfway(), "no kill met it halfway"


def test_an_undo_that_was_killed_is_finished_by_repeating_it(
    slept: Path, tmp_path: Path
) -> None:
    print(f"CRASH_SEED={SEED}")
    chance = random.Random(f"{SEED} undo")
    ((cycle,),) = rows(slept, "SELECT DISTINCT cycle_id FROM consolidation_log")
    ((before,),) = rows(slept, "SELECT count(*) FROM archive")
    met: set[int] = set()

    def halfway() -> bool:
        return bool(met - {0, before})

    for kill, moment in enumerate(moments(chance, halfway)):
        with killed_amid(
            slept, tmp_path / f"{kill}", moment, "undo", cycle=cycle
        ) as daemon:
            assert kept(daemon.database) == EVERYTHING
            ((left,),) = rows(daemon.database, "SELECT count(*) FROM archive")
            met.add(left)
            answer = daemon.post("undo", cycle=cycle)

            assert (
                answer.error[0] == "cannot_undo" if not left else answer.status == 200
            )
            assert rows(daemon.database, "SELECT count(*) FROM archive") == [(0,)]
            assert rows(daemon.database, "SELECT count(*) FROM episodic_memory") == [
                (0,)
            ]
            assert kept(daemon.database) == EVERYTHING

    assert halfway(), "no kill met it halfway"


def test_pruning_that_was_killed_is_finished_by_repeating_it(
    slept: Path, tmp_path: Path
) -> None:
    print(f"CRASH_SEED={SEED}")
    chance = random.Random(f"{SEED} prune")

    for kill, moment in enumerate(moments(chance, lambda: True)):
        with killed_amid(
            slept, tmp_path / f"{kill}", moment, "prune", keep_days=30
        ) as daemon:
            with_words = "SELECT count(*) FROM archive WHERE content != ''"
            ((left,),) = rows(daemon.database, with_words)
            receipt = daemon.post("prune", keep_days=30)

            assert (receipt.status, receipt.body["memories"]) == (200, left)
            assert rows(daemon.database, with_words) == [(0,)]
            assert kept(daemon.database) == EVERYTHING
