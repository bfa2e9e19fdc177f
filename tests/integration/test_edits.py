"""An edit: everything made of the earlier words follows."""

from __future__ import annotations

from datetime import timedelta

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
from support.settings import change
from support.stores import TRIO, episode_of, get_episode, get_memory, run_cycle

from mnemosyned.config import SettingsInForce
from mnemosyned.errors import InvalidRequest, SecretRefused, WordsPruned
from mnemosyned.memory.masking import SecretRule
from mnemosyned.memory.values import Tier
from mnemosyned.service.service import MemoryService
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.verbs.conversation import Learnings
from mnemosyned.verbs.memories import EditMemory, Expand, Get, Recall, Remember
from mnemosyned.verbs.retention import Prune

__all__ = ["kettle"]


def found(service: MemoryService, query: str) -> set[str]:
    hits = service.call(Recall(query)).hits
    return {hit.id for hit in hits if not hit.summary_of} | {
        line.id for hit in hits for line in hit.lines
    }


@pytest.mark.parametrize("asleep", [False, True])
def test_recall_finds_the_new_words_and_not_the_old_ones(
    store: SqliteStore,
    service: MemoryService,
    cycle: SleepCycle,
    kettle: str,
    *,
    asleep: bool,
) -> None:
    if asleep:
        run_cycle(cycle)

    edited = service.call(EditMemory(kettle, text="The samovar is at 10.0.0.9"))

    assert (edited.changed, edited.restored, edited.kept) == (1, 0, 0)
    assert found(service, "samovar") == {kettle}
    assert found(service, "kettle") == set()
    assert get_memory(store, kettle).content == "The samovar is at 10.0.0.9"
    assert get_memory(store, kettle).tier is (Tier.ARCHIVE if asleep else Tier.WORKING)
    totals = store.maintenance.totals()
    assert sum(total.characters for total in totals.values()) == (
        sum(map(len, ["The samovar is at 10.0.0.9"]))
        + (len(episode_of(store, kettle).content) if asleep else 0)
    )


def test_summary_and_exact_values_follow(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle, kettle: str
) -> None:
    run_cycle(cycle)
    service.call(EditMemory(kettle, text="The samovar has 4.5 litres"))

    episode = episode_of(store, kettle)
    expanded = service.call(Expand(episode.id))

    assert "samovar" in episode.content
    assert "kettle" not in episode.content
    assert [detail.value for detail in expanded.episode.details] == ["4.5"]
    assert [original.content for original in expanded.originals] == [
        "The samovar has 4.5 litres"
    ]
    assert expanded.originals[0].edited_at == NOON


def test_an_edit_that_changes_nothing_leaves_no_trace(
    service: MemoryService, kettle: str
) -> None:
    edited = service.call(
        EditMemory(kettle, text="The kettle is at 10.0.0.7", session="home")
    )

    assert (edited.memories, edited.changed) == (1, 0)
    assert service.call(Get(kettle, history=True)).revisions == []


def test_learnings_follow(service: MemoryService) -> None:
    service.call(
        Remember("Always answer in French. Never use tabs.", id="m", role="user")
    )
    service.call(EditMemory("m", text="Always answer in German. Never use tabs."))

    texts = sorted(learning.text for learning in service.call(Learnings()))
    assert texts == ["Always answer in German.", "Never use tabs."]

    service.call(EditMemory("m", source="chat"))

    sources = {learning.source for learning in service.call(Learnings())}
    assert sources == {"chat"}


def test_the_rule_for_secrets_applies_to_new_words(
    service: MemoryService, settings: SettingsInForce, kettle: str
) -> None:
    def follow(rule: SecretRule) -> None:
        change(settings, {"secrets": rule.value})

    follow(SecretRule.REFUSE)
    with pytest.raises(SecretRefused):
        service.call(EditMemory(kettle, text="the password is larch-4471"))
    follow(SecretRule.MASK)
    edited = service.call(EditMemory(kettle, text="the password is larch-4471"))

    got = service.call(Get(kettle, reveal=True)).memory
    assert got
    assert (edited.secrets, got.content) == (
        "masked",
        "the password is [secret:password]",
    )


def test_the_mask_of_a_secret_does_not_replace_it(service: MemoryService) -> None:
    service.call(Remember("the password is larch-4471, ask Ada", id="m"))
    masked = service.call(Get("m")).memory
    assert masked

    with pytest.raises(InvalidRequest, match="the mask of a secret"):
        service.call(EditMemory("m", text=masked.content.replace("Ada", "Ben")))


def test_an_original_of_another_time_or_session_returns_to_working_memory(
    store: SqliteStore, service: MemoryService
) -> None:
    remember_batch(store, *TRIO)
    consolidate(store, promotion("e", *TRIO))

    moved = service.call(EditMemory("2", session="elsewhere"))
    earlier = service.call(EditMemory("3", created_at=NOON - timedelta(days=9)))
    within = service.call(
        EditMemory("1", created_at=NOON - timedelta(hours=3, minutes=-1))
    )

    assert (moved.restored, earlier.restored, within.restored) == (1, 1, 1)
    assert [get_memory(store, id).tier for id in "123"] == [Tier.WORKING] * 3
    assert not any(get_memory(store, id).pinned for id in "123")


def test_a_time_within_its_episode_leaves_an_original_there(
    store: SqliteStore, service: MemoryService
) -> None:
    remember_batch(store, *TRIO)
    consolidate(store, promotion("e", *TRIO))

    edited = service.call(
        EditMemory("1", created_at=NOON - timedelta(hours=2, minutes=30))
    )

    assert (edited.changed, edited.restored) == (1, 0)
    episode = get_episode(store, "e")
    assert episode.covers_from == NOON - timedelta(hours=2, minutes=30)
    assert [original.id for original in store.memories.originals("e")] == [
        "1",
        "2",
        "3",
    ]


def test_a_whole_session_is_renamed_with_its_summaries(
    store: SqliteStore, service: MemoryService, summarizer: FakeSummarizer
) -> None:
    remember_batch(store, *TRIO, memory("4"))
    consolidate(store, promotion("e", *TRIO))
    before = get_episode(store, "e")
    session = before.session

    edited = service.call(EditMemory(of_session=session, session="new", source="s"))

    episode = get_episode(store, "e")
    assert (edited.changed, edited.restored) == (4, 0)
    assert (episode.session, episode.source, episode.content) == (
        "new",
        "s",
        before.content,
    )
    assert summarizer.calls == []
    assert {get_memory(store, id).session for id in "1234"} == {"new"}


def test_with_pruned_originals_the_summary_stays(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle, clock: FakeClock
) -> None:
    service.call(Remember("The kettle", id="m"))
    run_cycle(cycle)
    clock.advance(days=9)
    service.call(Prune(keep_days=1))

    with pytest.raises(WordsPruned):
        service.call(EditMemory("m", text="The samovar"))
    renamed = service.call(EditMemory("m", session="elsewhere"))

    assert (renamed.changed, renamed.restored) == (1, 0)
    assert episode_of(store, "m").session == "elsewhere"


def test_a_file_that_is_read_again_knows_an_edited_memory(
    service: MemoryService, kettle: str
) -> None:
    service.call(EditMemory(kettle, text="The samovar"))

    again = service.call(Remember("The kettle is at 10.0.0.7", id=kettle))

    assert not again.stored
    got = service.call(Get(kettle)).memory
    assert got
    assert got.content == "The samovar"


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (EditMemory("e", text="x"), "is a summary"),
        (EditMemory("1"), "say what to change"),
        (EditMemory(["1", "2"], text="x"), "text is for one memory"),
        (EditMemory(query="ibex", importance=1), "importance is for one memory"),
        (EditMemory(session="x"), "say which memories"),
    ],
)
def test_an_edit_that_cannot_be_meant_says_so(
    store: SqliteStore, service: MemoryService, request_: EditMemory, message: str
) -> None:
    remember_batch(store, *TRIO)
    consolidate(store, promotion("e", *TRIO))

    with pytest.raises(InvalidRequest, match=message):
        service.call(request_)
