"""A model for tests that override what they are about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mnemosyned.memory.engine_ports import TextModel


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
