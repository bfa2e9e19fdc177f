"""When a purge runs: in its turn beside others, at once alone, and at the latest at the close."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
from support.fakes import memory, remember_batch
from support.leftovers import NOT_PURGED, left_of

from mnemosyned.errors import StorageFailed
from mnemosyned.service.purging import Purger
from mnemosyned.sleep.lease import BUSY_ANSWERS, ForegroundGate
from mnemosyned.storage.sqlite.store import SqliteStore


class Slow:
    """Makes each purge of a store take a while, without the while."""

    def __init__(self, store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_000.0
        self.runs = 0
        scrub = store.deletion.purge_deleted

        def run() -> bool:
            self.now += 0.3
            self.runs += 1
            return scrub()

        monkeypatch.setattr(store.deletion, "purge_deleted", run)
        monkeypatch.setattr(
            "mnemosyned.service.purging.time.monotonic", lambda: self.now
        )


@pytest.fixture
def slow(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> Slow:
    return Slow(store, monkeypatch)


def purging(
    store: SqliteStore, *, busy: Callable[[], bool], background: bool = False
) -> Purger:
    return Purger(
        due=store.deletion.purge_due,
        work=lambda: store.deletion.purge_deleted(),  # noqa: PLW0108 tests replace it
        busy=busy,
        background=background,
    )


def forgotten(store: SqliteStore, purger: Purger, id: str) -> bool:
    remember_batch(store, memory(id, f"zqxjv {id}"))
    store.deletion.forget([id])
    return purger.purge()


def test_while_others_are_served_a_purge_waits_for_its_turn(
    store: SqliteStore, slow: Slow
) -> None:
    served = [True, True, False]
    purger = purging(store, busy=served.pop, background=True)

    assert forgotten(store, purger, "1")
    assert forgotten(store, purger, "2")  # nobody else is served
    assert not forgotten(store, purger, "3")
    assert 5 < (purger.wait_s() or 0) < 7

    assert slow.runs == 2
    # The third waits, and a server does not say whose rows those are.
    assert left_of(store, "zqxjv 1", "zqxjv 2") in ([], [NOT_PURGED])
    purger.close()


def test_alone_each_forgetting_is_purged_at_once(
    store: SqliteStore, slow: Slow
) -> None:
    purger = purging(store, busy=lambda: False, background=True)

    assert all(forgotten(store, purger, str(number)) for number in range(3))
    assert slow.runs == 3


def test_without_a_background_no_purge_waits(store: SqliteStore, slow: Slow) -> None:
    purger = purging(store, busy=lambda: True)

    assert all(forgotten(store, purger, str(number)) for number in range(3))
    assert slow.runs == 3


def test_a_planned_purge_comes_by_itself(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mnemosyned.service.purging.REST_FREE_S", 0.0)
    monkeypatch.setattr("mnemosyned.service.purging.WAIT_MAX_S", 0.0)
    purger = purging(store, busy=lambda: True, background=True)
    purged = threading.Event()
    scrub: Callable[[], bool] = store.deletion.purge_deleted
    assert forgotten(store, purger, "1")

    def tell() -> bool:
        clean = scrub()
        purged.set()
        return clean

    monkeypatch.setattr(store.deletion, "purge_deleted", tell)
    assert not forgotten(store, purger, "2")

    assert purged.wait(20)
    purger.close()
    assert left_of(store, "zqxjv") == []


def test_a_planned_purge_comes_once_nobody_else_is_served(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "mnemosyned.service.purging.REST_FREE_S", -10.0
    )  # minutes of rest
    served = threading.Event()
    served.set()
    purger = purging(store, busy=served.is_set, background=True)
    assert forgotten(store, purger, "1")
    assert not forgotten(store, purger, "2")

    served.clear()
    ends = time.monotonic() + 20
    while store.deletion.purge_due():
        assert time.monotonic() < ends
        time.sleep(0.01)

    purger.close()
    assert left_of(store, "zqxjv") == []


def test_the_close_purges_what_still_waits(store: SqliteStore, slow: Slow) -> None:
    purger = purging(store, busy=lambda: True, background=True)
    assert forgotten(store, purger, "1")
    assert not forgotten(store, purger, "2")

    purger.close()

    assert slow.runs == 2
    assert left_of(store, "zqxjv") == []


def test_what_a_killed_process_left_to_purge_is_purged_after_the_start(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mnemosyned.service.purging.START_S", 0.0)
    remember_batch(store, memory("1", "zqxjv"))
    store.deletion.forget(["1"])
    purger = purging(store, busy=lambda: True, background=True)

    purger.start()
    while store.deletion.purge_due():
        purger.wait_s()

    purger.close()
    assert left_of(store, "zqxjv") == []


def test_a_purge_that_fails_is_planned_again(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> bool:
        raise StorageFailed("the disk is full")

    purger = purging(store, busy=lambda: False, background=True)
    monkeypatch.setattr(store.deletion, "purge_deleted", refuse)

    with pytest.raises(StorageFailed):
        forgotten(store, purger, "1")

    assert 50 < (purger.wait_s() or 0) <= 60
    monkeypatch.undo()
    purger.close()
    assert left_of(store, "zqxjv") == []


def test_a_daemon_is_busy_only_while_many_are_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 1_000.0
    monkeypatch.setattr("mnemosyned.sleep.lease.time.monotonic", lambda: now)
    gate = ForegroundGate()

    def answer(count: int) -> bool:
        for _ in range(count):
            with gate:
                pass
        return gate.busy

    assert not answer(BUSY_ANSWERS - 1)
    assert answer(1)
    now += 1
    assert gate.busy
    now += 1
    assert not gate.busy
    assert not answer(1)
    now += 60
    assert not answer(BUSY_ANSWERS - 1)
