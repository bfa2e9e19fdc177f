"""The model first, rules where it fails: when it is left alone, and what is said of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import pytest
from support.endpoints import begins, drips, says, serving, unused_port, waits
from support.fake_models import DEAD, REFUSED, FakeModel, Primary, raising
from support.fakes import FakeClock, FakeSummarizer, memory, remember_batch, trio
from support.services import Lab

from mnemosyned.errors import ModelUnavailable, SummarizerFailed
from mnemosyned.memory.consolidation import CycleStatus, Trigger
from mnemosyned.memory.engine_ports import Summary
from mnemosyned.memory.values import Episode, MemoryRecord, SummarizerState
from mnemosyned.models.endpoint import EndpointModel
from mnemosyned.models.fallback import (
    COOL_DOWN,
    COOL_DOWN_MAX,
    REJECTED_IN_A_ROW_MAX,
    STOPPING,
    WAITED_FOR,
    FallbackSummarizer,
)
from mnemosyned.models.summarizer import ModelSummarizer
from mnemosyned.sleep.context import CycleRequest
from mnemosyned.summary.extract import ExtractiveSummarizer

GROUP = trio("a")


@pytest.fixture
def primary() -> Primary:
    return Primary()


@pytest.fixture
def model() -> FakeModel:
    return FakeModel()


@pytest.fixture
def chain(primary: Primary, model: FakeModel, clock: FakeClock) -> FallbackSummarizer:
    return FallbackSummarizer(
        primary=primary, model=model, fallback=ExtractiveSummarizer(), clock=clock
    )


# ------------------------------------------------------------------ all is well


def test_the_model_writes_while_it_can(chain: FallbackSummarizer) -> None:
    summary = chain.summarize(GROUP)

    assert (summary.summarizer, summary.fallback_reason) == ("fake:model", "")
    status = chain.status()
    assert (status.name, status.state) == ("fake:model", SummarizerState.MODEL)
    assert (status.accepted, status.fallbacks) == (1, 0)
    assert "in force" in status.reason


def test_a_waiting_caller_gets_a_summary_by_rule(
    chain: FallbackSummarizer, primary: Primary
) -> None:
    one = chain.rule_based().summarize(GROUP)
    outcomes = dict(
        chain.rule_based().summarize_each([(1, GROUP), (2, GROUP)], expected=2)
    )

    assert primary.calls == 0
    assert (one.summarizer, one.fallback_reason) == ("aaak", WAITED_FOR)
    assert [outcomes[key] for key in (1, 2)] == [one, one]
    assert chain.status().fallbacks == 3


# ------------------------------------------------------------ the model is gone


def test_a_dead_model_costs_one_failure_and_not_one_for_each_group(
    chain: FallbackSummarizer, primary: Primary, caplog: pytest.LogCaptureFixture
) -> None:
    primary.does = DEAD

    summaries = [chain.summarize(GROUP) for _ in range(20)]

    assert primary.calls == 1
    assert {summary.summarizer for summary in summaries} == {"aaak"}
    assert {summary.fallback_reason for summary in summaries} == {"it is gone"}
    assert caplog.text.count("model_left_alone") == 1


def test_status_says_what_failed_and_until_when(
    chain: FallbackSummarizer, primary: Primary, clock: FakeClock
) -> None:
    primary.does = DEAD
    chain.summarize(GROUP)

    status = chain.status()
    until = (clock.now() + COOL_DOWN).astimezone()
    assert status.state is SummarizerState.FALLBACK
    assert "it is gone" in status.reason
    assert f"until {until:%H:%M}" in status.reason
    clock.moment += COOL_DOWN
    assert chain.status().state is SummarizerState.MODEL
    assert "tried again" in chain.status().reason


def test_it_is_left_alone_twice_as_long_each_time_up_to_a_bound(
    chain: FallbackSummarizer, primary: Primary, clock: FakeClock
) -> None:
    primary.does = DEAD
    chain.summarize(GROUP)
    pauses: list[object] = []
    for _ in range(8):
        asked = clock.now()
        while primary.calls == len(pauses) + 1:
            clock.advance(minutes=1)
            chain.summarize(GROUP)
        pauses.append(clock.now() - asked)

    assert pauses[:4] == [COOL_DOWN * factor for factor in (1, 2, 4, 8)]
    assert pauses[-1] == COOL_DOWN_MAX


def test_a_model_that_is_back_writes_again(
    chain: FallbackSummarizer,
    primary: Primary,
    clock: FakeClock,
) -> None:
    primary.does = DEAD
    chain.summarize(GROUP)
    primary.does = lambda: None
    clock.moment += COOL_DOWN

    assert chain.summarize(GROUP).summarizer == "fake:model"
    assert "in force" in chain.status().reason
    primary.does = DEAD
    chain.summarize(GROUP)
    clock.moment += COOL_DOWN
    assert chain.status().state is SummarizerState.MODEL, "the wait starts small again"


class Unplugged(FakeModel):
    """A model that is not there."""

    def count_tokens(self, text: str) -> int:
        return len(text) // 4

    def complete(self, *_: object, **__: object) -> str:
        raise ModelUnavailable("it is gone")


def test_a_group_too_short_for_the_model_does_not_bring_it_back(
    clock: FakeClock,
) -> None:
    model = Unplugged()
    asked = ModelSummarizer(model=model, ratio=1 / 3, zone=UTC, max_tokens=256)
    chain = FallbackSummarizer(
        primary=asked, model=model, fallback=ExtractiveSummarizer(), clock=clock
    )
    chain.summarize([memory("long", "Ada and Ben moved the printer to rack 4. " * 40)])
    clock.advance(seconds=COOL_DOWN.total_seconds() + 1)

    short = chain.summarize([memory("short", "aka Bob")])

    assert (short.summarizer, short.fallback_reason) == ("aaak", "")
    status = chain.status()
    assert (status.accepted, "tried again" in status.reason) == (0, True)


def test_a_clock_set_back_does_not_keep_the_model_out(
    chain: FallbackSummarizer, primary: Primary, clock: FakeClock
) -> None:
    primary.does = DEAD
    chain.summarize(GROUP)
    clock.advance(days=-1)
    primary.does = lambda: None

    assert chain.summarize(GROUP).summarizer == "fake:model"


def test_an_error_nobody_foresaw_is_the_models_too_and_keeps_its_words(
    chain: FallbackSummarizer, primary: Primary
) -> None:
    primary.does = raising(ValueError(GROUP[0].content))

    summary = chain.summarize(GROUP)

    assert (summary.summarizer, summary.fallback_reason) == ("aaak", "ValueError")
    assert chain.status().state is SummarizerState.FALLBACK


# -------------------------------------------------------- an answer is not kept


def test_one_answer_that_is_not_kept_costs_its_own_group_alone(
    chain: FallbackSummarizer, primary: Primary
) -> None:
    primary.does = REFUSED
    first = chain.summarize(GROUP)
    primary.does = lambda: None
    second = chain.summarize(GROUP)

    assert (first.summarizer, first.fallback_reason) == ("aaak", "it names a stranger")
    assert (second.summarizer, second.fallback_reason) == ("fake:model", "")


def test_several_in_a_row_are_a_failure_of_the_model(
    chain: FallbackSummarizer, primary: Primary
) -> None:
    primary.does = REFUSED

    reasons = [
        chain.summarize(GROUP).fallback_reason for _ in range(REJECTED_IN_A_ROW_MAX + 5)
    ]

    assert primary.calls == REJECTED_IN_A_ROW_MAX
    assert reasons[0] == "it names a stranger"
    assert "in a row" in reasons[-1]
    assert chain.status().state is SummarizerState.FALLBACK


def test_one_that_is_kept_starts_the_count_again(
    chain: FallbackSummarizer, primary: Primary
) -> None:
    for _ in range(3):
        primary.does = REFUSED
        for _ in range(REJECTED_IN_A_ROW_MAX - 1):
            chain.summarize(GROUP)
        primary.does = lambda: None
        assert chain.summarize(GROUP).summarizer == "fake:model"


def test_a_group_fails_when_the_fallback_fails_too(
    primary: Primary, model: FakeModel, clock: FakeClock
) -> None:
    fallback = FakeSummarizer()
    fallback.fail()
    primary.does = DEAD
    chain = FallbackSummarizer(
        primary=primary, model=model, fallback=fallback, clock=clock
    )

    ((_, outcome),) = chain.summarize_each([(1, GROUP)], expected=1)

    assert isinstance(outcome, SummarizerFailed)


# -------------------------------------------------------------- it is interrupted


def test_an_interrupt_ends_what_the_model_writes_and_blames_nobody(
    chain: FallbackSummarizer, primary: Primary, model: FakeModel
) -> None:
    begun = threading.Event()

    def until_closed() -> None:
        begun.set()
        assert model.closed.wait(5)
        raise ModelUnavailable("it was closed")

    primary.does = until_closed
    summaries: list[Summary] = []
    working = threading.Thread(target=lambda: summaries.append(chain.summarize(GROUP)))
    working.start()
    assert begun.wait(5)

    chain.interrupt()
    working.join(1)

    assert [(one.summarizer, one.fallback_reason) for one in summaries] == [
        ("aaak", STOPPING)
    ]
    chain.summarize(GROUP)
    assert primary.calls == 1
    assert chain.status().reason == STOPPING


def test_an_interrupt_insists_where_the_model_is_asked_again(
    chain: FallbackSummarizer, primary: Primary, model: FakeModel
) -> None:
    begun = threading.Event()

    def twice() -> None:
        for _ in range(2):
            model.closed.clear()
            begun.set()
            assert model.closed.wait(5)

    primary.does = twice
    working = threading.Thread(target=chain.summarize, args=(GROUP,))
    working.start()
    assert begun.wait(5)

    chain.interrupt()
    working.join(5)

    assert not working.is_alive()


def test_an_interrupt_with_nothing_under_way_leaves_the_model_alone(
    chain: FallbackSummarizer, model: FakeModel
) -> None:
    chain.interrupt()

    assert not model.closed.is_set()


# A cycle with a slow or dead model: it gets its time, and the rest goes by rule.


K = TypeVar("K")
NOON = datetime(2026, 3, 3, 12, tzinfo=UTC)
GROUPS = 6
EPISODE = [
    MemoryRecord(
        id=str(at), content=text, role="user", created_at=NOON + timedelta(minutes=at)
    )
    for at, text in enumerate(
        (
            "Decision: we buy the Zebra ZC300 from Kessler, as soon as possible, for 1,890 euros.",
            "We looked at three vendors for the new badge printer this morning.",
            "The other two were slower, and one of them needed a driver nobody could find.",
            "Ines will pick it up on 14 April; the invoice goes to finance@example.com.",
            "Then we talked about lunch for a while and about the weather, which was fine.",
        )
    )
]


class Rules(ExtractiveSummarizer):
    """The rules, noting what is asked of them."""

    def __init__(self) -> None:
        super().__init__()
        self.expected: list[int] = []

    def summarize_each(
        self, groups: Iterable[tuple[K, Sequence[MemoryRecord]]], *, expected: int
    ) -> Iterator[tuple[K, Summary | Exception]]:
        self.expected.append(expected)
        yield from super().summarize_each(groups, expected=expected)


def chain_with(url: str, rules: Rules, *, cycle_budget_s: float) -> FallbackSummarizer:
    model = EndpointModel(endpoint=url, time_limit_s=20)
    return FallbackSummarizer(
        primary=ModelSummarizer(model=model, ratio=1 / 3, zone=UTC, max_tokens=256),
        model=model,
        fallback=rules,
        clock=FakeClock(),
        cycle_budget_s=cycle_budget_s,
    )


def cycle_of(summarizer: FallbackSummarizer) -> Iterator[Summary]:
    groups = ((at, EPISODE) for at in range(GROUPS))
    for _, outcome in summarizer.summarize_each(groups, expected=GROUPS):
        assert isinstance(outcome, Summary)
        yield outcome


def test_a_slow_model_has_its_time_in_each_cycle_and_rules_write_the_rest() -> None:
    rules = Rules()
    with serving(waits(0.2, begins)) as endpoint:
        chain = chain_with(endpoint.url, rules, cycle_budget_s=0.3)
        cycle = cycle_of(chain)
        summaries = [next(cycle) for _ in range(3)]
        amid = chain.status()
        summaries += cycle
        chain.release_workers()
        after = chain.status()
        (first, *_) = cycle_of(chain)

    by_model = [one.summarizer == chain.name for one in summaries]
    assert by_model[0]
    assert by_model == sorted(by_model, reverse=True)
    assert len(summaries) == GROUPS
    assert not any(by_model[2:])
    assert all("llm.cycle_budget_s" in one.fallback_reason for one in summaries[2:])
    assert (amid.state, after.state) == (
        SummarizerState.FALLBACK,
        SummarizerState.MODEL,
    )
    assert "0.3 s" in amid.reason
    assert first.summarizer == chain.name
    assert rules.expected[0] == GROUPS - by_model.count(True)


def test_the_steps_and_levels_of_a_cycle_share_one_time_of_the_model() -> None:
    rules = Rules()
    with serving(waits(0.2, begins)) as endpoint:
        chain = chain_with(endpoint.url, rules, cycle_budget_s=0.3)
        steps = [
            [one.summarizer == chain.name for one in cycle_of(chain)] for _ in range(3)
        ]
        chain.release_workers()
        (next_cycle, *_) = cycle_of(chain)

    assert steps[0][0]
    assert not any(steps[1] + steps[2])
    assert next_cycle.summarizer == chain.name


def test_a_model_within_its_time_writes_the_whole_cycle() -> None:
    rules = Rules()
    with serving(begins) as endpoint:
        chain = chain_with(endpoint.url, rules, cycle_budget_s=60)
        summaries = list(cycle_of(chain))

    assert {one.summarizer for one in summaries} == {chain.name}
    assert not rules.expected


@pytest.mark.thorough
def test_after_a_failure_the_rest_of_the_cycle_goes_the_rules_own_way() -> None:
    rules = Rules()
    chain = chain_with(f"http://127.0.0.1:{unused_port()}/v1", rules, cycle_budget_s=60)

    summaries = list(cycle_of(chain))

    assert len(summaries) == GROUPS
    assert all("refused" in one.fallback_reason for one in summaries)
    assert rules.expected == [GROUPS - 1]


# A cycle and a service whose model answers, hangs, or is gone.


def with_endpoint(url: str, clock: FakeClock) -> tuple[FallbackSummarizer, Primary]:
    model = EndpointModel(endpoint=url, time_limit_s=20)
    primary = Primary(model=model)
    rules = ExtractiveSummarizer()
    return FallbackSummarizer(
        primary=primary, model=model, fallback=rules, clock=clock
    ), primary


@pytest.mark.thorough
def test_a_cycle_promotes_every_group_though_nobody_listens(lab: Lab) -> None:
    remember_batch(
        lab.store, *(one for name in "abcd" for one in trio(name, source=name))
    )
    chain, primary = with_endpoint(f"http://127.0.0.1:{unused_port()}/v1", lab.clock)
    lab.cycle.lease.replace(chain)

    report = lab.cycle.run(CycleRequest(trigger=Trigger.EXPLICIT))

    assert (report.status, report.promoted, primary.calls) == (CycleStatus.DONE, 4, 1)
    entries = lab.store.sleep.log(limit=9)
    assert {entry.summarizer for entry in entries} == {"aaak"}
    assert all(
        "connection refused" in (entry.fallback_reason or "") for entry in entries
    )


def test_a_summary_by_the_model_has_no_fallback_reason(lab: Lab) -> None:
    remember_batch(lab.store, *trio("a"))
    with serving(says("note a0")) as served:
        chain, _ = with_endpoint(served.url, lab.clock)
        lab.cycle.lease.replace(chain)
        lab.cycle.run(CycleRequest(trigger=Trigger.EXPLICIT))

    (entry,) = lab.store.sleep.log(limit=9)
    assert (entry.summarizer, entry.fallback_reason) == ("fake:model", None)


def test_the_log_names_who_wrote_each_summary_as_it_reads_now(lab: Lab) -> None:
    short = trio("a", source="a")
    long = [
        memory(f"b{at}", f"note b{at}: all is well. " * 40, source="b")
        for at in range(3)
    ]
    remember_batch(
        lab.store,
        *short,
        *(replace(one, created_at=short[0].created_at) for one in long),
    )
    remember_batch(lab.store, memory("c", source="c", hours_ago=20))
    prose = "note b0: all is well."
    with serving(says(prose)) as served:
        model = EndpointModel(endpoint=served.url, time_limit_s=20)
        asked = ModelSummarizer(model=model, ratio=1 / 3, zone=UTC, max_tokens=256)
        lab.cycle.lease.replace(
            FallbackSummarizer(
                primary=asked,
                model=model,
                fallback=ExtractiveSummarizer(),
                clock=lab.clock,
            )
        )
        lab.cycle.run(CycleRequest(trigger=Trigger.EXPLICIT))
    wrote = {row.source: row.summarizer for row in lab.store.sleep.log(limit=9)}
    lab.forget("b1")

    assert wrote == {"a": "aaak", "b": model.name, "c": "verbatim"}
    rewritten = {row.source: row.summarizer for row in lab.store.sleep.log(limit=9)}
    assert rewritten == {"a": "aaak", "b": "aaak", "c": "verbatim"}


def test_an_interrupted_cycle_ends_at_once_and_the_last_one_asks_no_model(
    lab: Lab,
) -> None:
    remember_batch(
        lab.store, *(one for name in "ab" for one in trio(name, source=name))
    )
    with serving(drips) as served:
        chain, primary = with_endpoint(served.url, lab.clock)
        lab.cycle.lease.replace(chain)
        running = threading.Thread(
            target=lab.cycle.run, args=(CycleRequest(trigger=Trigger.EXPLICIT),)
        )
        running.start()
        while not served.seen:
            time.sleep(0.005)
        lab.cycle.lease.interrupt()
        report = lab.cycle.run(
            CycleRequest(trigger=Trigger.SHUTDOWN, deadline_s=10, rules_only=True)
        )
        running.join()

    assert (report.promoted, primary.calls, len(served.seen)) == (1, 1, 1)
    assert {entry.fallback_reason for entry in lab.store.sleep.log(limit=9)} == {
        STOPPING
    }


def test_forgetting_waits_for_no_model(lab: Lab) -> None:
    remember_batch(lab.store, *trio("a"))
    lab.cycle.run(CycleRequest(trigger=Trigger.EXPLICIT))
    chain, primary = with_endpoint(f"http://127.0.0.1:{unused_port()}/v1", lab.clock)
    lab.cycle.lease.replace(chain)

    lab.forget("a1")

    episode = lab.store.memories.get(lab.store.sleep.log(limit=1)[0].episode or "")
    assert isinstance(episode, Episode)
    assert episode.summarizer == "aaak"
    assert primary.calls == 0


def test_an_interrupt_reaches_a_model_that_new_settings_have_replaced(lab: Lab) -> None:
    remember_batch(lab.store, *trio("a"))
    with serving(drips) as served:
        chain, _ = with_endpoint(served.url, lab.clock)
        lab.cycle.lease.replace(chain)
        running = threading.Thread(
            target=lab.cycle.run, args=(CycleRequest(trigger=Trigger.EXPLICIT),)
        )
        running.start()
        while not served.seen:
            time.sleep(0.005)
        lab.cycle.lease.replace(ExtractiveSummarizer())
        lab.cycle.lease.interrupt()
        running.join()

    assert lab.store.sleep.log(limit=1)[0].fallback_reason == STOPPING


def test_new_settings_end_the_former_model_with_its_cycle(lab: Lab) -> None:
    model, primary, rules = FakeModel(), Primary(), ExtractiveSummarizer()
    lab.cycle.lease.replace(
        FallbackSummarizer(
            primary=primary, model=model, fallback=rules, clock=lab.clock
        )
    )
    remember_batch(lab.store, *trio("a"))
    other, _ = with_endpoint("http://127.0.0.1:9/v1", lab.clock)

    def exchange() -> None:
        lab.cycle.lease.replace(other)
        assert not model.closed.is_set()

    primary.does = exchange
    lab.cycle.run(CycleRequest(trigger=Trigger.EXPLICIT))

    assert model.closed.is_set()
    assert lab.store.sleep.log(limit=1)[0].summarizer == "fake:model"
