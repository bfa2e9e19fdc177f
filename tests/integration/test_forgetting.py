"""Forgotten means gone: from the tiers, the index, the log, and the bytes on the disk."""

import pytest
from support.fakes import memory, remember_batch
from support.forget_cases import find_remains
from support.leftovers import left_of

from mnemosyned.cli.output.show import render
from mnemosyned.errors import InvalidRequest
from mnemosyned.memory.consolidation import Trigger
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.service import selection
from mnemosyned.service.service import MemoryService
from mnemosyned.sleep.context import CycleRequest
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.verbs.retention import Forget

UNIQUE = "Zqxjv48213Kwyz"
CJK = "鑫淼焱垚"
CAMEL = "zqxjvSecretName"


def secret_memories() -> list[MemoryRecord]:
    """A secret among so many others that it is spread over pages and merged segments."""
    rest = [
        memory(
            str(at),
            f"note {at} " + " ".join(f"word{at}x{n}" for n in range(40)),
            hours_ago=20,
        )
        for at in range(150)
    ]
    words = f"the code is {UNIQUE}, {CJK}を{CAMEL}"
    secret = memory(
        "secret", words, role=UNIQUE, metadata={"also": UNIQUE}, hours_ago=20
    )
    return [*rest[:70], secret, *rest[70:]]


def test_the_search_for_leftovers_finds_what_is_there(store: SqliteStore) -> None:
    remember_batch(store, *secret_memories())

    assert left_of(store, UNIQUE) in (["memory.db-wal"], ["memory"])


def test_a_memory_forgotten_while_fresh_is_gone_from_the_disk(
    store: SqliteStore, service: MemoryService
) -> None:
    for one in secret_memories():
        remember_batch(store, one)

    receipt = service.call(Forget("secret"))

    assert (receipt.memories, receipt.episodes_removed, receipt.episodes_rewritten) == (
        1,
        0,
        0,
    )
    assert left_of(store, UNIQUE, CJK, CAMEL) == []


def test_a_memory_forgotten_after_sleep_is_gone_from_the_disk(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle
) -> None:
    for one in secret_memories():
        remember_batch(store, one)
    cycle.run(CycleRequest(trigger=Trigger.EXPLICIT))

    receipt = service.call(Forget("secret"))

    assert (receipt.memories, receipt.episodes_removed, receipt.episodes_rewritten) == (
        1,
        0,
        1,
    )
    assert store.memories.working_count() == 0
    assert left_of(store, UNIQUE, CJK, CAMEL) == []


def test_an_episode_forgotten_is_gone_from_the_disk_with_its_originals(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle
) -> None:
    remember_batch(store, *secret_memories())
    report = cycle.run(CycleRequest(trigger=Trigger.EXPLICIT))
    original = store.memories.get("secret")
    assert isinstance(original, MemoryRecord)
    assert original.episode

    receipt = service.call(Forget(original.episode))

    assert receipt.episodes_removed == 1
    assert receipt.memories in {group.items for group in report.groups}
    assert left_of(store, UNIQUE, CJK, CAMEL) == []


def test_previews_in_the_log_forget_too(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle
) -> None:
    remember_batch(
        store, *(memory(str(at), f"{UNIQUE}{at} said", hours_ago=20) for at in range(3))
    )
    cycle.run(CycleRequest(trigger=Trigger.EXPLICIT))
    assert UNIQUE in store.sleep.log(limit=1)[0].summary_preview

    service.call(Forget("1"))

    preview = store.sleep.log(limit=1)[0].summary_preview
    assert f"{UNIQUE}1" not in preview
    assert f"{UNIQUE}0" in preview


def test_no_table_holds_what_was_forgotten(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle
) -> None:
    remember_batch(
        store,
        *(
            memory(str(at), f"note {at} {UNIQUE if at == 1 else ''}", hours_ago=20)
            for at in range(4)
        ),
    )
    cycle.run(CycleRequest(trigger=Trigger.EXPLICIT))

    service.call(Forget("1"))

    assert find_remains(store, UNIQUE) == []


def test_a_preview_too_long_for_one_answer_is_listed_page_by_page(
    store: SqliteStore,
    service: MemoryService,
    cycle: SleepCycle,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(selection, "LISTED_MAX", 4)
    remember_batch(
        store, *(memory(f"m{at}", f"ibex {at}", hours_ago=20) for at in range(6))
    )
    cycle.run(CycleRequest(trigger=Trigger.EXPLICIT))
    remember_batch(store, *(memory(f"n{at}", f"ibex {at}") for at in range(4)))
    pages = [service.call(Forget(query="ibex", dry_run=True))]
    while pages[-1].further:
        after = pages[-1].lines[-1].id
        pages.append(service.call(Forget(query="ibex", dry_run=True, after=after)))

    listed = [line.id for page in pages for line in page.lines]
    assert sorted(listed) == [
        *(f"m{at}" for at in range(6)),
        *(f"n{at}" for at in range(4)),
    ]
    assert [(page.memories, page.further) for page in pages] == [
        (10, 6),
        (10, 2),
        (10, 0),
    ]
    assert f"… and 6 more: --dry-run --after {pages[0].lines[-1].id}" in render(
        pages[0]
    )
    assert "more" not in render(pages[-1])


def test_a_preview_goes_on_only_from_what_would_go(
    store: SqliteStore, service: MemoryService
) -> None:
    remember_batch(store, memory("1", "ibex"), memory("2", "heron"))

    with pytest.raises(InvalidRequest, match="leave after out") as strange:
        service.call(Forget(query="ibex", dry_run=True, after="2"))
    with pytest.raises(InvalidRequest, match="after needs dry_run") as alone:
        service.call(Forget(query="ibex", after="1"))

    assert (strange.value.field, alone.value.field) == ("after", "after")
    assert service.call(Forget(query="ibex", dry_run=True)).memories == 1
