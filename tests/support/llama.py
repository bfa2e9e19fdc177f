"""What tests of the language model in its own process share."""

from __future__ import annotations

from collections.abc import Callable

from mnemosyned.models.llama import LlamaModel

SENTENCE = "The deploy moved to Friday because the cache was cold."
PRIVATE = "xylophone"
ENDLESS = " ".join(
    f"{first}{second}" for first in "bcdfghjklmnpqrstvwxz" for second in "aeiouy"
)
"""Words that a model may say again and again for minutes: they are too many to be seen as a loop."""
WAIT_S = 60.0
Maker = Callable[..., LlamaModel]


def say(
    model: LlamaModel, content: str = "What happened?", *, max_tokens: int = 50
) -> str:
    messages = [{"role": "user", "content": content}]
    return model.complete(messages, max_tokens=max_tokens, temperature=0.0)
