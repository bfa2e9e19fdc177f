"""Pinned, valid for a time, superseded: what is recalled, what is summarized, what stays."""

from __future__ import annotations

from datetime import timedelta

import pytest
from support.fakes import (
    NOON,
    memory,
    trio,
    working_ids,
)
from support.worlds import World

from mnemosyned.cli.output.retention import forget_text
from mnemosyned.errors import NotFound
from mnemosyned.memory.consolidation import UNSPOKEN
from mnemosyned.memory.values import Tier
from mnemosyned.verbs.memories import Expand, Get, Pin, Recall, Remember, RememberMany
from mnemosyned.verbs.retention import Forget

ROME, PARIS, OSLO = (
    "the office is in Rome",
    "the office is in Paris",
    "the office is in Oslo",
)


def found(world: World, query: str, *, history: bool = False) -> list[str]:
    return [hit.id for hit in world.call(Recall(query, history=history)).hits]


def test_a_pin_that_comes_while_its_group_is_summarized_holds(world: World) -> None:
    world.remember(*trio("a"))
    world.summarizer.meanwhile = lambda _: world.call(Pin("a1"))

    world.sleep()
    world.sleep()

    assert world.memory("a1").tier is Tier.WORKING
    assert "a1" not in world.episode_of("a0").content


def test_what_has_expired_is_not_recalled_and_not_lost(world: World) -> None:
    world.call(
        Remember("the lift is broken", id="1", valid_until=NOON + timedelta(hours=2))
    )
    assert found(world, "lift") == ["1"]

    world.clock.advance(hours=2)

    assert found(world, "lift") == []
    assert found(world, "lift", history=True) == []
    assert world.memory("1").content == "the lift is broken"


def test_no_summary_speaks_of_what_will_expire_and_it_is_found_until_then(
    world: World,
) -> None:
    world.remember(*trio("a"))
    until = NOON + timedelta(hours=40)
    world.call(
        Remember(
            "the lift is broken",
            id="1",
            created_at=NOON - timedelta(hours=20),
            valid_until=until,
        )
    )

    world.sleep()

    episode = world.episode_of("1")
    assert set(episode.summary_of) == {"a0", "a1", "a2", "1"}
    assert "lift" not in episode.content
    (hit,) = world.call(Recall("lift")).hits
    assert [line.id for line in hit.lines] == ["1"]
    world.clock.moment = until
    assert found(world, "lift") == []
    assert "1" in {one.id for one in world.call(Expand(episode.id)).originals}


def test_a_group_of_which_nothing_lasts_is_archived_without_a_summary(
    world: World,
) -> None:
    for at in range(4):
        world.call(
            Remember(
                f"build {at} runs",
                id=f"b{at}",
                created_at=NOON - timedelta(hours=20, minutes=-at),
                valid_until=NOON,
            )
        )

    world.sleep()

    assert world.summarizer.calls == []
    assert world.store.memories.working_count() == 0
    assert world.episode_of("b0").content == UNSPOKEN
    assert len(world.episode_of("b0").summary_of) == 4


def test_many_expired_notes_do_not_hide_the_one_in_force(world: World) -> None:
    soon = NOON + timedelta(minutes=1)
    notes = [Remember(f"build {at} is red", valid_until=soon) for at in range(400)]
    world.call(RememberMany(notes))
    world.call(
        Remember("of all that is red here, the build among them, this is all", id="now")
    )
    world.clock.advance(minutes=2)

    assert found(world, "build red") == ["now"]


def remember_offices(world: World) -> None:
    """Each office takes the place of the one before."""
    world.call(Remember(ROME, id="rome"))
    world.call(Remember(PARIS, id="paris", supersedes="rome"))
    world.call(Remember(OSLO, id="oslo", supersedes="paris"))


def test_recall_shows_the_current_fact_and_its_history_on_request(world: World) -> None:
    world.call(Remember(ROME, id="rome"))
    world.call(Remember(PARIS, id="paris", supersedes="rome"))
    world.call(Remember(OSLO, id="oslo", supersedes="rome"))

    assert found(world, "office") == ["oslo"]
    (hit,) = world.call(Recall("office", history=True)).hits
    assert [line.content for line in hit.history] == [PARIS, ROME]
    assert world.memory("rome").superseded_by == "paris"
    assert world.memory("paris").superseded_by == "oslo"
    (old,) = world.call(Recall("Rome", history=True)).hits
    assert (old.id, old.superseded_at) == ("rome", NOON)

    world.sleep(force=True)

    (hit,) = world.call(Recall("office", history=True)).hits
    assert [line.content for line in hit.lines] == [OSLO]
    assert [line.content for line in hit.history] == [PARIS, ROME]


def test_a_later_summary_speaks_of_the_current_fact_alone(world: World) -> None:
    old = NOON - timedelta(hours=20)
    world.remember(*trio("a"))
    world.call(Remember("call 030 4471 in Rome", id="rome", created_at=old))
    world.call(
        Remember("call 030 5582 in Oslo", id="oslo", created_at=old, supersedes="rome")
    )

    world.sleep()

    episode = world.call(Get(world.memory("oslo").episode or "")).episode
    assert episode
    assert "Oslo" in episode.content
    assert "Rome" not in episode.content
    assert {detail.value for detail in episode.details} >= {"5582"}
    assert "4471" not in str(episode.details)
    assert world.memory("rome").content == "call 030 4471 in Rome"


def test_a_memory_superseded_during_its_summary_is_not_promoted_as_current(
    world: World,
) -> None:
    world.remember(*trio("a"))

    def supersede(_: object) -> None:
        world.call(Remember(OSLO, id="oslo", supersedes="a1"))

    world.summarizer.meanwhile = supersede

    first = world.sleep()
    again = world.sleep()

    assert (first.failed, again.failed) == (1, 0)
    assert all("a1" not in world.episode_of(id).content for id in ("a0", "a1", "a2"))
    assert working_ids(world.store) == ["oslo"]


def test_a_fact_holds_again_once_its_last_successor_is_forgotten(world: World) -> None:
    remember_offices(world)

    world.call(Forget("paris"))
    assert world.memory("rome").superseded_by == "oslo"
    preview = world.call(Forget("oslo", dry_run=True))
    assert world.memory("rome").superseded_at == NOON
    receipt = world.call(Forget("oslo"))

    assert found(world, "office") == ["rome"]
    assert world.memory("rome").superseded_by is None
    assert world.memory("rome").superseded_at is None
    assert preview.in_force_again == receipt.in_force_again == ["rome"]
    assert "what it superseded would hold again: rome" in forget_text(preview)
    assert "what it superseded holds again: rome" in forget_text(receipt)


def test_what_is_forgotten_with_its_successors_does_not_hold_again(
    world: World,
) -> None:
    remember_offices(world)

    preview = world.call(Forget(["oslo", "paris"], dry_run=True))
    assert preview.in_force_again == ["rome"]
    receipt = world.call(Forget(["rome", "oslo"]))

    assert receipt.in_force_again == ["paris"]
    assert found(world, "office") == ["paris"]


def test_a_summary_loses_a_superseded_fact_and_states_it_once_it_holds_again(
    world: World,
) -> None:
    world.remember(*trio("a"), memory("rome", ROME, hours_ago=20))
    world.sleep()
    assert "Rome" in world.episode_of("rome").content

    world.call(Remember(OSLO, id="oslo", supersedes="rome"))

    assert "Rome" not in world.episode_of("rome").content
    assert "rome" in world.episode_of("rome").summary_of
    assert found(world, "Rome office") == ["oslo"]

    preview = world.call(Forget("oslo", dry_run=True))
    receipt = world.call(Forget("oslo"))

    assert "Rome" in world.episode_of("rome").content
    assert preview.episodes_rewritten == receipt.episodes_rewritten


def test_superseding_is_kept_with_the_memory_or_not_at_all(world: World) -> None:
    with pytest.raises(NotFound) as refused:
        world.call(Remember(OSLO, id="oslo", supersedes="nobody"))

    assert refused.value.field == "supersedes"
    assert world.store.memories.working_count() == 0


def test_the_same_call_again_changes_nothing_until_the_earlier_fact_is_said_again(
    world: World,
) -> None:
    world.call(Remember(ROME, id="rome"))
    for _ in range(3):
        world.call(Remember(OSLO, id="oslo", supersedes="rome"))
    assert found(world, "office") == ["oslo"]
    assert world.memory("oslo").superseded_at is None

    again = world.call(Remember(ROME, dedupe=True, supersedes="oslo"))

    assert again.stored
    assert found(world, "office") == [again.id]
