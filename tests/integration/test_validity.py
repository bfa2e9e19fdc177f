"""Pinned, valid for a time, superseded: what is recalled, what is summarized, what stays."""

from datetime import timedelta

import pytest
from support.fakes import NOON, memory, trio, working_ids
from support.services import Lab

from mnemosyned.cli.output.retention import forget_text
from mnemosyned.errors import NotFound
from mnemosyned.memory.consolidation import UNSPOKEN
from mnemosyned.memory.values import Tier
from mnemosyned.verbs.memories import Remember

ROME, PARIS, OSLO = (
    "the office is in Rome",
    "the office is in Paris",
    "the office is in Oslo",
)


def found(lab: Lab, query: str, *, history: bool = False) -> list[str]:
    return [hit.id for hit in lab.recall(query, history=history).hits]


def test_a_pin_that_comes_while_its_group_is_summarized_holds(lab: Lab) -> None:
    lab.put(*trio("a"))
    lab.summarizer.meanwhile = lambda _: lab.pin("a1")

    lab.run_cycle()
    lab.run_cycle()

    assert lab.memory("a1").tier is Tier.WORKING
    assert "a1" not in lab.episode_of("a0").content


def test_what_has_expired_is_not_recalled_and_not_lost(lab: Lab) -> None:
    lab.remember("the lift is broken", id="1", valid_until=NOON + timedelta(hours=2))
    assert found(lab, "lift") == ["1"]

    lab.clock.advance(hours=2)

    assert found(lab, "lift") == []
    assert found(lab, "lift", history=True) == []
    assert lab.memory("1").content == "the lift is broken"


def test_no_summary_has_what_will_expire_and_it_is_found_until_then(lab: Lab) -> None:
    lab.put(*trio("a"))
    until = NOON + timedelta(hours=40)
    lab.remember(
        "the lift is broken",
        id="1",
        created_at=NOON - timedelta(hours=20),
        valid_until=until,
    )

    lab.run_cycle()

    episode = lab.episode_of("1")
    assert set(episode.summary_of) == {"a0", "a1", "a2", "1"}
    assert "lift" not in episode.content
    (hit,) = lab.recall("lift").hits
    assert [line.id for line in hit.lines] == ["1"]
    lab.clock.moment = until
    assert found(lab, "lift") == []
    assert "1" in {one.id for one in lab.expand(episode.id).originals}


def test_a_group_of_which_nothing_lasts_is_archived_unsummarized(lab: Lab) -> None:
    for at in range(4):
        lab.remember(
            f"build {at} runs",
            id=f"b{at}",
            created_at=NOON - timedelta(hours=20, minutes=-at),
            valid_until=NOON,
        )

    lab.run_cycle()

    assert lab.summarizer.calls == []
    assert lab.store.memories.working_count() == 0
    assert lab.episode_of("b0").content == UNSPOKEN
    assert len(lab.episode_of("b0").summary_of) == 4


def test_many_expired_notes_do_not_hide_the_one_in_force(lab: Lab) -> None:
    soon = NOON + timedelta(minutes=1)
    notes = [Remember(f"build {at} is red", valid_until=soon) for at in range(400)]
    lab.remember_many(notes)
    lab.remember("of all that is red here, the build among them, this is all", id="now")
    lab.clock.advance(minutes=2)

    assert found(lab, "build red") == ["now"]


def remember_offices(lab: Lab) -> None:
    """Each office takes the place of the one before."""
    lab.remember(ROME, id="rome")
    lab.remember(PARIS, id="paris", supersedes="rome")
    lab.remember(OSLO, id="oslo", supersedes="paris")


def test_recall_shows_the_current_fact_and_its_history_on_request(lab: Lab) -> None:
    lab.remember(ROME, id="rome")
    lab.remember(PARIS, id="paris", supersedes="rome")
    lab.remember(OSLO, id="oslo", supersedes="rome")

    assert found(lab, "office") == ["oslo"]
    (hit,) = lab.recall("office", history=True).hits
    assert [line.content for line in hit.history] == [PARIS, ROME]
    assert lab.memory("rome").superseded_by == "paris"
    assert lab.memory("paris").superseded_by == "oslo"
    (old,) = lab.recall("Rome", history=True).hits
    assert (old.id, old.superseded_at) == ("rome", NOON)

    lab.run_cycle(force=True)

    (hit,) = lab.recall("office", history=True).hits
    assert [line.content for line in hit.lines] == [OSLO]
    assert [line.content for line in hit.history] == [PARIS, ROME]


@pytest.mark.parametrize("asleep", [False, True])
def test_a_fact_that_is_said_again_applies_again(lab: Lab, *, asleep: bool) -> None:
    remember_offices(lab)
    if asleep:
        lab.run_cycle(force=True)

    for _ in range(2):  # a repeated call changes nothing
        lab.remember(ROME, id="rome", supersedes="oslo")

    assert lab.found("office") == {"rome"}
    older = [lab.memory(id).superseded_by for id in ("paris", "oslo", "rome")]
    assert older == ["oslo", "rome", None]
    assert lab.remember(ROME, dedupe=True).id == "rome"
    if asleep:
        assert ROME in lab.episode_of("rome").content


def test_a_later_summary_speaks_of_the_current_fact_alone(lab: Lab) -> None:
    old = NOON - timedelta(hours=20)
    lab.put(*trio("a"))
    lab.remember("call 030 4471 in Rome", id="rome", created_at=old)
    lab.remember("call 030 5582 in Oslo", id="oslo", created_at=old, supersedes="rome")

    lab.run_cycle()

    episode = lab.get(lab.memory("oslo").episode or "").episode
    assert episode
    assert "Oslo" in episode.content
    assert "Rome" not in episode.content
    assert {detail.value for detail in episode.details} >= {"5582"}
    assert "4471" not in str(episode.details)
    assert lab.memory("rome").content == "call 030 4471 in Rome"


def test_a_memory_superseded_during_its_summary_is_not_current(lab: Lab) -> None:
    lab.put(*trio("a"))

    def supersede(_: object) -> None:
        lab.remember(OSLO, id="oslo", supersedes="a1")

    lab.summarizer.meanwhile = supersede

    first = lab.run_cycle()
    again = lab.run_cycle()

    assert (first.failed, again.failed) == (1, 0)
    assert all("a1" not in lab.episode_of(id).content for id in ("a0", "a1", "a2"))
    assert working_ids(lab.store) == ["oslo"]


def test_a_fact_holds_again_once_its_last_successor_is_forgotten(lab: Lab) -> None:
    remember_offices(lab)

    lab.forget("paris")
    assert lab.memory("rome").superseded_by == "oslo"
    preview = lab.forget("oslo", dry_run=True)
    assert lab.memory("rome").superseded_at == NOON
    receipt = lab.forget("oslo")

    assert lab.found("office") == {"rome"}
    assert lab.memory("rome").superseded_by is None
    assert lab.memory("rome").superseded_at is None
    assert preview.in_force_again == receipt.in_force_again == ["rome"]
    assert "what it superseded would hold again: rome" in forget_text(preview)
    assert "what it superseded holds again: rome" in forget_text(receipt)


def test_what_is_forgotten_with_its_successors_does_not_hold_again(lab: Lab) -> None:
    remember_offices(lab)

    preview = lab.forget(["oslo", "paris"], dry_run=True)
    assert preview.in_force_again == ["rome"]
    receipt = lab.forget(["rome", "oslo"])

    assert receipt.in_force_again == ["paris"]
    assert found(lab, "office") == ["paris"]


def test_a_summary_has_no_superseded_fact_until_it_holds_again(lab: Lab) -> None:
    lab.put(*trio("a"), memory("rome", ROME, hours_ago=20))
    lab.run_cycle()
    assert "Rome" in lab.episode_of("rome").content

    lab.remember(OSLO, id="oslo", supersedes="rome")

    assert "Rome" not in lab.episode_of("rome").content
    assert "rome" in lab.episode_of("rome").summary_of
    assert found(lab, "Rome office") == ["oslo"]

    preview = lab.forget("oslo", dry_run=True)
    receipt = lab.forget("oslo")

    assert "Rome" in lab.episode_of("rome").content
    assert preview.episodes_rewritten == receipt.episodes_rewritten


def test_superseding_is_kept_with_the_memory_or_not_at_all(lab: Lab) -> None:
    with pytest.raises(NotFound) as refused:
        lab.remember(OSLO, id="oslo", supersedes="nobody")

    assert refused.value.field == "supersedes"
    with pytest.raises(NotFound) as refused:
        lab.remember_many([Remember("a"), Remember("b", supersedes="nobody")])
    assert refused.value.field == "memories[1].supersedes"
    assert lab.store.memories.working_count() == 0


def test_the_same_call_changes_nothing_until_the_earlier_fact_is_said(lab: Lab) -> None:
    lab.remember(ROME, id="rome")
    for _ in range(3):
        lab.remember(OSLO, id="oslo", supersedes="rome")
    assert found(lab, "office") == ["oslo"]
    assert lab.memory("oslo").superseded_at is None

    again = lab.remember(ROME, dedupe=True, supersedes="oslo")

    assert again.stored
    assert found(lab, "office") == [again.id]
