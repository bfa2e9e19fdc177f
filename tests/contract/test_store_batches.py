"""A batch does what its memories do one by one, however the store takes them together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest
from support.fakes import (
    NOON,
    consolidate,
    memory,
    promotion,
    remember_batch,
    trio,
    working_ids,
)

from mnemosyned.errors import IdTaken
from mnemosyned.memory.ports import Draft, MemoryStore
from mnemosyned.memory.values import Acknowledged, MemoryRecord, Tier
from mnemosyned.search.query import Query
from mnemosyned.search.ranking import make_hits, rank
from mnemosyned.text.terms import parse_terms

MANY = 237
"""More than any store may take at once, and no round number."""


def found(store: MemoryStore, text: str) -> list[str]:
    query = Query(terms=parse_terms(text), limit=10)
    places = rank(query, store.search.candidates(query))
    return [hit.id for hit in make_hits(query, places, store.search.documents(places))]


def as_said(name: str, draft: Draft) -> Draft:
    """The same draft in a session of this name, with ids of its own."""
    one = draft.memory
    return replace(
        draft,
        memory=replace(one, id=f"{name}{one.id}", session=name),
        supersedes=draft.supersedes and name + draft.supersedes,
    )


def drafts(chance: Random) -> Iterator[Draft]:
    """Memories that come again, say the same, expire, and take the place of others."""
    kept: list[str] = []
    for number in range(chance.randint(1, 130)):
        at = chance.choice([number, number, chance.randint(0, number)])
        until = NOON if at % 7 == 0 else None
        said = memory(str(at), f"word {at % 40}", hours_ago=at % 5, valid_until=until)
        dedupe = chance.random() < 0.3
        supersedes = chance.choice(kept) if kept and chance.random() < 0.1 else None
        if not dedupe:  # or another may stand for it, and nothing has the id
            kept.append(str(at))
        yield Draft(said, dedupe=dedupe, supersedes=supersedes)


def told(name: str, answers: list[Acknowledged]) -> list[tuple[str, object, bool]]:
    return [(one.id.removeprefix(name), one.created_at, one.stored) for one in answers]


def state(
    store: MemoryStore, name: str, answers: list[Acknowledged]
) -> list[MemoryRecord]:
    """What is kept of it, as if it had no name."""
    ids = dict.fromkeys(one.id for one in answers)
    kept = [store.memories.get(id) for id in ids]
    return [
        replace(
            one,
            id=one.id.removeprefix(name),
            session="",
            superseded_by=one.superseded_by and one.superseded_by.removeprefix(name),
        )
        for one in kept
        if isinstance(one, MemoryRecord)
    ]


@pytest.mark.parametrize("seed", range(12))
def test_a_batch_is_kept_as_its_memories_are_one_by_one(
    store: MemoryStore, seed: int
) -> None:
    said = list(drafts(Random(seed)))

    singles = [
        store.memories.remember([as_said("s", draft)]).acknowledged[0] for draft in said
    ]
    batch = store.memories.remember(
        [as_said("b", draft) for draft in said]
    ).acknowledged

    assert told("b", batch) == told("s", singles)
    assert state(store, "b", batch) == state(store, "s", singles)


def test_each_of_many_is_found_by_its_own_words_and_by_no_others(
    store: MemoryStore,
) -> None:
    remember_batch(store, memory("before", "an earlier word"))

    answers = remember_batch(
        store, *(memory(f"{at:03}", f"tick{at} at the {at}th") for at in range(MANY))
    )

    assert all(answer.stored for answer in answers)
    assert [found(store, f"tick{at}") for at in range(MANY)] == [
        [f"{at:03}"] for at in range(MANY)
    ]


def test_one_taken_id_far_down_refuses_all_and_is_named(store: MemoryStore) -> None:
    remember_batch(store, *trio("a"))
    consolidate(store, promotion("e", *trio("a")))
    many = [memory(f"{at:03}", f"tick{at}") for at in range(MANY)]

    with pytest.raises(IdTaken) as refused:
        remember_batch(store, *many[:200], memory("a1", "other words"), *many[200:])

    assert refused.value.field == "memories[200].id"
    assert working_ids(store) == []
    assert found(store, "tick7") == []


def test_remember_reports_the_size_of_working_memory(
    store: MemoryStore,
) -> None:
    counts = [store.memories.remember([Draft(one)]).working for one in trio("a")]
    again = store.memories.remember([Draft(one) for one in trio("a")]).working
    consolidate(store, promotion("e", *trio("a")))
    after = store.memories.remember([Draft(memory("b")), Draft(memory("c"))]).working

    assert (counts, again, after) == ([1, 2, 3], 3, 2)
    assert (
        store.maintenance.totals()[Tier.WORKING].count
        == store.memories.working_count()
        == 2
    )


def test_dedupe_ignores_an_expiring_memory_of_the_same_batch(
    store: MemoryStore,
) -> None:
    passing = Draft(memory("1", "the door is open", valid_until=NOON))
    again = Draft(memory("2", "the door is open"), dedupe=True)

    answers = store.memories.remember([passing, again]).acknowledged

    assert [answer.stored for answer in answers] == [True, True]
