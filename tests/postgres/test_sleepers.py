"""Daemons that share an owner: each group is summarized and promoted once, whoever is killed."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import psycopg
import pytest
from support.fakes import FakeClock, FakeSummarizer, promotion, remember_batch, trio
from support.postgres import open_store
from support.settings import change

from mnemosyned.config.settings import SettingsInForce
from mnemosyned.errors import BatchChanged, MemoryBusy, SleepInProgress, StorageFailed
from mnemosyned.memory.consolidation import CycleStatus, GroupStatus, Trigger
from mnemosyned.memory.ports import MemoryStore
from mnemosyned.memory.values import MemoryRecord, Tier
from mnemosyned.sleep.context import CommitPacing, CycleRequest, SummarizerLease
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.sleep.sleeper import Sleeper
from mnemosyned.storage.postgres.memories import PostgresSleep
from mnemosyned.storage.postgres.pool import Pool, PostgresEngine
from mnemosyned.storage.postgres.session import PostgresSession
from mnemosyned.storage.postgres.store import PostgresStore

pytestmark = pytest.mark.postgres

GROUPS = 12
WAIT_S = 60
HOLDERS = "FROM pg_locks WHERE locktype = 'advisory' AND granted"


@pytest.fixture
def stores(dsn: str) -> Iterator[list[MemoryStore]]:
    with open_store(dsn) as first, open_store(dsn) as second:
        yield [first, second]


def remember_groups(store: MemoryStore) -> list[MemoryRecord]:
    memories = [
        memory
        for number in range(GROUPS)
        for memory in trio(
            f"g{number}.", source=f"{number:02}", hours_ago=30 - number / 10
        )
    ]
    remember_batch(store, *memories)
    return memories


def make_cycle(
    store: MemoryStore,
    settings: SettingsInForce,
    summarizer: FakeSummarizer | None = None,
) -> SleepCycle:
    return SleepCycle(
        store=store,
        lease=SummarizerLease(summarizer or FakeSummarizer()),
        clock=FakeClock(),
        settings=settings,
    )


def explicit() -> CycleRequest:
    return CycleRequest(trigger=Trigger.EXPLICIT)


def assert_promoted_once(store: MemoryStore, memories: Sequence[MemoryRecord]) -> None:
    """Each group has one episode and one log row, and no memory is lost or there twice."""
    rows = store.sleep.log(limit=1_000)
    assert sorted(row.source or "" for row in rows) == [
        f"{number:02}" for number in range(GROUPS)
    ]
    assert {row.status for row in rows} == {GroupStatus.PROMOTED}
    originals = [
        memory.id
        for row in rows
        for memory in store.memories.originals(row.episode or "")
    ]
    assert sorted(originals) == sorted(memory.id for memory in memories)
    totals = store.maintenance.totals()
    assert (totals[Tier.WORKING].count, totals[Tier.ARCHIVE].count) == (
        0,
        len(memories),
    )


def end_claims(dsn: str) -> int:
    """Cut the connections that hold a claim, and wait until they are; how many did."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        ended = connection.execute(
            f"SELECT pg_terminate_backend(pid, {WAIT_S * 1000:.0f}) {HOLDERS}".encode()
        )
        return len(ended.fetchall())


def test_a_group_is_promoted_once_without_claims(stores: list[MemoryStore]) -> None:
    memories = remember_groups(stores[0])
    groups = [memories[start : start + 3] for start in range(0, len(memories), 3)]
    at_once = threading.Barrier(len(stores))
    outcomes: list[list[Exception | None]] = []

    def promote(store: MemoryStore, name: str) -> None:
        promotions = [
            [promotion(f"{name}{number}", *group)]
            for number, group in enumerate(groups)
        ]
        at_once.wait(WAIT_S)
        outcomes.append(store.sleep.consolidate(promotions, durable=False))

    threads = [
        threading.Thread(target=promote, args=(store, name))
        for store, name in zip(stores, "ab", strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)

    assert_promoted_once(stores[0], memories)
    for pair in zip(*outcomes, strict=True):
        failed = [error for error in pair if error]
        assert len(failed) == 1
        assert isinstance(failed[0], BatchChanged)


def test_a_claim_is_one_owner_s_alone(stores: list[MemoryStore], dsn: str) -> None:
    first, second = stores
    with first.sleep.claim() as held:
        assert held()
        with (
            pytest.raises(SleepInProgress, match="another daemon"),
            second.sleep.claim(),
        ):
            pass
        with open_store(dsn, owner=7) as other, other.sleep.claim() as granted:
            assert granted()
    for store in (second, first, second):
        with store.sleep.claim() as held:
            assert held()
    with psycopg.connect(dsn) as connection:
        assert connection.execute(f"SELECT * {HOLDERS}".encode()).fetchall() == []


def test_a_look_at_a_claim_takes_no_answer_of_another(dsn: str) -> None:
    with open_store(dsn) as store:
        first, second = (
            PostgresSleep(PostgresEngine(store.pool, owner)) for owner in (1, 2)
        )
        done = threading.Event()

        def claim_often() -> None:
            for _ in range(200):
                with second.claim():
                    pass
            done.set()

        def look_often() -> None:
            with first.claim() as held:
                while not done.is_set():
                    assert held()

        threads = [
            threading.Thread(target=work, daemon=True)
            for work in (look_often, claim_often)
        ]
        for thread in threads:
            thread.start()

        assert done.wait(WAIT_S)
        for thread in threads:  # before the store closes its connections
            thread.join(WAIT_S)


def test_a_cycle_that_lost_its_claim_ends_and_wastes_no_more_than_its_group(
    stores: list[MemoryStore], settings: SettingsInForce, dsn: str
) -> None:
    memories = remember_groups(stores[0])
    summarizer = FakeSummarizer()
    cut: list[int] = []

    def cut_at_the_third(_: Sequence[MemoryRecord]) -> None:
        if len(summarizer.calls) == 3:
            cut.append(end_claims(dsn))

    summarizer.meanwhile = cut_at_the_third
    cycle = make_cycle(stores[0], settings, summarizer)
    cycle.pacing = CommitPacing(groups_max=1)

    report = cycle.run(explicit())

    assert cut == [1]
    assert report.status is CycleStatus.PARTIAL
    assert report.promoted == len(summarizer.calls) == 3
    assert make_cycle(stores[1], settings).run(explicit()).promoted == GROUPS - 3
    assert_promoted_once(stores[0], memories)


def test_the_capacity_waits_for_more_while_another_daemon_sleeps(
    stores: list[MemoryStore], settings: SettingsInForce
) -> None:
    change(settings, {"wm_max": 20})
    remember_groups(stores[0])
    cycle = make_cycle(stores[0], settings)
    sleeper = Sleeper(store=stores[0], cycle=cycle, after_cycle=list)
    with stores[1].sleep.claim():
        assert sleeper.exceeds_capacity(36)
        with pytest.raises(SleepInProgress):
            sleeper.consolidate_excess(rules_only=True)
        assert not sleeper.exceeds_capacity(36)
        assert sleeper.exceeds_capacity(99)

    sleeper.consolidate_excess(rules_only=True)

    assert stores[0].memories.working_count() <= 20


def test_no_claim_is_had_where_the_server_is_out_of_reach(tmp_path: Path) -> None:
    sleep = PostgresSleep(
        PostgresEngine(Pool(f"postgresql:///memory?host={tmp_path}"), 1)
    )

    with pytest.raises(StorageFailed, match="cannot be reached"), sleep.claim():
        pass


def test_a_group_waits_for_another_s_write(
    stores: list[MemoryStore],
    settings: SettingsInForce,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = stores[0]
    memories = remember_groups(store)
    pool = cast("PostgresStore", store).pool
    busy, writing = iter([True, True]), pool.writing

    @contextmanager
    def often_locked(owner: int, *, durable: bool = True) -> Iterator[PostgresSession]:
        if next(busy, False):
            raise MemoryBusy("another transaction keeps this memory locked")
        with writing(owner, durable=durable) as session:
            yield session

    monkeypatch.setattr(pool, "writing", often_locked)
    report = make_cycle(store, settings).run(explicit())

    assert report.failed == 0
    assert_promoted_once(store, memories)
