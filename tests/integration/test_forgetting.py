"""Forgotten means gone: from the tiers, the index, the log, and the bytes on the disk."""

import sqlite3
from contextlib import closing

from fakes import holding, keep, memory
from forgettable import everything

from mnemosyned.domain.consolidation import Trigger
from mnemosyned.domain.memory import Memory
from mnemosyned.service import MemoryService
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.storage.sqlite import SqliteStore
from mnemosyned.verbs_keeping import Forget

UNIQUE = "Zqxjv48213Kwyz"
CJK = "鑫淼焱垚"
CAMEL = "zqxjvSecretName"


def secret_memories() -> list[Memory]:
    """A secret among so many others that it is spread over pages and merged segments."""
    rest = [
        memory(str(at), f"note {at} " + " ".join(f"word{at}x{n}" for n in range(40)), hours_ago=20)
        for at in range(150)
    ]
    words = f"the code is {UNIQUE}, {CJK}を{CAMEL}"
    secret = memory("secret", words, role=UNIQUE, metadata={"also": UNIQUE}, hours_ago=20)
    return [*rest[:70], secret, *rest[70:]]


def test_the_search_for_leftovers_finds_what_is_there(store: SqliteStore) -> None:
    keep(store, *secret_memories())

    assert holding(store.database.parent, UNIQUE) == ["memory.db-wal"]


def test_a_memory_forgotten_while_fresh_is_gone_from_the_disk(
    store: SqliteStore, service: MemoryService
) -> None:
    for one in secret_memories():
        keep(store, one)

    receipt = service.call(Forget("secret"))

    assert (receipt.memories, receipt.episodes_removed, receipt.episodes_rewritten) == (1, 0, 0)
    assert holding(store.database.parent, UNIQUE, CJK, CAMEL) == []


def test_a_memory_forgotten_after_sleep_is_gone_from_the_disk(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle
) -> None:
    for one in secret_memories():
        keep(store, one)
    cycle.run(trigger=Trigger.EXPLICIT)

    receipt = service.call(Forget("secret"))

    assert (receipt.memories, receipt.episodes_removed, receipt.episodes_rewritten) == (1, 0, 1)
    assert store.working_count() == 0
    assert holding(store.database.parent, UNIQUE, CJK, CAMEL) == []


def test_an_episode_forgotten_is_gone_from_the_disk_with_its_originals(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle
) -> None:
    keep(store, *secret_memories())
    report = cycle.run(trigger=Trigger.EXPLICIT)
    original = store.get("secret")
    assert isinstance(original, Memory)
    assert original.episode

    receipt = service.call(Forget(original.episode))

    assert receipt.episodes_removed == 1
    assert receipt.memories in {group.items for group in report.groups}
    assert holding(store.database.parent, UNIQUE, CJK, CAMEL) == []


def test_previews_in_the_log_forget_too(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle
) -> None:
    keep(store, *(memory(str(at), f"{UNIQUE}{at} said", hours_ago=20) for at in range(3)))
    cycle.run(trigger=Trigger.EXPLICIT)
    assert UNIQUE in store.log(limit=1)[0].summary_preview

    service.call(Forget("1"))

    preview = store.log(limit=1)[0].summary_preview
    assert f"{UNIQUE}1" not in preview
    assert f"{UNIQUE}0" in preview


def test_no_table_holds_what_was_forgotten(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle
) -> None:
    keep(
        store,
        *(
            memory(str(at), f"note {at} {UNIQUE if at == 1 else ''}", hours_ago=20)
            for at in range(4)
        ),
    )
    cycle.run(trigger=Trigger.EXPLICIT)

    service.call(Forget("1"))

    with closing(sqlite3.connect(store.database)) as connection:
        assert UNIQUE not in "\n".join(everything(connection))
