"""Cases about the store: what it is after a sleep, and its cap."""

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from cases.dsl import Given, Holds
from cases.memories import Facts, known
from support.fake_models import FakeTextModel
from support.fakes import FakeClock, FakeSummarizer, remember_batch
from support.settings import change, settings_in_force

from mnemosyned import Remember
from mnemosyned.errors import ModelUnavailable
from mnemosyned.memory.consolidation import CycleReport, Selection, Trigger
from mnemosyned.memory.engine_ports import Summarizer, Summary
from mnemosyned.memory.values import Episode, MemoryRecord, Tier
from mnemosyned.models.fallback import FallbackSummarizer
from mnemosyned.service.service import MemoryService
from mnemosyned.sleep.context import CycleRequest, SummarizerLease
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.summary.extract import ExtractiveSummarizer


def sleep(given: Given, request: pytest.FixtureRequest) -> Facts:
    store: SqliteStore = request.getfixturevalue("store")
    entries = [_entry(some) for some in given("entries")]
    remember_batch(store, *entries)
    settings = settings_in_force({"sleep.ttl_hours": given("ttl_hours", 24)})
    cycle = SleepCycle(
        store=store,
        lease=SummarizerLease(_summarizer(given("llm", "ok"))),
        clock=FakeClock(datetime.fromisoformat(given("now")).astimezone(UTC)),
        settings=settings,
    )
    if given("fail_at"):
        _break(store, given("fail_at"))
    force, now = bool(given("force")), datetime.fromisoformat(given("now"))
    before = None if force else settings.config.sleep.cutoff(now)
    pending = store.sleep.pending(Selection(before=before), limit=1_000)
    candidates = [memory.id for memory in pending]
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
    left = store.memories.working([entry.id for entry in entries])
    archived = [
        memory for one in episodes for memory in store.memories.originals(one.id)
    ]
    rows = store.sleep.log(limit=1_000)
    contents = {memory.content for memory in (*archived, *left)}
    return {
        "candidates": sorted(map(int, candidates)),
        "working_after": sorted(int(one.id) for one in left),
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
    known(some, *"id created_at source session_id content pinned importance".split())
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


class Failing(FakeTextModel):
    """A model that cannot be asked, and the summarizer that would ask it."""

    name = "failing"
    accepted = retried = rejected = 0
    sentences = (0, 0)

    def summarize(self, memories: Sequence[MemoryRecord]) -> Summary:
        raise ModelUnavailable(f"no model for {len(memories)} memories")


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
    change(request.getfixturevalue("settings"), {"wm_max": cap})
    for at in range(count):
        service.call(Remember(f"note {at}", id=str(at)))
    totals = store.maintenance.totals()
    held = totals[Tier.WORKING].count + totals[Tier.ARCHIVE].count
    return {
        "working": store.memories.working_count(),
        "lost": count - held,
    }
