"""Summaries with a small model: asked in few words, a sentence at a time, beside the rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from support.fakes import FakeClock

from mnemosyned.errors import SummarizerFailed
from mnemosyned.memory.engine_ports import TextModel
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.models.fallback import FallbackSummarizer
from mnemosyned.models.summarizer import ModelSummarizer
from mnemosyned.summary.extract import ExtractiveSummarizer

WHEN = datetime(2024, 3, 5, 18, 30, tzinfo=UTC)
SHARE = 0.8
TALK = """\
Ana: I adopted a grey cat from the shelter on Monday.
Ben: I rented a cabin near Bergen for the whole summer.
Ana: Good for you, cabins are wonderful and the sea is close.
Ben: Did you ever visit the fjords near the cabin?
"""


class SmallModel(TextModel):
    """Goes on from the opening with what its script says of the line shown."""

    name = "small"
    parameters = 135_000_000
    context_tokens = 2_048

    def __init__(self, answer: Callable[[str], str]) -> None:
        self.shown: list[Sequence[Mapping[str, str]]] = []
        self._answer = answer

    def count_tokens(self, text: str) -> int:
        return len(text) // 4

    def complete(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        max_tokens: int,  # noqa: ARG002
        temperature: float,  # noqa: ARG002
    ) -> str:
        self.shown.append(messages)
        return self._answer(messages[0]["content"])

    def close(self) -> None:
        """Nothing runs."""


def talk() -> list[MemoryRecord]:
    lines = (line.split(": ", 1) for line in TALK.splitlines())
    return [
        MemoryRecord(id=str(at), content=text, role=role, created_at=WHEN)
        for at, (role, text) in enumerate(lines)
    ]


def honest(shown: str) -> str:
    if "cat" in shown:
        return "she adopted a grey cat from the shelter on Monday"
    return "he rented a castle near Bergen for the whole summer"


def summarizer(model: TextModel) -> ModelSummarizer:
    return ModelSummarizer(model=model, ratio=SHARE, zone=UTC, max_tokens=200)


def test_it_is_asked_in_few_words_with_the_answer_begun() -> None:
    model = SmallModel(honest)

    summarizer(model).summarize(talk())

    first, opening = model.shown[0]
    assert first["content"] == (
        "Ana: I adopted a grey cat from the shelter on Monday.\n\n"
        "What did Ana say? Answer in the third person."
    )
    assert opening == {"role": "assistant", "content": "Ana said that"}


def test_only_what_speaks_of_its_speaker_is_asked_about() -> None:
    model = SmallModel(honest)

    summarizer(model).summarize(talk())

    assert len(model.shown) == 2


def test_its_grounded_sentences_stand_among_those_of_the_rules() -> None:
    by_model = summarizer(SmallModel(honest))

    summary = by_model.summarize(talk())

    assert "Ana adopted a grey cat from the shelter on Monday." in summary.text
    assert "Ben: I rented a cabin near Bergen" in summary.text
    assert "castle" not in summary.text
    assert 0.1 < summary.model_share < 0.6
    assert by_model.sentences == (2, 1)
    assert (by_model.accepted, by_model.rejected) == (1, 0)


def test_a_group_of_which_nothing_is_grounded_goes_to_the_rules_with_the_reason() -> (
    None
):
    model = SmallModel(lambda _: "she won the lottery")
    by_model = summarizer(model)
    rules = ExtractiveSummarizer(ratio=SHARE, zone=UTC)

    with pytest.raises(SummarizerFailed, match="No sentence of small"):
        by_model.summarize(talk())

    chain = FallbackSummarizer(
        primary=by_model, model=model, fallback=rules, clock=FakeClock()
    )
    summary = chain.summarize(talk())
    assert summary.text == rules.summarize(talk()).text
    assert "No sentence of small" in summary.fallback_reason
    assert summary.model_share == 0


def test_a_group_that_nobody_speaks_in_is_of_the_rules_and_no_success() -> None:
    notes = [replace(memory, role="") for memory in talk()]
    by_model = summarizer(SmallModel(honest))

    summary = by_model.summarize(notes)

    assert (summary.summarizer, summary.model_share) == ("aaak", 0)
    assert (by_model.accepted, by_model.rejected) == (0, 0)


def test_its_counts_are_part_of_the_status() -> None:
    model = SmallModel(honest)
    rules = ExtractiveSummarizer(ratio=SHARE, zone=UTC)
    chain = FallbackSummarizer(
        primary=summarizer(model), model=model, fallback=rules, clock=FakeClock()
    )

    chain.summarize(talk())

    assert (chain.status().sentences, chain.status().sentences_kept) == (2, 1)
