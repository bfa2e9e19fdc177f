"""The model first, rules where it fails: when it is left alone, and what is said of it."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, timedelta
from typing import TypeVar

import pytest
from support.endpoints import Endpoint, begins, drips, says, serving, unused_port, waits
from support.fake_models import FakeTextModel
from support.fakes import (
    FakeClock,
    FakeSummarizer,
    memory,
    raising,
    said_in_turn,
    trio,
)
from support.services import Lab
from support.stores import get_episode

from mnemosyned.errors import ModelUnavailable, SummarizerFailed
from mnemosyned.memory.consolidation import Trigger
from mnemosyned.memory.engine_ports import Summarizer, Summary, TextModel
from mnemosyned.memory.values import MemoryRecord, SummarizerState
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
from mnemosyned.summary.extract import ExtractiveSummarizer


class FakeModel(FakeTextModel):
    """A model whose calls `Primary` makes up; it only notes that it was closed."""

    def __init__(self) -> None:
        self.closed = threading.Event()

    def close(self) -> None:
        self.closed.set()


@dataclass
class Primary:
    """A summarizer with a model, told what to do."""

    does: Callable[[], object] = lambda: None
    model: TextModel | None = None
    """Asked for the text, where it is given."""
    calls: int = 0
    accepted: int = 0
    retried: int = 0
    rejected: int = 0
    sentences: tuple[int, int] = (0, 0)

    def summarize(self, memories: Sequence[MemoryRecord]) -> Summary:
        self.calls += 1
        self.does()
        text = memories[0].content
        if self.model:
            said = [{"role": "user", "content": text}]
            text = self.model.complete(said, max_tokens=9, temperature=0)
        self.accepted += 1
        return Summary(text=text, summarizer="fake:model")


DEAD = raising(ModelUnavailable("it is gone"))


REFUSED = raising(SummarizerFailed("it names a stranger"))


GROUP = trio("a")


class Chain(FallbackSummarizer):
    """A chain of a summarizer with a model, whose calls a test decides, and rules."""

    def __init__(self, fallback: Summarizer | None = None) -> None:
        self.writer, self.closable, self.time = Primary(), FakeModel(), FakeClock()
        super().__init__(
            primary=self.writer,
            model=self.closable,
            fallback=fallback or ExtractiveSummarizer(),
            clock=self.time,
        )

    def write(self) -> tuple[str, str]:
        """Who wrote a summary of the group, and why it was not the model."""
        summary = self.summarize(GROUP)
        return summary.summarizer, summary.fallback_reason


BY_MODEL = ("fake:model", "")


@pytest.fixture
def chain() -> Chain:
    return Chain()


def test_a_waiting_caller_gets_a_summary_by_rule(chain: Chain) -> None:
    one = chain.rule_based().summarize(GROUP)
    groups = [(1, GROUP), (2, GROUP)]
    outcomes = dict(chain.rule_based().summarize_each(groups, expected=2))

    assert chain.writer.calls == 0
    assert (one.summarizer, one.fallback_reason) == ("aaak", WAITED_FOR)
    assert [outcomes[key] for key in (1, 2)] == [one, one]
    assert chain.status().fallbacks == 3


def test_a_dead_model_costs_one_failure_and_not_one_for_each_group(
    chain: Chain, caplog: pytest.LogCaptureFixture
) -> None:
    chain.writer.does = DEAD

    assert {chain.write() for _ in range(20)} == {("aaak", "it is gone")}
    assert chain.writer.calls == 1
    assert caplog.text.count("model_left_alone") == 1


def test_status_says_what_failed_and_until_when(chain: Chain) -> None:
    chain.writer.does = DEAD
    chain.write()

    status = chain.status()
    until = (chain.time.now() + COOL_DOWN).astimezone()
    assert status.state is SummarizerState.FALLBACK
    assert "it is gone" in status.reason
    assert f"until {until:%H:%M}" in status.reason
    chain.time.moment += COOL_DOWN
    assert chain.status().state is SummarizerState.MODEL
    assert "tried again" in chain.status().reason


def test_it_is_left_alone_twice_as_long_each_time_up_to_a_bound(chain: Chain) -> None:
    chain.writer.does = DEAD
    chain.write()
    pauses: list[timedelta] = []
    for _ in range(8):
        asked = chain.time.now()
        while chain.writer.calls == len(pauses) + 1:
            chain.time.advance(minutes=1)
            chain.write()
        pauses.append(chain.time.now() - asked)

    assert pauses[:4] == [COOL_DOWN * factor for factor in (1, 2, 4, 8)]
    assert pauses[-1] == COOL_DOWN_MAX


@pytest.mark.parametrize(
    "passed", [COOL_DOWN, timedelta(days=-1)], ids=["in time", "a clock set back"]
)
def test_a_model_that_is_back_writes_again(chain: Chain, passed: timedelta) -> None:
    chain.writer.does = DEAD
    chain.write()
    chain.writer.does = lambda: None
    chain.time.moment += passed

    assert chain.write() == BY_MODEL
    status = chain.status()
    assert (status.name, status.state) == ("fake:model", SummarizerState.MODEL)
    assert (status.accepted, status.fallbacks) == (1, 1)
    assert "in force" in status.reason
    chain.writer.does = DEAD
    chain.write()
    chain.time.moment += COOL_DOWN
    assert chain.status().state is SummarizerState.MODEL, "the wait starts small again"


class Unplugged(FakeModel):
    """A model that is not there."""

    def count_tokens(self, text: str) -> int:
        return len(text) // 4

    def complete(self, *_: object, **__: object) -> str:
        raise ModelUnavailable("it is gone")


def test_a_group_too_short_for_the_model_does_not_bring_it_back() -> None:
    model, clock = Unplugged(), FakeClock()
    asked = ModelSummarizer(
        model=model, ratio=1 / 3, find_zone=lambda: UTC, max_tokens=256
    )
    chain = FallbackSummarizer(
        primary=asked, model=model, fallback=ExtractiveSummarizer(), clock=clock
    )
    chain.summarize([memory("long", "Ada and Ben moved the printer to rack 4. " * 40)])
    clock.advance(seconds=COOL_DOWN.total_seconds() + 1)

    short = chain.summarize([memory("short", "aka Bob")])

    assert (short.summarizer, short.fallback_reason) == ("aaak", "")
    status = chain.status()
    assert (status.accepted, "tried again" in status.reason) == (0, True)


def test_an_unforeseen_error_is_the_models_and_keeps_its_words(chain: Chain) -> None:
    chain.writer.does = raising(ValueError(GROUP[0].content))

    assert chain.write() == ("aaak", "ValueError")
    assert chain.status().state is SummarizerState.FALLBACK


def test_several_in_a_row_are_a_failure_of_the_model(chain: Chain) -> None:
    chain.writer.does = REFUSED

    reasons = [chain.write()[1] for _ in range(REJECTED_IN_A_ROW_MAX + 5)]

    assert chain.writer.calls == REJECTED_IN_A_ROW_MAX
    assert reasons[0] == "it names a stranger"
    assert "in a row" in reasons[-1]
    assert chain.status().state is SummarizerState.FALLBACK


def test_one_that_is_kept_starts_the_count_again(chain: Chain) -> None:
    for _ in range(3):
        chain.writer.does = REFUSED
        for _ in range(REJECTED_IN_A_ROW_MAX - 1):
            chain.write()
        chain.writer.does = lambda: None
        assert chain.write() == BY_MODEL


def test_a_group_fails_when_the_fallback_fails_too() -> None:
    fallback = FakeSummarizer()
    fallback.fail()
    chain = Chain(fallback)
    chain.writer.does = DEAD

    ((_, outcome),) = chain.summarize_each([(1, GROUP)], expected=1)

    assert isinstance(outcome, SummarizerFailed)


@contextmanager
def writing(chain: Chain) -> Iterator[list[Summary]]:
    """The chain at work in another thread; the list gets its summary."""
    begun = threading.Event()
    does = chain.writer.does

    def begin() -> None:
        begun.set()
        does()

    chain.writer.does = begin
    summaries: list[Summary] = []
    working = threading.Thread(target=lambda: summaries.append(chain.summarize(GROUP)))
    working.start()
    assert begun.wait(60)
    yield summaries
    working.join(60)
    assert not working.is_alive()


def test_an_interrupt_ends_what_a_model_writes_and_blames_nobody(chain: Chain) -> None:
    def until_closed() -> None:
        assert chain.closable.closed.wait(60)
        raise ModelUnavailable("it was closed")

    chain.writer.does = until_closed
    with writing(chain) as summaries:
        chain.interrupt()

    ends = [(one.summarizer, one.fallback_reason) for one in summaries]
    assert ends == [("aaak", STOPPING)]
    chain.write()
    assert chain.writer.calls == 1
    assert chain.status().reason == STOPPING


def test_an_interrupt_insists_where_the_model_is_asked_again(chain: Chain) -> None:
    def twice() -> None:
        for _ in range(2):
            chain.closable.closed.clear()
            assert chain.closable.closed.wait(60)

    chain.writer.does = twice
    with writing(chain):
        chain.interrupt()


def test_an_interrupt_of_nothing_leaves_the_model_alone(chain: Chain) -> None:
    chain.interrupt()

    assert not chain.closable.closed.is_set()


# A cycle with a slow or dead model: it gets its time, and the rest goes by rule.


K = TypeVar("K")
GROUPS = 6
EPISODE = said_in_turn(
    "Decision: we buy the Zebra ZC300 from Kessler, as soon as possible, for 1,890 euros.",
    "We looked at three vendors for the new badge printer this morning.",
    "The other two were slower, and one of them needed a driver nobody could find.",
    "Ines will pick it up on 14 April; the invoice goes to finance@example.com.",
    "Then we talked about lunch for a while and about the weather, which was fine.",
)


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


def chain_with(
    url: str, rules: Summarizer, *, cycle_budget_s: float = 60
) -> FallbackSummarizer:
    model = EndpointModel(endpoint=url, time_limit_s=20)
    return FallbackSummarizer(
        primary=ModelSummarizer(
            model=model, ratio=1 / 3, find_zone=lambda: UTC, max_tokens=256
        ),
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
        further = {one.summarizer for _ in range(2) for one in cycle_of(chain)}
        chain.release_workers()
        after = chain.status()
        (first, *_) = cycle_of(chain)

    by_model = [one.summarizer == chain.name for one in summaries]
    assert by_model[0]
    assert by_model == sorted(by_model, reverse=True)
    assert len(summaries) == GROUPS
    assert not any(by_model[2:])
    assert all("llm.cycle_budget_s" in one.fallback_reason for one in summaries[2:])
    assert rules.expected[0] == GROUPS - by_model.count(True)
    assert further == {"aaak"}, "the steps and levels of a cycle share its time"
    assert amid.state is SummarizerState.FALLBACK
    assert "0.3 s" in amid.reason
    assert after.state is SummarizerState.MODEL
    assert first.summarizer == chain.name


@pytest.mark.thorough
def test_after_a_failure_the_rest_of_the_cycle_goes_the_rules_own_way() -> None:
    rules = Rules()
    chain = chain_with(f"http://127.0.0.1:{unused_port()}/v1", rules)

    summaries = list(cycle_of(chain))

    assert len(summaries) == GROUPS
    assert all("refused" in one.fallback_reason for one in summaries)
    assert rules.expected == [GROUPS - 1]


# A cycle and a service whose model answers, hangs, or is gone.


def with_endpoint(url: str) -> tuple[FallbackSummarizer, Primary]:
    model = EndpointModel(endpoint=url, time_limit_s=20)
    primary, rules = Primary(model=model), ExtractiveSummarizer()
    chain = FallbackSummarizer(
        primary=primary, model=model, fallback=rules, clock=FakeClock()
    )
    return chain, primary


def test_the_log_names_who_wrote_each_summary_as_it_reads_now(lab: Lab) -> None:
    lab.put(*trio("a", source="a"))
    lab.put(memory("c", source="c", hours_ago=20))
    for one in trio("b", source="b"):
        text = f"note {one.id}: all is well. " * 40
        lab.put(memory(one.id, text, source="b", hours_ago=20))
    with serving(says("note b0: all is well.")) as served:
        chain = chain_with(served.url, ExtractiveSummarizer())
        lab.cycle.lease.replace(chain)
        lab.run_cycle()

    def rows() -> dict[str | None, tuple[str, str | None]]:
        rows = lab.store.sleep.log(limit=9)
        return {row.source: (row.summarizer, row.fallback_reason) for row in rows}

    wrote = rows()
    lab.forget("b1")

    assert wrote["b"] == (chain.name, None)
    assert {source: rows()[source][0] for source in "abc"} == {
        "a": "aaak",
        "b": "aaak",
        "c": "verbatim",
    }
    assert [wrote[source] for source in "ac"] == [rows()[source] for source in "ac"]


def test_forgetting_waits_for_no_model(lab: Lab) -> None:
    lab.put(*trio("a"))
    lab.run_cycle()
    chain, primary = with_endpoint(f"http://127.0.0.1:{unused_port()}/v1")
    lab.cycle.lease.replace(chain)

    lab.forget("a1")

    id = lab.store.sleep.log(limit=1)[0].episode
    assert get_episode(lab.store, id or "").summarizer == "aaak"
    assert primary.calls == 0


@contextmanager
def dripping_cycle(lab: Lab) -> Iterator[tuple[Endpoint, Primary]]:
    """A cycle in another thread, whose model has begun to write without an end."""
    with serving(drips) as served:
        chain, primary = with_endpoint(served.url)
        lab.cycle.lease.replace(chain)
        running = threading.Thread(target=lab.run_cycle)
        running.start()
        while not served.seen:
            time.sleep(0.005)
        yield served, primary
        running.join()


def test_an_interrupted_cycle_ends_at_once_and_the_last_asks_no_model(lab: Lab) -> None:
    lab.put(*(one for n in "ab" for one in trio(n, source=n)))
    with dripping_cycle(lab) as (served, primary):
        lab.cycle.lease.interrupt()
        report = lab.run_cycle(Trigger.SHUTDOWN, deadline_s=10, rules_only=True)

    assert (report.promoted, primary.calls, len(served.seen)) == (1, 1, 1)
    reasons = {entry.fallback_reason for entry in lab.store.sleep.log(limit=9)}
    assert reasons == {STOPPING}


def test_an_interrupt_reaches_a_model_that_new_settings_replaced(lab: Lab) -> None:
    lab.put(*trio("a"))
    with dripping_cycle(lab):
        lab.cycle.lease.replace(ExtractiveSummarizer())
        lab.cycle.lease.interrupt()

    assert lab.store.sleep.log(limit=1)[0].fallback_reason == STOPPING


def test_new_settings_end_the_former_model_with_its_cycle(lab: Lab) -> None:
    former = Chain()
    lab.cycle.lease.replace(former)
    lab.put(*trio("a"))

    def exchange() -> None:
        lab.cycle.lease.replace(with_endpoint("http://127.0.0.1:9/v1")[0])
        assert not former.closable.closed.is_set()

    former.writer.does = exchange
    lab.run_cycle()

    assert former.closable.closed.is_set()
    assert lab.store.sleep.log(limit=1)[0].summarizer == "fake:model"
