"""Token counter by the language model in use, while it is available."""

from __future__ import annotations

from mnemosyned.domain.errors import SummarizerFailed
from mnemosyned.domain.ports.models import TextModel
from mnemosyned.domain.text.token_estimate import TokenCounter
from mnemosyned.logs import logger

log = logger()


class ModelCounter:
    """Counter that asks a model; once it fails, another counter takes over, with its own name."""

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
