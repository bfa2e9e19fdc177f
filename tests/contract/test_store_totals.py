"""What every `MemoryStore` counts: how many memories there are, how large, how old."""

from dataclasses import replace
from datetime import timedelta

from support.fakes import (
    NOON,
    consolidate,
    memory,
    promotion,
    remember_batch,
)
from support.stores import TRIO, count_by_tier

from mnemosyned.memory.ports import MemoryStore
from mnemosyned.memory.values import Tier


def test_totals_are_right_after_every_operation(store: MemoryStore) -> None:
    remember_batch(store, *TRIO, memory("4", "東京"))
    assert count_by_tier(store) == {
        "working": (4, 20),
        "episodic": (0, 0),
        "archive": (0, 0),
    }

    consolidate(store, promotion("e", *TRIO, content="short"))
    assert count_by_tier(store) == {
        "working": (1, 2),
        "episodic": (1, 5),
        "archive": (3, 18),
    }

    store.deletion.forget(["2"])
    assert count_by_tier(store) == {
        "working": (1, 2),
        "episodic": (1, 0),
        "archive": (2, 12),
    }
    emptied = store.rollups.next_stale()
    assert emptied
    store.rollups.rewrite(emptied.token, replace(emptied.episode, content="shorter"))
    assert count_by_tier(store) == {
        "working": (1, 2),
        "episodic": (1, 7),
        "archive": (2, 12),
    }

    store.deletion.forget(["4"])
    assert count_by_tier(store) == {
        "working": (0, 0),
        "episodic": (1, 7),
        "archive": (2, 12),
    }

    store.deletion.forget(["1", "2", "3"])
    assert count_by_tier(store) == {tier.value: (0, 0) for tier in Tier}


def test_totals_name_the_oldest_of_each_tier(store: MemoryStore) -> None:
    late, early = memory("1", hours_ago=1), memory("2", hours_ago=9)
    remember_batch(store, late, early, memory("3", hours_ago=2))
    consolidate(store, promotion("e", early, late))

    totals = store.maintenance.totals()

    assert totals[Tier.WORKING].oldest == NOON - timedelta(hours=2)
    assert totals[Tier.ARCHIVE].oldest == NOON - timedelta(hours=9)
    assert totals[Tier.EPISODIC].oldest == NOON - timedelta(hours=9)
