"""A grace time: what is forgotten vanishes at once, and can be put back until the time is over."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import permutations
from typing import Any, TypeVar

import pytest
from support.fakes import NOON
from support.leftovers import left_of
from support.services import Lab

from mnemosyned.cli.output.retention import forget_text
from mnemosyned.errors import NotFound
from mnemosyned.memory.exchange import ExportedMemory
from mnemosyned.memory.values import Tier
from mnemosyned.service.intake import CHUNK
from mnemosyned.verbs.conversation import EditBriefing, RemoveLearning
from mnemosyned.verbs.memories import EditMemory, Remember
from mnemosyned.verbs.request import Request
from mnemosyned.verbs.retention import Forget
from mnemosyned.verbs.upkeep import Undo

T = TypeVar("T")
WORD = "Zqxjv48213Kwyz"


@pytest.fixture
def lab(lab: Lab) -> Lab:
    """A memory with a grace time of a day, and something to be forgotten."""
    lab.change({"forget.grace_hours": 24})
    fields: Any = {"tags": ["work"], "importance": 0.9, "metadata": {"a": 1}}
    text = f"Always call the code {WORD}"
    lab.remember(text, id="m", role="user", session="codes", **fields)
    lab.remember("the kettle is hot", id="other", session="codes")
    return lab


def assert_unseen(lab: Lab) -> None:
    """No verb knows the memory."""
    with pytest.raises(NotFound):
        lab.get("m")
    assert "m" not in [memory.id for memory in lab.list().memories]
    assert WORD not in str(lab.recall(WORD, history=True, reveal=True))
    assert WORD not in str(lab.recall("code work call", tag="work"))
    assert WORD not in str(lab.learnings(superseded=True))
    assert lab.forget(query=WORD, dry_run=True).memories == 0
    assert lab.forget(tag="work", dry_run=True).memories == 0


@pytest.mark.parametrize("asleep", [False, True])
def test_what_is_forgotten_is_unseen_and_can_return(lab: Lab, *, asleep: bool) -> None:
    lab.edit("m", text=f"Always call the code {WORD}!")
    if asleep:
        lab.run_cycle(force=True)
    before = lab.memory("m")

    preview = lab.forget("m", dry_run=True)
    receipt = lab.forget("m")

    assert (receipt.memories, receipt.complete) == (1, False)
    assert preview.final_at == receipt.final_at == NOON + timedelta(hours=24)
    assert_unseen(lab)
    if asleep:
        summary = lab.episode_of("other")
        assert WORD not in str(lab.expand(summary.id, reveal=True))
    assert lab.status().recoverable.memories == 1

    restored = lab.restore("m")

    assert (restored.memories, restored.episode) == (1, "")
    after = replace(before, tier=Tier.WORKING, episode=None)
    assert lab.memory("m") == after
    assert lab.recall(WORD).hits[0].id == "m"
    assert [each.text for each in lab.learnings()] == [f"Always call the code {WORD}!"]
    revisions = lab.get("m", history=True).revisions
    assert [each.text for each in revisions] == [f"Always call the code {WORD}"]
    assert lab.status().recoverable.memories == 0


def test_all_that_one_call_forgot_comes_back_together(lab: Lab) -> None:
    lab.learn("Codes are short.", session="codes")
    receipt = lab.forget(session="codes")

    restored = lab.restore(receipt.call)

    assert (receipt.memories, receipt.learnings, restored.memories) == (2, 2, 2)
    assert lab.store.memories.working_count() == 2
    assert len(lab.learnings()) == 2


def test_a_learning_comes_back_superseded_as_it_was(lab: Lab) -> None:
    lab.remember("I prefer tea.", id="tea", role="user")
    lab.clock.advance(hours=1)
    lab.remember("I prefer coffee instead of tea.", id="coffee", role="user")
    lab.clock.advance(hours=1)
    lab.remember("I prefer water instead of coffee.", id="water", role="user")
    before = lab.learnings(superseded=True).learnings

    for id in ("tea", "coffee", "water", ["tea", "coffee", "water"]):
        lab.forget(id)
        lab.undo()
        after = lab.learnings(superseded=True).learnings
        assert sorted(after, key=repr) == sorted(before, key=repr)


def test_once_the_time_is_over_it_is_gone_from_the_file(lab: Lab) -> None:
    lab.forget("m")
    lab.clock.advance(hours=23)
    lab.service.look_after_file()
    assert left_of(lab.store, WORD)

    lab.clock.advance(hours=1)
    lab.service.look_after_file()

    assert left_of(lab.store, WORD) == []
    assert lab.store.deletion.recoverable().memories == 0
    with pytest.raises(NotFound):
        lab.restore("m")


def test_now_is_final_at_once_also_for_what_was_forgotten_before(lab: Lab) -> None:
    lab.forget("m")
    with pytest.raises(NotFound, match="is forgotten already"):
        lab.forget("m")

    first = lab.forget("m", now=True)
    second = lab.forget("other", now=True)

    assert (first.memories, first.complete, first.final_at) == (1, True, None)
    assert (second.memories, second.complete) == (1, True)
    assert left_of(lab.store, WORD, "kettle") == []


def test_a_second_memory_of_its_id_is_kept_in_its_place(lab: Lab) -> None:
    lab.forget("m")
    lab.remember("another", id="m")
    lab.forget("m")

    assert left_of(lab.store, WORD) == []
    assert lab.restore("m").memories == 1
    assert lab.memory("m").content == "another"


def test_a_preview_of_what_was_forgotten_before_leaves_it(lab: Lab) -> None:
    lab.forget("m")

    preview = lab.forget("m", now=True, dry_run=True)

    assert (preview.dry_run, preview.memories, preview.final_at) == (True, 1, None)
    assert lab.store.deletion.recoverable().memories == 1
    assert lab.restore("m").memories == 1


def test_now_is_for_all_ids_whether_forgotten_before_or_not(lab: Lab) -> None:
    lab.forget("m")

    with pytest.raises(NotFound, match="'typo'"):
        lab.forget(["m", "other", "typo"], now=True)
    receipt = lab.forget(["m", "other"], now=True)

    assert (receipt.memories, receipt.complete) == (2, True)
    assert left_of(lab.store, WORD, "kettle") == []


def test_now_is_for_the_earlier_words_of_an_id_too(lab: Lab) -> None:
    lab.forget("m")
    lab.remember("the samovar", id="m")

    receipt = lab.forget("m", now=True)

    assert receipt.memories == 2
    assert left_of(lab.store, WORD, "samovar") == []


@pytest.mark.parametrize("final", [False, True])
def test_what_many_forgot_is_worked_off_in_short_steps(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, *, final: bool
) -> None:
    for number in range(CHUNK + 20):
        lab.remember(f"ibex {number}", session="many")
    receipt = lab.forget(session="many")
    grace = lab.store.deletion
    sizes: list[int] = []

    def counted(work: Callable[[Sequence[str]], T]) -> Callable[[Sequence[str]], T]:
        def step(keys: Sequence[str]) -> T:
            sizes.append(len(keys))
            return work(keys)

        return step

    monkeypatch.setattr(grace, "erase", counted(grace.erase))
    monkeypatch.setattr(grace, "put_back", counted(grace.put_back))
    if final:
        lab.clock.advance(hours=25)
        lab.service.look_after_file()
    else:
        lab.restore(receipt.call)

    assert sizes == [CHUNK, 20]
    assert grace.recoverable().memories == 0
    searched = lab.forget(query="ibex", dry_run=True)
    assert searched.memories == (0 if final else CHUNK + 20)


def test_an_id_that_was_remembered_again_is_not_overwritten(lab: Lab) -> None:
    receipt = lab.forget(["m", "other"])
    lab.remember("something else", id="m")

    lab.restore(receipt.call)

    assert lab.memory("m").content == "something else"
    assert lab.memory("other").content == "the kettle is hot"


def test_learnings_forgotten_by_themselves_are_final_in_time(lab: Lab) -> None:
    lab.learn(f"Say {WORD}x.", session="alone")
    lab.forget(session="alone")

    lab.clock.advance(hours=25)
    lab.service.look_after_file()

    assert left_of(lab.store, f"{WORD}x") == []
    assert lab.store.deletion.recoverable().final_at is None


def test_a_position_that_was_taken_meanwhile_is_left_to_its_owner(lab: Lab) -> None:
    lab.forget("m")
    taking = ExportedMemory(
        id="taker", seq=1, session="s", content="the samovar is hot", created_at=NOON
    )
    lab.store.exchange.restore([taking])

    lab.restore("m")

    assert lab.memory("m").content == f"Always call the code {WORD}"
    assert lab.memory("taker").content == "the samovar is hot"


@pytest.mark.parametrize("slept", [False, True])
def test_what_is_put_back_supersedes_again(lab: Lab, *, slept: bool) -> None:
    lab.remember("the office is in Rome", id="rome")
    if slept:
        lab.run_cycle(force=True)
    lab.remember("the office is in Oslo", id="oslo", supersedes="rome")
    before = lab.memory("rome")

    receipt = lab.forget("oslo")
    assert receipt.in_force_again == ["rome"]
    assert lab.memory("rome").superseded_at is None
    lab.restore("oslo")

    assert lab.memory("rome") == before
    assert before.superseded_by == "oslo"
    if slept:
        assert "Rome" not in lab.episode_of("rome").content


def test_what_is_put_back_holds_where_what_superseded_it_is_gone(lab: Lab) -> None:
    lab.remember("the office is in Rome", id="rome")
    lab.remember("the office is in Oslo", id="oslo", supersedes="rome")

    both = lab.forget(["rome", "oslo"])
    lab.restore(both.call)
    assert lab.memory("rome").superseded_by == "oslo"

    lab.forget("rome")
    lab.forget("oslo", now=True)
    lab.restore("rome")
    rome = lab.memory("rome")
    assert (rome.superseded_at, rome.superseded_by) == (None, None)


@pytest.mark.parametrize("order", [*permutations(("rome", "oslo", "bern"))])
def test_a_chain_is_undone_link_by_link(lab: Lab, order: tuple[str, ...]) -> None:
    lab.remember("the office is in Rome", id="rome")
    lab.remember("the office is in Oslo", id="oslo", supersedes="rome")
    lab.remember("the office is in Bern", id="bern", supersedes="oslo")
    before = [lab.memory(id) for id in order]

    lab.do(*map(Forget, order))
    lab.do(*[Undo()] * 3)
    assert [lab.memory(id) for id in order] == before

    for again in permutations(order):
        lab.do(*map(Forget, order))
        for id in again:
            lab.restore(id)
            stored = lab.store.memories.existing(order)
            assert sum(each.superseded_by is None for each in stored) == 1
        assert [lab.memory(id) for id in order] == before


def test_what_is_put_back_gets_the_successor_that_came_meanwhile(lab: Lab) -> None:
    lab.remember("the office is in Rome", id="rome")
    lab.remember("the office is in Oslo", id="oslo", supersedes="rome")
    lab.do(Forget("oslo"))
    lab.remember("the office is in Bern", id="bern", supersedes="rome")

    lab.do(Undo())

    chain = [lab.memory(id).superseded_by for id in ("rome", "oslo", "bern")]
    assert chain == ["oslo", "bern", None]


@pytest.mark.parametrize(
    "change",
    [
        EditMemory("late", text="I rent a garage."),
        EditMemory("late", role="assistant"),
        Forget("late"),
        Forget(["new", "late"]),
    ],
)
def test_an_undo_adds_no_ending_and_no_learning(lab: Lab, change: Request[Any]) -> None:
    new = "The garage rent is 90 now. Never use tabs."
    lab.remember(new, id="new", role="user")
    late = "The garage rent is 80. I prefer tea. Always use spaces."
    day = NOON - timedelta(days=1)
    lab.remember(late, id="late", role="user", created_at=day)
    lab.endings()
    removed, kept = (
        next(each for each in lab.learnings() if word in each.text)
        for word in ("tea", "spaces")
    )
    lab.do(RemoveLearning(removed.id), EditBriefing(kept.id, pin=True))
    lab.do(EditBriefing("late", pin=True), EditMemory("late", importance=0.9))

    def state() -> list[str]:
        edits = lab.store.injections.edits().by_id.items()
        found = lab.learnings(superseded=True).learnings
        lab.service.endings.note_new_memories()
        return sorted(map(repr, [*found, *edits, *lab.endings()]))

    before = state()
    lab.do(change)
    assert state() != before
    lab.do(Undo())
    assert state() == before


def test_a_correction_comes_back_without_what_it_corrected(lab: Lab) -> None:
    lab.remember("Always use tabs.", id="tabs", role="user")
    lab.do(Remember("Actually, use spaces.", id="spaces", role="user"))
    before = [each.text for each in lab.learnings()]

    lab.do(Forget("spaces"), Forget("tabs", now=True))
    lab.restore("spaces")

    assert before == [each.text for each in lab.learnings()]


def test_a_learning_that_comes_back_is_superseded_by_a_newer_one(lab: Lab) -> None:
    lab.remember("I prefer tea.", id="tea", role="user")
    lab.do(Forget("tea"))
    lab.remember("I prefer coffee instead of tea.", id="coffee", role="user")

    lab.do(Undo())

    assert [each.memory for each in lab.learnings() if each.memory != "m"] == ["coffee"]


def test_the_receipt_says_how_many_can_be_put_back(lab: Lab) -> None:
    lab.run_cycle(force=True)
    pruned = ["m", "other"]
    lab.store.retention.prune(pruned, now=NOON)
    lab.remember("the garden is green", id="new")

    preview = lab.forget([*pruned, "new"], dry_run=True)
    receipt = lab.forget([*pruned, "new"])

    assert preview.final_at == receipt.final_at == NOON + timedelta(hours=24)
    assert (preview.memories, preview.recoverable) == (3, 1)
    assert (receipt.memories, receipt.recoverable) == (3, 1)
    assert f"mnem restore {receipt.call} puts 1 of them back" in forget_text(receipt)
    assert "2 pruned originals among them" in forget_text(preview)
    assert not lab.status().purge_due
    assert left_of(lab.store, WORD) == []
    assert lab.restore(receipt.call).memories == 1


def test_forgetting_pruned_originals_alone_promises_no_grace_time(lab: Lab) -> None:
    lab.run_cycle(force=True)
    lab.store.retention.prune(["other"], now=NOON)

    preview = lab.forget("other", dry_run=True)
    receipt = lab.forget("other")

    assert (preview.final_at, preview.recoverable) == (None, 0)
    assert (receipt.final_at, receipt.call, receipt.complete) == (None, "", True)
