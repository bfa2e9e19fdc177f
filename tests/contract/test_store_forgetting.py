"""What every `MemoryStore` promises of forgetting, at once and with a grace time."""

from dataclasses import replace
from datetime import timedelta

import pytest
from support.fakes import (
    NOON,
    consolidate,
    memory,
    promotion,
    remember_batch,
    working_ids,
)
from support.stores import TRIO, count_by_tier, get_episode

from mnemosyned.errors import BatchChanged, NotFound
from mnemosyned.memory.exchange import RecoverableRecord
from mnemosyned.memory.forgetting import Grace
from mnemosyned.memory.ports import Draft, MemoryStore
from mnemosyned.memory.values import Learning, LearningKind, Tier


def test_forgetting_deletes_from_every_tier(store: MemoryStore) -> None:
    remember_batch(store, *TRIO, memory("4"))
    consolidate(store, promotion("e", *TRIO))

    removal = store.deletion.forget(["4", "2", "never there"])

    assert (removal.working, removal.archived) == (1, 1)
    assert count_by_tier(store)["archive"][0] == 2
    assert working_ids(store) == []


def test_forgetting_all_originals_takes_their_episode_along(store: MemoryStore) -> None:
    remember_batch(store, *TRIO)
    consolidate(store, promotion("e", *TRIO))

    store.deletion.forget(["1", "2", "3"])

    with pytest.raises(NotFound):
        store.memories.get("e")
    assert count_by_tier(store) == {tier.value: (0, 0) for tier in Tier}
    assert store.sleep.log(limit=1)[0].summary_preview == ""


def test_a_summary_is_empty_until_it_is_rewritten(store: MemoryStore) -> None:
    remember_batch(store, *TRIO)
    consolidate(store, promotion("e", *TRIO))

    store.deletion.forget(["2"])

    episode = get_episode(store, "e")
    assert (episode.content, episode.item_count) == ("", 2)
    assert store.sleep.log(limit=1)[0].summary_preview == ""
    emptied = store.rollups.next_stale()
    assert emptied
    assert [memory.id for memory in emptied.originals] == ["1", "3"]

    store.rollups.rewrite(
        emptied.token, replace(emptied.episode, content="what is left")
    )

    assert get_episode(store, "e").content == "what is left"
    assert get_episode(store, "e").summary_of == ("1", "3")
    assert store.sleep.log(limit=1)[0].summary_preview == "what is left"
    assert store.rollups.next_stale() is None


def test_a_rewriting_that_knows_too_much_is_refused(store: MemoryStore) -> None:
    remember_batch(store, *TRIO)
    consolidate(store, promotion("e", *TRIO))
    store.deletion.forget(["2"])
    early = store.rollups.next_stale()
    assert early

    store.deletion.forget(["3"])

    with pytest.raises(BatchChanged):
        store.rollups.rewrite(early.token, replace(early.episode, content="1 and 3"))
    assert get_episode(store, "e").content == ""


def test_forgotten_words_leave_the_index_terms_of_a_summary(store: MemoryStore) -> None:
    remember_batch(store, *TRIO)
    consolidate(store, promotion("e", *TRIO, index_terms="Xylander\nPX-4471"))
    before = store.rollups.index_terms(["e"])

    store.deletion.forget(["2"])

    assert before == {"e": "Xylander\nPX-4471"}
    assert store.rollups.index_terms(["e"]) == {"e": ""}
    emptied = store.rollups.next_stale()
    assert emptied
    store.rollups.rewrite(emptied.token, emptied.episode, index_terms="PX-4471")
    assert store.rollups.index_terms(["e"]) == {"e": "PX-4471"}


# What every `MemoryStore` promises of what is forgotten with a grace time.


def told(name: str, text: str, *, minutes: int) -> Draft:
    learning = Learning(
        id=f"l-{name}",
        kind=LearningKind.NAME,
        text=text,
        session="default",
        source=None,
        memory=name,
        created_at=NOON + timedelta(minutes=minutes),
    )
    return Draft(memory(name, text), learnings=(learning,))


def test_what_is_forgotten_is_kept_as_it_was(store: MemoryStore) -> None:
    store.memories.remember([told("older", "Call me Robert.", minutes=0)])
    store.memories.remember([told("newer", "Call me Bob.", minutes=1)])
    grace = Grace("call", NOON + timedelta(days=3))

    store.deletion.forget(["newer", "older"], grace=grace)

    with store.exchange.everything() as (_, records):
        kept = [each for each in records if isinstance(each, RecoverableRecord)]
    links = {
        learning.id: learning.superseded_by
        for record in kept
        for learning in record.learnings
    }
    assert links == {"l-older": "l-newer", "l-newer": None}
