"""Recall in two stores that should answer alike."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from mnemosyned.domain.exchange import ExportedMemory
from mnemosyned.domain.ports.search import SearchStore
from mnemosyned.domain.search.hits import hits
from mnemosyned.domain.search.placement import with_summary
from mnemosyned.domain.search.ranking import rank
from mnemosyned.service.questions import query_of
from mnemosyned.verbs.memories import Recall

QUESTION_WORDS = 12


class Answers(NamedTuple):
    """How two stores answered."""

    asked: int
    differing: tuple[str, ...]
    """The memories whose words were answered otherwise."""


def compare_answers(
    one: SearchStore,
    other: SearchStore,
    sample: Sequence[ExportedMemory],
    *,
    now: datetime,
) -> Answers:
    """Ask both for the words of each memory, and compare the hits and their order."""
    differing: list[str] = []
    for memory in sample:
        question = " ".join(memory.content.split()[:QUESTION_WORDS])
        if _hits(one, question, now) != _hits(other, question, now):
            differing.append(memory.id)
    return Answers(len(sample), tuple(differing))


def _hits(store: SearchStore, question: str, now: datetime) -> list[str]:
    """The ids that a recall without a model answers, the best first."""
    query = query_of(Recall(question), now=now)
    candidates = store.candidates(query)
    places = with_summary(rank(query, candidates), candidates, limit=query.limit)
    return [hit.id for hit in hits(query, places, store.documents(places))]
