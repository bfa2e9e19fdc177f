"""The verb `recall`, over one memory, or over one's own and those of one's groups."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from mnemosyned.errors import MnemosynedError
from mnemosyned.memory.clock import Clock
from mnemosyned.memory.engine_ports import MemoryVectors, PendingVector
from mnemosyned.memory.masking import mask_memory
from mnemosyned.memory.ports import MemoryStore
from mnemosyned.memory.values import Hit, Line
from mnemosyned.search.broad import spread_results
from mnemosyned.search.confidence import ResultJudge, split_by_confidence
from mnemosyned.search.merging import merge_candidates, merge_documents, split_results
from mnemosyned.search.placement import misses_time
from mnemosyned.search.query import Documents, Query, SearchCandidates
from mnemosyned.search.ranking import make_hits, rank
from mnemosyned.service.endings import EndingFinder, add_endings
from mnemosyned.service.figures import DailyFigures
from mnemosyned.service.reading import make_query, missing_time_note
from mnemosyned.text.terms import match_beginnings
from mnemosyned.verbs.memories import Recall, Recalled

if TYPE_CHECKING:
    from mnemosyned.service.service import MemoryService
    from mnemosyned.storage.common.records import RecordStore

GROUPS_S = 1.0
"""Time after which no further memory of a group is searched for one question."""


def add_history(
    memories: RecordStore, hits: Sequence[Hit], *, reveal: bool
) -> list[Hit]:
    """Return the hits with the memories they superseded; drop hits already shown under another hit.

    Secrets are masked unless `reveal`.
    """
    shown_ids = {hit.id: [line.id for line in hit.lines] or [hit.id] for hit in hits}
    dated = []
    for hit in hits:
        older = {
            memory.id: memory if reveal else mask_memory(memory)
            for id in shown_ids[hit.id]
            for memory in memories.history(id)
        }
        history = tuple(
            Line(
                id=memory.id,
                created_at=memory.created_at,
                role=memory.role,
                content=memory.content,
                score=0.0,
                superseded_at=memory.superseded_at,
            )
            for memory in older.values()
        )
        dated.append(replace(hit, history=history))
    superseded = {line.id for hit in dated for line in hit.history}
    return [hit for hit in dated if not superseded.issuperset(shown_ids[hit.id])]


class GroupMemory(NamedTuple):
    """The memory of a group that a question is asked of, too."""

    name: str
    open: Callable[[], MemoryService]


class RecallService:
    """The verb `recall` over one store; safe to call from any thread."""

    def __init__(
        self,
        *,
        store: MemoryStore,
        clock: Clock,
        endings: EndingFinder,
        figures: DailyFigures,
        vectors: MemoryVectors | None,
    ) -> None:
        """Search `store`, also by `vectors`; `endings` finds what newer memories ended."""
        self.store = store
        self._clock = clock
        self._endings = endings
        self._figures = figures
        self._vectors = vectors

    def recall(self, request: Recall, groups: Sequence[GroupMemory] = ()) -> Recalled:
        """Return the hits for a question, best first, with secrets masked unless revealed.

        They are from this memory and those of `groups`, ranked as if all were in one; memories of
        groups are left out, with a note, if they fail or after `GROUPS_S` seconds.
        """
        begin = time.perf_counter()
        self._endings.find_soon()
        # A thread that waits for a connection for a group holds none for its own memory.
        with nullcontext() if groups else self.store.search.one_snapshot():
            recalled = self._recall(request, groups)
        self._figures.count_recall(time.perf_counter() - begin)
        return recalled

    def _recall(self, request: Recall, groups: Sequence[GroupMemory]) -> Recalled:
        """Return the hits for a question, as `recall` does."""
        begin = time.perf_counter()
        query = make_query(request, now=self._clock.now())
        asked = query.topic or request.query
        question = self._vectors.ask(asked) if self._vectors else None
        found, note = self.search(query, question)
        searched: dict[str | None, RecallService] = {None: self}
        candidates, notes = [found], [note]
        for group in groups:
            if time.perf_counter() - begin > GROUPS_S:
                notes.append(
                    f"the memory of {group.name} was left out, for lack of time"
                )
                continue
            try:
                memory = group.open().recalls
                memory._endings.find_soon()  # noqa: SLF001 of this class
                found, note = memory.search(query, question)
            except MnemosynedError as error:
                note = f"the memory of {group.name} was left out: {error.message}"
            else:
                searched[group.name] = memory
                candidates.append(found)
            notes.append(note)
        merged = merge_candidates(candidates)
        places = rank(query, merged)
        if query.topic is not None:
            places = spread_results(places, merged.memories, limit=request.limit)
        places, parts = split_results(places, len(candidates))
        shown = merge_documents(
            [
                each.store.search.documents(part) if part else Documents({}, {})
                for each, part in zip(searched.values(), parts, strict=True)
            ]
        )
        if not request.reveal:
            masked = {
                key: mask_memory(memory) for key, memory in shown.memories.items()
            }
            shown = replace(shown, memories=masked)
        judge = ResultJudge(query, merged)
        hits = make_hits(query, places, shown, judge, owners=tuple(searched))
        rest = {
            owner: iter(
                memory.complete([hit for hit in hits if hit.owner == owner], request)
            )
            for owner, memory in searched.items()
        }
        # In the order of one memory, with the places of the memories as they were.
        answer = [each for hit in hits for each in islice(rest[hit.owner], 1)]
        confidence = max((hit.confidence for hit in answer), default=0.0)
        if query.spans and misses_time(query, places, merged):
            notes.append(missing_time_note(query, has_hits=bool(answer)))
        sure, nearest = split_by_confidence(query, answer)
        return Recalled(
            sure,
            "; ".join(filter(None, dict.fromkeys(notes))),
            match_beginnings(query.terms),
            confidence=confidence,
            nearest=nearest,
        )

    def search(
        self, query: Query, question: PendingVector | None
    ) -> tuple[SearchCandidates, str]:
        """Return the candidates for a question, and a note on what the search lacks, or none.

        `question` is the question on its way to the embedding model; None without one.
        """
        with self.store.search.one_snapshot():
            candidates = self.store.search.candidates(query)
            if self._vectors is None:
                return candidates, ""
            return self._vectors.near(question, query, candidates)

    def complete(self, hits: Sequence[Hit], request: Recall) -> list[Hit]:
        """Return hits of this memory with what ended in them and, if requested, their history."""
        answer = add_endings(self.store.endings, hits, reveal=request.reveal)
        if request.history:
            answer = add_history(self.store.memories, answer, reveal=request.reveal)
        return answer
