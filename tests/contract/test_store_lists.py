"""What every `MemoryStore` promises of lists and of a move: each record once, in one order."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pytest
from support.cases import each_case
from support.engines import SQLITE
from support.fakes import (
    NOON,
    agent_session,
    consolidate,
    memory,
    promotion,
    remember_batch,
    trio,
)
from support.whole_memory import embed, surround

from mnemosyned.assembly.stores import open_store
from mnemosyned.config.settings import DatabaseLocation
from mnemosyned.errors import InvalidRequest
from mnemosyned.memory.exchange import AnyRecord, KeptVector, RecoverableRecord
from mnemosyned.memory.forgetting import Grace
from mnemosyned.memory.injections import InjectionKind, InjectionOutcome
from mnemosyned.memory.listing import (
    ListFilter,
    ListLimits,
    ListOrder,
    RecordKind,
    parse_cursor,
)
from mnemosyned.memory.ports import Draft, MemoryStore
from mnemosyned.memory.values import MemoryRecord, Tier
from mnemosyned.service import exchange
from mnemosyned.service.briefing import make_injection
from mnemosyned.service.exchange import Moving, count_stored
from mnemosyned.storage.common import listing
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.text.terms import parse_terms

SLEPT, ALL = 84, 120
GROUP = 4
SAID = ("Ada drinks tea.", "Two teas for Adá", "アダはお茶を飲む", "Coffee")
Kept = dict[int, MemoryRecord]


@pytest.fixture(params=[ListLimits(), ListLimits(few=3, episodes_first=1)])
def _limits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that this memory is far below, and others that it exceeds."""
    engine = request.config.getoption("--engine")
    own = "sqlite.search" if engine == SQLITE else "postgres.listing"
    for name in ("common.listing", own):
        module = f"mnemosyned.storage.{name}"
        monkeypatch.setattr(f"{module}.LIST_LIMITS", request.param)


def said(number: int, chance: random.Random) -> MemoryRecord:
    """A memory with something of its own for each filter; every third time is shared."""
    return memory(
        f"{'Note' if number % 2 else 'note'}-{number:03}",
        SAID[number % len(SAID)],
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
TOOL = "Tool result"


def words(text: str) -> dict[str, Any]:
    return {"terms": parse_terms(text)}


FILTERS: dict[str, tuple[dict[str, Any], Callable[[MemoryRecord], bool]]] = {
    "everything": ({}, lambda _: True),
    "session": ({"sessions": ("home",)}, lambda one: one.session == "home"),
    "sessions": ({"sessions": ("home", "work")}, lambda _: True),
    "no such session": ({"sessions": ("gone",)}, lambda _: False),
    "source": ({"sources": ("cook",)}, lambda one: one.source == "cook"),
    "role": ({"roles": ("user",)}, lambda one: one.role == "user"),
    "words of a role": ({"roles": (TOOL,)}, lambda one: one.role == TOOL),
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
        {"id_prefix": "nOTE-0"},
        lambda one: one.id.lower().startswith("note-0"),
    ),
    "word": (words("ADA"), lambda one: one.content in SAID[:2]),
    "all words": (words("drinks, ada"), lambda one: one.content == SAID[0]),
    "character pairs": (words("お茶"), lambda one: one.content == SAID[2]),
}
COMBINED = (
    ("words of a role", "session", "archive", "since"),
    ("word", "session", "working"),
    ("prefix", "working"),
)
FILTERS |= {
    " and ".join(names): (
        {name: value for each in names for name, value in FILTERS[each][0].items()},
        lambda one, names=names: all(FILTERS[each][1](one) for each in names),  # type: ignore[misc]
    )
    for names in COMBINED
}


@pytest.mark.thorough
@pytest.mark.usefixtures("_limits")
@each_case("order", ListOrder)
def test_pages_hold_each_match_once_in_order(
    store: MemoryStore, kept: Kept, order: ListOrder
) -> None:
    for name, (filters, matches) in FILTERS.items():
        found = list(pages(store, ListFilter(limit=7, order=order, **filters)))

        assert list(chain.from_iterable(found)) == ordered(kept, order, matches), name
        assert all(len(page) == 7 for page in found[:-1]), name


@pytest.mark.usefixtures("_limits", "kept")
@each_case("order", ListOrder)
def test_memories_come_before_summaries(store: MemoryStore, order: ListOrder) -> None:
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
def test_ids_are_listed_in_any_case_and_as_no_pattern(store: MemoryStore) -> None:
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


def test_a_project_has_its_sessions_memories(store: MemoryStore, kept: Kept) -> None:
    for session, project in (("home", "shop"), ("elsewhere", "other")):
        store.agents.keep_session(agent_session(session, project))
    at_home = ordered(kept, ListOrder.NEWEST, lambda one: one.session == "home")

    found = pages(store, ListFilter(limit=7, project="shop"))

    assert list(chain.from_iterable(found)) == at_home
    (other, shop) = sorted(store.lists.projects(5), key=lambda one: one.project)
    assert (other.project, other.sessions, other.count) == ("other", 1, 0)
    assert (shop.project, shop.sessions, shop.count) == ("shop", 1, len(at_home))
    assert shop.last == NOON
    assert len(store.lists.projects(1)) == 1
    for fields in ({"project": "unknown"}, {"project": "shop", "sessions": ("work",)}):
        assert store.lists.page(ListFilter(limit=7, **fields)).memories == []
    page = store.lists.page(ListFilter(limit=7, project="shop", level=0))
    assert {one.session for one in page.summaries} == {"home"}


def test_sessions_are_counted_over_all_tiers(store: MemoryStore, kept: Kept) -> None:
    totals = store.lists.sessions()

    assert [total.session for total in totals] == ["home", "work"]
    for total in totals:
        times = [
            one.created_at for one in kept.values() if one.session == total.session
        ]
        assert (total.count, total.sources) == (len(times), ("cook", "mail"))
        assert (total.first, total.last) == (min(times), max(times))
    sources = store.lists.sources()
    counts = {one.source: (one.count, one.sessions) for one in sources}
    assert counts == dict.fromkeys((None, "cook", "mail"), (40, 2))
    last = [one.last for one in sources]
    assert last == sorted(last, reverse=True)


def test_periods_are_counted_over_all_tiers(store: MemoryStore, kept: Kept) -> None:
    times = sorted(one.created_at for one in kept.values())
    bounds = [times[0], times[40], times[90], times[-1]]
    injection = make_injection(times[50], InjectionKind.PROMPT, client="c", session="s")
    store.injections.add(injection)
    missed = replace(injection, id="missed", outcome=InjectionOutcome.SAID_AGAIN)
    store.injections.add(missed)

    counts = store.lists.count_periods(bounds)

    assert [memories for memories, _ in counts] == [
        sum(since <= moment < until for moment in times)
        for since, until in pairwise(bounds)
    ]
    assert [told for _, told in counts] == [0, 1, 0]


def test_figures_of_a_day_are_added_and_the_newest_days_are_kept(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "FIGURE_DAYS_MAX", 2)
    assert store.lists.figures() == {}

    store.lists.add_figures("2026-03-09", Counter({3: 2}), 1_000)
    store.lists.add_figures("2026-03-10", Counter({-8: 1, 3: 1}), 3_000_000_000)
    store.lists.add_figures("2026-03-10", Counter({3: 4}), 2_000)
    both = {
        "2026-03-09": (Counter({3: 2}), 1_000),
        "2026-03-10": (Counter({-8: 1, 3: 5}), 2_000),
    }
    assert store.lists.figures() == both
    assert list(store.lists.figures()) == list(both)

    store.lists.add_figures("2026-03-12", Counter(), 2_500)
    assert list(store.lists.figures()) == ["2026-03-10", "2026-03-12"]


# What every `ExchangeStore` promises of a move: all that it keeps, in order, once.


GRACE = Grace("call", NOON + timedelta(days=9_000))


@pytest.fixture
def full(store: SqliteStore) -> MemoryStore:
    remember_batch(store, *trio("a"), memory("b"), memory("c"), memory("gone"))
    consolidate(store, promotion("summary", *trio("a")))
    surround(store)
    embed(store)
    store.deletion.forget(["gone"], grace=GRACE)
    return store


@pytest.fixture
def target(tmp_path: Path) -> Iterator[MemoryStore]:
    with open_store(DatabaseLocation(tmp_path / "target.db")) as opened:
        yield opened


def everything(store: MemoryStore) -> list[AnyRecord]:
    with store.exchange.everything() as (_, records):
        return list(records)


def deliver(source: MemoryStore, target: MemoryStore) -> Moving:
    moving = Moving(source.exchange, target.exchange)
    moving.deliver(lambda _amount, _moved: None)
    return moving


def test_everything_is_moved_once(full: MemoryStore, target: MemoryStore) -> None:
    records = everything(full)

    moved = deliver(full, target)
    again = deliver(full, target)

    assert everything(target) == records
    assert sum(moved.stored.values()) == len(records)
    assert again.stored == {}
    assert again.known == moved.stored
    assert {type(record) for record in records} >= {KeptVector, RecoverableRecord}


def test_a_move_goes_on_where_it_was(full: MemoryStore, target: MemoryStore) -> None:
    records = everything(full)
    for count in (4, 5, 9, len(records)):
        target.exchange.restore(records[:count])

        assert everything(target) == records[:count]

    assert deliver(full, target).stored == {}


def test_progress_counts_what_is_known_and_what_is_moved(
    full: MemoryStore, target: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "ADVANCED_EVERY", 1)
    target.exchange.restore(everything(full)[:4])
    advances: list[tuple[int, int]] = []
    moving = Moving(full.exchange, target.exchange)

    moving.deliver(lambda amount, moved: advances.append((amount, moved)))

    size = count_stored(full.exchange)
    assert size == sum(amount for amount, _ in advances) == 6
    assert advances[-1][1] == size - 4, "what was there before counts for no rate"


def test_both_are_compared_to_the_end(full: MemoryStore, target: MemoryStore) -> None:
    moving = deliver(full, target)
    compared = moving.compare(lambda _amount, _moved: None)
    assert sum(compared.counts.values()) == len(everything(full))
    assert compared.counts.keys() == compared.hashes.keys()

    target.watches.add_folder("/elsewhere", NOON)

    with pytest.raises(InvalidRequest, match="is not the same in both"):
        moving.compare(lambda _amount, _moved: None)


def test_a_target_with_more_is_refused(full: MemoryStore, target: MemoryStore) -> None:
    deliver(full, target)
    remember_batch(target, memory("more"))

    with pytest.raises(
        InvalidRequest, match="in the new database is not as in the old one"
    ):
        deliver(full, target)


def test_a_store_that_keeps_nothing_has_no_size(target: MemoryStore) -> None:
    assert count_stored(target.exchange) is None
