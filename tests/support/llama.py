"""What tests of the language model in its own process share."""

from __future__ import annotations

import time
from collections.abc import Callable

from mnemosyned.models.llama import LlamaModel

SENTENCE = "The deploy moved to Friday because the cache was cold."
PRIVATE = "xylophone"
WAIT_S = 20.0
Maker = Callable[..., LlamaModel]


def wait_for(fact: Callable[[], bool], *, limit_s: float = WAIT_S) -> float:
    """Seconds until it holds."""
    began = time.monotonic()
    while not fact():
        assert time.monotonic() - began < limit_s, "it never came about"
        time.sleep(0.01)
    return time.monotonic() - began


def say(
    model: LlamaModel, content: str = "What happened?", *, max_tokens: int = 50
) -> str:
    messages = [{"role": "user", "content": content}]
    return model.complete(messages, max_tokens=max_tokens, temperature=0.0)
