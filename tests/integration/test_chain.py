"""The model first, rules where it fails: when it is left alone, and what is said of it."""

from __future__ import annotations

import threading
import time
from datetime import UTC

import pytest
from support.fake_models import DEAD, REFUSED, FakeModel, Primary, raising
from support.fakes import FakeClock, FakeSummarizer, memory, trio

from mnemosyned.errors import ModelUnavailable, SummarizerFailed
from mnemosyned.memory.engine_ports import Summary
from mnemosyned.memory.values import SummarizerState
from mnemosyned.models.fallback import (
    COOL_DOWN,
    COOL_DOWN_MAX,
    REJECTED_IN_A_ROW_MAX,
    STOPPING,
    WAITED_FOR,
    FallbackSummarizer,
)
from mnemosyned.models.summarizer import ModelSummarizer
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

    started = time.monotonic()
    chain.interrupt()
    working.join(5)

    assert time.monotonic() - started < 1


def test_an_interrupt_with_nothing_under_way_takes_no_time(
    chain: FallbackSummarizer, model: FakeModel
) -> None:
    started = time.monotonic()
    chain.interrupt()

    assert time.monotonic() - started < 0.1
    assert not model.closed.is_set()
    chain.close()
    assert model.closed.is_set()
