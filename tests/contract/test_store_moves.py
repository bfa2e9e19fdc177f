"""What every `ExchangeStore` promises of a move: all that it keeps, in order, once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from support.fakes import NOON, consolidate, memory, promotion, remember_batch, trio
from support.whole_memory import embed, surround

from mnemosyned.assembly.stores import OpenStore, open_store
from mnemosyned.config import DatabaseLocation
from mnemosyned.errors import InvalidRequest
from mnemosyned.memory.exchange import AnyRecord, KeptVector, RecoverableRecord
from mnemosyned.memory.forgetting import Grace
from mnemosyned.service import move
from mnemosyned.service.move import Moving, count_stored
from mnemosyned.storage.sqlite.store import SqliteStore

GRACE = Grace("call", NOON + timedelta(days=9_000))


@pytest.fixture
def full(store: SqliteStore) -> OpenStore:
    remember_batch(store, *trio("a"), memory("b"), memory("c"), memory("gone"))
    consolidate(store, promotion("summary", *trio("a")))
    surround(store)
    embed(store)
    store.deletion.forget(["gone"], grace=GRACE)
    return store


@pytest.fixture
def target(tmp_path: Path) -> Iterator[OpenStore]:
    with open_store(DatabaseLocation(tmp_path / "target.db")) as opened:
        yield opened


def everything(store: OpenStore) -> list[AnyRecord]:
    with store.exchange.everything() as (_, records):
        return list(records)


def deliver(source: OpenStore, target: OpenStore) -> Moving:
    moving = Moving(source.exchange, target.exchange)
    moving.deliver(lambda _amount, _moved: None)
    return moving


def test_everything_is_moved_once_and_in_order(
    full: OpenStore, target: OpenStore
) -> None:
    records = everything(full)

    moved = deliver(full, target).delivered
    again = deliver(full, target).delivered

    assert everything(target) == records
    assert sum(moved.stored.values()) == len(records)
    assert again.stored == {}
    assert again.known == moved.stored
    assert {type(record) for record in records} >= {KeptVector, RecoverableRecord}


def test_a_move_goes_on_behind_what_is_there(
    full: OpenStore, target: OpenStore
) -> None:
    records = everything(full)
    for count in (4, 5, 9, len(records)):
        target.exchange.restore(records[:count])

        assert everything(target) == records[:count]

    assert deliver(full, target).delivered.stored == {}


def test_progress_counts_what_is_known_and_what_is_moved(
    full: OpenStore, target: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(move, "ADVANCED_EVERY", 1)
    target.exchange.restore(everything(full)[:4])
    advances: list[tuple[int, int]] = []
    moving = Moving(full.exchange, target.exchange)

    moving.deliver(lambda amount, moved: advances.append((amount, moved)))

    size = count_stored(full.exchange)
    assert size == sum(amount for amount, _ in advances) == 6
    assert advances[-1][1] == size - 4, "what was there before counts for no rate"


def test_both_are_compared_to_the_last_record(
    full: OpenStore, target: OpenStore
) -> None:
    moving = deliver(full, target)
    compared = moving.compare(lambda _amount, _moved: None)
    assert sum(compared.counts.values()) == len(everything(full))
    assert compared.counts.keys() == compared.hashes.keys()

    target.watches.add_folder("/elsewhere", NOON)

    with pytest.raises(InvalidRequest, match="is not the same in both"):
        moving.compare(lambda _amount, _moved: None)


def test_a_target_with_more_is_refused(full: OpenStore, target: OpenStore) -> None:
    deliver(full, target)
    remember_batch(target, memory("more"))

    with pytest.raises(InvalidRequest, match="is not of this memory"):
        deliver(full, target)


def test_a_store_that_keeps_nothing_has_no_size(target: OpenStore) -> None:
    assert count_stored(target.exchange) is None
