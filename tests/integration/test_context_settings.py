"""The settings of contexts, from the file to the answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from integration.test_tokenizers import vocabulary

from mnemosyned import Memory
from mnemosyned.assembly.build import check_settings
from mnemosyned.config import load_config
from mnemosyned.errors import ConfigInvalid


def memory(tmp_path: Path, **settings: Any) -> Memory:  # noqa: ANN401
    named: dict[str, Any] = {f"context.{key}": one for key, one in settings.items()}
    return Memory(tmp_path / "memory.db", **named)


def test_the_window_is_shared_out_as_configured(tmp_path: Path) -> None:
    with memory(
        tmp_path, total=9_000, system_reserve=500, memory_fraction=0.5
    ) as opened:
        window = opened.context("Hello.")
        shorter = opened.compact([{"role": "user", "content": "Hello."}])

    assert (window.tokens.budget, window.tokens.counter) == (9_000, "estimate+20%")
    assert window.tokens.history_budget == (9_000 - 500 - 2_000) * 45 // 100
    assert shorter.limit == 9_000


def test_a_vocabulary_on_disk_counts(tmp_path: Path) -> None:
    file = vocabulary(tmp_path / "own.tiktoken")

    with memory(tmp_path, tokenizer=str(file)) as opened:
        assert opened.context("Hello.").tokens.counter == "tiktoken:own"
        assert opened.status().counter == "tiktoken:own"


def test_the_model_of_the_summaries_counts_where_that_is_wanted(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "llm.endpoint": "http://127.0.0.1:9/v1",
        "llm.endpoint_model": "small",
        "context.tokenizer": "model",
    }

    with Memory(tmp_path / "m.db", **settings) as opened:
        assert opened.status().counter.startswith("endpoint:")


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"total": 1_000}, "exceed total"),
        ({"memory_fraction": 0.7, "learnings_fraction": 0.7}, "more than 1"),
        ({"tokenizer": "model"}, "no model is configured"),
        ({"tokenizer": "/nowhere/x.tiktoken"}, "cannot be read"),
        ({"tokenizer": "/nowhere/x.bin"}, "neither"),
    ],
)
def test_settings_that_cannot_be_are_refused_at_the_start(
    settings: dict[str, Any], says: str
) -> None:
    config = load_config(
        overrides={f"context.{key}": one for key, one in settings.items()}
    )

    with pytest.raises(ConfigInvalid, match=says) as refused:
        check_settings(config)

    assert refused.value.field
    assert refused.value.field.startswith("context")
