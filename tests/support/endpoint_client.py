"""A model behind an endpoint, asked of something private."""

from __future__ import annotations

from typing import Any

import pytest

from mnemosyned.errors import SummarizerFailed
from mnemosyned.models.endpoint import EndpointModel

SECRET = "the cabin's code is larch-4471"  # noqa: S105 what a memory says
QUESTION = [{"role": "user", "content": SECRET}]


def make_model(url: str, **changes: Any) -> EndpointModel:  # noqa: ANN401
    return EndpointModel(**{"endpoint": url, "time_limit_s": 10.0, **changes})


def ask(asked: EndpointModel) -> str:
    return asked.complete(QUESTION, max_tokens=99, temperature=0.2)


def expect_refusal(asked: EndpointModel) -> SummarizerFailed:
    with pytest.raises(SummarizerFailed) as caught:
        ask(asked)
    assert SECRET not in caught.value.message
    return caught.value
