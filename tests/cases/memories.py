"""Cases about memories: the tutorial's list and trigger, details, levels."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain
from typing import Any

from cases.dsl import Given, Holds
from support.fakes import NOON

from mnemosyned import (
    ConsolidationTrigger,
    MemoryItem,
    consolidate_memories,
    extract_preservable_details,
)
from mnemosyned.conversation.messages import Message
from mnemosyned.memory.periods import Child, distinct_details, group_into_periods
from mnemosyned.text.details import Detail, DetailKind

Facts = dict[str, Any]


THRESHOLDS = ("count_threshold", "age_threshold_hours", "size_threshold", "min_old")


def known(some: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """The same object, which has no other keys than these."""
    assert some.keys() <= set(names), (
        f"unknown keys: {sorted(some.keys() - set(names))}"
    )
    return some


def memory_trigger(given: Given) -> Facts:
    groups = [
        known(some, "n", "age_hours", "consolidated", "category")
        for some in given("memories")
    ]
    items = [
        MemoryItem(
            content=f"memory {at}",
            created_at=NOON - timedelta(hours=some["age_hours"]),
            category=some.get("category", "general"),
            consolidated=some.get("consolidated", False),
        )
        for some in groups
        for at in range(some["n"])
    ]
    trigger = ConsolidationTrigger(**given.some(*THRESHOLDS))
    done = consolidate_memories(items, trigger=trigger, now=NOON)
    return {
        "result": trigger.should_consolidate(items, now=NOON),
        "reason": trigger.reason(items, now=NOON).value,
        "run_reason": done.reason.value,
        "run_changes_nothing": done.memories == items and not done.archived,
    }


def items_consolidated(given: Given) -> Facts:
    names = ("id", "category", "consolidated", "content", "age_hours")
    items = [
        MemoryItem(
            content=some["content"],
            created_at=NOON - timedelta(hours=some["age_hours"]),
            category=some["category"],
            consolidated=some["consolidated"],
            metadata={"id": some["id"]},
        )
        for some in (known(one, *names) for one in given("memories"))
    ]
    asked: list[str] = []
    trigger = ConsolidationTrigger(**given.some(*THRESHOLDS))
    llm = given("llm", "ok")
    done = consolidate_memories(
        items, None if llm == "none" else _model(llm, asked), trigger=trigger, now=NOON
    )
    made = [one for one in done.memories if all(one is not old for old in items)]
    lines = [line for line in "\n".join(asked).splitlines() if line[:3] == "- ["]
    held = {one.content for one in (*done.memories, *done.archived)}
    noted = _noted(made)
    return {
        "result_count": len(done.memories),
        "summaries": [[one.category, one.metadata["source_count"]] for one in made],
        "raw_left": [
            one.metadata["id"]
            for one in done.memories
            if any(one is old for old in items) and not one.consolidated
        ],
        "unchanged": done.memories == items,
        "archived_count": len(done.archived),
        "summary_created_now": bool(made)
        and all(one.created_at == NOON for one in made),
        "prompt_lines": len(lines),
        "prompt_line_regex": Holds(
            lambda shape: bool(lines) and all(re.search(shape, line) for line in lines),
            lines,
        ),
        "prompt": "\n".join(asked),
        "no_content_lost": all(one.content in held for one in items),
        "metadata_include": Holds(partial(_included, found=noted), noted),
        "source_count": Holds(
            lambda count: [one.metadata["source_count"] for one in made] == [count],
            made,
        ),
    }


def _model(kind: str, asked: list[str]) -> Any:  # noqa: ANN401
    def complete(messages: Sequence[Message]) -> str:
        asked.append(messages[-1]["content"])
        if kind == "raises":
            raise ConnectionError("no model there")
        return {"ok": "All of it in short.", "empty": "  "}[kind]

    return complete


def _noted(made: Sequence[MemoryItem]) -> list[list[str]]:
    noted = chain.from_iterable(one.metadata["preserved_details"] for one in made)
    return [[detail["type"], detail["value"]] for detail in noted]


def _included(wanted: Sequence[object], found: Sequence[object]) -> bool:
    return all(one in found for one in wanted)


def details(given: Given) -> Facts:
    contents = given("contents")
    if contents is None:
        contents = given("consolidate")
        usual = {"category": "a", "consolidated": False, "age_hours": 1}
        rows = [
            {"id": at, "content": text, **usual} for at, text in enumerate(contents)
        ]
        return items_consolidated(
            Given({"memories": rows, "count_threshold": len(rows)})
        )
    items = [MemoryItem(content=content, created_at=NOON) for content in contents]
    found = extract_preservable_details(items)
    pairs = [[detail["type"], detail["value"]] for detail in found]
    values = {detail["value"] for detail in found}
    return {
        "include": Holds(lambda wanted: _included(wanted, pairs), pairs),
        "exclude": Holds(lambda others: not any(one in pairs for one in others), pairs),
        "exact": pairs,
        "count": len(pairs),
        "include_value": Holds(lambda value: value in values, values),
        "sensitive": any(detail["sensitive"] for detail in found),
        "source": Holds(lambda text: {one["source"] for one in found} == {text}, found),
        "source_max": Holds(
            lambda most: all(len(one["source"]) <= most for one in found), found
        ),
    }


def pyramid(given: Given) -> Facts:
    children, details = [], {}
    for at, some in enumerate(given("summaries")):
        known(some, *"id level date source_count details parent parent_id".split())
        assert some["level"] == given("to_level") - 1
        id = str(some.get("id", at))
        details[id] = [
            Detail(DetailKind(kind), value) for kind, value in some["details"]
        ]
        children.append(
            Child(
                id=id,
                covers_from=datetime.fromisoformat(some["date"]).replace(tzinfo=UTC),
                item_count=some["source_count"],
                parent=some.get("parent", some.get("parent_id")),
            )
        )
    found = group_into_periods(children, to_level=given("to_level"))
    noted = [
        [one.kind.value, one.value]
        for period in found
        for one in distinct_details(
            chain.from_iterable(details[id] for id in period.ids)
        )
    ]
    return {
        "groups": [[period.key, len(period.members)] for period in found],
        "level": Holds(
            lambda level: {int(one.level) for one in found} == {level}, found
        ),
        "details": noted,
        "source_count": Holds(
            lambda count: [one.item_count for one in found] == [count], found
        ),
        "source_counts": [period.item_count for period in found],
    }
