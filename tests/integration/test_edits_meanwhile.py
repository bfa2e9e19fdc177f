"""An edit amid other work: a sleep, the rewriting of summaries, another edit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from support.edited import kettle
from support.fakes import (
    NOON,
    FakeClock,
    FakeSummarizer,
    consolidate,
    memory,
    promotion,
    remember_batch,
)
from support.stores import TRIO, episode_of, get_episode, get_memory, run_cycle

from mnemosyned.errors import BatchChanged, WordsPruned
from mnemosyned.memory.consolidation import GroupStatus
from mnemosyned.memory.edit import MemoryEdit
from mnemosyned.memory.values import Episode, MemoryRecord, Tier
from mnemosyned.service.service import MemoryService
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.verbs.memories import Edited, EditMemory, Get, Remember
from mnemosyned.verbs.retention import Prune

__all__ = ["kettle"]


def test_an_edit_of_what_changed_meanwhile_is_refused(
    service: MemoryService, kettle: str
) -> None:
    service.call(EditMemory(kettle, text="The samovar"))

    with pytest.raises(BatchChanged, match="nothing was done"):
        service.call(
            EditMemory(kettle, text="The pot", if_text="The kettle is at 10.0.0.7")
        )
    service.call(EditMemory(kettle, text="The pot", if_text="The samovar"))

    got = service.call(Get(kettle)).memory
    assert got
    assert got.content == "The pot"


def test_an_edit_while_its_group_is_summarized_fails_the_group(
    store: SqliteStore,
    service: MemoryService,
    cycle: SleepCycle,
    summarizer: FakeSummarizer,
) -> None:
    remember_batch(
        store, *(memory(f"m{at}", f"the kettle {at} " * 40) for at in range(6))
    )
    edits: list[Edited] = []

    def edit(_: object) -> None:
        if not edits:
            edits.append(service.call(EditMemory("m0", text="The samovar")))

    summarizer.meanwhile = edit
    run_cycle(cycle)

    assert edits
    assert get_memory(store, "m0").tier is Tier.WORKING
    run_cycle(cycle)
    assert get_memory(store, "m0").tier is Tier.ARCHIVE
    assert "samovar" in episode_of(store, "m0").content


@pytest.mark.parametrize(
    ("changes", "tier"),
    [({"text": "The samovar " * 40}, Tier.ARCHIVE), ({"session": "c"}, Tier.WORKING)],
)
def test_an_edit_before_its_group_is_read_fails_no_group(
    store: SqliteStore,
    service: MemoryService,
    cycle: SleepCycle,
    summarizer: FakeSummarizer,
    *,
    changes: dict[str, Any],
    tier: Tier,
) -> None:
    for session in "ab":
        remember_batch(
            store,
            *(
                memory(f"{session}{n}", f"kettle {n} " * 40, session=session)
                for n in range(6)
            ),
        )
    later: list[str] = []

    def edit(memories: Sequence[MemoryRecord]) -> None:
        if not later:
            later.append("b0" if memories[0].session == "a" else "a0")
            service.call(EditMemory(later[0], **changes))

    summarizer.meanwhile = edit
    run_cycle(cycle)

    statuses = {entry.status for entry in store.sleep.log(limit=100)}
    assert statuses == {GroupStatus.PROMOTED}
    assert get_memory(store, later[0]).tier is tier
    assert get_memory(store, later[0][0] + "1").tier is Tier.ARCHIVE


@pytest.mark.parametrize(
    "request_",
    [
        EditMemory("m", tags=["kitchen"]),
        EditMemory(of_source="notes", tags=["kitchen"]),
    ],
)
def test_two_edits_at_once_both_remain(
    store: SqliteStore,
    service: MemoryService,
    kettle: str,
    monkeypatch: pytest.MonkeyPatch,
    request_: EditMemory,
) -> None:
    others = ["away"]
    read = store.memories.get

    def read_and_edit(id: str) -> MemoryRecord | Episode:
        memory = read(id)
        if others:
            service.call(EditMemory(id, session=others.pop(), importance=0.9))
        return memory

    monkeypatch.setattr(store.memories, "get", read_and_edit)
    service.call(request_)

    after = read(kettle)
    assert isinstance(after, MemoryRecord)
    assert (after.session, after.importance, after.tags) == ("away", 0.9, ("kitchen",))


def test_a_name_given_while_a_summary_is_rewritten_remains(store: SqliteStore) -> None:
    remember_batch(store, *TRIO)
    consolidate(store, promotion("e", *TRIO))
    store.deletion.forget(["2", "3"])
    stale = store.rollups.next_stale()
    before = get_memory(store, "1")
    rename = MemoryEdit(before=before, after=replace(before, session="new"))
    store.changes.edit([rename], now=NOON)

    assert stale
    with pytest.raises(BatchChanged):
        store.rollups.rewrite(stale.token, stale.episode)

    assert get_episode(store, "e").session == "new"


def test_a_refused_edit_of_a_pruned_memory_leaves_its_summary(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle, clock: FakeClock
) -> None:
    service.call(Remember("The kettle", id="m", session="home"))
    run_cycle(cycle)
    clock.advance(days=9)
    service.call(Prune(keep_days=1))

    with pytest.raises(WordsPruned):
        service.call(EditMemory("m", text="The samovar", session="away"))

    assert episode_of(store, "m").session == "home"


def test_a_name_given_while_a_day_is_composed_reaches_it(
    store: SqliteStore,
    service: MemoryService,
    cycle: SleepCycle,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service.call(Remember("The kettle", id="m", session="home"))
    clock.advance(days=40)
    composed = store.rollups.index_terms
    names = ["away"]

    def rename_and_compose(ids: Sequence[str]) -> dict[str, str]:
        if names:
            service.call(EditMemory("m", session=names.pop()))
        return composed(ids)

    monkeypatch.setattr(store.rollups, "index_terms", rename_and_compose)
    run_cycle(cycle)

    day = episode_of(store, "m").parent
    assert not names
    assert day
    assert get_episode(store, day).session == "away"
