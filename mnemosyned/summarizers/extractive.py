"""Rule-based summarizer: it selects sentences."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, tzinfo

from mnemosyned.domain.errors import SummarizerFailed
from mnemosyned.domain.memory import MemoryRecord
from mnemosyned.domain.ports.models import Summarizer, Summary
from mnemosyned.domain.sleep.consolidation import BY_RULE
from mnemosyned.domain.summary.extract import extract
from mnemosyned.domain.summary.keywords import joined_terms

RATIO = 1 / 3
REASON = "no model is configured; sentences are selected by rule"


class ExtractiveSummarizer(Summarizer):
    """Summarizer by selection, used without a model."""

    name = BY_RULE

    def __init__(
        self, *, ratio: float = RATIO, reason: str = REASON, zone: tzinfo = UTC
    ) -> None:
        self.reason = reason
        self._ratio = ratio
        self._zone = zone

    def summarize(self, memories: Sequence[MemoryRecord]) -> Summary:
        """Return the most informative sentences, and index terms for what they leave out."""
        kept = (
            extract(memories, ratio=self._ratio, zone=self._zone) if memories else None
        )
        if kept is None or not kept.text:
            raise SummarizerFailed(
                "the memories contain no text; leave them as they are"
            )
        return Summary(
            text=kept.text,
            index_terms=joined_terms(kept.index_terms),
            summarizer=self.name,
        )
