"""The model first, rules where it fails: when it is left alone, and what is said of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from endpoints import drips, says, serving, unused_port
from fakes import FakeClock, FakeSummarizer, keep, trio

from mnemosyned.domain.consolidation import CycleStatus, Trigger
from mnemosyned.domain.errors import ModelUnavailable, SummarizerFailed
from mnemosyned.domain.memory import Episode, Memory
from mnemosyned.domain.model_ports import SummarizerState, Summary, TextModel
from mnemosyned.service import MemoryService
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.storage.sqlite import SqliteStore
from mnemosyned.summarizers.aaak import AaakSummarizer
from mnemosyned.summarizers.chain import (
    COOL_DOWN,
    COOL_DOWN_MAX,
    REJECTED_IN_A_ROW_MAX,
    STOPPING,
    WAITED_FOR,
    ChainSummarizer,
)
from mnemosyned.summarizers.endpoint import EndpointModel
from mnemosyned.verbs_keeping import Forget

GROUP = trio("a")


@dataclass
class FakeModel(TextModel):
    """A model whose calls `Primary` makes up; it only notes that it was closed."""

    name: str = "fake:model"
    closed: threading.Event = field(default_factory=threading.Event)

    @property
    def context_tokens(self) -> int:
        return 2048

    def count_tokens(self, text: str) -> int:
        return len(text)

    def complete(
        self, messages: Sequence[Mapping[str, str]], *, max_tokens: int, temperature: float
    ) -> str:
        raise NotImplementedError

    def close(self) -> None:
        self.closed.set()


@dataclass
class Primary:
    """A summariser with a model, told what to do."""

    does: Callable[[], object] = lambda: None
    model: TextModel | None = None
    """Asked for the text, where it is given."""
    calls: int = 0
    accepted: int = 0
    retried: int = 0
    rejected: int = 0

    def summarize(self, memories: Sequence[Memory]) -> Summary:
        self.calls += 1
        self.does()
        text = memories[0].content
        if self.model:
            said = [{"role": "user", "content": text}]
            text = self.model.complete(said, max_tokens=9, temperature=0)
        self.accepted += 1
        return Summary(text=text, summarizer="fake:model")


def fail(error: Exception) -> Callable[[], object]:
    def raise_it() -> None:
        raise error

    return raise_it


DEAD = fail(ModelUnavailable("it is gone"))
REFUSED = fail(SummarizerFailed("it names a stranger"))


@pytest.fixture
def primary() -> Primary:
    return Primary()


@pytest.fixture
def model() -> FakeModel:
    return FakeModel()


@pytest.fixture
def chain(primary: Primary, model: FakeModel, clock: FakeClock) -> ChainSummarizer:
    return ChainSummarizer(primary=primary, model=model, fallback=AaakSummarizer(), clock=clock)


# ------------------------------------------------------------------ all is well


def test_the_model_writes_while_it_can(chain: ChainSummarizer) -> None:
    summary = chain.summarize(GROUP)

    assert (summary.summarizer, summary.fallback_reason) == ("fake:model", "")
    standing = chain.standing()
    assert (standing.name, standing.state) == ("fake:model", SummarizerState.MODEL)
    assert (standing.accepted, standing.fallbacks) == (1, 0)
    assert "in force" in standing.reason


def test_whoever_waits_gets_rules(chain: ChainSummarizer, primary: Primary) -> None:
    one = chain.quick().summarize(GROUP)
    outcomes = dict(chain.quick().summarize_each([(1, GROUP), (2, GROUP)], expected=2))

    assert primary.calls == 0
    assert (one.summarizer, one.fallback_reason) == ("aaak", WAITED_FOR)
    assert [outcomes[key] for key in (1, 2)] == [one, one]
    assert chain.standing().fallbacks == 3


# ------------------------------------------------------------ the model is gone


def test_a_dead_model_costs_one_failure_and_not_one_for_each_group(
    chain: ChainSummarizer, primary: Primary, caplog: pytest.LogCaptureFixture
) -> None:
    primary.does = DEAD

    summaries = [chain.summarize(GROUP) for _ in range(20)]

    assert primary.calls == 1
    assert {summary.summarizer for summary in summaries} == {"aaak"}
    assert {summary.fallback_reason for summary in summaries} == {"it is gone"}
    assert caplog.text.count("model_left_alone") == 1


def test_status_says_what_failed_and_until_when(
    chain: ChainSummarizer, primary: Primary, clock: FakeClock
) -> None:
    primary.does = DEAD
    chain.summarize(GROUP)

    standing = chain.standing()
    until = (clock.now() + COOL_DOWN).astimezone()
    assert standing.state is SummarizerState.FALLBACK
    assert "it is gone" in standing.reason
    assert f"until {until:%H:%M}" in standing.reason
    clock.moment += COOL_DOWN
    assert chain.standing().state is SummarizerState.MODEL
    assert "tried again" in chain.standing().reason


def test_it_is_left_alone_twice_as_long_each_time_up_to_a_bound(
    chain: ChainSummarizer, primary: Primary, clock: FakeClock
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
    chain: ChainSummarizer,
    primary: Primary,
    clock: FakeClock,
) -> None:
    primary.does = DEAD
    chain.summarize(GROUP)
    primary.does = lambda: None
    clock.moment += COOL_DOWN

    assert chain.summarize(GROUP).summarizer == "fake:model"
    assert "in force" in chain.standing().reason
    primary.does = DEAD
    chain.summarize(GROUP)
    clock.moment += COOL_DOWN
    assert chain.standing().state is SummarizerState.MODEL, "the wait starts small again"


def test_a_clock_set_back_does_not_keep_the_model_out(
    chain: ChainSummarizer, primary: Primary, clock: FakeClock
) -> None:
    primary.does = DEAD
    chain.summarize(GROUP)
    clock.advance(days=-1)
    primary.does = lambda: None

    assert chain.summarize(GROUP).summarizer == "fake:model"


def test_an_error_nobody_foresaw_is_the_models_too_and_keeps_its_words(
    chain: ChainSummarizer, primary: Primary
) -> None:
    primary.does = fail(ValueError(GROUP[0].content))

    summary = chain.summarize(GROUP)

    assert (summary.summarizer, summary.fallback_reason) == ("aaak", "ValueError")
    assert chain.standing().state is SummarizerState.FALLBACK


# -------------------------------------------------------- an answer is not kept


def test_one_answer_that_is_not_kept_costs_its_own_group_alone(
    chain: ChainSummarizer, primary: Primary
) -> None:
    primary.does = REFUSED
    first = chain.summarize(GROUP)
    primary.does = lambda: None
    second = chain.summarize(GROUP)

    assert (first.summarizer, first.fallback_reason) == ("aaak", "it names a stranger")
    assert (second.summarizer, second.fallback_reason) == ("fake:model", "")


def test_several_in_a_row_are_a_failure_of_the_model(
    chain: ChainSummarizer, primary: Primary
) -> None:
    primary.does = REFUSED

    reasons = [chain.summarize(GROUP).fallback_reason for _ in range(REJECTED_IN_A_ROW_MAX + 5)]

    assert primary.calls == REJECTED_IN_A_ROW_MAX
    assert reasons[0] == "it names a stranger"
    assert "in a row" in reasons[-1]
    assert chain.standing().state is SummarizerState.FALLBACK


def test_one_that_is_kept_starts_the_count_again(chain: ChainSummarizer, primary: Primary) -> None:
    for _ in range(3):
        primary.does = REFUSED
        for _ in range(REJECTED_IN_A_ROW_MAX - 1):
            chain.summarize(GROUP)
        primary.does = lambda: None
        assert chain.summarize(GROUP).summarizer == "fake:model"


def test_what_the_fallback_cannot_do_either_is_a_failed_group(
    primary: Primary, model: FakeModel, clock: FakeClock
) -> None:
    fallback = FakeSummarizer()
    fallback.fail()
    primary.does = DEAD
    chain = ChainSummarizer(primary=primary, model=model, fallback=fallback, clock=clock)

    ((_, outcome),) = chain.summarize_each([(1, GROUP)], expected=1)

    assert isinstance(outcome, SummarizerFailed)


# -------------------------------------------------------------- it is interrupted


def test_an_interrupt_ends_what_the_model_writes_and_blames_nobody(
    chain: ChainSummarizer, primary: Primary, model: FakeModel
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

    assert [(one.summarizer, one.fallback_reason) for one in summaries] == [("aaak", STOPPING)]
    chain.summarize(GROUP)
    assert primary.calls == 1
    assert chain.standing().reason == STOPPING


def test_an_interrupt_insists_where_the_model_is_asked_again(
    chain: ChainSummarizer, primary: Primary, model: FakeModel
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
    chain: ChainSummarizer, model: FakeModel
) -> None:
    started = time.monotonic()
    chain.interrupt()

    assert time.monotonic() - started < 0.1
    assert not model.closed.is_set()
    chain.close()
    assert model.closed.is_set()


# ------------------------------------------------------- with a cycle and a server


def with_endpoint(url: str, clock: FakeClock) -> tuple[ChainSummarizer, Primary]:
    model = EndpointModel(endpoint=url, time_limit_s=20)
    primary = Primary(model=model)
    rules = AaakSummarizer()
    return ChainSummarizer(primary=primary, model=model, fallback=rules, clock=clock), primary


def test_a_cycle_promotes_every_group_though_nobody_listens(
    store: SqliteStore, cycle: SleepCycle, clock: FakeClock
) -> None:
    keep(store, *(one for name in "abcd" for one in trio(name, source=name)))
    cycle.summarizer, primary = with_endpoint(f"http://127.0.0.1:{unused_port()}/v1", clock)

    report = cycle.run(trigger=Trigger.EXPLICIT)

    assert (report.status, report.promoted, primary.calls) == (CycleStatus.DONE, 4, 1)
    entries = store.log(limit=9)
    assert {entry.summarizer for entry in entries} == {"aaak"}
    assert all("connection refused" in (entry.fallback_reason or "") for entry in entries)


def test_what_the_model_wrote_has_no_reason_in_the_log(
    store: SqliteStore, cycle: SleepCycle, clock: FakeClock
) -> None:
    keep(store, *trio("a"))
    with serving(says("note a0")) as served:
        cycle.summarizer, _ = with_endpoint(served.url, clock)
        cycle.run(trigger=Trigger.EXPLICIT)

    (entry,) = store.log(limit=9)
    assert (entry.summarizer, entry.fallback_reason) == ("fake:model", None)


def test_an_interrupted_cycle_ends_at_once_and_the_last_one_asks_no_model(
    store: SqliteStore, cycle: SleepCycle, clock: FakeClock
) -> None:
    keep(store, *(one for name in "ab" for one in trio(name, source=name)))
    with serving(drips) as served:
        cycle.summarizer, primary = with_endpoint(served.url, clock)
        running = threading.Thread(target=cycle.run, kwargs={"trigger": Trigger.EXPLICIT})
        running.start()
        while not served.seen:
            time.sleep(0.005)
        started = time.monotonic()
        cycle.interrupt()
        report = cycle.run(trigger=Trigger.SHUTDOWN, deadline_s=10, quick=True)
        running.join()

    assert time.monotonic() - started < 1
    assert (report.promoted, primary.calls, len(served.seen)) == (1, 1, 1)
    assert {entry.fallback_reason for entry in store.log(limit=9)} == {STOPPING}


def test_forgetting_waits_for_no_model(
    store: SqliteStore, cycle: SleepCycle, service: MemoryService, clock: FakeClock
) -> None:
    keep(store, *trio("a"))
    cycle.run(trigger=Trigger.EXPLICIT)
    cycle.summarizer, primary = with_endpoint(f"http://127.0.0.1:{unused_port()}/v1", clock)

    service.call(Forget("a1"))

    episode = store.get(store.log(limit=1)[0].episode or "")
    assert isinstance(episode, Episode)
    assert episode.summarizer == "aaak"
    assert primary.calls == 0


def test_an_interrupt_reaches_a_model_that_new_settings_have_replaced(
    store: SqliteStore, cycle: SleepCycle, clock: FakeClock
) -> None:
    keep(store, *trio("a"))
    with serving(drips) as served:
        cycle.summarizer, _ = with_endpoint(served.url, clock)
        running = threading.Thread(target=cycle.run, kwargs={"trigger": Trigger.EXPLICIT})
        running.start()
        while not served.seen:
            time.sleep(0.005)
        cycle.use_summarizer(AaakSummarizer())
        started = time.monotonic()
        cycle.interrupt()
        running.join()

    assert time.monotonic() - started < 1
    assert store.log(limit=1)[0].fallback_reason == STOPPING


def test_new_settings_end_the_former_model_with_its_cycle(
    store: SqliteStore, cycle: SleepCycle, clock: FakeClock, chain: ChainSummarizer
) -> None:
    cycle.summarizer = chain
    model = chain._model  # noqa: SLF001 to see it closed
    assert isinstance(model, FakeModel)
    keep(store, *trio("a"))
    other, _ = with_endpoint("http://127.0.0.1:9/v1", clock)
    primary = chain._primary  # noqa: SLF001 to act while it writes
    assert isinstance(primary, Primary)

    def exchange() -> None:
        cycle.use_summarizer(other)
        assert not model.closed.is_set()

    primary.does = exchange
    cycle.run(trigger=Trigger.EXPLICIT)

    assert model.closed.is_set()
    assert store.log(limit=1)[0].summarizer == "fake:model"
