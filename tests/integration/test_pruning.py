"""Limits of the archive: words go, details, provenance and summaries stay."""

from __future__ import annotations

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

    characters = sum(len(one.content) for one in told)
    assert (preview.memories, preview.characters) == (3, characters)
    assert msgspec.structs.replace(preview, dry_run=False) == receipt
    after = service.call(Expand(before.id))
    assert after.episode == before
    originals = [(one.id, one.content, one.pruned_at) for one in after.originals]
    assert originals == [(f"m{at}", "", NOON) for at in range(3)]
    values = [detail.value for detail in after.episode.details]
    assert values == ["14:30", "14:31", "14:32"]
    assert get_memory(store, "b1").content == "note b1"
    (hit,) = service.call(Recall("garden")).hits
    assert (hit.id, hit.lines) == (before.id, ())


def test_pruning_by_size_takes_the_oldest_until_it_fits(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle
) -> None:
    ids = [f"m{at}" for at in range(5)]
    told = [memory(id, "x" * 100, hours_ago=-24 * at) for at, id in enumerate(ids, -9)]
    remember_batch(store, *told)
    run_cycle(cycle)

    receipt = service.call(Prune(characters_max=250))

    assert receipt.memories == 3
    pruned = [id for id in ids if get_memory(store, id).pruned_at]
    assert pruned == ids[:3]
    assert store.maintenance.totals()[Tier.ARCHIVE].characters == 200


def test_an_episode_is_pruned_whole_once_all_of_it_is_old(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle
) -> None:
    old, new = (
        [memory(f"{hours}-{at}", "x" * 100, hours_ago=hours - at) for at in range(4)]
        for hours in (50, 20)
    )
    remember_batch(store, *old, *new)
    run_cycle(cycle)

    amid = service.call(Prune(keep_days=2))
    by_size = service.call(Prune(characters_max=750))

    assert (amid.memories, by_size.memories, by_size.characters) == (0, 4, 400)
    assert all(get_memory(store, one.id).pruned_at for one in old)


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


def test_settings_prune_after_a_cycle_and_each_way_to_delete_words_reports_copies(
    store: SqliteStore,
    service: MemoryService,
    cycle: SleepCycle,
    retention: RetentionService,
    settings: SettingsInForce,
) -> None:
    remember_batch(store, *trio("a", hours_ago=100), *trio("b", hours_ago=60))
    remember_batch(store, *trio("c", hours_ago=20))
    run_cycle(cycle)
    told: list[str] = []

    retention.on_removal = lambda: told.append("prune")
    service.call(Prune(keep_days=3))
    retention.on_removal = lambda: told.append("tidy")
    change(settings, {"archive.keep_days": 2})
    retention.after_cycle()
    retention.on_removal = lambda: told.append("forget")
    service.call(Forget("c0"))
    retention.on_removal = lambda: told.append("nothing")
    service.call(Prune(keep_days=3))

    assert told == ["prune", "tidy", "forget"]
    assert get_memory(store, "b1").pruned_at
    assert get_memory(store, "c1").content == "note c1"


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
    garden = trio("a", content="so quiet a garden")
    remember_batch(store, *garden, *trio("b", source="b"))
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
    times = [memory(f"m{at}", f"met at 14:3{at}", hours_ago=90) for at in range(3)]
    remember_batch(store, *times)
    run_cycle(cycle)
    service.call(Prune(characters_max=0))

    receipt = service.call(Forget("m1"))

    assert (receipt.memories, receipt.details, receipt.episodes_rewritten) == (1, 1, 3)
    found = service.call(Get(get_memory(store, "m0").episode or "")).episode
    assert found
    assert "14:30" in found.content
    assert "14:31" not in found.content
