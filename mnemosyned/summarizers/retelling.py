"""Summaries with a small model: the rules choose what matters, the model says it in its words."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo

from mnemosyned.domain.errors import SummarizerFailed
from mnemosyned.domain.memory import MemoryRecord
from mnemosyned.domain.ports.models import TextModel
from mnemosyned.domain.summary.model.clean_answer import clean_answer
from mnemosyned.domain.summary.model.retell import (
    ASKED_MAX,
    Passage,
    Retelling,
    passages,
    retell,
    speakers_of,
    worth_asking,
)
from mnemosyned.domain.summary.model.salvage import Kept, Speakers, salvage
from mnemosyned.domain.summary.prompt import retell_messages, retold_opening

SMALL_PARAMETERS = 500_000_000
"""A model with fewer weights is asked in few words, about one sentence at a time. One of 135 million
continues the transcript when given rules; one of 1.1 billion follows some of them."""
ANSWER_TOKENS = 60
"""Maximum tokens of a sentence retold."""
TEMPERATURE = 0.0


def is_small(model: TextModel) -> bool:
    """Whether a model is too small for rules in its prompt. Raises `SummarizerFailed`."""
    return 0 < model.parameters < SMALL_PARAMETERS


class Reteller:
    """Asks a small model to retell an extract, and keeps what the sources say."""

    def __init__(self, model: TextModel) -> None:
        self.asked = 0
        """Sentences that the model was asked to retell."""
        self.kept = 0
        """Sentences that stand in summaries in its words."""
        self._model = model

    def retell(
        self,
        memories: Sequence[MemoryRecord],
        lines: Sequence[str],
        *,
        chars_max: int,
        zone: tzinfo,
    ) -> Retelling:
        """Return the lines with the model's sentences among them.

        Raises `SummarizerFailed` where it was asked and none of its sentences could be kept.
        """
        parts = passages(memories, lines, zone)
        asked = self.asked
        kept: dict[int, Kept] = {}
        for at, part in enumerate(parts):
            speakers = speakers_of(part, memories)
            if speakers is None or not worth_asking(part):
                continue
            if self.asked - asked >= ASKED_MAX:
                break
            kept.update((at, sentence) for sentence in self._ask(part, speakers))
        result = retell(parts, kept, chars_max=chars_max, zone=zone)
        self.kept += result.sentences
        if self.asked > asked and not result.sentences:
            raise SummarizerFailed(
                f"No sentence of {self._model.name} could be kept: none says what its source says."
            )
        return result

    def _ask(self, part: Passage, speakers: Speakers) -> list[Kept]:
        """Return the model's sentence for a passage, if its source says it."""
        self.asked += 1
        answer = self._model.complete(
            retell_messages(speakers.speaker, part.said),
            max_tokens=ANSWER_TOKENS,
            temperature=TEMPERATURE,
        )
        text = f"{retold_opening(speakers.speaker)} {clean_answer(answer)}"
        return salvage(text, [part.said], speakers)
