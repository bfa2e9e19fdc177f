"""Counts tokens as the language model in use does, for as long as it can be asked."""

from __future__ import annotations

from mnemosyned.domain.errors import SummarizerFailed
from mnemosyned.domain.ports.models import TextModel
from mnemosyned.domain.text.token_estimate import TokenCounter
from mnemosyned.logs import logger

log = logger()


class ModelCounter:
    """Asks a model; once it cannot answer, another counter does, and gives its own name."""

    def __init__(self, model: TextModel, *, otherwise: TokenCounter) -> None:
        self._model = model
        self._otherwise = otherwise
        self._failed = False

    @property
    def name(self) -> str:
        return self._otherwise.name if self._failed else self._model.name

    def count(self, text: str) -> int:
        if not self._failed:
            try:
                return self._model.count_tokens(text)
            except SummarizerFailed as error:
                self._failed = True
                log.warning(
                    "counter_fallback", model=self._model.name, reason=error.message
                )
        return self._otherwise.count(text)
