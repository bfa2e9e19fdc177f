"""Cases about memories: the tutorial's list and trigger, details, levels, the sleeping store."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any

import pytest
from cases.dsl import Given, Holds
from support.fakes import NOON, FakeClock, FakeSummarizer, remember_batch
from support.policies import change_sleep

from mnemosyned import (
    ConsolidationTrigger,
    MemoryItem,
    Remember,
    consolidate_memories,
    extract_preservable_details,
)
from mnemosyned.domain.conversation.messages import Message
from mnemosyned.domain.errors import ModelUnavailable
from mnemosyned.domain.memory import Detail, DetailKind, Episode, MemoryRecord, Tier
from mnemosyned.domain.ports.models import Summarizer, Summary
from mnemosyned.domain.sleep.consolidation import Selection
from mnemosyned.domain.sleep.cycles import CycleReport, Trigger
from mnemosyned.domain.sleep.rollup import Child, periods
from mnemosyned.service.policies import Policies, PolicyHolder
from mnemosyned.service.service import MemoryService
from mnemosyned.sleep.context import CycleRequest
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.sleep.lease import SummarizerLease
from mnemosyned.sleep.policy import SleepPolicy
from mnemosyned.storage.sqlite import SqliteStore
from mnemosyned.summarizers.extractive import ExtractiveSummarizer
from mnemosyned.summarizers.fallback import FallbackSummarizer

Facts = dict[str, Any]


# ----------------------------------------------------------------- the tutorial


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
    trigger = ConsolidationTrigger(
        **given.some(
            "count_threshold", "age_threshold_hours", "size_threshold", "min_old"
        )
    )
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
    trigger = ConsolidationTrigger(
        **given.some(
            "count_threshold", "age_threshold_hours", "size_threshold", "min_old"
        )
    )
    llm = given("llm", "ok")
    done = consolidate_memories(
        items, None if llm == "none" else _model(llm, asked), trigger=trigger, now=NOON
    )
    made = [one for one in done.memories if all(one is not old for old in items)]
    lines = [
        line
        for prompt in asked
        for line in prompt.splitlines()
        if line.startswith("- [")
    ]
    held = {one.content for one in (*done.memories, *done.archived)}
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
        "prompt_not_contains": Holds(lambda word: word not in "\n".join(asked), asked),
        "no_content_lost": all(one.content in held for one in items),
        "metadata_include": Holds(
            lambda wanted: _included(wanted, _noted(made)), _noted(made)
        ),
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
        rows = [
            {
                "id": at,
                "content": content,
                "category": "a",
                "consolidated": False,
                "age_hours": 1,
            }
            for at, content in enumerate(contents)
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
    children = []
    for at, some in enumerate(given("summaries")):
        known(
            some,
            "id",
            "level",
            "date",
            "source_count",
            "details",
            "parent",
            "parent_id",
        )
        assert some["level"] == given("to_level") - 1
        children.append(
            Child(
                id=str(some.get("id", at)),
                covers_from=datetime.fromisoformat(some["date"]).replace(tzinfo=UTC),
                item_count=some["source_count"],
                details=tuple(
                    Detail(DetailKind(kind), value) for kind, value in some["details"]
                ),
                parent=some.get("parent", some.get("parent_id")),
            )
        )
    found = periods(children, to_level=given("to_level"))
    noted = [[one.kind.value, one.value] for period in found for one in period.details]
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


# -------------------------------------------------------------------- sleeping


def sleep(given: Given, request: pytest.FixtureRequest) -> Facts:
    store: SqliteStore = request.getfixturevalue("store")
    entries = [_entry(some) for some in given("entries")]
    remember_batch(store, *entries)
    policy = SleepPolicy(ttl=timedelta(hours=given("ttl_hours", 24)))
    cycle = SleepCycle(
        store=store,
        lease=SummarizerLease(_summarizer(given("llm", "ok"))),
        clock=FakeClock(datetime.fromisoformat(given("now")).astimezone(UTC)),
        policies=PolicyHolder(Policies(sleep=policy)),
    )
    if given("fail_at"):
        _break(store, given("fail_at"))
    force = bool(given("force"))
    before = None if force else policy.cutoff(datetime.fromisoformat(given("now")))
    candidates = [
        memory.id
        for memory in store.sleep.pending(Selection(before=before), limit=1_000)
    ]
    via, explicit = given("via"), given("explicit")
    assert via in (None, "shutdown", "explicit", "auto")
    if via == "shutdown":
        report = cycle.run(
            CycleRequest(trigger=Trigger.SHUTDOWN, rules_only=True, deadline_s=30)
        )
    else:
        asked = explicit or force or via == "explicit"
        trigger = Trigger.EXPLICIT if asked else Trigger.SCHEDULE
        report = cycle.run(CycleRequest(trigger=trigger, force=force))
    assert report.candidates == len(candidates)
    return _slept(store, entries, candidates, report)


def _slept(
    store: SqliteStore,
    entries: Sequence[MemoryRecord],
    candidates: Sequence[str],
    report: CycleReport,
) -> Facts:
    made = [store.memories.get(id) for group in report.groups for id in group.episodes]
    episodes = [one for one in made if isinstance(one, Episode)]
    left = sorted(
        int(one.id) for one in store.memories.working([entry.id for entry in entries])
    )
    archived = [
        memory for one in episodes for memory in store.memories.originals(one.id)
    ]
    rows = store.sleep.log(limit=1_000)
    contents = {memory.content for memory in archived}
    contents |= {
        memory.content
        for memory in store.memories.working([entry.id for entry in entries])
    }
    return {
        "candidates": sorted(map(int, candidates)),
        "working_after": left,
        "archived": sorted(int(memory.id) for memory in archived),
        "lost": sum(entry.content not in contents for entry in entries),
        "promoted": Holds(
            lambda wanted: _promoted(wanted, episodes),
            [(one.session, one.source, one.summary_of) for one in episodes],
        ),
        "n_promoted": len(episodes),
        "summaries_nonempty": bool(episodes)
        and all(one.content.strip() for one in episodes),
        "log_rows": len(rows),
        "log_items_total": sum(row.items_consolidated for row in rows),
        "log_sessions": sorted({row.session for row in rows}),
        "log_preview_nonempty": bool(rows)
        and all(row.summary_preview.strip() for row in rows),
        "status": report.status.value,
    }


def _promoted(wanted: Sequence[Mapping[str, Any]], episodes: Sequence[Episode]) -> bool:
    found = [
        {
            "source": one.source,
            "session_id": one.session,
            "summary_of": [int(id) for id in one.summary_of],
        }
        for one in sorted(episodes, key=lambda one: sorted(map(int, one.summary_of)))
    ]
    in_order = sorted(wanted, key=lambda one: sorted(one["summary_of"]))
    return len(found) == len(wanted) and all(
        one == {key: other.get(key) for key in one}
        for one, other in zip(in_order, found, strict=True)
    )


def _entry(some: Mapping[str, Any]) -> MemoryRecord:
    names = (
        "id",
        "created_at",
        "source",
        "session_id",
        "content",
        "pinned",
        "importance",
    )
    known(some, *names)
    return MemoryRecord(
        id=str(some["id"]),
        created_at=datetime.fromisoformat(some["created_at"]).astimezone(UTC),
        source=some["source"],
        session=some["session_id"],
        content=some["content"],
        pinned=some.get("pinned", False),
        importance=some.get("importance", 0.5),
    )


def _summarizer(llm: str) -> Summarizer:
    rules = ExtractiveSummarizer()
    if llm == "none":
        return rules
    if llm == "ok":
        return FakeSummarizer()
    assert llm in ("raises", "empty")
    model = Failing()
    return FallbackSummarizer(
        primary=model, model=model, fallback=rules, clock=FakeClock()
    )


class Failing:
    """A model that cannot be asked, and the summarizer that would ask it."""

    name = "failing"
    accepted = retried = rejected = 0
    context_tokens = 2_048
    parameters = 0
    sentences = (0, 0)

    def summarize(self, memories: Sequence[MemoryRecord]) -> Summary:
        raise ModelUnavailable(f"no model for {len(memories)} memories")

    def count_tokens(self, text: str) -> int:
        return len(text)

    def complete(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        max_tokens: int,
        temperature: float,
    ) -> str:
        raise NotImplementedError

    def close(self) -> None:
        return


BROKEN = {
    "promote": "BEFORE INSERT ON episodic_memory",
    "evict": "BEFORE DELETE ON working_memory",
    "archive": "BEFORE INSERT ON archive",
    "log": "BEFORE INSERT ON consolidation_log WHEN NEW.status <> 'failed'",
}


def _break(store: SqliteStore, step: str) -> None:
    """Have the database refuse one step of the promotion, in the middle of its transaction."""
    connection = sqlite3.connect(store.database)
    connection.execute(
        f"CREATE TRIGGER refuses {BROKEN[step]} BEGIN SELECT RAISE(ABORT, 'refused'); END"
    )
    connection.commit()
    connection.close()


def working_cap(given: Given, request: pytest.FixtureRequest) -> Facts:
    service: MemoryService = request.getfixturevalue("service")
    store: SqliteStore = request.getfixturevalue("store")
    cap, count = given("wm_max"), given("insert")
    change_sleep(request.getfixturevalue("policies"), wm_max=cap)
    for at in range(count):
        service.call(Remember(f"note {at}", id=str(at)))
    totals = store.maintenance.totals()
    held = totals[Tier.WORKING].count + totals[Tier.ARCHIVE].count
    return {
        "working_max": Holds(
            lambda most: store.memories.working_count() <= most,
            store.memories.working_count(),
        ),
        "lost": count - held,
    }
