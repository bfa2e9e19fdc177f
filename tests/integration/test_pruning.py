"""Limits of the archive: words go, details, provenance and summaries stay."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from support.engines import is_file
from support.fakes import NOON, FakeClock, memory, remember_batch, trio
from support.settings import change
from support.stores import episode_of, get_memory, run_cycle

from mnemosyned.cli.output.show import render
from mnemosyned.config.settings import SettingsInForce
from mnemosyned.errors import IdTaken, WordsPruned
from mnemosyned.memory.consolidation import WORDLESS
from mnemosyned.memory.values import Tier
from mnemosyned.service.forgetting import RetentionService
from mnemosyned.service.service import MemoryService
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.verbs.memories import Expand, Get, Recall, Remember
from mnemosyned.verbs.retention import Forget, Prune, Restore


def test_the_archive_keeps_everything_by_default(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle
) -> None:
    remember_batch(store, *trio("a", hours_ago=24 * 4_000))
    run_cycle(cycle)

    assert service.call(Prune()).memories == 0
    assert get_memory(store, "a1").content == "note a1"


def test_pruning_takes_the_words_and_leaves_details_hash_and_provenance(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle
) -> None:
    told = [
        memory(f"m{at}", f"met at 14:3{at} in the garden", hours_ago=90)
        for at in range(3)
    ]
    remember_batch(store, *told, *trio("b", hours_ago=20))
    run_cycle(cycle)
    before = episode_of(store, "m1")
    preview = service.call(Prune(keep_days=2, dry_run=True))

    receipt = service.call(Prune(keep_days=2))

    assert (preview.memories, preview.characters) == (
        3,
        sum(len(one.content) for one in told),
    )
    assert replace_flag(preview) == replace_flag(receipt)
    after = service.call(Expand(before.id))
    assert after.episode == before
    assert [(one.id, one.content, one.pruned_at) for one in after.originals] == [
        (f"m{at}", "", NOON) for at in range(3)
    ]
    assert [detail.value for detail in after.episode.details] == [
        "14:30",
        "14:31",
        "14:32",
    ]
    assert get_memory(store, "b1").content == "note b1"
    (hit,) = service.call(Recall("garden")).hits
    assert (hit.id, hit.lines) == (before.id, ())


def replace_flag(pruned: object) -> str:
    return str(pruned).replace("dry_run=True", "dry_run=False")


def test_pruning_by_size_takes_the_oldest_until_it_fits(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle
) -> None:
    remember_batch(
        store,
        *(memory(f"m{at}", "x" * 100, hours_ago=200 - 24 * at) for at in range(5)),
    )
    run_cycle(cycle)

    receipt = service.call(Prune(characters_max=250))

    assert receipt.memories == 3
    assert [bool(get_memory(store, f"m{at}").pruned_at) for at in range(5)] == [
        True
    ] * 3 + [False] * 2
    assert store.maintenance.totals()[Tier.ARCHIVE].characters == 200


def test_an_episode_is_pruned_whole_once_all_of_it_is_old(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle
) -> None:
    told = [memory(f"m{at}", "x" * 100, hours_ago=50 - at) for at in range(4)]
    remember_batch(
        store,
        *told,
        *(memory(f"n{at}", "x" * 100, hours_ago=20 - at) for at in range(4)),
    )
    run_cycle(cycle)

    amid = service.call(Prune(keep_days=2))
    by_size = service.call(Prune(characters_max=750))

    assert (amid.memories, by_size.memories, by_size.characters) == (0, 4, 400)
    assert {one.id for one in told if get_memory(store, one.id).pruned_at} == {
        one.id for one in told
    }


def test_restoring_costs_no_other_original_the_last_of_its_words(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle, clock: FakeClock
) -> None:
    remember_batch(store, *trio("a"))
    run_cycle(cycle)
    store.retention.prune(["a0"], now=clock.now())  # as a crash may leave it
    before = episode_of(store, "a1")

    with pytest.raises(WordsPruned, match="all that is left"):
        service.call(Restore("a1"))

    assert episode_of(store, "a1") == before


def test_the_settings_prune_after_a_cycle(
    store: SqliteStore,
    cycle: SleepCycle,
    retention: RetentionService,
    settings: SettingsInForce,
) -> None:
    remember_batch(store, *trio("a", hours_ago=100), *trio("b", hours_ago=20))
    run_cycle(cycle)
    change(settings, {"archive.keep_days": 2})

    retention.after_cycle()

    assert get_memory(store, "a1").pruned_at
    assert get_memory(store, "b1").content == "note b1"


def test_copies_are_reported_for_each_way_to_delete_words(
    store: SqliteStore,
    service: MemoryService,
    cycle: SleepCycle,
    retention: RetentionService,
    settings: SettingsInForce,
) -> None:
    remember_batch(
        store,
        *trio("a", hours_ago=100),
        *trio("b", hours_ago=60),
        *trio("c", hours_ago=20),
    )
    run_cycle(cycle)
    told: list[str] = []
    way = ""
    retention.on_removal = lambda: told.append(way)

    way = "prune"
    service.call(Prune(keep_days=3))
    way = "tidy"
    change(settings, {"archive.keep_days": 2})
    retention.after_cycle()
    way = "forget"
    service.call(Forget("c0"))
    way = "nothing"
    service.call(Prune(keep_days=3))

    assert told == ["prune", "tidy", "forget"]


def test_a_pruned_memory_sent_again_is_known_and_other_words_are_refused(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle
) -> None:
    remember_batch(store, *trio("a"))
    run_cycle(cycle)
    service.call(Prune(characters_max=0))

    assert not service.call(Remember("note a1", id="a1")).stored
    assert service.call(Remember("note a1", dedupe=True)).stored
    with pytest.raises(IdTaken):
        service.call(Remember("other words", id="a1"))


def test_the_preview_says_whose_last_words_go_with_a_forgotten_one(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle
) -> None:
    remember_batch(
        store, *(replace(one, content="so quiet a garden") for one in trio("a"))
    )
    remember_batch(store, *trio("b", source="b"))
    run_cycle(cycle)
    service.call(Prune(characters_max=0))

    preview = service.call(Forget("a1", dry_run=True))
    whole = service.call(Forget(source="b", dry_run=True))
    service.call(Forget("a1"))

    assert (preview.pruned_losing_summary, whole.pruned_losing_summary) == (2, 0)
    assert "2 pruned originals would lose their part" in render(preview)
    assert "lose their part" not in render(whole)
    assert "(its words were pruned)" in render(preview)
    assert episode_of(store, "a0").content == WORDLESS


def test_the_preview_of_a_large_file_says_how_long_writing_waits(
    store: SqliteStore, service: MemoryService
) -> None:
    service.call(Remember("a bike", id="1"))

    preview = service.call(Forget("1", dry_run=True))
    large = msgspec.structs.replace(preview, file_bytes=3_000_000_000)

    assert (preview.file_bytes > 0) is is_file(store)
    assert "rewritten: writes" not in render(preview)
    assert "(3,000 MB) is then rewritten: writes wait about 0 min 30 s" in render(large)


def test_what_was_pruned_can_still_be_forgotten(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle
) -> None:
    remember_batch(
        store, *(memory(f"m{at}", f"met at 14:3{at}", hours_ago=90) for at in range(3))
    )
    run_cycle(cycle)
    service.call(Prune(characters_max=0))

    receipt = service.call(Forget("m1"))

    assert (receipt.memories, receipt.details, receipt.episodes_rewritten) == (1, 1, 3)
    found = service.call(Get(get_memory(store, "m0").episode or "")).episode
    assert found
    assert "14:30" in found.content
    assert "14:31" not in found.content
