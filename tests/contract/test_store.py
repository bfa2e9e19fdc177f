"""What every `MemoryStore` promises, whatever it keeps memories in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from random import Random
from typing import Any

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
from support.stores import TRIO, count_by_tier, get_episode, get_memory

from mnemosyned.errors import BatchChanged, IdTaken, NotFound
from mnemosyned.memory.consolidation import GroupStatus, Selection
from mnemosyned.memory.ports import Draft, MemoryStore
from mnemosyned.memory.values import Acknowledged, MemoryRecord, Tier
from mnemosyned.search.query import Query
from mnemosyned.search.ranking import make_hits, rank
from mnemosyned.text.terms import parse_terms

# ------------------------------------------------------------------ remember


def test_a_memory_comes_back_as_it_was_given(store: MemoryStore) -> None:
    given = memory(
        "1",
        "Grüße aus 東京 🚲\r\n\ttab",
        session="s",
        source="chat",
        role="user",
        importance=0.25,
        pinned=True,
        metadata={"größe": [1, 2.5, None, {"tief": {"er": "✓"}}], "n": True},
    )

    acknowledged = remember_batch(store, given)[0]

    assert (acknowledged.id, acknowledged.created_at) == ("1", NOON)
    assert acknowledged.stored
    assert store.memories.get("1") == given


@pytest.mark.parametrize(
    "moment",
    [
        datetime(2026, 3, 17, 8, 30, 15, 123456, tzinfo=UTC),
        datetime(2026, 3, 17, 8, 30, tzinfo=timezone(timedelta(hours=9))),
        datetime(2026, 3, 17, 8, 30, tzinfo=timezone(-timedelta(hours=3, minutes=30))),
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(987, 6, 5, 4, 3, 2, 1, tzinfo=UTC),
    ],
)
def test_a_time_comes_back_in_utc(store: MemoryStore, moment: datetime) -> None:
    remember_batch(store, memory("1", created_at=moment))

    kept = get_memory(store, "1").created_at

    assert kept == moment
    assert kept.utcoffset() == timedelta()


AGAIN = memory("1", "again", hours_ago=1)


@pytest.mark.parametrize("archived", [False, True])
@pytest.mark.parametrize(
    ("later", "dedupe", "known"),
    [
        (memory("1", "again"), False, True),
        (memory("2", "again"), False, False),
        (memory("2", "again"), True, True),
        (memory("2", "again", session="other"), True, False),
        (memory("2", "again", source="other"), True, False),
        (memory("2", "again "), True, False),
        (memory("2", "Again"), True, False),
    ],
)
def test_a_memory_is_known_by_its_id_and_with_dedupe_by_its_words(
    store: MemoryStore,
    later: MemoryRecord,
    *,
    archived: bool,
    dedupe: bool,
    known: bool,
) -> None:
    remember_batch(store, AGAIN)
    if archived:
        consolidate(store, promotion("e", AGAIN))

    (answer,) = remember_batch(store, later, dedupe=dedupe)

    assert answer.stored is not known
    if known:
        assert (answer.id, answer.created_at) == ("1", AGAIN.created_at)
    assert (
        len(store.memories.existing(["1", "2"])) == len(working_ids(store)) + archived
    )
    assert len(store.memories.existing(["2"])) == (not known)


@pytest.mark.parametrize(("archived", "id"), [(False, "1"), (True, "1"), (True, "e")])
def test_an_id_of_other_words_or_of_an_episode_is_taken(
    store: MemoryStore, id: str, *, archived: bool
) -> None:
    remember_batch(store, AGAIN)
    if archived:
        consolidate(store, promotion("e", AGAIN, content="a summary"))

    with pytest.raises(IdTaken) as refused:
        remember_batch(store, memory(id, "a summary"))

    assert refused.value.field == "id"
    assert get_memory(store, "1").content == "again"


def test_an_unknown_id_is_not_found(store: MemoryStore) -> None:
    with pytest.raises(NotFound):
        store.memories.get("1")
    assert store.memories.originals("1") == []


def test_pending_is_what_is_old_and_unpinned(store: MemoryStore) -> None:
    pinned, of_session = (
        memory("4", hours_ago=5, pinned=True),
        memory("5", hours_ago=4, session="s"),
    )
    remember_batch(store, *TRIO, pinned, of_session)

    def pending(limit: int = 10, **which: Any) -> list[str]:  # noqa: ANN401 of a selection
        found = store.sleep.pending(Selection(**which), limit=limit)
        assert len(found) == store.sleep.count_due(Selection(**which), limit=limit)
        assert all(each.chars == len("note 1") for each in found)
        return [each.id for each in found]

    assert pending(before=NOON - timedelta(hours=1)) == ["5", "1", "2"]
    assert pending(before=NOON - timedelta(hours=4)) == []
    assert pending(session="s") == ["5"]
    assert pending(limit=2) == ["5", "1"]
    assert store.memories.working_count() == 5


def test_existing_gives_those_of_either_tier(store: MemoryStore) -> None:
    remember_batch(store, *TRIO, memory("0", hours_ago=9))
    consolidate(store, promotion("e", TRIO[0]))
    store.deletion.forget(["2"])

    ids = ["3", "2", "1", "9", "0"]
    found = {one.id: one for one in store.memories.existing(ids)}

    assert {id: one.tier for id, one in found.items()} == {
        "0": Tier.WORKING,
        "1": Tier.ARCHIVE,
        "3": Tier.WORKING,
    }
    assert found["1"] == store.memories.get("1")
    assert store.memories.existing([]) == []
    assert [one.id for one in store.memories.working(ids)] == ["0", "3"]


# --------------------------------------------------------------- consolidate


def test_an_episode_leads_back_to_the_archive(store: MemoryStore) -> None:
    remember_batch(store, *TRIO, memory("4"))
    consolidate(store, promotion("e", *TRIO, content="three notes"))

    episode, first, last = get_episode(store, "e"), TRIO[0], TRIO[2]

    assert working_ids(store) == ["4"]
    for each in TRIO:
        archived = replace(each, tier=Tier.ARCHIVE, episode="e")
        assert get_memory(store, each.id) == archived
    assert (episode.content, episode.item_count) == ("three notes", 3)
    assert episode.summary_of == ("1", "2", "3")
    assert (episode.covers_from, episode.covers_until) == (
        first.created_at,
        last.created_at,
    )
    contents = [memory.content for memory in store.memories.originals("e")]
    assert contents == ["note 1", "note 2", "note 3"]


PINNED = memory("4", pinned=True)


@pytest.mark.parametrize(
    "groups",
    [[(*TRIO, memory("gone"))], [(*TRIO, PINNED)], [TRIO[:1], (memory("gone"),)]],
    ids=["a member is gone", "a member is pinned", "another of its group fails"],
)
def test_a_group_is_promoted_whole_or_not_at_all(
    store: MemoryStore, groups: list[tuple[MemoryRecord, ...]]
) -> None:
    remember_batch(store, *TRIO, PINNED)

    with pytest.raises(BatchChanged):
        consolidate(
            store, *(promotion(f"e{at}", *each) for at, each in enumerate(groups))
        )

    assert store.memories.working_count() == 4
    assert store.sleep.log(limit=10) == []
    assert count_by_tier(store)["episodic"] == (0, 0)


def test_a_memory_is_promoted_only_once(store: MemoryStore) -> None:
    remember_batch(store, *TRIO)
    consolidate(store, promotion("e", *TRIO))

    with pytest.raises(BatchChanged):
        consolidate(store, promotion("f", *TRIO))

    assert get_memory(store, "1").episode == "e"


def test_a_claim_holds_for_its_block_alone(store: MemoryStore) -> None:
    for _ in range(2):
        with store.sleep.claim() as held:
            remember_batch(store, memory("1"))
            assert held()


def test_a_promotion_writes_its_log_row(store: MemoryStore) -> None:
    remember_batch(store, *TRIO)
    written = promotion("e", *TRIO)

    consolidate(store, written)

    row = store.sleep.log(limit=10)[0]
    assert row.id == 1
    assert (row.session, row.source, row.episode) == ("default", None, "e")
    assert (row.items_consolidated, row.status) == (3, GroupStatus.PROMOTED)
    assert (row.summary_preview, row.created_at) == ("a summary", NOON)
    assert (row.chars_before, row.chars_after, row.duration_s) == (18, 9, 0.5)


def test_the_log_is_read_newest_first_and_by_session(store: MemoryStore) -> None:
    trio = [memory(f"s{at}", session="s") for at in range(3)]
    remember_batch(store, *TRIO, *trio)
    consolidate(store, promotion("e", *TRIO))
    consolidate(store, promotion("f", *trio))

    def logged(limit: int = 10, **which: Any) -> list[str | None]:  # noqa: ANN401 a filter
        return [row.episode for row in store.sleep.log(limit=limit, **which)]

    assert logged() == logged(cycle="cycle") == ["f", "e"]
    assert logged(limit=1) == ["f"]
    assert logged(session="default") == ["e"]
    assert logged(cycle="another") == []


# A batch does what its memories do one by one, however the store takes them together.


MANY = 237
"""More than any store may take at once, and no round number."""


def found(store: MemoryStore, text: str) -> list[str]:
    query = Query(terms=parse_terms(text), limit=10)
    places = rank(query, store.search.candidates(query))
    return [hit.id for hit in make_hits(query, places, store.search.documents(places))]


def as_said(name: str, draft: Draft) -> Draft:
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
def test_a_batch_is_kept_as_single_ones(store: MemoryStore, seed: int) -> None:
    said = list(drafts(Random(seed)))

    singles = [
        store.memories.remember([as_said("s", draft)]).acknowledged[0] for draft in said
    ]
    batch = store.memories.remember(
        [as_said("b", draft) for draft in said]
    ).acknowledged

    assert told("b", batch) == told("s", singles)
    assert state(store, "b", batch) == state(store, "s", singles)


def test_each_of_many_is_found_by_its_own_words(store: MemoryStore) -> None:
    remember_batch(store, memory("before", "an earlier word"))

    answers = remember_batch(
        store, *(memory(f"{at:03}", f"tick{at} at the {at}th") for at in range(MANY))
    )

    assert all(answer.stored for answer in answers)
    assert [found(store, f"tick{at}") for at in range(MANY)] == [
        [f"{at:03}"] for at in range(MANY)
    ]


@pytest.mark.parametrize("archived", [False, True])
def test_one_taken_id_far_down_refuses_all_and_is_named(
    store: MemoryStore, *, archived: bool
) -> None:
    remember_batch(store, *trio("a"))
    if archived:
        consolidate(store, promotion("e", *trio("a")))
    before = count_by_tier(store)
    many = [memory(f"{at:03}", f"tick{at}") for at in range(MANY)]

    with pytest.raises(IdTaken) as refused:
        remember_batch(store, *many[:200], memory("a1", "other words"), *many[200:])

    assert refused.value.field == "memories[200].id"
    assert count_by_tier(store) == before
    assert len(working_ids(store)) == before["working"][0]
    assert found(store, "tick7") == []


def test_remember_reports_the_size_of_working_memory(store: MemoryStore) -> None:
    counts = [store.memories.remember([Draft(one)]).working for one in trio("a")]
    again = store.memories.remember([Draft(one) for one in trio("a")]).working
    consolidate(store, promotion("e", *trio("a")))
    after = store.memories.remember([Draft(memory("b")), Draft(memory("c"))]).working

    assert (counts, again, after) == ([1, 2, 3], 3, 2)
    assert count_by_tier(store)["working"][0] == store.memories.working_count() == 2


def test_dedupe_ignores_an_expiring_memory(store: MemoryStore) -> None:
    passing = Draft(memory("1", "the door is open", valid_until=NOON))
    again = Draft(memory("2", "the door is open"), dedupe=True)

    answers = store.memories.remember([passing, again]).acknowledged

    assert [answer.stored for answer in answers] == [True, True]


# What every `MemoryStore` counts: how many memories there are, how large, how old.


def test_totals_are_right_after_every_operation(store: MemoryStore) -> None:
    def totals() -> list[tuple[int, int]]:
        counts = count_by_tier(store)
        return [counts[tier] for tier in ("working", "episodic", "archive")]

    remember_batch(store, *TRIO, memory("4", "東京"))
    assert totals() == [(4, 20), (0, 0), (0, 0)]

    consolidate(store, promotion("e", *TRIO, content="short"))
    assert totals() == [(1, 2), (1, 5), (3, 18)]

    store.deletion.forget(["2"])
    assert totals() == [(1, 2), (1, 0), (2, 12)]
    emptied = store.rollups.next_stale()
    assert emptied
    store.rollups.rewrite(emptied.token, replace(emptied.episode, content="shorter"))
    assert totals() == [(1, 2), (1, 7), (2, 12)]

    store.deletion.forget(["4"])
    assert totals() == [(0, 0), (1, 7), (2, 12)]

    store.deletion.forget(["1", "2", "3"])
    assert totals() == [(0, 0)] * 3


def test_an_open_store_is_ready(store: MemoryStore) -> None:
    store.maintenance.check_ready()


def test_totals_name_the_oldest_of_each_tier(store: MemoryStore) -> None:
    late, early = memory("1", hours_ago=1), memory("2", hours_ago=9)
    remember_batch(store, late, early, memory("3", hours_ago=2))
    consolidate(store, promotion("e", early, late))

    totals = store.maintenance.totals()

    assert totals[Tier.WORKING].oldest == NOON - timedelta(hours=2)
    assert totals[Tier.ARCHIVE].oldest == NOON - timedelta(hours=9)
    assert totals[Tier.EPISODIC].oldest == NOON - timedelta(hours=9)
