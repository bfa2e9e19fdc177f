"""A chain of a model that does as it is told, and rules."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mnemosyned.errors import ModelUnavailable, SummarizerFailed
from mnemosyned.memory.engine_ports import Summary, TextModel
from mnemosyned.memory.values import MemoryRecord


class FakeTextModel(TextModel):
    """A model that counts characters and must not be asked, but for what a test overrides."""

    name = "fake:model"
    context_tokens = 2_048
    parameters = 0

    def count_tokens(self, text: str) -> int:
        return len(text)

    def complete(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        max_tokens: int,
        temperature: float,
    ) -> str:
        raise AssertionError(messages, max_tokens, temperature)

    def close(self) -> None:
        """Nothing runs."""


class FakeModel(FakeTextModel):
    """A model whose calls `Primary` makes up; it only notes that it was closed."""

    def __init__(self) -> None:
        self.closed = threading.Event()

    def close(self) -> None:
        self.closed.set()


@dataclass
class Primary:
    """A summarizer with a model, told what to do."""

    does: Callable[[], object] = lambda: None
    model: TextModel | None = None
    """Asked for the text, where it is given."""
    calls: int = 0
    accepted: int = 0
    retried: int = 0
    rejected: int = 0
    sentences: tuple[int, int] = (0, 0)

    def summarize(self, memories: Sequence[MemoryRecord]) -> Summary:
        self.calls += 1
        self.does()
        text = memories[0].content
        if self.model:
            said = [{"role": "user", "content": text}]
            text = self.model.complete(said, max_tokens=9, temperature=0)
        self.accepted += 1
        return Summary(text=text, summarizer="fake:model")


def raising(error: Exception) -> Callable[[], object]:
    def raise_it() -> None:
        raise error

    return raise_it


DEAD = raising(ModelUnavailable("it is gone"))
REFUSED = raising(SummarizerFailed("it names a stranger"))
