"""A cycle with a slow or dead model: it gets its time, and the rest goes by rule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import pytest
from support.endpoints import begins, serving, unused_port, waits
from support.fakes import FakeClock

from mnemosyned.memory.engine_ports import Summary
from mnemosyned.memory.values import MemoryRecord, SummarizerState
from mnemosyned.models.endpoint import EndpointModel
from mnemosyned.models.fallback import FallbackSummarizer
from mnemosyned.models.summarizer import ModelSummarizer
from mnemosyned.summary.extract import ExtractiveSummarizer

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
