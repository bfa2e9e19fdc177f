"""What tests of the language model in its own process share."""

from __future__ import annotations

from collections.abc import Callable

from mnemosyned.models.llama import LlamaModel

SENTENCE = "The deploy moved to Friday because the cache was cold."
PRIVATE = "xylophone"
WAIT_S = 60.0
Maker = Callable[..., LlamaModel]


def say(
    model: LlamaModel, content: str = "What happened?", *, max_tokens: int = 50
) -> str:
    messages = [{"role": "user", "content": content}]
    return model.complete(messages, max_tokens=max_tokens, temperature=0.0)
