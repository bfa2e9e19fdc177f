"""What every `MemoryStore` promises of lists: each record once, in one order, page by page."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import chain
from typing import Any

import pytest
from support.engines import POSTGRES, SQLITE
from support.fakes import NOON, consolidate, memory, promotion, remember_batch

from mnemosyned.memory.listing import (
    ListFilter,
    ListLimits,
    ListOrder,
    RecordKind,
    parse_cursor,
)
from mnemosyned.memory.ports import Draft, MemoryStore
from mnemosyned.memory.values import MemoryRecord, Tier

SLEPT, ALL = 84, 120
GROUP = 4
Kept = dict[int, MemoryRecord]


@pytest.fixture(params=[ListLimits(), ListLimits(few=3, episodes_first=1)])
def _limits(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> ListLimits:
    """Limits that this memory is far below, and others that it exceeds."""
    engine = request.config.getoption("--engine")
    folder = SQLITE if engine == SQLITE else POSTGRES
    module = f"mnemosyned.storage.{folder}.listing"
    monkeypatch.setattr(f"{module}.LIST_LIMITS", request.param)
    limits: ListLimits = request.param
    return limits


def said(number: int, chance: random.Random) -> MemoryRecord:
    """A memory with something of its own for each filter; every third time is shared."""
    return memory(
        f"{'Note' if number % 2 else 'note'}-{number:03}",
        hours_ago=100 - number // 3 * 3,
        session="home" if number // GROUP % 2 else "work",
        source=[None, "cook", "mail"][number // GROUP % 3],
        role=chance.choice(["user", "Tool result", "--", ""]),
        pinned=chance.random() < 0.1,
        tags=("tea",) if chance.random() < 0.2 else (),
        valid_until=NOON if chance.random() < 0.1 else None,
    )


@pytest.fixture
def kept(store: MemoryStore) -> Kept:
    """Memories in both tiers by the order in which they came, which is not that of time."""
    chance = random.Random(5)
    memories = [said(number, chance) for number in range(ALL)]
    groups = [memories[start : start + GROUP] for start in range(0, ALL, GROUP)]
    chance.shuffle(groups)
    memories = list(chain.from_iterable(groups))
    # What is pinned does not sleep.
    memories[:SLEPT] = [replace(one, pinned=False) for one in memories[:SLEPT]]
    remember_batch(store, *memories)
    for start in range(0, SLEPT, GROUP):
        group = memories[start : start + GROUP]
        consolidate(store, promotion(f"note-e{start}", *group))
    tiers = [Tier.ARCHIVE] * SLEPT + [Tier.WORKING] * (ALL - SLEPT)
    return {
        seq: replace(one, tier=tier)
        for seq, (one, tier) in enumerate(zip(memories, tiers, strict=True), start=1)
    }


def pages(store: MemoryStore, wanted: ListFilter) -> Iterator[list[str]]:
    """The ids of each page, going on by its cursor."""
    while True:
        page = store.lists.page(wanted)
        yield [*(one.id for one in page.memories), *(one.id for one in page.summaries)]
        if page.next is None:
            return
        wanted = replace(wanted, after=parse_cursor(page.next.encode()))


def ordered(
    kept: Kept, order: ListOrder, matches: Callable[[MemoryRecord], bool]
) -> list[str]:
    """The ids of what matches, by time, and at the same time as they came."""
    found = sorted(
        (one.created_at, seq, one.id) for seq, one in kept.items() if matches(one)
    )
    ids = [id for _, _, id in found]
    return ids[::-1] if order is ListOrder.NEWEST else ids


HOUR = NOON - timedelta(hours=40)
FILTERS: dict[str, tuple[dict[str, Any], Callable[[MemoryRecord], bool]]] = {
    "everything": ({}, lambda _: True),
    "session": ({"sessions": ("home",)}, lambda one: one.session == "home"),
    "sessions": ({"sessions": ("home", "work")}, lambda _: True),
    "no such session": ({"sessions": ("gone",)}, lambda _: False),
    "source": ({"sources": ("cook",)}, lambda one: one.source == "cook"),
    "role": ({"roles": ("user",)}, lambda one: one.role == "user"),
    "words of a role": (
        {"roles": ("Tool result",)},
        lambda one: one.role == "Tool result",
    ),
    "wordless role": ({"roles": ("--", "")}, lambda one: one.role in ("--", "")),
    "unsaid role": ({"roles": ("result",)}, lambda _: False),
    "tag": ({"tags": ("tea", "cake")}, lambda one: "tea" in one.tags),
    "archive": ({"tier": Tier.ARCHIVE}, lambda one: one.tier is Tier.ARCHIVE),
    "working": ({"tier": Tier.WORKING}, lambda one: one.tier is Tier.WORKING),
    "pinned": ({"pinned": True}, lambda one: one.pinned),
    "unpinned": ({"pinned": False}, lambda one: not one.pinned),
    "since": ({"since": HOUR}, lambda one: one.created_at >= HOUR),
    "until": ({"until": HOUR}, lambda one: one.created_at < HOUR),
    "valid": ({"valid_at": NOON}, lambda one: one.valid_until is None),
    "valid before": ({"valid_at": HOUR}, lambda _: True),
    "prefix": (
        {"id_prefix": "nOTE-0", "tier": Tier.WORKING},
        lambda one: one.tier is Tier.WORKING and one.id.lower().startswith("note-0"),
    ),
    "all at once": (
        {
            "sessions": ("home",),
            "roles": ("user",),
            "tier": Tier.ARCHIVE,
            "since": HOUR,
        },
        lambda one: (
            one.session == "home"
            and one.role == "user"
            and one.tier is Tier.ARCHIVE
            and one.created_at >= HOUR
        ),
    ),
}


@pytest.mark.usefixtures("_limits")
@pytest.mark.parametrize("order", ListOrder)
def test_pages_hold_each_match_once_in_order(
    store: MemoryStore, kept: Kept, order: ListOrder
) -> None:
    for name, (filters, matches) in FILTERS.items():
        found = list(pages(store, ListFilter(limit=7, order=order, **filters)))

        assert list(chain.from_iterable(found)) == ordered(kept, order, matches), name
        assert all(len(page) == 7 for page in found[:-1]), name


@pytest.mark.usefixtures("_limits", "kept")
@pytest.mark.parametrize("order", ListOrder)
def test_a_memory_comes_before_a_summary_of_the_same_time(
    store: MemoryStore, order: ListOrder
) -> None:
    wanted = ListFilter(limit=5, order=order, id_prefix="NOTE")
    expected = sorted(
        (moment, kind, id)
        for kind, page in (
            (RecordKind.MEMORY, store.lists.page(ListFilter(limit=500))),
            (RecordKind.SUMMARY, store.lists.page(ListFilter(limit=500, level=0))),
        )
        for moment, id in (
            *((one.created_at, one.id) for one in page.memories),
            *((one.covers_from, one.id) for one in page.summaries),
        )
    )
    places = {id: (moment, kind) for moment, kind, id in expected}
    assert len(places) == ALL + SLEPT // GROUP

    # Within a page, memories stand before summaries.
    found = [
        sorted(page, key=places.__getitem__, reverse=order is ListOrder.NEWEST)
        for page in pages(store, wanted)
    ]

    ids = list(chain.from_iterable(found))
    assert sorted(ids) == sorted(places)
    listed = [places[id] for id in ids]
    assert listed == sorted(listed, reverse=order is ListOrder.NEWEST)


@pytest.mark.usefixtures("kept")
def test_ids_that_differ_in_case_are_both_found_and_no_pattern_is_one(
    store: MemoryStore,
) -> None:
    remember_batch(store, memory("Über-1"), memory("über-1"), memory("a_b%c"))

    def listed(prefix: str) -> list[str]:
        page = store.lists.page(ListFilter(limit=10, id_prefix=prefix))
        return sorted(one.id for one in page.memories)

    assert listed("üBER") == ["Über-1", "über-1"]
    assert listed("A_B%") == ["a_b%c"]
    assert listed("a%") == listed("_") == listed("note-9999") == []


def test_what_was_superseded_is_listed_on_request(store: MemoryStore) -> None:
    remember_batch(store, memory("old", hours_ago=1))
    store.memories.remember([Draft(memory("new"), supersedes="old")])

    def listed(wanted: ListFilter) -> list[str]:
        return [one.id for one in store.lists.page(wanted).memories]

    assert listed(ListFilter(limit=9, valid_at=NOON)) == ["new"]
    assert listed(ListFilter(limit=9)) == ["new", "old"]


def test_sessions_and_sources_are_counted_over_all_tiers(
    store: MemoryStore, kept: Kept
) -> None:
    totals = store.lists.sessions()

    assert [total.session for total in totals] == ["home", "work"]
    for total in totals:
        own = [one for one in kept.values() if one.session == total.session]
        assert total.count == len(own)
        assert total.sources == ("cook", "mail")
        assert total.first == min(one.created_at for one in own)
        assert total.last == max(one.created_at for one in own)
    sources = store.lists.sources()
    assert {one.source: (one.count, one.sessions) for one in sources} == {
        None: (40, 2),
        "cook": (40, 2),
        "mail": (40, 2),
    }
    assert [one.last for one in sources] == sorted(
        (one.last for one in sources), reverse=True
    )
    assert store.lists.count_since(HOUR) == sum(
        one.created_at >= HOUR for one in kept.values()
    )
