"""The tutorial's list of memories, beyond what its cases say of it."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
from support.fakes import NOON, raising

from mnemosyned import (
    ConsolidationTrigger,
    MemoryItem,
    MnemosynedError,
    consolidate_memories,
)
from mnemosyned.conversation import memory_items as module
from mnemosyned.conversation.memory_items import (
    ConsolidationReason,
    consolidation_prompt,
)
from mnemosyned.conversation.messages import Message

ALWAYS = ConsolidationTrigger(count_threshold=0)


def item(content: str, *, category: str = "a", hours_ago: float = 1) -> MemoryItem:
    created = NOON - timedelta(hours=hours_ago)
    return MemoryItem(content=content, created_at=created, category=category)


def short(_: Sequence[Message]) -> str:
    return "In short."


def test_a_category_whose_model_fails_stays_while_others_go_on() -> None:
    def fails_for_b(messages: Sequence[Message]) -> str:
        if "b " in messages[-1]["content"]:
            raise TimeoutError(messages[-1]["content"])
        return "In short."

    items = [item(f"{name} {at}", category=name) for name in "ab" for at in range(3)]

    done = consolidate_memories(items, fails_for_b, trigger=ALWAYS, now=NOON)

    assert [one.content for one in done.memories] == ["In short.", "b 0", "b 1", "b 2"]
    assert done.archived == tuple(items[:3])
    assert done.failures == {"b": "TimeoutError"}


def test_a_failure_of_our_own_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "consolidation_prompt", raising(KeyError("created_at")))

    facts = [item(f"fact {at}") for at in range(3)]
    with pytest.raises(KeyError):
        consolidate_memories(facts, short, trigger=ALWAYS, now=NOON)


def test_without_a_model_a_rule_joins_what_is_not_said_twice() -> None:
    items = [item("a fact"), item("another"), item("a fact")]

    done = consolidate_memories(items, trigger=ALWAYS, now=NOON)

    assert [one.content for one in done.memories] == ["- a fact\n- another"]


def test_too_little_that_is_new_and_summaries_are_not_consolidated() -> None:
    few = consolidate_memories([item("a"), item("b")], short, trigger=ALWAYS, now=NOON)
    items = [item(f"fact {at}") for at in range(3)]
    once = consolidate_memories(items, short, trigger=ALWAYS, now=NOON)
    again = consolidate_memories(once.memories, short, trigger=ALWAYS, now=NOON)

    assert few.reason is ConsolidationReason.NOTHING_TO_CONSOLIDATE
    assert len(few.memories) == 2
    assert again.memories == once.memories


def test_the_model_sees_a_line_for_each_memory_and_no_secret() -> None:
    key = "sk-test-51HAbCdEfGhIjKlMnOp"

    _, asked = consolidation_prompt([item("two\nlines"), item(f"the key is {key}")])

    lines = asked["content"].splitlines()
    assert lines[0] == "- [2026-03-17T11:00:00+00:00] two lines"
    assert len(lines) == 2
    assert key not in asked["content"]


def test_times_without_a_zone_are_local() -> None:
    now = datetime.now().astimezone()
    created = datetime.now() - timedelta(hours=23)  # noqa: DTZ005
    fresh = [MemoryItem(content="x", created_at=created)] * 5

    assert not ConsolidationTrigger().should_consolidate(fresh, now=now)
    younger = ConsolidationTrigger(age_threshold_hours=22)
    assert younger.should_consolidate(fresh, now=now)


def test_thresholds_below_nothing_are_refused() -> None:
    with pytest.raises(MnemosynedError, match="0 or more"):
        ConsolidationTrigger(min_old=-1)
