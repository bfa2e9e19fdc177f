"""The archive: the way back from it, undoing a cycle, and the limits of its words."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import msgspec
import pytest
from support.engines import is_file
from support.fakes import NOON, memory, trio, working_ids
from support.services import Lab, make_service
from support.stores import count_by_tier, get_episode

from mnemosyned.cli.output.show import render
from mnemosyned.errors import CannotUndo, IdTaken, InvalidRequest, NotFound, WordsPruned
from mnemosyned.memory.consolidation import WORDLESS, CycleStatus, GroupStatus, Trigger
from mnemosyned.memory.values import MemoryRecord, Tier
from mnemosyned.service.forgetting import RetentionService

Slept = Callable[..., str]


@pytest.fixture
def slept(lab: Lab) -> Slept:
    """Remembers memories and consolidates everything; returns the id of the lab.cycle."""

    def remember_and_sleep(*memories: MemoryRecord) -> str:
        lab.put(*memories)
        return lab.run_cycle(force=True).cycle

    return remember_and_sleep


# ------------------------------------------------------------------- restore


def test_a_restored_memory_is_as_it_was_and_pinned(lab: Lab, slept: Slept) -> None:
    given = memory(
        "1", "a bike", hours_ago=20, role="user", importance=0.9, metadata={"a": 1}
    )
    slept(given, *trio("a"))

    lab.restore("1")

    assert lab.memory("1") == replace(given, pinned=True)
    assert [hit.id for hit in lab.recall("bike").hits] == ["1"]


def test_a_restored_memory_is_in_no_summary_until_it_is_let_go_and_sleeps_again(
    lab: Lab, slept: Slept
) -> None:
    slept(*trio("a"))

    receipt = lab.restore("a1")
    again = lab.run_cycle(force=True)

    assert not receipt.episode_removed
    assert again.status is CycleStatus.NOTHING_TO_DO
    assert "a1" not in lab.episode_of("a0").content
    assert lab.episode_of("a0").summary_of == ("a0", "a2")

    lab.unpin("a1")
    lab.run_cycle(force=True)

    assert lab.episode_of("a1").summary_of == ("a1",)
    counts = {tier: count for tier, (count, _) in count_by_tier(lab.store).items()}
    assert counts == {"working": 0, "episodic": 2, "archive": 3}


def test_restoring_the_last_original_removes_its_episode(
    lab: Lab, slept: Slept
) -> None:
    slept(memory("1", hours_ago=20))

    assert lab.restore("1").episode_removed
    assert lab.store.maintenance.totals()[Tier.EPISODIC].count == 0


def test_what_cannot_be_restored_is_refused_with_a_hint(lab: Lab) -> None:
    lab.put(*trio("a"), memory("fresh"))
    report = lab.run_cycle()
    (episode,) = report.groups[0].episodes
    lab.prune(characters_max=0)

    for id, problem in (("fresh", "already"), (episode, "originals")):
        with pytest.raises(InvalidRequest, match=problem):
            lab.restore(id)
    with pytest.raises(WordsPruned, match="2026-03-17"):
        lab.restore("a1")
    with pytest.raises(InvalidRequest, match="restore"):
        lab.pin("a1")


# ---------------------------------------------------------------------- undo


def test_an_undone_cycle_leaves_everything_as_it_was_before(lab: Lab) -> None:
    given = [
        *trio("a"),
        *trio("b", source="chat", hours_ago=30, importance=0.75, metadata={"n": [1]}),
        memory("pinned", hours_ago=40, pinned=True),
        memory("alone", "東京 getUserName", hours_ago=50, session="s", role="user"),
    ]
    lab.put(*given)
    order = working_ids(lab.store)
    before = lab.recall("note getUserName 東京", limit=20).hits

    report = lab.undo_cycle(lab.run_cycle(force=True).cycle)

    assert (report.status, report.restored) == (CycleStatus.UNDONE, 7)
    assert {group.covers_from for group in report.groups} == {
        one.created_at for one in given if one.id in {"a0", "b0", "alone"}
    }
    assert {one.id: lab.memory(one.id) for one in given} == {
        one.id: one for one in given
    }
    assert working_ids(lab.store) == order
    counts = count_by_tier(lab.store)
    assert counts["episodic"] == counts["archive"] == (0, 0)
    assert lab.recall("note getUserName 東京", limit=20).hits == before


def test_an_undo_is_in_the_log_and_cannot_be_repeated(lab: Lab, slept: Slept) -> None:
    first = slept(*trio("a"))
    lab.clock.advance(minutes=5)

    lab.undo_cycle(first)

    (row,) = lab.store.sleep.log(limit=9)
    assert (row.undone_at, row.summary_preview) == (lab.clock.now(), "")
    with pytest.raises(CannotUndo, match="already"):
        lab.undo_cycle(first)
    with pytest.raises(NotFound):
        lab.undo_cycle("never")


B = ["b0", "b1", "b2"]


@pytest.mark.parametrize(
    ("memories", "forgotten", "errors", "left"),
    [
        (
            [*trio("a"), *trio("b", source="b")],
            ["a1", *B],
            {
                "1 original was forgotten or restored before",
                "3 originals were forgotten or restored before",
            },
            ["a0", "a2"],
        ),
        (
            [*trio("a", hours_ago=200), *trio("b", source="b")],
            [],
            {None, "the words of 3 originals were pruned"},
            B,
        ),
        (
            [*trio("a", hours_ago=200)],
            ["a1"],
            {
                "the words of 2 originals were pruned; 1 original was forgotten or restored before"
            },
            [],
        ),
    ],
    ids=["forgotten", "pruned", "both"],
)
def test_an_undo_brings_back_what_is_left_and_names_what_is_missing_as_its_dry_run_does(
    lab: Lab,
    slept: Slept,
    *,
    memories: list[MemoryRecord],
    forgotten: list[str],
    errors: set[str | None],
    left: list[str],
) -> None:
    first = slept(*memories)
    for id in forgotten:
        lab.forget(id)
    lab.prune(keep_days=3)

    planned = lab.undo_cycle(first, dry_run=True)
    done = lab.undo_cycle(first)

    for report in (planned, done):
        assert report.status is CycleStatus.PARTIAL
        assert {group.error for group in report.groups} == errors
        assert sum(group.items for group in report.groups) == len(left)
        # A group with pruned originals stays whole.
        kept = [group for group in report.groups if group.status is GroupStatus.KEPT]
        assert {group.items for group in kept} == ({0} if "a0" not in left else set())
        assert report.failed == len(kept)
        assert (report.held_until is None) == (not left)
    assert done.restored == len(left)
    assert working_ids(lab.store) == left
    assert (lab.memory("a0").episode is None) == ("a0" in left)


def test_the_last_cycle_need_not_be_named(lab: Lab, slept: Slept) -> None:
    slept(*trio("a", hours_ago=200))
    lab.prune(keep_days=3)
    older, newer = slept(*trio("b")), slept(*trio("c"))
    slept()  # there was nothing to do

    undone = [lab.undo_cycle("last").cycle for _ in range(2)]

    assert undone == [newer, older]
    # What was pruned cannot come back.
    with pytest.raises(CannotUndo, match="nothing to undo"):
        lab.undo_cycle("last")


def test_days_and_weeks_that_an_undo_leaves_nothing_of_are_undone_in_the_log(
    lab: Lab, slept: Slept
) -> None:
    first = slept(*trio("a", hours_ago=80))
    second = slept(*trio("b", source="b", hours_ago=104))
    lab.clock.advance(days=30)
    slept()

    lab.undo_cycle(first)
    amid = {row.level for row in lab.store.sleep.log(limit=99) if row.undone_at is None}
    lab.undo_cycle(second)

    assert amid == {0, 1, 2, 3}
    assert all(row.undone_at for row in lab.store.sleep.log(limit=99))
    assert lab.store.maintenance.totals()[Tier.EPISODIC].count == 0


def test_an_undo_rewrites_the_day_above_from_what_remains(
    lab: Lab, slept: Slept
) -> None:
    slept(*trio("a", hours_ago=80))
    second = slept(*trio("b", source="b", hours_ago=80))
    lab.clock.advance(days=3)
    slept()
    day = lab.episode_of("a0").parent
    assert day

    lab.undo_cycle(second)

    found = get_episode(lab.store, day)
    assert found.item_count == 3
    assert found.summary_of == (lab.memory("a0").episode,)
    assert "note a1" in found.content
    assert "note b" not in found.content


# ------------------------------------------------------- how long it lasts


@pytest.mark.parametrize("trigger", [Trigger.AGE, Trigger.SCHEDULE, Trigger.SHUTDOWN])
def test_what_an_undo_put_back_stays_for_as_long_as_it_says(
    lab: Lab, trigger: Trigger
) -> None:
    lab.put(*trio("a"))
    report = lab.undo_cycle(lab.run_cycle(force=True).cycle)
    lab.put(*trio("b", source="b"))

    at_once = lab.run_cycle(trigger)
    due = lab.status().sleep.due
    assert report.held_until == lab.clock.now() + timedelta(hours=1)
    lab.clock.moment = report.held_until
    in_time = lab.run_cycle(trigger)

    assert (at_once.evicted, at_once.candidates, due) == (3, 3, 0)
    assert in_time.evicted == 3


def test_an_undo_holds_until_the_next_scheduled_cycle_or_as_long_as_told(
    lab: Lab, retention: RetentionService
) -> None:
    lab.put(*trio("a"))
    tonight = lab.clock.now() + timedelta(hours=9)
    lab.change({"auto_sleep": True, "sleep.cron": "0 3 * * *"})
    lab.service = make_service(
        lab.store, lab.cycle, retention, lab.settings, in_background=True
    )
    with lab.service.sleeper as sleeper:
        scheduled = lab.undo_cycle(
            lab.run_cycle(force=True).cycle, dry_run=True
        ).held_until
        told = lab.undo_cycle("last", keep_hours=9).held_until
        assert sleeper.next_cycle

        assert scheduled == max(
            lab.clock.now() + timedelta(hours=1), sleeper.next_cycle
        )
    assert told == tonight


def test_a_cycle_that_ignores_age_and_a_pin_let_go_ignore_the_undo(
    lab: Lab, slept: Slept
) -> None:
    lab.undo_cycle(slept(*trio("a"), *trio("b", source="b")))

    lab.unpin("a0")
    let_go = lab.run_cycle()
    forced = lab.sleep(force=True)

    assert (let_go.evicted, forced.evicted) == (1, 5)


def test_what_an_undo_holds_back_keeps_no_trigger_busy_and_is_known_if_said_again(
    lab: Lab, slept: Slept
) -> None:
    lab.undo_cycle(slept(*trio("a")))

    now = lab.clock.now()
    held = lab.store.sleep.activity(fresh=now, now=now, limit=9)
    later = lab.store.sleep.activity(fresh=now, now=now + timedelta(hours=1), limit=9)
    again = lab.remember("note a1", session=trio("a")[1].session, dedupe=True)

    assert (held.rows, held.movable, held.oldest) == (3, 0, None)
    assert (later.movable, later.oldest) == (3, trio("a")[0].created_at)
    assert (again.id, again.stored) == ("a1", False)


# Limits of the archive: words go, details, provenance and summaries stay.


def test_the_archive_keeps_everything_by_default(lab: Lab, slept: Slept) -> None:
    slept(*trio("a", hours_ago=24 * 4_000))

    assert lab.prune().memories == 0
    assert lab.memory("a1").content == "note a1"


def test_pruning_takes_the_words_and_leaves_details_hash_and_provenance(
    lab: Lab, slept: Slept
) -> None:
    told = [
        memory(f"m{at}", f"met at 14:3{at} in the garden", hours_ago=90)
        for at in range(3)
    ]
    slept(*told, *trio("b", hours_ago=20))
    before = lab.episode_of("m1")
    preview = lab.prune(keep_days=2, dry_run=True)

    receipt = lab.prune(keep_days=2)

    characters = sum(len(one.content) for one in told)
    assert (preview.memories, preview.characters) == (3, characters)
    assert msgspec.structs.replace(preview, dry_run=False) == receipt
    after = lab.expand(before.id)
    assert after.episode == before
    originals = [(one.id, one.content, one.pruned_at) for one in after.originals]
    assert originals == [(f"m{at}", "", NOON) for at in range(3)]
    values = [detail.value for detail in after.episode.details]
    assert values == ["14:30", "14:31", "14:32"]
    assert lab.memory("b1").content == "note b1"
    (hit,) = lab.recall("garden").hits
    assert (hit.id, hit.lines) == (before.id, ())


def test_pruning_by_size_takes_the_oldest_until_it_fits(lab: Lab, slept: Slept) -> None:
    ids = [f"m{at}" for at in range(5)]
    told = [memory(id, "x" * 100, hours_ago=-24 * at) for at, id in enumerate(ids, -9)]
    slept(*told)

    receipt = lab.prune(characters_max=250)

    assert receipt.memories == 3
    pruned = [id for id in ids if lab.memory(id).pruned_at]
    assert pruned == ids[:3]
    assert lab.store.maintenance.totals()[Tier.ARCHIVE].characters == 200


def test_an_episode_is_pruned_whole_once_all_of_it_is_old(
    lab: Lab, slept: Slept
) -> None:
    old, new = (
        [memory(f"{hours}-{at}", "x" * 100, hours_ago=hours - at) for at in range(4)]
        for hours in (50, 20)
    )
    slept(*old, *new)

    amid = lab.prune(keep_days=2)
    by_size = lab.prune(characters_max=750)

    assert (amid.memories, by_size.memories, by_size.characters) == (0, 4, 400)
    assert all(lab.memory(one.id).pruned_at for one in old)


def test_restoring_costs_no_other_original_the_last_of_its_words(
    lab: Lab, slept: Slept
) -> None:
    slept(*trio("a"))
    lab.store.retention.prune(["a0"], now=lab.clock.now())  # as a crash may leave it
    before = lab.episode_of("a1")

    with pytest.raises(WordsPruned, match="all that is left"):
        lab.restore("a1")

    assert lab.episode_of("a1") == before


def test_settings_prune_after_a_cycle_and_each_way_to_delete_words_reports_copies(
    lab: Lab, slept: Slept, retention: RetentionService
) -> None:
    lab.put(*trio("a", hours_ago=100), *trio("b", hours_ago=60))
    slept(*trio("c", hours_ago=20))
    told: list[str] = []

    retention.on_removal = lambda: told.append("prune")
    lab.prune(keep_days=3)
    retention.on_removal = lambda: told.append("tidy")
    lab.change({"archive.keep_days": 2})
    retention.after_cycle()
    retention.on_removal = lambda: told.append("forget")
    lab.forget("c0")
    retention.on_removal = lambda: told.append("nothing")
    lab.prune(keep_days=3)

    assert told == ["prune", "tidy", "forget"]
    assert lab.memory("b1").pruned_at
    assert lab.memory("c1").content == "note c1"


def test_a_pruned_memory_sent_again_is_known_and_other_words_are_refused(
    lab: Lab, slept: Slept
) -> None:
    slept(*trio("a"))
    lab.prune(characters_max=0)

    assert not lab.remember("note a1", id="a1").stored
    assert lab.remember("note a1", dedupe=True).stored
    with pytest.raises(IdTaken):
        lab.remember("other words", id="a1")


def test_the_preview_says_whose_last_words_go_with_a_forgotten_one(
    lab: Lab, slept: Slept
) -> None:
    garden = trio("a", content="so quiet a garden")
    slept(*garden, *trio("b", source="b"))
    lab.prune(characters_max=0)

    preview = lab.forget("a1", dry_run=True)
    whole = lab.forget(source="b", dry_run=True)
    lab.forget("a1")

    assert (preview.pruned_losing_summary, whole.pruned_losing_summary) == (2, 0)
    assert "2 pruned originals would lose their part" in render(preview)
    assert "lose their part" not in render(whole)
    assert "(its words were pruned)" in render(preview)
    assert lab.episode_of("a0").content == WORDLESS


def test_the_preview_of_a_large_file_says_how_long_writing_waits(lab: Lab) -> None:
    lab.remember("a bike", id="1")

    preview = lab.forget("1", dry_run=True)
    large = msgspec.structs.replace(preview, file_bytes=3_000_000_000)

    assert (preview.file_bytes > 0) is is_file(lab.store)
    assert "rewritten: writes" not in render(preview)
    assert "(3,000 MB) is then rewritten: writes wait about 0 min 30 s" in render(large)


def test_what_was_pruned_can_still_be_forgotten(lab: Lab, slept: Slept) -> None:
    times = [memory(f"m{at}", f"met at 14:3{at}", hours_ago=90) for at in range(3)]
    slept(*times)
    lab.prune(characters_max=0)

    receipt = lab.forget("m1")

    assert (receipt.memories, receipt.details, receipt.episodes_rewritten) == (1, 1, 3)
    found = lab.get(lab.memory("m0").episode or "").episode
    assert found
    assert "14:30" in found.content
    assert "14:31" not in found.content
