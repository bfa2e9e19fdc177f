"""A model's words in a compaction, and a model that is not waited for."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from support.compactions import compact, find_missing, rounds
from support.fakes import FakeClock, FakeSummarizer
from support.settings import change

from mnemosyned.config import SettingsInForce
from mnemosyned.errors import SleepInProgress
from mnemosyned.memory.values import MemoryRecord, SummarizerState, SummarizerStatus
from mnemosyned.service.service import MemoryService
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.verbs.conversation import Shortened
from mnemosyned.verbs.memories import Remember
from mnemosyned.verbs.upkeep import Sleep, Status


class Model(FakeSummarizer):
    """A summarizer that says it works with a model."""

    answer = "They read twenty files, one after the other."

    def summarize(self, memories: Sequence[MemoryRecord]) -> Any:  # noqa: ANN401
        return replace(super().summarize(memories), text=self.answer)

    def status(self) -> SummarizerStatus:
        return SummarizerStatus(
            name=self.name, reason=self.reason, state=SummarizerState.MODEL
        )


@pytest.fixture
def model(cycle: SleepCycle) -> Model:
    found = Model()
    cycle.lease.replace(found)
    return found


@pytest.mark.parametrize("policy", ["auto", "rounds"])
def test_a_models_words_go_on_top_of_what_the_rules_found(
    service: MemoryService, model: Model, policy: str
) -> None:
    answer = compact(service, rounds(20), policy=policy)

    assert model.answer in answer.summaries[0]
    assert answer.fallback_reason == ""
    assert "plan 0" in answer.summaries[0] or "begin 0" in answer.summaries[0]


def test_a_model_that_takes_too_long_is_not_waited_for(
    service: MemoryService, model: Model, settings: SettingsInForce
) -> None:
    done = threading.Event()
    model.meanwhile = lambda _: done.wait(20)
    change(settings, {"context.model_limit_s": 0.05})

    answer = compact(service, rounds(20), policy="rounds")

    assert not done.is_set()
    assert "took longer" in answer.fallback_reason
    assert find_missing(service, rounds(20), answer) == []
    done.set()


def test_a_summary_of_a_conversation_is_not_a_cycle_that_runs(
    service: MemoryService, model: Model
) -> None:
    running: list[bool] = []
    refusals: list[str] = []

    def look(_: object) -> None:
        running.append(service.call(Status()).sleep.running)
        with pytest.raises(SleepInProgress) as caught:
            service.call(Sleep(force=True))
        refusals.append(caught.value.message)

    model.meanwhile = look

    compact(service, rounds(20), policy="rounds")

    assert running[:1] == [False]
    assert refusals[0].startswith("the summary of a conversation is running")


def test_a_model_that_a_sleep_cycle_has_is_not_waited_for(
    service: MemoryService, model: Model, clock: FakeClock
) -> None:
    for n in range(3):
        service.call(Remember(f"note {n}"))
    clock.advance(hours=30)
    answers: list[Shortened] = []
    model.meanwhile = lambda memories: (
        answers.append(compact(service, rounds(20)))
        if memories[0].content == "note 0"
        else None
    )

    service.call(Sleep())

    assert "a sleep cycle has the model" in answers[0].fallback_reason
    assert answers[0].changed
